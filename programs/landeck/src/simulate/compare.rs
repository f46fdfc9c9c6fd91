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
use crate::tune::{self, Found};
use std::time::{Duration, Instant};

/// Launches of each thing that count, measured and simulated.
pub(crate) const LAUNCHES: u32 = 12;
/// After this time no pass begins, but the first.
const PASSES_MAX: Duration = Duration::from_secs(40);
/// So many passes that do not count are one after the other before all begins anew.
const MOVED_MAX: u32 = 3;
/// The near and far placement of processors is told apart by this factor of a line's time.
const MOVED: f64 = 1.25;

/// What one launch measures: of a series, with so many processes, these places of the study.
struct Launch<'a> {
    study: usize,
    series: (usize, &'a Series),
    processes: u32,
    /// The first of the places, and the sizes of all of them.
    first: usize,
    sizes: Vec<u64>,
}

/// By study, series and place: what launches have found, in microseconds.
type Times = Vec<Vec<Vec<Vec<f64>>>>;

/// What was measured.
pub(crate) struct Passes {
    times_us: Times,
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
        let mut passes = Self { times_us, counted: 0, moved: None };
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
                let Launch { series: (_, series), processes, sizes, .. } = launch;
                let done = passes.counted as usize * launches.len() + of_pass.len();
                meter.at(done, &format!("{}, {processes} processes", series.name));
                of_pass.push(measured::launch(what, series, *processes, clusters, sizes)?);
            }
            let line_ps = farther(usual_ps, line_ps, line_ps_now(usual_ps));
            if is_moved(usual_ps, line_ps) {
                passes.moved = Some((usual_ps, line_ps));
                moved_in_turn += 1;
                continue;
            }
            (passes.counted, moved_in_turn) = (passes.counted + 1, 0);
            for (launch, findings) in launches.iter().zip(of_pass) {
                passes.keep(launch, &findings);
            }
        }
        Ok(passes)
    }

    /// Whether figures and measurement are not of the same processors, as far as anybody can see.
    pub(crate) fn is_of_others(&self) -> bool {
        self.counted < LAUNCHES / 2 && self.moved.is_some()
    }

    fn keep(&mut self, launch: &Launch<'_>, findings: &[(u64, f64)]) {
        let places = &mut self.times_us[launch.study][launch.series.0];
        for (place, &size) in (launch.first..).zip(&launch.sizes) {
            let us = findings.iter().find(|(found, _)| *found == size).map(|(_, us)| *us);
            places[place].extend(us);
        }
    }

    /// What was simulated beside what was measured, and how far it is off.
    pub(crate) fn text(&self, studies: &[Study]) -> String {
        let mut text = String::new();
        for (study, times_us) in studies.iter().zip(&self.times_us) {
            text.push_str(&of_study(study, times_us));
        }
        text.push_str(&format!("Measured are {} launches of each.\n", self.counted));
        if let Some((before_ps, now_ps)) = self.moved {
            text.push_str(&moved_text(before_ps, now_ps, self.is_of_others()));
        }
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
            match study.along {
                Along::Sizes(processes) => launches.push(Launch {
                    study: number,
                    series,
                    processes,
                    first: 0,
                    sizes: study.places.clone(),
                }),
                Along::Processes(bytes) => {
                    let of_place = |(first, &processes): (usize, &u64)| Launch {
                        study: number,
                        series,
                        processes: processes as u32,
                        first,
                        sizes: vec![bytes],
                    };
                    launches.extend(study.places.iter().enumerate().map(of_place));
                }
            }
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
    if times(before_ps, one_ps) > times(before_ps, other_ps) { one_ps } else { other_ps }
}

fn is_moved(before_ps: u64, now_ps: u64) -> bool {
    times(before_ps, now_ps) > MOVED
}

fn times(before_ps: u64, now_ps: u64) -> f64 {
    let (before, now) = (before_ps.max(1) as f64, now_ps.max(1) as f64);
    (now / before).max(before / now)
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

fn of_study(study: &Study, measured_us: &[Vec<Vec<f64>>]) -> String {
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
            let measured = middle(measured[number].clone());
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
    fn a_launch_measures_all_sizes_of_a_number_of_processes() {
        let studies =
            [study(Along::Sizes(4), vec![8, 1024]), study(Along::Processes(64), vec![2, 4])];
        let launches = launches(&studies);
        let all: Vec<_> = launches
            .iter()
            .map(|launch| (launch.study, launch.series.0, launch.processes, launch.first))
            .collect();
        assert_eq!(
            all,
            [(0, 0, 4, 0), (0, 1, 4, 0), (1, 0, 2, 0), (1, 0, 4, 1), (1, 1, 2, 0), (1, 1, 4, 1)]
        );
        assert_eq!((&launches[0].sizes[..], &launches[3].sizes[..]), (&[8, 1024][..], &[64][..]));
    }

    #[test]
    fn what_launches_found_is_put_beside_what_was_simulated() {
        let studies = [study(Along::Sizes(4), vec![8, 1024])];
        let times_us = vec![vec![vec![Vec::new(); 2]; 2]];
        let mut passes = Passes { times_us, counted: 1, moved: None };
        let launches = launches(&studies);
        passes.keep(&launches[0], &[(8, 4.0), (1024, 5.0)]);
        passes.keep(&launches[0], &[(8, 2.0)]);
        passes.keep(&launches[1], &[(8, 0.5), (1024, 9.0)]);
        let text = passes.text(&studies);
        assert!(text.contains("8 B   flat: 3.00 3.00 +0%   board: 1.00 0.500 +100%"), "{text}");
        assert!(text.contains("1,024 B   flat: 5.00 5.00 +0%\n"), "{text}");
        assert!(text.contains("difference is 100%\n"), "{text}");
        assert!(!text.contains("moved"), "{text}");
    }

    #[test]
    fn processors_that_have_moved_are_told_of() {
        assert!(is_moved(50_000, 250_000) && is_moved(250_000, 50_000) && !is_moved(50_000, 60_000));
        assert_eq!(farther(50_000, 51_000, 250_000), 250_000);
        assert_eq!(farther(50_000, 20_000, 51_000), 20_000);
        let mut passes = Passes { times_us: vec![], counted: LAUNCHES, moved: Some((50_000, 260_000)) };
        assert!(!passes.is_of_others() && passes.text(&[]).contains("does not count"));
        passes.counted = 1;
        let text = passes.text(&[]);
        assert!(passes.is_of_others() && text.contains("took 50 ns before and 260 ns"), "{text}");
    }
}
