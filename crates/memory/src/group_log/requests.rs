//! What became of the requests of each process, where a group has a server.
//!
//! One word per slot: the process writes that it asks for something, with the next number; the server
//! takes that, before it has an entry accepted; whoever folds the entry writes what came of it. Nobody
//! appends, or writes a snapshot, before it has folded what is in front: so when the server is gone,
//! whoever has folded the log to its end finds here whether its request was accepted, and asks the
//! next server again with the same number if it was not.
//!
//! | bits of a word | |
//! |---|---|
//! | 0..24 | what came of it |
//! | 24..28 | how far it is |
//! | 28..40 | the low bits of which user of the slot it is |
//! | 40..64 | its number |

use super::GroupLog;
use crate::sync::{AtomicU64, Ordering};

const ANSWER_MASK: u64 = (1 << 24) - 1;
const STAGE_SHIFT: u32 = 24;
const INCARNATION_SHIFT: u32 = 28;
const INCARNATION_MASK: u64 = (1 << 12) - 1;
const NUMBER_SHIFT: u32 = 40;
const NUMBER_MASK: u64 = (1 << 24) - 1;
const ASKED: u64 = 1;
const TAKEN: u64 = 2;
const ANSWERED: u64 = 3;
const WITHDRAWN: u64 = 4;

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The server has not taken it.
    Asked,
    /// The server is about to have it accepted.
    Taken,
    /// This came of it.
    Answered(u32),
    /// It was taken back, or is of another number.
    None,
}

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    fn new(number: u32, incarnation: u32, stage: u64, answer: u32) -> Self {
        Self(
            (u64::from(number) & NUMBER_MASK) << NUMBER_SHIFT
                | (u64::from(incarnation) & INCARNATION_MASK) << INCARNATION_SHIFT
                | stage << STAGE_SHIFT
                | u64::from(answer) & ANSWER_MASK,
        )
    }

    fn is_of(self, number: u32, incarnation: u32) -> bool {
        self.0 >> INCARNATION_SHIFT == Self::new(number, incarnation, 0, 0).0 >> INCARNATION_SHIFT
    }

    fn stage(self) -> u64 {
        self.0 >> STAGE_SHIFT & 0xf
    }
}

impl GroupLog {
    /// Asks for something; the number of the request. A process asks for one thing at a time.
    pub fn ask(&self) -> u32 {
        let word = self.request(self.slot);
        let before = (word.load(Ordering::Acquire) >> NUMBER_SHIFT) as u32;
        let number = (before + 1) & NUMBER_MASK as u32;
        word.store(Word::new(number, self.incarnation, ASKED, 0).0, Ordering::Release);
        super::stored();
        number
    }

    /// How far this process's request with a number is.
    pub fn progress(&self, number: u32) -> Progress {
        let word = Word(self.request(self.slot).load(Ordering::Acquire));
        match word.stage() {
            _ if !word.is_of(number, self.incarnation) => Progress::None,
            ASKED => Progress::Asked,
            TAKEN => Progress::Taken,
            ANSWERED => Progress::Answered((word.0 & ANSWER_MASK) as u32),
            _ => Progress::None,
        }
    }

    /// Asks again, as the server that was asked is gone, and its request was not accepted.
    pub fn ask_again(&self, number: u32) {
        self.move_on(self.slot, number, self.incarnation, &[TAKEN], ASKED, 0);
    }

    /// Takes a request back; false when the server has taken it. One that is `forlorn` was taken by
    /// a server that is gone, and not accepted.
    pub fn withdraw(&self, number: u32, is_forlorn: bool) -> bool {
        let from: &[u64] = if is_forlorn { &[ASKED, TAKEN] } else { &[ASKED] };
        self.move_on(self.slot, number, self.incarnation, from, WITHDRAWN, 0)
    }

    /// The server's: takes a request. False when it was taken back, done before, or is of a process
    /// that is no more.
    pub fn take_request(&self, slot: u32, incarnation: u32, number: u32) -> bool {
        self.move_on(slot, number, incarnation, &[ASKED], TAKEN, 0)
    }

    /// Says what came of a request, unless somebody did.
    pub fn answer(&self, slot: u32, incarnation: u32, number: u32, answer: u32) {
        self.move_on(slot, number, incarnation, &[ASKED, TAKEN], ANSWERED, answer);
    }

    fn move_on(
        &self,
        slot: u32,
        number: u32,
        incarnation: u32,
        from: &[u64],
        to: u64,
        answer: u32,
    ) -> bool {
        if slot >= self.segment.plan().slots() {
            return false;
        }
        let word = self.request(slot);
        let seen = word.load(Ordering::Acquire);
        let fits = Word(seen).is_of(number, incarnation) && from.contains(&Word(seen).stage());
        let new = Word::new(number, incarnation, to, answer).0;
        // Whoever was faster has done the same, or the one who asks has taken it back.
        let is_moved =
            fits && word.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if is_moved {
            super::stored();
        }
        is_moved
    }

    fn request(&self, slot: u32) -> &AtomicU64 {
        let place = self.places.requests + u64::from(slot) * 8;
        &self.area.words()[(place / 8) as usize]
    }
}
