//! A daemon that has lost its founder, and asks to be admitted again until it is.
//!
//! The daemon has ended its parts and has started itself anew, so nothing of its last run is left. It shows the founder its
//! return ticket. Meanwhile it answers its callers on this host that the machine is not reached.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_host::message_stream::MessageStream;
use landeck_host::signals::CaughtSignals;
use landeck_launch::machine::{MachineAnswer, MachineName, MachineQuestion};
use landeck_launch::messages::{ArbiterReport, ToArbiter};
use landeck_trust::KeyHash;
use landeck_wire::HostIncarnation;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketFlags, accept_with};
use tracing::info;

use crate::addresses;
use crate::daemon_message::DaemonMessage;
use crate::facts::HostFacts;
use crate::hub::{Port, Station};
use crate::join::{self, MachineJoinError};
use crate::machine::callers::greet;
use crate::machine::ticket::ReturnTicket;
use crate::observers::log;
use crate::random;

/// The time between two rounds of attempts: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The time for one step of an attempt. Callers wait for as long.
const STEP_TIME: Duration = Duration::from_secs(2);
/// If nobody listens at the founder's addresses for so long, the founder's daemon has ended, and the machine with it.
const REFUSED_TIME: Duration = Duration::from_secs(3);
/// A founder that is not reached for so long counts as ended.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a caller has to ask.
const CALLER_TIME: Duration = Duration::from_secs(1);

/// The reason why a daemon does not come back.
#[derive(Debug, thiserror::Error)]
pub enum ReturnError {
    /// The founder does not want it back.
    #[error("{machine} does not admit this host again: {why}")]
    Refused {
        /// The machine.
        machine: MachineName,
        /// Its reason.
        why: String,
    },
    /// The machine is over, as far as this host can see.
    #[error("{machine} has ended: {why}")]
    Over {
        /// The machine.
        machine: MachineName,
        /// How that shows.
        why: String,
    },
    /// It was asked to end.
    #[error("{0} was left")]
    Asked(MachineName),
    /// The kernel refused something.
    #[error("landeckd cannot come back: {0}")]
    System(#[from] io::Error),
}

/// The daemon between two runs.
pub(crate) struct Returning<'a> {
    machine: &'a MachineName,
    ticket: &'a ReturnTicket,
    callers: OwnedFd,
    signals: &'a CaughtSignals,
    /// The last failure.
    why: String,
    was_asked: bool,
}

/// The outcome of an attempt.
enum Attempt {
    Admitted(Box<Station>),
    /// The founder's daemon listens at none of the addresses.
    AllRefuse,
    Failed,
}

impl<'a> Returning<'a> {
    /// Listens for callers from now on.
    ///
    /// # Errors
    /// The kernel's error: another daemon of the machine may be on this host.
    pub(crate) fn begin(
        machine: &'a MachineName,
        ticket: &'a ReturnTicket,
        signals: &'a CaughtSignals,
    ) -> io::Result<Self> {
        let callers = machine.address().listen_for_streams()?;
        let why = "it was not asked yet".to_owned();
        Ok(Self { machine, ticket, callers, signals, why, was_asked: false })
    }

    /// Asks the founder until it admits this host. Returns the place of the daemon that has this port.
    ///
    /// # Errors
    /// [`ReturnError`].
    pub(crate) fn come_back(mut self, port: &mut Port) -> Result<Station, ReturnError> {
        let (began, machine) = (port.clock.now(), self.machine.clone());
        let (mut pause, mut refused_since) = (PAUSE.0, None);
        loop {
            let now = port.clock.now();
            match self.attempt(port)? {
                Attempt::Admitted(station) => return Ok(*station),
                Attempt::Failed => refused_since = None,
                Attempt::AllRefuse => {
                    let since = *refused_since.get_or_insert(now);
                    if now.saturating_sub(since) >= REFUSED_TIME {
                        return Err(ReturnError::Over { machine, why: self.why });
                    }
                }
            }
            if now.saturating_sub(began) >= PATIENCE {
                return Err(ReturnError::Over { machine, why: self.why });
            }
            self.serve(Instant::now() + pause)?;
            if self.was_asked {
                return Err(ReturnError::Asked(machine));
            }
            // A founder that is there answers soon.
            pause = if refused_since.is_some() { PAUSE.0 } else { (2 * pause).min(PAUSE.1) };
        }
    }

    /// Asks at each address of the founder. The host may have other addresses than a moment ago.
    fn attempt(&mut self, port: &mut Port) -> Result<Attempt, ReturnError> {
        let Self { ticket, machine, .. } = *self;
        port.addresses = addresses::here(&ticket.networks);
        let incarnation = HostIncarnation(random::number()?);
        let request = DaemonMessage::Return {
            host: ticket.host,
            secret: ticket.secret,
            incarnation,
            port: port.listener.port(),
            addresses: port.addresses.clone(),
            facts: HostFacts::here(),
        };
        let mut all_refuse = true;
        for &way in &ticket.ways {
            let founder = (KeyHash(ticket.founder), way);
            let answer = join::ask(&port.pair, founder, &request, STEP_TIME);
            // A gateway that is gone says nothing about the founder.
            all_refuse &= !way.is_gateway && answer.as_ref().is_err_and(is_not_there);
            match answer {
                Ok(DaemonMessage::Admitted(mut enrolment)) => {
                    if !way.is_gateway {
                        join::prefer(&mut enrolment.arbiter.addresses, way.address);
                    }
                    info!("the founder has admitted this host again");
                    return Ok(Attempt::Admitted(Box::new(Station::first(*enrolment))));
                }
                Ok(DaemonMessage::StillThere) => {
                    self.why = "its founder ends what it knows of this host before".to_owned();
                    return Ok(Attempt::Failed);
                }
                Err(MachineJoinError::Refused(why)) => {
                    return Err(ReturnError::Refused { machine: machine.clone(), why });
                }
                Ok(_) => self.why = MachineJoinError::Form.to_string(),
                Err(error) => self.why = error.to_string(),
            }
        }
        info!("no way back: {}", self.why);
        Ok(if all_refuse { Attempt::AllRefuse } else { Attempt::Failed })
    }

    /// Answers callers until this time, or until the daemon is asked to end.
    fn serve(&mut self, until: Instant) -> io::Result<()> {
        while !self.was_asked {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut ready = [
                PollFd::new(&self.callers, PollFlags::IN),
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            ];
            match poll(&mut ready, Some(&left)) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let calls = !ready[0].revents().is_empty();
            while let Some(signal) = self.signals.next() {
                self.was_asked |= signal.number == rustix::process::Signal::TERM.as_raw();
            }
            if calls {
                self.answer();
            }
        }
        Ok(())
    }

    /// Answers one caller.
    fn answer(&mut self) {
        let Ok(socket) = accept_with(&self.callers, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
        else {
            return;
        };
        if !greet(&socket, "") {
            return;
        }
        let Ok(mut stream) = MessageStream::<ToArbiter, ArbiterReport>::new(socket) else { return };
        let Some(ToArbiter::Ask(question)) = stream.wait_next(Some(Instant::now() + CALLER_TIME))
        else {
            return;
        };
        let answer = match question {
            MachineQuestion::Log => MachineAnswer::Log(log::for_callers()),
            MachineQuestion::Stop { .. } => {
                self.was_asked = true;
                ReturnTicket::remove(self.machine);
                MachineAnswer::Stopping(Ok(()))
            }
            _ => MachineAnswer::CutOff { why: self.why.clone() },
        };
        stream.send(&ArbiterReport::Answered(answer));
    }
}

/// Whether an attempt has failed because the founder's daemon does not listen at that address, or another one does.
fn is_not_there(error: &MachineJoinError) -> bool {
    match error {
        MachineJoinError::NotReached { source, .. } => {
            source.kind() == io::ErrorKind::ConnectionRefused
        }
        MachineJoinError::Trust { .. } => true,
        MachineJoinError::Refused(_) | MachineJoinError::Form => false,
    }
}
