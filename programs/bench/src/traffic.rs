//! The traffic of operations on the network, beside how long they take beside the best peer.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::candidate::{Candidate, Places};
use crate::figure::{Figure, FigurePart};
use crate::results::Results;
use crate::sample::{Point, Sample};
use crate::statistics::short;
use crate::{launch, over_hosts};

/// Counting takes less.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The counts in the order of the table, as landeck-points calls them.
const COLUMNS: [&str; 5] = ["frames", "bytes", "sends", "receives", "looks"];

/// The table of a figure that has one: frames, bytes and system calls of all processes for one operation, and the time
/// in relation to the best peer's.
pub(crate) fn table(figure: &Figure, results: &Results, places: &Places) -> Option<String> {
    if !figure.counts_traffic() {
        return None;
    }
    let mut text =
        "\n  On the network, of all processes in one operation: frames, bytes, and system calls\n"
            .to_owned();
    let _ = write!(text, "    {:<34}", "");
    COLUMNS.iter().for_each(|title| _ = write!(text, " {title:>12}"));
    text.push_str("  time to the best peer\n");
    for part in figure.parts {
        match samples(part, places) {
            Ok(samples) => add(&mut text, results, samples),
            Err(trouble) => _ = writeln!(text, "    n = {}: {trouble}", part.n),
        }
    }
    Some(text)
}

fn samples(part: &FigurePart, places: &Places) -> Result<Vec<Sample>, String> {
    let cluster = places.cluster.as_ref().ok_or("there are no hosts")?;
    let sizes = part.arguments.iter().filter(|argument| argument.starts_with("bytes="));
    let arguments: Vec<String> =
        ["traffic"].into_iter().chain(sizes.copied()).map(str::to_owned).collect();
    let candidate = Candidate::LandeckPlain;
    let program = places.points(Candidate::Landeck);
    let mut command = over_hosts::command(cluster, places, candidate, part, &program, &arguments)?;
    let outcome = launch::run(&mut command, TIMEOUT);
    match outcome.trouble {
        Some(trouble) => Err(trouble),
        None => Ok(outcome.samples),
    }
}

fn add(text: &mut String, results: &Results, samples: Vec<Sample>) {
    let mut rows: BTreeMap<Point, BTreeMap<String, f64>> = BTreeMap::new();
    for sample in samples {
        let point = Point { figure: results.figure.to_owned(), ..sample.point };
        rows.entry(point).or_default().insert(sample.unit, sample.value);
    }
    for (point, counts) in rows {
        let _ = write!(text, "    {:<34}", point.label());
        for unit in COLUMNS {
            let count = counts.get(unit).copied().map(short).unwrap_or_default();
            let _ = write!(text, " {count:>12}");
        }
        let ratio = results.ratio_to_best_peer(results.own(), &point);
        let ratio =
            ratio.map(|ratio| format!("{} x {}", short(ratio.of_medians), ratio.peer.name()));
        let _ = writeln!(text, "  {}", ratio.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_over_hosts_with_collective_operations_count_what_they_send() {
        let counts: Vec<&str> = Figure::all()
            .filter(|figure| figure.counts_traffic())
            .map(|figure| figure.name)
            .collect();
        let on_two = ["hosts_collectives", "hosts_allgather", "hosts_busy"];
        let on_more = ["hosts_collectives_4", "hosts_collectives_8"];
        assert_eq!(counts, [&on_two[..], &on_more[..]].concat());
    }
}
