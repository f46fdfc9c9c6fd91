//! The mailbox queue of a process: any process posts, its owner retrieves.
//!
//! It carries first contact, messages between peers without a ring, and messages between kernels.
//! It is a ring of slots of two lines each:
//!
//! ```text
//! state (8)   lap (32 high bits) | claimant + 1 (30) | phase (2)
//! head (8) | label (8) | source (4) | 48 bytes of data
//! ```
//!
//! | phase | meaning | changed by |
//! |---|---|---|
//! | 0 free | any poster may claim it for this lap | a poster: to claimed, by compare-and-swap |
//! | 1 claimed | the claimant writes | the claimant: to full. The owner: to taken, if the claimant died |
//! | 2 full | a message | the owner: to taken |
//! | 3 taken | consumed, but one in front of it is not | the owner: to free of the next lap |
//!
//! The tail is a hint where to claim; a poster that finds it behind moves it on. A slot names its
//! claimant, so a poster that dies between claim and message is skipped as soon as its death is
//! known. A poster that is merely stopped there holds up no other: the owner looks past it. Messages
//! of one poster stay in order; those of different posters need not.
//!
//! After D. Vyukov's bounded queue (a turn per slot), with the claim in the slot, not in the tail.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::private::bytes::{Bytes, copy};
use crate::sync::{AtomicU32, AtomicU64, Data, Ordering};

/// Bytes of data that fit in a slot.
pub const POST_BYTES: usize = 48;

const PHASE_BITS: u32 = 2;
const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const FULL: u64 = 2;
const TAKEN: u64 = 3;

/// One slot in so many is kept free for urgent messages.
const RESERVED_PART: u32 = 8;

/// One slot, all of it shared.
#[repr(C, align(128))]
struct QueueSlot {
    state: AtomicU64,
    head: AtomicU64,
    label: AtomicU64,
    source: AtomicU32,
    data: Data<[u8; POST_BYTES]>,
}

/// The memory of a mailbox queue and whatever keeps it mapped. The size is a power of two.
pub struct MailboxMemory {
    slots: NonNull<QueueSlot>,
    slot_count: u32,
    tail: NonNull<AtomicU32>,
    _keep: Arc<dyn Send + Sync>,
}

// SAFETY: slots are touched through atomics, and their data only by the claimant before and by
// the owner after the state that the other published; `_keep` keeps the memory mapped.
unsafe impl Send for MailboxMemory {}

/// The end that posts; each poster has its own.
pub struct MailboxSender {
    memory: MailboxMemory,
    source: u32,
}

/// The end that retrieves; one per mailbox.
pub struct MailboxReceiver {
    memory: MailboxMemory,
    /// First slot that is not known to be consumed.
    position: u32,
    /// The value of `position` when the queue was last seen empty.
    empty_at: u32,
}

/// A message in the queue.
pub struct Post<'a> {
    /// The slot of its poster.
    pub source: u32,
    /// First word of its header.
    pub head: u64,
    /// Second word of its header.
    pub label: u64,
    /// The whole data area; the header says how many of its bytes are valid.
    pub data: Bytes<'a>,
    position: u32,
}

/// The queue has no room for the message now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the mailbox is full: its process has not retrieved what was posted before")]
pub struct MailboxFull;

#[cfg(not(loom))]
impl MailboxMemory {
    /// The mailbox queue of `slot`. None when there is no such slot.
    pub fn of(segment: &crate::Segment, slot: u32) -> Option<Self> {
        use crate::plan::{MAILBOX_SLOT_BYTES, MAILBOX_SLOTS};
        let plan = segment.plan();
        (slot < plan.slots()).then(|| Self {
            slots: segment.place(plan.mailbox(slot), MAILBOX_SLOTS * MAILBOX_SLOT_BYTES).cast(),
            slot_count: MAILBOX_SLOTS as u32,
            tail: segment.place(plan.shared_page(slot), 4).cast(),
            _keep: Arc::new(segment.clone()),
        })
    }
}

impl MailboxMemory {
    /// `views` views of one queue in this process's own memory: for tests and model checking.
    pub fn local(slot_count: u32, views: usize) -> Vec<Self> {
        struct Owned {
            slots: Box<[QueueSlot]>,
            tail: Box<AtomicU32>,
        }
        // SAFETY: as `MailboxMemory`.
        unsafe impl Send for Owned {}
        // SAFETY: as above.
        unsafe impl Sync for Owned {}
        let owned = Arc::new(Owned {
            slots: (0..slot_count)
                .map(|_| QueueSlot {
                    state: AtomicU64::new(0),
                    head: AtomicU64::new(0),
                    label: AtomicU64::new(0),
                    source: AtomicU32::new(0),
                    data: Data::new([0; POST_BYTES]),
                })
                .collect(),
            tail: Box::new(AtomicU32::new(0)),
        });
        let view = |_| Self {
            slots: NonNull::from(&*owned.slots).cast(),
            slot_count,
            tail: NonNull::from(&*owned.tail),
            _keep: owned.clone(),
        };
        (0..views).map(view).collect()
    }

    fn slot(&self, position: u32) -> &QueueSlot {
        let index = (position & (self.slot_count - 1)) as usize;
        // SAFETY: the index is below the number of slots, which stay mapped while `_keep` lives.
        unsafe { self.slots.add(index).as_ref() }
    }

    fn tail(&self) -> &AtomicU32 {
        // SAFETY: one aligned word that stays mapped while `_keep` lives and is only used atomically.
        unsafe { self.tail.as_ref() }
    }

    fn lap(&self, position: u32) -> u64 {
        u64::from(position / self.slot_count)
    }
}

/// The posters whose unfinished slots a look has passed: a later post of theirs must wait, for
/// they may have finished both meanwhile, and their order counts.
#[derive(Default)]
struct Passed {
    posters: [u32; 4],
    count: usize,
}

impl Passed {
    /// None when there are too many to remember: then the look ends here.
    fn remember(&mut self, poster: u32) -> Option<()> {
        *self.posters.get_mut(self.count)? = poster;
        self.count += 1;
        Some(())
    }

    fn contains(&self, poster: u32) -> bool {
        self.posters[..self.count].contains(&poster)
    }
}

fn state(lap: u64, claimant: u64, phase: u64) -> u64 {
    (lap & u64::from(u32::MAX)) << 32 | claimant << PHASE_BITS | phase
}

fn phase(state: u64) -> u64 {
    state & ((1 << PHASE_BITS) - 1)
}

fn claimant(state: u64) -> u32 {
    ((state as u32) >> PHASE_BITS).wrapping_sub(1)
}

impl MailboxSender {
    /// An end that posts in the name of slot `source`.
    pub fn new(memory: MailboxMemory, source: u32) -> Self {
        Self { memory, source }
    }

    /// Posts a message with at most [`POST_BYTES`] bytes of data (more are cut).
    ///
    /// The last slots of a large queue are left to [`MailboxSender::post_reserved`].
    ///
    /// # Errors
    /// [`MailboxFull`].
    pub fn post(&mut self, head: u64, label: u64, data: Bytes<'_>) -> Result<(), MailboxFull> {
        self.post_leaving(self.memory.slot_count / RESERVED_PART, head, label, data)
    }

    /// Posts a message that may use the slots that [`MailboxSender::post`] leaves free, so that ordinary posts
    /// cannot crowd it out.
    ///
    /// # Errors
    /// [`MailboxFull`].
    pub fn post_reserved(
        &mut self,
        head: u64,
        label: u64,
        data: Bytes<'_>,
    ) -> Result<(), MailboxFull> {
        self.post_leaving(0, head, label, data)
    }

    fn post_leaving(
        &mut self,
        reserve: u32,
        head: u64,
        label: u64,
        data: Bytes<'_>,
    ) -> Result<(), MailboxFull> {
        let position = self.claim(reserve)?;
        let slot = self.memory.slot(position);
        slot.head.store(head, Ordering::Relaxed);
        slot.label.store(label, Ordering::Relaxed);
        slot.source.store(self.source, Ordering::Relaxed);
        // SAFETY: the claim makes the data ours until the state says full.
        slot.data.with_mut(|room| unsafe {
            copy(data.start().as_ptr(), room.cast(), data.len().min(POST_BYTES));
        });
        slot.state.store(state(self.memory.lap(position), 0, FULL), Ordering::Release);
        Ok(())
    }

    /// Finds a free slot at the tail, with so many behind it, and claims it. Bounded, whatever the
    /// words say.
    fn claim(&self, reserve: u32) -> Result<u32, MailboxFull> {
        let tail = self.memory.tail();
        for _ in 0..2 * self.memory.slot_count {
            let position = tail.load(Ordering::Acquire);
            let slot = self.memory.slot(position);
            let lap = self.memory.lap(position);
            let free = state(lap, 0, FREE);
            let seen = slot.state.load(Ordering::Acquire);
            if reserve != 0 && self.is_used_up(position.wrapping_add(reserve)) {
                return Err(MailboxFull);
            }
            if seen == free {
                let claimed = state(lap, u64::from(self.source) + 1, CLAIMED);
                let won = slot
                    .state
                    .compare_exchange(free, claimed, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok();
                self.advance(position);
                if won {
                    return Ok(position);
                }
            } else if self.is_older(seen, position) {
                return Err(MailboxFull);
            } else {
                self.advance(position); // somebody has or had it: the tail is behind
            }
        }
        Err(MailboxFull)
    }

    /// Whether the slot of a later position is not free again yet.
    fn is_used_up(&self, position: u32) -> bool {
        self.is_older(self.memory.slot(position).state.load(Ordering::Relaxed), position)
    }

    /// Whether a slot is still in a lap before that of `position`.
    fn is_older(&self, state: u64, position: u32) -> bool {
        let first = ((state >> 32) as u32).wrapping_mul(self.memory.slot_count);
        let wanted = position & !(self.memory.slot_count - 1);
        (first.wrapping_sub(wanted) as i32) < 0
    }

    fn advance(&self, position: u32) {
        let next = position.wrapping_add(1);
        let _ = self.memory.tail().compare_exchange(
            position,
            next,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }
}

impl MailboxReceiver {
    /// The end that retrieves, of a queue that has never been used.
    pub fn new(memory: MailboxMemory) -> Self {
        Self { memory, position: 0, empty_at: 0 }
    }

    /// Whether the next slot holds something. One load; misses what lies behind a stopped poster.
    #[inline]
    pub fn has_next(&self) -> bool {
        phase(self.memory.slot(self.position).state.load(Ordering::Relaxed)) != FREE
    }

    /// Repairs an overwritten tail, with which posters would claim slots that are never read, or find the queue full
    /// for ever. The queue must be empty.
    pub fn repair_tail(&mut self) {
        let tail = self.memory.tail().load(Ordering::Acquire);
        if tail.wrapping_sub(self.position) > self.memory.slot_count {
            let repaired = self.position;
            let _ = self.memory.tail().compare_exchange(
                tail,
                repaired,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }

    /// Whether the queue is empty and posters may be waiting that have found it full: to be asked after
    /// each post that was consumed, and true once. A poster that found it full had as many posts in front of
    /// it as [`MailboxSender::post`] lets in, and all of them were consumed since.
    #[inline]
    pub fn is_empty_again(&mut self) -> bool {
        if self.has_next() {
            return false;
        }
        let consumed =
            self.position.wrapping_sub(std::mem::replace(&mut self.empty_at, self.position));
        consumed >= self.memory.slot_count - self.memory.slot_count / RESERVED_PART
    }

    /// Looks for the first message that is not `held`, by its poster and head. `is_dead` tells which posters are
    /// known to be gone. Stops at the first free slot; `everywhere` looks behind it too, which
    /// only a scribbled tail makes necessary.
    pub fn peek(
        &mut self,
        everywhere: bool,
        is_dead: impl Fn(u32) -> bool,
        is_held: impl Fn(u32, u64) -> bool,
    ) -> Option<Post<'_>> {
        let mut passed = Passed::default();
        let mut first_free = None;
        for ahead in 0..self.memory.slot_count {
            let position = self.position.wrapping_add(ahead);
            let slot = self.memory.slot(position);
            let seen = slot.state.load(Ordering::Acquire);
            match phase(seen) {
                FREE if !everywhere => return None,
                FREE => first_free = first_free.or(Some(position)),
                CLAIMED if is_dead(claimant(seen)) => self.take(position),
                CLAIMED => passed.remember(claimant(seen))?,
                FULL => {
                    let source = slot.source.load(Ordering::Relaxed);
                    let head = slot.head.load(Ordering::Relaxed);
                    if !passed.contains(source) && !is_held(source, head) {
                        let from = first_free.unwrap_or(position);
                        let held = |head| is_held(source, head);
                        return Some(self.post(self.earliest(source, from..position, held)));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Where the earliest post of a poster is, of which there is one at the end of these positions.
    /// Some of them were free when they were looked at. Meanwhile the poster may have posted there,
    /// before it did at the end, so what it posted is looked for once more.
    fn earliest(&self, source: u32, positions: Range<u32>, is_held: impl Fn(u64) -> bool) -> u32 {
        let end = positions.end;
        let mut position = positions.start;
        while position != end {
            let slot = self.memory.slot(position);
            let is_it = phase(slot.state.load(Ordering::Acquire)) == FULL
                && slot.source.load(Ordering::Relaxed) == source
                && !is_held(slot.head.load(Ordering::Relaxed));
            if is_it {
                return position;
            }
            position = position.wrapping_add(1);
        }
        end
    }

    fn post(&self, position: u32) -> Post<'_> {
        let slot = self.memory.slot(position);
        // SAFETY: a slot's data field is never at address zero.
        let start =
            slot.data.with(|data| unsafe { NonNull::new_unchecked(data.cast_mut().cast()) });
        Post {
            source: slot.source.load(Ordering::Relaxed),
            head: slot.head.load(Ordering::Relaxed),
            label: slot.label.load(Ordering::Relaxed),
            // SAFETY: the data field is mapped while `self` is borrowed.
            data: unsafe { Bytes::from_raw(start, POST_BYTES) },
            position,
        }
    }

    /// Consumes the post that was peeked at this position and frees what can be freed.
    pub fn consume(&mut self, position: u32) {
        self.take(position);
        for _ in 0..self.memory.slot_count {
            let slot = self.memory.slot(self.position);
            if phase(slot.state.load(Ordering::Relaxed)) != TAKEN {
                return;
            }
            let next_lap = self.memory.lap(self.position.wrapping_add(self.memory.slot_count));
            slot.state.store(state(next_lap, 0, FREE), Ordering::Release);
            self.position = self.position.wrapping_add(1);
        }
    }

    fn take(&self, position: u32) {
        let taken = state(self.memory.lap(position), 0, TAKEN);
        self.memory.slot(position).state.store(taken, Ordering::Relaxed);
    }
}

impl Post<'_> {
    /// The queue position of this message, for [`MailboxReceiver::consume`].
    pub fn position(&self) -> u32 {
        self.position
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn queue(slots: u32, posters: usize) -> (MailboxReceiver, Vec<MailboxSender>) {
        let mut views = MailboxMemory::local(slots, posters + 1).into_iter();
        let receiver = MailboxReceiver::new(views.next().expect("one view more than posters"));
        let senders = views.zip(0..).map(|(view, source)| MailboxSender::new(view, source));
        (receiver, senders.collect())
    }

    fn retrieve(receiver: &mut MailboxReceiver, dead: &[u32]) -> Option<(u32, u64, u32)> {
        retrieve_from(receiver, false, dead)
    }

    fn retrieve_from(
        receiver: &mut MailboxReceiver,
        everywhere: bool,
        dead: &[u32],
    ) -> Option<(u32, u64, u32)> {
        let post = receiver.peek(everywhere, |source| dead.contains(&source), |_, _| false)?;
        let found = (post.source, post.head, post.position());
        receiver.consume(found.2);
        Some(found)
    }

    #[test]
    fn a_sender_that_finds_no_slot_but_reserved_ones_is_told_of_an_empty_queue() {
        let (mut receiver, mut senders) = queue(16, 1);
        let retrieve_all = |receiver: &mut MailboxReceiver| {
            let mut told = Vec::new();
            while retrieve(receiver, &[]).is_some() {
                told.push(receiver.is_empty_again());
            }
            (told.len(), told.iter().filter(|&&is_told| is_told).count(), told.last().copied())
        };
        for _ in 0..3 {
            (0..14).for_each(|number| senders[0].post(number, 0, Bytes::EMPTY).unwrap());
            assert_eq!(senders[0].post(14, 0, Bytes::EMPTY), Err(MailboxFull));
            assert_eq!(retrieve_all(&mut receiver), (14, 1, Some(true)));
            (0..13).for_each(|number| senders[0].post(number, 0, Bytes::EMPTY).unwrap());
            assert_eq!(retrieve_all(&mut receiver), (13, 0, Some(false)), "nobody was refused");
        }
    }

    #[test]
    fn posts_arrive_once_and_in_order_over_many_laps() {
        let (mut receiver, mut senders) = queue(4, 2);
        for round in 0..100u64 {
            senders[0].post(round, 1, Bytes::from(&[5u8; 48][..])).unwrap();
            senders[1].post(round, 2, Bytes::EMPTY).unwrap();
            assert_eq!(
                retrieve(&mut receiver, &[]).map(|found| (found.0, found.1)),
                Some((0, round))
            );
            assert_eq!(
                retrieve(&mut receiver, &[]).map(|found| (found.0, found.1)),
                Some((1, round))
            );
            assert!(retrieve(&mut receiver, &[]).is_none());
        }
    }

    #[test]
    fn a_full_queue_refuses_until_something_is_retrieved() {
        let (mut receiver, mut senders) = queue(4, 1);
        for head in 0..4 {
            senders[0].post(head, 0, Bytes::EMPTY).unwrap();
        }
        assert_eq!(senders[0].post(4, 0, Bytes::EMPTY), Err(MailboxFull));
        assert_eq!(retrieve(&mut receiver, &[]).map(|found| found.1), Some(0));
        senders[0].post(4, 0, Bytes::EMPTY).unwrap();
    }

    #[test]
    fn the_last_slots_are_for_what_is_urgent() {
        let (mut receiver, mut senders) = queue(16, 2);
        for lap in 0..3 {
            for _ in 0..14 {
                senders[0].post(lap, 0, Bytes::EMPTY).unwrap();
            }
            assert_eq!(senders[0].post(lap, 0, Bytes::EMPTY), Err(MailboxFull));
            for _ in 0..2 {
                senders[1].post_reserved(lap, 0, Bytes::EMPTY).unwrap();
            }
            assert_eq!(senders[1].post_reserved(lap, 0, Bytes::EMPTY), Err(MailboxFull));
            while retrieve(&mut receiver, &[]).is_some() {}
        }
    }

    #[test]
    fn a_poster_that_stopped_in_the_middle_holds_up_nobody() {
        let (mut receiver, mut senders) = queue(4, 2);
        senders[0].claim(0).unwrap();
        senders[1].post(7, 0, Bytes::EMPTY).unwrap();
        assert_eq!(retrieve(&mut receiver, &[]).map(|found| found.1), Some(7));
        assert!(retrieve(&mut receiver, &[]).is_none());
    }

    #[test]
    fn a_sender_that_may_have_finished_an_earlier_post_is_waited_for() {
        let (mut receiver, senders) = queue(8, 2);
        let [mut first, mut other] = <[_; 2]>::try_from(senders).ok().unwrap();
        let claimed = first.claim(0).unwrap();
        // As if it had finished the first post behind the look, and another one before it.
        first.post(11, 0, Bytes::EMPTY).unwrap();
        assert!(retrieve(&mut receiver, &[]).is_none());
        other.post(20, 0, Bytes::EMPTY).unwrap();
        assert_eq!(retrieve(&mut receiver, &[]).map(|found| found.1), Some(20), "of somebody else");
        let full = state(first.memory.lap(claimed), 0, FULL);
        first.memory.slot(claimed).head.store(10, Ordering::Relaxed);
        first.memory.slot(claimed).state.store(full, Ordering::Release);
        let heads: Vec<u64> =
            std::iter::from_fn(|| retrieve(&mut receiver, &[])).map(|found| found.1).collect();
        assert_eq!(heads, [10, 11]);
    }

    #[test]
    fn a_post_that_comes_behind_a_look_is_found_in_its_order() {
        for late in 0..3 {
            let (mut receiver, mut senders) = queue(8, 1);
            let mut sender = senders.remove(0);
            let mut post_at = |position: u32, head| {
                sender.memory.tail().store(position, Ordering::Relaxed);
                sender.post(head, 0, Bytes::EMPTY).unwrap();
            };
            post_at(3, 11);
            let once = std::cell::RefCell::new(Some(|| post_at(late, 10)));
            // The slots in front of it have been looked at when this one is asked about.
            let meanwhile = |_, _| {
                if let Some(mut post) = once.take() {
                    post();
                }
                false
            };
            let post = receiver.peek(true, |_| false, meanwhile).unwrap();
            assert_eq!((post.head, post.position()), (10, late));
        }
    }

    #[test]
    fn a_post_that_is_held_is_left_there_and_looked_past() {
        let (mut receiver, mut senders) = queue(8, 2);
        for (which, head) in [(0, 10), (0, 11), (1, 20)] {
            senders[which].post(head, 0, Bytes::EMPTY).unwrap();
        }
        for (held, found) in [(vec![0], Some(20)), (vec![0, 1], None), (vec![], Some(10))] {
            let is_held = |source, _| held.contains(&source);
            assert_eq!(receiver.peek(false, |_| false, is_held).map(|post| post.head), found);
        }
        let held = receiver.peek(false, |_| false, |_, head| head == 10).map(|post| post.head);
        assert_eq!(held, Some(11), "it is this message that is held, not its poster");
    }

    #[test]
    fn a_poster_that_died_in_the_middle_is_skipped() {
        let (mut receiver, mut senders) = queue(4, 2);
        for _ in 0..10 {
            senders[0].claim(0).unwrap();
            senders[1].post(7, 0, Bytes::EMPTY).unwrap();
            assert_eq!(retrieve(&mut receiver, &[0]).map(|found| found.1), Some(7));
        }
    }

    #[test]
    fn scribbled_words_end_in_refusal_not_in_a_loop() {
        let (mut receiver, mut senders) = queue(4, 1);
        for garbage in [u64::MAX, 1, 2, 3, 1 << 32 | 2, 0xdead_beef_dead_beef] {
            for position in 0..4 {
                senders[0].memory.slot(position).state.store(garbage, Ordering::Relaxed);
            }
            senders[0].memory.tail().store(garbage as u32, Ordering::Relaxed);
            let _ = senders[0].post(1, 1, Bytes::EMPTY);
            for _ in 0..8 {
                let _ = retrieve(&mut receiver, &[0]);
            }
        }
    }

    #[test]
    fn an_overwritten_tail_is_put_right() {
        let (mut receiver, mut senders) = queue(4, 1);
        for garbage in [u32::MAX, 77, 1 << 31] {
            senders[0].memory.tail().store(garbage, Ordering::Relaxed);
            receiver.repair_tail();
            senders[0].post(5, 0, Bytes::EMPTY).unwrap();
            assert_eq!(retrieve(&mut receiver, &[]).map(|found| found.1), Some(5), "{garbage}");
            receiver.repair_tail();
        }
    }

    #[test]
    fn posts_of_one_poster_stay_in_order_under_contention() {
        const EACH: u64 = 20_000;
        let (mut receiver, senders) = queue(8, 3);
        let threads: Vec<_> = senders
            .into_iter()
            .map(|mut sender| {
                std::thread::spawn(move || {
                    for head in 0..EACH {
                        while sender.post(head, 0, Bytes::EMPTY).is_err() {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let (mut next, mut everywhere) = ([0; 3], false);
        while next != [EACH; 3] {
            // Every other look goes behind free slots too.
            everywhere = !everywhere;
            match retrieve_from(&mut receiver, everywhere, &[]) {
                Some((source, head, _)) => {
                    assert_eq!(head, next[source as usize]);
                    next[source as usize] += 1;
                }
                None => std::thread::yield_now(),
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;

    /// The messages that the owner has retrieved from each poster.
    type Retrieved = [Vec<u64>; 2];

    fn retrieve(receiver: &mut MailboxReceiver, everywhere: bool, retrieved: &mut Retrieved) {
        let Some(post) = receiver.peek(everywhere, |_| false, |_, _| false) else {
            return crate::sync::pause();
        };
        let (source, position) = (post.source as usize, post.position());
        assert_eq!(post.data.part(0, 4).to_vec(), [post.head as u8; 4]);
        retrieved[source].push(post.head);
        receiver.consume(position);
    }

    /// More posts than slots: in some schedules a slot is used twice, in others a post is refused.
    #[test]
    fn two_posters_and_an_owner_agree_in_every_schedule() {
        const POSTS: [&[u64]; 2] = [&[10, 11], &[20]];
        crate::sync::model(|| {
            let mut views = MailboxMemory::local(2, 3).into_iter();
            let mut receiver =
                MailboxReceiver::new(views.next().expect("one view more than posters"));
            let posters: Vec<_> = views
                .zip(0u32..)
                .map(|(view, source)| {
                    let mut sender = MailboxSender::new(view, source);
                    loom::thread::spawn(move || {
                        let data = |head: u64| [head as u8; 4];
                        let posts = POSTS[source as usize].iter();
                        posts
                            .take_while(|&&head| {
                                sender.post(head, 0, Bytes::from(&data(head)[..])).is_ok()
                            })
                            .count()
                    })
                })
                .collect();
            let mut retrieved = Retrieved::default();
            (0..2).for_each(|_| retrieve(&mut receiver, false, &mut retrieved));
            let posted: Vec<_> = posters.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(
                posted[0] >= 1,
                "its first post was refused, though there was always room for it"
            );
            (0..2).for_each(|_| retrieve(&mut receiver, false, &mut retrieved));
            for ((retrieved, posts), count) in retrieved.iter().zip(POSTS).zip(posted) {
                assert_eq!(retrieved, &posts[..count], "each post once, and in order");
            }
        });
    }

    /// A look behind free slots meets posts that come while it goes on.
    #[test]
    fn posts_stay_in_order_for_a_look_behind_free_slots_in_every_schedule() {
        crate::sync::model(|| {
            let mut views = MailboxMemory::local(2, 2).into_iter();
            let view = views.next().expect("one for the owner");
            let mut receiver = MailboxReceiver::new(view);
            let mut sender = MailboxSender::new(views.next().expect("one for the poster"), 0);
            let poster = loom::thread::spawn(move || {
                for head in [10u64, 11] {
                    let data = [head as u8; 4];
                    sender.post(head, 0, Bytes::from(&data[..])).unwrap();
                }
            });
            let mut retrieved = Retrieved::default();
            (0..2).for_each(|_| retrieve(&mut receiver, true, &mut retrieved));
            poster.join().unwrap();
            (0..2).for_each(|_| retrieve(&mut receiver, true, &mut retrieved));
            assert_eq!(retrieved[0], [10, 11], "each post once, and in order");
        });
    }
}
