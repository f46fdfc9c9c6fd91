//! The addresses of the sockets of this user's agents, and how to listen at them and connect to them.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landeck_memory::JobName;
use landeck_protocols::door::Name;
use landeck_wire::{JobId, SegmentId};
use rustix::event::{Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::peer;

/// How long a machine is waited for whose daemon was killed.
const ABSENCE_MAX: Duration = Duration::from_secs(10);
/// The time between two looks at it.
const ABSENCE_LOOK: Duration = Duration::from_millis(2);

/// The address of a socket of this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An abstract name, which is no file.
    Abstract(String),
    /// A file, which another network namespace, such as a container's, can reach too.
    File(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abstract(name) => formatter.write_str(name),
            Self::File(path) => write!(formatter, "{}", path.display()),
        }
    }
}

impl Address {
    /// The address of the agent of the job with this segment.
    pub fn of_job(host: SegmentId) -> Self {
        Self::Abstract(format!("landeck-{}-{host}", own_uid()))
    }

    /// The address at which a process listens for a name that it has published.
    pub(crate) fn of_public_name(name: &Name) -> Self {
        Self::Abstract(format!("landeck-{}-name-{}", own_uid(), name.as_str()))
    }

    /// The address at which the daemon of a machine listens for launchers and commands.
    pub fn of_machine(name: &str) -> Self {
        Self::Abstract(format!("{}{name}", Self::machines()))
    }

    /// The address at which the daemon of a machine listens for those who look at its jobs.
    pub fn of_looks_at(machine: &str) -> Self {
        Self::Abstract(format!("landeckd-{}-looks-{machine}", own_uid()))
    }

    /// The address at which the daemon of a machine listens for processes that want to join its jobs as guests.
    pub fn of_guests_of(machine: &str) -> Self {
        Self::Abstract(format!("landeckd-{}-guests-{machine}", own_uid()))
    }

    /// The address at which the launcher of a job on other hosts listens, so that it is found here by the job's name.
    pub fn of_launcher(job: JobId, name: &JobName) -> Self {
        Self::Abstract(format!("{}{job}-{name}", Self::launchers()))
    }

    /// The address that the keeper of a machine's daemon has. Nobody is answered there: it says that the daemon is there, or comes.
    pub fn of_keeper_of(machine: &str) -> Self {
        Self::Abstract(format!("{}{machine}", Self::keepers()))
    }

    /// Whether the daemon of a machine on this host has a keeper.
    pub fn is_kept(machine: &str) -> bool {
        names_behind(&Self::keepers()).iter().any(|name| name == machine)
    }

    /// The names of the machines that have a daemon of this user on this host. Waits for one that was killed and is started
    /// again.
    pub fn machine_names() -> Vec<String> {
        let until = Instant::now() + ABSENCE_MAX;
        loop {
            let kept = names_behind(&Self::keepers());
            let there = names_behind(&Self::machines());
            let is_awaited = kept.iter().any(|name| !there.contains(name));
            if !is_awaited || Instant::now() >= until {
                return there;
            }
            pause(ABSENCE_LOOK);
        }
    }

    /// The jobs whose launchers listen on this host, with their names.
    pub fn launched_jobs() -> Vec<(JobId, JobName)> {
        let job = |name: String| {
            let (job, name) = name.split_once('-')?;
            Some((JobId(job.parse::<SegmentId>().ok()?.0), JobName::new(name)))
        };
        names_behind(&Self::launchers()).into_iter().filter_map(job).collect()
    }

    /// The beginning of the abstract names of this user's launchers.
    fn launchers() -> String {
        format!("landeck-{}-run-", own_uid())
    }

    /// The beginning of the abstract names of this user's machines.
    fn machines() -> String {
        format!("landeckd-{}-machine-", own_uid())
    }

    /// The beginning of the abstract names of the keepers of machines' daemons.
    fn keepers() -> String {
        format!("landeckd-{}-keeper-", own_uid())
    }

    /// The address at which a daemon listens for the processes of a segment.
    pub(crate) fn of_daemon(segment: SegmentId) -> Self {
        Self::Abstract(format!("landeckd-{}-{segment}", own_uid()))
    }

    /// A socket for whole messages that listens here and never blocks.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn listen(&self) -> io::Result<OwnedFd> {
        self.listen_as(SocketType::SEQPACKET)
    }

    /// A socket for streams that listens here and never blocks.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn listen_for_streams(&self) -> io::Result<OwnedFd> {
        self.listen_as(SocketType::STREAM)
    }

    /// A stream to whoever listens here. It never blocks, not even for a listener that accepts nothing.
    ///
    /// # Errors
    /// The kernel's error; [`io::ErrorKind::PermissionDenied`] if a process of another user listens here.
    pub fn connect_stream(&self) -> io::Result<OwnedFd> {
        self.connect_at_once(SocketType::STREAM)
    }

    fn connect_at_once(&self, kind: SocketType) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
        self.with_socket_address(|address| Ok(connect(&socket, address)?))?;
        of_own_user(socket)
    }

    fn listen_as(&self, kind: SocketType) -> io::Result<OwnedFd> {
        const BACKLOG: i32 = 64;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
        self.with_socket_address(|address| Ok(bind(&socket, address)?))?;
        listen(&socket, BACKLOG)?;
        Ok(socket)
    }

    /// Calls with the address in the kernel's form. A path that is too long for that form is reached by the descriptor
    /// of its directory.
    fn with_socket_address<T>(
        &self,
        call: impl FnOnce(&SocketAddrUnix) -> io::Result<T>,
    ) -> io::Result<T> {
        let path = match self {
            Self::Abstract(name) => {
                return call(&SocketAddrUnix::new_abstract_name(name.as_bytes())?);
            }
            Self::File(path) => path,
        };
        if let Ok(address) = SocketAddrUnix::new(path) {
            return call(&address);
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, Mode::empty())?;
        let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        call(&SocketAddrUnix::new(&short)?)
    }
}

/// The rest of the abstract names of sockets on this host that begin so, each once.
fn names_behind(beginning: &str) -> Vec<String> {
    // Each line of a socket that listens ends with its name.
    let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let beginning = format!(" @{beginning}");
    let rest = |line: &str| line.split_once(&beginning).map(|(_, rest)| rest.to_owned());
    let names: BTreeSet<String> = table.lines().filter_map(rest).collect();
    names.into_iter().collect()
}

/// Lets a moment pass between two looks at something that tells nobody when it comes.
pub fn pause(moment: Duration) {
    let _ = poll(&mut [], Timespec::try_from(moment).ok().as_ref());
}

/// The user ID as which this process acts.
pub(crate) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Connects to the daemon of this user that opens the lanes of a segment's processes.
///
/// # Errors
/// The kernel's error; [`io::ErrorKind::PermissionDenied`] if a process of another user listens there.
pub fn connect_to_daemon(segment: SegmentId) -> io::Result<OwnedFd> {
    /// The time in which a daemon accepts the processes of a host, which all come at once.
    const ACCEPT_TIME: Duration = Duration::from_secs(30);
    of_own_user(dial(&Address::of_daemon(segment), Instant::now() + ACCEPT_TIME)?)
}

/// Connects to the next run of a daemon to which this process was connected. It never waits; the socket never blocks.
///
/// # Errors
/// The kernel's error, as [`connect_to_daemon`]; [`io::ErrorKind::WouldBlock`] while too many wait there.
pub fn reconnect_to_daemon(segment: SegmentId) -> io::Result<OwnedFd> {
    Address::of_daemon(segment).connect_at_once(SocketType::SEQPACKET)
}

/// A connection to a process of the same user; any other is closed.
fn of_own_user(connection: OwnedFd) -> io::Result<OwnedFd> {
    match peer::credentials(&connection)? {
        (user, _) if user == own_uid() => Ok(connection),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Whether a process listens there. If that cannot be found out, the answer is yes.
pub fn is_listened_to(address: &Address) -> bool {
    const MOMENT: Duration = Duration::from_millis(100);
    let outcome = dial(address, Instant::now() + MOMENT);
    !outcome.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Connects to the process that listens there; fails with the kind `TimedOut` at `give_up`.
pub(crate) fn dial(address: &Address, give_up: Instant) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    address.with_socket_address(|address| {
        uninterrupted(|| {
            // For a Unix socket this also limits the wait for room in the listener's queue.
            set_socket_timeout(&connection, Timeout::Send, Some(remaining(give_up)?))?;
            Ok(connect(&connection, address)?)
        })
    })?;
    Ok(connection)
}

/// The time that is left; never zero, which would mean no limit.
pub(crate) fn remaining(give_up: Instant) -> io::Result<Duration> {
    match give_up.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left.max(Duration::from_micros(1))),
    }
}

/// Repeats an attempt as long as signals interrupt it.
pub(crate) fn uninterrupted<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_found_by_its_job_while_it_listens() {
        let (job, name) = (JobId(0xfeed_0000_0000_0000 | u64::from(std::process::id())), "a -job");
        let name = JobName::new(name);
        let is_found = || Address::launched_jobs().contains(&(job, name));
        assert!(!is_found());
        let listener = Address::of_launcher(job, &name).listen_for_streams().unwrap();
        assert!(is_found());
        let stream = Address::of_launcher(job, &name).connect_stream().unwrap();
        assert_eq!(peer::credentials(&stream).unwrap().1, std::process::id());
        drop((listener, stream));
        assert!(!is_found());
        // The longest name of a job fits, whoever the user is.
        let longest = JobName::new(&"x".repeat(JobName::BYTES_MAX));
        let Address::Abstract(text) = Address::of_launcher(job, &longest) else { panic!() };
        assert!(text.len() - own_uid().to_string().len() + u32::MAX.to_string().len() <= 107);
    }
}
