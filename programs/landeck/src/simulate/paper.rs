//! The grid of the paper of 2005: Erciyes, Dagdeviren, Payli, "Performance Evaluation of Group
//! Communication Architectures in Large Scale Systems using MPI".
//!
//! Its figures are lost; the text says what they showed. The sizes between 4 B and 40,000 B are ours.

use landeck_collectives::Preset;

use super::study::{Along, Series, Study};
use super::table;

/// Sizes of figures 2, 5, 8, 11 and 13, in bytes.
const SIZES: [u64; 5] = [4, 40, 400, 4_000, 40_000];
/// Processes in those figures.
const PROCESSES: u32 = 24;
/// Bytes in figures 3, 6, 9, 12 and 14.
const BYTES: u64 = 4;

/// An architecture of the paper: its name there and here, its numbers of groups, and the numbers of processes with
/// each.
struct Measured {
    name: &'static str,
    preset: &'static str,
    /// The groups of the figure along the sizes.
    groups: &'static [u32],
    figure: u32,
    /// The groups and processes of the next figure.
    grid: &'static [(u32, &'static [u64])],
    /// Table 1, in the columns of the text: over the sizes, and over the processes.
    table_us: [f64; 2],
    /// The number of groups that Table 1 uses, as far as the text says so.
    best: u32,
}

const ALL: &[u64] = &[24, 48, 96, 120];

const PAPER: [Measured; 4] = [
    Measured {
        name: "pipeline",
        preset: "pipeline",
        groups: &[2, 3, 4, 5, 6, 7, 8],
        figure: 2,
        grid: &[(2, ALL), (3, ALL), (4, ALL), (5, ALL), (6, ALL), (7, ALL), (8, ALL)],
        table_us: [806.0, 1776.0],
        best: 8,
    },
    Measured {
        name: "daisy",
        preset: "daisy",
        groups: &[2, 3, 4, 5, 6, 7, 8],
        figure: 5,
        grid: &[(2, ALL), (3, ALL), (4, ALL), (5, ALL), (6, ALL), (7, ALL), (8, ALL)],
        table_us: [338.0, 1429.0],
        best: 8,
    },
    Measured {
        name: "binary tree of groups",
        preset: "hierarchy",
        groups: &[7],
        figure: 8,
        grid: &[(7, &[24, 48, 96])],
        table_us: [1625.0, 4610.0],
        best: 7,
    },
    Measured {
        name: "hypercube",
        preset: "hypercube",
        groups: &[8],
        figure: 11,
        grid: &[(8, ALL), (16, &[48, 96]), (32, &[96])],
        table_us: [1168.0, 1888.0],
        best: 8,
    },
];

/// The figures of the paper, in its order: two of each architecture, and two that compare them.
pub(super) fn studies() -> Vec<Study> {
    let mut studies: Vec<Study> = PAPER.iter().flat_map(Measured::studies).collect();
    let best: Vec<Series> =
        PAPER.iter().filter_map(|measured| measured.series(measured.best)).collect();
    let along = Along::Sizes(PROCESSES);
    let title = "Figure 13: the architectures against the size, 24 processes";
    studies.push(Study::new(title.into(), along, best.clone(), SIZES.to_vec()));
    let along = Along::Processes(BYTES);
    let title = "Figure 14: the architectures against the processes, 4 B";
    studies.push(Study::new(title.into(), along, best, ALL.to_vec()));
    studies
}

/// Table 1 of the paper, beside the means of the last two of these studies.
pub(super) fn table1(studies: &[Study]) -> String {
    let [.., sizes, processes] = studies else { return String::new() };
    let mut text = String::from(
        "Table 1, microseconds: the mean over the sizes with 24 processes, and over 24 to 96 processes \
         with 4 B\n",
    );
    let columns = ["", "paper", "here", "paper", "here"];
    let row = |cells: [&str; 5]| {
        let [name, rest @ ..] = cells;
        let rest: String = rest.iter().map(|cell| format!("{cell:>10}")).collect();
        format!("  {name:<22}{rest}\n")
    };
    text.push_str(&row(columns));
    for (number, measured) in PAPER.iter().enumerate() {
        let [over_sizes, over_processes] = measured.table_us.map(table::short);
        let mean = |study: &Study| study.mean_us(number).map_or("-".into(), table::short);
        let up_to_96 = processes
            .times_us
            .get(number)
            .map_or(0.0, |times| times.iter().take(3).flatten().sum::<f64>() / 3.0);
        let cells =
            [measured.name, &over_sizes, &mean(sizes), &over_processes, &table::short(up_to_96)];
        text.push_str(&row(cells));
    }
    text
}

impl Measured {
    fn series(&self, groups: u32) -> Option<Series> {
        Some(Series::new(self.preset.parse::<Preset>().ok()?, Some(groups)))
    }

    fn studies(&self) -> [Study; 2] {
        let series = self.groups.iter().filter_map(|&groups| self.series(groups)).collect();
        let title =
            format!("Figure {}: the {} against the size, 24 processes", self.figure, self.name);
        let sizes = Study::new(title, Along::Sizes(PROCESSES), series, SIZES.to_vec());
        let series = self.grid.iter().filter_map(|(groups, _)| self.series(*groups)).collect();
        let title =
            format!("Figure {}: the {} against the processes, 4 B", self.figure + 1, self.name);
        [sizes, Study::new(title, Along::Processes(BYTES), series, ALL.to_vec())]
    }
}
