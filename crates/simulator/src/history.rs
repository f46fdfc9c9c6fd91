//! A record of each activity and its cause, for the critical path of a run.

use std::fmt;

use crate::time::Time;

/// An activity that took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The kind of activity.
    pub what: What,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// The record that had to end before it.
    pub(crate) cause: RecordId,
}

/// A kind of activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A member hands a message over.
    Send {
        /// The member.
        from: u32,
        /// The receiver.
        to: u32,
        /// Its data, in bytes.
        bytes: u64,
    },
    /// A message is under way.
    Travel {
        /// The sender.
        from: u32,
        /// The receiver.
        to: u32,
        /// How long the message queued at cards and switches, in picoseconds.
        waited_ps: u64,
    },
    /// A member takes a message.
    Receive {
        /// The member.
        to: u32,
        /// The sender.
        from: u32,
        /// Its data, in bytes.
        bytes: u64,
    },
    /// A member learns that long data wait, or asks for them.
    Handshake {
        /// The member.
        member: u32,
        /// The other member.
        with: u32,
    },
    /// A member calls the operation.
    Call {
        /// The member.
        member: u32,
    },
    /// A member copies or combines, by itself or at the board.
    Work {
        /// The member.
        member: u32,
        /// The step of its plan.
        step: u32,
    },
}

impl What {
    /// The member that is active; none for messages under way.
    pub const fn member(&self) -> Option<u32> {
        match *self {
            Self::Send { from: member, .. }
            | Self::Receive { to: member, .. }
            | Self::Handshake { member, .. }
            | Self::Call { member }
            | Self::Work { member, .. } => Some(member),
            Self::Travel { .. } => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { from, to, bytes } => {
                write!(formatter, "member {from} sends {bytes} B to {to}")
            }
            Self::Travel { from, to, waited_ps: 0 } => {
                write!(formatter, "under way from {from} to {to}")
            }
            Self::Travel { from, to, waited_ps } => {
                let waited_us = *waited_ps as f64 / 1e6;
                write!(
                    formatter,
                    "under way from {from} to {to}, {waited_us:.3} us of it behind other messages"
                )
            }
            Self::Receive { to, from, bytes } => {
                write!(formatter, "member {to} receives {bytes} B from {from}")
            }
            Self::Handshake { member, with } => {
                write!(formatter, "member {member} agrees with {with} about long data")
            }
            Self::Call { member } => write!(formatter, "member {member} calls"),
            Self::Work { member, step } => {
                write!(formatter, "member {member} does step {step} of its plan")
            }
        }
    }
}

/// The number of a record, or [`NOTHING`].
pub(crate) type RecordId = u32;

/// The cause of an activity that waits for nothing.
pub(crate) const NOTHING: RecordId = RecordId::MAX;

/// All records, in the order in which they were added. Empty unless the setting asks for a history.
#[derive(Clone, Debug, Default)]
pub struct History {
    is_kept: bool,
    records: Vec<Record>,
}

impl History {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self { is_kept, records: Vec::new() }
    }

    /// Adds a record that could not begin before any of these causes had ended.
    pub(crate) fn add(
        &mut self,
        what: What,
        start: Time,
        end: Time,
        causes: [RecordId; 2],
    ) -> RecordId {
        if !self.is_kept {
            return NOTHING;
        }
        let over = |id: &RecordId| self.records.get(*id as usize).map(|record| record.end);
        let cause = causes.into_iter().max_by_key(over).unwrap_or(NOTHING);
        self.records.push(Record { what, start, end, cause });
        self.records.len() as RecordId - 1
    }

    /// When a record ended; the beginning of the run for [`NOTHING`].
    pub(crate) fn end_of(&self, id: RecordId) -> Time {
        self.records.get(id as usize).map_or(Time::ZERO, |record| record.end)
    }

    /// The chain of records that determined the end of the run, in order of time.
    pub fn critical_path(&self) -> Vec<Record> {
        let last = self
            .records
            .iter()
            .enumerate()
            .max_by_key(|(number, record)| (record.end, std::cmp::Reverse(*number)));
        let mut at = last.map_or(NOTHING, |(number, _)| number as RecordId);
        let mut path = Vec::new();
        while let Some(record) = self.records.get(at as usize) {
            path.push(*record);
            at = record.cause;
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_goes_back_over_the_latest_causes() {
        let mut history = History::new(true);
        let work = |member| What::Work { member, step: 0 };
        let at = Time::from_ps;
        let short = history.add(work(0), at(0), at(3), [NOTHING; 2]);
        let long = history.add(work(1), at(0), at(8), [NOTHING; 2]);
        history.add(work(2), at(8), at(9), [short, long]);
        let path: Vec<_> = history.critical_path().iter().map(|record| record.what).collect();
        assert_eq!(path, [work(1), work(2)]);
        assert_eq!(history.end_of(long), at(8));
    }

    #[test]
    fn nothing_is_kept_that_nobody_wants_to_know() {
        let mut history = History::new(false);
        let what = What::Handshake { member: 0, with: 1 };
        assert_eq!(history.add(what, Time::ZERO, Time::ZERO, [NOTHING; 2]), NOTHING);
        assert!(history.critical_path().is_empty());
    }
}
