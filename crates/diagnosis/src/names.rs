//! The names of a job's processes: ranks belong to its first world; all others are guests, or replace a rank that
//! failed. In a job on several hosts the name of a process has its host and its PID.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use landeck_memory::SlotRecord;
use landeck_memory::membership::Replaced;
use landeck_wire::{ProcessId, SegmentId, Slot};
use serde::{Deserialize, Serialize};

use crate::forms::ReplacedForm;

/// The role of a process in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The member of the first world with this rank.
    Rank(u32),
    /// A process that replaces a failed one.
    Again(#[serde(with = "ReplacedForm")] Replaced),
    /// A process that was started while the job ran, with this number.
    Started(u32),
    /// A process that joined later, in this slot of its host.
    Guest(u32),
}

impl Role {
    /// The role of a slot's process, by the record of the slot, the rank of its first process and the number of ranks: those
    /// of started processes follow.
    pub(crate) fn of(slot: u32, record: &SlotRecord, rank: Option<u32>, ranks: u32) -> Self {
        match (record.replaces, rank) {
            (Some(Replaced { rank, number: 0 }), _) => Self::Started(rank.saturating_sub(ranks)),
            (Some(replaced), _) => Self::Again(replaced),
            // It may have left and come back.
            (None, Some(rank)) if record.tenancy() <= 1 => Self::Rank(rank),
            (None, _) => Self::Guest(slot),
        }
    }

    /// The name: `rank 3`, `guest 17`, `started 0`, `rank 3 again`.
    fn name(self) -> String {
        match self {
            Self::Rank(rank) => format!("rank {rank}"),
            Self::Started(number) => format!("started {number}"),
            Self::Guest(slot) => format!("guest {slot}"),
            Self::Again(Replaced { rank, number: 0 | 1 }) => format!("rank {rank} again"),
            Self::Again(Replaced { rank, number }) => format!("rank {rank} again ({number})"),
        }
    }
}

/// The names of a job's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    hosts: BTreeMap<SegmentId, HostNames>,
    known: HashMap<(SegmentId, Slot), (Role, u32)>,
}

/// The common part of the names of a host's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HostNames {
    /// The name of the host.
    name: String,
    /// Slots below this number are ranks on the only host, if nothing else is known of them.
    processes: u32,
}

impl Names {
    /// Adds a host. Two make the names longer.
    pub(crate) fn add_host(&mut self, host: SegmentId, name: &str, processes: u32) {
        self.hosts.insert(host, HostNames { name: name.to_owned(), processes });
    }

    /// Adds a process, if nothing is known of its slot.
    pub(crate) fn add(&mut self, process: ProcessId, role: Role, pid: u32) {
        self.known.entry((process.segment, process.slot)).or_insert((role, pid));
    }

    /// Whether the names say on which host each process is.
    pub fn span_hosts(&self) -> bool {
        self.hosts.len() > 1
    }

    /// The role of a process.
    pub fn role(&self, process: ProcessId) -> Role {
        let Slot(slot) = process.slot;
        let processes = self.hosts.get(&process.segment).map_or(0, |host| host.processes);
        let is_rank = !self.span_hosts() && slot < processes;
        let usual = if is_rank { Role::Rank(slot) } else { Role::Guest(slot) };
        self.known.get(&(process.segment, process.slot)).map_or(usual, |(role, _)| *role)
    }

    /// The name of a process without its host: `rank 3`.
    pub fn short(&self, process: ProcessId) -> String {
        self.role(process).name()
    }

    /// The name of a process's host.
    pub fn host(&self, process: ProcessId) -> &str {
        self.hosts.get(&process.segment).map_or("?", |host| &host.name)
    }

    /// The name of one process: `rank 3`, or `rank 3 on n2 (pid 411)` if the job has several hosts.
    pub fn one(&self, process: ProcessId) -> String {
        let name = self.short(process);
        if !self.span_hosts() {
            return name;
        }
        let host = self.host(process);
        match self.known.get(&(process.segment, process.slot)) {
            Some((_, pid)) if *pid != 0 => format!("{name} on {host} (pid {pid})"),
            _ => format!("{name} on {host}"),
        }
    }

    /// The names of processes, in their order, with ranges of neighbours: `ranks 0-3 7`. If the job has several hosts,
    /// those of each host stand together: `ranks 0-3 on n1 and rank 7 on n2 (pid 411)`.
    pub fn many(&self, processes: &[ProcessId]) -> String {
        if !self.span_hosts() {
            return self.of_one_host(processes);
        }
        let mut hosts: Vec<(SegmentId, Vec<ProcessId>)> = Vec::new();
        let mut processes = processes.to_vec();
        // Hosts have random identities, so the ranks say which comes first.
        processes.sort_by_key(|&process| match self.role(process) {
            Role::Rank(rank) => rank,
            _ => u32::MAX,
        });
        for process in &processes {
            match hosts.iter_mut().find(|(host, _)| *host == process.segment) {
                Some((_, all)) => all.push(*process),
                None => hosts.push((process.segment, vec![*process])),
            }
        }
        let part = |(_, all): &(SegmentId, Vec<ProcessId>)| match all[..] {
            [one] => self.one(one),
            _ => format!("{} on {}", self.of_one_host(all), self.host(all[0])),
        };
        let mut parts: Vec<String> = hosts.iter().take(NAMED_MAX).map(part).collect();
        let left: usize = hosts.iter().skip(NAMED_MAX).map(|(_, all)| all.len()).sum();
        if left > 0 {
            parts.push(format!("{left} more on other hosts"));
        }
        parts.join(" and ")
    }

    fn of_one_host(&self, processes: &[ProcessId]) -> String {
        let (mut ranks, mut guests, mut again) = (Vec::new(), Vec::new(), Vec::new());
        for &process in processes {
            match self.role(process) {
                Role::Rank(rank) => ranks.push(rank),
                Role::Guest(slot) => guests.push(slot),
                Role::Again(_) | Role::Started(_) => again.push(self.short(process)),
            }
        }
        let part = |word: &str, numbers: &[u32]| match numbers {
            [] => None,
            [one] => Some(format!("{word} {one}")),
            many => Some(format!("{word}s {}", ranges(many))),
        };
        let parts = part("rank", &ranks).into_iter().chain(again).chain(part("guest", &guests));
        parts.collect::<Vec<_>>().join(" and ")
    }
}

/// The number of names that a sentence lists; further ones are counted.
pub(crate) const NAMED_MAX: usize = 12;

/// Numbers in order, with ranges of neighbours.
fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |&(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first} {last}"),
        _ => format!("{first}-{last}"),
    };
    let mut text = runs.iter().take(NAMED_MAX).map(run).collect::<Vec<_>>().join(" ");
    if runs.len() > NAMED_MAX {
        let left: u32 = runs[NAMED_MAX..].iter().map(|(first, last)| last - first + 1).sum();
        let _ = write!(text, " and {left} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::Incarnation;

    fn at(host: u64, slot: u32) -> ProcessId {
        ProcessId { segment: SegmentId(host), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    fn here(slots: &[u32]) -> Vec<ProcessId> {
        slots.iter().map(|&slot| at(1, slot)).collect()
    }

    fn of(processes: u32) -> Names {
        let mut names = Names::default();
        names.add_host(SegmentId(1), "n1", processes);
        names
    }

    #[test]
    fn names_of_neighbours_are_joined() {
        assert_eq!(of(4).many(&here(&[3])), "rank 3");
        assert_eq!(of(4).many(&here(&[0, 1])), "ranks 0 1");
        assert_eq!(of(8).many(&here(&[0, 1, 2, 5])), "ranks 0-2 5");
        assert_eq!(of(4).many(&here(&[1, 4, 5])), "rank 1 and guests 4 5");
        let many: Vec<u32> = (0..40).map(|at| at * 2).collect();
        let text = of(80).many(&here(&many));
        assert!(text.ends_with(" 22 and 28 more"), "{text}");
    }

    #[test]
    fn a_process_in_the_slot_of_another_is_not_called_like_that_one() {
        let record =
            |incarnation, replaces| SlotRecord { incarnation, replaces, ..SlotRecord::default() };
        let again = |number| record(2, Some(Replaced { rank: 7, number }));
        let records = [record(1, None), record(2, None), again(1), again(3)];
        let mut names = of(3);
        for (slot, record) in (0..).zip(&records) {
            names.add(at(1, slot), Role::of(slot, record, (slot < 3).then_some(slot), 3), 9);
        }
        let each = [0, 1, 2, 3, 4].map(|slot| names.one(at(1, slot)));
        assert_eq!(each, ["rank 0", "guest 1", "rank 7 again", "rank 7 again (3)", "guest 4"]);
        assert_eq!(names.many(&here(&[0, 1, 2, 4])), "rank 0 and rank 7 again and guests 1 4");
        let returned = SlotRecord { returns: 1, ..record(2, None) };
        assert_eq!(Role::of(1, &returned, Some(1), 3), Role::Rank(1));
        let started = record(1, Some(Replaced { rank: 4, number: 0 }));
        names.add(at(1, 5), Role::of(5, &started, None, 3), 9);
        assert_eq!(names.many(&here(&[0, 5])), "rank 0 and started 1");
    }

    #[test]
    fn on_several_hosts_each_process_has_its_host() {
        let mut names = of(2);
        names.add_host(SegmentId(2), "n2", 2);
        let ranks = [(at(1, 0), 0, 40), (at(2, 0), 1, 41), (at(1, 1), 2, 42), (at(2, 1), 3, 0)];
        ranks.iter().for_each(|(process, rank, pid)| names.add(*process, Role::Rank(*rank), *pid));
        assert_eq!(names.one(at(2, 0)), "rank 1 on n2 (pid 41)");
        assert_eq!(names.one(at(2, 1)), "rank 3 on n2");
        assert_eq!(names.one(at(2, 7)), "guest 7 on n2");
        assert_eq!(names.one(at(9, 7)), "guest 7 on ?");
        let all = ranks.map(|(process, ..)| process);
        assert_eq!(names.many(&all), "ranks 0 2 on n1 and ranks 1 3 on n2");
        assert_eq!(names.many(&all[..2]), "rank 0 on n1 (pid 40) and rank 1 on n2 (pid 41)");
        assert_eq!((names.short(all[1]), names.host(all[1])), ("rank 1".to_owned(), "n2"));
    }
}
