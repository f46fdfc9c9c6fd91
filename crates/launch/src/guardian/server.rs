//! The guardian server: a process that forks guardians for a daemon, which has keys, sockets and threads.
//!
//! The daemon forks it first of all. An order comes as a sealed image of its data and as descriptors: the segment, the
//! guardian's end of the conversation with the daemon, and the standard streams of the processes. A guardian talks to
//! the daemon itself; the server only reaps it and ends what it left. The server ends with the daemon.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use landeck_host::descendants;
use landeck_host::fork::fork_child;
use landeck_host::process::{self, Change, ChildLook};
use landeck_host::say::complain;
use landeck_memory::Segment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::{Guardian, GuardianError, GuardianOrder, child_signals, guard_for, pair};
use crate::parcel;

/// How long the daemon waits for a server that does not read.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long guardians have to end by themselves after the daemon has ended.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The daemon's end of its guardian server. Dropping the last one ends the server and every job on this host.
#[derive(Debug)]
pub struct GuardianServer {
    socket: Option<OwnedFd>,
    pid: u32,
    /// Whether this process has forked it, and not one whose child this process is.
    is_child: bool,
}

/// Forks the server. Call this first of all in a daemon, while it has one thread and neither keys nor sockets.
///
/// This process then adopts the orphans among its descendants.
///
/// # Errors
/// [`GuardianError`] if this process has several threads, or the kernel refuses a step.
pub fn fork() -> Result<GuardianServer, GuardianError> {
    fork_with(release_streams)
}

/// Forks the server of a daemon that will have no terminal: it keeps none of the standard streams. Otherwise as [`fork`].
///
/// # Errors
/// As [`fork`].
pub fn fork_detached() -> Result<GuardianServer, GuardianError> {
    fork_with(|| {
        release_streams()?;
        let nothing = File::options().write(true).open("/dev/null")?;
        Ok(rustix::stdio::dup2_stderr(&nothing)?)
    })
}

fn fork_with(release: fn() -> io::Result<()>) -> Result<GuardianServer, GuardianError> {
    let refused = |attempt| move |source: io::Error| GuardianError::System { attempt, source };
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|errno| refused("make a pair of sockets")(errno.into()))?;
    set_socket_timeout(&ours, Timeout::Send, Some(PATIENCE))
        .map_err(|errno| refused("limit the time of a request")(errno.into()))?;
    descendants::adopt_orphans().map_err(refused("adopt orphaned processes"))?;
    match fork_child()? {
        None => {
            drop(ours);
            serve(theirs, release)
        }
        Some(pid) => Ok(GuardianServer { socket: Some(ours), pid, is_child: true }),
    }
}

impl GuardianServer {
    /// The PID of the server.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The server as a child of the process that has forked it has it: it does not wait for the end of the server.
    pub fn inherited(mut self) -> Self {
        self.is_child = false;
        self
    }

    /// The descriptor that is readable when the server has ended; then no job can be started any more.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Has the server fork a guardian for a segment, which starts the processes of the order.
    ///
    /// # Errors
    /// [`GuardianError`]; the guardian's own failures are events of the conversation.
    pub fn start(
        &self,
        segment: &Segment,
        order: &GuardianOrder,
    ) -> Result<Guardian, GuardianError> {
        let refused = |source| GuardianError::System { attempt: "be ordered", source };
        let socket = self.socket.as_ref().ok_or_else(|| refused(Errno::PIPE.into()))?;
        let memory = segment.descriptor().ok_or(GuardianError::LocalSegment)?;
        let (ours, theirs) = pair().map_err(|errno| refused(errno.into()))?;
        // Somebody may have stopped it.
        process::signal_process(self.pid, libc::SIGCONT);
        let streams = order.streams.as_flattened().iter().map(AsFd::as_fd);
        let beside: Vec<BorrowedFd<'_>> =
            [memory, theirs.as_fd()].into_iter().chain(streams).collect();
        parcel::send(socket, order, &beside).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => refused(io::Error::other("the guardian server has ended")),
            _ => refused(error),
        })?;
        Ok(Guardian::new(ours, segment.clone()))
    }
}

impl Drop for GuardianServer {
    fn drop(&mut self) {
        drop(self.socket.take());
        if !self.is_child {
            return;
        }
        // Somebody may have stopped it. The PID is valid: it is our own child, not reaped yet.
        process::signal_process(self.pid, libc::SIGCONT);
        // If waiting fails, another thread has reaped it.
        let _ = process::wait_for_end(self.pid);
    }
}

/// Runs the server in the forked process and never returns.
fn serve(socket: OwnedFd, release: fn() -> io::Result<()>) -> ! {
    let life = || Server::new(socket, release).and_then(Server::run);
    let code = match catch_unwind(AssertUnwindSafe(life)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            complain(format_args!(
                "landeck: the guardian server gives up, and its jobs end: {error}"
            ));
            1
        }
        Err(_) => 2, // the panic has printed its message
    };
    descendants::kill_all(&[]);
    // SAFETY: ends this process without running what the daemon meant to run at its own end.
    unsafe { libc::_exit(code) }
}

/// The state of the server.
struct Server {
    socket: OwnedFd,
    deaths: OwnedFd,
    guardians: Vec<u32>,
}

impl Server {
    fn new(socket: OwnedFd, release: fn() -> io::Result<()>) -> io::Result<Self> {
        // Keys pressed at the terminal must not signal the server.
        rustix::process::setpgid(None, None)?;
        // If the name cannot be set, nothing else changes.
        let _ = rustix::thread::set_name(c"landeck-server");
        process::reset_signals(&process::handled_signals());
        descendants::adopt_orphans()?;
        release()?;
        Ok(Self { socket, deaths: child_signals()?, guardians: Vec::new() })
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            let (came, died) = self.wait(None)?;
            if died {
                self.reap();
            }
            if came && !self.take_order()? {
                break;
            }
        }
        self.see_guardians_end()
    }

    /// Waits until something has happened: a datagram has come, a child has changed.
    fn wait(&self, timeout: Option<Duration>) -> io::Result<(bool, bool)> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut polled =
            [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&self.deaths, PollFlags::IN)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok((!polled[0].revents().is_empty(), !polled[1].revents().is_empty()))
    }

    /// Takes an order and forks its guardian; returns false if the daemon has ended.
    fn take_order(&mut self) -> io::Result<bool> {
        let Some((order, beside)) = parcel::receive(&self.socket)? else { return Ok(false) };
        let server = std::process::id();
        match fork_child() {
            Ok(Some(pid)) => self.guardians.push(pid),
            Ok(None) => become_guardian(server, order, beside),
            // The daemon sees that the conversation has ended.
            Err(error) => complain(format_args!("landeck: {error}")),
        }
        Ok(true)
    }

    /// Reaps guardians that have ended, and ends what they left.
    fn reap(&mut self) {
        let mut signals = [0; 1024];
        // Reading only silences the descriptor; the kernel is asked what happened.
        while matches!(rustix::io::read(&self.deaths, &mut signals), Ok(1..)) {}
        let mut has_ended = false;
        while let Ok(ChildLook::Changed(pid, change)) = process::look() {
            if let Change::Ended(_) = change {
                self.guardians.retain(|&guardian| guardian != pid);
                has_ended = true;
            }
            if process::settle(pid, change).is_err() {
                break;
            }
        }
        if has_ended {
            descendants::kill_all(&self.guardians);
        }
    }

    /// Waits for the guardians, which have seen the end of the daemon as well.
    fn see_guardians_end(mut self) -> io::Result<()> {
        let give_up = Instant::now() + LAST_PATIENCE;
        while !self.guardians.is_empty() && Instant::now() < give_up {
            let deaths = [PollFd::new(&self.deaths, PollFlags::IN)];
            let rest = Timespec::try_from(give_up.saturating_duration_since(Instant::now())).ok();
            match poll(&mut { deaths }, rest.as_ref()) {
                Ok(_) | Err(Errno::INTR) => self.reap(),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}

/// Replaces standard input and output by nothing: other processes wait for the ends of the daemon's.
fn release_streams() -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(rustix::stdio::dup2_stdout(&nothing)?)
}

/// Becomes the guardian of an order in the forked process.
fn become_guardian(server: u32, order: GuardianOrder, beside: Vec<OwnedFd>) -> ! {
    let error = match complete(order, beside) {
        Ok((segment, order, conversation)) => {
            let Err(error) = guard_for(server, segment, order, conversation);
            error.to_string()
        }
        Err(error) => error.to_string(),
    };
    complain(format_args!("landeck: there is no guardian, and the job ends: {error}"));
    // SAFETY: ends this process without running what the server or the daemon meant to run at its own end.
    unsafe { libc::_exit(1) }
}

/// An order with the descriptors that have come beside it.
fn complete(
    mut order: GuardianOrder,
    beside: Vec<OwnedFd>,
) -> io::Result<(Segment, GuardianOrder, OwnedFd)> {
    if beside.len() != 2 + 3 * order.starts.len() {
        return Err(io::Error::other("an order's descriptors do not belong to its processes"));
    }
    process::ignore_signals(&order.ignored);
    let mut beside = beside.into_iter();
    let (segment, conversation) = (beside.next(), beside.next());
    let (Some(segment), Some(conversation)) = (segment, conversation) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let of_one = || Some([beside.next()?, beside.next()?, beside.next()?]);
    order.streams = std::iter::from_fn(of_one).collect();
    let segment = Segment::attach(segment).map_err(io::Error::other)?;
    Ok((segment, order, conversation))
}
