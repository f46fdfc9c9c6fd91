//! The processes, hosts and sizes that are measured on several hosts.

use super::deliveries;
use crate::candidate::Candidate;
use crate::papers::grid::{
    Arrangement, COLLECTIVE_REPEATS, FIXED_PROCESSES, Launch, Program, SERVICE_REPEATS, SIZES,
    Study, USUAL,
};
use crate::papers::measure::{MPI, SERVER_OF_ITS_OWN};

/// The bytes of a broadcast beside which others join.
const LONG_BYTES: u64 = 64 << 20;
/// Fewer bytes, for a quick run.
const QUICK_LONG_BYTES: u64 = 8 << 20;

/// Figures of named groups that a run with another number of processes leaves out: they have tests of their own.
const NAMED_GROUPS: [&str; 3] = ["service_served", "service_group", "service_joins"];

/// The selection of jobs: their hosts, processes and libraries.
#[derive(Debug)]
pub(super) struct Grid {
    /// At most so many hosts.
    pub(super) hosts: u32,
    pub(super) is_quick: bool,
    /// Instead of the paper's numbers.
    pub(super) processes: Option<u32>,
    /// Those who run bench/papers.c.
    pub(super) libraries: Vec<Candidate>,
}

impl Grid {
    /// The jobs of one round.
    pub(super) fn launches(&self, study: Study) -> Vec<Launch> {
        match study {
            Study::Sizes => self.deliveries(),
            Study::Service => self.services(),
            Study::Collective => self.collectives(),
            Study::Roots => self.roots(),
            Study::Deliveries => deliveries::launches(),
            Study::Processes => Vec::new(),
        }
    }

    /// Numbers of hosts that there are; the greatest possible one stands for greater ones.
    fn hosts_of(&self, all: &[u32]) -> Vec<u32> {
        let mut hosts: Vec<u32> = all.iter().map(|&hosts| hosts.min(self.hosts)).collect();
        hosts.dedup();
        hosts
    }

    /// A job, and the same of each library with bench/papers.c.
    fn with_libraries(&self, own: Vec<Launch>, mpi: &Launch) -> Vec<Launch> {
        let of = |&by: &Candidate| Launch { by, program: Program::Mpi, way: MPI, ..mpi.clone() };
        own.into_iter().chain(self.libraries.iter().map(of)).collect()
    }

    fn deliveries(&self) -> Vec<Launch> {
        let hosts = self.hosts_of(&[2, 4, 8]);
        let processes = match self.processes {
            Some(n) => vec![n],
            None if self.is_quick => vec![FIXED_PROCESSES],
            None => vec![FIXED_PROCESSES, 48],
        };
        let sizes = if self.is_quick { vec![SIZES[0], SIZES[4]] } else { SIZES.to_vec() };
        let launch = |hosts: u32, n: u32| Launch {
            n,
            hosts,
            arrangements: arrangements(n, hosts),
            sizes: sizes.clone(),
            iterations: if self.is_quick { 5 } else { 10 },
            ..Launch::of(Study::Sizes)
        };
        let cases = hosts.iter().flat_map(|&hosts| processes.iter().map(move |&n| (hosts, n)));
        cases
            .flat_map(|(hosts, n)| {
                let own = launch(hosts, n);
                self.with_libraries(vec![own.clone()], &own)
            })
            .collect()
    }

    fn services(&self) -> Vec<Launch> {
        let sizes: Vec<u64> = match self.is_quick {
            true => vec![1, 1 << 10, 32 << 10],
            false => (0..=15).map(|power| 1 << power).collect(),
        };
        let long = if self.is_quick { QUICK_LONG_BYTES } else { LONG_BYTES };
        let launch = |n, figure, way| Launch {
            n,
            hosts: n,
            figure,
            way,
            sizes: sizes.clone(),
            iterations: if self.is_quick { 20 } else { SERVICE_REPEATS },
            ..Launch::of(Study::Service)
        };
        let of = |n| {
            let usual = launch(n, "service", USUAL);
            let calls = Launch { sizes: vec![1_000], ..launch(n, "service_calls", "calls") };
            let joins = Launch { sizes: vec![long], ..launch(n, "service_joins", "joins") };
            let mut own = vec![
                launch(n, SERVER_OF_ITS_OWN, "paper"),
                launch(n, "service_served", "served"),
                launch(n, "service_group", "group"),
                usual.clone(),
                calls,
                joins,
            ];
            if self.processes.is_some() {
                own.retain(|launch| !NAMED_GROUPS.contains(&launch.figure));
            }
            self.with_libraries(own, &usual)
        };
        self.hosts_of(&[2, 3, 4]).into_iter().flat_map(of).collect()
    }

    fn collectives(&self) -> Vec<Launch> {
        let members: &[u32] = if self.is_quick { &[2, 8, 20] } else { &[2, 4, 6, 8, 12, 16, 20] };
        let launch = |n, preset: Option<&'static str>| Launch {
            n,
            hosts: n,
            preset,
            way: preset.unwrap_or(USUAL),
            sizes: vec![100, 10_000],
            iterations: if self.is_quick { 20 } else { COLLECTIVE_REPEATS },
            ..Launch::of(Study::Collective)
        };
        let of = |n| {
            let presets = [Some("deck2003"), Some("mpi2003"), None];
            let own = presets.map(|preset| launch(n, preset));
            self.with_libraries(own.to_vec(), &launch(n, None))
        };
        self.hosts_of(members).into_iter().flat_map(of).collect()
    }

    /// Cubes that are complete, and others.
    fn roots(&self) -> Vec<Launch> {
        let members: &[u32] = if self.is_quick { &[2, 3, 5] } else { &[2, 3, 4, 5, 6, 7, 8] };
        let of = |n| {
            let iterations = if self.is_quick { 3 } else { 20 };
            let own = Launch { n, hosts: n, iterations, ..Launch::of(Study::Roots) };
            let deck = Launch { program: Program::Deck, way: "deck", ..own.clone() };
            self.with_libraries(vec![own.clone(), deck], &own)
        };
        self.hosts_of(members).into_iter().flat_map(of).collect()
    }
}

/// The architectures of the paper in its best groups, and with a group for each host.
fn arrangements(n: u32, hosts: u32) -> Vec<Arrangement> {
    let of = |architecture, groups: u32| Arrangement { architecture, groups: groups.min(n) };
    let mut all = Vec::new();
    for architecture in ["pipeline", "daisy"] {
        all.push(of(architecture, hosts));
        if hosts < 8 {
            all.push(of(architecture, 8));
        }
    }
    all.extend([of("hierarchy", 7), of("hypercube", 8)]);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn grid(hosts: u32) -> Grid {
        let libraries = vec![Candidate::LandeckMpi, Candidate::OpenMpi];
        Grid { hosts, is_quick: false, processes: None, libraries }
    }

    fn hosts_of(launches: &[Launch]) -> Vec<u32> {
        let all: BTreeSet<u32> = launches.iter().map(|launch| launch.hosts).collect();
        all.into_iter().collect()
    }

    #[test]
    fn the_papers_hosts_are_measured_as_far_as_there_are_some() {
        assert_eq!(hosts_of(&grid(20).launches(Study::Service)), [2, 3, 4]);
        assert_eq!(hosts_of(&grid(20).launches(Study::Sizes)), [2, 4, 8]);
        assert_eq!(hosts_of(&grid(20).launches(Study::Collective)), [2, 4, 6, 8, 12, 16, 20]);
        assert_eq!(hosts_of(&grid(3).launches(Study::Collective)), [2, 3]);
        assert_eq!(hosts_of(&grid(2).launches(Study::Sizes)), [2]);
    }

    #[test]
    fn every_library_is_measured_beside_ours() {
        for study in [Study::Service, Study::Sizes, Study::Collective, Study::Roots] {
            let launches = grid(8).launches(study);
            let mpi = launches.iter().filter(|launch| launch.program == Program::Mpi);
            let by: BTreeSet<&str> = mpi.map(|launch| launch.by.name()).collect();
            assert_eq!(by, BTreeSet::from(["landeck-mpi", "ompi"]), "{study:?}");
        }
        let sizes = grid(8).launches(Study::Sizes);
        let processes: BTreeSet<u32> = sizes.iter().map(|launch| launch.n).collect();
        assert_eq!(processes, BTreeSet::from([24, 48]));
    }
}
