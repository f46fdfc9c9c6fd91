//! A ring from one process to one other: one line of 64 bytes per message.
//!
//! ```text
//! line   head (8) | label (8) | 48 bytes of data, or the place of the data in the bulk area
//! credit one word, written by the receiver: how many lines it has consumed
//! ```
//!
//! The sender fills a line and stores its *head* last, with release; the low 16 bits of the head
//! are the message's sequence number, which is what tells a fresh line from one of an earlier
//! lap. So there is no shared index on the way, and a message costs the transfer of one line.
//! The sender reads the credit word only when what it knew of it is used up; the receiver writes
//! it a few times per lap. Longer data go into a bulk area beside the lines, which the sender
//! fills in order and gets back in order, with the same credit.
//!
//! | word | written by | when |
//! |---|---|---|
//! | line, bulk bytes | the ring's sender | between the credit for the line and its head |
//! | credit | the ring's receiver | after it has consumed lines |
//!
//! Lamport's single-producer ring with the flag in the data, as in FastForward (Giacomoni,
//! Moseley, Vachharajani, 2008); the credit batching is that of every flow-controlled network.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::private::bytes::{Bytes, copy};
use crate::sync::{self, AtomicU32, AtomicU64, Data, Ordering};

/// Bytes of data that fit in a line.
pub const INLINE_BYTES: usize = 48;

/// When a message was consumed, the line so many behind the next is asked for: in a stream lines are
/// on their way while others are worked on.
const LINES_AHEAD: u32 = 3;

/// Alignment of data in the bulk area.
const BULK_ALIGN: u64 = 64;

/// One line of a ring, all of it shared.
#[repr(C, align(64))]
pub(crate) struct Line {
    head: AtomicU64,
    label: AtomicU64,
    data: Data<[u8; INLINE_BYTES]>,
}

/// The memory of a ring and whatever keeps it mapped. Sizes are powers of two.
pub struct RingMemory {
    lines: NonNull<Line>,
    line_count: u32,
    bulk: NonNull<u8>,
    bulk_bytes: u64,
    credit: NonNull<AtomicU32>,
    _keep: Arc<dyn Send + Sync>,
}

// SAFETY: the sender and the receiver of a ring touch the memory through atomics and through
// bytes that the head's release and acquire order; `_keep` keeps it mapped.
unsafe impl Send for RingMemory {}

/// The sending end. One per ring; that there is one is the sender's own affair.
pub struct RingSender {
    memory: RingMemory,
    /// Lines written.
    position: u32,
    /// Lines that the receiver had consumed when we last looked.
    consumed: u32,
    /// Bytes of the bulk area given out, ever.
    bulk_used: u64,
    /// Bytes of the bulk area that came back, ever.
    bulk_free: u64,
    /// `bulk_used` after the message of each line.
    bulk_after: Box<[u64]>,
}

/// The receiving end.
pub struct RingReceiver {
    memory: RingMemory,
    /// Lines consumed.
    position: u32,
    /// Lines consumed, as the sender knows.
    announced: u32,
    /// Bulk bytes consumed since the last announcement.
    bulk_since: u64,
}

/// A message at the receiving end, not yet consumed.
pub struct RingMessage<'a> {
    /// The word that published it.
    pub head: u64,
    /// The word beside it.
    pub label: u64,
    /// Its data.
    pub data: Bytes<'a>,
}

/// The ring has no room for the message now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring is full: its receiver has not consumed what was sent before")]
pub struct RingFull;

/// A line says something that no sender writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a ring line claims {length} bytes at {offset} of a bulk area of {bulk_bytes}: its sender, or somebody who overwrote it, is broken"
)]
pub struct RingBroken {
    /// Bytes claimed.
    pub length: u64,
    /// Where they would begin.
    pub offset: u64,
    /// Bytes there are.
    pub bulk_bytes: u64,
}

#[cfg(not(loom))]
impl RingMemory {
    /// Ring number `ring` of those that `slot` sends on. None when there is no such ring.
    pub fn of(segment: &crate::Segment, slot: u32, ring: u64) -> Option<Self> {
        use crate::plan::{RING_BULK_BYTES, RING_LINES};
        let plan = segment.plan();
        if slot >= plan.slots() || ring >= plan.rings() {
            return None;
        }
        Some(Self {
            lines: segment.place(plan.ring(slot, ring), RING_LINES * 64).cast(),
            line_count: RING_LINES as u32,
            bulk: segment.place(plan.bulk(slot, ring), RING_BULK_BYTES),
            bulk_bytes: RING_BULK_BYTES,
            credit: segment.place(plan.credit(slot, ring), 4).cast(),
            _keep: Arc::new(segment.clone()),
        })
    }

    /// The ring on which the relay of this host sends to the process of `slot`. None when there is no such ring.
    pub fn of_relay(segment: &crate::Segment, slot: u32) -> Option<Self> {
        use crate::plan::{LINE_BYTES, RING_BULK_BYTES, RING_LINES};
        let plan = segment.plan();
        if slot >= plan.relay_rings() {
            return None;
        }
        let lines_bytes = RING_LINES * LINE_BYTES;
        Some(Self {
            lines: segment.place(plan.relay_ring(slot), lines_bytes).cast(),
            line_count: RING_LINES as u32,
            bulk: segment.place(plan.relay_ring(slot) + lines_bytes, RING_BULK_BYTES),
            bulk_bytes: RING_BULK_BYTES,
            credit: segment.place(plan.relay_credit(slot), 4).cast(),
            _keep: Arc::new(segment.clone()),
        })
    }

    /// Makes the ring one that has never been used. Nobody may receive from it.
    pub fn clear(&self) {
        for position in 0..self.line_count {
            self.line(position).head.store(0, Ordering::Relaxed);
        }
        self.credit().store(0, Ordering::Release);
    }
}

impl RingMemory {
    /// Both ends' view of a ring in this process's own memory: for tests and model checking.
    pub fn local(line_count: u32, bulk_bytes: u64) -> (Self, Self) {
        struct Owned {
            lines: Box<[Line]>,
            bulk: Box<[UnsafeCell<u8>]>,
            credit: Box<AtomicU32>,
        }
        // SAFETY: as `RingMemory`: atomics, and bytes ordered by the heads.
        unsafe impl Send for Owned {}
        // SAFETY: as above.
        unsafe impl Sync for Owned {}
        let owned = Arc::new(Owned {
            lines: (0..line_count)
                .map(|_| Line {
                    head: AtomicU64::new(0),
                    label: AtomicU64::new(0),
                    data: Data::new([0; INLINE_BYTES]),
                })
                .collect(),
            bulk: (0..bulk_bytes).map(|_| UnsafeCell::new(0)).collect(),
            credit: Box::new(AtomicU32::new(0)),
        });
        let view = || Self {
            lines: NonNull::from(&*owned.lines).cast(),
            line_count,
            bulk: NonNull::from(&*owned.bulk).cast(),
            bulk_bytes,
            credit: NonNull::from(&*owned.credit),
            _keep: owned.clone(),
        };
        (view(), view())
    }

    #[inline]
    fn line(&self, position: u32) -> &Line {
        let index = (position & (self.line_count - 1)) as usize;
        // SAFETY: the index is below the number of lines, which stay mapped while `_keep` lives.
        unsafe { self.lines.add(index).as_ref() }
    }

    #[inline]
    fn credit(&self) -> &AtomicU32 {
        // SAFETY: one aligned word that stays mapped while `_keep` lives and is only used atomically.
        unsafe { self.credit.as_ref() }
    }
}

impl RingSender {
    /// The sending end of a ring that has never been used.
    pub fn new(memory: RingMemory) -> Self {
        let bulk_after = vec![0; memory.line_count as usize].into_boxed_slice();
        Self { memory, position: 0, consumed: 0, bulk_used: 0, bulk_free: 0, bulk_after }
    }

    /// Longest data of one message.
    pub fn data_bytes_max(&self) -> usize {
        // A quarter, so that the receiver's announcements always come in time.
        (self.memory.bulk_bytes / 4) as usize
    }

    /// Writes a message whose data fit in the line. `head` must not be zero, and its low 16 bits
    /// must differ from those of the message one lap ago.
    ///
    /// # Errors
    /// [`RingFull`].
    #[inline]
    pub fn push_inline(&mut self, head: u64, label: u64, data: Bytes<'_>) -> Result<(), RingFull> {
        self.make_room(0)?;
        let line = self.memory.line(self.position);
        let length = data.len().min(INLINE_BYTES);
        // SAFETY: the credit says that the receiver has consumed this line: it is ours to write,
        // and `length` bytes fit into it.
        line.data.with_mut(|room| unsafe { copy(data.start().as_ptr(), room.cast(), length) });
        self.publish(head, label);
        Ok(())
    }

    /// Writes a message whose data, at most [`Self::data_bytes_max`], go into the bulk area.
    ///
    /// # Errors
    /// [`RingFull`].
    #[inline]
    pub fn push_bulk(&mut self, head: u64, label: u64, data: Bytes<'_>) -> Result<(), RingFull> {
        let length = (data.len() as u64).min(self.memory.bulk_bytes / 4);
        let room = length.next_multiple_of(BULK_ALIGN);
        let mask = self.memory.bulk_bytes - 1;
        let to_end = self.memory.bulk_bytes - (self.bulk_used & mask);
        let skipped = if room > to_end { to_end } else { 0 };
        self.make_room(skipped + room)?;
        let offset = (self.bulk_used + skipped) & mask;
        let line = self.memory.line(self.position);
        // SAFETY: `make_room` found that the receiver is done with this line and with this range
        // of the bulk area, and the range does not pass its end.
        unsafe {
            copy(
                data.start().as_ptr(),
                self.memory.bulk.as_ptr().add(offset as usize),
                length as usize,
            );
            line.data.with_mut(|room| room.cast::<u64>().write(offset));
        }
        self.bulk_used += skipped + room;
        self.publish(head, label);
        Ok(())
    }

    #[inline]
    fn publish(&mut self, head: u64, label: u64) {
        let line = self.memory.line(self.position);
        line.label.store(label, Ordering::Relaxed);
        line.head.store(head, Ordering::Release);
        let index = (self.position & (self.memory.line_count - 1)) as usize;
        self.bulk_after[index] = self.bulk_used;
        self.position = self.position.wrapping_add(1);
    }

    #[inline]
    fn make_room(&mut self, bulk_bytes: u64) -> Result<(), RingFull> {
        if self.has_room(bulk_bytes) {
            return Ok(());
        }
        self.read_credit();
        if self.has_room(bulk_bytes) { Ok(()) } else { Err(RingFull) }
    }

    #[inline]
    fn has_room(&self, bulk_bytes: u64) -> bool {
        self.position.wrapping_sub(self.consumed) < self.memory.line_count
            && self.bulk_used + bulk_bytes - self.bulk_free <= self.memory.bulk_bytes
    }

    /// Takes over what the receiver announced, if it is possible at all.
    #[inline(never)]
    fn read_credit(&mut self) {
        let consumed = self.memory.credit().load(Ordering::Acquire);
        let outstanding = self.position.wrapping_sub(self.consumed);
        let returned = consumed.wrapping_sub(self.consumed);
        if returned == 0 || returned > outstanding {
            return; // nothing new, or a word that somebody overwrote
        }
        self.consumed = consumed;
        let last = (consumed.wrapping_sub(1) & (self.memory.line_count - 1)) as usize;
        self.bulk_free = self.bulk_after[last];
    }

    /// Whether the receiver has consumed everything, as far as it announced.
    pub fn is_drained(&mut self) -> bool {
        self.read_credit();
        self.consumed == self.position
    }
}

impl RingReceiver {
    /// The receiving end of a ring that has never been used.
    pub fn new(memory: RingMemory) -> Self {
        Self { memory, position: 0, announced: 0, bulk_since: 0 }
    }

    /// The next message if it has arrived, that is, if its head carries this sequence number.
    /// `bulk_length` says, from the head, how many data lie in the bulk area; none means that
    /// the data are in the line.
    ///
    /// # Errors
    /// [`RingBroken`] when the line points outside the ring's memory.
    #[inline]
    pub fn peek(
        &self,
        sequence: u16,
        length: impl Fn(u64) -> (usize, bool),
    ) -> Result<Option<RingMessage<'_>>, RingBroken> {
        let line = self.memory.line(self.position);
        let head = line.head.load(Ordering::Acquire);
        if head as u16 != sequence || head == 0 {
            return Ok(None);
        }
        let label = line.label.load(Ordering::Relaxed);
        let (length, in_bulk) = length(head);
        let start = if in_bulk {
            self.bulk_place(line, length)?
        } else if length <= INLINE_BYTES {
            // SAFETY: a line's data field is never at address zero.
            line.data.with(|data| unsafe { NonNull::new_unchecked(data.cast_mut().cast()) })
        } else {
            return Err(self.broken(length, 0));
        };
        // SAFETY: the range was checked against the line or the bulk area, which stay mapped
        // while the receiver is borrowed.
        Ok(Some(RingMessage { head, label, data: unsafe { Bytes::from_raw(start, length) } }))
    }

    #[inline]
    fn bulk_place(&self, line: &Line, length: usize) -> Result<NonNull<u8>, RingBroken> {
        // SAFETY: eight aligned bytes at the start of the line's data, ordered by its head.
        let offset = line.data.with(|data| unsafe { data.cast::<u64>().read_volatile() });
        let fits =
            offset.checked_add(length as u64).is_some_and(|end| end <= self.memory.bulk_bytes);
        if !fits {
            return Err(self.broken(length, offset));
        }
        // SAFETY: the offset was just checked against the bulk area.
        Ok(unsafe { self.memory.bulk.add(offset as usize) })
    }

    #[cold]
    fn broken(&self, length: usize, offset: u64) -> RingBroken {
        RingBroken { length: length as u64, offset, bulk_bytes: self.memory.bulk_bytes }
    }

    /// Gives the line of the last peeked message back; `bulk_bytes` of the bulk area with it.
    /// True when the sender was told and may want to be woken.
    #[inline]
    pub fn consume(&mut self, bulk_bytes: usize) -> bool {
        self.position = self.position.wrapping_add(1);
        sync::prefetch(self.memory.line(self.position.wrapping_add(LINES_AHEAD)));
        self.bulk_since += (bulk_bytes as u64).next_multiple_of(BULK_ALIGN);
        let lines = self.position.wrapping_sub(self.announced);
        let due =
            lines >= self.memory.line_count / 4 || self.bulk_since >= self.memory.bulk_bytes / 4;
        if due {
            self.announce();
        }
        due
    }

    /// Tells the sender what was consumed so far.
    #[inline]
    pub fn announce(&mut self) {
        self.announced = self.position;
        self.bulk_since = 0;
        self.memory.credit().store(self.position, Ordering::Release);
    }

    /// Whether lines were consumed that the sender does not know of.
    pub fn owes_credit(&self) -> bool {
        self.announced != self.position
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// In these tests a head is: sequence | bulk flag at bit 16 | length in the high half.
    fn head(sequence: u16, length: usize, bulk: bool) -> u64 {
        u64::from(sequence) | u64::from(bulk) << 16 | 1 << 17 | (length as u64) << 32
    }

    fn length(head: u64) -> (usize, bool) {
        ((head >> 32) as usize, head >> 16 & 1 != 0)
    }

    fn ring(lines: u32, bulk: u64) -> (RingSender, RingReceiver) {
        let (one, other) = RingMemory::local(lines, bulk);
        (RingSender::new(one), RingReceiver::new(other))
    }

    #[test]
    fn messages_arrive_once_and_in_order_over_many_laps() {
        let (mut sender, mut receiver) = ring(4, 1024);
        let mut received = 0u16;
        for sequence in 0..1000u16 {
            let data = sequence.to_le_bytes();
            sender.push_inline(head(sequence, 2, false), 7, Bytes::from(&data[..])).unwrap();
            if sequence % 3 == 2 {
                while let Some(message) = receiver.peek(received, length).unwrap() {
                    assert_eq!(message.data.to_vec(), received.to_le_bytes());
                    assert_eq!(message.label, 7);
                    receiver.consume(0);
                    received += 1;
                }
            }
        }
        assert_eq!(received, 999);
    }

    #[test]
    fn a_full_ring_refuses_and_loses_nothing() {
        let (mut sender, mut receiver) = ring(4, 1024);
        for sequence in 0..4 {
            sender.push_inline(head(sequence, 0, false), 0, Bytes::EMPTY).unwrap();
        }
        assert_eq!(sender.push_inline(head(4, 0, false), 0, Bytes::EMPTY), Err(RingFull));
        assert!(receiver.peek(0, length).unwrap().is_some());
        receiver.consume(0);
        sender.push_inline(head(4, 0, false), 0, Bytes::EMPTY).unwrap();
        for sequence in 1..5 {
            assert!(receiver.peek(sequence, length).unwrap().is_some(), "{sequence}");
            receiver.consume(0);
        }
        assert!(receiver.peek(5, length).unwrap().is_none());
    }

    #[test]
    fn bulk_data_of_every_length_come_back_whole() {
        let (mut sender, mut receiver) = ring(8, 4096);
        let mut sequence = 0u16;
        for round in 0..40 {
            for size in [0, 1, 63, 64, 65, 500, 1000, 1024] {
                let data: Vec<u8> = (0..size).map(|at| (at + round) as u8).collect();
                sender.push_bulk(head(sequence, size, true), 0, Bytes::from(&data[..])).unwrap();
                let message = receiver.peek(sequence, length).unwrap().unwrap();
                assert_eq!(message.data.to_vec(), data);
                receiver.consume(size);
                sequence = sequence.wrapping_add(1);
            }
        }
    }

    #[test]
    fn bulk_waits_for_its_credit() {
        let (mut sender, mut receiver) = ring(8, 4096);
        let data = [0u8; 1024];
        for sequence in 0..4 {
            sender.push_bulk(head(sequence, 1024, true), 0, Bytes::from(&data[..])).unwrap();
        }
        assert_eq!(sender.push_bulk(head(4, 1024, true), 0, Bytes::from(&data[..])), Err(RingFull));
        assert!(receiver.peek(0, length).unwrap().is_some());
        receiver.consume(1024);
        assert!(sender.push_bulk(head(4, 1024, true), 0, Bytes::from(&data[..])).is_ok());
    }

    #[test]
    fn words_that_somebody_overwrote_are_errors_not_accesses() {
        let (mut sender, receiver) = ring(4, 1024);
        sender.push_inline(head(0, 49, false), 0, Bytes::EMPTY).unwrap();
        assert!(receiver.peek(0, length).is_err());
        let (mut sender, receiver) = ring(4, 1024);
        sender.push_bulk(head(0, 1025, true), 0, Bytes::EMPTY).unwrap();
        assert!(receiver.peek(0, length).is_err());
        sender.memory.credit().store(999, Ordering::Relaxed);
        for sequence in 1..4 {
            sender.push_inline(head(sequence, 0, false), 0, Bytes::EMPTY).unwrap();
        }
        assert_eq!(sender.push_inline(head(4, 0, false), 0, Bytes::EMPTY), Err(RingFull));
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;

    /// One message more than there are lines, so that a line and its credit are used twice.
    #[test]
    fn every_message_arrives_whole_in_every_schedule() {
        crate::sync::model(|| {
            let (one, other) = RingMemory::local(2, 256);
            let (mut sender, mut receiver) = (RingSender::new(one), RingReceiver::new(other));
            let writer = loom::thread::spawn(move || {
                for sequence in 1..=3u64 {
                    let data = [sequence as u8; 8];
                    while sender
                        .push_inline(sequence, sequence << 8, Bytes::from(&data[..]))
                        .is_err()
                    {
                        crate::sync::pause();
                    }
                }
            });
            for sequence in 1..=3u16 {
                loop {
                    if let Some(message) = receiver.peek(sequence, |_| (8, false)).unwrap() {
                        assert_eq!(message.label, u64::from(sequence) << 8);
                        assert_eq!(message.data.to_vec(), [sequence as u8; 8]);
                        break;
                    }
                    crate::sync::pause();
                }
                receiver.consume(0);
                receiver.announce();
            }
            writer.join().unwrap();
        });
    }
}
