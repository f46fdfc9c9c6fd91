//! The studies as tables on a terminal.

use std::fmt::Write;

use crate::papers::counts::Counts;
use crate::papers::grid::{PROCESSES, Study, USUAL};
use crate::papers::paper2005::{
    COMMON_PROCESSES_MAX, TABLE_1, at, best_over_processes, best_over_sizes,
};
use crate::papers::values::{ValuePlace, Values};
use crate::sample::size_label;
use crate::statistics::short;

/// The sizes that the table of the service shows; its results have them all.
pub(super) const SERVICE_SIZES: [u64; 6] = [1, 64, 1 << 10, 2 << 10, 8 << 10, 32 << 10];

/// The tables of one study.
pub(crate) fn study(values: &Values) -> String {
    let mut text = head(values, "");
    match values.study {
        Study::Sizes => sizes(&mut text, values),
        Study::Processes => processes(&mut text, values),
        Study::Service => service(&mut text, values),
        Study::Collective => collective(&mut text, values),
        Study::Roots | Study::Deliveries => {}
    }
    text + &troubles(values)
}

/// The title, and whether others disturbed the measurement.
pub(super) fn head(values: &Values, places: &str) -> String {
    let mut text = format!("\n{}{places} (microseconds)\n", values.title);
    if values.disturbed_share() > 0.0 {
        let percent = short((100.0 * values.disturbed_share()).ceil());
        let _ = writeln!(text, "  Others used the processors during {percent} % of the launches.");
    }
    text
}

/// A line for each launch that did not end well.
pub(super) fn troubles(values: &Values) -> String {
    values.troubles.iter().map(|trouble| format!("  {trouble}\n")).collect()
}

/// Table 1 of the paper of 2005, and the same of this machine.
pub(crate) fn table_1(sizes: &Values, processes: &Values) -> String {
    let mut text = format!(
        "\n2005: Table 1, its columns under the right headings, and the same here (microseconds)\n  \
         {:<13}{:>30}   {:>30}\n  {:<13}{:>8}{:>10}{:>12}   {:>8}{:>10}{:>12}\n",
        "",
        "mean over the sizes, n = 24",
        "mean over 24, 48, 96 processes",
        "",
        "paper",
        "here",
        "groups",
        "paper",
        "here",
        "groups"
    );
    for row in TABLE_1 {
        let _ = write!(text, "  {:<13}", row.title);
        let columns = [
            (row.sizes_us, best_over_sizes(sizes, row.architecture)),
            (row.processes_us, best_over_processes(processes, row.architecture)),
        ];
        for (paper_us, here) in columns {
            let (way, us) =
                here.map_or((String::new(), String::new()), |(way, us)| (way, short(us)));
            let groups = way.split_once('@').map_or("", |(_, groups)| groups);
            let _ = write!(text, "{:>8}{us:>10}{groups:>12}   ", short(paper_us));
        }
        end_line(&mut text);
    }
    growth(&mut text, processes);
    text
}

/// Whether there is a jump where the paper has one.
fn growth(text: &mut String, processes: &Values) {
    let _ = writeln!(
        text,
        "\n2005: how a broadcast of 4 B grows with the processes\n  {:<13}{:>8}{:>12}{:>12}",
        "", "groups", "24 to 48", "48 to 96"
    );
    let best = TABLE_1.iter().filter_map(|row| best_over_processes(processes, row.architecture));
    for way in best.map(|(way, _)| way).chain([USUAL.to_owned()]) {
        let (name, groups) = way.split_once('@').unwrap_or((&way, ""));
        let _ = write!(text, "  {name:<13}{groups:>8}");
        for (from, to) in [(24, 48), (48, COMMON_PROCESSES_MAX)] {
            let us = |n| processes.median_us(&at(&way, n));
            let factor = us(from).zip(us(to)).map(|(from, to)| format!("x {:.2}", to / from));
            let _ = write!(text, "{:>12}", factor.unwrap_or_default());
        }
        end_line(text);
    }
}

fn sizes(text: &mut String, values: &Values) {
    let _ = write!(text, "  {:<14}{:>6}{:>9}{:>7}", "", "groups", "messages", "steps");
    for &bytes in &values.sizes() {
        let _ = write!(text, "{:>11}", decimal_label(bytes));
    }
    let _ = writeln!(text, "{:>11}", "mean");
    let n = values.processes().first().copied().unwrap_or(0);
    for way in values.ways() {
        let place = |bytes| ValuePlace { bytes, ..at(way, n) };
        begin_way(text, way);
        write_counts(text, values.sizes().first().and_then(|&bytes| values.counts(&place(bytes))));
        for &bytes in &values.sizes() {
            write_us(text, values.median_us(&place(bytes)), 11);
        }
        write_us(text, values.mean_us(way), 11);
        end_line(text);
    }
}

fn processes(text: &mut String, values: &Values) {
    let _ = write!(text, "  {:<14}{:>6}", "", "groups");
    for n in PROCESSES {
        let _ = write!(text, "{:>12}{:>7}", format!("n = {n}"), "steps");
    }
    end_line(text);
    for way in values.ways() {
        begin_way(text, way);
        for n in PROCESSES {
            let place = at(way, n);
            write_us(text, values.median_us(&place), 12);
            let steps = values.counts(&place).map(|counts| counts.steps.to_string());
            let _ = write!(text, "{:>7}", steps.unwrap_or_default());
        }
        end_line(text);
    }
    text.push_str("  Each of them sends one message to everybody but the root: n - 1.\n");
}

fn service(text: &mut String, values: &Values) {
    let _ = write!(text, "  {:<8}{:<12}{:>9}{:>7}", "members", "", "messages", "steps");
    for bytes in SERVICE_SIZES {
        let _ = write!(text, "{:>10}", size_label(bytes));
    }
    end_line(text);
    for n in values.processes() {
        for way in values.ways() {
            let place = |bytes| ValuePlace::here("broadcast-sync", way, n, bytes);
            let _ = write!(text, "  {n:<8}{way:<12}");
            write_counts(text, values.counts(&place(1)));
            for bytes in SERVICE_SIZES {
                write_us(text, values.median_us(&place(bytes)), 10);
            }
            end_line(text);
        }
    }
}

fn collective(text: &mut String, values: &Values) {
    for (operation, bytes) in operations(values) {
        let title = collective_title(&operation, bytes);
        let _ = write!(text, "\n  {title}\n  {:<8}", "members");
        for way in values.ways() {
            let has_counts = way != USUAL;
            let heads = if has_counts { ["messages", "steps"] } else { ["", ""] };
            let _ = write!(text, "{way:>11}{:>9}{:>7}", heads[0], heads[1]);
        }
        end_line(text);
        for n in values.processes() {
            let _ = write!(text, "  {n:<8}");
            for way in values.ways() {
                let place = ValuePlace::here(&operation, way, n, bytes);
                write_us(text, values.median_us(&place), 11);
                write_counts(text, values.counts(&place));
            }
            end_line(text);
        }
    }
}

/// The operations of a study with their sizes.
pub(crate) fn operations(values: &Values) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for place in values.places() {
        let one = (place.operation.clone(), place.bytes);
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// An operation and its size in words.
pub(crate) fn collective_title(operation: &str, bytes: u64) -> String {
    let words = match operation {
        "scatter-gather" => "scatter, then gather",
        other => other,
    };
    if bytes == 0 { words.to_owned() } else { format!("{words}, {}", decimal_label(bytes)) }
}

/// The papers count bytes by tens.
pub(crate) fn decimal_label(bytes: u64) -> String {
    format!("{} B", short(bytes as f64))
}

pub(super) fn begin_way(text: &mut String, way: &str) {
    let (name, groups) = way.split_once('@').unwrap_or((way, ""));
    let _ = write!(text, "  {name:<14}{groups:>6}");
}

pub(super) fn write_counts(text: &mut String, counts: Option<Counts>) {
    let words = counts.map(|counts| (counts.messages.to_string(), counts.steps.to_string()));
    let (messages, steps) = words.unwrap_or_default();
    let _ = write!(text, "{messages:>9}{steps:>7}");
}

pub(super) fn write_us(text: &mut String, us: Option<f64>, width: usize) {
    let _ = write!(text, "{:>width$}", us.map(short).unwrap_or_default());
}

pub(super) fn end_line(text: &mut String) {
    let end = text.trim_end_matches(' ').len();
    text.truncate(end);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::values::tests::values;

    #[test]
    fn table_1_has_the_paper_beside_this_machine() {
        let sizes =
            values(Study::Sizes, &[("daisy@2", 24, 4, 30.0, 0.0), ("daisy@8", 24, 4, 20.0, 0.0)]);
        let processes = values(
            Study::Processes,
            &[
                ("daisy@8", 24, 4, 20.0, 0.0),
                ("daisy@8", 48, 4, 40.0, 0.0),
                ("daisy@8", 96, 4, 120.0, 0.0),
            ],
        );
        let text = table_1(&sizes, &processes);
        let daisy: Vec<&str> =
            text.lines().find(|line| line.contains("338")).unwrap().split_whitespace().collect();
        assert_eq!(daisy, ["daisy", "338", "20", "8", "1,429", "60", "8"]);
        assert!(text.contains("x 2.00      x 3.00"), "{text}");
    }
}
