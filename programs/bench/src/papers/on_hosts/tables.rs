//! The studies on several hosts as tables on a terminal.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::counts::Count;
use super::deliveries;
use crate::papers::grid::{FIXED_PROCESSES, Study, USUAL};
use crate::papers::measure::MPI;
use crate::papers::paper2005::TABLE_1;
use crate::papers::tables::{
    SERVICE_SIZES, collective_title, decimal_label, end_line, head, operations, troubles, write_us,
};
use crate::papers::values::{ValuePlace, Values};
use crate::sample::size_label;
use crate::statistics::{mean, short};

/// The calls of the paper of 2000.
const CALLS: [&str; 5] = ["join", "broadcast", "sync", "leave", "destroy"];

/// The tables of one study, and whether its counts are right.
pub(super) fn study(values: &Values, counts: &[Count]) -> String {
    let mut text = head(values, ", on several hosts");
    let _ = writeln!(text, "  {}", effort(values));
    match values.study {
        Study::Sizes | Study::Processes => sizes(&mut text, values),
        Study::Service => service(&mut text, values),
        Study::Collective => collective(&mut text, values),
        Study::Roots => roots(&mut text, values),
        Study::Deliveries => deliveries::table(&mut text, values),
    }
    let wrong: Vec<&Count> = counts.iter().filter(|count| !count.is_right()).collect();
    let right = counts.len() - wrong.len();
    if !counts.is_empty() {
        let _ = writeln!(
            text,
            "  {right} of {} counts of messages are those of the paper and of the plans.",
            counts.len()
        );
    }
    for count in wrong {
        let _ = writeln!(text, "  Wrong: {count}.");
    }
    text + &troubles(values)
}

/// How often everything was measured. Where processes wait for processors, a launch has time for fewer batches.
fn effort(values: &Values) -> String {
    let batches = |is_it: &dyn Fn(usize, usize) -> usize| {
        values.values.iter().map(|value| value.batches).reduce(is_it).unwrap_or(0)
    };
    let (least, most) = (batches(&usize::min), batches(&usize::max));
    let rounds = if values.rounds == 1 { "1 round" } else { &format!("{} rounds", values.rounds) };
    let batches = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    format!(
        "{rounds}, in each {batches} batches of every value; {} processors",
        values.machine.processors
    )
}

/// A way and the library that goes it, in words.
pub(super) fn name_of(way: &str, who: &str) -> String {
    let library = match who {
        "landeck" => "Landeck",
        "landeck-mpi" => "Landeck's MPI",
        "mpich-throttled" => "MPICH",
        "ompi" => "Open MPI",
        "impi" => "Intel MPI",
        other => other,
    };
    match (way, who) {
        (MPI, _) => library.to_owned(),
        (USUAL, "landeck") => "Landeck".to_owned(),
        ("paper", _) => "paper's server".to_owned(),
        ("served", _) => "group, served".to_owned(),
        ("group", _) => "group".to_owned(),
        ("deck", _) => "DECK".to_owned(),
        ("relay", _) => format!("relay, {library}"),
        (way, "landeck") => way.to_owned(),
        (way, _) => format!("{way}, {library}"),
    }
}

/// The numbers of hosts and processes, together.
pub(super) fn jobs(values: &Values) -> Vec<(u32, u32)> {
    let all: BTreeSet<(u32, u32)> =
        values.places().iter().map(|place| (place.hosts, place.n)).collect();
    all.into_iter().collect()
}

pub(super) fn place(
    operation: &str,
    (way, who): (&str, &'static str),
    (hosts, n): (u32, u32),
    bytes: u64,
) -> ValuePlace {
    ValuePlace { who, hosts, ..ValuePlace::here(operation, way, n, bytes) }
}

fn sizes(text: &mut String, values: &Values) {
    for (hosts, n) in jobs(values) {
        let _ = write!(text, "\n  n = {n} on {hosts} hosts\n  {:<34}{:>9}", "", "messages");
        for &bytes in &values.sizes() {
            let _ = write!(text, "{:>11}", decimal_label(bytes));
        }
        let _ = writeln!(text, "{:>11}{:>14}", "mean", "paper, n = 24");
        for (way, who) in values.series() {
            let at = |bytes| place("broadcast", (way, who), (hosts, n), bytes);
            let times: Vec<Option<f64>> =
                values.sizes().iter().map(|&bytes| values.median_us(&at(bytes))).collect();
            if times.iter().all(Option::is_none) {
                continue;
            }
            let _ = write!(text, "  {:<34}", name_of(way, who));
            let first = values.sizes().first().copied().unwrap_or(0);
            write_counts(text, &values.facts_at(&at(first), "messages"), 9);
            times.iter().for_each(|&us| write_us(text, us, 11));
            let known: Vec<f64> = times.into_iter().flatten().collect();
            write_us(text, mean(&known), 11);
            let architecture = way.split('@').next();
            let paper = TABLE_1.iter().find(|row| Some(row.architecture) == architecture);
            let paper = paper.filter(|_| who == "landeck" && n == FIXED_PROCESSES);
            write_us(text, paper.map(|row| row.sizes_us), 14);
            end_line(text);
        }
    }
}

fn service(text: &mut String, values: &Values) {
    let _ = write!(text, "  {:<8}{:<18}", "hosts", "");
    let shown: Vec<u64> =
        SERVICE_SIZES.into_iter().filter(|bytes| values.sizes().contains(bytes)).collect();
    for &bytes in &shown {
        let _ = write!(text, "{:>10}", size_label(bytes));
    }
    end_line(text);
    for job in jobs(values) {
        for series in values.series().into_iter().filter(|(way, _)| *way != "joins") {
            let at = |bytes| place("broadcast-sync", series, job, bytes);
            let _ = write!(text, "  {:<8}{:<18}", job.0, name_of(series.0, series.1));
            shown.iter().for_each(|&bytes| write_us(text, values.median_us(&at(bytes)), 10));
            end_line(text);
        }
    }
    text.push_str(
        "  Printed in the paper, with two members: DECK about 500 us slower than MPICH up to 2 KB, about 1,000 us beyond.\n",
    );
    calls(text, values);
    joins(text, values);
}

/// The messages of each call, in the paper's mode and in groups of this release.
fn calls(text: &mut String, values: &Values) {
    let _ = writeln!(
        text,
        "\n  Messages of a call, all hosts together\n  {:<8}{:<12}{:>8}{:>16}{:>16}{:>16}",
        "hosts", "", "paper", "paper's server", "group, served", "group"
    );
    for job in jobs(values) {
        for call in CALLS {
            let n = job.1;
            let printed = match call {
                "broadcast" => 1 + n,
                "sync" => 2 * n,
                _ => 2,
            };
            let _ = write!(text, "  {:<8}{call:<12}{printed:>8}", job.0);
            let own = values.facts_at(&place(call, ("paper", "landeck"), job, 0), "messages");
            write_counts(text, &own, 16);
            for kind in ["served", "group"] {
                let name = format!("{kind}: {call}");
                let all = values.facts_where(|fact| {
                    let ValuePlace { operation, way, hosts, .. } = &fact.place;
                    way == "calls" && *hosts == job.0 && operation.starts_with(&name)
                });
                write_counts(text, &all, 16);
            }
            end_line(text);
        }
    }
}

/// Joins beside a long broadcast.
fn joins(text: &mut String, values: &Values) {
    let of: Vec<&ValuePlace> =
        values.places().into_iter().filter(|place| place.way == "joins").collect();
    let bytes = of.first().map_or(0, |place| place.bytes);
    let _ = writeln!(
        text,
        "\n  A join from the second host during a broadcast of {}\n  {:<8}{:<16}{:>12}{:>14}{:>12}",
        size_label(bytes),
        "hosts",
        "",
        "join",
        "longest join",
        "broadcast"
    );
    for job in jobs(values) {
        for kind in ["served", "group"] {
            let _ = write!(text, "  {:<8}{:<16}", job.0, name_of(kind, "landeck"));
            for (what, width) in [("join", 12), ("longest join", 14), ("broadcast", 12)] {
                let name = format!("{kind}: {what}");
                let at = place(&name, ("joins", "landeck"), job, bytes);
                write_us(text, values.median_us(&at), width);
            }
            end_line(text);
        }
    }
}

fn collective(text: &mut String, values: &Values) {
    for (operation, bytes) in operations(values) {
        let title = collective_title(&operation, bytes);
        let _ = write!(text, "\n  {title}\n  {:<8}", "hosts");
        for (way, who) in values.series() {
            let _ = write!(text, "{:>15}", name_of(way, who));
            if has_counts(way) {
                let _ = write!(text, "{:>10}", "messages");
            }
        }
        end_line(text);
        for job in jobs(values) {
            let _ = write!(text, "  {:<8}", job.0);
            for (way, who) in values.series() {
                let at = place(&operation, (way, who), job, bytes);
                write_us(text, values.median_us(&at), 15);
                if has_counts(way) {
                    write_counts(text, &values.facts_at(&at, "messages"), 10);
                }
            }
            end_line(text);
        }
    }
}

fn has_counts(way: &str) -> bool {
    way != MPI
}

fn roots(text: &mut String, values: &Values) {
    let _ = write!(text, "  {:<8}{:>8}{:>10}", "hosts", "rounds", "relayed");
    for (way, who) in values.series() {
        let _ = write!(text, "{:>22}", name_of(way, who));
    }
    end_line(text);
    for job in jobs(values) {
        let _ = write!(text, "  {:<8}", job.0);
        let of = |unit: &str| {
            values.facts_where(|fact| fact.unit == unit && (fact.place.hosts, fact.place.n) == job)
        };
        write_counts(text, &of("rounds"), 8);
        write_counts(text, &of("messages"), 10);
        for series in values.series() {
            write_us(text, values.median_us(&place("roots", series, job, 0)), 22);
        }
        end_line(text);
    }
    text.push_str("  Each library needs the same rounds. A relay sends one message to everybody but the master.\n");
}

/// A count, or the least and the greatest one.
fn write_counts(text: &mut String, all: &[f64], width: usize) {
    let words = match all {
        [] => String::new(),
        [one] => short(*one),
        [least, .., greatest] => format!("{}..{}", short(*least), short(*greatest)),
    };
    let _ = write!(text, "{words:>width$}");
}
