//! Measures Landeck beside its peers: `landeck-bench` without arguments installs the peers, builds
//! what is missing, measures every figure and says which limits are met.

#![forbid(unsafe_code)]

mod against;
mod attendance;
mod candidate;
mod chart;
mod cluster;
mod disturbance;
mod figure;
mod incast;
mod instructions;
mod launch;
mod machine;
mod over_hosts;
mod paced;
mod papers;
mod plot;
mod probe;
mod problem;
mod report;
mod results;
mod rounds;
mod sample;
mod standing;
mod starts;
mod statistics;
mod strips;
mod table;
mod tokens;
mod traffic;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use landeck_host::say::say;

use crate::candidate::{Candidate, Places};
use crate::cluster::Cluster;
use crate::figure::Figure;
use crate::incast::IncastOptions;
use crate::papers::PapersOptions;
use crate::problem::Problem;
use crate::report::Report;
use crate::rounds::Effort;
use crate::starts::StartsOptions;
use crate::tokens::TokensOptions;

/// The exit code for a wrong command line.
const WRONG_USAGE: u8 = 2;

#[derive(Debug, Parser)]
#[command(name = "landeck-bench", version, about = "Measures Landeck beside its peers")]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Subject>,
    #[command(flatten)]
    run: RunOptions,
    /// Measure what is installed and built already
    #[arg(long, global = true)]
    no_build: bool,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Name the figures and the candidates
    List,
    /// Measure the machine alone
    Probe,
    /// Measure what the papers on group communication measured
    Papers(PapersOptions),
    /// Measure many senders that answer one receiver through a small port, as the paper of 1997 did
    Incast(IncastOptions),
    /// Measure messages in chunks against those with reserved room between two hosts, as the paper of 1999 did
    Tokens(TokensOptions),
    /// Count the instructions of sending and receiving (needs valgrind)
    Instructions,
    /// One half of a probe
    #[command(hide = true)]
    Yield { processor: usize },
    /// The times of several starts of a command
    #[command(hide = true)]
    Starts(StartsOptions),
}

#[derive(Debug, Args)]
struct RunOptions {
    /// Measure this figure only; may be repeated
    #[arg(long = "figure", value_name = "NAME")]
    figures: Vec<String>,
    /// A short run: fewer rounds, fewer batches, wider spreads
    #[arg(long)]
    quick: bool,
    /// Rounds in which every candidate runs once [default: 5, quick: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// The peers to compare with, of mpich, ompi, impi, queues and iceoryx2; or none
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "mpich,ompi,impi,queues,iceoryx2"
    )]
    peers: Vec<String>,
    /// Repeat a launch that others disturbed for so many seconds, and keep the least disturbed
    /// [default: 10, quick: 0]
    #[arg(long, value_name = "S")]
    patience: Option<u64>,
    /// Let the processes write what they give before each operation, as programs do; that is part of the time.
    /// Figures of messages to and fro and of collective operations heed it
    #[arg(long)]
    new_data: bool,
    /// Measure jobs over so many hosts, which are made of network namespaces; these have figures of their own
    #[arg(long, value_name = "N", conflicts_with = "against", value_parser = ["2", "4", "8"])]
    hosts: Option<String>,
    /// Run the jobs over hosts in a machine that stands as well, beside those that make a machine of their own. Each
    /// host then has processors of its own, if there are as many
    #[arg(long, requires = "hosts")]
    machine: bool,
    /// Look at the daemons of a machine after so many jobs (figure machine_rest)
    #[arg(long, value_name = "N", default_value_t = rounds::JOBS)]
    jobs: u32,
    /// Compare with another installation of Landeck, such as one of an earlier version, and not with peers
    #[arg(long, value_name = "PREFIX", conflicts_with = "peers")]
    against: Option<PathBuf>,
    /// Where results and plots are written
    #[arg(long, value_name = "DIR", default_value = "out/bench")]
    output: PathBuf,
    /// Where the peers and the programs over MPI are
    #[arg(long, value_name = "DIR", hide = true)]
    folder: Option<PathBuf>,
}

impl RunOptions {
    /// The hosts that jobs are spread over, if that is wanted.
    fn hosts(&self) -> Option<u32> {
        self.hosts.as_ref()?.parse().ok()
    }
}

fn main() -> ExitCode {
    landeck_host::start_signals::take_over();
    let arguments = match CommandLine::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            eprintln!("landeck-bench: {}; --help lists all options", fault(&error));
            return ExitCode::from(WRONG_USAGE);
        }
        Err(help) => help.exit(),
    };
    let mut places = Places::of_this_build();
    places.other.clone_from(&arguments.run.against);
    if let Some(folder) = &arguments.run.folder {
        places.peers.clone_from(folder);
    }
    let done = match &arguments.command {
        None => prepare(&arguments, &places).and_then(|()| run(&arguments.run, &places)),
        Some(Subject::List) => say(&list(&places)).map_err(Problem::from),
        Some(Subject::Probe) => say(&table::probes(&probe::all())).map_err(Problem::from),
        Some(Subject::Papers(options)) => {
            let built = match options.has_peers() {
                true => prepare(&arguments, &places),
                false if arguments.no_build => Ok(()),
                false => build_own(&places),
            };
            built.and_then(|()| papers::run(options, &places))
        }
        Some(Subject::Incast(options)) => {
            prepare(&arguments, &places).and_then(|()| incast::run(options, &places))
        }
        Some(Subject::Tokens(options)) => {
            prepare(&arguments, &places).and_then(|()| tokens::run(options, &places))
        }
        Some(Subject::Instructions) => {
            prepare(&arguments, &places).and_then(|()| instructions::count(&places))
        }
        Some(Subject::Yield { processor }) => {
            probe::yield_for(*processor, Duration::from_millis(150));
            Ok(())
        }
        Some(Subject::Starts(options)) => starts::run(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("landeck-bench: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The fault of a command line, in one line.
fn fault(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines: Vec<_> =
        text.split("\n\n").next().unwrap_or_default().lines().map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

fn run(options: &RunOptions, places: &Places) -> Result<(), Problem> {
    let figures = chosen_figures(options)?;
    let places = &on_hosts(options, places)?;
    let candidates = match &options.against {
        None => present_candidates(places, options)?,
        Some(prefix) => against::candidates(places, prefix)?,
    };
    let rounds = usize::from(options.rounds.unwrap_or(if options.quick { 2 } else { 5 }));
    let mut effort = if options.quick { Effort::quick(rounds) } else { Effort::full(rounds) };
    effort.is_new = options.new_data;
    (effort.in_machine, effort.jobs) = (options.machine, options.jobs);
    if let Some(patience) = options.patience {
        effort.patience = Duration::from_secs(patience);
    }
    let mut report = Report::begin(&options.output)?;
    report.add(&table::probes(&probe::all()))?;
    if options.against.is_some() {
        return against::run(&figures, &candidates, places, &effort, &mut report);
    }
    let mut verdicts = Vec::new();
    for figure in figures {
        let results = rounds::measure(figure, &candidates, places, &effort);
        report.add(&table::figure(&results))?;
        if let Some(text) = traffic::table(figure, &results, places) {
            report.add(&text)?;
        }
        report.keep(results.figure, &results)?;
        for picture in plot::pictures(&results) {
            report.draw(&picture.name, |path| picture.draw(&results, path))?;
        }
        for point in results.points() {
            verdicts.extend(results.verdicts(&point));
        }
    }
    report.add(&table::verdicts(&verdicts))?;
    report.end("Tables, values and pictures", 0)
}

/// Everything that is measured is there and fresh, unless that is not wanted.
fn prepare(arguments: &CommandLine, places: &Places) -> Result<(), Problem> {
    check_peers(&arguments.run.peers)?;
    chosen_figures(&arguments.run)?;
    if arguments.no_build {
        return Ok(());
    }
    build_own(places)?;
    // Programs of MPI's binary interface are compiled with the header of MPICH.
    let of_the_interface = ["mpich".to_owned()];
    let peers = match arguments.run.against {
        Some(_) => &of_the_interface[..],
        None => &arguments.run.peers,
    };
    install_peers(places, peers)?;
    for (built, link) in
        [(places.built_front(), places.front()), (places.built_deck(), places.deck())]
    {
        link_library(&built, &link).map_err(|error| Problem::NotWritten { path: link, error })?;
    }
    compile_deck(places)
}

/// The measuring program over DECK.
fn compile_deck(places: &Places) -> Result<(), Problem> {
    let (sources, target) = (places.root.join("bench"), places.peers.join("deck"));
    let mut compile = Command::new("gcc");
    compile.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-I"]);
    compile.arg(places.root.join("fronts/deck/include")).arg(sources.join("deck.c"));
    match compile.arg("-o").arg(target).arg(places.deck()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Problem::DoesNotBuild),
        Err(error) => Err(Problem::NotStarted { program: "gcc".into(), error }),
    }
}

fn link_library(built: &Path, link: &Path) -> io::Result<()> {
    if let Some(folder) = link.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::os::unix::fs::symlink(built, link)
}

/// The places, with the hosts that jobs are spread over if that is wanted.
fn on_hosts(options: &RunOptions, places: &Places) -> Result<Places, Problem> {
    let mut places = places.clone();
    if let Some(hosts) = options.hosts() {
        if !places.daemon().exists() {
            return Err(Problem::NotBuilt { path: places.daemon() });
        }
        let cluster = match options.machine {
            true => Cluster::with_own_processors(hosts)?,
            false => Cluster::make(hosts)?,
        };
        places.cluster = Some(Rc::new(cluster));
    }
    Ok(places)
}

/// Those that are named, or else all of one host, or of several.
fn chosen_figures(options: &RunOptions) -> Result<Vec<&'static Figure>, Problem> {
    let names = &options.figures;
    let (hosts, has_hosts) = (options.hosts().unwrap_or(1), options.hosts.is_some());
    if names.is_empty() {
        let is_one =
            |figure: &&Figure| figure.is_over_hosts() == has_hosts && figure.hosts() == hosts;
        return Ok(Figure::all().filter(is_one).collect());
    }
    let known = || Figure::all().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        let name = name.clone();
        match Figure::by_name(&name) {
            None => Err(Problem::NoSuchFigure { name, known: known() }),
            Some(figure) if figure.is_over_hosts() && figure.hosts() > hosts => {
                Err(Problem::NeedsHosts { name, hosts: figure.hosts() })
            }
            Some(figure) if figure.is_over_hosts() == has_hosts => Ok(figure),
            Some(_) if has_hosts => Err(Problem::NeedsOneHost { name }),
            Some(figure) => Err(Problem::NeedsHosts { name, hosts: figure.hosts() }),
        }
    };
    names.iter().map(find).collect()
}

fn check_peers(names: &[String]) -> Result<(), Problem> {
    let known = ["mpich", "ompi", "impi", "queues", "iceoryx2", "none"];
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(Problem::NoSuchPeer { name: name.clone() }),
        None => Ok(()),
    }
}

/// The launcher, the measuring program and the library of this source tree.
fn build_own(places: &Places) -> Result<(), Problem> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(&cargo);
    build.current_dir(&places.root).args(["build", "--release", "--quiet"]);
    build.args(["-p", "landeck-launcher", "-p", "landeck-bench", "-p", "landeck-mpi"]);
    build.args(["-p", "landeck-deck", "-p", "landeckd"]);
    match build.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Problem::DoesNotBuild),
        Err(error) => Err(Problem::NotStarted { program: cargo.into(), error }),
    }
}

fn install_peers(places: &Places, peers: &[String]) -> Result<(), Problem> {
    let script = places.root.join("bench/peers.sh");
    match Command::new(&script).arg("--folder").arg(&places.peers).args(peers).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Problem::NoPeers { script }),
        Err(error) => Err(Problem::NotStarted { program: script, error }),
    }
}

/// Those who can be measured; the others are named.
fn present_candidates(places: &Places, options: &RunOptions) -> Result<Vec<Candidate>, Problem> {
    let (peers, has_hosts) = (&options.peers, options.hosts.is_some());
    let wanted = |candidate: &Candidate| {
        candidate.of_this_build() == *candidate
            && (if has_hosts { candidate.is_over_hosts() } else { !candidate.is_for_hosts() })
            && candidate.peer().is_none_or(|peer| peers.iter().any(|name| name == peer))
    };
    let present = report::present(candidate::ALL.into_iter().filter(wanted), |&candidate| {
        Some((candidate, places.missing(candidate)?))
    })?;
    if present.is_empty() { Err(Problem::Nobody) } else { Ok(present) }
}

/// The names of the figures and of the candidates.
fn list(places: &Places) -> String {
    let mut text = "Figures\n".to_owned();
    for figure in Figure::all() {
        text += &format!("  {:<17} {}\n", figure.name, figure.title);
    }
    text += "Candidates\n";
    for candidate in
        candidate::ALL.into_iter().filter(|candidate| candidate.of_this_build() == *candidate)
    {
        let missing =
            places.missing(candidate).map(|path| format!("  (not there: {})", path.display()));
        let (name, title) = (candidate.name(), candidate.title());
        text += &format!("  {name:<16} {title}{}\n", missing.unwrap_or_default());
    }
    text
}
