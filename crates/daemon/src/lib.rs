//! The daemon that connects the hosts of a machine: one for each machine, host and user.
//!
//! It is one thread around one `epoll`. The loop holds no decision: those are machines in `landeck_protocols::hosts`, which
//! the simulator runs too. `docs/internals/hosts.md` describes how hosts find, trust and lose each other.
//!
//! | module | content |
//! |---|---|
//! | `run`, `context`, `hub` | the loop, what it offers to jobs, and the state behind that |
//! | `calls` | connections that come, and those that go out |
//! | `trunks` | the connections of daemons, and what travels in them |
//! | `membership`, `parts` | words and silence, and the far records that they change |
//! | `heartbeats` | sending them and taking them |
//! | `lanes`, `relay`, `process_socket` | the connections of processes |
//! | `gateway`, `tunnels` | connections that are passed on, and streams of processes over one connection |
//! | `reactor`, `orders` | descriptors that a thread waits for, and orders to a thread |
//! | `links`, `load` | what messages between hosts cost, and how busy this one is |
//! | `job` | starting and ending the parts of a job |
//! | `machine` | machines that stay: their callers, and what their founder knows |
//! | `journal` | everything that the next run of this daemon needs |
//! | `observers` | what observers see of the other hosts of a job, and of their daemons |
//! | [`bootstrap`], [`facts`], `join` | how a daemon gets its place |

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ipnet::IpNet;
use landeck_host::detached::{self, Side};
use landeck_host::say;
use landeck_host::signals::CaughtSignals;
use landeck_joining::inherited;
use landeck_launch::guardian::server::{self, GuardianServer};
use landeck_launch::hosts_options::PortRange;
use landeck_launch::machine::MachineName;
use landeck_trust::{JoinToken, KeyPair};
use landeck_wire::{ControlMessage, HostIncarnation, HostNumber, MachineId};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use tracing::info;

use crate::bootstrap::{Announcement, Assignment, Enrolment, LINE_BYTES_MAX, Place};
use crate::daemon_message::DaemonMessage;
use crate::facts::HostFacts;
use crate::hub::record::Record;
use crate::hub::{Hub, Port, Station};
use crate::job::jobs::{CALLERS, Jobs};
use crate::join::FounderWay;
use crate::journal::{Entries, Entry, EntryName, KeptPlace};
use crate::machine::founder::Founder;
use crate::machine::keeper::{self, Run};
use crate::machine::returning::{ReturnError, Returning};
use crate::machine::standing::Standing;
use crate::machine::ticket::ReturnTicket;
pub use crate::process_socket::process_socket_name;

mod addresses;
mod admission;
pub mod bootstrap;
mod calls;
mod clock;
mod context;
mod daemon_message;
pub mod facts;
mod figures;
mod gateway;
mod heartbeats;
mod hub;
mod job;
mod job_message;
mod join;
mod journal;
mod lanes;
mod links;
mod load;
mod machine;
mod machine_message;
mod membership;
mod observers;
mod orders;
mod parts;
mod process_socket;
mod random;
mod reactor;
mod relay;
mod run;
mod trunks;
mod tunnels;

#[cfg(test)]
mod several;

/// The name of the process, as `ps` shows it.
const NAME: &std::ffi::CStr = c"landeckd";

/// How a daemon gets its place.
#[derive(Clone, Debug)]
pub enum DaemonRole {
    /// It makes a machine for the job of its launcher, and is its arbiter.
    Arbiter {
        /// The descriptor of the socket to the launcher; `None` means standard input.
        launcher: Option<String>,
    },
    /// It founds a machine that stays, and is its arbiter.
    Founder {
        /// The name of the machine.
        machine: MachineName,
        /// The options of the machine.
        options: bootstrap::DaemonOptions,
        /// The ports that it may use.
        ports: Option<PortRange>,
        /// The networks that it prefers.
        networks: Vec<IpNet>,
    },
    /// It was started by a remote shell: it announces itself on its standard output, and gets its place on its standard
    /// input.
    Bootstrap {
        /// The machine, if it is one that stays.
        machine: Option<MachineName>,
        /// The name of this host; by default the kernel's.
        name: Option<String>,
        /// Whether the streams belong to the daemons of several hosts. They carry no trunk then.
        shares_streams: bool,
        /// The ports that it may use.
        ports: Option<PortRange>,
        /// The networks that it prefers.
        networks: Vec<IpNet>,
    },
    /// It comes back to its machine by the return ticket of this host.
    Return {
        /// The machine.
        machine: MachineName,
    },
    /// It joins a machine by a token.
    Join {
        /// The address of the founder, if it is another one than that of the token.
        address: Option<std::net::SocketAddr>,
        /// The file with the token; `-` means standard input.
        token_file: PathBuf,
        /// The name of this host; by default the kernel's.
        name: Option<String>,
        /// The ports that it may use.
        ports: Option<PortRange>,
        /// The networks that it prefers.
        networks: Vec<IpNet>,
    },
}

/// The reason why a daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The kernel refused something.
    #[error("landeckd cannot {attempt}: {source}")]
    System {
        /// The attempt.
        attempt: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// None of the ports is free.
    #[error("landeckd cannot listen on the ports {first}-{last} (--port-range): {source}")]
    Ports {
        /// The first port.
        first: u16,
        /// The last port.
        last: u16,
        /// The kernel's error.
        source: io::Error,
    },
    /// Callers cannot reach it, since another daemon has that name.
    #[error(
        "a machine {0} of this user is on this host already: landeck vm stop --machine {0} ends it"
    )]
    NameTaken(MachineName),
    /// The line with its place is not understood.
    #[error(transparent)]
    Line(#[from] bootstrap::LineError),
    /// The streams ended before its place was known.
    #[error("landeckd got no place in a machine: what started it has ended")]
    NoPlace,
    /// The token is none.
    #[error(transparent)]
    Token(#[from] landeck_trust::JoinTokenError),
    /// The founder does not admit this host.
    #[error(transparent)]
    Join(#[from] join::MachineJoinError),
    /// There is no ticket to come back with.
    #[error(transparent)]
    Ticket(#[from] machine::ticket::TicketError),
    /// The daemon does not come back.
    #[error(transparent)]
    Return(#[from] machine::returning::ReturnError),
}

/// Runs a daemon to its end. The process must have one thread.
pub fn run(role: DaemonRole) -> ExitCode {
    let stays = match &role {
        DaemonRole::Founder { .. } => true,
        DaemonRole::Bootstrap { machine, .. } => machine.is_some(),
        DaemonRole::Return { .. } | DaemonRole::Arbiter { .. } | DaemonRole::Join { .. } => false,
    };
    if stays {
        match detached::fork() {
            Ok(Side::Detached) => {}
            Ok(Side::Starter(code)) => return ExitCode::from(code),
            Err(error) => {
                say::complain(format_args!("landeckd cannot leave its terminal: {error}"));
                return ExitCode::FAILURE;
            }
        }
    }
    // Guardians are forked by a process that has neither keys nor sockets.
    let run = match &role {
        DaemonRole::Founder { machine, .. }
        | DaemonRole::Bootstrap { machine: Some(machine), .. } => keeper::keep(machine, false),
        DaemonRole::Return { machine } => keeper::keep(machine, true),
        _ => server::fork().map(|server| Ok(Run::only(server))).map_err(io::Error::other),
    };
    let run = match run {
        Ok(Ok(run)) => run,
        Ok(Err(code)) => return ExitCode::from(code),
        Err(error) => {
            say::complain(format_args!("landeckd cannot begin: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match live(role, run) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say::complain(error);
            ExitCode::FAILURE
        }
    }
}

/// Returns the exit code of the daemon: [`keeper::COMES_BACK`] when it has lost its founder, and everything in it has ended.
fn live(role: DaemonRole, run: Run) -> Result<u8, DaemonError> {
    inherited::reserve_standard();
    let system = |attempt| move |source| DaemonError::System { attempt, source };
    let signals = CaughtSignals::catch().map_err(system("catch signals"))?;
    observers::log::begin();
    guard_keys();
    raise_descriptors();
    let Run { server, journal, mut left, number, end_before, leased_from, record, returns } = run;
    if let Some(end) = end_before {
        info!("landeckd has started again, as run {number}: the run before {end}");
    }
    let role = match role {
        DaemonRole::Bootstrap { machine: Some(machine), .. } if returns => {
            DaemonRole::Return { machine }
        }
        role => role,
    };
    let (mut hub, mut jobs) = match role {
        _ if number > 0 => {
            let (mut hub, place, founder) = resumed(&mut left, (number, leased_from), record)?;
            hub.show_jobs(&place.machine.look_address()).map_err(system("listen for observers"))?;
            let standing = standing(place.clone(), founder)?;
            // With that its keeper knows that it listens.
            hub.keep(journal, place);
            (hub, Jobs::of_machine(server, standing.returned(), left))
        }
        DaemonRole::Arbiter { launcher } => found(server, launcher)?,
        // A founder that is killed before it has begun does not come back.
        DaemonRole::Founder { .. } if returns => return Err(DaemonError::NoPlace),
        DaemonRole::Founder { machine, options, ports, networks } => {
            let looks = machine.look_address();
            let place = Place { machine, ports, networks: networks.clone() };
            let founder = Founder::new(place.machine.clone());
            let standing = standing(place.clone(), Some(founder))?;
            // The first host that is admitted opens it.
            let port = Port::closed(ports, &networks).map_err(system("make its keys"))?;
            let mut hub = founded(options, port)?;
            hub.show_jobs(&looks).map_err(system("listen for observers"))?;
            hub.keep(journal, place);
            (hub, Jobs::of_machine(server, standing, left))
        }
        DaemonRole::Bootstrap { machine: Some(machine), name, ports, networks, .. } => {
            let mut hub = assigned(name, None, ports, &networks)?;
            hub.show_jobs(&machine.look_address()).map_err(system("listen for observers"))?;
            let place = Place { machine, ports, networks };
            hub.keep(journal, place.clone());
            (hub, Jobs::of_machine(server, standing(place, None)?, left))
        }
        DaemonRole::Return { machine } => {
            let ticket = ReturnTicket::read(&machine)?;
            let mut hub = returned(&machine, &ticket, &signals)?;
            hub.show_jobs(&machine.look_address()).map_err(system("listen for observers"))?;
            let place = Place { machine, ports: ticket.ports, networks: ticket.networks };
            hub.keep(journal, place.clone());
            (hub, Jobs::of_machine(server, standing(place, None)?.returned(), left))
        }
        DaemonRole::Bootstrap { name, shares_streams, ports, networks, .. } => {
            (assigned(name, Some(shares_streams), ports, &networks)?, Jobs::of_host(server))
        }
        DaemonRole::Join { address, token_file, name, ports, networks } => {
            (joined(address, &token_file, name, ports, &networks)?, Jobs::of_host(server))
        }
    };
    hub.heed(signals).map_err(system("watch for signals"))?;
    let code = run::run(hub, &mut jobs);
    Ok(if jobs.comes_back() { keeper::COMES_BACK } else { code })
}

/// Goes on in the place of the run before; a founder from its record.
fn resumed(
    left: &mut Entries,
    (run, leased_from): (u32, Option<Duration>),
    record: Option<Vec<u8>>,
) -> Result<(Hub, Place, Option<Founder>), DaemonError> {
    let system = |attempt| move |source| DaemonError::System { attempt, source };
    let (place, sockets) = match left.remove(EntryName::Place) {
        Some((Entry::Place(place), sockets)) => (*place, sockets),
        _ => return Err(DaemonError::NoPlace),
    };
    let KeptPlace { enrolment, key, place } = place;
    let pair = KeyPair::restored(&key).map_err(io::Error::other);
    let pair = pair.map_err(system("go on with its keys"))?;
    let port = Port::inherited(pair, sockets, (place.ports, &place.networks));
    let port = port.map_err(system("go on with its port"))?;
    let mut station = Station { run, leased_from, ..Station::first(enrolment) };
    if station.own.host != HostNumber::ARBITER {
        return Ok((Hub::new(port, station).map_err(system("begin"))?, place, None));
    }
    let record = record.and_then(|bytes| Record::decode(&bytes).ok());
    let record = record.ok_or(DaemonError::NoPlace)?;
    if let Some((own, _)) = record.arbiter.host(HostNumber::ARBITER) {
        // It may have got other addresses since.
        (station.own, station.arbiter) = (own.clone(), own.clone());
    }
    let founder = Founder::decode(&record.founder).map_err(|_| DaemonError::NoPlace)?;
    let hub = Hub::from_record(port, station, record).map_err(system("begin"))?;
    Ok((hub, place, Some(founder)))
}

/// The error of a daemon that cannot listen.
fn no_port(ports: Option<PortRange>) -> impl Fn(io::Error) -> DaemonError {
    move |source| match ports {
        Some(PortRange { first, last }) => DaemonError::Ports { first, last, source },
        None => DaemonError::System { attempt: "listen", source },
    }
}

/// Makes a machine for the launcher's job.
fn found(server: GuardianServer, launcher: Option<String>) -> Result<(Hub, Jobs), DaemonError> {
    let system = |attempt| move |source| DaemonError::System { attempt, source };
    let launcher = match launcher {
        Some(number) => inherited::take(&number, |_| true).map_err(|error| {
            DaemonError::System { attempt: "reach its launcher", source: io::Error::other(error) }
        })?,
        None => own_copy(io::stdin().as_fd()).map_err(system("reach its launcher"))?,
    };
    let (jobs, wanted) =
        Jobs::of_launcher(server, launcher).map_err(system("learn what its launcher wants"))?;
    let port = Port::open(wanted.ports, &wanted.networks).map_err(no_port(wanted.ports))?;
    Ok((founded(wanted.options, port)?, jobs))
}

/// The arbiter of a new machine.
fn founded(options: bootstrap::DaemonOptions, port: Port) -> Result<Hub, DaemonError> {
    let system = |attempt| move |source| DaemonError::System { attempt, source };
    let random = || random::number().map_err(system("make random numbers"));
    let (machine, incarnation) = (MachineId(random()?), HostIncarnation(random()?));
    let own = port.entry(HostNumber::ARBITER, incarnation, host_name());
    let (arbiter, gateways) = (own.clone(), Vec::new());
    let enrolment = Enrolment { machine, options, own, arbiter, gateways };
    Hub::new(port, Station::first(enrolment)).map_err(system("begin"))
}

/// Listens for the callers of a machine that stays.
fn standing(place: Place, founder: Option<Founder>) -> Result<Standing, DaemonError> {
    let machine = place.machine.clone();
    Standing::begin(place, founder, CALLERS).map_err(name_taken(&machine))
}

/// The error of a daemon that cannot listen for its callers.
fn name_taken(machine: &MachineName) -> impl Fn(io::Error) -> DaemonError {
    move |source| match source.kind() {
        io::ErrorKind::AddrInUse => DaemonError::NameTaken(machine.clone()),
        _ => DaemonError::System { attempt: "listen for its callers", source },
    }
}

/// Announces this daemon on standard output, and takes its place from standard input. `shares_streams` says whether other
/// hosts have the same streams; `None`: this daemon leaves them.
fn assigned(
    name: Option<String>,
    shares_streams: Option<bool>,
    ports: Option<PortRange>,
    networks: &[IpNet],
) -> Result<Hub, DaemonError> {
    let system = |attempt| move |source| DaemonError::System { attempt, source };
    let port = Port::open(ports, networks).map_err(no_port(ports))?;
    let announcement = Announcement {
        key: port.pair.hash(),
        port: port.listener.port(),
        addresses: port.addresses.clone(),
        facts: HostFacts::here(),
        name: name.unwrap_or_else(host_name),
    };
    say::say(&format!("{announcement}\n")).map_err(|error| DaemonError::System {
        attempt: "announce itself",
        source: io::Error::other(error),
    })?;
    let (input, output) = (io::stdin(), io::stdout());
    let assignment = loop {
        let assignment: Assignment = read_line(&input)?.parse()?;
        // Lines for other keys are those of other hosts, if they share this input.
        if assignment.key == announcement.key || shares_streams != Some(true) {
            break assignment;
        }
    };
    let station = Station::first(assignment.enrolment);
    let mut hub = Hub::new(port, station).map_err(system("begin"))?;
    if let Some(shares_streams) = shares_streams {
        let input = own_copy(input.as_fd()).map_err(system("keep its input"))?;
        let output = own_copy(output.as_fd()).map_err(system("keep its output"))?;
        hub.keep_streams(input, output, shares_streams).map_err(system("watch its input"))?;
    }
    Ok(hub)
}

/// Joins a machine by a token.
fn joined(
    address: Option<std::net::SocketAddr>,
    token_file: &Path,
    name: Option<String>,
    ports: Option<PortRange>,
    networks: &[IpNet],
) -> Result<Hub, DaemonError> {
    let system = |attempt| move |source| DaemonError::System { attempt, source };
    let text = match token_file == Path::new("-") {
        true => read_line(io::stdin())?,
        false => std::fs::read_to_string(token_file).map_err(system("read the token"))?,
    };
    let token: JoinToken = text.parse()?;
    let port = Port::open(ports, networks).map_err(no_port(ports))?;
    let incarnation = HostIncarnation(random::number().map_err(system("make random numbers"))?);
    let name = name.unwrap_or_else(host_name);
    let request = join::request(
        &token,
        name.clone(),
        incarnation,
        port.listener.port(),
        port.addresses.clone(),
    );
    let address = address.unwrap_or(token.address);
    let founder = (token.founder, FounderWay { address, is_gateway: false });
    match join::ask(&port.pair, founder, &request, join::STEP_TIME)? {
        DaemonMessage::Admitted(mut enrolment) => {
            join::prefer(&mut enrolment.arbiter.addresses, address);
            Hub::new(port, Station::first(*enrolment)).map_err(system("begin"))
        }
        _ => Err(join::MachineJoinError::Form.into()),
    }
}

/// Comes back to a machine by the ticket of this host. If the founder does not want that or is gone, the ticket is removed.
fn returned(
    machine: &MachineName,
    ticket: &ReturnTicket,
    signals: &CaughtSignals,
) -> Result<Hub, DaemonError> {
    let system = |attempt| move |source| DaemonError::System { attempt, source };
    let mut port = Port::open(ticket.ports, &ticket.networks).map_err(no_port(ticket.ports))?;
    let returning = Returning::begin(machine, ticket, signals).map_err(name_taken(machine))?;
    let station = returning.come_back(&mut port).inspect_err(|error| {
        if matches!(error, ReturnError::Refused { .. } | ReturnError::Over { .. }) {
            ReturnTicket::remove(machine);
        }
    })?;
    Hub::new(port, station).map_err(system("begin"))
}

/// Reads one line without reading further: what follows may be the trunk's.
fn read_line(input: impl AsFd) -> Result<String, DaemonError> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LINE_BYTES_MAX {
        match rustix::io::read(&input, &mut byte[..]) {
            Ok(0) => return Err(DaemonError::NoPlace),
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => line.extend(byte),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(DaemonError::System {
                    attempt: "read its input",
                    source: error.into(),
                });
            }
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn own_copy(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}

fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// Keeps keys out of core files, and away from debuggers of other users.
fn guard_keys() {
    // A kernel that refuses this leaves the protection of files and users.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// A daemon has a descriptor for each other host and each process here.
fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
