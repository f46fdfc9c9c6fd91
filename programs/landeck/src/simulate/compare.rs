//! How far what is simulated lies from what processes of this host find.
//!
//! Both change from launch to launch, and the processors of a virtual machine move. So all that is asked for is
//! measured in passes, each of one launch of everything, and in each pass it is seen whether the processors are
//! as near to each other as when the figures were measured. A pass in which they are not does not count. Where
//! that happens often, figures, simulation and passes begin anew.

use super::measured::{self, MeasuredError};
use super::meter::Meter;
use super::study::{Along, Ground, Series, Study, middle};
use super::table::{short, thousands};
use crate::tune::{self, Found, distance, is_moved};
use std::time::{Duration, Instant};

/// Launches of each thing that count, measured and simulated.
pub(crate) const LAUNCHES: u32 = 12;
/// After this time no pass begins, but the first.
const PASSES_MAX: Duration = Duration::from_secs(40);
/// So many passes that do not count are one after the other before all begins anew.
const MOVED_MAX: u32 = 3;

/// What one launch measures: a place of a series of a study. One alone: what a size takes depends on where the
/// memory of those before it lies.
struct Launch<'a> {
    study: usize,
    series: (usize, &'a Series),
    place: usize,
    processes: u32,
    bytes: u64,
}

/// By study, series and place: what launches have found, in microseconds.
type Times = Vec<Vec<Vec<Vec<f64>>>>;

/// What was measured.
pub(crate) struct Passes {
    times_us: Times,
    /// Whether the least of each counts, as it does of the figures of messages; else [`middle`].
    takes_least: bool,
    /// Passes that count.
    counted: u32,
    /// A line when the figures were measured and when the last pass that did not count was, in picoseconds.
    moved: Option<(u64, u64)>,
}

impl Passes {
    /// Measures what these studies simulate. `what` is an operation, or `message`.
    ///
    /// # Errors
    /// [`MeasuredError`].
    pub(crate) fn of(
        what: &str,
        ground: &Ground<'_>,
        studies: &[Study],
        found: &Found,
        began: Instant,
    ) -> Result<Self, MeasuredError> {
        let launches = launches(studies);
        let empty = |study: &Study| vec![vec![Vec::new(); study.places.len()]; study.series.len()];
        let times_us = studies.iter().map(empty).collect();
        let takes_least = what == super::MESSAGE;
        let mut passes = Self { times_us, takes_least, counted: 0, moved: None };
        let (mut moved_in_turn, usual_ps) = (0, found.figures.line_ps);
        let mut meter = Meter::new("measure", LAUNCHES as usize * launches.len());
        while passes.counted < LAUNCHES && moved_in_turn < MOVED_MAX {
            if passes.counted > 0 && began.elapsed() > PASSES_MAX {
                break;
            }
            let mut of_pass = Vec::with_capacity(launches.len());
            let line_ps = line_ps_now(usual_ps);
            for launch in &launches {
                let clusters = ground.clusters_of(launch.series.1, launch.processes);
                let Launch { series: (_, series), processes, bytes, .. } = launch;
                let done = passes.counted as usize * launches.len() + of_pass.len();
                meter.at(done, &format!("{}, {processes} processes", series.name));
                of_pass.push(measured::launch(what, series, *processes, clusters, *bytes)?);
            }
            let line_ps = farther(usual_ps, line_ps, line_ps_now(usual_ps));
            if is_moved(usual_ps, line_ps) {
                passes.moved = Some((usual_ps, line_ps));
                moved_in_turn += 1;
                if passes.counted > 0 || moved_in_turn < MOVED_MAX {
                    continue;
                }
                // Nothing else was found: it is shown, and said that it does not belong together.
            } else {
                (passes.counted, moved_in_turn) = (passes.counted + 1, 0);
            }
            for (launch, us) in launches.iter().zip(of_pass) {
                passes.keep(launch, us);
            }
        }
        Ok(passes)
    }

    /// Whether figures and measurement are not of the same processors, as far as anybody can see.
    pub(crate) fn is_of_others(&self) -> bool {
        self.counted < LAUNCHES / 2 && self.moved.is_some()
    }

    fn keep(&mut self, launch: &Launch<'_>, us: f64) {
        self.times_us[launch.study][launch.series.0][launch.place].push(us);
    }

    /// What was simulated beside what was measured, and how far it is off.
    pub(crate) fn text(&self, studies: &[Study]) -> String {
        let mut text = String::new();
        for (study, times_us) in studies.iter().zip(&self.times_us) {
            text.push_str(&self.of_study(study, times_us));
        }
        let which = if self.takes_least { "least" } else { "mean of the middle half" };
        let counted = self.counted;
        text.push_str(&format!("Measured are {counted} launches of each; the {which} counts.\n"));
        if let Some((before_ps, now_ps)) = self.moved {
            text.push_str(&moved_text(before_ps, now_ps, self.is_of_others()));
        }
        text
    }

    /// What counts of what launches have found.
    fn counts(&self, times_us: &[f64]) -> Option<f64> {
        match self.takes_least {
            true => times_us.iter().copied().min_by(f64::total_cmp),
            false => middle(times_us.to_vec()),
        }
    }

    fn of_study(&self, study: &Study, measured_us: &[Vec<Vec<f64>>]) -> String {
        let mut text =
            format!("{}: simulated, measured, and how much longer the first is\n", study.title);
        let mut worst: f64 = 0.0;
        for (number, &place) in study.places.iter().enumerate() {
            let first = match study.along {
                Along::Sizes(_) => format!("{} B", thousands(place)),
                Along::Processes(_) => thousands(place),
            };
            text.push_str(&format!("  {first:>12}"));
            for ((series, simulated), measured) in
                study.series.iter().zip(&study.times_us).zip(measured_us)
            {
                let measured = self.counts(&measured[number]);
                let (Some(simulated), Some(measured)) = (simulated[number], measured) else {
                    continue;
                };
                let off = 100.0 * (simulated / measured - 1.0);
                worst = worst.max(off.abs());
                let (simulated, measured) = (short(simulated), short(measured));
                text.push_str(&format!("   {}: {simulated} {measured} {off:+.0}%", series.name));
            }
            text.push('\n');
        }
        text.push_str(&format!("  the largest difference is {worst:.0}%\n"));
        text
    }
}

/// What to say where others were busy on this host while the figures were measured.
pub(crate) fn busy(found: &Found) -> Option<String> {
    found.share.trouble().map(|trouble| format!("Nothing agrees then: {trouble}.\n"))
}

fn launches(studies: &[Study]) -> Vec<Launch<'_>> {
    let mut launches = Vec::new();
    for (number, study) in studies.iter().enumerate() {
        for series in study.series.iter().enumerate() {
            let of_place = |(place, &value): (usize, &u64)| {
                let (processes, bytes) = match study.along {
                    Along::Sizes(processes) => (processes, value),
                    Along::Processes(bytes) => (value as u32, bytes),
                };
                Launch { study: number, series, place, processes, bytes }
            };
            launches.extend(study.places.iter().enumerate().map(of_place));
        }
    }
    launches
}

/// A line between two processors at this moment, where there are two; else nothing moves.
fn line_ps_now(usual_ps: u64) -> u64 {
    match tune::processors()[..] {
        [first, second, ..] => tune::line_ps(first, second),
        _ => usual_ps,
    }
}

/// Of two times of a line the one that is farther from what it was.
fn farther(before_ps: u64, one_ps: u64, other_ps: u64) -> u64 {
    if distance(before_ps, one_ps) > distance(before_ps, other_ps) { one_ps } else { other_ps }
}

/// What to say where the processors of this host have moved nearer to each other or farther apart since the
/// figures were measured, as those of virtual machines do.
fn moved_text(before_ps: u64, now_ps: u64, is_of_others: bool) -> String {
    let (before_ns, now_ns) = (before_ps as f64 / 1e3, now_ps as f64 / 1e3);
    let rest = match is_of_others {
        true => "So this compares what does not belong together. Run it again.",
        false => "What was measured then does not count.",
    };
    format!(
        "While this was measured the processors have moved: a line took {before_ns:.0} ns before and \
         {now_ns:.0} ns then. {rest}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(along: Along, places: Vec<u64>) -> Study {
        let series = ["flat", "board"].map(|name| Series::new(name.parse().unwrap(), None));
        let mut study = Study::new("Some".into(), along, series.into(), places);
        study.times_us = vec![vec![Some(3.0), Some(5.0)], vec![Some(1.0), None]];
        study
    }

    #[test]
    fn each_place_is_measured_by_launches_of_its_own() {
        let studies =
            [study(Along::Sizes(4), vec![8, 1024]), study(Along::Processes(64), vec![2, 4])];
        let launches = launches(&studies);
        let of = |number: usize| {
            let launch: &Launch<'_> = &launches[number];
            (launch.study, launch.series.0, launch.place, launch.processes, launch.bytes)
        };
        assert_eq!(launches.len(), 8);
        assert_eq!([0, 1, 2].map(of), [(0, 0, 0, 4, 8), (0, 0, 1, 4, 1024), (0, 1, 0, 4, 8)]);
        assert_eq!([4, 5, 7].map(of), [(1, 0, 0, 2, 64), (1, 0, 1, 4, 64), (1, 1, 1, 4, 64)]);
    }

    #[test]
    fn what_launches_found_is_put_beside_what_was_simulated() {
        let studies = [study(Along::Sizes(4), vec![8, 1024])];
        let times_us = vec![vec![vec![Vec::new(); 2]; 2]];
        let mut passes = Passes { times_us, takes_least: false, counted: 1, moved: None };
        let launches = launches(&studies);
        let found = [(0, 4.0), (0, 2.0), (1, 5.0), (2, 0.5), (3, 9.0)];
        for (launch, us) in found {
            let launch: &Launch<'_> = &launches[launch];
            passes.keep(launch, us);
        }
        let text = passes.text(&studies);
        assert!(text.contains("8 B   flat: 3.00 3.00 +0%   board: 1.00 0.500 +100%"), "{text}");
        assert!(text.contains("1,024 B   flat: 5.00 5.00 +0%\n"), "{text}");
        assert!(text.contains("difference is 100%\n"), "{text}");
        assert!(!text.contains("moved") && text.contains("1 launches of each; the mean"), "{text}");
        passes.takes_least = true;
        let text = passes.text(&studies);
        assert!(text.contains("flat: 3.00 2.00 +50%"), "of messages the least: {text}");
    }

    #[test]
    fn processors_that_have_moved_are_told_of() {
        assert_eq!(farther(50_000, 51_000, 250_000), 250_000);
        assert_eq!(farther(50_000, 20_000, 51_000), 20_000);
        let mut passes = Passes {
            times_us: vec![],
            takes_least: false,
            counted: LAUNCHES,
            moved: Some((50_000, 260_000)),
        };
        assert!(!passes.is_of_others() && passes.text(&[]).contains("does not count"));
        passes.counted = 1;
        let text = passes.text(&[]);
        assert!(passes.is_of_others() && text.contains("took 50 ns before and 260 ns"), "{text}");
    }
}
