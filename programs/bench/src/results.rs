//! The results of all rounds of a figure, and their evaluation.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::candidate::{ALL, Candidate};
use crate::disturbance::DISTURBED_SHARE;
use crate::figure::{Beside, Figure, Limit, Method, Most};
use crate::machine::Machine;
use crate::probe::Probe;
use crate::sample::Point;
use crate::statistics::{Middle, median, short};

/// All launches of one figure, and the machine they ran on.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) figure: &'static str,
    pub(crate) title: &'static str,
    pub(crate) machine: Machine,
    pub(crate) probes: Vec<Probe>,
    pub(crate) launches: Vec<Launch>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Somebody who was there and was not measured with so many processes.
#[derive(Debug, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) candidate: &'static str,
    pub(crate) processes: Vec<u32>,
    pub(crate) why: &'static str,
}

/// One launch of one candidate.
#[derive(Debug, Serialize)]
pub(crate) struct Launch {
    pub(crate) candidate: &'static str,
    pub(crate) round: usize,
    pub(crate) n: u32,
    /// The cache-line probe before and after the launch.
    pub(crate) line_ns: Option<[f64; 2]>,
    /// The share of all processors that others used meanwhile.
    pub(crate) others_share: f64,
    pub(crate) values: Vec<LaunchValue>,
    pub(crate) trouble: Option<String>,
}

/// The value of one point in a launch: the median of its batches, and their spread.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LaunchValue {
    #[serde(flatten)]
    pub(crate) point: Point,
    pub(crate) unit: String,
    pub(crate) value: f64,
    pub(crate) batches: usize,
    pub(crate) batches_min: f64,
    pub(crate) batches_max: f64,
}

/// One row of a table: a candidate's launches at one point.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) candidate: Candidate,
    /// The median of the launches' medians, and the ends of all batches.
    pub(crate) spread: Middle,
    pub(crate) launches: usize,
    pub(crate) line_ns: Option<Middle>,
    /// Of the most disturbed launch.
    pub(crate) others_share: f64,
    /// Whether all of its launches were calm.
    pub(crate) is_calm: bool,
}

/// Which launches count.
type Wanted<'a> = &'a dyn Fn(&Launch) -> bool;

/// How the cores lie to each other, as the line probe sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Near,
    Far,
}

/// A candidate against another one, such as the best peer.
#[derive(Debug)]
pub(crate) struct Ratio {
    pub(crate) peer: Candidate,
    pub(crate) of_medians: f64,
    /// The ratio inside each round, where both ran within seconds.
    pub(crate) by_round: Option<Middle>,
}

/// How far Landeck is from a limit.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) point: Point,
    /// Whether it is a must; a goal otherwise.
    pub(crate) must: bool,
    pub(crate) value: f64,
    pub(crate) limit: f64,
    pub(crate) unit: String,
    pub(crate) what: String,
    pub(crate) met: bool,
}

impl Results {
    /// Every point that somebody was measured at, in order.
    pub(crate) fn points(&self) -> Vec<Point> {
        let points: BTreeSet<&Point> = self.values().map(|(_, value)| &value.point).collect();
        points.into_iter().cloned().collect()
    }

    /// The units of all points.
    pub(crate) fn units(&self) -> String {
        let units: BTreeSet<&str> = self.values().map(|(_, value)| value.unit.as_str()).collect();
        units.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// The unit of a point.
    pub(crate) fn unit_at(&self, point: &Point) -> String {
        let mut values = self.values().filter(|(_, value)| value.point == *point);
        values.next().map_or_else(String::new, |(_, value)| value.unit.clone())
    }

    /// The candidates with values at the point, in the order of the tables.
    pub(crate) fn rows(&self, point: &Point) -> Vec<Row> {
        ALL.into_iter().filter_map(|candidate| self.row(candidate, point)).collect()
    }

    pub(crate) fn row(&self, candidate: Candidate, point: &Point) -> Option<Row> {
        self.row_where(candidate, point, &|_| true)
    }

    /// Of the wanted launches; the disturbed ones count only if there are no others.
    fn row_where(&self, candidate: Candidate, point: &Point, wanted: Wanted<'_>) -> Option<Row> {
        let mut mine: Vec<(&Launch, &LaunchValue)> = self
            .launches
            .iter()
            .filter(|launch| launch.candidate == candidate.name() && wanted(launch))
            .filter_map(|launch| Some((launch, launch.at(point)?)))
            .collect();
        if mine.iter().any(|(launch, _)| launch.is_calm()) {
            mine.retain(|(launch, _)| launch.is_calm());
        }
        let floor = self.floor(candidate, point)?;
        let median = Middle::of(mine.iter().map(|(_, value)| value.value))?.median;
        let batches =
            Middle::of(mine.iter().flat_map(|(_, value)| [value.batches_min, value.batches_max]))?;
        Some(Row {
            candidate,
            spread: Middle {
                median: median - floor,
                min: batches.min - floor,
                max: batches.max - floor,
            },
            launches: mine.len(),
            is_calm: mine.iter().all(|(launch, _)| launch.is_calm()),
            others_share: mine.iter().map(|(launch, _)| launch.others_share).fold(0.0, f64::max),
            line_ns: Middle::of(mine.iter().filter_map(|(launch, _)| launch.line())),
        })
    }

    /// The value that is subtracted from every other: that of the bare programs, where that is the method.
    fn floor(&self, candidate: Candidate, point: &Point) -> Option<f64> {
        let figure = Figure::by_name(self.figure)?;
        if figure.method != Method::BeyondBare || candidate == Candidate::Bare {
            return Some(0.0);
        }
        let bare = self.launches.iter().filter(|launch| launch.candidate == Candidate::Bare.name());
        let values: Vec<f64> = bare.filter_map(|launch| Some(launch.at(point)?.value)).collect();
        median(&values)
    }

    /// Against the peer with the lowest median; every value is better when it is lower.
    pub(crate) fn ratio_to_best_peer(&self, candidate: Candidate, point: &Point) -> Option<Ratio> {
        self.ratio_where(candidate, point, &|_| true)
    }

    /// Against the other installation of Landeck, where both were measured: the candidate of this build, the
    /// point, and the ratio.
    pub(crate) fn ratios_to_the_other(&self) -> Vec<(Candidate, Point, Ratio)> {
        let ratios = |point: Point| {
            ALL.into_iter().filter_map(move |candidate| {
                let other = candidate.of_the_other()?;
                let ratio = self.ratio_between(candidate, other, &point, &|_| true)?;
                Some((candidate, point.clone(), ratio))
            })
        };
        self.points().into_iter().flat_map(ratios).collect()
    }

    /// Of the peers, but for the candidate itself.
    fn best_peer_where(
        &self,
        candidate: Candidate,
        point: &Point,
        wanted: Wanted<'_>,
    ) -> Option<Row> {
        let peers = ALL.into_iter().filter(|other| other.is_peer() && *other != candidate);
        peers
            .filter_map(|peer| self.row_where(peer, point, wanted))
            .min_by(|left, right| left.spread.median.total_cmp(&right.spread.median))
    }

    fn ratio_where(
        &self,
        candidate: Candidate,
        point: &Point,
        wanted: Wanted<'_>,
    ) -> Option<Ratio> {
        let best = self.best_peer_where(candidate, point, wanted)?.candidate;
        self.ratio_between(candidate, best, point, wanted)
    }

    /// Against another candidate.
    fn ratio_between(
        &self,
        candidate: Candidate,
        other: Candidate,
        point: &Point,
        wanted: Wanted<'_>,
    ) -> Option<Ratio> {
        let best = self.row_where(other, point, wanted)?;
        let own = self.row_where(candidate, point, wanted)?;
        let all_calm = own.is_calm && best.is_calm;
        let rounds: BTreeSet<usize> = self.launches.iter().map(|launch| launch.round).collect();
        let by_round = rounds.into_iter().filter_map(|round| {
            let in_round = |launch: &Launch| {
                launch.round == round && wanted(launch) && (launch.is_calm() || !all_calm)
            };
            let own = self.row_where(candidate, point, &in_round)?;
            let best = self.row_where(best.candidate, point, &in_round)?;
            Some(own.spread.median / best.spread.median)
        });
        Some(Ratio {
            peer: best.candidate,
            of_medians: own.spread.median / best.spread.median,
            by_round: Middle::of(by_round),
        })
    }

    /// The threshold of the line probe between near and far cores, if both were seen.
    fn near_below_ns(&self) -> Option<f64> {
        let lines = Middle::of(self.launches.iter().filter_map(Launch::line))?;
        (lines.max > 1.6 * lines.min).then(|| (lines.max * lines.min).sqrt())
    }

    /// The ratio among the launches with near and with far cores, if both were seen.
    pub(crate) fn ratios_by_placement(
        &self,
        candidate: Candidate,
        point: &Point,
    ) -> Vec<(Placement, Ratio)> {
        let Some(threshold) = self.near_below_ns() else { return Vec::new() };
        let ratio = |placement: Placement| {
            let wanted = |launch: &Launch| launch.has(placement, threshold);
            Some((placement, self.ratio_where(candidate, point, &wanted)?))
        };
        [Placement::Near, Placement::Far].into_iter().filter_map(ratio).collect()
    }

    /// Judges Landeck's value at a point by its limits.
    pub(crate) fn verdicts(&self, point: &Point) -> Vec<Verdict> {
        let Some(figure) = Figure::by_name(self.figure) else { return Vec::new() };
        let limits = figure.limits(point, self.machine.processors as u32);
        [(true, limits.must), (false, limits.goal)]
            .into_iter()
            .filter_map(|(must, limit)| self.verdict(point, must, limit?))
            .chain(
                figure
                    .besides(point)
                    .iter()
                    .filter_map(|beside| self.beside_verdict(point, beside)),
            )
            .collect()
    }

    /// Whether one way of ours takes at most so much beside another one.
    fn beside_verdict(&self, point: &Point, beside: &Beside) -> Option<Verdict> {
        self.where_most_ran(|wanted| {
            let other = self.row_where(beside.other, point, wanted)?.spread.median;
            let value = self.row_where(beside.judged, point, wanted)?.spread.median;
            let ratio = self.ratio_between(beside.judged, beside.other, point, wanted)?;
            let [judged, other_words] = beside.words;
            let (limit, what) = match beside.most {
                Most::MoreNs(more) => {
                    (other + more, format!("{judged} {} more than {other_words}", short(more)))
                }
                Most::Times(times) => (
                    times * other,
                    format!("{judged} {times} x {other_words}; it is {}", ratio.words()),
                ),
            };
            Some(Verdict {
                point: point.clone(),
                must: beside.must,
                value,
                limit,
                unit: self.unit_at(point),
                what,
                met: value <= limit,
            })
        })
    }

    /// The candidate of ours that is judged.
    pub(crate) fn own(&self) -> Candidate {
        Figure::by_name(self.figure).map_or(Candidate::Landeck, Figure::own)
    }

    fn verdict(&self, point: &Point, must: bool, limit: Limit) -> Option<Verdict> {
        self.where_most_ran(|wanted| self.verdict_where(point, must, limit, wanted))
    }

    /// Compared are launches with near cores only or with far cores only, whichever are more.
    fn where_most_ran<T>(&self, judge: impl Fn(Wanted<'_>) -> Option<T>) -> Option<T> {
        let Some(threshold) = self.near_below_ns() else { return judge(&|_| true) };
        let count = |placement: Placement| {
            self.launches.iter().filter(|launch| launch.has(placement, threshold)).count()
        };
        let mut placements = [Placement::Near, Placement::Far];
        placements.sort_by_key(|placement| std::cmp::Reverse(count(*placement)));
        let within = |placement| judge(&move |launch: &Launch| launch.has(placement, threshold));
        placements.into_iter().find_map(within).or_else(|| judge(&|_| true))
    }

    fn verdict_where(
        &self,
        point: &Point,
        must: bool,
        limit: Limit,
        wanted: Wanted<'_>,
    ) -> Option<Verdict> {
        let value = self.row_where(self.own(), point, wanted)?.spread.median;
        let (limit, what) = self.limit_where(point, limit, wanted)?;
        Some(Verdict {
            point: point.clone(),
            must,
            value,
            limit,
            unit: self.unit_at(point),
            what,
            met: value <= limit,
        })
    }

    /// The limit as a value, and in words where that value comes from.
    fn limit_where(
        &self,
        point: &Point,
        limit: Limit,
        wanted: Wanted<'_>,
    ) -> Option<(f64, String)> {
        let own = |point: &Point| self.row_where(self.own(), point, wanted);
        let of_best_peer = |factor: f64| {
            let best = self.best_peer_where(self.own(), point, wanted)?;
            Some((factor * best.spread.median, format!("{factor} x {}", best.candidate.name())))
        };
        match limit {
            Limit::Value(limit) => Some((limit, String::new())),
            Limit::OfBestPeer(factor) => of_best_peer(factor),
            Limit::OfBestPeerOrFloor { peer, floor } => {
                let counter = self.row_where(Candidate::Counter, point, wanted).map(|row| {
                    (floor * row.spread.median, format!("{floor} x {}", row.candidate.name()))
                });
                let both = of_best_peer(peer).into_iter().chain(counter);
                both.max_by(|left, right| left.0.total_cmp(&right.0))
            }
            Limit::OfOwnTwo(factor) => {
                let two = own(&Point { n: 2, ..point.clone() })?;
                Some((factor * two.spread.median, format!("{factor} x its own n = 2")))
            }
            Limit::AsProcessesSince(n) => {
                let earlier = own(&Point { n, ..point.clone() })?;
                let factor = f64::from(point.n) / f64::from(n);
                let what = format!("{} x its own n = {n}", short(factor));
                Some((factor * earlier.spread.median, what))
            }
            Limit::BeyondPending(pending, more) => {
                let fewer = own(&Point { pending, ..point.clone() })?;
                let what = format!("{more} more than with {pending} pending");
                Some((fewer.spread.median + more, what))
            }
            Limit::BeyondForm(form, more) => {
                let other = own(&Point { form: form.into(), ..point.clone() })?;
                Some((other.spread.median + more, format!("{more} more than {form}")))
            }
            Limit::TimesForm(form, factor) => {
                let other = own(&Point { form: form.into(), ..point.clone() })?;
                Some((factor * other.spread.median, format!("{factor} x {form}")))
            }
            Limit::OfForm(called, factor) => {
                let other =
                    own(&Point { form: format!("{called}{}", point.form), ..point.clone() })?;
                let what = format!("{} x {called}the same", short(factor));
                Some((factor * other.spread.median, what))
            }
            Limit::OfLine(factor) => {
                let line = own(point)?.line_ns?;
                Some((factor * line.median, format!("{factor} x the cache line")))
            }
        }
    }

    /// The troubles of all launches in words, each once.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for launch in &self.launches {
            if let Some(trouble) = &launch.trouble {
                let line = format!("{}, n = {}: {trouble}", launch.candidate, launch.n);
                if !troubles.contains(&line) {
                    troubles.push(line);
                }
            }
        }
        troubles
    }

    fn values(&self) -> impl Iterator<Item = (&Launch, &LaunchValue)> {
        self.launches
            .iter()
            .flat_map(|launch| launch.values.iter().map(move |value| (launch, value)))
    }
}

impl Ratio {
    /// The ratio of medians, and in brackets the spread of those inside each round.
    pub(crate) fn words(&self) -> String {
        let range = |rounds: &Middle| format!(" ({} .. {})", short(rounds.min), short(rounds.max));
        let rounds = self.by_round.as_ref().map(range).unwrap_or_default();
        format!("{}{rounds}", short(self.of_medians))
    }
}

impl Launch {
    /// The mean of the two probes around the launch.
    pub(crate) fn line(&self) -> Option<f64> {
        self.line_ns.map(|[before, after]| f64::midpoint(before, after))
    }

    /// Whether both probes around it say so.
    fn has(&self, placement: Placement, threshold_ns: f64) -> bool {
        let is_near = |line: &f64| *line < threshold_ns;
        self.line_ns.is_some_and(|lines| match placement {
            Placement::Near => lines.iter().all(is_near),
            Placement::Far => !lines.iter().any(is_near),
        })
    }

    /// Whether others left the processors alone meanwhile.
    pub(crate) fn is_calm(&self) -> bool {
        self.others_share <= DISTURBED_SHARE
    }

    fn at(&self, point: &Point) -> Option<&LaunchValue> {
        self.values.iter().find(|value| value.point == *point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(n: u32) -> Point {
        Point { figure: "crowd".into(), form: String::new(), n, bytes: 8, pending: 0 }
    }

    fn launch(candidate: Candidate, round: usize, n: u32, value: f64, line: f64) -> Launch {
        let value = LaunchValue {
            point: point(n),
            unit: "ns".into(),
            value,
            batches: 1,
            batches_min: value,
            batches_max: value,
        };
        Launch {
            candidate: candidate.name(),
            round,
            n,
            line_ns: Some([line, line]),
            others_share: 0.0,
            values: vec![value],
            trouble: None,
        }
    }

    fn results(launches: Vec<Launch>) -> Results {
        let machine = Machine {
            date: String::new(),
            processor: String::new(),
            processors: 2,
            kernel: String::new(),
            load_before: 0.0,
        };
        Results {
            figure: "crowd",
            title: "",
            machine,
            probes: Vec::new(),
            launches,
            left_out: Vec::new(),
        }
    }

    #[test]
    fn a_ratio_is_taken_inside_each_round() {
        let results = results(vec![
            launch(Candidate::Landeck, 0, 4, 50.0, 50.0),
            launch(Candidate::OpenMpi, 0, 4, 100.0, 50.0),
            launch(Candidate::Landeck, 1, 4, 180.0, 150.0),
            launch(Candidate::OpenMpi, 1, 4, 300.0, 150.0),
            launch(Candidate::Mpich, 1, 4, 900.0, 150.0),
        ]);
        let ratio = results.ratio_to_best_peer(Candidate::Landeck, &point(4)).unwrap();
        assert_eq!(ratio.peer, Candidate::OpenMpi);
        assert_eq!(ratio.of_medians, 115.0 / 200.0);
        assert_eq!(ratio.by_round.unwrap(), Middle { median: 0.55, min: 0.5, max: 0.6 });
        let placements = results.ratios_by_placement(Candidate::Landeck, &point(4));
        assert_eq!(
            placements
                .iter()
                .map(|(placement, ratio)| (*placement, ratio.of_medians))
                .collect::<Vec<_>>(),
            [(Placement::Near, 0.5), (Placement::Far, 0.6)]
        );
    }

    #[test]
    fn a_limit_of_its_own_two_processes() {
        let results = results(vec![
            launch(Candidate::Landeck, 0, 2, 100.0, 50.0),
            launch(Candidate::Landeck, 0, 4, 120.0, 50.0),
        ]);
        let verdicts = results.verdicts(&point(4));
        assert_eq!(
            verdicts.iter().map(|verdict| (verdict.must, verdict.met)).collect::<Vec<_>>(),
            [(true, true), (false, false)]
        );
    }

    #[test]
    fn the_front_is_judged_beside_the_own_interface() {
        let round = |candidate, value| {
            let mut launch = launch(candidate, 0, 2, value, 50.0);
            launch.values[0].point.figure = "round".into();
            launch
        };
        for (through_mpi, met) in [(91.9, true), (92.1, false)] {
            let mut results = results(vec![
                round(Candidate::Landeck, 80.0),
                round(Candidate::LandeckMpi, through_mpi),
            ]);
            results.figure = "round";
            let verdicts = results.verdicts(&Point { figure: "round".into(), ..point(2) });
            assert_eq!(verdicts.iter().map(|verdict| verdict.met).collect::<Vec<_>>(), [met]);
        }
    }

    #[test]
    fn between_hosts_plain_stands_beside_the_best_peer_and_sealed_beside_plain() {
        let small = Point { figure: "hosts_round".into(), ..point(2) };
        let round = |candidate, value| {
            let mut launch = launch(candidate, 0, 2, value, 50.0);
            launch.values[0].point = small.clone();
            launch
        };
        let judged = |plain, sealed| {
            let results = results(vec![
                round(Candidate::LandeckPlain, plain),
                round(Candidate::LandeckMpi, sealed),
                round(Candidate::OpenMpi, 10_000.0),
                round(Candidate::Sockets, 5_000.0),
            ]);
            let results = Results { figure: "hosts_round", ..results };
            let verdicts = results.verdicts(&small).into_iter();
            verdicts.map(|verdict| (verdict.met, verdict.what)).collect::<Vec<_>>()
        };
        let words = ["1 x ompi", "0.8 x ompi", "sealed 1,500 more than plain"].map(str::to_owned);
        let all = |met: [bool; 3]| met.into_iter().zip(words.clone()).collect::<Vec<_>>();
        assert_eq!(judged(7_999.0, 9_498.0), all([true, true, true]));
        assert_eq!(judged(9_999.0, 11_500.0), all([true, false, false]));
        assert_eq!(judged(10_001.0, 10_000.0), all([false, false, true]));
    }

    #[test]
    fn neighbours_in_a_job_on_two_hosts_stand_beside_those_of_one() {
        let at =
            |form: &str| Point { figure: "hosts_neighbours".into(), form: form.into(), ..point(4) };
        let crowd = |form: &str, value| {
            let mut launch = launch(Candidate::LandeckMpi, 0, 4, value, 50.0);
            launch.values[0].point = at(form);
            launch
        };
        for (on_two, met) in [(104.0, [true, true]), (108.0, [true, false]), (111.0, [false; 2])] {
            let launches = vec![crowd("job on one host", 100.0), crowd("job on two hosts", on_two)];
            let results = Results { figure: "hosts_neighbours", ..results(launches) };
            let verdicts = results.verdicts(&at("job on two hosts"));
            assert_eq!(verdicts.iter().map(|verdict| verdict.met).collect::<Vec<_>>(), met);
            assert!(results.verdicts(&at("job on one host")).is_empty());
        }
    }

    #[test]
    fn a_limit_of_the_same_by_hand() {
        let packing = |form: &str, value| {
            let mut launch = launch(Candidate::LandeckMpi, 0, 1, value, 50.0);
            launch.values[0].point =
                Point { figure: "packing".into(), form: form.into(), ..point(1) };
            launch
        };
        let results = results(vec![packing("vector", 111.0), packing("by hand: vector", 100.0)]);
        let results = Results { figure: "packing", ..results };
        let of = |form: &str| Point { figure: "packing".into(), form: form.into(), ..point(1) };
        assert!(results.verdicts(&of("vector"))[0].met);
        assert!(results.verdicts(&of("by hand: vector")).is_empty());
    }

    /// Whether 16 processes on two processors meet their limits, must before goal.
    fn crowded_reduce(own: f64, peer: f64, counter: f64) -> Vec<(bool, f64, String)> {
        let reduce = |candidate, value| {
            let mut launch = launch(candidate, 0, 16, value, 50.0);
            launch.values[0].point = Point { figure: "reduce".into(), ..point(16) };
            launch
        };
        let mut results = results(vec![
            reduce(Candidate::Landeck, own),
            reduce(Candidate::IntelMpi, peer),
            reduce(Candidate::Counter, counter),
        ]);
        results.figure = "reduce";
        let verdicts = results.verdicts(&Point { figure: "reduce".into(), ..point(16) });
        verdicts.into_iter().map(|verdict| (verdict.met, verdict.limit, verdict.what)).collect()
    }

    #[test]
    fn where_processes_take_turns_the_floor_bounds_the_goal() {
        assert_eq!(
            crowded_reduce(20.0, 40.0, 12.0),
            [(true, 32.0, "0.8 x impi".to_owned()), (true, 20.0, "0.5 x impi".to_owned())]
        );
        assert_eq!(
            crowded_reduce(31.0, 40.0, 24.0),
            [(true, 32.0, "0.8 x impi".to_owned()), (false, 30.0, "1.25 x counter".to_owned())]
        );
    }

    #[test]
    fn growth_is_measured_from_where_the_tables_end() {
        let grown = |n, value| {
            let mut launch = launch(Candidate::Landeck, 0, n, value, 50.0);
            launch.values[0].point.figure = "growth".into();
            launch
        };
        let mut results = results(vec![grown(64, 10.0), grown(128, 20.0), grown(256, 41.0)]);
        results.figure = "growth";
        let met = |n| results.verdicts(&Point { figure: "growth".into(), ..point(n) })[0].met;
        assert_eq!((met(128), met(256)), (true, false));
    }
}
