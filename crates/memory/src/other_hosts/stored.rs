//! The store of this host: data of messages that stay here until their receivers fetch them.
//!
//! ```text
//! head, 64 bytes, written by the relay alone:
//!   0   the count in the number of the next message, zero if the store was never used
//!   8   messages                                 16  the bytes that they take
//! records, 64 bytes each, written by the relay alone:
//!   0   number of the message, or zero           8   place of its data in the data of the store
//!   16  bytes, and whether it is sealed (bit 63)
//!   24  sender: host identity                    32  slot (32) | incarnation (32)
//!   40  receiver: host identity                  48  slot (32) | incarnation (32)
//!   56  number of the sender's request (32)
//! data
//! ```
//!
//! The relay gives places out. The data are written by the relay, or by their sender if it is a process of this host; they are
//! read by the relay, or by their receiver if it is one. The records are for the next run of the daemon, and for observers.

use std::sync::atomic::Ordering;

use crate::observed::Observed;
use crate::plan::{LINE_BYTES, SegmentPlan};
use crate::private::bytes::{Buffer, Bytes};
use crate::segment::Segment;

use super::far::FarProcess;

const RECORD_WORDS: usize = 8;
const SEALED_BIT: u32 = 63;

/// The record of a message in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its number, never zero.
    pub number: u64,
    /// Where its data begin in the data of the store.
    pub place: u64,
    /// Their length.
    pub bytes: u64,
    /// It is whole.
    pub is_sealed: bool,
    /// The process that stores it.
    pub sender: FarProcess,
    /// The number of its request.
    pub request: u32,
    /// The process that fetches it.
    pub receiver: FarProcess,
}

impl StoredRecord {
    /// The record in these words, which may be anything; `None` if there is none.
    fn from_words(words: [u64; RECORD_WORDS]) -> Option<Self> {
        let [number, place, bytes, ..] = words;
        let process = |at: usize| FarProcess {
            host: words[at],
            slot: words[at + 1] as u32,
            incarnation: (words[at + 1] >> 32) as u32,
        };
        let (sender, receiver) = (process(3), process(5));
        let (is_sealed, bytes) = (bytes >> SEALED_BIT != 0, bytes & !(1 << SEALED_BIT));
        let request = words[7] as u32;
        (number != 0).then_some(Self { number, place, bytes, is_sealed, sender, request, receiver })
    }

    fn to_words(self) -> [u64; RECORD_WORDS] {
        let process = |it: FarProcess| u64::from(it.slot) | u64::from(it.incarnation) << 32;
        let Self { number, place, bytes, is_sealed, sender, request, receiver } = self;
        let bytes = bytes & !(1 << SEALED_BIT) | u64::from(is_sealed) << SEALED_BIT;
        let (from, to) = (process(sender), process(receiver));
        [number, place, bytes, sender.host, from, receiver.host, to, request.into()]
    }
}

impl Segment {
    /// The count in the number of the store's next message; zero if it was never used.
    pub fn stored_next(&self) -> u64 {
        match self.plan().store_bytes() {
            0 => 0,
            _ => self.long(self.plan().store()).load(Ordering::Acquire),
        }
    }

    /// Writes that count; for the relay alone. Nothing happens where there is no store.
    pub fn set_stored_next(&self, next: u64) {
        if self.plan().store_bytes() != 0 {
            self.long(self.plan().store()).store(next, Ordering::Release);
        }
    }

    /// The messages in the store, also those that are not whole.
    pub fn stored_messages(&self) -> u64 {
        match self.plan().store_bytes() {
            0 => 0,
            _ => self.long(self.plan().store() + 8).load(Ordering::Acquire),
        }
    }

    /// Writes the number of messages and the bytes that they take; for the relay alone. Nothing happens where there is no store.
    pub fn set_stored(&self, messages: u64, bytes: u64) {
        if self.plan().store_bytes() != 0 {
            self.long(self.plan().store() + 8).store(messages, Ordering::Release);
            self.long(self.plan().store() + 16).store(bytes, Ordering::Release);
        }
    }

    /// The record with an index, if there is one.
    pub fn stored_record(&self, index: u32) -> Option<StoredRecord> {
        let place = self.plan().stored_record(index)?;
        let word = |at: usize| self.long(place + at as u64 * 8).load(Ordering::Acquire);
        StoredRecord::from_words(std::array::from_fn(word))
    }

    /// Writes the record with an index, or removes it; for the relay alone. Nothing happens outside the table.
    pub fn set_stored_record(&self, index: u32, record: Option<StoredRecord>) {
        let Some(place) = self.plan().stored_record(index) else { return };
        let words = record.unwrap_or_default().to_words();
        if self.long(place).load(Ordering::Relaxed) != words[0] {
            self.long(place).store(0, Ordering::Release);
        }
        // The number is last: a record with a number is whole.
        for (at, word) in words.into_iter().enumerate().rev() {
            self.long(place + at as u64 * 8).store(word, Ordering::Release);
        }
    }

    /// So many bytes of the store's data from a place on; `None` where there are none. Another process may write there.
    pub fn stored_data(&self, place: u64, bytes: u64) -> Option<Bytes<'_>> {
        let start = self.stored_range(place, bytes)?;
        Some(self.bytes().part(start as usize, bytes as usize))
    }

    /// Writes data to a place of the store; false if that is not inside.
    pub fn write_stored(&self, place: u64, data: Bytes<'_>) -> bool {
        let Some(start) = self.stored_range(place, data.len() as u64) else { return false };
        // SAFETY: the range lies within the store, which stays mapped while this handle is borrowed. It is only ever used as
        // places to copy from and to.
        let buffer = unsafe { Buffer::new(self.place(start, 1), data.len()) };
        buffer.write(0, data);
        true
    }

    fn stored_range(&self, place: u64, bytes: u64) -> Option<u64> {
        let plan = self.plan();
        let end = place.checked_add(bytes).filter(|end| *end <= plan.store_bytes());
        end.map(|_| plan.stored_data() + place)
    }
}

impl Observed {
    /// The messages in the store of this host, and the bytes that they take.
    pub fn stored(&self) -> (u64, u64) {
        let mut words = [0; 3];
        if self.plan().store_bytes() != 0 {
            self.read(self.plan().store(), &mut words);
        }
        (words[1], words[2])
    }

    /// The records of the messages in the store of this host.
    pub fn stored_records(&self) -> Vec<StoredRecord> {
        let record = |index: u32| {
            let mut words = [0; RECORD_WORDS];
            self.read(self.plan().stored_record(index)?, &mut words);
            StoredRecord::from_words(words)
        };
        let mut next = [0];
        if self.plan().store_bytes() != 0 {
            self.read(self.plan().store(), &mut next);
        }
        let records = if next == [0] { 0 } else { self.plan().stored_records() };
        (0..records).filter_map(record).collect()
    }
}

impl SegmentPlan {
    /// The record of a message in the store; `None` outside the table.
    fn stored_record(&self, index: u32) -> Option<u64> {
        let is_there = index < self.stored_records();
        is_there.then(|| self.store() + LINE_BYTES + u64::from(index) * LINE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SegmentPlan {
        let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(1, 2) };
        SegmentPlan { ranks: 4, far: 2, hosts: 2, guests: 1, ..plan }
    }

    fn record() -> StoredRecord {
        let sender = FarProcess { host: u64::MAX, slot: 7, incarnation: u32::MAX };
        let receiver = FarProcess { host: 3, slot: u32::MAX, incarnation: 1 };
        let (number, place, bytes, request) = (9, 64, 1 << 40, u32::MAX);
        StoredRecord { number, place, bytes, is_sealed: true, sender, request, receiver }
    }

    #[test]
    fn records_are_read_as_written_also_by_observers() {
        let segment = Segment::create(&plan()).unwrap();
        let file = || segment.descriptor().unwrap().try_clone_to_owned().unwrap();
        let observed = || Observed::open(file()).unwrap().stored_records();
        segment.set_stored_record(1, Some(record()));
        assert_eq!((segment.stored_next(), observed()), (0, vec![]), "it was never used");
        segment.set_stored_next(5);
        segment.set_stored(2, 128);
        assert_eq!(
            (segment.stored_messages(), Observed::open(file()).unwrap().stored()),
            (2, (2, 128))
        );
        let other = StoredRecord { is_sealed: false, ..record() };
        segment.set_stored_record(3, Some(other));
        segment.set_stored_record(u32::MAX, Some(other)); // there is none
        assert_eq!((segment.stored_next(), segment.stored_record(1)), (5, Some(record())));
        assert_eq!(observed(), [record(), other]);
        segment.set_stored_record(1, None);
        assert_eq!((segment.stored_record(1), segment.stored_record(3)), (None, Some(other)));
        assert_eq!(segment.stored_record(u32::MAX), None);
    }

    #[test]
    fn data_lie_in_the_store_alone() {
        let segment = Segment::create(&plan()).unwrap();
        let most = segment.plan().store_bytes();
        assert_eq!(most, 512 << 10, "a quarter of what the processes have");
        assert!(segment.write_stored(most - 3, Bytes::from(&[1, 2, 3][..])));
        assert_eq!(segment.stored_data(most - 3, 3).unwrap().to_vec(), [1, 2, 3]);
        assert!(!segment.write_stored(most - 2, Bytes::from(&[1, 2, 3][..])));
        assert!(segment.stored_data(u64::MAX, 2).is_none());
        assert_eq!(segment.stored_record(segment.plan().stored_records() - 1), None);
    }

    #[test]
    fn a_job_on_one_host_has_no_store() {
        let segment = Segment::local(&SegmentPlan { ranks: 2, ..plan() });
        segment.set_stored_next(1);
        segment.set_stored_record(0, Some(record()));
        segment.set_stored(1, 1);
        assert_eq!((segment.stored_next(), segment.stored_messages()), (0, 0));
        assert_eq!(segment.stored_record(0), None);
        assert!(segment.stored_data(0, 0).is_some_and(|data| data.is_empty()));
        assert!(!segment.write_stored(0, Bytes::from(&[1][..])));
    }
}
