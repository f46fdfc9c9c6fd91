//! The state of each process's request to the group's server.
//!
//! There is one word per peer. A process of the log's host writes its own; the server writes those of processes on
//! other hosts when it receives their requests. The process writes a request to the server of an epoch, with the next number. The
//! server takes it, and marks it begun before it has an entry accepted. Each process that folds the entry writes
//! the result. No process appends, or writes a snapshot, before it has folded all earlier entries. So when the
//! server is gone, or has lost its seat, a process that has folded the log to its end finds here whether its
//! request was accepted. If it was not, the process asks the next server with the same number. A server takes only
//! requests of its own epoch: if it was stopped meanwhile, it leaves requests to its successor alone.
//!
//! | bits of a word | |
//! |---|---|
//! | 0..24 | the result; before that, the low bits of the epoch |
//! | 24..28 | how far it is |
//! | 28..40 | the low bits of the slot's incarnation |
//! | 40..64 | its number |

use landeck_memory::sync::{AtomicU64, Ordering};

use super::GroupLog;

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
const BEGUN: u64 = 5;
/// Times that another process may move a request on before it counts as broken: it has fewer stages.
const ATTEMPTS: u32 = 8;

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The server has not taken it.
    Asked,
    /// The server works on it.
    Taken,
    /// The server has answered with this result.
    Answered(u32),
    /// It was taken back, or is of another number.
    None,
}

/// The word of one slot's request.
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

    /// Whether it is at one of these stages, in this epoch if that matters.
    fn is_at(self, stages: &[u64], epoch: Option<u64>) -> bool {
        let is_then = epoch.is_none_or(|epoch| (self.0 ^ epoch) & ANSWER_MASK == 0);
        is_then && stages.contains(&self.stage())
    }
}

impl GroupLog {
    /// Makes a request to the server of an epoch; returns its number. A process has one request at a time.
    pub fn ask(&self, epoch: u64) -> u32 {
        let word = self.request(self.slot);
        let before = (word.load(Ordering::Acquire) >> NUMBER_SHIFT) as u32;
        let number = (before + 1) & NUMBER_MASK as u32;
        word.store(Word::new(number, self.incarnation, ASKED, epoch as u32).0, Ordering::Release);
        super::stored();
        number
    }

    /// The server's: takes a request of a process on another host for its epoch. Says how far the request was before: the
    /// process may have asked an earlier server. A new request has made no progress.
    pub fn adopt_request(&self, peer: u32, incarnation: u32, number: u32, epoch: u64) -> Progress {
        let before = self.progress_of(peer, incarnation, number);
        if !matches!(before, Progress::Answered(_)) && peer < super::peers_of(&self.segment) {
            let word = Word::new(number, incarnation, ASKED, epoch as u32);
            self.request(peer).store(word.0, Ordering::Release);
            super::stored();
        }
        before
    }

    /// The server's: takes a request of a process on another host back. False when it has begun or was answered.
    pub fn withdraw_of(&self, peer: u32, incarnation: u32, number: u32) -> bool {
        self.move_on((peer, incarnation, number), &[ASKED, TAKEN], None, (WITHDRAWN, 0))
    }

    /// The number of the last request of a peer.
    pub fn last_request(&self, peer: u32) -> u32 {
        match peer < super::peers_of(&self.segment) {
            true => (self.request(peer).load(Ordering::Acquire) >> NUMBER_SHIFT) as u32,
            false => 0,
        }
    }

    /// Has this process's requests go on from a number.
    pub fn count_requests_from(&self, number: u32) {
        let word = Word::new(number, self.incarnation, WITHDRAWN, 0);
        self.request(self.slot).store(word.0, Ordering::Release);
    }

    /// How far this process's request with a number is.
    pub fn progress(&self, number: u32) -> Progress {
        self.progress_of(self.slot, self.incarnation, number)
    }

    /// How far the request of a peer with a number is.
    pub fn progress_of(&self, peer: u32, incarnation: u32, number: u32) -> Progress {
        if peer >= super::peers_of(&self.segment) {
            return Progress::None;
        }
        let word = Word(self.request(peer).load(Ordering::Acquire));
        match word.stage() {
            _ if !word.is_of(number, incarnation) => Progress::None,
            ASKED => Progress::Asked,
            TAKEN | BEGUN => Progress::Taken,
            ANSWERED => Progress::Answered((word.0 & ANSWER_MASK) as u32),
            _ => Progress::None,
        }
    }

    /// Makes a request to the server of another epoch, since the first server has lost its seat, and the request was
    /// not accepted.
    pub fn ask_again(&self, number: u32, epoch: u64) {
        let from = &[ASKED, TAKEN, BEGUN];
        self.move_on((self.slot, self.incarnation, number), from, None, (ASKED, epoch as u32));
    }

    /// Takes a request back; false when the server has begun. One that is `forlorn` was begun by a
    /// server that has the seat no more, and not accepted.
    pub fn withdraw(&self, number: u32, is_forlorn: bool) -> bool {
        let from: &[u64] = if is_forlorn { &[ASKED, TAKEN, BEGUN] } else { &[ASKED, TAKEN] };
        self.move_on((self.slot, self.incarnation, number), from, None, (WITHDRAWN, 0))
    }

    /// The server's: takes a request of its epoch. False when it was taken back, done before, asked of
    /// another server, or is of a process that is no more.
    pub fn take_request(&self, slot: u32, incarnation: u32, number: u32, epoch: u64) -> bool {
        let to = (TAKEN, epoch as u32);
        self.move_on((slot, incarnation, number), &[ASKED], Some(epoch), to)
    }

    /// The server's: is about to have a request accepted. False as with [`GroupLog::take_request`].
    pub fn begin_request(&self, slot: u32, incarnation: u32, number: u32, epoch: u64) -> bool {
        let to = (BEGUN, epoch as u32);
        self.move_on((slot, incarnation, number), &[ASKED, TAKEN], Some(epoch), to)
    }

    /// The server's: says why it does not do what it has taken.
    pub fn refuse(&self, slot: u32, incarnation: u32, number: u32, epoch: u64, answer: u32) {
        let to = (ANSWERED, answer);
        self.move_on((slot, incarnation, number), &[TAKEN, BEGUN], Some(epoch), to);
    }

    /// Records the result of an accepted request, unless another process did.
    pub fn answer(&self, slot: u32, incarnation: u32, number: u32, answer: u32) {
        let to = (ANSWERED, answer);
        self.move_on((slot, incarnation, number), &[ASKED, TAKEN, BEGUN], None, to);
    }

    /// Moves a request (slot, incarnation, number) on from one of some stages, in one epoch if that
    /// matters.
    fn move_on(
        &self,
        (slot, incarnation, number): (u32, u32, u32),
        from: &[u64],
        epoch: Option<u64>,
        (to, value): (u64, u32),
    ) -> bool {
        if slot >= super::peers_of(&self.segment) {
            return false;
        }
        let word = self.request(slot);
        let new = Word::new(number, incarnation, to, value).0;
        for _ in 0..ATTEMPTS {
            let seen = Word(word.load(Ordering::Acquire));
            if !(seen.is_of(number, incarnation) && seen.is_at(from, epoch)) {
                return false;
            }
            if word.compare_exchange(seen.0, new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                super::stored();
                return true;
            }
        }
        false
    }

    fn request(&self, peer: u32) -> &AtomicU64 {
        let place = self.places.requests + u64::from(peer) * 8;
        &self.area.words()[(place / 8) as usize]
    }
}
