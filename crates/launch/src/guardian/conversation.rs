//! The conversation with a guardian: events come from it, commands go to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landeck_memory::{JobState, Segment, SlotRecord, SlotState, passing};
use landeck_wire::ControlMessage;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv};

use super::message::Report;
use super::{Command, Event, GuardianError};

/// The end of the conversation that the guardian does not have.
#[derive(Debug)]
pub(super) struct Conversation {
    socket: OwnedFd,
    segment: Segment,
}

/// The answer to a question for the next message.
pub(super) enum Heard {
    /// The guardian of a server, which has this PID, is there.
    Present(u32),
    /// It tells everything again, for the question with this number.
    Again {
        pid: u32,
        asked: u64,
    },
    Event(Event),
    /// There is none yet.
    Nothing,
    /// The guardian has ended.
    End,
}

impl Conversation {
    pub(super) const fn new(socket: OwnedFd, segment: Segment) -> Self {
        Self { socket, segment }
    }

    /// The descriptor that is readable when there is a message.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes the next message, without waiting. Bytes that no guardian writes are passed over.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the guardian can no longer be heard.
    pub(super) fn hear(&self) -> Result<Heard, GuardianError> {
        let mut bytes = [0; Report::BYTES_MAX + 1];
        loop {
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Ok(Heard::End),
                Ok((length, _)) => match Report::decode(&bytes[..length]) {
                    Ok(Report::Present { pid }) => return Ok(Heard::Present(pid)),
                    Ok(Report::Again { pid, asked }) => return Ok(Heard::Again { pid, asked }),
                    Ok(Report::Event(mut event)) => {
                        if let Event::Ended { slot, wait, .. } = &mut event {
                            *wait = self.segment.wait_record(*slot);
                        }
                        return Ok(Heard::Event(event));
                    }
                    Err(_) => {}
                },
                Err(Errno::AGAIN) => return Ok(Heard::Nothing),
                // Reset: the guardian was killed with commands unread. The kernel reports that once, before its last
                // events.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(errno) => {
                    let attempt = "be heard by the launcher";
                    return Err(GuardianError::System { attempt, source: errno.into() });
                }
            }
        }
    }

    /// Sends a command, with descriptors beside it. If the guardian has already ended, the next message says so.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the command cannot be sent.
    pub(super) fn say(
        &self,
        command: &Command,
        beside: &[BorrowedFd<'_>],
    ) -> Result<(), GuardianError> {
        loop {
            match passing::pass(&self.socket, &command.encode(), beside, SendFlags::empty()) {
                Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let attempt = "be told what to do";
                    return Err(GuardianError::System { attempt, source: errno.into() });
                }
            }
        }
    }

    /// Tells guests, which live on, that the job has ended: the guardian no longer can.
    pub(super) fn close_membership(&self) {
        for slot in 0..self.segment.plan().slots() {
            let record = self.segment.slot_record(slot);
            let is_ours = self.segment.rank_of(slot).is_some() || record.replaces.is_some();
            if is_ours && !record.state.is_gone() {
                let (state, status) = (SlotState::Dead, libc::SIGKILL);
                let record = SlotRecord { state, status, stopped: false, ..record };
                self.segment.set_slot_record(slot, record);
            }
        }
        self.segment.set_job_state(JobState::Ending);
        self.segment.announce_membership();
    }
}
