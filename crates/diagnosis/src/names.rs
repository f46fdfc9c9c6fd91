//! The names of a job's processes: ranks belong to its first world; all others are guests, or replace a rank that
//! failed.

use std::collections::HashMap;
use std::fmt::Write;

use landeck_memory::SlotRecord;
use landeck_memory::membership::Replaced;

/// The role of a process in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The member of the first world with this rank.
    Rank(u32),
    /// A process that replaces a failed one.
    Again(Replaced),
    /// A process that joined later, in this slot.
    Guest(u32),
}

/// The roles of a job's processes, by their slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    processes: u32,
    /// The roles that do not follow from the slot's number.
    others: HashMap<u32, Role>,
}

impl Names {
    /// Creates the roles of a job that began with so many processes, from the records of its slots.
    pub fn new<'a>(
        processes: u32,
        records: impl IntoIterator<Item = (u32, &'a SlotRecord)>,
    ) -> Self {
        let other = |(slot, record): (u32, &SlotRecord)| {
            let role = match record.replaces {
                Some(replaced) => Role::Again(replaced),
                None if slot < processes && record.incarnation > 1 => Role::Guest(slot),
                None => return None,
            };
            Some((slot, role))
        };
        Self { processes, others: records.into_iter().filter_map(other).collect() }
    }

    /// The role of the process of a slot.
    pub fn role(&self, slot: u32) -> Role {
        let usual = if slot < self.processes { Role::Rank(slot) } else { Role::Guest(slot) };
        self.others.get(&slot).copied().unwrap_or(usual)
    }

    /// The name of one process: `rank 3`, `guest 17`, `rank 3 again`.
    pub fn one(&self, slot: u32) -> String {
        match self.role(slot) {
            Role::Rank(rank) => format!("rank {rank}"),
            Role::Guest(slot) => format!("guest {slot}"),
            Role::Again(Replaced { rank, number: 0 | 1 }) => format!("rank {rank} again"),
            Role::Again(Replaced { rank, number }) => format!("rank {rank} again ({number})"),
        }
    }

    /// The names of processes, in the order of their slots, with ranges of neighbours: `ranks 0-3 7`.
    pub fn many(&self, slots: &[u32]) -> String {
        let (mut ranks, mut guests, mut again) = (Vec::new(), Vec::new(), Vec::new());
        for &slot in slots {
            match self.role(slot) {
                Role::Rank(rank) => ranks.push(rank),
                Role::Guest(slot) => guests.push(slot),
                Role::Again(_) => again.push(self.one(slot)),
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

    fn of(processes: u32) -> Names {
        Names::new(processes, [])
    }

    #[test]
    fn names_of_neighbours_are_joined() {
        assert_eq!(of(4).many(&[3]), "rank 3");
        assert_eq!(of(4).many(&[0, 1]), "ranks 0 1");
        assert_eq!(of(8).many(&[0, 1, 2, 5]), "ranks 0-2 5");
        assert_eq!(of(4).many(&[1, 4, 5]), "rank 1 and guests 4 5");
        let many: Vec<u32> = (0..40).map(|at| at * 2).collect();
        assert!(of(80).many(&many).ends_with(" 22 and 28 more"), "{}", of(80).many(&many));
    }

    #[test]
    fn who_has_the_slot_of_another_is_not_called_like_that() {
        let record =
            |incarnation, replaces| SlotRecord { incarnation, replaces, ..SlotRecord::default() };
        let again = |number| record(2, Some(Replaced { rank: 7, number }));
        let records = [record(1, None), record(2, None), again(1), again(3)];
        let names = Names::new(3, (0..).zip(&records));
        let each = [0, 1, 2, 3, 4].map(|slot| names.one(slot));
        assert_eq!(each, ["rank 0", "guest 1", "rank 7 again", "rank 7 again (3)", "guest 4"]);
        assert_eq!(names.many(&[0, 1, 2, 4]), "rank 0 and rank 7 again and guests 1 4");
    }
}
