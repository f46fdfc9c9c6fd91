//! Snapshots: the state that follows from the entries up to a place, so that a process need not have read them.
//!
//! One of the buffers is current: the snapshot word names it, with its place. A process that writes a new
//! snapshot claims a buffer that is not current, writes it, and exchanges the word.

use landeck_memory::sync::{AtomicU64, Ordering};

use super::words::Owner;
use super::{GroupLog, SNAPSHOT_WORD};

/// Buffers: as many processes may be stopped in the middle of writing one.
const BUFFERS: u64 = 16;
/// A claim and a length stand in front of the words.
const HEAD_WORDS: u64 = 2;
const BUFFER_BITS: u32 = 8;
/// Words that are written between two crash points.
const CRASH_WORDS: usize = 64;
/// Attempts to read one before it is overwritten: more are no accident.
const ATTEMPTS: u32 = 1 << 10;

pub(super) const fn bytes(words: u32) -> u64 {
    BUFFERS * (HEAD_WORDS + words as u64) * 8
}

impl GroupLog {
    /// The place of the newest snapshot: it covers all entries before.
    #[inline]
    pub fn snapshot_place(&self) -> u64 {
        self.head(SNAPSHOT_WORD).load(Ordering::Acquire) >> BUFFER_BITS
    }

    /// The newest snapshot; none before there is one, or when its words cannot be one.
    pub fn snapshot(&self) -> Option<Vec<u64>> {
        for _ in 0..ATTEMPTS {
            let word = self.head(SNAPSHOT_WORD).load(Ordering::Acquire);
            if word == 0 {
                return None;
            }
            let buffer = self.buffer(word & ((1 << BUFFER_BITS) - 1))?;
            let length = buffer[1].load(Ordering::Relaxed);
            let words = buffer.get(2..2 + usize::try_from(length).ok()?)?;
            let words = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            std::sync::atomic::fence(Ordering::Acquire);
            if self.head(SNAPSHOT_WORD).load(Ordering::Relaxed) == word {
                return Some(words);
            }
        }
        None
    }

    /// Makes these words the newest snapshot, of all entries before `place`, unless there is a newer
    /// one. False when there are too many words, or no buffer is free.
    pub fn set_snapshot(&self, place: u64, words: &[u64]) -> bool {
        let Some((number, buffer)) = self.claim_buffer() else { return false };
        let is_short = words.len() as u64 <= buffer.len() as u64 - HEAD_WORDS;
        let is_set = is_short && {
            buffer[1].store(words.len() as u64, Ordering::Relaxed);
            super::stored();
            // No process reads the buffer before it is current, so one store between is as good as another.
            for (targets, words) in buffer[2..].chunks(CRASH_WORDS).zip(words.chunks(CRASH_WORDS)) {
                targets.iter().zip(words).for_each(|(it, word)| it.store(*word, Ordering::Relaxed));
                super::stored();
            }
            self.exchange_snapshot(place, number)
        };
        buffer[0].store(Owner::Nobody.to_word(), Ordering::Release);
        super::stored();
        is_set
    }

    fn exchange_snapshot(&self, place: u64, buffer: u64) -> bool {
        let word = self.head(SNAPSHOT_WORD);
        let new = place << BUFFER_BITS | buffer;
        let mut seen = word.load(Ordering::Acquire);
        while seen >> BUFFER_BITS < place {
            match word.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    super::stored();
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        true
    }

    /// A buffer that is not current, and that no living process writes.
    pub(super) fn claim_buffer(&self) -> Option<(u64, &[AtomicU64])> {
        let own = Owner::Process { slot: self.slot, incarnation: self.incarnation }.to_word();
        (0..BUFFERS).find_map(|number| {
            let buffer = self.buffer(number)?;
            let seen = buffer[0].load(Ordering::Acquire);
            let is_free = seen == Owner::Nobody.to_word() || self.is_of_the_dead(seen);
            let claim = &buffer[0];
            let is_claimed = is_free
                && !self.counts(number)
                && claim.compare_exchange(seen, own, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            if is_claimed {
                super::stored();
            }
            // It may have come to count in between.
            if is_claimed && self.counts(number) {
                claim.store(Owner::Nobody.to_word(), Ordering::Release);
                return None;
            }
            is_claimed.then_some((number, buffer))
        })
    }

    fn counts(&self, number: u64) -> bool {
        let word = self.head(SNAPSHOT_WORD).load(Ordering::Acquire);
        word != 0 && word & ((1 << BUFFER_BITS) - 1) == number
    }

    fn buffer(&self, number: u64) -> Option<&[AtomicU64]> {
        let words = HEAD_WORDS + u64::from(self.shape.snapshot_words);
        let place = self.places.snapshots + number * words * 8;
        (number < BUFFERS).then(|| self.words(place, words))
    }
}
