//! Measures a figure in rounds: in each round every candidate runs once, one after the other in an
//! order that rotates, with a cache-line probe around each launch.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::attendance::{Attendance, attendance};
use crate::candidate::{Candidate, Places};
use crate::cluster::Cluster;
use crate::disturbance::{patiently, watched};
use crate::figure::machine::{MANY, MEMORY, SHARE};
use crate::figure::{Figure, FigurePart, Method, Who};
use crate::launch::{self, BusyLoops};
use crate::machine::Machine;
use crate::over_hosts;
use crate::probe;
use crate::results::{Launch, LaunchValue, LeftOut, Results};
use crate::sample::{Point, Sample};
use crate::standing::{DaemonUse, Standing, repeated};
use crate::starts;
use crate::statistics::{Middle, mean, median};

/// Jobs after which the daemons of a machine are looked at, unless somebody asks for another number.
pub(crate) const JOBS: u32 = 1_000;
/// For so long a machine is left alone before its daemons are looked at.
const SETTLING: Duration = Duration::from_secs(3);
/// For so long the processor time of daemons at rest is counted.
const RESTING: Duration = Duration::from_secs(10);
/// A start that takes longer hangs.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    /// Batches in each launch.
    pub(crate) batches: usize,
    /// After so long a launch begins no further batch of a point.
    pub(crate) limit_s: f64,
    /// A launch of a few processes that takes longer hangs.
    pub(crate) timeout: Duration,
    /// Whole launches for one value of the wall clock.
    pub(crate) starts: usize,
    /// For so long a disturbed launch is repeated.
    pub(crate) patience: Duration,
    /// Data are written anew before each operation.
    pub(crate) is_new: bool,
    /// Jobs over hosts run in a machine that stands as well.
    pub(crate) in_machine: bool,
    /// Jobs after which the daemons of a machine are looked at.
    pub(crate) jobs: u32,
}

impl Effort {
    pub(crate) fn full(rounds: usize) -> Effort {
        Effort {
            rounds,
            batches: 20,
            limit_s: 5.0,
            timeout: Duration::from_secs(120),
            starts: 5,
            patience: Duration::from_secs(10),
            is_new: false,
            in_machine: false,
            jobs: JOBS,
        }
    }

    pub(crate) fn quick(rounds: usize) -> Effort {
        Effort {
            rounds,
            batches: 5,
            limit_s: 1.0,
            timeout: Duration::from_secs(30),
            starts: 2,
            patience: Duration::ZERO,
            ..Effort::full(rounds)
        }
    }

    /// A launch of so many processes that takes longer hangs: each has to be started, to be switched
    /// in for every operation, and to be ended.
    fn timeout_of(&self, n: u32) -> Duration {
        const PER_PROCESS: Duration = Duration::from_millis(100);
        self.timeout + n * PER_PROCESS
    }
}

/// Measures the figure for all of the candidates that can take part.
pub(crate) fn measure(
    figure: &'static Figure,
    candidates: &[Candidate],
    places: &Places,
    effort: &Effort,
) -> Results {
    let mut launches = Vec::new();
    let machine = Machine::here();
    let takes_part = |candidate: Candidate, part: &FigurePart| {
        let (processors, in_machine) = (places.processors, effort.in_machine);
        attendance(candidate, figure, part, processors, in_machine) == Attendance::TakesPart
    };
    let present =
        |part| candidates.iter().filter(|&&candidate| takes_part(candidate, part)).count();
    let progress =
        progress_bar(figure.name, effort.rounds * figure.parts.iter().map(present).sum::<usize>());
    for round in 0..effort.rounds {
        let mut order = candidates.to_vec();
        order.rotate_left(round % candidates.len().max(1));
        for part in figure.parts {
            for &candidate in order.iter().filter(|candidate| takes_part(**candidate, part)) {
                progress.set_message(format!(
                    "round {}: {}, n = {}",
                    round + 1,
                    candidate.name(),
                    part.n
                ));
                let turn = Turn { figure, part, candidate, places, effort };
                let launch = patiently(effort.patience, || Ok::<_, Infallible>(turn.once(round)));
                launches.extend(launch);
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    Results {
        figure: figure.name,
        title: figure.title,
        machine,
        probes: probe::all(),
        launches,
        left_out: left_out(figure, candidates, places.processors),
    }
}

/// The candidates that were present but not measured, with the reasons.
fn left_out(figure: &Figure, candidates: &[Candidate], processors: u32) -> Vec<LeftOut> {
    let mut left_out: Vec<LeftOut> = Vec::new();
    for &candidate in candidates {
        for part in figure.parts {
            let found = attendance(candidate, figure, part, processors, false);
            let Attendance::LeftOut(why) = found else { continue };
            match left_out.last_mut() {
                Some(last) if last.candidate == candidate.name() && last.why == why => {
                    last.processes.push(part.n);
                }
                _ => left_out.push(LeftOut {
                    candidate: candidate.name(),
                    processes: vec![part.n],
                    why,
                }),
            }
        }
    }
    left_out
}

/// Counts launches.
pub(crate) fn progress_bar(name: &'static str, launches: usize) -> ProgressBar {
    let bar = ProgressBar::new(launches as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{prefix} [{bar:30}] {pos} of {len} launches  {msg}")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(name);
    bar
}

/// A candidate's turn at a part of a figure.
#[derive(Clone, Copy)]
struct Turn<'a> {
    figure: &'static Figure,
    part: &'a FigurePart,
    candidate: Candidate,
    places: &'a Places,
    effort: &'a Effort,
}

/// The samples of a launch, and why they should not be trusted, if so.
type Outcome = (Vec<Sample>, Option<String>);

impl Turn<'_> {
    /// The share of the processors that others used, and the launch.
    fn once(self, round: usize) -> (f64, Launch) {
        let Turn { figure, part, candidate, places, .. } = self;
        let standing = self.standing();
        let (others_share, (line_ns, (samples, trouble))) = watched(|| {
            let before = probe::line_ns();
            let outcome = match (figure.method_of(part), candidate) {
                _ if let Err(why) = &standing => (Vec::new(), Some(why.clone())),
                (Method::Repeated, _) => self.repeated(),
                (Method::BeyondRemoteShell, _) => self.beyond_remote_shell(),
                (Method::WholeLaunches, _) => self.starts(),
                (Method::HostAdded, _) => self.host_added(),
                (Method::AtRest, _) => self.at_rest(),
                (Method::BeyondBare, Candidate::Bare) => self.bare_memory(),
                (Method::Inside | Method::BeyondBare, _) => self.inside(),
                (Method::WallClock, _) => self.wall_clock(),
            };
            (before.zip(probe::line_ns()).map(|(before, after)| [before, after]), outcome)
        });
        drop(standing);
        let summary = if figure.method == Method::BeyondBare { mean } else { median };
        let values = summarise(samples, summary);
        let trouble = trouble.or_else(|| values.is_empty().then(|| "printed no value".to_owned()));
        if let Some(cluster) = places.cluster.as_ref().filter(|_| trouble.is_some()) {
            cluster.end();
        }
        let (candidate, n) = (candidate.name(), part.n);
        (others_share, Launch { candidate, round, n, line_ns, others_share, values, trouble })
    }

    /// The machine in which a candidate runs, for its turn alone: the daemons of others would be counted with those of a
    /// job that has its own.
    fn standing(&self) -> Result<Option<Standing<'_>>, String> {
        let Turn { figure, part, candidate, places, .. } = self;
        match &places.cluster {
            Some(cluster)
                if *candidate == Candidate::LandeckMachine
                    && figure.method_of(part) != Method::HostAdded =>
            {
                Standing::start(cluster, places, part.hosts).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The hosts, for a figure that has some.
    fn cluster(&self) -> Result<&Cluster, String> {
        self.places.cluster.as_deref().ok_or_else(|| "there are no hosts".to_owned())
    }

    fn inside(self) -> Outcome {
        let Turn { figure, part, candidate, places, effort } = self;
        let mut more = Vec::new();
        if matches!(figure.method, Method::Inside | Method::Repeated) {
            more.push(format!("batches={}", effort.batches));
            more.push(format!("limit_s={}", effort.limit_s));
            more.extend(effort.is_new.then(|| "new=1".to_owned()));
        }
        match self.run(&places.program(candidate, figure.program), more) {
            Ok(outcome) => (named(outcome.samples, figure, part), outcome.trouble),
            Err(why) => (Vec::new(), Some(why)),
        }
    }

    /// Runs a program here, or on the hosts, with the arguments of the part and some more.
    fn run(self, program: &Path, more: Vec<String>) -> Result<launch::Outcome, String> {
        let Turn { part, candidate, places, effort, .. } = self;
        let own = part.arguments.iter().map(|&argument| argument.to_owned());
        let arguments: Vec<String> = own.chain(more).collect();
        let mut command = match &places.cluster {
            Some(cluster) => {
                over_hosts::command(cluster, places, candidate, part, program, &arguments)?
            }
            None => places.command(candidate, part.n, program, &arguments),
        };
        let _busy = BusyLoops::start(part.busy).map_err(|error| error.to_string())?;
        Ok(launch::run(&mut command, effort.timeout_of(part.n)))
    }

    /// The samples of several launches, until one goes wrong.
    fn repeated(self) -> Outcome {
        let mut all = Vec::new();
        for _ in 0..self.effort.starts {
            let (samples, trouble) = self.inside();
            all.extend(samples);
            if trouble.is_some() {
                return (all, trouble);
            }
        }
        (all, None)
    }

    /// Whole launches, each just after a remote shell whose time it is less. A launch that is faster than the shell is
    /// possible, and then its value is below zero.
    fn beyond_remote_shell(self) -> Outcome {
        self.whole_launches(self.effort.starts + 1, || {
            let shell = self.cluster()?.remote_shell()?;
            Ok(self.launch_s()? - shell.as_secs_f64())
        })
    }

    /// Whole launches by a program on the first host, so that the way onto it does not count.
    fn starts(self) -> Outcome {
        let Turn { figure, part, candidate, places, effort } = self;
        let timeout =
            START_TIMEOUT.min(effort.timeout) + effort.timeout_of(part.n) - effort.timeout;
        // Many short ones, since the kernel counts the time that others used in ticks.
        let count = (effort.starts + 1) * if part.n < MANY { 4 } else { 1 };
        let run = |cluster: &Cluster| {
            let program = match figure.who {
                _ if part.runs_true => "true".into(),
                Who::InMachine => places.points(Candidate::Landeck),
                _ => places.points(candidate),
            };
            let arguments: Vec<String> =
                part.arguments.iter().map(|&argument| argument.to_owned()).collect();
            let starts = |words| starts::words(count, timeout, words);
            let mut command = over_hosts::wrapped(
                cluster, places, candidate, part, &program, &arguments, starts,
            )?;
            // Each of them has its time, and the first one does not count.
            Ok(launch::run(&mut command, timeout * (count as u32 + 2)))
        };
        match self.cluster().and_then(run) {
            Ok(outcome) => {
                let values = outcome.samples.into_iter().map(|sample| sample.value);
                (values.map(|value| self.sample("ms", value)).collect(), outcome.trouble)
            }
            Err(why) => (Vec::new(), Some(why)),
        }
    }

    /// Hosts that are added, each to a machine that was started for it.
    fn host_added(self) -> Outcome {
        self.whole_launches(self.effort.starts + 1, || {
            let cluster = self.cluster()?;
            let standing = Standing::start(cluster, self.places, 1)?;
            let shell = cluster.remote_shell()?;
            Ok(standing.add("n2")?.as_secs_f64() - shell.as_secs_f64())
        })
    }

    /// The founder's daemon and one of another host, after jobs with a process on each host.
    fn at_rest(self) -> Outcome {
        match self.daemons_at_rest() {
            Ok(samples) => (samples, None),
            Err(why) => (Vec::new(), Some(why)),
        }
    }

    fn daemons_at_rest(self) -> Result<Vec<Sample>, String> {
        let Turn { part, candidate, places, effort, .. } = self;
        let cluster = self.cluster()?;
        let jobs = |words: Vec<String>| repeated(effort.jobs, &words);
        let program = Path::new("true");
        let mut command =
            over_hosts::wrapped(cluster, places, candidate, part, program, &[], jobs)?;
        let outcome =
            launch::run(&mut command, START_TIMEOUT + effort.jobs * Duration::from_secs(1));
        if let Some(trouble) = outcome.trouble {
            return Err(trouble);
        }
        thread::sleep(SETTLING);
        let look = || [0, 1].map(|host| (Instant::now(), DaemonUse::of(cluster, host)));
        let before = look();
        thread::sleep(RESTING);
        let mut samples = Vec::new();
        for ((who, (since, before)), (until, after)) in
            ["founder", "another host"].into_iter().zip(before).zip(look())
        {
            let after = after?;
            let share = after.share_since(&before?, until - since);
            for (form, unit, value) in [(SHARE, "%", share), (MEMORY, "MiB", after.resident_mib())]
            {
                let mut sample = self.sample(unit, value);
                sample.point.form = format!("{form}, {who}");
                samples.push(sample);
            }
        }
        Ok(samples)
    }

    fn wall_clock(self) -> Outcome {
        let Turn { part, candidate, places, .. } = self;
        self.whole_launches(self.effort.starts, || match candidate {
            Candidate::Bare => bare_starts(part.n, &places.points(candidate)),
            _ => self.launch_s(),
        })
    }

    /// The time of one launch.
    fn launch_s(self) -> Result<f64, String> {
        let outcome = self.run(&self.places.points(self.candidate), Vec::new())?;
        outcome.trouble.map_or(Ok(outcome.wall.as_secs_f64()), Err)
    }

    /// The times of several launches, until one goes wrong.
    fn whole_launches(self, launches: usize, one_s: impl Fn() -> Result<f64, String>) -> Outcome {
        let mut samples = Vec::new();
        for _ in 0..launches {
            match one_s() {
                Ok(launch_s) => samples.push(self.sample("ms", launch_s * 1e3)),
                Err(trouble) => return (samples, Some(trouble)),
            }
        }
        (samples, None)
    }

    /// The memory of n programs without message passing that run at once.
    fn bare_memory(self) -> Outcome {
        match bare_shares(self.part.n, &self.places.peers.join("bare")) {
            Ok(shares) => {
                (shares.into_iter().map(|share| self.sample("KiB", share)).collect(), None)
            }
            Err(error) => (Vec::new(), Some(format!("bare program: {error}"))),
        }
    }

    /// A sample of a whole launch.
    fn sample(self, unit: &str, value: f64) -> Sample {
        let (figure, n) = (self.figure.name.to_owned(), self.part.n);
        let form = self.part.form.unwrap_or_default().to_owned();
        let point = Point { figure, form, n, bytes: 0, pending: 0 };
        Sample { point, unit: unit.to_owned(), value }
    }
}

/// One value for each point.
pub(crate) fn summarise(
    samples: Vec<Sample>,
    summary: fn(&[f64]) -> Option<f64>,
) -> Vec<LaunchValue> {
    let mut by_point: BTreeMap<Point, (String, Vec<f64>)> = BTreeMap::new();
    for sample in samples {
        by_point
            .entry(sample.point)
            .or_insert_with(|| (sample.unit, Vec::new()))
            .1
            .push(sample.value);
    }
    by_point
        .into_iter()
        .filter_map(|(point, (unit, values))| {
            let spread = Middle::of(values.iter().copied())?;
            Some(LaunchValue {
                point,
                unit,
                value: summary(&values)?,
                batches: values.len(),
                batches_min: spread.min,
                batches_max: spread.max,
            })
        })
        .collect()
}

/// Samples under the names by which the benchmark knows them: one program may serve several figures.
fn named(mut samples: Vec<Sample>, figure: &Figure, part: &FigurePart) -> Vec<Sample> {
    for sample in &mut samples {
        figure.name.clone_into(&mut sample.point.figure);
        if let Some(form) = part.form {
            form.clone_into(&mut sample.point.form);
        }
    }
    samples
}

/// The floor: n bare programs, started one after the other, and waited for.
fn bare_starts(n: u32, program: &Path) -> Result<f64, String> {
    let start = Instant::now();
    let children: Result<Vec<Child>, _> = (0..n).map(|_| Command::new(program).spawn()).collect();
    let ended = children
        .and_then(|children| children.into_iter().try_for_each(|mut child| child.wait().map(drop)));
    let ended = ended.map(|()| start.elapsed().as_secs_f64());
    ended.map_err(|error| format!("{}: {error}", program.display()))
}

fn bare_shares(n: u32, program: &Path) -> std::io::Result<Vec<f64>> {
    let start = || Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut children = (0..n).map(|_| start()).collect::<std::io::Result<Vec<Child>>>()?;
    let mut outputs: Vec<_> =
        children.iter_mut().filter_map(|child| child.stdout.take().map(BufReader::new)).collect();
    let mut line = String::new();
    for output in &mut outputs {
        output.read_line(&mut line)?;
    }
    let mut shares = Vec::new();
    for (child, output) in children.iter_mut().zip(&mut outputs) {
        if let Some(input) = &mut child.stdin {
            input.write_all(b"measure\n")?;
        }
        line.clear();
        output.read_line(&mut line)?;
        shares.extend(line.trim().parse::<f64>().ok());
    }
    for child in &mut children {
        drop(child.stdin.take());
        child.wait()?;
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_point_become_one_value() {
        let sample = |value| Sample {
            point: Point {
                figure: "round".into(),
                form: String::new(),
                n: 2,
                bytes: 8,
                pending: 0,
            },
            unit: "ns".into(),
            value,
        };
        let values = summarise(vec![sample(1.0), sample(9.0), sample(2.0)], median);
        assert_eq!(values.len(), 1);
        assert_eq!((values[0].value, values[0].batches, values[0].batches_max), (2.0, 3, 9.0));
    }

    #[test]
    fn samples_get_the_names_of_their_figure() {
        let point =
            Point { figure: "crowd".into(), form: String::new(), n: 4, bytes: 8, pending: 0 };
        let sample = Sample { point, unit: "ns".into(), value: 1.0 };
        let figure = Figure::by_name("hosts_neighbours").unwrap();
        let of =
            |part: usize| named(vec![sample.clone()], figure, &figure.parts[part]).remove(0).point;
        assert_eq!(
            (of(0).figure.as_str(), of(0).form.as_str()),
            ("hosts_neighbours", "job on one host")
        );
        assert_eq!(of(1).form, "job on two hosts");
    }

    #[test]
    fn whoever_is_left_out_is_named_once_for_each_reason() {
        let figure = Figure::by_name("barrier").unwrap();
        let left_out = left_out(figure, &[Candidate::Landeck, Candidate::Mpich], 2);
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].candidate, "mpich");
        assert_eq!(left_out[0].processes, [4, 8, 16, 32, 64]);
    }

    #[test]
    fn bare_programs_that_are_not_there_are_named() {
        let trouble = bare_starts(2, Path::new("/nonexistent/program"));
        assert!(trouble.unwrap_err().starts_with("/nonexistent/program"));
    }
}
