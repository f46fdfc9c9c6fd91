//! The resolved form of a launch over several hosts: every process with its program, host and slot.
//!
//! Programs and directories are those of the launcher's host. The processors of the other hosts are known only once
//! their daemons have started.

use crate::budget::check_processes;
use crate::hosts_wish::HostsWish;
use crate::launch::{Launch, LaunchError};
use crate::plan::{PlannedProgram, count, resolve, with_arguments};
use landeck_machine::placement::processes_of;
use landeck_machine::{HostPlacement, HostRequest, RankPlace};
use std::path::PathBuf;

/// A resolved launch over several hosts.
#[derive(Debug, Clone)]
pub struct HostsPlan {
    /// The programs, in the order of their ranks. Files and directories are absolute paths.
    pub programs: Vec<PlannedProgram>,
    /// The hosts that have ranks.
    pub hosts: Vec<HostRequest>,
    /// The host and slot of each rank.
    pub placement: HostPlacement,
}

impl HostsPlan {
    /// Resolves a launch on these hosts.
    ///
    /// # Errors
    /// If a program or a directory does not exist, or the processes do not fit on the hosts.
    pub fn new(launch: &Launch, wish: &HostsWish) -> Result<HostsPlan, LaunchError> {
        let asked: Vec<Option<u32>> =
            launch.programs.iter().map(|program| program.processes).collect();
        let numbers = processes_of(&asked, &wish.list, wish.per_host)?;
        let ranks = numbers.iter().sum();
        let placement = HostPlacement::new(&wish.list, wish.map_by, wish.per_host, ranks)?;
        let (placement, hosts) = placement.without_idle(&wish.list);
        for &processes in placement.counts() {
            check_processes(processes.into())?;
        }
        let mut programs = Vec::with_capacity(numbers.len());
        for (program, processes) in launch.programs.iter().zip(numbers) {
            let mut planned = resolve(program, processes)?;
            planned.processes = processes;
            planned.file = absolute(planned.file)?;
            planned.directory = absolute(planned.directory)?;
            programs.push(planned);
        }
        Ok(HostsPlan { programs, hosts, placement })
    }

    /// The number of processes.
    pub fn processes(&self) -> u32 {
        self.placement.ranks()
    }

    /// Every rank with its place and its program, in order.
    pub fn ranks(&self) -> impl Iterator<Item = (u32, RankPlace, &PlannedProgram)> {
        let each = self.programs.iter();
        let programs = each.flat_map(|program| (0..program.processes).map(move |_| program));
        let places = self.placement.places().iter().copied();
        (0..).zip(places.zip(programs)).map(|(rank, (place, program))| (rank, place, program))
    }

    /// A description of what would be started where.
    pub fn text(&self) -> String {
        let hosts = self.hosts.len();
        let plural = if hosts == 1 { "" } else { "s" };
        let mut text = format!("{} on {hosts} host{plural}. ", count(self.processes()));
        text += "Nothing was connected: cores and bindings are not known yet.\n";
        for (rank, place, program) in self.ranks() {
            let (host, directory) = (&self.hosts[place.host].name, program.directory.display());
            text += &format!("rank {rank}: host {host}, slot {}, in {directory}: ", place.slot);
            text += &with_arguments(program);
            text.push('\n');
        }
        if let Some(note) = self.placement.note(&self.hosts) {
            text += &format!("Note: {note}.\n");
        }
        text
    }
}

/// An absolute path, since the daemons of other hosts start in another directory.
fn absolute(path: PathBuf) -> Result<PathBuf, LaunchError> {
    std::path::absolute(&path).map_err(|source| LaunchError::Directory { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Program;
    use landeck_machine::RanksBy;
    use landeck_machine::host_list::{from_file, from_words};

    fn launch(programs: &[(&str, Option<u32>)]) -> Launch {
        let program = |(name, processes): &(&str, Option<u32>)| Program {
            processes: *processes,
            arguments: vec!["it's".into()],
            ..Program::new(*name)
        };
        Launch::new(programs.iter().map(program).collect())
    }

    fn wish(hosts: &str) -> HostsWish {
        HostsWish::new(from_words(hosts).unwrap())
    }

    #[test]
    fn ranks_of_several_programs_go_over_one_list() {
        let wish = HostsWish { map_by: RanksBy::Node, ..wish("a:2,b") };
        let plan = HostsPlan::new(&launch(&[("sh", Some(2)), ("true", None)]), &wish).unwrap();
        let ranks: Vec<_> = plan
            .ranks()
            .map(|(rank, place, program)| {
                let name = program.arguments[0].to_str().unwrap();
                (rank, plan.hosts[place.host].name.as_str(), place.slot, name)
            })
            .collect();
        assert_eq!(ranks, [(0, "a", 0, "sh"), (1, "b", 0, "sh"), (2, "a", 1, "true")]);
        assert!(plan.programs.iter().all(|program| program.directory.is_absolute()));
    }

    #[test]
    fn hosts_without_a_rank_take_no_part() {
        let mut wish = HostsWish::new(from_file("a max_slots=1\nb\nc:2\nd").unwrap());
        wish.list[1].max_slots = Some(0);
        let plan = HostsPlan::new(&launch(&[("true", Some(3))]), &wish).unwrap();
        let names: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!((names, plan.placement.counts()), (vec!["a", "c"], &[1, 2][..]));
        let places: Vec<_> = plan.ranks().map(|(_, place, _)| (place.host, place.slot)).collect();
        assert_eq!(places, [(0, 0), (1, 0), (1, 1)]);
    }

    #[test]
    fn the_plan_can_be_read() {
        let text = HostsPlan::new(&launch(&[("sh", None)]), &wish("a:2,b")).unwrap().text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("3 processes on 2 hosts. Nothing was connected: "), "{text}");
        assert!(lines[1].starts_with("rank 0: host a, slot 0, in /"), "{text}");
        assert!(lines[3].starts_with("rank 2: host b, slot 0, in /"), "{text}");
        assert!(lines[3].ends_with(r"/sh 'it'\''s'"), "{text}");
        assert_eq!(lines.len(), 4);
        let text = HostsPlan::new(&launch(&[("sh", Some(4))]), &wish("a:2,b")).unwrap().text();
        assert!(text.ends_with("Note: oversubscribed: a (3 processes, 2 slots).\n"), "{text}");
    }

    #[test]
    fn mistakes_are_found_before_anything_is_connected() {
        let refused = |launch: &Launch, wish: &HostsWish| HostsPlan::new(launch, wish).unwrap_err();
        let error = refused(&launch(&[("no-such-program", None)]), &wish("a,b"));
        assert_eq!(error.exit_code(), 127);
        let limited = HostsWish::new(from_file("a max_slots=1\nb max_slots=1").unwrap());
        let error = refused(&launch(&[("sh", Some(3))]), &limited);
        assert!(error.to_string().contains("max_slots permits 2 in all"), "{error}");
        let error = refused(&launch(&[("sh", None)]), &wish("a:65535,b"));
        assert!(error.to_string().contains("16,368 processes on one host, not 65,535"), "{error}");
    }
}
