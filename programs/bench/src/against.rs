//! This build beside another installation of Landeck: how much each row has changed.
//!
//! Both run in turn in every round, so what disturbs one disturbs the other. A figure with a row that is slower by
//! more than [`TOLERATED`] is measured once more: the row counts only when both runs agree.

use std::fmt::Write;
use std::path::Path;

use crate::candidate::{self, Candidate, Places};
use crate::figure::Figure;
use crate::problem::Problem;
use crate::report::{self, Report};
use crate::rounds::{self, Effort};
use crate::sample::Point;
use crate::statistics::{median, short};

/// A row may take so many times as long as in the other installation.
const TOLERATED: f64 = 1.10;

/// The median of all rows may be so much.
const TOLERATED_IN_THE_MEDIAN: f64 = 1.02;

/// One row: a point through one interface, in one or two runs.
#[derive(Debug, PartialEq)]
struct Change {
    candidate: Candidate,
    point: Point,
    /// The times of this build in those of the other: in each run the median of the rounds.
    ratios: Vec<f64>,
}

impl Change {
    /// Whether every run says that the row is slower.
    fn is_slower(&self) -> bool {
        self.ratios.iter().all(|&ratio| ratio > TOLERATED)
    }

    /// The run that speaks for this build.
    fn ratio(&self) -> f64 {
        self.ratios.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The candidates that both have.
///
/// # Errors
/// When the folder has no installation that can be measured.
pub(crate) fn candidates(places: &Places, prefix: &Path) -> Result<Vec<Candidate>, Problem> {
    let both = candidate::ALL.into_iter().filter_map(|own| Some([own, own.of_the_other()?]));
    let missing = |&[own, other]: &[Candidate; 2]| {
        Some((own, places.missing(own).or_else(|| places.missing(other))?))
    };
    let present = report::present(both, missing)?.concat();
    if present.is_empty() {
        Err(Problem::NoInstallation { prefix: prefix.to_owned() })
    } else {
        Ok(present)
    }
}

/// Measures the figures, and says what has changed.
///
/// # Errors
/// When the report cannot be written.
pub(crate) fn run(
    figures: &[&'static Figure],
    candidates: &[Candidate],
    places: &Places,
    effort: &Effort,
    report: &mut Report,
) -> Result<(), Problem> {
    let mut changes = Vec::new();
    for figure in figures {
        let mut measured = Vec::new();
        for _ in 0..2 {
            add(
                &mut measured,
                rounds::measure(figure, candidates, places, effort).ratios_to_the_other(),
            );
            if !measured.iter().any(Change::is_slower) {
                break;
            }
        }
        report.add(&lines(&measured))?;
        changes.extend(measured);
    }
    report.add(&sum(&changes))
}

/// Puts a run beside those before it.
fn add(changes: &mut Vec<Change>, run: Vec<(Candidate, Point, crate::results::Ratio)>) {
    for (candidate, point, ratio) in run {
        let value = ratio.by_round.map_or(ratio.of_medians, |rounds| rounds.median);
        let known =
            changes.iter_mut().find(|known| known.candidate == candidate && known.point == point);
        match known {
            Some(known) => known.ratios.push(value),
            None => changes.push(Change { candidate, point, ratios: vec![value] }),
        }
    }
}

fn lines(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let ratios: Vec<String> = change.ratios.iter().map(|&ratio| short(ratio)).collect();
        let _ = writeln!(
            text,
            "  {:<6} {:<17} {:<12} {:<42} {}",
            if change.is_slower() { "SLOWER" } else { "" },
            change.point.figure,
            change.candidate.name(),
            change.point.label(),
            ratios.join(", ")
        );
    }
    text
}

/// How many rows are slower, and the median of all.
fn sum(changes: &[Change]) -> String {
    let ratios: Vec<f64> = changes.iter().map(Change::ratio).collect();
    let Some(middle) = median(&ratios) else {
        return "\nNo row was measured by both.\n".to_owned();
    };
    let slower = changes.iter().filter(|change| change.is_slower()).count();
    format!(
        "\n{} rows: {slower} slower than {TOLERATED} of the other installation in every run; the median is {} ({} {TOLERATED_IN_THE_MEDIAN}).\n",
        changes.len(),
        short(middle),
        if middle <= TOLERATED_IN_THE_MEDIAN { "within" } else { "BEYOND" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(bytes: u64, ratios: &[f64]) -> Change {
        let point = Point { figure: "round".into(), form: String::new(), n: 2, bytes, pending: 0 };
        Change { candidate: Candidate::Landeck, point, ratios: ratios.to_vec() }
    }

    #[test]
    fn a_row_is_slower_when_both_runs_agree() {
        assert!(change(8, &[1.2, 1.11]).is_slower());
        assert!(!change(8, &[1.2, 1.0]).is_slower());
        assert!(!change(8, &[1.1]).is_slower());
    }

    #[test]
    fn a_row_has_the_ratios_of_its_runs_and_says_whether_it_is_slower() {
        let run = |bytes, value| {
            let point = change(bytes, &[]).point;
            let ratio = crate::results::Ratio {
                peer: Candidate::Landeck,
                of_medians: value,
                by_round: None,
            };
            vec![(Candidate::Landeck, point, ratio)]
        };
        let mut changes = Vec::new();
        for (bytes, value) in [(8, 1.2), (64, 1.0), (8, 1.3)] {
            add(&mut changes, run(bytes, value));
        }
        let text = lines(&changes);
        let rows: Vec<_> = text.lines().collect();
        assert!(rows.len() == 2 && rows[0].ends_with("1.20, 1.30"), "{text}");
        assert!(rows[0].starts_with("  SLOWER round") && !rows[1].contains("SLOWER"), "{text}");
    }

    #[test]
    fn the_sum_counts_rows_and_has_their_median() {
        let text = sum(&[change(8, &[1.3, 1.2]), change(64, &[1.0]), change(512, &[1.01])]);
        assert!(
            text.contains("3 rows: 1 slower") && text.contains("the median is 1.01 (within 1.02)"),
            "{text}"
        );
        assert!(sum(&[change(8, &[1.05])]).contains("BEYOND"));
        assert!(sum(&[]).contains("No row"));
    }
}
