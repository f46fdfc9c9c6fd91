//! The processes, groups and sizes that the papers measured. The figures of the first are lost;
//! its text names every number here but the steps between the smallest and the largest message.

use std::fmt;

use clap::ValueEnum;

use crate::candidate::Candidate;

/// One of the papers' measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Study {
    /// Erciyes, Dagdeviren, Payli 2005: broadcast against the size of the message
    Sizes,
    /// The paper of 2005: broadcast against the number of processes
    Processes,
    /// The paper on DECK's group service, 2000: broadcast and sync
    Service,
    /// Silva, Avila, Barreto, Navaux 2003: scatter and gather, reduce, barrier
    Collective,
    /// Davies, Matloff 1997: root finding, on several hosts
    Roots,
    /// Monteil, Garcia, Gauchard, Brun 1999: four deliveries of a message, on several hosts
    Deliveries,
}

/// Clusters in an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// The preset's name.
    pub(crate) architecture: &'static str,
    pub(crate) groups: u32,
}

/// A job to start, in every round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) study: Study,
    pub(crate) n: u32,
    /// The job's hosts; 0 for a job on this host alone.
    pub(crate) hosts: u32,
    /// The program, and the library that it runs with.
    pub(crate) program: Program,
    pub(crate) by: Candidate,
    pub(crate) figure: &'static str,
    /// The name of the way, where the program's forms are operations.
    pub(crate) way: &'static str,
    /// The preset for all operations of the job; the usual table, if none.
    pub(crate) preset: Option<&'static str>,
    /// The path of all messages between hosts; the usual one, if none.
    pub(crate) path: Option<&'static str>,
    /// The file of the machine in which the job runs, if it runs in one.
    pub(crate) machine: Option<&'static str>,
    pub(crate) arrangements: Vec<Arrangement>,
    pub(crate) sizes: Vec<u64>,
    /// Operations in a batch.
    pub(crate) iterations: u32,
}

/// A measuring program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// landeck-points.
    Points,
    /// bench/papers.c.
    Mpi,
    /// bench/deck.c.
    Deck,
}

/// Names the way that nobody has asked for.
pub(crate) const USUAL: &str = "landeck";
/// With which the sizes of messages are compared.
pub(crate) const FIXED_PROCESSES: u32 = 24;
/// With which the numbers of processes are compared.
pub(crate) const FIXED_BYTES: u64 = 4;
/// From 1 to 10,000 integers: "from 4 bytes to 40K bytes".
pub(crate) const SIZES: [u64; 5] = [4, 40, 400, 4_000, 40_000];
pub(crate) const PROCESSES: [u32; 4] = [24, 48, 96, 120];
pub(super) const SERVICE_REPEATS: u32 = 500;
pub(super) const COLLECTIVE_REPEATS: u32 = 100;
const DELIVERIES: u32 = 20;

impl Study {
    pub(crate) const ALL: [Study; 4] =
        [Study::Sizes, Study::Processes, Study::Service, Study::Collective];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Study::Sizes => "sizes",
            Study::Processes => "processes",
            Study::Service => "service",
            Study::Collective => "collective",
            Study::Roots => "roots",
            Study::Deliveries => "deliveries",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Study::Sizes => {
                "2005: broadcast to 24 processes, from the root's call to the last return"
            }
            Study::Processes => "2005: broadcast of 4 B, from the root's call to the last return",
            Study::Service => "2000: broadcast and sync",
            Study::Collective => "2003: scatter and gather, reduce, barrier",
            Study::Roots => "1997: root finding, a round",
            Study::Deliveries => "1999: four deliveries of a message",
        }
    }

    /// The jobs of one round; fewer numbers of processes in a quick one.
    pub(crate) fn launches(self, quick: bool) -> Vec<Launch> {
        match self {
            Study::Sizes => vec![deliveries(self, FIXED_PROCESSES, &SIZES)],
            Study::Processes => {
                PROCESSES.iter().map(|&n| deliveries(self, n, &[FIXED_BYTES])).collect()
            }
            Study::Service => repeated(self, &service_members(), &["deck2000"], SERVICE_REPEATS),
            Study::Collective => {
                let members = collective_members(quick);
                repeated(self, &members, &["deck2003", "mpi2003"], COLLECTIVE_REPEATS)
            }
            Study::Roots | Study::Deliveries => Vec::new(),
        }
    }
}

impl Launch {
    /// A job of one study on this host, over Landeck's own interface.
    pub(crate) fn of(study: Study) -> Launch {
        let figure = match study {
            Study::Sizes | Study::Processes => "delivery",
            repeated => repeated.name(),
        };
        Launch {
            study,
            n: 1,
            hosts: 0,
            program: Program::Points,
            by: Candidate::Landeck,
            figure,
            way: USUAL,
            preset: None,
            path: None,
            machine: None,
            arrangements: Vec::new(),
            sizes: Vec::new(),
            iterations: 1,
        }
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {} processes", self.by.name(), self.way, self.n)?;
        if self.hosts > 0 { write!(f, " on {} hosts", self.hosts) } else { Ok(()) }
    }
}

impl Arrangement {
    /// As the measuring program reads it and the results name it.
    pub(crate) fn way(self) -> String {
        format!("{}@{}", self.architecture, self.groups)
    }
}

/// The arrangements of the paper of 2005 with so many processes, for the sizes or for the processes.
pub(crate) fn arrangements(study: Study, n: u32) -> Vec<Arrangement> {
    let mut all: Vec<Arrangement> = ["pipeline", "daisy"]
        .into_iter()
        .flat_map(|architecture| (2..=8).map(move |groups| Arrangement { architecture, groups }))
        .collect();
    if study == Study::Sizes || n <= 96 {
        all.push(Arrangement { architecture: "hierarchy", groups: 7 });
    }
    let corners = match n {
        _ if study == Study::Sizes => &[8][..],
        48 => &[8, 16],
        96 => &[8, 16, 32],
        _ => &[8],
    };
    let cube = |&groups| Arrangement { architecture: "hypercube", groups };
    all.extend(corners.iter().map(cube));
    all
}

fn deliveries(study: Study, n: u32, sizes: &[u64]) -> Launch {
    let arrangements = arrangements(study, n);
    let sizes = sizes.to_vec();
    Launch { n, arrangements, sizes, iterations: DELIVERIES, ..Launch::of(study) }
}

fn repeated(
    study: Study,
    members: &[u32],
    presets: &[&'static str],
    iterations: u32,
) -> Vec<Launch> {
    let sizes = if study == Study::Service {
        (0..=15).map(|power| 1 << power).collect()
    } else {
        vec![100, 10_000]
    };
    let ways = || presets.iter().copied().map(Some).chain([None]);
    let launch = |n, preset: Option<&'static str>| Launch {
        n,
        preset,
        way: preset.unwrap_or(USUAL),
        sizes: sizes.clone(),
        iterations,
        ..Launch::of(study)
    };
    members
        .iter()
        .flat_map(|&n| ways().map(move |way| (n, way)))
        .map(|(n, way)| launch(n, way))
        .collect()
}

fn service_members() -> Vec<u32> {
    (2..=8).collect()
}

fn collective_members(quick: bool) -> Vec<u32> {
    (2..=20).step_by(if quick { 2 } else { 1 }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn groups(arrangements: &[Arrangement], architecture: &str) -> Vec<u32> {
        let of = arrangements.iter().filter(|one| one.architecture == architecture);
        of.map(|one| one.groups).collect()
    }

    #[test]
    fn sizes_are_those_of_2005() {
        let launches = Study::Sizes.launches(true);
        assert_eq!(launches.len(), 1);
        let launch = &launches[0];
        assert_eq!(
            (launch.n, launch.sizes.first(), launch.sizes.last()),
            (24, Some(&4), Some(&40_000))
        );
        assert_eq!(groups(&launch.arrangements, "pipeline"), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(groups(&launch.arrangements, "daisy"), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(groups(&launch.arrangements, "hierarchy"), [7]);
        assert_eq!(groups(&launch.arrangements, "hypercube"), [8]);
    }

    #[test]
    fn processes_are_those_of_2005() {
        let launches = Study::Processes.launches(false);
        let find = |n| launches.iter().find(|launch| launch.n == n).unwrap();
        assert_eq!(launches.iter().map(|launch| launch.n).collect::<Vec<_>>(), [24, 48, 96, 120]);
        assert!(launches.iter().all(|launch| launch.sizes == [4]));
        for launch in &launches {
            assert_eq!(groups(&launch.arrangements, "pipeline"), [2, 3, 4, 5, 6, 7, 8]);
        }
        let trees = [24, 48, 96, 120].map(|n| groups(&find(n).arrangements, "hierarchy").len());
        assert_eq!(trees, [1, 1, 1, 0]);
        let cubes = [24, 48, 96, 120].map(|n| groups(&find(n).arrangements, "hypercube"));
        assert_eq!(cubes, [vec![8], vec![8, 16], vec![8, 16, 32], vec![8]]);
    }

    #[test]
    fn the_service_is_that_of_2000() {
        let launches = Study::Service.launches(true);
        let members: BTreeSet<u32> = launches.iter().map(|launch| launch.n).collect();
        assert_eq!(members.into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8]);
        for launch in &launches {
            assert_eq!((launch.sizes[0], launch.sizes[15], launch.iterations), (1, 32_768, 500));
        }
        let presets: BTreeSet<_> = launches.iter().map(|launch| launch.preset).collect();
        assert_eq!(presets, BTreeSet::from([None, Some("deck2000")]));
    }

    #[test]
    fn the_collective_operations_are_those_of_2003() {
        let launches = Study::Collective.launches(false);
        let members: BTreeSet<u32> = launches.iter().map(|launch| launch.n).collect();
        assert_eq!(members, (2..=20).collect());
        assert!(launches.iter().all(|launch| launch.sizes == [100, 10_000]));
        assert!(launches.iter().all(|launch| launch.iterations == 100));
        let presets: BTreeSet<_> = launches.iter().map(|launch| launch.preset).collect();
        assert_eq!(presets, BTreeSet::from([None, Some("deck2003"), Some("mpi2003")]));
    }
}
