//! The machines of this user, as commands and launchers reach them: the daemon on this host answers for its machine.
//!
//! A machine has a name. Its daemons listen at an abstract Unix socket with that name on each host, and only their user may
//! ask. A daemon that does not number the words of its machine passes the question on to the one that does, the founder's.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use landeck_host::message_stream::MessageStream;
use landeck_joining::address::{Address, pause};
use landeck_joining::machines;
use landeck_protocols::hosts::BookingWish;
use landeck_wire::JobId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::machine::{
    BookedHost, JobStatus, MachineAnswer, MachineError, MachineName, MachineQuestion,
    MachineStatus, RouteStatus,
};
use crate::messages::{ArbiterReport, ToArbiter};

/// How long a machine has to answer.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// How long a machine has to end. Its jobs have ten seconds of it.
const END_TIME: Duration = Duration::from_secs(60);
/// How long the founder may take to learn that a job is over whose launcher has ended, also on another host.
const JOBS_OVER_TIME: Duration = Duration::from_millis(500);
/// How long a command waits that asks again.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// A daemon that was killed is called again so often.
const CALLS_MAX: usize = 5;

/// The release of this program.
const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// The word with which a greeting begins.
const GREETING: &str = "landeckd";
/// The longest greeting.
const GREETING_BYTES_MAX: usize = 512;

/// The line that a daemon says to each caller first: `landeckd RELEASE`, and the reason if it serves that caller not. It has this
/// form in all releases, so commands and daemons of different ones know each other.
///
/// ```
/// use landeck_launch::machine_call::greeting;
///
/// assert!(greeting("").starts_with("landeckd "));
/// assert!(greeting("it is busy").ends_with(" it is busy\n"));
/// ```
pub fn greeting(refusal: &str) -> String {
    let line = format!("{GREETING} {RELEASE} {refusal}");
    line.trim_end().to_owned() + "\n"
}

/// The machine that is meant: the one with this name, or the only one on this host.
///
/// # Errors
/// [`MachineError`] if there is none, or if it is unclear which one is meant.
pub fn find(name: Option<&str>) -> Result<MachineName, MachineError> {
    if let Some(name) = name {
        name.parse::<MachineName>()?;
    }
    Ok(machines::choose(name)?.parse()?)
}

/// The machines of this user on this host.
pub fn all() -> Vec<MachineName> {
    Address::machine_names().iter().filter_map(|name| name.parse().ok()).collect()
}

/// A conversation with the daemon of a machine on this host.
#[derive(Debug)]
pub struct MachineCall {
    name: MachineName,
    stream: MessageStream<ArbiterReport, ToArbiter>,
}

impl MachineCall {
    /// Calls the daemon of a machine, and waits for its greeting.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::Release`] and [`MachineError::Refused`].
    pub fn begin(name: MachineName) -> Result<Self, MachineError> {
        Self::begin_within(name, ANSWER_TIME)
    }

    /// As [`MachineCall::begin`], with so much time for the greeting.
    pub(crate) fn begin_within(name: MachineName, time: Duration) -> Result<Self, MachineError> {
        let silent = |source| MachineError::Silent { name: name.clone(), source };
        let (socket, line) = greeted(&name, Instant::now() + time).map_err(silent)?;
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some(GREETING), Some(RELEASE), None) => {}
            (Some(GREETING), Some(RELEASE), Some(why)) => {
                return Err(MachineError::Refused { name, why: why.to_owned() });
            }
            (Some(GREETING), Some(theirs), _) => {
                let (theirs, ours) = (theirs.to_owned(), RELEASE.to_owned());
                return Err(MachineError::Release { name, theirs, ours });
            }
            _ => return Err(silent(io::ErrorKind::InvalidData.into())),
        }
        match MessageStream::new(socket) {
            Ok(stream) => Ok(Self { name, stream }),
            Err(source) => Err(MachineError::Silent { name, source }),
        }
    }

    /// The machine.
    pub const fn name(&self) -> &MachineName {
        &self.name
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`].
    pub fn ask(&mut self, question: MachineQuestion) -> Result<MachineAnswer, MachineError> {
        self.stream.send(&ToArbiter::Ask(question));
        let until = Instant::now() + ANSWER_TIME;
        while let Some(report) = self.stream.wait_next(Some(until)) {
            match report {
                ArbiterReport::Answered(MachineAnswer::CutOff { why }) => {
                    return Err(MachineError::CutOff { name: self.name.clone(), why });
                }
                ArbiterReport::Answered(answer) => return Ok(answer),
                _ => {}
            }
        }
        Err(self.silent())
    }

    /// The error for a daemon that has not done something in time, or has ended.
    fn silent(&self) -> MachineError {
        let kind = match self.stream.has_ended() {
            true => io::ErrorKind::ConnectionReset,
            false => io::ErrorKind::TimedOut,
        };
        MachineError::Silent { name: self.name.clone(), source: kind.into() }
    }

    /// Asks which hosts and jobs are there.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`].
    pub fn status(&mut self) -> Result<MachineStatus, MachineError> {
        match self.ask(MachineQuestion::Status)? {
            MachineAnswer::Status(status) => Ok(*status),
            _ => Err(self.confused()),
        }
    }

    /// Asks whether a host of the machine has a site.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`].
    pub(crate) fn has_sites(&mut self) -> Result<bool, MachineError> {
        Ok(self.status()?.hosts.iter().any(|host| !host.site.is_empty()))
    }

    /// Books processors for a job, and waits for them if that is wished. They are free again when this conversation ends, or
    /// the job that it starts.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`]. The inner error is the reason why the job cannot begin now.
    pub fn book(
        &mut self,
        job: JobId,
        name: String,
        wish: BookingWish,
    ) -> Result<Result<Vec<BookedHost>, String>, MachineError> {
        loop {
            match self.ask(MachineQuestion::Book { job, name: name.clone(), wish })? {
                // It has its place in the order of those that wait, as long as this conversation lasts.
                MachineAnswer::Booked(Err(_)) if wish.waits => self.wait(ASK_AGAIN),
                MachineAnswer::Booked(outcome) => return Ok(outcome),
                _ => return Err(self.confused()),
            }
        }
    }

    /// Ends the machine, and waits until its daemon on this host has ended.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`]. The inner error has the jobs because of which it stays.
    pub fn stop(mut self, ends_jobs: bool) -> Result<Result<(), Vec<JobStatus>>, MachineError> {
        let jobs_over = Instant::now() + JOBS_OVER_TIME;
        let mut answer = self.ask(MachineQuestion::Stop { ends_jobs })?;
        while matches!(answer, MachineAnswer::Stopping(Err(_))) && Instant::now() < jobs_over {
            self.wait(ASK_AGAIN);
            answer = self.ask(MachineQuestion::Stop { ends_jobs })?;
        }
        match answer {
            MachineAnswer::Stopping(Ok(())) => {
                let until = Some(Instant::now() + END_TIME);
                while self.stream.wait_next(until).is_some() {}
                match self.stream.has_ended() {
                    true => Ok(Ok(())),
                    false => Err(self.silent()),
                }
            }
            MachineAnswer::Stopping(stays) => Ok(stays),
            _ => Err(self.confused()),
        }
    }

    /// Asks for something that is done or not.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`]. The inner error is the reason why it was not done.
    pub fn ask_to(
        &mut self,
        question: MachineQuestion,
    ) -> Result<Result<(), String>, MachineError> {
        match self.ask(question)? {
            MachineAnswer::Done(outcome) => Ok(outcome),
            _ => Err(self.confused()),
        }
    }

    /// Asks by which description hosts are placed. It is empty if there is none.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`].
    pub fn description(&mut self) -> Result<String, MachineError> {
        match self.ask(MachineQuestion::Description)? {
            MachineAnswer::Description(text) => Ok(text),
            _ => Err(self.confused()),
        }
    }

    /// Asks which routes lead from a host, or from this one, to the others.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`]. The inner error says that there is no such host.
    pub fn routes(
        &mut self,
        from: Option<String>,
    ) -> Result<Result<Vec<RouteStatus>, String>, MachineError> {
        match self.ask(MachineQuestion::Routes { from })? {
            MachineAnswer::Routes(routes) => Ok(routes),
            _ => Err(self.confused()),
        }
    }

    /// Asks for the notes of the daemon on this host.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`].
    pub fn log(&mut self) -> Result<Vec<(u64, String)>, MachineError> {
        match self.ask(MachineQuestion::Log)? {
            MachineAnswer::Log(lines) => Ok(lines),
            _ => Err(self.confused()),
        }
    }

    /// Waits until a job is over; returns whether it is within this time.
    ///
    /// # Errors
    /// [`MachineError::Silent`].
    pub fn wait_for_end(&mut self, job: JobId, time: Duration) -> Result<bool, MachineError> {
        let until = Instant::now() + time;
        while self.status()?.jobs.iter().any(|known| known.job == job) {
            if Instant::now() >= until {
                return Ok(false);
            }
            self.wait(ASK_AGAIN);
        }
        Ok(true)
    }

    /// Takes a host out of the machine, and waits until no job is there and it has left. `waits` gets the jobs that are
    /// waited for, once.
    ///
    /// # Errors
    /// [`MachineError::Silent`], [`MachineError::CutOff`]. The inner error is the reason why the host cannot be removed.
    pub fn remove(
        &mut self,
        host: &str,
        ends_jobs: bool,
        waits: impl FnOnce(&[JobStatus]),
    ) -> Result<Result<(), String>, MachineError> {
        let mut waits = Some(waits);
        loop {
            let question = MachineQuestion::Remove { host: host.to_owned(), ends_jobs };
            match self.ask(question)? {
                MachineAnswer::Removing(Ok(jobs)) if jobs.is_empty() => break,
                MachineAnswer::Removing(Ok(jobs)) => {
                    if let Some(waits) = waits.take() {
                        waits(&jobs);
                    }
                }
                MachineAnswer::Removing(Err(why)) => return Ok(Err(why)),
                _ => return Err(self.confused()),
            }
            self.wait(ASK_AGAIN);
        }
        while self.status()?.hosts.iter().any(|known| known.name == host) {
            self.wait(ASK_AGAIN);
        }
        Ok(Ok(()))
    }

    /// Waits for so long, or until the daemon ends.
    pub fn wait(&mut self, time: Duration) {
        // Nothing comes without a question.
        let _ = self.stream.wait_next(Some(Instant::now() + time));
    }

    /// The stream, behind the questions: it is that of a launcher now.
    pub(crate) fn into_stream(self) -> MessageStream<ArbiterReport, ToArbiter> {
        self.stream
    }

    /// The error for an answer to another question.
    pub fn confused(&self) -> MachineError {
        MachineError::Silent { name: self.name.clone(), source: io::ErrorKind::InvalidData.into() }
    }
}

/// Calls the daemon of a machine until it greets. One that was killed just then has a next run soon, which is called.
fn greeted(name: &MachineName, until: Instant) -> io::Result<(OwnedFd, String)> {
    let call = || {
        let socket = name.address().connect_stream()?;
        let line = first_line(&socket, until)?;
        Ok((socket, line))
    };
    for _ in 1..CALLS_MAX {
        match call() {
            Err(error) if has_ended(&error) && name.is_kept() => pause(ASK_AGAIN),
            outcome => return outcome,
        }
    }
    call()
}

/// Whether a call has failed since its daemon has ended.
fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | UnexpectedEof | BrokenPipe)
}

/// The first line that comes from a socket that never blocks. Nothing follows it without a question.
fn first_line(socket: &OwnedFd, until: Instant) -> io::Result<String> {
    let (mut bytes, mut filled) = ([0; GREETING_BYTES_MAX], 0);
    loop {
        match recv(socket, &mut bytes[filled..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok((count, _)) => filled += count,
            Err(Errno::AGAIN | Errno::INTR) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                // Interrupted or not, the next look tells.
                let _ = poll(
                    &mut [PollFd::new(socket, PollFlags::IN)],
                    Timespec::try_from(left).ok().as_ref(),
                );
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(line) = bytes[..filled].strip_suffix(b"\n") {
            return Ok(String::from_utf8_lossy(line).into_owned());
        }
        if filled == bytes.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use landeck_joining::machines::MachineChoiceError;

    use super::*;
    use rustix::net::{SocketFlags, accept_with};

    #[test]
    fn a_machine_is_found_by_its_name_or_by_being_alone() {
        let own = format!("t{}", std::process::id());
        assert!(matches!(
            find(Some(&own)),
            Err(MachineError::Choice(MachineChoiceError::Unknown { .. }))
        ));
        let name: MachineName = own.parse().unwrap();
        let listener = name.address().listen_for_streams().unwrap();
        assert_eq!(find(Some(&own)).unwrap(), name);
        match find(None) {
            Ok(only) => assert_eq!(only, name),
            Err(MachineError::Choice(MachineChoiceError::Several(names))) => {
                assert!(names.contains(&own));
            }
            Err(error) => panic!("{error}"),
        }
        drop(listener);
        assert!(MachineCall::begin(name).is_err());
    }

    #[test]
    fn a_daemon_of_another_release_and_one_without_room_are_named() {
        let name: MachineName = format!("g{}", std::process::id()).parse().unwrap();
        let listener = name.address().listen_for_streams().unwrap();
        let called = |greeting: &str| {
            let (name, greeting) = (name.clone(), greeting.to_owned());
            let call = std::thread::spawn(move || MachineCall::begin(name));
            let socket = loop {
                match accept_with(&listener, SocketFlags::CLOEXEC) {
                    Ok(socket) => break socket,
                    Err(_) => std::thread::yield_now(),
                }
            };
            rustix::io::write(&socket, greeting.as_bytes()).unwrap();
            drop(socket);
            call.join().unwrap().map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(called(&greeting("")), Ok(()));
        let other = called("landeckd 9.8.7 and what it will say\n").unwrap_err();
        assert!(other.contains("is release 9.8.7") && other.contains(RELEASE), "{other}");
        let full = called(&greeting("it serves 256 callers")).unwrap_err();
        assert!(full.ends_with(": it serves 256 callers"), "{full}");
        for strange in ["", "landeckd 1", "hello\n", &"x".repeat(600)] {
            let error = called(strange).unwrap_err();
            assert!(error.contains("does not answer"), "{strange}: {error}");
        }
    }
}
