//! How far what is simulated lies from what processes of this host find.
//!
//! Both change from launch to launch, and the processors of a virtual machine move. So all that is asked for is
//! measured in passes, each of one launch of everything, and before and behind each launch it is seen whether the
//! processors are as near to each other as when the figures were measured. A launch in which they are not is
//! measured again when they are. Where they stay where they are now, there are figures, a simulation and passes
//! of that distance as well. What differs from launch to launch is launched more often.

use super::measured::{self, MeasuredError};
use super::meter::Meter;
use super::study::{Along, Ground, Series, Study, middle, middle_half};
use super::table::{short, thousands};
use crate::tune::{self, Found, is_moved};
use std::time::{Duration, Instant};

/// Launches of each thing that count, measured and simulated, at most.
pub(crate) const LAUNCHES: u32 = 12;
/// So many there are of everything, and more of what differs from launch to launch by more than [`STEADY`].
const LAUNCHES_MIN: u32 = 5;
/// What lies within so much of its middle, but for a quarter at each end, is steady.
const STEADY: f64 = 0.1;
/// After this time nothing is launched more often than that, and after twice as long nothing at all.
const PASSES_MAX: Duration = Duration::from_secs(40);
/// So long processors that have moved are waited for before all begins anew.
const MOVED_MAX: Duration = Duration::from_secs(4);

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

/// What was measured while a line between the processors took as long as when the figures were measured.
pub(crate) struct Passes {
    times_us: Times,
    /// Whether the least of each counts, as it does of the figures of messages; else [`middle`].
    takes_least: bool,
    /// How many passes are over, and how many things have been looked at in the one that goes on.
    passed: u32,
    begun: usize,
    /// For how long it was measured.
    spent: Duration,
    /// A line then, in picoseconds.
    usual_ps: u64,
    /// The same when the last launch that did not count was.
    moved_ps: Option<u64>,
}

impl Passes {
    /// Nothing yet of what these studies simulate. `what` is an operation, or `message`.
    pub(crate) fn new(what: &str, studies: &[Study], found: &Found) -> Self {
        let empty = |study: &Study| vec![vec![Vec::new(); study.places.len()]; study.series.len()];
        let times_us = studies.iter().map(empty).collect();
        let (takes_least, usual_ps) = (what == super::MESSAGE, found.figures.line_ps);
        let (passed, begun, spent, moved_ps) = (0, 0, Duration::ZERO, None);
        Self { times_us, takes_least, passed, begun, spent, usual_ps, moved_ps }
    }

    /// Measures until there is enough of it, or the processors stay where they are not usually. True when there
    /// is enough, or it took too long.
    ///
    /// # Errors
    /// [`MeasuredError`].
    pub(crate) fn go_on(
        &mut self,
        what: &str,
        ground: &Ground<'_>,
        studies: &[Study],
    ) -> Result<bool, MeasuredError> {
        let (launches, since) = (launches(studies), Instant::now());
        let mut meter = Meter::new("measure", LAUNCHES as usize * launches.len());
        let mut is_usual = self.are_usual();
        let spent = self.spent;
        while self.passed < LAUNCHES {
            let launch = &launches[self.begun];
            if !self.is_wanted(launch) {
                self.pass_on(launches.len());
                continue;
            }
            self.spent = spent + since.elapsed();
            if self.is_too_late() {
                return Ok(true);
            }
            if !is_usual && !self.become_usual() {
                return Ok(false);
            }
            let clusters = ground.clusters_of(launch.series.1, launch.processes);
            let Launch { series: (_, series), processes, bytes, .. } = launch;
            let done = self.passed as usize * launches.len() + self.begun;
            meter.at(done, &format!("{}, {processes} processes", series.name));
            let us = measured::launch(what, series, *processes, clusters, *bytes)?;
            is_usual = self.are_usual();
            if is_usual {
                self.times_of(launch).push(us);
                self.pass_on(launches.len());
            }
        }
        Ok(true)
    }

    /// Whether there are not enough launches of this yet, as far as they say so themselves.
    fn is_wanted(&mut self, launch: &Launch<'_>) -> bool {
        self.passed < LAUNCHES_MIN
            || !Spread::of(self.times_of(launch)).is_some_and(Spread::is_steady)
    }

    /// Goes on to the next thing.
    const fn pass_on(&mut self, things: usize) {
        self.begun += 1;
        if self.begun >= things {
            (self.begun, self.passed) = (0, self.passed + 1);
        }
    }

    /// Whether the processors are where they were when the figures were measured, as far as a line says.
    pub(crate) fn is_of(&self, line_ps: u64) -> bool {
        !is_moved(self.usual_ps, line_ps)
    }

    /// Whether there is anything to compare.
    pub(crate) fn has_any(&self) -> bool {
        self.passed > 0 || self.begun > 0
    }

    /// Whether there are as many launches of everything as there are to be.
    pub(crate) const fn is_enough(&self) -> bool {
        self.passed >= LAUNCHES_MIN
    }

    /// Whether no further launch begins. The least that there is to be may take twice as long.
    fn is_too_late(&self) -> bool {
        self.spent > if self.passed < LAUNCHES_MIN { 2 * PASSES_MAX } else { PASSES_MAX }
    }

    fn are_usual(&mut self) -> bool {
        let line_ps = line_ps_now(self.usual_ps);
        let is_usual = self.is_of(line_ps);
        if !is_usual {
            self.moved_ps = Some(line_ps);
        }
        is_usual
    }

    /// Waits for a while until they are there again; whether they are.
    fn become_usual(&mut self) -> bool {
        let since = Instant::now();
        while !self.are_usual() {
            if since.elapsed() > MOVED_MAX {
                return false;
            }
        }
        true
    }

    fn times_of(&mut self, launch: &Launch<'_>) -> &mut Vec<f64> {
        &mut self.times_us[launch.study][launch.series.0][launch.place]
    }

    /// What was simulated beside what was measured, and how far it is off.
    pub(crate) fn text(&self, studies: &[Study]) -> String {
        let mut text = String::new();
        for (study, times_us) in studies.iter().zip(&self.times_us) {
            text.push_str(&self.of_study(study, times_us));
        }
        let which = if self.takes_least { "least" } else { "mean of the middle half" };
        let launches = || self.times_us.iter().flatten().flatten().map(Vec::len);
        let (fewest, most) = (launches().min().unwrap_or(0), launches().max().unwrap_or(0));
        let count = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
        let line_ns = self.usual_ps as f64 / 1e3;
        text.push_str(&format!(
            "Measured are {count} launches of each; the {which} counts, and behind it stand the ends of the middle \
             half. A line between two processors took {line_ns:.0} ns.\n"
        ));
        if let Some(moved_ps) = self.moved_ps {
            text.push_str(&moved_text(moved_ps, self.has_any()));
        }
        text
    }

    /// How many of the figures are near enough to what was measured.
    pub(crate) fn verdict(&self, studies: &[Study]) -> Verdict {
        let mut verdict =
            Verdict { limit: if self.takes_least { 0.1 } else { 0.25 }, within: 0, all: 0 };
        for (study, times_us) in studies.iter().zip(&self.times_us) {
            for (simulated, measured) in study.times_us.iter().zip(times_us) {
                for (simulated, measured) in simulated.iter().zip(measured) {
                    if let (&Some(simulated), Some(spread)) = (simulated, Spread::of(measured)) {
                        let off = simulated / spread.counted(self.takes_least) - 1.0;
                        verdict.within += u32::from(off.abs() <= verdict.limit);
                        verdict.all += 1;
                    }
                }
            }
        }
        verdict
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
                let spread = Spread::of(&measured[number]);
                let (Some(simulated), Some(spread)) = (simulated[number], spread) else {
                    continue;
                };
                let measured = spread.counted(self.takes_least);
                let off = 100.0 * (simulated / measured - 1.0);
                worst = worst.max(off.abs());
                let [simulated, measured] = [simulated, measured].map(short);
                let [least, most] = spread.ends.map(short);
                text.push_str(&format!(
                    "   {}: {simulated} {measured} ({least} to {most}) {off:+.0}%",
                    series.name
                ));
            }
            text.push('\n');
        }
        text.push_str(&format!("  the largest difference is {worst:.0}%\n"));
        text
    }
}

/// What several launches of one thing have found, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    middle: f64,
    /// Where the middle half begins and ends.
    ends: [f64; 2],
}

impl Spread {
    fn of(times_us: &[f64]) -> Option<Self> {
        let half = middle_half(times_us);
        let (&first, &last) = (half.first()?, half.last()?);
        let least = times_us.iter().copied().min_by(f64::total_cmp)?;
        Some(Self { least, middle: middle(times_us)?, ends: [first, last] })
    }

    /// What counts of it.
    const fn counted(&self, takes_least: bool) -> f64 {
        if takes_least { self.least } else { self.middle }
    }

    fn is_steady(self) -> bool {
        self.ends[1] - self.ends[0] <= STEADY * self.middle
    }
}

/// How many figures are near enough to what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// As a part of what was measured.
    limit: f64,
    within: u32,
    all: u32,
}

impl Verdict {
    /// Whether all are, and there are any.
    pub(crate) const fn is_met(&self) -> bool {
        self.all > 0 && self.within == self.all
    }

    /// In words.
    pub(crate) fn text(&self) -> String {
        let Self { limit, within, all } = self;
        format!(
            "{within} of {all} figures are within {:.0}% of what was measured.\n",
            100.0 * limit
        )
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
pub(crate) fn line_ps_now(usual_ps: u64) -> u64 {
    match tune::processors()[..] {
        [first, second, ..] => tune::line_ps(first, second),
        _ => usual_ps,
    }
}

/// What to say where the processors of this host have moved nearer to each other or farther apart since the
/// figures were measured, as those of virtual machines do.
fn moved_text(moved_ps: u64, has_any: bool) -> String {
    let moved_ns = moved_ps as f64 / 1e3;
    let rest = match has_any {
        true => "What was measured then does not count here.",
        false => "They did not stay, so nothing was measured. Run it again.",
    };
    format!("Meanwhile the processors have moved: it took {moved_ns:.0} ns then. {rest}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::Share;
    use landeck::unstable::collectives::{Calibration, CostParameters};

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
        let mut passes = Passes::new("broadcast", &studies, &found());
        let launches = launches(&studies);
        let times_us = [(0, 4.0), (0, 2.0), (1, 5.0), (2, 0.5), (3, 9.0)];
        for (launch, us) in times_us {
            let launch: &Launch<'_> = &launches[launch];
            passes.times_of(launch).push(us);
        }
        let text = passes.text(&studies);
        for words in [
            "8 B   flat: 3.00 3.00 (2.00 to 4.00) +0%   board: 1.00 0.500 (0.500 to 0.500) +100%",
            "1,024 B   flat: 5.00 5.00 (5.00 to 5.00) +0%\n",
            "difference is 100%\n",
            "1 to 2 launches of each; the mean",
        ] {
            assert!(text.contains(words), "{text}");
        }
        assert!(!text.contains("moved"), "{text}");
        let verdict = passes.verdict(&studies);
        assert_eq!(verdict, Verdict { limit: 0.25, within: 2, all: 3 });
        assert!(!verdict.is_met() && Verdict { within: 3, ..verdict }.is_met());
        assert!(!Verdict { within: 0, all: 0, ..verdict }.is_met(), "nothing was measured");
        passes.takes_least = true;
        let text = passes.text(&studies);
        assert!(
            text.contains("flat: 3.00 2.00 (2.00 to 4.00) +50%"),
            "of messages the least: {text}"
        );
    }

    #[test]
    fn processors_that_have_moved_are_told_of() {
        let mut passes = Passes::new("message", &[], &found());
        assert!(passes.takes_least && passes.is_of(50_000) && !passes.is_of(260_000));
        passes.moved_ps = Some(260_000);
        let text = passes.text(&[]);
        assert!(
            text.contains("took 50 ns") && text.contains("it took 260 ns then. They"),
            "{text}"
        );
        passes.begun = 1;
        assert!(passes.has_any() && passes.text(&[]).contains("does not count here"));
    }

    #[test]
    fn the_least_that_there_is_to_be_may_take_twice_as_long() {
        let mut passes = Passes::new("message", &[], &found());
        passes.spent = PASSES_MAX + Duration::from_secs(1);
        assert!(!passes.is_too_late());
        passes.passed = LAUNCHES_MIN;
        assert!(passes.is_too_late());
    }

    #[test]
    fn what_differs_from_launch_to_launch_is_launched_more_often() {
        let studies = [study(Along::Sizes(4), vec![8, 1024])];
        let launches = launches(&studies);
        let mut passes = Passes::new("broadcast", &studies, &found());
        passes.times_of(&launches[0]).extend([1.0, 1.04, 1.08, 1.0, 9.0]);
        passes.times_of(&launches[1]).extend([1.0, 1.0, 1.2, 1.2, 1.1]);
        assert!(passes.is_wanted(&launches[0]) && passes.is_wanted(&launches[1]));
        passes.passed = LAUNCHES_MIN;
        assert!(!passes.is_wanted(&launches[0]), "one was disturbed");
        assert!(passes.is_wanted(&launches[1]) && passes.is_wanted(&launches[2]));
        passes.begun = launches.len() - 1;
        passes.pass_on(launches.len());
        assert_eq!((passes.passed, passes.begun), (LAUNCHES_MIN + 1, 0));
    }

    /// Figures of processors near each other.
    fn found() -> Found {
        let figures = CostParameters { line_ps: 50_000, ..CostParameters::default() };
        Found { figures, details: Calibration::of(&figures), share: Share::WHOLE }
    }
}
