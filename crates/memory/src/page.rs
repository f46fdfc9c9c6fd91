//! The own page of each process: its presence, what it waits for, what it has counted. The
//! process writes, everybody may read, also when it is wedged, stopped or dead.
//!
//! ```text
//! line 0   presence (32 bits)
//! line 1   operation (8 bits) | has peer (8) | has tag (8) | peer (32 high bits)
//!          tag | context, bytes, since
//! line 2   messages sent, bytes sent, messages received, bytes received,
//!          waits, waited ns, sleeps, slot waited for most
//! ```

use std::sync::atomic::Ordering;

use crate::plan::LINE_BYTES;
use crate::segment::Segment;

const WAIT_LINE: u64 = LINE_BYTES;
const COUNTER_LINE: u64 = 2 * LINE_BYTES;

/// Whether the program of a process has joined and left in good order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Presence {
    /// The process runs but has not joined (it may never, as `/bin/true` does not).
    #[default]
    NotAttached = 0,
    /// It has joined.
    Attached = 1,
    /// It has said goodbye.
    Finalized = 2,
}

/// What a process is doing when it waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// It does not wait.
    #[default]
    None = 0,
    /// A send that has no room yet.
    Send = 1,
    /// A receive.
    Receive = 2,
    /// A probe.
    Probe = 3,
    /// The completion of one of its requests.
    Wait = 4,
    /// The gathering of its processes at the start.
    Join = 5,
    /// The end: its last messages must be out.
    Leave = 6,
    /// Somebody who connects.
    Accept = 7,
    /// The other members of a group, in a collective operation.
    Collective = 8,
    /// A unit of a semaphore.
    Semaphore = 9,
}

impl Operation {
    const ALL: [Self; 10] = [
        Self::None,
        Self::Send,
        Self::Receive,
        Self::Probe,
        Self::Wait,
        Self::Join,
        Self::Leave,
        Self::Accept,
        Self::Collective,
        Self::Semaphore,
    ];

    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "running",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Probe => "probe",
            Self::Wait => "wait",
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Accept => "accept",
            Self::Collective => "collective operation",
            Self::Semaphore => "semaphore",
        }
    }
}

/// What a process waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitRecord {
    /// The call.
    pub operation: Operation,
    /// The slot it waits for; none means anybody.
    pub peer: Option<u32>,
    /// The tag; none means any.
    pub tag: Option<u32>,
    /// The context.
    pub context: u32,
    /// Bytes of the message, where known.
    pub bytes: u64,
    /// Since when, in nanoseconds of the monotonic clock.
    pub since_ns: u64,
}

/// What a process has counted since it joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent.
    pub messages_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Times it waited longer than a moment.
    pub waits: u64,
    /// Time in those waits, in nanoseconds.
    pub waited_ns: u64,
    /// Times it slept in one.
    pub sleeps: u64,
    /// The slot of its longest wait, plus one; zero when it never waited for anybody in particular.
    pub longest_wait_peer_plus_one: u64,
}

impl Counters {
    fn to_words(self) -> [u64; 8] {
        [
            self.messages_sent,
            self.bytes_sent,
            self.messages_received,
            self.bytes_received,
            self.waits,
            self.waited_ns,
            self.sleeps,
            self.longest_wait_peer_plus_one,
        ]
    }
}

impl Segment {
    /// How far the program of a slot has come.
    pub fn presence(&self, slot: u32) -> Presence {
        match self.word(self.plan().slot(self.known(slot))).load(Ordering::Acquire) {
            1 => Presence::Attached,
            2 => Presence::Finalized,
            _ => Presence::NotAttached,
        }
    }

    /// Says how far the program has come; for the process of the slot only.
    pub fn set_presence(&self, slot: u32, presence: Presence) {
        self.word(self.plan().slot(slot)).store(presence as u32, Ordering::Release);
    }

    /// What the process of a slot waits for; operation `None` when it runs.
    pub fn wait_record(&self, slot: u32) -> WaitRecord {
        let line = self.plan().slot(self.known(slot)) + WAIT_LINE;
        let [first, second, bytes, since_ns] =
            [0, 8, 16, 24].map(|at| self.long(line + at).load(Ordering::Acquire));
        let operation = Operation::ALL.get((first & 0xff) as usize).copied().unwrap_or_default();
        WaitRecord {
            operation,
            peer: (first >> 8 & 1 != 0).then_some((first >> 32) as u32),
            tag: (first >> 16 & 1 != 0).then_some((second >> 32) as u32),
            context: second as u32,
            bytes,
            since_ns,
        }
    }

    /// Says what the process of a slot waits for; for that process only.
    pub fn set_wait_record(&self, slot: u32, record: &WaitRecord) {
        let line = self.plan().slot(slot) + WAIT_LINE;
        let first = record.operation as u64
            | u64::from(record.peer.is_some()) << 8
            | u64::from(record.tag.is_some()) << 16
            | u64::from(record.peer.unwrap_or(0)) << 32;
        let second = u64::from(record.context) | u64::from(record.tag.unwrap_or(0)) << 32;
        self.long(line + 8).store(second, Ordering::Release);
        self.long(line + 16).store(record.bytes, Ordering::Release);
        self.long(line + 24).store(record.since_ns, Ordering::Release);
        self.long(line).store(first, Ordering::Release);
    }

    /// What the process of a slot has counted.
    pub fn counters(&self, slot: u32) -> Counters {
        let line = self.plan().slot(self.known(slot)) + COUNTER_LINE;
        let word = |index: u64| self.long(line + index * 8).load(Ordering::Relaxed);
        Counters {
            messages_sent: word(0),
            bytes_sent: word(1),
            messages_received: word(2),
            bytes_received: word(3),
            waits: word(4),
            waited_ns: word(5),
            sleeps: word(6),
            longest_wait_peer_plus_one: word(7),
        }
    }

    /// Publishes what the process of a slot has counted; for that process only.
    pub fn set_counters(&self, slot: u32, counters: &Counters) {
        let line = self.plan().slot(slot) + COUNTER_LINE;
        for (index, word) in counters.to_words().into_iter().enumerate() {
            self.long(line + index as u64 * 8).store(word, Ordering::Relaxed);
        }
    }

    /// A slot number from outside, or the last slot when there is no such slot.
    fn known(&self, slot: u32) -> u32 {
        slot.min(self.plan().slots() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;

    fn segment() -> Segment {
        Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) })
    }

    #[test]
    fn a_wait_is_read_as_written() {
        let segment = segment();
        let exact = WaitRecord {
            operation: Operation::Receive,
            peer: Some(u32::MAX),
            tag: Some(7),
            context: 3,
            bytes: 1 << 40,
            since_ns: 99,
        };
        for record in [exact, WaitRecord { peer: None, tag: None, ..exact }, WaitRecord::default()]
        {
            segment.set_wait_record(1, &record);
            assert_eq!(segment.wait_record(1), record);
        }
        assert_eq!(segment.wait_record(0), WaitRecord::default());
    }

    #[test]
    fn a_scribbled_wait_is_still_a_wait() {
        let segment = segment();
        segment.long(segment.plan().slot(0) + WAIT_LINE).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(segment.wait_record(0).operation, Operation::None);
    }

    #[test]
    fn counters_are_read_as_written() {
        let segment = segment();
        let counters =
            Counters { messages_sent: 1, bytes_received: 2, sleeps: 3, ..Counters::default() };
        segment.set_counters(0, &counters);
        assert_eq!(segment.counters(0), counters);
    }
}
