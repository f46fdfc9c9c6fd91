//! `landeck simulate`: predicts the time of an operation on a modelled platform, with the product's own plans and
//! executor. Nothing is started.

mod chart;
mod compare;
mod deaths;
mod explain;
mod map;
pub(crate) mod measured;
mod meter;
mod page;
mod paper;
mod sizes;
mod study;
mod table;

use crate::plan::operation_value;
use crate::tune::hosts::TunedHosts;
use crate::tune::{self, Found, Share, TuneError};
use crate::values::whole;
use chart::svg;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use compare::{LAUNCHES, Passes, line_ps_now};
use landeck::tuning::{self, TuningError};
use landeck_collectives::preset::NAMES;
use landeck_collectives::{Calibration, CostParameters, Operation, Preset, Task};
use landeck_host::file::{self, read_within};
use landeck_host::say::{self, SayError, complain};
use landeck_simulator::platform::{Host, library};
use landeck_simulator::{
    Calls, Death, Faults, Placement, Platform, PlatformError, Setting, SimulationError, Work,
    run as simulated,
};
use map::Map;
use meter::Meter;
use page::Section;
use sizes::{Numbers, numbers};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use study::{Along, Ground, Series, Study};

/// Simulate a collective operation on a modelled cluster.
///
/// The members' plans are those of a real group, and the real executor runs them on simulated processors, networks
/// and time. The table shows microseconds from the first call to the last return. A command line gives the same
/// figures on every machine.
#[derive(Debug, Args)]
#[command(after_help = notes())]
pub(crate) struct SimulateArguments {
    /// The operation; or `message`, from one process to another
    #[arg(value_name = "OPERATION", value_parser = subject())]
    subject: Subject,
    /// One or more architectures, compared side by side [default: all]
    #[arg(short, long, value_name = "NAME,...", value_delimiter = ',')]
    architecture: Vec<Preset>,
    /// Number of processes, or several: 24,48,96 or 2..4096 [default: 24, or one for each of --hosts]
    #[arg(
        short = 'n',
        long = "np",
        value_name = "N,...",
        value_parser = numbers(1, PROCESSES_MAX),
        allow_negative_numbers = true
    )]
    processes: Option<Numbers>,
    /// Number of clusters of the members, as even as possible, or several numbers [default: one for each host]
    #[arg(
        long,
        value_name = "N,...",
        value_parser = numbers(1, PROCESSES_MAX),
        allow_negative_numbers = true
    )]
    clusters: Option<Numbers>,
    /// Hosts and network: a name below, or a platform file
    #[arg(long, value_name = "NAME|FILE", default_value = "ethernet10")]
    platform: String,
    /// Processes on each host [default: one for each of its processors]
    #[arg(long, value_name = "N", value_parser = whole(1, 65_536), allow_negative_numbers = true)]
    per_host: Option<u32>,
    /// Place the processes round-robin on the hosts
    #[arg(long, conflicts_with = "per_host")]
    spread: bool,
    /// Bytes of data: 4,40K or 4..40K, which doubles from 4 to 40,000. In gather, scatter, allgather
    /// and alltoall for each member, else all
    #[arg(
        long,
        value_name = "N,...",
        default_value = "4..40K",
        value_parser = numbers(0, BYTES_MAX),
        allow_negative_numbers = true
    )]
    sizes: Numbers,
    /// Cut the data into this many pipelined segments
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = whole(1, 1024),
        allow_negative_numbers = true
    )]
    segments: u32,
    /// The member that the data come from or go to
    #[arg(
        long,
        value_name = "MEMBER",
        default_value_t = 0,
        value_parser = whole(0, u32::MAX),
        allow_negative_numbers = true
    )]
    root: u32,
    /// Show the critical path of one run, message by message
    #[arg(long, conflicts_with_all = ["out", "map", "paper", "measured"])]
    explain: bool,
    /// Also measure, and compare: on this host with --platform host, up to 32 processes, or on --hosts. The exit code
    /// is 1 if an operation is off by more than 25%, or a message by more than 10%
    #[arg(long, conflicts_with_all = ["out", "map", "paper", "per_host", "spread"])]
    measured: bool,
    /// With --measured: the hosts to measure, as `landeck run --host` takes them, with one process on each
    #[arg(long, value_name = "HOST,...", requires = "measured", conflicts_with = "platform")]
    hosts: Option<String>,
    /// With --hosts: the command that reaches another host, in place of ssh
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    rsh: Option<String>,
    /// Draw the fastest architecture by number of processes and size, into --out
    #[arg(long, requires = "out")]
    map: bool,
    /// Simulate the whole grid of the paper of 2005: its architectures, groups, processes and sizes
    #[arg(long, conflicts_with_all = ["architecture", "processes", "clusters", "map"])]
    paper: bool,
    /// Write the page index.html and its pictures (SVG) into this directory
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Delay each event by a random 0 to PERCENT percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0,
        value_parser = whole(0, 1000),
        allow_negative_numbers = true
    )]
    jitter: u32,
    /// Lose N of a million messages between hosts; they are sent again after 200 ms
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = whole(0, 500_000),
        allow_negative_numbers = true
    )]
    loss: u32,
    /// Kill a member at a time after all have called, and show the outcome of the others: 3@12us, or several
    #[arg(long, value_name = "MEMBER@TIME,...", value_delimiter = ',', conflicts_with_all = ["explain", "out", "map", "paper", "measured"])]
    kill: Vec<Death>,
    /// Seed of all randomness: the same seed gives the same run
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = seed, allow_negative_numbers = true)]
    seed: u64,
}

/// The exit code if a simulated time is too far from the measured one.
const BEYOND: u8 = 1;
/// The default number of processes.
const USUAL_PROCESSES: u64 = 24;
/// The most processes.
const PROCESSES_MAX: u64 = 65_536;
/// The longest platform file.
const PLATFORM_BYTES_MAX: usize = 1 << 20;
/// The most data: what a host can hold.
const BYTES_MAX: u64 = 1 << 40;
/// The jitter in simulated measurements. Without it, members that wait for each other could run in step forever,
/// which no machine does.
const MEASURED_JITTER_PERMILLE: u32 = 50;
/// No launch begins after this time if the processors move.
const MEASURED_MAX: Duration = Duration::from_secs(90);
/// The least time before TCP sends again, as in Linux.
const RESEND_PS: u64 = 200_000_000_000;

/// A simulation that cannot be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulateError {
    #[error("--platform: {0}")]
    Platform(#[from] PlatformError),
    #[error(
        "--platform: cannot read {path}: {error}. Give a file, or one of the names of `landeck simulate --help`."
    )]
    Read { path: String, error: io::Error },
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    #[error(
        "--clusters {clusters}: that is more than -n {processes} says. Give at most as many clusters as processes."
    )]
    Clusters { clusters: u64, processes: u64 },
    #[error("--root {root}: the group has {size} members, 0 to {}. Choose one of them.", size - 1)]
    Root { root: u32, size: u64 },
    #[error("{option}: {operation} {what}. Leave the option out.")]
    Senseless { option: &'static str, operation: Operation, what: &'static str },
    #[error(
        "{option} shows one run, and this line asks for {runs}: give one --architecture, one -n, one of \
         --clusters and one of --sizes."
    )]
    OneRun { option: &'static str, runs: usize },
    #[error("--kill {member}: the group has {size} members, 0 to {}. Choose one of them.", size - 1)]
    Kill { member: u32, size: u64 },
    #[error(
        "--paper shows broadcasts, as the paper of 2005 has them. Write `landeck simulate broadcast --paper`."
    )]
    Paper,
    #[error(
        "--measured: what is measured can be compared with --platform host, or with --hosts a,b. Add one of them."
    )]
    Elsewhere,
    #[error(
        "-n {processes}: --hosts names {hosts}, which take one process each. Name more hosts, or give fewer."
    )]
    FewHosts { processes: u64, hosts: u64 },
    #[error(
        "--measured -n {processes}: the model is made for up to 32 processes on this host. Give fewer."
    )]
    Crowd { processes: u64 },
    #[error(
        "--measured: {operation} is not among what is measured. Choose barrier, broadcast, reduce, gather, scatter, allgather, allreduce, alltoall, or message."
    )]
    Unmeasured { operation: Operation },
    #[error(
        "message: -n, --architecture, --clusters, --root, --segments, --kill, --explain, --paper and --map do not \
         apply to one message. Leave them out."
    )]
    Message,
    #[error(transparent)]
    Measured(#[from] measured::MeasuredError),
    #[error(transparent)]
    Tune(#[from] TuneError),
    #[error("cannot write {path}: {error}. Check the folder and its permissions.")]
    Write { path: String, error: io::Error },
    #[error(transparent)]
    Say(#[from] SayError),
}

/// A simulation with the figures of one distance of the processors, and the times measured at it.
struct Compared {
    found: Found,
    platform: Platform,
    studies: Vec<Study>,
    passes: Passes,
}

impl SimulateArguments {
    /// Simulates, prints the tables, and writes page and pictures.
    ///
    /// With --measured the exit code says whether all times are close to the measured ones.
    pub(crate) fn run(&self) -> Result<ExitCode, SimulateError> {
        self.check()?;
        if self.measured {
            return self.compare();
        }
        self.simulate().map(|()| ExitCode::SUCCESS)
    }

    fn simulate(&self) -> Result<(), SimulateError> {
        let platform = platform(&self.platform)?;
        let faults = self.faults(10 * self.jitter);
        let ground = self.ground(&platform, &faults, Calls::AtOnce, 1);
        if let Some(note) = self.note_of_one_host(&platform) {
            complain(format_args!("landeck: {note}"));
        }
        // A run may take long, so an unwritable directory is reported before.
        self.out.as_deref().map_or(Ok(()), make_directory)?;
        if self.explain || !self.kill.is_empty() {
            return self.tell_one(&ground);
        }
        let studies = self.simulated(&ground)?;
        self.tell(&ground, &studies)
    }

    /// A note that the platform's network is not used, although no option asked for that.
    fn note_of_one_host(&self, platform: &Platform) -> Option<String> {
        let most = match self.subject {
            Subject::Message => 2,
            Subject::Operation(_) => self.processes_max(),
        };
        let is_asked = self.spread || self.per_host.is_some() || self.paper;
        let has_network = platform.network.is_some() && platform.hosts() > 1;
        let fits = most <= u64::from(platform.host.processors);
        (has_network && fits && most > 1 && !is_asked).then(|| {
            format!(
                "{most} processes have room on one host of {}, so no network is used; --spread puts each on a \
                 host of its own",
                platform.name
            )
        })
    }

    /// Simulates all studies.
    fn simulated(&self, ground: &Ground<'_>) -> Result<Vec<Study>, SimulateError> {
        let mut studies = if self.paper { paper::studies() } else { self.studies(ground) };
        let mut meter = Meter::new("simulate", studies.iter().map(Study::runs).sum());
        studies.iter_mut().try_for_each(|study| study.simulate(ground, &mut meter))?;
        meter.finish();
        Ok(studies)
    }

    /// Measures figures, simulates with them, measures the operations, and prints the differences. It repeats that
    /// for each distance of the processors, until one has enough launches.
    fn compare(&self) -> Result<ExitCode, SimulateError> {
        let began = Instant::now();
        let mut permille = 10 * self.jitter;
        if self.subject != Subject::Message && permille == 0 {
            permille = MEASURED_JITTER_PERMILLE;
        }
        let faults = self.faults(permille);
        let mut distances: Vec<Compared> = Vec::new();
        loop {
            let now = distances.first().map(|one| line_ps_now(one.found.figures.line_ps));
            let is_now = |one: &Compared| now.is_some_and(|line_ps| one.passes.is_of(line_ps));
            let at = match distances.iter().position(is_now) {
                Some(at) => at,
                None => {
                    let new = self.compared(&faults)?;
                    // They may be back at an earlier distance.
                    let line_ps = new.found.figures.line_ps;
                    let same = distances.iter().position(|one| one.passes.is_of(line_ps));
                    same.unwrap_or_else(|| {
                        distances.push(new);
                        distances.len() - 1
                    })
                }
            };
            let Compared { platform, studies, passes, .. } = &mut distances[at];
            let ground = self.ground_measured(platform, &faults);
            if passes.go_on(self.subject.name(), &ground, studies)?
                || began.elapsed() > MEASURED_MAX
            {
                break;
            }
        }
        let has_any = distances.iter().any(|one| one.passes.has_any());
        // A distance that lasted for a moment says little.
        let has_enough = distances.iter().any(|one| one.passes.is_enough());
        let mut is_met = has_any;
        for Compared { found, studies, passes, .. } in &distances {
            if passes.has_any() || !has_any {
                let verdict = passes.verdict(studies);
                let counts = passes.is_enough() || !has_enough;
                let rest =
                    if counts { "" } else { "There were too few launches for that to count.\n" };
                say(&(passes.text(studies) + &verdict.text() + rest))?;
                compare::busy(found).map_or(Ok(()), |trouble| say(&trouble))?;
                is_met &= verdict.is_met() || !counts;
            }
        }
        Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::from(BEYOND) })
    }

    /// Measures figures and simulates with them.
    fn compared(&self, faults: &Faults) -> Result<Compared, SimulateError> {
        let (found, mut platform) = match self.tuned_hosts() {
            Some(hosts) => {
                let platform = tune::platform::measured(&hosts)?;
                let Host { mut figures, details, .. } = platform.host;
                // A job's figures are of the day of `landeck tune`, and the distance is compared with that of now.
                figures.line_ps = line_ps_now(figures.line_ps);
                (Found { figures, details, share: Share::WHOLE }, platform)
            }
            None => {
                let found = tune::measured()?;
                (found, host("this host, with figures measured just now", &found))
            }
        };
        if self.subject == Subject::Message {
            platform.host.details.call_ps = 0; // nobody calls an operation
        }
        let studies = self.simulated(&self.ground_measured(&platform, faults))?;
        let options = self.tuned_hosts().map_or_else(Vec::new, |hosts| hosts.options());
        let passes = Passes::new(self.subject.name(), &studies, &found, options);
        Ok(Compared { found, platform, studies, passes })
    }

    /// The settings of a simulated measurement.
    fn ground_measured<'a>(&self, platform: &'a Platform, faults: &'a Faults) -> Ground<'a> {
        if self.subject == Subject::Message {
            return self.ground(platform, faults, Calls::AtOnce, 1);
        }
        let operation = self.operation();
        let (rounds, calls) = (measured::batches(operation), measured::calls(operation));
        // The simulated barriers and reductions of a measurement go over the board of one host.
        let calls = match self.hosts {
            Some(_) if operation.has_root() => Calls::BeforeBarriers(measured::CALLS),
            Some(_) => Calls::Repeated(measured::CALLS),
            None => Calls::Measured { rounds, calls },
        };
        self.ground(platform, faults, calls, LAUNCHES)
    }

    fn faults(&self, jitter_permille: u32) -> Faults {
        Faults {
            seed: self.seed,
            jitter_permille,
            loss_per_million: self.loss,
            resend_ps: RESEND_PS,
            deaths: self.kill.clone(),
        }
    }

    fn ground<'a>(
        &self,
        platform: &'a Platform,
        faults: &'a Faults,
        calls: Calls,
        launches: u32,
    ) -> Ground<'a> {
        let operation = self.operation();
        let task = Task { root: self.root, segments: self.segments, ..Task::new(operation) };
        let placement = match (self.per_host, self.spread) {
            _ if self.hosts.is_some() => Placement::PerHost(1),
            (Some(per_host), _) => Placement::PerHost(per_host),
            (None, true) => Placement::Spread,
            (None, false) => Placement::Usual,
        };
        Ground { task, platform, placement, calls, faults, launches }
    }

    /// The hosts to measure, if several are.
    fn tuned_hosts(&self) -> Option<TunedHosts> {
        let list = self.hosts.clone()?;
        Some(TunedHosts { list, rsh: self.rsh.clone(), save: None })
    }

    fn processes(&self) -> Vec<u64> {
        let usual = self.tuned_hosts().map_or(USUAL_PROCESSES, |hosts| hosts.count());
        self.processes.as_ref().map_or_else(|| vec![usual], |processes| processes.0.clone())
    }

    fn processes_max(&self) -> u64 {
        self.processes().into_iter().max().unwrap_or(USUAL_PROCESSES)
    }

    fn operation(&self) -> Operation {
        match self.subject {
            Subject::Operation(operation) => operation,
            Subject::Message => Operation::Broadcast, // of two members: one message
        }
    }

    /// Fails where --measured does not apply.
    fn check_measured(&self) -> Result<(), SimulateError> {
        let most = self.processes_max();
        let operation = self.operation();
        let is_known = !matches!(
            operation,
            Operation::ReduceScatter | Operation::Scan | Operation::ExclusiveScan
        );
        let hosts = self.tuned_hosts().map(|hosts| hosts.count());
        match () {
            () if !self.measured => Ok(()),
            () if hosts.is_some_and(|hosts| most > hosts) => {
                Err(SimulateError::FewHosts { processes: most, hosts: hosts.unwrap_or(0) })
            }
            () if hosts.is_none() && self.platform != library::HOST => {
                Err(SimulateError::Elsewhere)
            }
            () if most > 32 => Err(SimulateError::Crowd { processes: most }),
            () if !is_known => Err(SimulateError::Unmeasured { operation }),
            () => Ok(()),
        }
    }

    fn check(&self) -> Result<(), SimulateError> {
        self.check_subject()?;
        self.check_measured()?;
        self.check_members()
    }

    /// Fails where an option does not apply to the subject.
    fn check_subject(&self) -> Result<(), SimulateError> {
        let operation = self.operation();
        if self.paper && operation != Operation::Broadcast {
            return Err(SimulateError::Paper);
        }
        let (has_root, has_segments) = (self.root != 0, self.segments != 1);
        if self.subject == Subject::Message {
            let has_group = !self.architecture.is_empty()
                || self.clusters.is_some()
                || self.processes.is_some();
            let has_parts = has_root || has_segments || !self.kill.is_empty();
            return match has_group || has_parts || self.paper || self.map || self.explain {
                true => Err(SimulateError::Message),
                false => Ok(()),
            };
        }
        let senseless = |option, what| SimulateError::Senseless { option, operation, what };
        if has_root && !operation.has_root() {
            return Err(senseless("--root", "has no root"));
        }
        if has_segments && !operation.has_segments() {
            return Err(senseless("--segments", "has no segments"));
        }
        Ok(())
    }

    /// Fails where the group lacks the clusters or a member of the line.
    fn check_members(&self) -> Result<(), SimulateError> {
        let (least, most) = (self.processes()[0], self.processes_max());
        let clusters = self.clusters.as_ref().map_or(0, Numbers::largest);
        if clusters > most {
            return Err(SimulateError::Clusters { clusters, processes: most });
        }
        if let Some(death) = self.kill.iter().find(|death| u64::from(death.member) >= least) {
            return Err(SimulateError::Kill { member: death.member, size: least });
        }
        if u64::from(self.root) >= least {
            return Err(SimulateError::Root { root: self.root, size: least });
        }
        Ok(())
    }

    /// The architectures of the line, each with each number of clusters if it uses them.
    fn series(&self, ground: &Ground<'_>) -> Vec<Series> {
        let asked = self.architecture.clone();
        let presets = match self.subject {
            Subject::Message => "flat".parse().into_iter().collect(),
            Subject::Operation(_) if asked.is_empty() => all(ground),
            Subject::Operation(_) => asked,
        };
        let mut series = Vec::new();
        for preset in presets {
            let clusters = self.clusters.as_ref().map_or(&[][..], |clusters| &clusters.0);
            if clusters.is_empty() || !study::has_clusters(&preset.to_string()) {
                series.push(Series::new(preset, None));
                continue;
            }
            let each = clusters.iter();
            series.extend(each.map(|&count| Series::new(preset.clone(), Some(count as u32))));
        }
        series
    }

    /// Studies along the sizes for each number of processes, and along the processes for the least size.
    fn studies(&self, ground: &Ground<'_>) -> Vec<Study> {
        let (series, operation) = (self.series(ground), self.operation());
        let (processes, sizes) = (self.processes(), &self.sizes.0);
        if self.subject == Subject::Message {
            let title = "A message from one process to another".to_owned();
            return vec![Study::new(title, Along::Sizes(2), series, sizes.clone())];
        }
        let mut studies = Vec::new();
        if sizes.len() > 1 || processes.len() == 1 {
            for &count in &processes {
                let title = format!("{}, {count} processes", capitalised(operation));
                let along = Along::Sizes(count as u32);
                studies.push(Study::new(title, along, series.clone(), sizes.clone()));
            }
        }
        // Nothing is measured twice.
        if processes.len() > 1 && !(self.measured && sizes.len() > 1) {
            let bytes = sizes.first().copied().unwrap_or(0);
            let title = format!("{} of {bytes} B", capitalised(operation));
            studies.push(Study::new(title, Along::Processes(bytes), series, processes.to_vec()));
        }
        studies
    }

    fn tell(&self, ground: &Ground<'_>, studies: &[Study]) -> Result<(), SimulateError> {
        let mut text = format!("{} Microseconds.\n", ground.words());
        for study in studies {
            text.push_str(&format!("\n{}", table::text(study)));
        }
        if self.paper {
            text.push_str(&format!("\n{}", paper::table1(studies)));
        }
        say(&text)?;
        match &self.out {
            Some(directory) => self.write(ground, studies, directory),
            None => Ok(()),
        }
    }

    /// Writes the page and its pictures.
    fn write(
        &self,
        ground: &Ground<'_>,
        studies: &[Study],
        directory: &Path,
    ) -> Result<(), SimulateError> {
        let note = ground.words();
        let mut sections = Vec::new();
        let mut pictures = Vec::new();
        for study in studies {
            let picture = svg(study, &note);
            pictures.push((name_of(study), picture.clone()));
            sections.push(Section::of(study, picture));
        }
        if self.map {
            let map = self.map_of(studies);
            let title = format!("Which architecture is the fastest: {}", self.operation());
            let picture = map.svg(&title, &note);
            pictures.push(("map".into(), picture.clone()));
            let explained = "The architecture that takes the least time.".to_owned();
            sections.insert(0, Section { title, note: explained, svg: picture, rows: map.rows() });
        }
        let title =
            format!("{} simulated on {}", capitalised(self.operation()), ground.platform.name);
        let html = page::html(&title, &note, &command_line(), &sections);
        let pictures = pictures.into_iter().map(|(name, text)| (format!("{name}.svg"), text));
        for (name, text) in pictures.chain([("index.html".to_owned(), html)]) {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|error| wrong(&path, error))?;
        }
        say(&format!("\nThe page is {}.\n", directory.join("index.html").display()))
    }

    fn map_of(&self, studies: &[Study]) -> Map {
        let along_sizes = studies.iter().filter_map(|study| match study.along {
            Along::Sizes(processes) => Some((u64::from(processes), study)),
            Along::Processes(_) => None,
        });
        Map::of(&along_sizes.collect::<Vec<_>>())
    }

    /// Prints one run: its critical path, or the outcomes of its members.
    fn tell_one(&self, ground: &Ground<'_>) -> Result<(), SimulateError> {
        let series = if self.architecture.is_empty() { Vec::new() } else { self.series(ground) };
        let (processes, sizes) = (self.processes(), &self.sizes.0);
        let runs = series.len().max(1) * processes.len() * sizes.len();
        let ([series], &[processes], &[bytes]) = (&series[..], &processes[..], &sizes[..]) else {
            let option = if self.explain { "--explain" } else { "--kill" };
            return Err(SimulateError::OneRun { option, runs: runs.max(2) });
        };
        let processes = processes as u32;
        let Some(group) = ground.group(series, processes) else {
            let clusters = u64::from(series.clusters.unwrap_or(0));
            return Err(SimulateError::Clusters { clusters, processes: processes.into() });
        };
        let way = series.preset.way(self.operation());
        let work = Work { task: &ground.task, way: &way, group: &group, bytes };
        let setting = Setting {
            placement: ground.placement,
            keeps_history: true,
            ..Setting::new(ground.platform, ground.faults)
        };
        let mut meter = Meter::new("simulate", 1);
        let report = simulated(&work, &setting, &mut |progress| {
            meter.within(progress.done, progress.all, "");
        })?;
        meter.finish();
        let heading = format!(
            "{} of {bytes} B by {}, {processes} processes on {}",
            capitalised(self.operation()),
            series.name,
            ground.platform.name
        );
        say(&match self.explain {
            true => explain::text(&heading, &report),
            false => deaths::text(&heading, &self.kill, &report),
        })
    }
}

/// All architectures of messages, and the board where all members are on one host.
fn all(ground: &Ground<'_>) -> Vec<Preset> {
    let is_paper = |name: &str| name.starts_with("deck") || name.starts_with("mpi");
    let names = NAMES.iter().map(|(name, _)| *name).filter(|name| !is_paper(name));
    let has_board = ground.platform.network.is_none();
    // The boards of hosts serve where the members of one follow each other.
    let names = names.filter(|name| !matches!((*name, has_board), ("board", false) | ("hosts", _)));
    names.filter_map(|name| name.parse().ok()).collect()
}

fn make_directory(directory: &Path) -> Result<(), SimulateError> {
    file::make_directory(directory).map_err(|error| wrong(directory, error))
}

fn wrong(path: &Path, error: io::Error) -> SimulateError {
    SimulateError::Write { path: path.display().to_string(), error }
}

/// The platform of this name or in this file.
fn platform(name: &str) -> Result<Platform, SimulateError> {
    if name == library::HOST {
        let about =
            "this host, with the figures of `landeck tune`, or the usual ones if it was never run";
        let kept = match tuning::read_all() {
            Ok(kept) => kept,
            Err(TuningError::NoPlace) => None,
            Err(trouble) => {
                complain(format_args!("landeck: {trouble}"));
                None
            }
        };
        let (figures, details) = kept.unwrap_or_else(|| {
            let usual = CostParameters::default();
            (usual, Calibration::of(&usual))
        });
        return Ok(host(about, &Found { figures, details, share: Share::WHOLE }));
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        return Ok(library::find(name)?);
    }
    let bytes = read_within(Path::new(name), PLATFORM_BYTES_MAX)
        .map_err(|error| SimulateError::Read { path: name.to_owned(), error })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let what = "this is no text in UTF-8: give a platform file, or write the line anew".into();
        PlatformError::Line { name: name.to_owned(), line, what }
    })?;
    Ok(Platform::parse(name, &text)?)
}

/// This host as a platform.
fn host(about: &str, found: &Found) -> Platform {
    Platform::of_host(library::HOST, about, found.figures, found.details)
}

/// The file name of a picture.
fn name_of(study: &Study) -> String {
    let letters = study.title.to_lowercase();
    let words = letters.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn capitalised(operation: Operation) -> String {
    let name = operation.as_str();
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// The command line of this call.
fn command_line() -> String {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    format!("landeck {}", words.join(" "))
}

fn say(text: &str) -> Result<(), SimulateError> {
    Ok(say::say(text)?)
}

/// The subject of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// A message.
    Message,
    /// A collective operation.
    Operation(Operation),
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Message => MESSAGE,
            Self::Operation(operation) => operation.as_str(),
        }
    }
}

/// The subject of a message on the command line.
const MESSAGE: &str = "message";

fn subject() -> impl TypedValueParser<Value = Subject> {
    let names = Operation::ALL.map(operation_value).into_iter().chain([MESSAGE.into()]);
    PossibleValuesParser::new(names).try_map(|name| match Operation::from_name(&name) {
        Some(operation) => Ok(Subject::Operation(operation)),
        None if name == MESSAGE => Ok(Subject::Message),
        None => Err("there is no such operation"),
    })
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {} is wanted, such as 7", u64::MAX))
}

fn notes() -> String {
    let mut notes = String::from("Platforms:\n");
    for (name, what) in library::NAMES {
        notes.push_str(&format!("  {name:<12}  {what}\n"));
    }
    notes.push_str(
        "docs/simulation.md says how to write a platform file. Architectures are those of `landeck plan`.\n\n\
         Examples:\n  \
         landeck simulate broadcast --architecture daisy -n 120 --clusters 8 --platform myrinet2000\n  \
         landeck simulate broadcast --paper --platform myrinet2000 --out figures\n  \
         landeck simulate allreduce -a butterfly,ring+split -n 2..512 --sizes 8..8M --map --out map\n  \
         landeck simulate broadcast -a pipeline -n 24 --clusters 8 --sizes 4 --explain\n  \
         landeck simulate allreduce -a board,butterfly -n 2..32 --platform host --measured\n  \
         landeck simulate allreduce -a butterfly -n 2,4 --sizes 8,64K --measured --hosts a,b,c,d",
    );
    notes
}
