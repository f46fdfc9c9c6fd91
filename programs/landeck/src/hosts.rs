//! The options for several hosts, and the hosts that a job runs on: those of the command line, else those of an
//! allocation, else this one.

use crate::values::{setting, time, whole};
use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, ValueEnum};
use ipnet::IpNet;
use landeck::settings;
use landeck_host::budget::PROCESSES_MAX;
use landeck_host::placement::MapBy;
use landeck_hostfile::host_list::{add_up, from_file, from_words, is_this_host, merge};
use landeck_hostfile::placement::processes_of;
use landeck_hostfile::{
    AllocationError, BatchSystem, HostListError, HostPlacement, HostPlacementError, HostRequest,
    RANKS_MAX, RanksBy, allocation,
};
use landeck_joining::machines::MachineChoiceError;
use landeck_launch::hosts_options::{
    self, HOST_TIMEOUT, HOST_TIMEOUT_RANGE, HostStart, HostsOptions, PortRange, ranks_by,
};
use landeck_launch::machine::{BookingOrder, MachineError, MachineName, VARIABLE};
use landeck_launch::machine_call;
use landeck_launch::request::{LAUNCHER_FAILED, Launch, MachineWish};
use landeck_wire::way::PathWish;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The heading of these options.
const HOSTS: &str = "Several hosts";
/// The largest file with hosts, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The exit code of a wrong command line.
const WRONG_USAGE: u8 = 2;

/// Options for several hosts.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HostsArguments {
    /// Hosts with their slots: a:2,b.
    ///
    /// Also --hosts, and repeated. A host without a number has one slot; entries of one host add up; ada@a logs in as
    /// ada; IPv6 addresses stand in brackets. --host localhost means this host alone [default: the hosts of a Slurm,
    /// PBS, LSF or SGE allocation, else this host].
    #[arg(
        short = 'H',
        long = "host",
        alias = "hosts",
        value_name = "LIST",
        value_parser = host_words,
        action = ArgAction::Append,
        help_heading = HOSTS
    )]
    hosts: Vec<HostWords>,
    /// A file with a host in each line: a, a:2, or a slots=2 max_slots=4.
    ///
    /// Also --machinefile. Text behind # is a comment; lines of one host add up. More processes than slots oversubscribe
    /// a host, but no more than max_slots run there.
    #[arg(
        short = 'f',
        long,
        alias = "machinefile",
        value_name = "FILE",
        conflicts_with = "hosts",
        help_heading = HOSTS
    )]
    hostfile: Option<PathBuf>,
    /// Number of processes on each host.
    ///
    /// Also -ppn [default: its slots].
    #[arg(
        short = 'N',
        long,
        value_name = "N",
        value_parser = whole(1, PROCESSES_MAX),
        allow_negative_numbers = true,
        help_heading = HOSTS
    )]
    ppn: Option<u32>,
    /// How the other hosts are started: ssh, slurm (srun), by-hand.
    ///
    /// With by-hand, start landeckd join on each host [default: slurm on hosts of a Slurm allocation, else ssh].
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true, help_heading = HOSTS)]
    start: Option<StartHow>,
    #[command(flatten)]
    pub(crate) reach: ReachArguments,
    /// Run in this machine, which landeck vm has started [default: the one that this host is in; also LANDECK_MACHINE]
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["hosts", "hostfile", "ppn"],
        help_heading = HOSTS
    )]
    machine: Option<String>,
    /// Run on this host alone, also where it is in a machine
    #[arg(long, conflicts_with = "machine", help_heading = HOSTS)]
    no_machine: bool,
    /// Use hosts of the machine that no other job uses, and let no other job come there
    #[arg(
        long,
        conflicts_with_all = ["no_machine", "hosts", "hostfile", "ppn"],
        help_heading = HOSTS
    )]
    exclusive: bool,
    /// Wait until the machine has hosts for this job, in the order of asking
    #[arg(
        long,
        conflicts_with_all = ["no_machine", "hosts", "hostfile", "ppn"],
        help_heading = HOSTS
    )]
    wait: bool,
    /// The path of messages between hosts: auto, lane, relay, daemons.
    ///
    /// A lane is a connection of two processes; the relay is the daemon of the receiver's host. Auto takes lanes, and the
    /// relay where there can be none. With daemons each process goes through the daemon of its own host to that relay, and
    /// two hosts have one connection. Also LANDECK_PATH [default: auto]
    #[arg(
        long,
        value_name = "PATH",
        value_parser = PossibleValuesParser::new(PathWish::NAMES),
        hide_possible_values = true,
        help_heading = HOSTS
    )]
    pub(crate) path: Option<String>,
    /// The pace of many-to-one steps between hosts: none, fixed:K, calibrated, credit, tokens.
    ///
    /// None lets all members send at once, fixed:K only K of them, calibrated the number that the first steps show to be
    /// best. With credit the receiver grants parts, of which at most 128 KiB are on their way, or up to 8 MiB where more
    /// than 1 Gb/s arrive and nothing is lost; with credit:BYTES at most so many bytes. With tokens all messages need
    /// fixed buffers of 16 KiB at the receiver (tokens:segmentation), or ask for room (tokens:reservation), as their size
    /// says. Also LANDECK_INCAST [default: credit]
    #[arg(long, value_name = "PACE", value_parser = setting(settings::INCAST), help_heading = HOSTS)]
    pub(crate) incast: Option<String>,
    /// Where the data of long messages to other hosts wait: receiver, sender, auto, least-loaded, HOST.
    ///
    /// The header of a message always goes to its receiver. With receiver the data go there when it takes them. With sender
    /// they stay on the sender's host, and the sender goes on, or ends; with auto only if the receiver is late. With
    /// least-loaded they go to the least loaded host of the job that has neither of both, and with the name of a host there.
    /// Also LANDECK_STORE [default: receiver]
    #[arg(long, value_name = "WHERE", value_parser = setting(settings::STORE), help_heading = HOSTS)]
    pub(crate) store: Option<String>,
    /// Start one process on one host if nothing says how many, as mpiexec does.
    #[arg(long, hide = true)]
    one_by_default: bool,
}

/// How other hosts are reached.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReachArguments {
    /// The command that reaches another host, with its options [default: ssh]
    #[arg(long, value_name = "COMMAND", value_parser = command_words, overrides_with = "rsh", help_heading = HOSTS)]
    rsh: Option<RshWords>,
    /// The folder of Landeck on the other hosts [default: the launcher's]
    #[arg(long, value_name = "DIRECTORY", value_parser = absolute, help_heading = HOSTS)]
    remote_prefix: Option<PathBuf>,
    /// The time after which a silent host is lost, from 0.5 to 3600 seconds
    #[arg(
        long,
        value_name = "TIME",
        value_parser = host_timeout,
        allow_negative_numbers = true,
        default_value = "3",
        help_heading = HOSTS
    )]
    host_timeout: Option<Duration>,
    /// The ports to listen on, for firewalls [default: any]
    #[arg(long, value_name = "FIRST-LAST", value_parser = ports, help_heading = HOSTS)]
    port_range: Option<PortRange>,
    /// A network to use between hosts, as 10.1.0.0/16; several in order [default: those that are reached]
    #[arg(
        long = "network",
        value_name = "CIDR",
        value_parser = network,
        action = ArgAction::Append,
        help_heading = HOSTS
    )]
    networks: Vec<IpNet>,
    /// Do not encrypt messages between hosts
    #[arg(long, help_heading = HOSTS)]
    plain: bool,
}

impl ReachArguments {
    /// Writes these wishes into options.
    pub(crate) fn apply(&self, options: HostsOptions) -> HostsOptions {
        HostsOptions {
            rsh: self.rsh.clone().map_or(options.rsh, |words| words.0),
            remote_prefix: self.remote_prefix.clone(),
            host_timeout: self.host_timeout.unwrap_or(HOST_TIMEOUT),
            ports: self.port_range,
            networks: self.networks.clone(),
            is_plain: self.plain,
            ..options
        }
    }
}

/// A value of `--host`.
#[derive(Debug, Clone)]
pub(crate) struct HostWords(Vec<HostRequest>);

/// A value of `--rsh`: the command and its options.
#[derive(Debug, Clone)]
pub(crate) struct RshWords(pub(crate) Vec<String>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StartHow {
    Ssh,
    Slurm,
    ByHand,
}

impl HostsArguments {
    /// Whether an option names hosts.
    pub(crate) fn names_hosts(&self) -> bool {
        !self.hosts.is_empty() || self.hostfile.is_some() || self.ppn.is_some()
    }
}

/// A value of `--map-by`: the distribution on each host, and that over hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapByAsked {
    /// The distribution over the parts of a host.
    pub(crate) here: MapBy,
    /// The order of hosts.
    order: BookingOrder,
    /// The number of processes on each host.
    per_host: Option<u32>,
}

/// The wishes for hosts, before files and the environment were read.
#[derive(Debug)]
pub(crate) struct HostsAsked {
    /// The options.
    pub(crate) arguments: HostsArguments,
    /// The value of `--map-by`.
    pub(crate) map_by: MapByAsked,
}

/// The reason why the hosts of a job are unclear.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostsError {
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    #[error("--hostfile {path}: {reason}; give a file with a host in each line")]
    Unreadable { path: String, reason: String },
    #[error("--hostfile {path}: {fault}")]
    File { path: String, fault: HostListError },
    #[error("--host: {0}")]
    List(HostListError),
    #[error(transparent)]
    Placement(#[from] HostPlacementError),
    #[error("--ppn {ppn}: --map-by ppr:{per_host}:node says another number; leave one of them out")]
    PerHost { ppn: u32, per_host: u32 },
    #[error(
        "--map-by load: only a machine that stays knows how busy its hosts are; start one with landeck vm start, or choose node"
    )]
    Load,
    #[error(
        "--map-by site: only a machine that stays has sites; start one from a description of its networks with landeck vm start, or choose node"
    )]
    Site,
    #[error("--rsh: the hosts are not started by such a command; leave it out, or use --start ssh")]
    NoRsh,
    #[error("--host {login}@{host}: {reason}")]
    Login { login: String, host: String, reason: &'static str },
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("-n {wanted}: {reason}")]
    Processes { wanted: u32, reason: String },
}

impl HostsError {
    /// The exit code for this error.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            HostsError::PerHost { .. }
            | HostsError::Load
            | HostsError::Site
            | HostsError::NoRsh
            | HostsError::Processes { .. } => WRONG_USAGE,
            HostsError::List(_) | HostsError::Login { .. } => WRONG_USAGE,
            HostsError::Allocation(_) | HostsError::Unreadable { .. } => LAUNCHER_FAILED,
            HostsError::File { .. } | HostsError::Placement(_) | HostsError::Machine(_) => {
                LAUNCHER_FAILED
            }
        }
    }
}

/// The surroundings in which a job is started.
pub(crate) struct Surroundings<'a> {
    /// The name of this host.
    pub(crate) own: String,
    /// Looks a variable up.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Finds the machine with a name, or the only one on this host.
    pub(crate) machine: &'a dyn Fn(Option<&str>) -> Result<MachineName, MachineError>,
}

impl Surroundings<'_> {
    /// The surroundings of this process.
    pub(crate) fn real() -> Surroundings<'static> {
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Surroundings {
            own,
            variable: &|name| std::env::var(name).ok(),
            machine: &machine_call::find,
        }
    }
}

impl HostsAsked {
    /// Writes the hosts into a launch: several of them, or none for this host alone.
    ///
    /// # Errors
    /// [`HostsError`].
    pub(crate) fn settle(
        &self,
        launch: &mut Launch,
        around: &Surroundings<'_>,
    ) -> Result<(), HostsError> {
        let arguments = &self.arguments;
        let per_host = self.per_host()?;
        if arguments.reach.rsh.is_some() && arguments.start.is_some_and(|how| how != StartHow::Ssh)
        {
            return Err(HostsError::NoRsh);
        }
        let without_machine = || match self.map_by.order {
            BookingOrder::Load => Err(HostsError::Load),
            BookingOrder::Site => Err(HostsError::Site),
            BookingOrder::Fill | BookingOrder::Spread => Ok(()),
        };
        let Some((list, is_of_slurm)) = self.list(around)? else {
            if let Some(name) = self.machine(around, per_host)? {
                let (is_exclusive, waits) = (arguments.exclusive, arguments.wait);
                let order = self.map_by.order;
                launch.machine = Some(MachineWish { name, order, is_exclusive, waits });
                return check_numbers(launch);
            }
            without_machine()?;
            let default = if arguments.one_by_default { Some(1) } else { None };
            return one_host(launch, per_host.or(default));
        };
        without_machine()?;
        let is_here = |host: &HostRequest| is_this_host(&host.name, &around.own);
        for host in list.iter().filter(|host| is_here(host)) {
            check_login_here(host, around)?;
        }
        let here: Vec<usize> = (0..list.len()).filter(|at| is_here(&list[*at])).collect();
        let pairs: Vec<(usize, usize)> = here.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let list = merge(&list, &pairs).hosts;
        if let [only] = list.as_slice()
            && is_here(only)
        {
            let default = per_host.unwrap_or(only.slots);
            one_host(launch, Some(default))?;
            let wanted = numbers(launch).map(|number| number.unwrap_or(1)).sum();
            HostPlacement::new(&list, RanksBy::Slot, per_host, wanted)?;
            return Ok(());
        }
        processes_of(&numbers(launch).collect::<Vec<_>>(), &list, per_host)?;
        let wish = self.wish(list, per_host, is_of_slurm);
        if wish.start != HostStart::Ssh
            && let Some((host, login)) =
                wish.list.iter().find_map(|host| Some((host, host.login.clone()?)))
        {
            let reason =
                "the hosts are started without logging in; leave the user out, or use --start ssh";
            return Err(HostsError::Login { login, host: host.name.clone(), reason });
        }
        launch.hosts = Some(wish);
        Ok(())
    }

    /// The machine that the job runs in, if it is one. `mpiexec` uses only one that the environment names, and a number of
    /// processes for each host means this host alone.
    fn machine(
        &self,
        around: &Surroundings<'_>,
        per_host: Option<u32>,
    ) -> Result<Option<MachineName>, HostsError> {
        let arguments = &self.arguments;
        let is_of_batch = allocation::current(around.variable, |_| Ok(String::new()))
            .is_ok_and(|found| found.is_some());
        if arguments.no_machine {
            return Ok(None);
        }
        if let Some(named) = arguments.machine.clone().or_else(|| (around.variable)(VARIABLE)) {
            return Ok(Some((around.machine)(Some(&named))?));
        }
        if is_of_batch || arguments.one_by_default || per_host.is_some() {
            return Ok(None);
        }
        match (around.machine)(None) {
            Ok(name) => Ok(Some(name)),
            Err(MachineError::Choice(MachineChoiceError::None))
                if !arguments.exclusive && !arguments.wait =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The number of processes on each host.
    fn per_host(&self) -> Result<Option<u32>, HostsError> {
        match (self.arguments.ppn, self.map_by.per_host) {
            (Some(ppn), Some(per_host)) if ppn != per_host => {
                Err(HostsError::PerHost { ppn, per_host })
            }
            (ppn, per_host) => Ok(ppn.or(per_host)),
        }
    }

    /// The hosts asked for, and whether Slurm has given them; `None` if nothing names hosts, or an allocation has only
    /// one.
    fn list(
        &self,
        around: &Surroundings<'_>,
    ) -> Result<Option<(Vec<HostRequest>, bool)>, HostsError> {
        let allocation = || allocation::current(around.variable, |path| read_file(Path::new(path)));
        let asked = match &self.arguments.hostfile {
            Some(path) => Some(read_hostfile(path)?),
            None if self.arguments.hosts.is_empty() => None,
            None => {
                let words = self.arguments.hosts.iter().flat_map(|words| words.0.iter().cloned());
                Some(add_up(words).map_err(HostsError::List)?)
            }
        };
        let Some(list) = asked else {
            let found = allocation()?.filter(|found| found.hosts.len() > 1);
            return Ok(found.map(|found| (found.hosts, found.system == BatchSystem::Slurm)));
        };
        // The command line decides, so an allocation that is not understood is none.
        let given = allocation().ok().flatten().filter(|found| found.system == BatchSystem::Slurm);
        let is_given = given.is_some_and(|given| {
            let is_known = |host: &HostRequest| {
                let is_it = |other: &HostRequest| is_this_host(&host.name, &other.name);
                is_this_host(&host.name, &around.own) || given.hosts.iter().any(is_it)
            };
            list.iter().all(is_known)
        });
        Ok(Some((list, is_given)))
    }

    fn wish(
        &self,
        list: Vec<HostRequest>,
        per_host: Option<u32>,
        is_of_slurm: bool,
    ) -> HostsOptions {
        let HostsArguments { start, reach, .. } = &self.arguments;
        let start = match start {
            Some(StartHow::Ssh) => HostStart::Ssh,
            Some(StartHow::Slurm) => HostStart::Slurm,
            Some(StartHow::ByHand) => HostStart::ByHand,
            None if is_of_slurm && reach.rsh.is_none() => HostStart::Slurm,
            None => HostStart::Ssh,
        };
        reach.apply(HostsOptions {
            map_by: ranks_by(self.map_by.order),
            per_host,
            start,
            ..HostsOptions::new(list)
        })
    }
}

/// Fails if this host is to be reached as another user: nobody logs in here.
fn check_login_here(host: &HostRequest, around: &Surroundings<'_>) -> Result<(), HostsError> {
    let own = ["USER", "LOGNAME"].into_iter().find_map(|name| (around.variable)(name));
    match &host.login {
        Some(login) if own.as_ref() != Some(login) => {
            let reason =
                "this is the host that the job is started on, as its user; leave the other one out";
            Err(HostsError::Login { login: login.clone(), host: host.name.clone(), reason })
        }
        _ => Ok(()),
    }
}

/// The numbers of processes that were asked for.
fn numbers(launch: &Launch) -> impl Iterator<Item = Option<u32>> {
    launch.programs.iter().map(|program| program.processes)
}

/// Settles a job on this host alone: gives a single program its default number, and checks all numbers.
fn one_host(launch: &mut Launch, default: Option<u32>) -> Result<(), HostsError> {
    if let [program] = launch.programs.as_mut_slice() {
        program.processes = program.processes.or(default);
    }
    check_numbers(launch)
}

/// Checks the numbers of processes of a job.
fn check_numbers(launch: &Launch) -> Result<(), HostsError> {
    for wanted in numbers(launch).flatten() {
        whole(1, PROCESSES_MAX)(&wanted.to_string())
            .map_err(|reason| HostsError::Processes { wanted, reason })?;
    }
    Ok(())
}

/// The hosts in a file of `--hostfile`.
///
/// # Errors
/// [`HostsError::Unreadable`] and [`HostsError::File`].
pub(crate) fn read_hostfile(path: &Path) -> Result<Vec<HostRequest>, HostsError> {
    let shown = path.display().to_string();
    match read_file(path) {
        Err(reason) => Err(HostsError::Unreadable { path: shown, reason }),
        Ok(text) => from_file(&text).map_err(|fault| HostsError::File { path: shown, fault }),
    }
}

/// The text of a file, or the reason why it has none.
fn read_file(path: &Path) -> Result<String, String> {
    let reason = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(reason)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(reason)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("it has more than 16 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())
}

/// Parses the number of processes. Numbers beyond the limit of one host are for several hosts, which are known later.
pub(crate) fn processes(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if (PROCESSES_MAX..=RANKS_MAX).contains(&number) => Ok(number),
        _ => whole(1, PROCESSES_MAX)(text),
    }
}

/// Parses the value of `--map-by`: `node`, `site`, `load` or `ppr:N:node` for hosts, perhaps followed by a distribution on each host.
pub(crate) fn map_by(text: &str) -> Result<MapByAsked, String> {
    const CHOICES: &str = "slot, core, l3, numa, node, site, load, ppr:N:node, pe=N, or one of them with a number as in numa:pe=2";
    let refused = || format!("\"{text}\" is not known here; choose {CHOICES}");
    let word = text.to_ascii_lowercase();
    let (order, per_host, rest) = match word.strip_prefix("ppr:") {
        Some(pattern) => {
            let (number, rest) = pattern.split_once(':').ok_or_else(refused)?;
            let number = whole(1, PROCESSES_MAX)(number).map_err(|_| refused())?;
            (BookingOrder::Fill, Some(number), after(rest, "node").ok_or_else(refused)?)
        }
        None => {
            let orders = [
                ("node", BookingOrder::Spread),
                ("site", BookingOrder::Site),
                ("load", BookingOrder::Load),
            ];
            let found =
                orders.into_iter().find_map(|(name, order)| Some((order, after(&word, name)?)));
            let (order, rest) = found.unwrap_or((BookingOrder::Fill, &word));
            (order, None, rest)
        }
    };
    let is_for_hosts = per_host.is_some() || order != BookingOrder::Fill;
    let here = match rest {
        "" if is_for_hosts => MapBy::default(),
        rest => rest.parse().map_err(|_| refused())?,
    };
    Ok(MapByAsked { here, order, per_host })
}

/// The words behind this one and its colon; `None` if the text does not begin so.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    match text.strip_prefix(word)? {
        "" => Some(""),
        rest => rest.strip_prefix(':').filter(|rest| !rest.is_empty()),
    }
}

fn host_words(text: &str) -> Result<HostWords, String> {
    from_words(text).map(HostWords).map_err(|error| error.to_string())
}

/// Parses a command with its options, quoted as in a shell.
pub(crate) fn command_words(text: &str) -> Result<RshWords, &'static str> {
    let words = shlex::split(text).ok_or("a quote or a backslash stands open at its end")?;
    match words.is_empty() {
        true => Err("a command is wanted, such as ssh or \"ssh -p 2222\""),
        false => Ok(RshWords(words)),
    }
}

fn absolute(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    match path.is_absolute() {
        true => Ok(path),
        false => Err("an absolute path is wanted, such as /opt/landeck"),
    }
}

fn host_timeout(text: &str) -> Result<Duration, &'static str> {
    const WANTED: &str = "a time from 0.5 to 3600 seconds is wanted, such as 3";
    let [least, most] = HOST_TIMEOUT_RANGE;
    let wanted = time(text).ok().filter(|time| (least..=most).contains(time));
    wanted.ok_or(WANTED)
}

/// Parses a range of ports.
pub(crate) fn ports(text: &str) -> Result<PortRange, String> {
    text.parse().map_err(|error: hosts_options::PortRangeError| error.to_string())
}

/// A value of `--incast`, which the processes read.
fn network(text: &str) -> Result<IpNet, String> {
    hosts_options::network(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
