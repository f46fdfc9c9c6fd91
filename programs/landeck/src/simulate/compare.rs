//! Compares simulated times with times measured on this host or several.
//!
//! Both change from launch to launch, and the processors of a virtual machine move. So everything is measured in
//! passes of one launch each. Before and after each launch the distance of the processors is measured. A launch at
//! another distance than that of the figures does not count and is repeated when they are back. If they stay away,
//! figures, simulation and passes of the new distance are added. Times that differ between launches are measured more
//! often.

use super::measured::{self, MeasuredError};
use super::meter::Meter;
use super::study::{Along, Ground, Series, Study, middle, middle_half};
use super::table::short;
use crate::tune::{self, Found, is_moved};
use landeck_host::report::thousands;
use std::time::{Duration, Instant};

/// The most launches that count for each time, measured and simulated.
pub(crate) const LAUNCHES: u32 = 12;
/// The launches of everything. There are more of times that differ by more than [`STEADY`].
const LAUNCHES_MIN: u32 = 5;
/// A time is steady if its middle half lies within this share of its middle.
const STEADY: f64 = 0.1;
/// After this time nothing is launched more often than that, and after twice as long nothing at all.
const PASSES_MAX: Duration = Duration::from_secs(40);
/// How long moved processors are waited for before everything begins anew.
const MOVED_MAX: Duration = Duration::from_secs(4);

/// One measured place of a series. Each has a launch of its own, since its time depends on where the memory of
/// earlier ones lies.
struct Launch<'a> {
    study: usize,
    series: (usize, &'a Series),
    place: usize,
    processes: u32,
    bytes: u64,
}

/// The times of all launches in microseconds, by study, series and place.
type Times = Vec<Vec<Vec<Vec<f64>>>>;

/// The times measured at one distance of the processors.
pub(crate) struct Passes {
    times_us: Times,
    /// Further options of `landeck run` for each launch.
    options: Vec<String>,
    /// Whether the least time counts, as for the figures of messages; else [`middle`].
    takes_least: bool,
    /// The number of finished passes, and of begun launches in the current one.
    passed: u32,
    begun: usize,
    /// The time spent with measuring.
    spent: Duration,
    /// The time of a line when the figures were measured, in picoseconds.
    usual_ps: u64,
    /// The time of a line at the last launch that did not count.
    moved_ps: Option<u64>,
}

impl Passes {
    /// Begins without times. `what` is an operation or `message`.
    pub(crate) fn new(what: &str, studies: &[Study], found: &Found, options: Vec<String>) -> Self {
        let empty = |study: &Study| vec![vec![Vec::new(); study.places.len()]; study.series.len()];
        let times_us = studies.iter().map(empty).collect();
        let (takes_least, usual_ps) = (what == super::MESSAGE, found.figures.line_ps);
        let (passed, begun, spent, moved_ps) = (0, 0, Duration::ZERO, None);
        Self { times_us, options, takes_least, passed, begun, spent, usual_ps, moved_ps }
    }

    /// Measures until there are enough launches, the time limit has passed, or the processors stay at another distance.
    /// False in that last case.
    ///
    /// # Errors
    ///
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
            let us = measured::launch(&self.options, what, series, *processes, clusters, *bytes)?;
            is_usual = self.are_usual();
            if is_usual {
                self.times_of(launch).push(us);
                self.pass_on(launches.len());
            }
        }
        Ok(true)
    }

    /// Whether another launch of this is needed.
    fn is_wanted(&mut self, launch: &Launch<'_>) -> bool {
        self.passed < LAUNCHES_MIN
            || !Spread::of(self.times_of(launch)).is_some_and(Spread::is_steady)
    }

    /// Moves on to the next launch.
    const fn pass_on(&mut self, things: usize) {
        self.begun += 1;
        if self.begun >= things {
            (self.begun, self.passed) = (0, self.passed + 1);
        }
    }

    /// Whether the processors have the distance of the figures.
    pub(crate) fn is_of(&self, line_ps: u64) -> bool {
        !is_moved(self.usual_ps, line_ps)
    }

    /// Whether there is anything to compare.
    pub(crate) fn has_any(&self) -> bool {
        self.passed > 0 || self.begun > 0
    }

    /// Whether there are enough launches of everything.
    pub(crate) const fn is_enough(&self) -> bool {
        self.passed >= LAUNCHES_MIN
    }

    /// Whether no further launch begins. The minimum of launches may take twice as long.
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

    /// Waits a while for the processors to come back. Returns whether they did.
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

    /// The table of simulated and measured times and their differences.
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

    /// Counts the times that are close to the measured ones.
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

/// The times of several launches of one thing, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    middle: f64,
    /// The ends of the middle half.
    ends: [f64; 2],
}

impl Spread {
    fn of(times_us: &[f64]) -> Option<Self> {
        let half = middle_half(times_us);
        let (&first, &last) = (half.first()?, half.last()?);
        let least = times_us.iter().copied().min_by(f64::total_cmp)?;
        Some(Self { least, middle: middle(times_us)?, ends: [first, last] })
    }

    /// The time that counts.
    const fn counted(&self, takes_least: bool) -> f64 {
        if takes_least { self.least } else { self.middle }
    }

    fn is_steady(self) -> bool {
        self.ends[1] - self.ends[0] <= STEADY * self.middle
    }
}

/// The number of times that are close to the measured ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// The largest difference that is close, as a share of the measured time.
    limit: f64,
    within: u32,
    all: u32,
}

impl Verdict {
    /// Whether all times are close, and there are any.
    pub(crate) const fn is_met(&self) -> bool {
        self.all > 0 && self.within == self.all
    }

    /// The verdict as a sentence.
    pub(crate) fn text(&self) -> String {
        let Self { limit, within, all } = self;
        format!(
            "{within} of {all} figures are within {:.0}% of what was measured.\n",
            100.0 * limit
        )
    }
}

/// A warning, if others used this host while the figures were measured.
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

/// The time of a line between two processors now. With one processor nothing moves.
pub(crate) fn line_ps_now(usual_ps: u64) -> u64 {
    tune::line_ps().unwrap_or(usual_ps)
}

/// A warning that the processors have moved since the figures were measured, as those of virtual machines do.
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
    use landeck_collectives::{Calibration, CostParameters};

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
    fn measured_times_of_launches_stand_beside_the_simulated_ones() {
        let studies = [study(Along::Sizes(4), vec![8, 1024])];
        let mut passes = Passes::new("broadcast", &studies, &found(), Vec::new());
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
        let mut passes = Passes::new("message", &[], &found(), Vec::new());
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
        let mut passes = Passes::new("message", &[], &found(), Vec::new());
        passes.spent = PASSES_MAX + Duration::from_secs(1);
        assert!(!passes.is_too_late());
        passes.passed = LAUNCHES_MIN;
        assert!(passes.is_too_late());
    }

    #[test]
    fn a_launch_whose_times_differ_is_repeated_more_often() {
        let studies = [study(Along::Sizes(4), vec![8, 1024])];
        let launches = launches(&studies);
        let mut passes = Passes::new("broadcast", &studies, &found(), Vec::new());
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
