//! The numbers of the paper of 2005, and those of this machine: its Table 1, whose two
//! columns of times stand under each other's headings (the text gives those of 24 processes).

use crate::papers::grid::PROCESSES;
use crate::papers::values::{ValuePlace, Values};
use crate::statistics::mean;

/// A row of Table 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The preset.
    pub(crate) architecture: &'static str,
    pub(crate) title: &'static str,
    /// Mean over the sizes of messages, 24 processes. Table 1 has it under "fixed message size".
    pub(crate) sizes_us: f64,
    /// Mean over the numbers of processes, 4 B. Table 1 has it under "fixed processors".
    pub(crate) processes_us: f64,
}

/// Table 1, with its columns where the text puts them.
pub(crate) const TABLE_1: [Row; 4] = [
    row("pipeline", "pipeline", 806.0, 1_776.0),
    row("daisy", "daisy", 338.0, 1_429.0),
    row("hierarchy", "binary tree", 1_625.0, 4_610.0),
    row("hypercube", "hypercube", 1_168.0, 1_888.0),
];

/// With so many processes every architecture was measured.
pub(crate) const COMMON_PROCESSES_MAX: u32 = 96;

const fn row(
    architecture: &'static str,
    title: &'static str,
    sizes_us: f64,
    processes_us: f64,
) -> Row {
    Row { architecture, title, sizes_us, processes_us }
}

/// Returns the number of groups with the least mean over all sizes, and that mean.
pub(crate) fn best_over_sizes(sizes: &Values, architecture: &str) -> Option<(String, f64)> {
    let mean_of = |way: &str| sizes.mean_us(way);
    best(sizes, architecture, mean_of)
}

/// Returns the number of groups with the least mean over the numbers of processes with which all architectures were
/// measured, and that mean. Only groups count that were measured with all of them.
pub(crate) fn best_over_processes(values: &Values, architecture: &str) -> Option<(String, f64)> {
    let mean_of = |way: &str| {
        let all = PROCESSES.iter().filter(|&&n| n <= COMMON_PROCESSES_MAX);
        let us: Option<Vec<f64>> = all.map(|&n| values.median_us(&at(way, n))).collect();
        mean(&us?)
    };
    best(values, architecture, mean_of)
}

/// A broadcast of 4 B.
pub(crate) fn at(way: &str, n: u32) -> ValuePlace {
    let bytes = crate::papers::grid::FIXED_BYTES;
    ValuePlace::here("broadcast", way, n, bytes)
}

/// Whether the way is this architecture in some number of groups.
pub(crate) fn is_of(way: &str, architecture: &str) -> bool {
    way.split_once('@').is_some_and(|(preset, _)| preset == architecture)
}

fn best(
    values: &Values,
    architecture: &str,
    mean_of: impl Fn(&str) -> Option<f64>,
) -> Option<(String, f64)> {
    let ways = values.ways().into_iter().filter(|way| is_of(way, architecture));
    let means = ways.filter_map(|way| Some((way.to_owned(), mean_of(way)?)));
    means.min_by(|one, other| one.1.total_cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::grid::Study;
    use crate::papers::values::tests::values;

    #[test]
    fn the_daisy_is_the_fastest_of_both_columns_and_the_tree_the_slowest() {
        let columns: [fn(&Row) -> f64; 2] = [|row| row.sizes_us, |row| row.processes_us];
        for column in columns {
            let mut ranking = TABLE_1;
            ranking.sort_by(|one, other| column(one).total_cmp(&column(other)));
            let names = ranking.map(|row| row.architecture);
            assert_eq!(names, ["daisy", "pipeline", "hypercube", "hierarchy"]);
        }
    }

    #[test]
    fn the_best_number_of_groups_has_the_least_mean() {
        let all = values(
            Study::Processes,
            &[
                ("daisy@2", 24, 4, 9.0, 0.0),
                ("daisy@2", 48, 4, 9.0, 0.0),
                ("daisy@2", 96, 4, 9.0, 0.0),
                ("daisy@8", 24, 4, 5.0, 0.0),
                ("daisy@8", 48, 4, 5.0, 0.0),
                ("daisy@8", 96, 4, 8.0, 0.0),
                ("daisy@16", 48, 4, 1.0, 0.0),
            ],
        );
        assert_eq!(best_over_processes(&all, "daisy"), Some(("daisy@8".to_owned(), 6.0)));
        assert_eq!(best_over_processes(&all, "pipeline"), None);
    }
}
