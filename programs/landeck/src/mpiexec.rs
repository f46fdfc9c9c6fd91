//! `mpiexec` and `mpirun`: under these names the command takes the options of MPICH and does what `landeck run` does.
//!
//! A line of options is translated to a line of `landeck run`, which is then parsed as if the user had written it.
//! Unknown and unsupported options are rejected by name, since a job that runs otherwise than asked is worse than
//! none. The parser is our own: options of MPICH have long names behind one dash, which clap does not know.

use landeck_hostfile::allocation;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The names of the command.
const NAMES: [&str; 2] = ["mpiexec", "mpirun"];
/// The variable with the time limit of a job in seconds.
const TIMEOUT: &str = "MPIEXEC_TIMEOUT";

/// The variable that tells the MPI library its first error handler.
const INITIAL: &str = "LANDECK_MPI_INITIAL_ERRHANDLER";
/// The error handlers of that variable.
const ERROR_HANDLERS: [&str; 3] = ["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"];

/// The help of `mpiexec`.
pub(crate) const HELP: &str = "\
Usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS]... [: [OPTIONS] PROGRAM [ARGUMENTS]...]...

Runs a program as the processes of one MPI job, on this host or on several. This is `landeck run` with the
options of MPICH's mpiexec; each may be written with one dash or two.

For one program:
  -n N, -np N           number of processes (if not given: 1, or one for each slot of several hosts)
  -env NAME VALUE       set a variable
  -x NAME[=VALUE]       set a variable, or pass it on despite -envnone
  -envlist A,B          pass on these variables, and no others
  -envnone, -envall     pass on no variables, or all (the default)
  -wdir DIRECTORY       start in this directory

For all programs, to be given before the first:
  -genv NAME VALUE, -genvlist A,B, -genvnone, -genvall
  -l, -prepend-rank, -tag-output
                        prefix each line of output with the rank
  -bind-to WHAT         none, hwthread, core, l3, numa, socket
  -map-by HOW           slot, core, l3, numa, and pe=N; ppr:N:node; over hosts node, and site and load in a machine that stays
  -report-bindings      show the binding of each process
  -stdin WHO            the receiver of the standard input: 0 (the default), another rank, all, none
  -timeout SECONDS      end the job after this time
  -initial-errhandler H mpi_errors_are_fatal, mpi_errors_abort, mpi_errors_return
  -disable-auto-cleanup go on after a process has failed
  -hosts A:2,B,...      the hosts, with their slots; also -host, -H
  -f FILE               a file with a host in each line; also -hostfile, -machinefile
  -ppn N, -N N          number of processes on each host (its slots if not given); when all hosts are
                        full, the first is next. Without hosts, -N is as -n, and -ppn means nothing
  -pernode              one process on each host
  -launcher HOW         ssh, rsh, slurm or manual
  -launcher-exec CMD    the command that reaches another host
  -oversubscribe, -allow-run-as-root
                        accepted: always so
  -help, -version

The variable MPIEXEC_TIMEOUT is a time limit in seconds. `landeck run --help` has Landeck's own options,
the exit codes and the signals.
";

/// The meaning of a line of `mpiexec`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The command was called by another name.
    Nothing,
    /// A line of `landeck run`.
    Run(Vec<OsString>),
    /// The help.
    Help,
    /// The version.
    Version,
}

/// A wrong line of `mpiexec`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MpiexecError {
    /// No such option.
    #[error("{option}: there is no such option; mpiexec -help lists those there are")]
    Unknown {
        /// As it was written.
        option: String,
    },
    /// An option of MPICH that Landeck does not have.
    #[error("{option} is not supported: {reason}")]
    NotHere {
        /// As it was written.
        option: String,
        /// The reason, and what to do.
        reason: &'static str,
    },
    /// The line ends before the option's value.
    #[error("{option} needs {values} after it")]
    Value {
        /// As it was written.
        option: String,
        /// The missing values.
        values: &'static str,
    },
    /// An option for all programs after a colon.
    #[error("{option} is for all programs: write it before the first of them")]
    Late {
        /// As it was written.
        option: String,
    },
    /// The MPI library does not have this error handler.
    #[error("{option} {name}: there is no such error handler; the names are {known}")]
    NoErrorHandler {
        /// As it was written.
        option: String,
        /// The unknown name.
        name: String,
        /// All names.
        known: String,
    },
    /// There is no program.
    #[error("a program is needed {place}, as in mpiexec -n 4 ./program")]
    NoProgram {
        /// The place where it is missing.
        place: &'static str,
    },
}

/// The meaning of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Processes,
    /// Processes on each host; on one host it is the number of processes.
    PerHost,
    /// One process on each host.
    OnePerHost,
    /// Processes on each host; on one host it means nothing.
    SlotsPerHost,
    /// The receiver of the standard input.
    Input,
    /// The hosts.
    Hosts,
    /// A file with the hosts.
    HostFile,
    /// The way to reach other hosts.
    Launcher,
    /// The command that reaches other hosts.
    LauncherCommand,
    Set {
        all: bool,
    },
    Export,
    Only {
        all: bool,
    },
    Bare {
        all: bool,
    },
    Inherit {
        all: bool,
    },
    Directory,
    Tag,
    BindTo,
    MapBy,
    Report,
    TimeLimit,
    GoOn,
    ErrorHandler,
    /// An option that asks for what is always done.
    AsItIs,
    Help,
    Version,
    NotHere(&'static str),
}

use Meaning::{
    AsItIs, Bare, BindTo, Directory, ErrorHandler, Export, GoOn, Help, HostFile, Hosts, Inherit,
    Input, Launcher, LauncherCommand, MapBy, NotHere, OnePerHost, Only, PerHost, Processes, Report,
    Set, SlotsPerHost, Tag, TimeLimit, Version,
};

const PLACES: &str = "ranks are placed by --ppn and --map-by; leave the option out";
const NETWORKS: &str = "hosts try their networks; use landeck run --network CIDR to prefer one";
const LAUNCHERS: &str = "choose ssh, rsh, slurm or manual; -launcher-exec gives another command";
const FILES: &str = "use landeck run --output-dir DIRECTORY";
const TREE: &str = "there are no other launchers below this one; leave the option out";
const COMPONENTS: &str = "it sets parameters of another implementation, which has other parts; leave it out with its \
                          values. `landeck run -h` lists what can be chosen here";
const MAPS: &str = "landeck run --dry-run and --report-bindings say where each process is";
const MAPPING: &str = "-map-by (slot, core, l3, numa, node) and -ppn say where ranks are placed";
const BINDING: &str = "-bind-to says what a process is bound to (none, hwthread, core, l3, numa, package), and -map-by \
                       pe=N gives it N cores";
const PREFIX: &str = "it names another implementation's folder; landeck run --remote-prefix DIRECTORY names Landeck's on \
                      the other hosts, if that differs";
const DEBUGGING: &str = "landeck why --stacks shows where a running job is; start a debugger as the program, as in \
                         mpiexec -n 2 xterm -e gdb ./program";
const RESTARTS: &str =
    "landeck run --on-failure says what follows a failure (abort, notify, restart)";
const OF_SRUN: &str = "it is an option of srun: -n gives the number of processes, -host the hosts, -ppn the processes on \
                       each, and -map-by pe=N their cores";
const STACKS: &str = "landeck run --timeout TIME --stacks shows them";

const OPTIONS: &[(&[&str], Meaning)] = &[
    (&["n", "np", "c"], Processes),
    (&["N", "npernode"], PerHost),
    (&["pernode"], OnePerHost),
    (&["stdin", "s"], Input),
    (&["env"], Set { all: false }),
    (&["genv"], Set { all: true }),
    (&["x"], Export),
    (&["envlist"], Only { all: false }),
    (&["genvlist"], Only { all: true }),
    (&["envnone"], Bare { all: false }),
    (&["genvnone"], Bare { all: true }),
    (&["envall"], Inherit { all: false }),
    (&["genvall"], Inherit { all: true }),
    (&["wdir", "wd"], Directory),
    (&["l", "prepend-rank", "tag-output"], Tag),
    (&["bind-to"], BindTo),
    (&["map-by"], MapBy),
    (&["report-bindings"], Report),
    (&["timeout"], TimeLimit),
    (&["disable-auto-cleanup"], GoOn),
    (&["initial-errhandler", "initial_errhandler"], ErrorHandler),
    (&["host", "hosts", "H"], Hosts),
    (&["f", "hostfile", "machinefile"], HostFile),
    (&["ppn", "perhost"], SlotsPerHost),
    (&["launcher", "bootstrap"], Launcher),
    (&["launcher-exec", "bootstrap-exec"], LauncherCommand),
    (&["oversubscribe", "allow-run-as-root"], AsItIs),
    (&["h", "help"], Help),
    (&["V", "version"], Version),
    (&["rankmap", "order-nodes", "hybrid-hosts", "skip-launch-node", "usize"], NotHere(PLACES)),
    (&["iface", "localhost"], NotHere(NETWORKS)),
    (&["rmk"], NotHere("allocations are found by themselves; leave the option out")),
    (&["enable-x", "disable-x", "demux"], NotHere(TREE)),
    (&["disable-hostname-propagation", "nameserver", "pmi-port", "topolib"], NotHere(TREE)),
    (&["outfile-pattern", "errfile-pattern"], NotHere(FILES)),
    (&["prepend-pattern"], NotHere("use -prepend-rank, or landeck run --tag=host")),
    (&["print-all-exitcodes", "profile", "info"], NotHere("landeck run --summary says some of it")),
    (&["v", "verbose"], NotHere("landeck run --dry-run and --report-bindings say what is started")),
    (&["configfile"], NotHere("write its lines with colons between them")),
    (&["membind"], NotHere("memory comes from where its first user runs; use -bind-to")),
    (&["gpus-per-proc"], NotHere("set CUDA_VISIBLE_DEVICES or the like with -env")),
    (
        &["memory-alloc-kinds"],
        NotHere("the only kinds are mpi and system, and they are always there"),
    ),
    // Of Open MPI.
    (&["mca", "gmca", "pmixmca", "prtemca", "omca", "tune", "am"], NotHere(COMPONENTS)),
    (&["prefix", "noprefix", "no-prefix", "path", "launch-agent"], NotHere(PREFIX)),
    (&["display-map", "display-allocation", "display-devel-map", "display"], NotHere(MAPS)),
    (&["report-pid", "report-uri", "do-not-launch", "show-progress"], NotHere(MAPS)),
    (
        &["bynode", "byslot", "bycore", "bysocket", "by-node", "by-slot", "rank-by"],
        NotHere(MAPPING),
    ),
    (
        &["npersocket", "loadbalance", "nolocal", "rankfile", "rf", "default-hostfile"],
        NotHere(MAPPING),
    ),
    (&["nooversubscribe", "no-oversubscribe"], NotHere("max_slots=N in a hostfile limits a host")),
    (
        &["cpus-per-proc", "cpus-per-rank", "cpu-set", "cpu-list", "use-hwthread-cpus"],
        NotHere(BINDING),
    ),
    (&["bind-to-core", "bind-to-socket", "bind-to-none"], NotHere(BINDING)),
    (&["output-filename", "xterm", "merge-stderr-to-stdout"], NotHere(FILES)),
    (&["timestamp-output", "xml"], NotHere("use -tag-output, or landeck run --tag=host")),
    (&["q", "quiet"], NotHere("nothing is said but failures; leave the option out")),
    (&["app"], NotHere("write its lines with colons between them")),
    (&["preload-binary", "preload-files"], NotHere("copy the files to the hosts first")),
    (&["debug", "tv", "gdb", "debug-daemons", "leave-session-attached"], NotHere(DEBUGGING)),
    (&["get-stack-traces", "report-state-on-timeout"], NotHere(STACKS)),
    (&["enable-recovery", "disable-recovery", "max-restarts", "continuous"], NotHere(RESTARTS)),
    // Of Intel MPI.
    (&["check_mpi", "gtool", "trace", "aps", "ilp64"], NotHere(COMPONENTS)),
    (&["rr", "grr", "print-rank-map"], NotHere(MAPPING)),
    // Of Slurm's srun.
    (&["ntasks", "nodes", "nodelist", "ntasks-per-node", "cpus-per-task"], NotHere(OF_SRUN)),
];

/// The hint for an option of other launchers given to `landeck run`; `None` if no launcher has it.
pub(crate) fn elsewhere(option: &str) -> Option<String> {
    let name = option.trim_start_matches('-').split('=').next().unwrap_or_default();
    let (_, meaning) = OPTIONS.iter().find(|(names, _)| names.contains(&name))?;
    let here = match meaning {
        NotHere(reason) => return Some(format!("{option} is not supported: {reason}")),
        AsItIs => return Some(format!("{option} is always so; leave the option out")),
        Processes => "-n",
        PerHost | SlotsPerHost => "--ppn",
        OnePerHost => "--ppn 1",
        Hosts => "--host",
        HostFile => "--hostfile",
        Launcher => "--start",
        LauncherCommand => "--rsh",
        Input => "--stdin",
        Set { .. } | Export => "-x NAME=VALUE",
        Only { .. } => "--env-none, and -x NAME for each",
        Bare { .. } => "--env-none",
        Inherit { .. } => return Some(format!("{option} is always so; leave the option out")),
        Directory => "--wdir",
        Tag => "--tag",
        BindTo => "--bind-to",
        MapBy => "--map-by",
        Report => "--report-bindings",
        TimeLimit => "--timeout",
        GoOn => "--on-failure notify",
        ErrorHandler => "-x LANDECK_MPI_INITIAL_ERRHANDLER=NAME",
        Help => "--help",
        Version => return Some(format!("{option}: `landeck --version` says it")),
    };
    Some(format!("{option} is an option of mpiexec; write {here}"))
}

/// Parses a line that begins with the name of the command.
///
/// # Errors
///
/// [`MpiexecError`].
pub(crate) fn read(
    line: &[OsString],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Asked, MpiexecError> {
    let Some((name, words)) = line.split_first() else { return Ok(Asked::Nothing) };
    if !is_meant(name) {
        return Ok(Asked::Nothing);
    }
    let time_limit = variable(TIMEOUT);
    let mut has_hosts = allocation::is_inside(|name| variable(name).is_some());
    // Some options mean something else when hosts are named, which may be said behind them.
    loop {
        let mut job = JobWords { has_hosts, ..JobWords::default() };
        if let Some(seconds) = &time_limit {
            job.options.extend(["--timeout".into(), seconds.clone()]);
        }
        let mut programs = Vec::new();
        for (number, words) in words.split(|word| word == ":").enumerate() {
            match job.read_program(words, number == 0)? {
                Read::Program(program) => programs.push(program),
                Read::Asked(asked) => return Ok(asked),
            }
        }
        if has_hosts || !job.names_hosts {
            return Ok(Asked::Run(job.line(programs)));
        }
        has_hosts = true;
    }
}

/// Whether the command was called as mpiexec or mpirun, perhaps with a suffix behind a dot.
fn is_meant(name: &OsStr) -> bool {
    let file = Path::new(name).file_name().and_then(OsStr::to_str).unwrap_or_default();
    NAMES.contains(&file.split('.').next().unwrap_or_default())
}

/// Settings of the whole job.
#[derive(Default)]
struct JobWords {
    /// Whether options or an allocation name hosts.
    has_hosts: bool,
    /// Whether an option names hosts.
    names_hosts: bool,
    /// Whether the first program was read.
    is_late: bool,
    /// Options of `landeck run` for the job.
    options: Vec<OsString>,
    /// Options of `landeck run` for each program, before its own.
    of_each: Vec<OsString>,
    /// Whether programs inherit no variables, unless their own options say otherwise.
    is_bare: bool,
}

/// One program with its arguments, and its options of `landeck run`.
struct ProgramWords {
    options: Vec<OsString>,
    processes: Option<OsString>,
    is_bare: Option<bool>,
    program: Vec<OsString>,
}

/// The part of a line between two colons.
enum Read {
    Program(ProgramWords),
    Asked(Asked),
}

impl JobWords {
    fn read_program(&mut self, words: &[OsString], is_first: bool) -> Result<Read, MpiexecError> {
        let mut program = ProgramWords {
            options: Vec::new(),
            processes: None,
            is_bare: None,
            program: Vec::new(),
        };
        let mut words = Words { rest: words };
        while let Some(flag) = words.flag() {
            let meaning = flag.meaning()?;
            if meaning.is_for_all() && !is_first {
                return Err(MpiexecError::Late { option: flag.written });
            }
            match meaning {
                Help => return Ok(Read::Asked(Asked::Help)),
                Version => return Ok(Read::Asked(Asked::Version)),
                _ => self.take(meaning, flag, &mut words, &mut program)?,
            }
        }
        self.is_late = true;
        program.program = words.rest.to_vec();
        if program.program.is_empty() {
            let place = if is_first { "after the options" } else { "after the colon" };
            return Err(MpiexecError::NoProgram { place });
        }
        Ok(Read::Program(program))
    }

    /// Handles an option and its values.
    fn take(
        &mut self,
        meaning: Meaning,
        mut flag: Flag,
        words: &mut Words<'_>,
        program: &mut ProgramWords,
    ) -> Result<(), MpiexecError> {
        let mut value = |what| words.value(&mut flag, what);
        match meaning {
            Processes => program.processes = Some(value("a number of processes")?),
            PerHost | OnePerHost | SlotsPerHost => {
                let one = (meaning == OnePerHost).then(|| "1".into());
                let number = one.map_or_else(|| value("a number of processes"), Ok)?;
                match (self.has_hosts, meaning) {
                    (true, _) => self.once("--ppn", number, &flag.written)?,
                    (false, SlotsPerHost) => {}
                    // On one host, -n and -npernode mean the same. The former wins.
                    (false, _) => program.processes = program.processes.take().or(Some(number)),
                }
            }
            Set { all } => {
                let (name, value) = (value("a name and a value")?, value("a value")?);
                self.exports(all, program).extend(["-x".into(), joined(&name, "=", &value)]);
            }
            Export => program.options.extend(["-x".into(), value("NAME or NAME=VALUE")?]),
            Only { all } => {
                let list = value("a list of names, such as A,B")?;
                self.bare(all, program, true);
                let names = list.to_string_lossy().into_owned();
                let names = names.split(',').filter(|name| !name.is_empty());
                self.exports(all, program)
                    .extend(names.flat_map(|name| ["-x".into(), name.into()]));
            }
            Bare { all } => self.bare(all, program, true),
            Inherit { all } => self.bare(all, program, false),
            Directory => program.options.extend(["--wdir".into(), value("a directory")?]),
            Tag => self.options.push("--tag".into()),
            BindTo => self.options.extend(["--bind-to".into(), place(&value("what")?)]),
            MapBy => {
                let how = value("how")?;
                match per_host(&flag.written, &how)? {
                    Some(number) if !self.has_hosts => {
                        program.processes.get_or_insert(number);
                    }
                    _ => self.options.extend(["--map-by".into(), place(&how)]),
                }
            }
            Report => self.options.push("--report-bindings".into()),
            TimeLimit => self.options.extend(["--timeout".into(), value("a number of seconds")?]),
            GoOn => self.options.extend(["--on-failure".into(), "notify".into()]),
            ErrorHandler => {
                let name = value("the name of an error handler")?;
                check_error_handler(&flag.written, &name)?;
                self.of_each.extend(["-x".into(), joined(INITIAL.as_ref(), "=", &name)]);
            }
            Input => self.options.extend(["--stdin".into(), value("all, none or a rank")?]),
            Hosts => {
                let hosts = value("names of hosts")?;
                self.names_hosts = true;
                self.once("--host", hosts, &flag.written)?;
            }
            HostFile => {
                self.names_hosts = true;
                self.options.extend(["--hostfile".into(), value("a file")?]);
            }
            Launcher => {
                let how = value("how")?;
                self.options.extend(launcher(&flag.written, &how)?.map(OsString::from));
            }
            LauncherCommand => self.options.extend(["--rsh".into(), value("a command")?]),
            AsItIs | Help | Version => {}
            NotHere(reason) => {
                return Err(MpiexecError::NotHere { option: flag.written, reason });
            }
        }
        // A value behind an option that takes none.
        let unused = flag.attached.map(|_| MpiexecError::Unknown { option: flag.written });
        unused.map_or(Ok(()), Err)
    }

    /// Adds an option of the whole job. A later program may only repeat it.
    fn once(&mut self, name: &str, value: OsString, written: &str) -> Result<(), MpiexecError> {
        let is_same = |pair: &[OsString]| pair[0] == name && pair[1] == value;
        if !self.options.windows(2).any(is_same) {
            if self.is_late {
                return Err(MpiexecError::Late { option: written.to_owned() });
            }
            self.options.extend([name.into(), value]);
        }
        Ok(())
    }

    fn exports<'a>(&'a mut self, all: bool, own: &'a mut ProgramWords) -> &'a mut Vec<OsString> {
        if all { &mut self.of_each } else { &mut own.options }
    }

    fn bare(&mut self, all: bool, own: &mut ProgramWords, is_bare: bool) {
        if all {
            self.is_bare = is_bare;
        } else {
            own.is_bare = Some(is_bare);
        }
    }

    /// The translated line.
    fn line(self, programs: Vec<ProgramWords>) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["landeck".into(), "run".into()];
        line.extend(self.options);
        let is_single = programs.len() == 1;
        for (number, program) in programs.into_iter().enumerate() {
            if number > 0 {
                line.push(":".into());
            }
            match program.processes {
                None if self.has_hosts && is_single => line.push("--one-by-default".into()),
                processes => line.extend(["-n".into(), processes.unwrap_or_else(|| "1".into())]),
            }
            if program.is_bare.unwrap_or(self.is_bare) {
                line.push("--env-none".into());
            }
            line.extend(self.of_each.iter().cloned());
            line.extend(program.options);
            line.push("--".into());
            line.extend(program.program);
        }
        line
    }
}

/// An option in the user's spelling.
struct Flag {
    written: String,
    name: String,
    /// The text behind its equals sign.
    attached: Option<OsString>,
}

impl Flag {
    fn meaning(&self) -> Result<Meaning, MpiexecError> {
        let found = OPTIONS.iter().find(|(names, _)| names.contains(&self.name.as_str()));
        found
            .map(|(_, meaning)| *meaning)
            .ok_or_else(|| MpiexecError::Unknown { option: self.written.clone() })
    }
}

impl Meaning {
    fn is_for_all(self) -> bool {
        match self {
            Set { all } | Only { all } | Bare { all } | Inherit { all } => all,
            Tag | BindTo | MapBy | Report | TimeLimit | GoOn | ErrorHandler => true,
            HostFile | Launcher | LauncherCommand | Input => true,
            Processes | PerHost | OnePerHost | SlotsPerHost | Export | Directory | Hosts
            | AsItIs => false,
            Help | Version | NotHere(_) => false,
        }
    }
}

/// The unparsed words of one program.
struct Words<'a> {
    rest: &'a [OsString],
}

impl Words<'_> {
    /// The next word if it is an option. A double dash ends the options.
    fn flag(&mut self) -> Option<Flag> {
        let (first, rest) = self.rest.split_first()?;
        let written = first.to_string_lossy().into_owned();
        if written == "--" {
            self.rest = rest;
            return None;
        }
        let name = written.strip_prefix("--").or_else(|| written.strip_prefix('-'))?;
        self.rest = rest;
        let (name, attached) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value.into())),
            None => (name, None),
        };
        let (name, attached) = match number_behind(name).filter(|_| attached.is_none()) {
            Some((name, number)) => (name, Some(number.into())),
            None => (name, attached),
        };
        Some(Flag { written: written.clone(), name: name.to_owned(), attached })
    }

    /// The text behind the equals sign, or else the next word.
    fn value(&mut self, flag: &mut Flag, values: &'static str) -> Result<OsString, MpiexecError> {
        if let Some(attached) = flag.attached.take() {
            return Ok(attached);
        }
        let (first, rest) = self
            .rest
            .split_first()
            .ok_or_else(|| MpiexecError::Value { option: flag.written.clone(), values })?;
        self.rest = rest;
        Ok(first.clone())
    }
}

/// The option and the number in a word like `np4`.
fn number_behind(word: &str) -> Option<(&str, &str)> {
    let (name, digits) = word.split_at(word.find(|letter: char| letter.is_ascii_digit())?);
    let is_it = ["n", "np", "N", "ppn"].contains(&name)
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_it.then_some((name, digits))
}

/// Translates MPICH's names of places.
fn place(word: &OsStr) -> OsString {
    match word.to_str() {
        Some("socket") => "package".into(),
        Some("l3cache") => "l3".into(),
        _ => word.to_owned(),
    }
}

/// The number in `ppr:N:node`, which without hosts is the number of processes. `None` for another mapping; N on each
/// core or cache is not supported.
fn per_host(option: &str, how: &OsStr) -> Result<Option<OsString>, MpiexecError> {
    let how = how.to_string_lossy();
    let Some(pattern) = how.strip_prefix("ppr:") else { return Ok(None) };
    match pattern.split_once(':') {
        Some((number, "node")) => Ok(Some(number.into())),
        _ => Err(MpiexecError::NotHere {
            option: format!("{option} {how}"),
            reason: "of these mappings there is ppr:N:node alone; give the number with -n, and core, l3 or \
                     numa with -map-by",
        }),
    }
}

/// Fails unless MPI has an error handler of this name.
fn check_error_handler(option: &str, name: &OsStr) -> Result<(), MpiexecError> {
    if ERROR_HANDLERS.iter().any(|known| name == *known) {
        return Ok(());
    }
    let (option, name) = (option.to_owned(), name.to_string_lossy().into_owned());
    Err(MpiexecError::NoErrorHandler { option, name, known: ERROR_HANDLERS.join(", ") })
}

/// The options of `landeck run` for one of MPICH's ways to reach other hosts.
fn launcher(option: &str, how: &OsStr) -> Result<[&'static str; 2], MpiexecError> {
    match how.to_str() {
        Some("ssh") => Ok(["--start", "ssh"]),
        Some("rsh") => Ok(["--rsh", "rsh"]),
        Some("slurm") => Ok(["--start", "slurm"]),
        Some("manual") => Ok(["--start", "by-hand"]),
        _ => {
            let option = format!("{option} {}", how.to_string_lossy());
            Err(MpiexecError::NotHere { option, reason: LAUNCHERS })
        }
    }
}

fn joined(first: &OsStr, between: &str, second: &OsStr) -> OsString {
    let mut text = first.to_owned();
    text.push(between);
    text.push(second);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Asked, MpiexecError> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        read(&words, |_| None)
    }

    /// The line of `landeck run` for this one.
    fn run(line: &str) -> String {
        match asked(&format!("/opt/bin/mpiexec {line}")).unwrap() {
            Asked::Run(words) => words.join(OsStr::new(" ")).into_string().unwrap(),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        asked(&format!("mpiexec {line}")).unwrap_err().to_string()
    }

    #[test]
    fn other_names_are_not_meant() {
        for name in ["landeck", "./mpi", "mpiexecs", "/mpiexec/landeck"] {
            assert_eq!(asked(&format!("{name} -n 2 x")), Ok(Asked::Nothing), "{name}");
        }
        for name in ["mpirun", "/usr/bin/mpiexec", "mpiexec.landeck"] {
            assert!(matches!(asked(&format!("{name} x")), Ok(Asked::Run(_))), "{name}");
        }
    }

    #[test]
    fn a_line_becomes_one_of_landeck_run() {
        for (line, wanted) in [
            ("a -n 9 -l", "-n 1 -- a -n 9 -l"),
            ("-n 4 ./a b", "-n 4 -- ./a b"),
            ("-np 4 a", "-n 4 -- a"),
            ("-np4 a", "-n 4 -- a"),
            ("-n4 a : -n2 b", "-n 4 -- a : -n 2 -- b"),
            ("-pernode a", "-n 1 -- a"),
            ("-pernode -H a,b x", "--ppn 1 --host a,b --one-by-default -- x"),
            ("-H a:2,b -np 3 x", "--host a:2,b -n 3 -- x"),
            ("--stdin none a", "--stdin none -n 1 -- a"),
            ("--np=4 a", "-n 4 -- a"),
            ("-l -n 2 a", "--tag -n 2 -- a"),
            ("-env K V a", "-n 1 -x K=V -- a"),
            ("-env K V=W a", "-n 1 -x K=V=W -- a"),
            ("-genv A 1 -n 2 -env A 2 a : b", "-n 2 -x A=1 -x A=2 -- a : -n 1 -x A=1 -- b"),
            (
                "-genvnone a : -envall b : c",
                "-n 1 --env-none -- a : -n 1 -- b : -n 1 --env-none -- c",
            ),
            ("-envlist A,B a : b", "-n 1 --env-none -x A -x B -- a : -n 1 -- b"),
            ("-wdir /tmp a", "-n 1 --wdir /tmp -- a"),
            ("-bind-to socket -map-by l3cache a", "--bind-to package --map-by l3 -n 1 -- a"),
            ("-map-by load:l3 -n 4 a", "--map-by load:l3 -n 4 -- a"),
            ("-disable-auto-cleanup a", "--on-failure notify -n 1 -- a"),
            (
                "-initial-errhandler mpi_errors_return a",
                "-n 1 -x LANDECK_MPI_INITIAL_ERRHANDLER=mpi_errors_return -- a",
            ),
            ("--tag-output -n 2 a", "--tag -n 2 -- a"),
            ("--report-bindings --timeout 9 a", "--report-bindings --timeout 9 -n 1 -- a"),
            ("-N 4 a", "-n 4 -- a"),
            ("-N 2 -np 4 a", "-n 4 -- a"),
            ("-np 4 -N 2 a", "-n 4 -- a"),
            ("--map-by ppr:4:node a", "-n 4 -- a"),
            ("-ppn 2 -n 3 a", "-n 3 -- a"),
            ("-ppn 2 -hosts a:4,b -n 3 a", "--ppn 2 --host a:4,b -n 3 -- a"),
            ("-N 2 -f h a", "--ppn 2 --hostfile h --one-by-default -- a"),
            ("-machinefile h a : b", "--hostfile h -n 1 -- a : -n 1 -- b"),
            ("-host a -n 2 x : -host a y", "--host a -n 2 -- x : -n 1 -- y"),
            (
                "--map-by ppr:4:node --host a,b x",
                "--map-by ppr:4:node --host a,b --one-by-default -- x",
            ),
            ("-launcher manual -hosts a,b -n 2 x", "--start by-hand --host a,b -n 2 -- x"),
            ("-launcher rsh -launcher-exec krsh x", "--rsh rsh --rsh krsh -n 1 -- x"),
            ("--oversubscribe --allow-run-as-root -n 3 -- -a", "-n 3 -- -a"),
        ] {
            assert_eq!(run(line), format!("landeck run {wanted}"), "{line}");
        }
    }

    #[test]
    fn the_line_is_understood() {
        for line in [
            "-l -genv A 1 -genvnone -n 2 -env B 2 -x C -wdir /tmp a -x : -np 3 -envlist A,B b : c",
            "-bind-to numa -map-by core -disable-auto-cleanup a",
        ] {
            let Ok(Asked::Run(words)) = asked(&format!("mpirun {line}")) else { panic!("{line}") };
            let read = crate::cli::parse(words).map_err(|usage| usage.0.to_string());
            assert!(matches!(read, Ok(crate::cli::Command::Run(..))), "{line}: {read:?}");
        }
    }

    #[test]
    fn options_are_refused_by_name() {
        for (line, words) in [
            ("-frobnicate a", "-frobnicate: there is no such option"),
            ("-l=3 a", "-l=3: there is no such option"),
            ("-n4x a", "-n4x: there is no such option"),
            ("--mca btl tcp,self -n 2 a", "--mca is not supported: it sets parameters of another"),
            ("--prefix /opt/ompi a", "--prefix is not supported: it names another"),
            ("--display-map a", "--display-map is not supported: landeck run --dry-run"),
            ("--bynode a", "--bynode is not supported: -map-by"),
            ("-rankmap (block) a", "-rankmap is not supported: ranks are placed by --ppn"),
            ("-launcher lsf a", "-launcher lsf is not supported: choose ssh, rsh, slurm or manual"),
            ("-host a -n 1 x : -host b y", "-host is for all programs: write it before the first"),
            ("-host a -n 1 x : -N 2 y", "-N is for all programs"),
            (
                "--map-by ppr:2:socket a",
                "--map-by ppr:2:socket is not supported: of these mappings there is",
            ),
            ("-initial-errhandler none a", "-initial-errhandler none: there is no such error"),
            ("-n 2 a : -l b", "-l is for all programs: write it before the first"),
            ("-n 2 a : -genv A 1 b", "-genv is for all programs"),
            ("-n", "-n needs a number of processes after it"),
            ("-env A", "-env needs a value after it"),
            ("-n 2", "a program is needed after the options"),
            ("a :", "a program is needed after the colon"),
        ] {
            let error = refused(line);
            assert!(error.starts_with(words), "{line}: {error}");
        }
    }

    #[test]
    fn every_option_is_there_once() {
        let mut names: Vec<&str> = OPTIONS.iter().flat_map(|(names, _)| *names).copied().collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn help_version_and_time_limit() {
        assert_eq!(asked("mpiexec -help"), Ok(Asked::Help));
        assert_eq!(asked("mpiexec -n 2 --version a"), Ok(Asked::Version));
        let read = read(&["mpiexec".into(), "a".into()], |name| {
            (name == "MPIEXEC_TIMEOUT").then(|| "90".into())
        });
        let Ok(Asked::Run(words)) = read else { panic!("{read:?}") };
        assert_eq!(words[2..4], ["--timeout", "90"]);
    }

    #[test]
    fn an_allocation_names_hosts() {
        let words: Vec<OsString> = ["mpiexec", "-N", "2", "a"].map(OsString::from).into();
        let variable = |name: &str| (name == "SLURM_JOB_NODELIST").then(|| "n[1-2]".into());
        let Ok(Asked::Run(words)) = read(&words, variable) else { panic!("it is a line") };
        assert_eq!(words[2..], ["--ppn", "2", "--one-by-default", "--", "a"]);
    }
}
