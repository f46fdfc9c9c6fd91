//! The command line: one definition gives the parser, the help, the man pages and the completions.

use crate::bench::BenchArguments;
use crate::doctor::DoctorArguments;
use crate::end::EndArguments;
use crate::hosts::{HostsArguments, HostsAsked, MapByAsked, map_by, processes};
use crate::line::{split, with_program_marked};
use crate::plan::PlanArguments;
use crate::seeing::group::GroupArguments;
use crate::seeing::ps::PsArguments;
use crate::seeing::top::TopArguments;
use crate::seeing::why::WhyArguments;
use crate::simulate::SimulateArguments;
use crate::simulate::measured::MeasureWayArguments;
use crate::tune::hosts::TunedHosts;
use crate::tune::measure::Subject;
use crate::usage;
use crate::values::{TagWith, setting, time, whole};
use crate::vm::VmArguments;
use crate::wishes::Wishes;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use landeck::settings;
use landeck::{Job, Options};
use landeck_diagnosis::Onlooker;
use landeck_host::environment::Export;
use landeck_host::placement::BindTo;
use landeck_joining::observe;
use landeck_launch::guardian::OnFailure;
use landeck_launch::input::InputTo;
use landeck_launch::output::LineTag;
use landeck_launch::request::{Explain, Explanation, Launch, ProgramRequest, ServeGroups};
use landeck_memory::JobName;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A parsed command line.
#[derive(Debug)]
pub(crate) enum Command {
    /// Start a job.
    Run(Box<Launch>, Wishes, Box<HostsAsked>),
    /// Measure this host.
    Tune {
        /// Whether the figures are kept even if others used the processors.
        is_forced: bool,
    },
    /// Show the links between hosts, and the ways over them.
    TuneHosts(TunedHosts),
    /// Show the figures of this host, and the ways of a number of processes.
    ShowTuning {
        /// The number of processes.
        processes: Option<u32>,
        /// The user's wishes.
        wishes: Wishes,
    },
    /// Measure as a process of a job.
    Measure(Subject),
    /// Measure a way as a process of a job.
    MeasureWay(MeasureWayArguments),
    /// Show the plans of a group.
    Plan(Box<PlanArguments>),
    /// Report on this host.
    Doctor(DoctorArguments),
    /// List jobs.
    Ps(PsArguments),
    /// Watch a job.
    Top(TopArguments),
    /// Say why a job is stuck.
    Why(WhyArguments),
    /// End jobs.
    End(EndArguments),
    /// Show named groups.
    Group(GroupArguments),
    /// Simulate an operation on a modelled platform.
    Simulate(Box<SimulateArguments>),
    /// Start, show and stop machines.
    Vm(Box<VmArguments>),
    /// Measure Landeck.
    Bench(BenchArguments),
    /// Write man pages or completions.
    Generate {
        /// The kind of files.
        what: What,
        /// The directory.
        directory: PathBuf,
    },
}

/// Files that can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// A page for the command, one for each subcommand, and that of mpiexec.
    Man,
    /// Completions for bash, zsh and fish.
    Completions,
    /// The chapter launcher.md of the book.
    Reference,
}

/// A wrong command line, or one that asks for help.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) clap::Error);

impl Usage {
    /// The message for the user who has written this line.
    pub(crate) fn text(&self, line: &[OsString]) -> String {
        usage::text(&self.0, line, &definition(), |line| parse(line).is_ok())
    }
}

/// Parses a command line, which begins with the name of the command.
pub(crate) fn parse(line: Vec<OsString>) -> Result<Command, Usage> {
    let definition = definition();
    let first_part = definition.find_subcommand("run").expect("this is one of its commands");
    let (first, others) = split(line, first_part).map_err(Usage)?;
    let cli = Cli::try_parse_from(first).map_err(Usage)?;
    match cli.command {
        CliCommand::Run(run) => {
            let mut programs = vec![run.program.read()];
            for other in others {
                let name = OsString::from("landeck run ... :");
                let other =
                    with_program_marked(other, &next_program(), first_part).map_err(Usage)?;
                let line = std::iter::once(name).chain(other);
                let matches = next_program().try_get_matches_from(line).map_err(Usage)?;
                let next = ProgramArguments::from_arg_matches(&matches).map_err(Usage)?;
                programs.push(next.read());
            }
            let (job, hosts) = (&run.job, &run.hosts);
            let wishes = Wishes::of([
                (settings::COLLECTIVES, &job.collectives),
                (settings::CLUSTERS, &job.clusters),
                (settings::ONE_COPY, &job.one_copy),
                (settings::PATH, &hosts.path),
                (settings::INCAST, &hosts.incast),
                (settings::STORE, &hosts.store),
            ]);
            let hosts = HostsAsked { arguments: run.hosts, map_by: run.job.map_by };
            Ok(Command::Run(Box::new(run.job.launch(programs)), wishes, Box::new(hosts)))
        }
        CliCommand::Tune(TuneArguments { hosts: Some(list), rsh, save, .. }) => {
            Ok(Command::TuneHosts(TunedHosts { list, rsh, save }))
        }
        CliCommand::Tune(TuneArguments { show: false, force, .. }) => {
            Ok(Command::Tune { is_forced: force })
        }
        CliCommand::Tune(TuneArguments { processes, collectives, clusters, .. }) => {
            let wishes = [(settings::COLLECTIVES, &collectives), (settings::CLUSTERS, &clusters)];
            let wishes = Wishes::of(wishes);
            Ok(Command::ShowTuning { processes, wishes })
        }
        CliCommand::Measure { subject } => Ok(Command::Measure(subject)),
        CliCommand::MeasureWay(way) => Ok(Command::MeasureWay(way)),
        CliCommand::Plan(plan) => Ok(Command::Plan(plan)),
        CliCommand::Doctor(doctor) => Ok(Command::Doctor(doctor)),
        CliCommand::Ps(ps) => Ok(Command::Ps(ps)),
        CliCommand::Top(top) => Ok(Command::Top(top)),
        CliCommand::Why(why) => Ok(Command::Why(why)),
        CliCommand::End(end) => Ok(Command::End(end)),
        CliCommand::Group(group) => Ok(Command::Group(group)),
        CliCommand::Simulate(simulate) => Ok(Command::Simulate(simulate)),
        CliCommand::Vm(vm) => Ok(Command::Vm(vm)),
        CliCommand::Bench(bench) => Ok(Command::Bench(bench)),
        CliCommand::Generate { what, directory } => Ok(Command::Generate { what, directory }),
    }
}

/// The definition of the whole command line.
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

/// Runs programs as groups of processes that talk to each other.
#[derive(Debug, Parser)]
#[command(name = "landeck", version, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Run(Box<RunArguments>),
    Vm(Box<VmArguments>),
    Ps(PsArguments),
    Top(TopArguments),
    Why(WhyArguments),
    End(EndArguments),
    Group(GroupArguments),
    Doctor(DoctorArguments),
    Plan(Box<PlanArguments>),
    Simulate(Box<SimulateArguments>),
    Tune(TuneArguments),
    /// Only the source tree has the program that it needs.
    #[command(hide = true)]
    Bench(BenchArguments),
    /// Measure as a process of a job that `tune` has started.
    #[command(hide = true)]
    Measure {
        #[arg(value_enum)]
        subject: Subject,
    },
    /// Measure a way as a process of a job that `simulate` has started.
    #[command(hide = true)]
    MeasureWay(MeasureWayArguments),
    /// Write man pages or shell completions into a directory.
    #[command(hide = true)]
    Generate {
        #[arg(value_enum)]
        what: What,
        directory: PathBuf,
    },
}

/// Run a program as N processes, on this host or on several.
///
/// Options stand before the program; words behind it are the program's own. Several programs separated by colons
/// make one job: their processes get ranks in this order, and each program has its own -n, -x, --env-none and -C.
#[derive(Debug, Args)]
#[command(
    override_usage = "landeck run [OPTIONS] PROGRAM [ARGUMENTS]... [: [-n N] PROGRAM [ARGUMENTS]...]...",
    after_help = RUN_EXAMPLES,
    after_long_help = notes()
)]
struct RunArguments {
    #[command(flatten)]
    program: ProgramArguments,
    #[command(flatten)]
    job: JobArguments,
    #[command(flatten)]
    hosts: HostsArguments,
}

/// Measure the performance of this host, or show it.
///
/// Takes a few seconds, best while nothing else runs. The figures are kept for this user, and every later job uses
/// them to choose the ways of its collective operations. If others used more than a quarter of the processors'
/// time, the figures are shown and not kept.
#[derive(Debug, Args)]
struct TuneArguments {
    /// Show the kept figures, and the way of each operation that follows from them
    #[arg(long)]
    show: bool,
    /// Keep the figures even if others used the processors meanwhile
    #[arg(long, conflicts_with = "show")]
    force: bool,
    /// Show the links between these hosts, and the ways over them, instead of measuring this host.
    ///
    /// Hosts with their slots, as in `landeck run`: a:2,b:2. A job on them measures latency, gap and rate of each pair,
    /// as every job on several hosts does.
    #[arg(long, value_name = "LIST", conflicts_with_all = ["show", "force"])]
    hosts: Option<String>,
    /// The command that reaches another host, with its options [default: ssh]
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    rsh: Option<String>,
    /// Measure messages and some operations between the hosts, and write them as a platform file for `landeck simulate`
    #[arg(long, value_name = "FILE", requires = "hosts")]
    save: Option<PathBuf>,
    /// Number of processes on this host [default: one for each usable processor]
    #[arg(
        short = 'n',
        long = "np",
        value_name = "N",
        requires = "show",
        value_parser = whole(1, 16_000),
        allow_negative_numbers = true
    )]
    processes: Option<u32>,
    /// Ways of collective operations, as in `landeck run`
    #[arg(long, value_name = "WAYS", requires = "show", value_parser = setting(settings::COLLECTIVES))]
    collectives: Option<String>,
    /// Criterion for members close to each other, as in `landeck run`
    #[arg(long, value_name = "BY", requires = "show", value_parser = nearness())]
    clusters: Option<String>,
}

const RUN_NOTES: &str = "\
Exit code: that of the process that failed first (128 plus the signal, if one killed it), else 0.
124 after --timeout, 127 if a program is not found, 126 if it cannot be executed, 125 if the launcher
itself fails or cannot write the output, 2 if the command line is wrong. If a signal to the launcher ends
a job whose processes wait for their restart: 128 plus the signal.

Output: lines of different processes are never mixed. C programs of Landeck write line by line (as with
setvbuf and _IOLBF), unless they choose a buffer themselves. Python and Fortran have buffers of their
own: python -u, GFORTRAN_UNBUFFERED_PRECONNECTED=y. If the output cannot be written, for example on a
full disk, the launcher says so at once, and the processes go on.

Signals: INT is passed on; two within 2 seconds kill the job. TERM and HUP end the job: TERM, the grace
time, KILL; with --detach HUP means nothing. QUIT, USR1, USR2, WINCH, TSTP and CONT are passed on. The
processes inherit the signals that were ignored (except PIPE) or blocked when the launcher was started;
the launcher unblocks its own.";

const RUN_EXAMPLES: &str = "\
Examples:
  landeck run -n 4 ./heat 512
  landeck run -n 1 ./master : -n 3 -x OMP_NUM_THREADS=2 ./worker
  landeck run -n 8 --tag --timeout 60 --stacks ./program
  landeck run --host a:4,b:4 ./heat 512
  landeck run --detach -n 8 ./heat 512

`landeck run --help` and landeck-run(1) describe exit codes, output and signals.";

fn notes() -> String {
    let examples = RUN_EXAMPLES.split("\n\n").next().unwrap_or_default();
    format!("{RUN_NOTES}\n\n{examples}")
}

/// The default number of restarts.
const RESTARTS: u32 = 3;

/// The headings of the options.
const PROGRAMS: &str = "Options of each program";
const PLACEMENT: &str = "Placement";
const OUTPUT: &str = "Input and output";
const FAILURES: &str = "When something goes wrong";
const JOB: &str = "The job";

/// Options of a whole job.
#[derive(Debug, Args)]
struct JobArguments {
    /// Distribute processes over cores, L3 caches, memory nodes or hosts, with N cores each.
    ///
    /// slot or core: neighbouring ranks on neighbouring cores; l3, numa: neighbouring ranks on different caches
    /// or memory nodes; pe=N or numa:pe=N: N cores for each process. Hosts are filled one after the other; node:
    /// neighbouring ranks on different hosts; site: neighbouring ranks at one site of the machine, and as many processes
    /// at each; load: each process on the host of the machine that is least busy; ppr:N:node: N processes on each host.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "slot",
        value_parser = map_by,
        hide_default_value = true,
        help_heading = PLACEMENT
    )]
    map_by: MapByAsked,
    /// Bind each process to a part of the machine.
    ///
    /// To nothing, a hardware thread, its cores, or to the L3 cache, memory node or package of its first core
    /// [default: core; none if there are more processes than cores, hosts share processors, or threads
    /// are asked for, as by OMP_NUM_THREADS].
    #[arg(long, value_name = "WHAT", value_parser = bind_to(), help_heading = PLACEMENT)]
    bind_to: Option<BindTo>,
    /// Show the binding of each process
    #[arg(long, help_heading = PLACEMENT)]
    report_bindings: bool,
    /// Show the processes and their placement, and start nothing
    #[arg(long, help_heading = PLACEMENT)]
    dry_run: bool,
    /// Prefix each line of output with the rank, or the rank and the host
    #[arg(
        long,
        value_name = "WITH",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "rank",
        help_heading = OUTPUT
    )]
    tag: Option<TagWith>,
    /// Write the output of each process into files in this directory.
    ///
    /// The files are called rank-N.stdout and rank-N.stderr.
    #[arg(long, value_name = "DIRECTORY", help_heading = OUTPUT)]
    output_dir: Option<PathBuf>,
    /// The receiver of the standard input: all, none, or a rank.
    ///
    /// In a shell's loop that reads a list, as in while read x; do landeck run ...; done, say none: the job would read
    /// the rest of the list.
    #[arg(
        long,
        value_name = "WHO",
        value_parser = input_to,
        allow_negative_numbers = true,
        default_value = "0",
        help_heading = OUTPUT
    )]
    stdin: InputTo,
    /// Print a summary when the job ends well: messages, bytes, time waiting
    #[arg(long, help_heading = OUTPUT)]
    summary: bool,
    /// End the job after this time; exit code 124.
    ///
    /// In seconds, or with a unit: 90, 0.5, 10m, 2h. Then the launcher explains why the job has not ended, and what
    /// each process waits for.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        allow_negative_numbers = true,
        help_heading = FAILURES
    )]
    timeout: Option<Duration>,
    /// With --timeout: show the stacks of all processes
    #[arg(long, requires = "timeout", help_heading = FAILURES)]
    stacks: bool,
    /// Reaction to a failed process: abort, notify, restart.
    ///
    /// End the others (abort), let them go on with errors that name the dead (notify), or also restart the process
    /// (restart), up to 3 times or as in restart:5. After one more failure the others are ended; with restart:5,notify
    /// they go on. A process that aborts always ends the job.
    #[arg(
        long,
        value_name = "WHAT",
        value_parser = on_failure,
        default_value = "abort",
        help_heading = FAILURES
    )]
    on_failure: OnFailure,
    /// Time between asking processes to end (TERM) and killing them
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        allow_negative_numbers = true,
        default_value = "10",
        help_heading = FAILURES
    )]
    grace: Duration,
    /// Map the pages of other processes read-only.
    ///
    /// A stray write to them kills the writer.
    #[arg(long, help_heading = FAILURES)]
    harden: bool,
    /// The job's name, for `landeck ps`, `top`, `why` and `end` [default: the program's name]
    #[arg(long, value_name = "NAME", value_parser = job_name, help_heading = JOB)]
    name: Option<String>,
    /// Return when the job has begun, and let it go on without this terminal.
    ///
    /// The standard input is empty. The output goes into a file that the command names, or into those of --output-dir.
    /// `landeck end` ends the job.
    #[arg(long, conflicts_with_all = ["stdin", "dry_run"], help_heading = JOB)]
    detach: bool,
    /// The ways of collective operations: one for all, or one for each.
    ///
    /// For example allreduce=butterfly,broadcast=daisy [default: LANDECK_COLLECTIVES, else those of `landeck tune
    /// --show`].
    #[arg(long, value_name = "WAYS", value_parser = setting(settings::COLLECTIVES), help_heading = JOB)]
    collectives: Option<String>,
    /// Criterion for members close to each other, for ways that use clusters.
    ///
    /// One last-level cache, or one host or site where there are several (caches), one host (hosts), one site of the machine
    /// (sites), or no criterion (none) [default: LANDECK_CLUSTERS, else caches].
    #[arg(long, value_name = "BY", value_parser = nearness(), help_heading = JOB)]
    clusters: Option<String>,
    /// The length from which the kernel copies data on one host out of their owner's memory: auto, never or BYTES.
    ///
    /// Data are messages, and what members of collective operations read of each other. K and M stand for KiB and MiB; at
    /// least 4K. Auto takes the length that `landeck tune` has measured. Without its figures messages take the one that a
    /// probe has found: the first job after a boot probes for at most 5 ms. Also LANDECK_ONE_COPY [default: auto]
    #[arg(long, value_name = "BYTES", value_parser = setting(settings::ONE_COPY), help_heading = JOB)]
    one_copy: Option<String>,
    /// Serve named groups in a thread of the launcher.
    ///
    /// For groups that a program makes with ServedBy::Launcher or DECK_LAUNCHER.
    #[arg(long, help_heading = JOB)]
    serve_groups: bool,
}

/// Options of one program of a job.
#[derive(Debug, Args)]
struct ProgramArguments {
    /// Number of processes.
    ///
    /// Also -np [default: one for each usable core; one for each slot of several hosts; one for each program of
    /// several].
    #[arg(
        short = 'n',
        long = "np",
        value_name = "N",
        value_parser = processes,
        allow_negative_numbers = true,
        help_heading = PROGRAMS
    )]
    processes: Option<u32>,
    /// Set a variable, or pass one on despite --env-none
    #[arg(
        short = 'x',
        long = "export",
        value_name = "NAME[=VALUE]",
        value_parser = clap::builder::OsStringValueParser::new().try_map(export),
        action = ArgAction::Append,
        help_heading = PROGRAMS
    )]
    exports: Vec<Export>,
    /// Pass on no variables except those of -x
    #[arg(long, help_heading = PROGRAMS)]
    env_none: bool,
    /// Start the processes in this directory
    #[arg(short = 'C', long = "wdir", value_name = "DIRECTORY", help_heading = PROGRAMS)]
    directory: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        num_args = 1..
    )]
    program: Vec<OsString>,
}

impl JobArguments {
    fn launch(self, programs: Vec<ProgramRequest>) -> Launch {
        Launch {
            name: self.name,
            map_by: self.map_by.here,
            bind_to: self.bind_to,
            report_bindings: self.report_bindings,
            dry_run: self.dry_run,
            tag: match self.tag {
                None => LineTag::None,
                Some(TagWith::Rank) => LineTag::Rank,
                Some(TagWith::Host) => LineTag::Host,
            },
            output_directory: self.output_dir,
            timeout: self.timeout,
            stacks: self.stacks,
            explain: Some(explain as Explain),
            stdin: self.stdin,
            on_failure: self.on_failure,
            is_hardened: self.harden,
            grace: self.grace,
            summary: self.summary,
            is_detached: self.detach,
            serves_groups: self.serve_groups.then_some(serve_groups as ServeGroups),
            ..Launch::new(programs)
        }
    }
}

impl ProgramArguments {
    fn read(self) -> ProgramRequest {
        let mut words = self.program.into_iter();
        let name = words.next().unwrap_or_default();
        ProgramRequest {
            arguments: words.collect(),
            processes: self.processes,
            directory: self.directory,
            exports: self.exports,
            inherit: !self.env_none,
            ..ProgramRequest::new(name)
        }
    }
}

/// Serves groups as a guest of a job until it ends.
fn serve_groups(job: &str) -> Result<(), String> {
    let served = Job::join_running(job, Options::default()).and_then(|guest| guest.serve_groups());
    served.map_err(|error| error.to_string())
}

/// The reason why a job does not end, as in `landeck why`.
fn explain(job: &str) -> Option<Explanation> {
    let job = observe::find(Some(job)).ok()?;
    let (_, report) = Onlooker::new(job).report();
    let advice = report.advice().map(str::to_owned);
    Some(Explanation { verdict: report.verdict().to_owned(), advice })
}

/// The definition of the words behind a colon.
fn next_program() -> clap::Command {
    let usage =
        "landeck run ... : [-n N] [-x NAME[=VALUE]] [--env-none] [-C DIRECTORY] PROGRAM ...";
    ProgramArguments::augment_args(clap::Command::new("landeck run ... :").override_usage(usage))
}

fn bind_to() -> impl TypedValueParser<Value = BindTo> {
    PossibleValuesParser::new(["none", "hwthread", "core", "l3", "numa", "package"])
        .try_map(|word| word.parse::<BindTo>())
}

fn job_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a name has at least one letter".to_owned()),
        _ if JobName::new(text).to_string() == text => Ok(text.to_owned()),
        _ => Err(format!(
            "a name has at most {} bytes, and no control characters",
            JobName::BYTES_MAX
        )),
    }
}

fn export(text: OsString) -> Result<Export, &'static str> {
    Export::parse(&text).ok_or("a name is needed, as in NAME=value")
}

fn input_to(word: &str) -> Result<InputTo, &'static str> {
    match word {
        "all" => Ok(InputTo::All),
        "none" => Ok(InputTo::None),
        _ => word.parse().map(InputTo::Rank).map_err(|_| "choose all, none, or a rank like 0"),
    }
}

/// Parses the consequences of a failure.
fn on_failure(text: &str) -> Result<OnFailure, &'static str> {
    const CHOICE: &str = "choose abort, notify, restart, restart:5 or restart:5,notify";
    let (policy, then_abort) = match text.split_once(',') {
        None => (text, true),
        Some((policy, "abort")) => (policy, true),
        Some((policy, "notify")) => (policy, false),
        Some(_) => return Err(CHOICE),
    };
    match policy.split_once(':').unwrap_or((policy, "")) {
        ("restart", "") if !policy.ends_with(':') => {
            Ok(OnFailure::Restart { times: RESTARTS, then_abort })
        }
        ("restart", times) => {
            let times = times.parse().map_err(|_| CHOICE)?;
            Ok(OnFailure::Restart { times, then_abort })
        }
        _ if policy != text => Err(CHOICE),
        ("abort", "") => Ok(OnFailure::Abort),
        ("notify", "") => Ok(OnFailure::Notify),
        _ => Err(CHOICE),
    }
}

fn nearness() -> PossibleValuesParser {
    PossibleValuesParser::new(["caches", "hosts", "sites", "none"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Launch, String> {
        let words = ["landeck", "run"].into_iter().chain(line.split(' '));
        match parse(words.map(OsString::from).collect()) {
            Ok(Command::Run(launch, ..)) => Ok(*launch),
            Ok(other) => Err(format!("{other:?}")),
            Err(Usage(error)) => Err(error.to_string()),
        }
    }

    fn launch(line: &str) -> Launch {
        run(line).unwrap()
    }

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
        next_program().debug_assert();
    }

    #[test]
    fn the_number_of_processes_is_written_in_many_ways() {
        for line in
            ["-n 3 x", "-n3 x", "-np 3 x", "-np3 x", "--np 3 x", "--np=3 x", "--tag -np 3 x"]
        {
            assert_eq!(launch(line).programs[0].processes, Some(3), "{line}");
        }
        assert_eq!(launch("x").programs[0].processes, None);
        for line in ["-n 0 x", "-n x", "-n -1 x", "-n"] {
            assert!(run(line).is_err(), "{line}");
        }
    }

    #[test]
    fn options_stop_at_the_program() {
        let job = launch("-n 2 prog -n 5 -np 7 --tag --help -- x");
        let program = &job.programs[0];
        assert_eq!((program.processes, job.tag), (Some(2), LineTag::None));
        assert_eq!(program.name, "prog");
        assert_eq!(program.arguments, ["-n", "5", "-np", "7", "--tag", "--help", "--", "x"]);
        assert_eq!(launch("-n 2 -- prog -x").programs[0].arguments, ["-x"]);
    }

    #[test]
    fn programs_are_separated_by_colons() {
        let job = launch("-n 1 --tag a 1 : -np 2 -x K=v -wdir /tmp b -n 9 : c");
        let names: Vec<_> = job.programs.iter().map(|program| &program.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let b = &job.programs[1];
        assert_eq!((b.processes, b.directory.as_deref()), (Some(2), Some("/tmp".as_ref())));
        assert_eq!(b.exports, [Export { name: "K".into(), value: Some("v".into()) }]);
        assert_eq!(b.arguments, ["-n", "9"]);
        assert_eq!(job.programs[2].processes, None);
        assert!(run("a :").unwrap_err().contains("PROGRAM"));
        for (option, words) in [
            ("--timeout", "--timeout 3"),
            ("--host", "--host b"),
            ("-H", "-H b"),
            ("--tag", "--tag=host"),
        ] {
            let error = run(&format!("a : -n 1 {words} b")).unwrap_err();
            let wanted =
                format!("{option} is for the whole job: write it before the first program");
            assert!(error.contains(&wanted), "{error}");
        }
    }

    #[test]
    fn every_option_is_read() {
        let job = launch(
            "--bind-to numa --map-by l3:pe=2 --report-bindings --dry-run --tag=host --output-dir out \
             --timeout 1.5 --stacks --stdin all --on-failure notify --grace 2m --harden --summary --env-none x",
        );
        assert_eq!(job.bind_to, Some(BindTo::Numa));
        assert_eq!(job.map_by, "l3:pe=2".parse().unwrap());
        assert!(job.report_bindings && job.dry_run && job.stacks && job.summary && job.is_hardened);
        assert_eq!(job.tag, LineTag::Host);
        assert_eq!(job.output_directory, Some("out".into()));
        assert_eq!(job.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(job.stdin, InputTo::All);
        assert_eq!(job.on_failure, OnFailure::Notify);
        assert_eq!(job.grace, Duration::from_secs(120));
        assert!(!job.programs[0].inherit);
        assert_eq!(launch("--tag x").tag, LineTag::Rank);
        assert_eq!(launch("--tag -- rank").programs[0].name, "rank");
        assert_eq!(launch("--tag ./rank").programs[0].name, "./rank");
        assert_eq!(launch("--tag=host rank").programs[0].name, "rank");
        assert_eq!(launch("--stdin 3 x").stdin, InputTo::Rank(3));
    }

    #[test]
    fn a_failure_means_what_was_asked_for() {
        let asked = |text: &str| launch(&format!("--on-failure {text} x")).on_failure;
        let restart = |times, then_abort| OnFailure::Restart { times, then_abort };
        assert_eq!(launch("x").on_failure, OnFailure::Abort);
        assert_eq!(asked("restart"), restart(RESTARTS, true));
        assert_eq!(asked("restart:0"), restart(0, true));
        assert_eq!(asked("restart,notify"), restart(RESTARTS, false));
        assert_eq!(asked("restart:12,abort"), restart(12, true));
        assert_eq!(asked("restart:12,notify"), restart(12, false));
    }

    #[test]
    fn tuning_is_asked_for_or_shown() {
        let parse = |line: &str| {
            let words = std::iter::once("landeck").chain(line.split(' ')).map(OsString::from);
            parse(words.collect()).map_err(|Usage(error)| error.to_string())
        };
        assert!(matches!(parse("tune"), Ok(Command::Tune { is_forced: false })));
        assert!(matches!(parse("tune --force"), Ok(Command::Tune { is_forced: true })));
        let shown = parse("tune --show -n 8 --collectives flat").unwrap();
        let Command::ShowTuning { processes: Some(8), wishes } = shown else { panic!("{shown:?}") };
        assert_eq!(wishes, Wishes::of([(settings::COLLECTIVES, &Some("flat".into()))]));
        assert!(parse("tune -n 8").unwrap_err().contains("--show"));
        assert!(matches!(parse("measure switch"), Ok(Command::Measure(Subject::Switch))));
        let line = "run --collectives scan=flat --clusters hosts x";
        let Ok(Command::Run(_, wishes, _)) = parse(line) else { panic!("ways were asked for") };
        let [ways, near] = ["scan=flat", "hosts"].map(|value| Some(value.to_owned()));
        let both = [(settings::COLLECTIVES, &ways), (settings::CLUSTERS, &near)];
        assert_eq!(wishes, Wishes::of(both));
    }

    #[test]
    fn wrong_values_are_explained() {
        for (line, word) in [
            ("--bind-to board x", "possible values"),
            ("--map-by socket x", "slot, core"),
            ("--stdin some x", "choose all, none"),
            ("--on-failure restrat x", "choose abort, notify, restart"),
            ("--on-failure restart: x", "choose abort, notify, restart"),
            ("--on-failure restart:-1 x", "choose abort, notify, restart"),
            ("--on-failure abort:3 x", "choose abort, notify, restart"),
            ("--on-failure notify,abort x", "choose abort, notify, restart"),
            ("--one-copy 1K x", "4K at least"),
            ("--timeout soon x", "a time is wanted, 0 or more"),
            ("--timeout 3d x", "the unit is not known"),
            ("--timeout=-3 x", "a time is wanted, 0 or more"),
            ("--timeout -5 x", "a time is wanted, 0 or more"),
            ("--grace -1 x", "a time is wanted, 0 or more"),
            ("--stdin -1 x", "choose all, none"),
            ("-n -1 x", "a whole number is wanted, from 1 to 16,368"),
            ("-np -1 x", "a whole number is wanted, from 1 to 16,368"),
            ("-n two x", "a whole number is wanted, from 1 to 16,368"),
            ("-n 1 x : -n -1 y", "a whole number is wanted, from 1 to 16,368"),
            ("--tag rank ./x", "write --tag=rank for what stands before each line"),
            ("--tag host x", "or --tag -- host for a program that is called host"),
            ("-x =3 x", "a name is needed"),
            ("--stacks x", "--timeout"),
            ("--collectives star x", "no architecture \"star\""),
            ("--clusters cores x", "caches, hosts, sites, none"),
            ("--tag", "PROGRAM"),
            ("--timout 3 x", "a similar argument exists: '--timeout'"),
        ] {
            let error = run(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
