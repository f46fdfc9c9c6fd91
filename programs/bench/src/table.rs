//! Results as tables on a terminal.

use std::fmt::Write;

use crate::candidate::Candidate;
use crate::results::{Placement, Ratio, Results, Row, Verdict};
use crate::sample::Point;
use crate::statistics::{Middle, short};

/// The tables of one figure, and what went wrong.
pub(crate) fn figure(results: &Results) -> String {
    let mut text = format!("\n{} ({})\n", results.title, results.units());
    let disturbed = results.launches.iter().filter(|launch| !launch.is_calm()).count();
    if disturbed > 0 {
        let all = results.launches.len();
        let _ = writeln!(
            text,
            "  Others used the processors during {disturbed} of {all} launches, which count only where there are no others."
        );
    }
    let _ = writeln!(
        text,
        "    {:<16} {:>10}  {:<25} {:>6} {:>7}  {:<17} to the best peer (in each round)",
        "", "median", "min .. max", "rounds", "others", "cache line (ns)"
    );
    for point in results.points() {
        point_table(&mut text, results, &point);
    }
    text.push('\n');
    for absence in &results.left_out {
        let processes: Vec<String> = absence.processes.iter().map(u32::to_string).collect();
        let _ = writeln!(
            text,
            "  {} is left out with {} processes: {}.",
            absence.candidate,
            processes.join(", "),
            absence.why
        );
    }
    for trouble in results.troubles() {
        let _ = writeln!(text, "  {trouble}");
    }
    text
}

/// The probes of the machine.
pub(crate) fn probes(results: &[crate::probe::Probe]) -> String {
    let mut text = String::from("\nThe machine itself\n");
    for probe in results {
        let _ = writeln!(text, "  {:<58} {:>9} {}", probe.name, short(probe.value), probe.unit);
    }
    text
}

/// Returns the table of verdicts over all figures: musts first.
pub(crate) fn verdicts(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for (must, heading) in [(true, "\nMust\n"), (false, "\nGoals\n")] {
        let mut rows = verdicts.iter().filter(|verdict| verdict.must == must).peekable();
        if rows.peek().is_some() {
            text.push_str(heading);
        }
        for verdict in rows {
            let _ = writeln!(
                text,
                "  {:<8} {:<17} {:<42} {:>10} {:<3} limit {:>10} {}",
                if verdict.met { "met" } else { "NOT MET" },
                verdict.point.figure,
                verdict.point.label(),
                short(verdict.value),
                verdict.unit,
                short(verdict.limit),
                if verdict.what.is_empty() { String::new() } else { format!("({})", verdict.what) },
            );
        }
    }
    text
}

fn point_table(text: &mut String, results: &Results, point: &Point) {
    let _ = writeln!(text, "\n  {}", point.label());
    for row in results.rows(point) {
        let ratio = results
            .ratio_to_best_peer(row.candidate, point)
            .filter(|_| row.candidate != Candidate::Bare);
        let _ = writeln!(text, "{}", line(&row, ratio.as_ref()).trim_end());
    }
    for (placement, ratio) in results.ratios_by_placement(results.own(), point) {
        let cores = if placement == Placement::Near { "near" } else { "far" };
        let _ = writeln!(text, "    landeck with {cores} cores: {}", ratio_words(&ratio));
    }
    for verdict in results.verdicts(point) {
        let kind = if verdict.must { "must" } else { "goal" };
        let met = if verdict.met { "met" } else { "not met" };
        let what =
            if verdict.what.is_empty() { String::new() } else { format!(" ({})", verdict.what) };
        let _ = writeln!(text, "    {kind}: at most {}{what}: {met}", short(verdict.limit));
    }
}

fn line(row: &Row, ratio: Option<&Ratio>) -> String {
    format!(
        "    {:<16} {:>10}  {:<25} {:>6} {:>6.0}%  {:<17} {}",
        row.candidate.name(),
        short(row.spread.median),
        range(&row.spread),
        row.launches,
        100.0 * row.others_share,
        row.line_ns.as_ref().map(range).unwrap_or_default(),
        ratio.map(ratio_words).unwrap_or_default(),
    )
}

fn ratio_words(ratio: &Ratio) -> String {
    let rounds =
        ratio.by_round.as_ref().map(|rounds| format!(" ({})", range(rounds))).unwrap_or_default();
    format!("{} x {}{rounds}", short(ratio.of_medians), ratio.peer.name())
}

fn range(spread: &Middle) -> String {
    format!("{} .. {}", short(spread.min), short(spread.max))
}
