//! A guardian that a server has forked, as the daemon sees it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use landeck_memory::Segment;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::conversation::{Conversation, Heard};
use super::guard::{Forker, guard};
use super::{Command, Event, GuardianError, Order, tell_segment};

/// The daemon's end of the conversation with a guardian that its server has forked. Dropping this ends the job on this
/// host: the guardian sees the end of the conversation.
#[derive(Debug)]
pub struct ServedGuardian {
    conversation: Conversation,
    /// The guardian itself, as soon as it has named itself.
    process: Option<OwnedFd>,
    pid: Option<u32>,
    is_over: bool,
}

impl ServedGuardian {
    pub(crate) const fn new(socket: OwnedFd, segment: Segment) -> Self {
        let conversation = Conversation::new(socket, segment);
        Self { conversation, process: None, pid: None, is_over: false }
    }

    /// The descriptor that is readable when [`ServedGuardian::next_event`] has something to report.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.conversation.descriptor()
    }

    /// The PID of the guardian, once it has named itself.
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Returns the next event, if there is one, without waiting. After [`Event::AllEnded`] or [`Event::GuardianGone`]
    /// nothing more comes.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the guardian can no longer be heard.
    pub fn next_event(&mut self) -> Result<Option<Event>, GuardianError> {
        while !self.is_over {
            match self.conversation.hear()? {
                Heard::Nothing => return Ok(None),
                Heard::End => {
                    self.is_over = true;
                    self.conversation.close_membership();
                    return Ok(Some(Event::GuardianGone));
                }
                Heard::Present(pid) => self.take_pid(pid),
                Heard::Event(event) => {
                    self.is_over = event == Event::AllEnded;
                    return Ok(Some(event));
                }
            }
        }
        Ok(None)
    }

    /// Sends a command to the guardian. If the guardian has already ended, an event says so.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the command cannot be sent.
    pub fn send(&mut self, command: Command) -> Result<(), GuardianError> {
        if let Some(process) = self.process.as_ref().filter(|_| command.must_be_obeyed()) {
            // Somebody may have stopped it; a guardian that has ended needs no signal.
            let _ = pidfd_send_signal(process, Signal::CONT);
        }
        self.conversation.say(command)
    }

    fn take_pid(&mut self, pid: u32) {
        self.pid = Some(pid);
        // Without this, a guardian that was stopped obeys only when somebody continues it.
        self.process = Pid::from_raw(pid.cast_signed())
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    }
}

/// Runs the guardian in a process that a server has forked, and never returns.
///
/// # Errors
/// [`GuardianError::LocalSegment`] if the segment has no descriptor.
pub(crate) fn guard_for(
    server: u32,
    segment: Segment,
    mut order: Order,
    socket: OwnedFd,
) -> Result<std::convert::Infallible, GuardianError> {
    tell_segment(&segment, &mut order)?;
    guard(segment, order, socket, Instant::now(), Forker::Server(server))
}
