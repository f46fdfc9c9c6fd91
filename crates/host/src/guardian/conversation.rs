//! The conversation with a guardian: events come from it, commands go to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_memory::{JobState, Presence, Segment, SlotRecord, SlotState};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::message::Message;
use super::{Command, Event, GuardianError};
use crate::process::{StartError, Step};

/// The end of the conversation that the guardian does not have.
#[derive(Debug)]
pub(super) struct Conversation {
    socket: OwnedFd,
    segment: Segment,
}

/// The answer to a question for the next message.
pub(super) enum Heard {
    Message(Message),
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

    /// Takes the next message, without waiting.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the guardian can no longer be heard.
    pub(super) fn hear(&self) -> Result<Heard, GuardianError> {
        let mut bytes = [0; Message::BYTES];
        loop {
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Ok(Heard::End),
                Ok(_) => return Ok(Heard::Message(Message::decode(&bytes))),
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

    /// Sends a command. If the guardian has already ended, the next message says so.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the command cannot be sent.
    pub(super) fn say(&self, command: Command) -> Result<(), GuardianError> {
        loop {
            match send(&self.socket, &Message::from(command).encode(), SendFlags::NOSIGNAL) {
                Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let attempt = "be told what to do";
                    return Err(GuardianError::System { attempt, source: errno.into() });
                }
            }
        }
    }

    /// The event that a message reports; `None` if it reports none.
    pub(super) fn event(&self, message: &Message) -> Option<Event> {
        let slot = message.slot;
        Some(match message.kind {
            Message::STARTED => Event::Started {
                slot,
                pid: message.number.cast_unsigned(),
                rank: message.detail,
                restart: message.restart,
            },
            Message::NOT_STARTED => {
                let step = Step::from_number(message.detail as u8)?;
                let error = StartError { step, errno: message.number };
                let rank = message.time_ns as u32;
                Event::NotStarted { slot, rank, error, again: message.again() }
            }
            Message::ENDED => Event::Ended {
                slot,
                pid: self.segment.slot_record(slot).pid,
                status: message.number,
                at: Duration::from_nanos(message.time_ns),
                wait: self.segment.wait_record(slot),
                presence: Presence::from_bits(message.detail),
                again: message.again(),
            },
            Message::STOPPED => Event::Stopped { slot },
            Message::CONTINUED => Event::Continued { slot },
            Message::GUEST_ABORTED => Event::GuestAborted {
                pid: message.number.cast_unsigned(),
                code: message.detail as u8,
                at: Duration::from_nanos(message.time_ns),
            },
            Message::ALL_ENDED => Event::AllEnded,
            _ => return None,
        })
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
