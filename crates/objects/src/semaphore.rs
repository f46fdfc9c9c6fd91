//! A semaphore in shared memory that knows the holders of its units, so that units of dead processes can be told
//! from units that will come back.
//!
//! ```text
//! word 0    state:    units there, beyond those it began with, modulo 2^16 (16 bits)
//!                     | last operation (2) | whose (14) | number of operations (32)
//! word 8    how many wait, as a hint
//! word 16 + 2 * slot  units held (16 bits) | incarnation (16) | number of the operation that said so (32)
//!           + 1       threads of the slot's process that wait
//! ```
//!
//! An operation is one exchange of the state, which names the kind of operation and its process. The units held are
//! written afterwards, by the next process that looks if the first one has died. No process changes the state
//! before that is written. So an operation has happened with all its effects or not at all, wherever its process
//! died.

use std::sync::atomic::{AtomicU64, Ordering};

use landeck_memory::segment::Segment;
use landeck_memory::shared_area::SharedArea;

/// Most units of a semaphore.
pub const UNITS_MAX: u32 = (1 << 16) - 1;

const STATE: usize = 0;
const WAITING: usize = 8;
const HOLDINGS: usize = 16;
/// Exchanges that others may win before an operation is given up: more are no accident.
const ATTEMPTS: u32 = 1 << 16;

/// A semaphore as one process sees it.
pub struct SemaphoreWords {
    area: SharedArea,
    segment: Segment,
    slot: u32,
    incarnation: u16,
    /// Units that it began with.
    units: u16,
}

/// The kind of the last operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// Units were added that no process held.
    Given = 0,
    /// A unit was taken.
    Taken = 1,
    /// A unit came back from its holder.
    Returned = 2,
    /// A unit was consumed permanently.
    Spent = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    units: u16,
    done: Done,
    slot: u32,
    number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holding {
    units: u16,
    incarnation: u16,
    number: u32,
}

/// The result of an attempt to take a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// It was taken.
    Taken,
    /// No unit is available.
    Empty,
    /// A dead process of this slot holds units.
    OwnerDied {
        /// The slot.
        slot: u32,
    },
}

impl State {
    fn from_word(word: u64) -> Self {
        let done = match word >> 16 & 3 {
            0 => Done::Given,
            1 => Done::Taken,
            2 => Done::Returned,
            _ => Done::Spent,
        };
        let slot = (word >> 18 & 0x3fff) as u32;
        Self { units: word as u16, done, slot, number: (word >> 32) as u32 }
    }

    fn to_word(self) -> u64 {
        u64::from(self.units)
            | (self.done as u64) << 16
            | u64::from(self.slot & 0x3fff) << 18
            | u64::from(self.number) << 32
    }
}

impl Holding {
    fn from_word(word: u64) -> Self {
        Self { units: word as u16, incarnation: (word >> 16) as u16, number: (word >> 32) as u32 }
    }

    fn to_word(self) -> u64 {
        u64::from(self.units) | u64::from(self.incarnation) << 16 | u64::from(self.number) << 32
    }
}

impl SemaphoreWords {
    /// Bytes of memory that a semaphore of this segment's processes needs; zero to begin with.
    pub fn bytes(segment: &Segment) -> u64 {
        (HOLDINGS as u64 + 2 * u64::from(segment.plan().slots())) * 8
    }

    /// The semaphore in this memory, which began with so many units, for the process of `slot`.
    /// None when the memory is too short or the units are too many.
    pub fn open(area: SharedArea, segment: &Segment, slot: u32, units: u64) -> Option<Self> {
        let is_long_enough = area.len() as u64 >= Self::bytes(segment);
        let units = u16::try_from(units).ok()?;
        let is_known = slot < segment.plan().slots();
        (is_long_enough && is_known).then(|| {
            let incarnation = segment.slot_record(slot).incarnation as u16;
            Self { area, segment: segment.clone(), slot, incarnation, units }
        })
    }

    /// Units that are there now.
    pub fn units(&self) -> u32 {
        self.units_in(&State::from_word(self.state().load(Ordering::Acquire)))
    }

    /// Takes a unit if one is there.
    pub fn try_take(&self) -> Take {
        for _ in 0..ATTEMPTS {
            let seen = self.settled();
            if self.units_in(&seen) == 0 {
                return Take::Empty;
            }
            let own = Holding::from_word(self.holding(self.slot).load(Ordering::Acquire));
            if own.incarnation != self.incarnation && !self.move_in(own) {
                return Take::OwnerDied { slot: self.slot };
            }
            let taken = State { units: seen.units.wrapping_sub(1), done: Done::Taken, ..seen };
            if self.exchange(seen, taken, self.slot) {
                return Take::Taken;
            }
        }
        Take::Empty
    }

    /// Brings a unit back that this process holds, or says that it does not come back; false when
    /// it holds none.
    pub fn release(&self, comes_back: bool) -> bool {
        let own = Holding::from_word(self.holding(self.slot).load(Ordering::Acquire));
        // Units of a dead process that had this slot before are for `recover`.
        let was_held =
            own.incarnation == self.incarnation && self.release_of(self.slot, comes_back);
        if was_held && comes_back {
            self.wake_waiters();
        }
        was_held
    }

    /// Adds units that no process held; false if they would be too many.
    pub fn give(&self, units: u32) -> bool {
        for _ in 0..ATTEMPTS {
            let seen = self.settled();
            let after = u64::from(self.units_in(&seen)) + u64::from(units);
            if after > u64::from(UNITS_MAX) {
                return false;
            }
            let given = seen.units.wrapping_add(units as u16);
            if self.exchange(seen, State { units: given, done: Done::Given, ..seen }, 0) {
                self.wake_waiters();
                return true;
            }
        }
        false
    }

    /// A process that is no more and holds units.
    pub fn dead_holder(&self) -> Option<u32> {
        self.settled();
        (0..self.segment.plan().slots()).find(|&slot| self.dead_units(slot) != 0)
    }

    /// Has the units of the dead come back; how many these are.
    pub fn recover(&self) -> u32 {
        let mut recovered = 0;
        for slot in 0..self.segment.plan().slots() {
            self.settled();
            for _ in 0..self.dead_units(slot) {
                if self.dead_units(slot) != 0 && self.release_of(slot, true) {
                    recovered += 1;
                }
            }
        }
        if recovered != 0 {
            self.wake_waiters();
        }
        recovered
    }

    /// Says that a thread of this process begins to wait, or ends it: then it is woken.
    pub fn waits(&self, begins: bool) {
        for word in [WAITING, HOLDINGS + 2 * self.slot as usize + 1] {
            let word = &self.area.words()[word];
            if begins {
                word.fetch_add(1, Ordering::SeqCst);
            } else {
                word.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Wakes all waiting threads, to look for themselves. A hint that a dead process left behind costs a look at the
    /// slots.
    fn wake_waiters(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.area.words()[WAITING].load(Ordering::Relaxed) == 0 {
            return;
        }
        for slot in 0..self.segment.plan().slots() {
            let waiting = &self.area.words()[HOLDINGS + 2 * slot as usize + 1];
            if waiting.load(Ordering::Relaxed) != 0 {
                self.segment.tell_news(slot);
            }
        }
    }

    /// Units that a process of this slot holds which is no more.
    fn dead_units(&self, slot: u32) -> u16 {
        let holding = Holding::from_word(self.holding(slot).load(Ordering::Acquire));
        let record = self.segment.slot_record(slot);
        let is_dead = record.state.is_gone() || record.incarnation as u16 != holding.incarnation;
        if is_dead { holding.units } else { 0 }
    }

    fn release_of(&self, slot: u32, comes_back: bool) -> bool {
        for _ in 0..ATTEMPTS {
            let seen = self.settled();
            if Holding::from_word(self.holding(slot).load(Ordering::Acquire)).units == 0 {
                return false;
            }
            let has_room = self.units_in(&seen) < UNITS_MAX;
            let after = if comes_back && has_room {
                State { units: seen.units.wrapping_add(1), done: Done::Returned, ..seen }
            } else {
                State { done: Done::Spent, ..seen }
            };
            if self.exchange(seen, after, slot) {
                return true;
            }
        }
        false
    }

    /// Makes the holding of the slot this process's own; not if its last process held something.
    fn move_in(&self, seen: Holding) -> bool {
        let own = Holding { incarnation: self.incarnation, ..seen };
        let (seen_word, own_word) = (seen.to_word(), own.to_word());
        let word = self.holding(self.slot);
        seen.units == 0
            && word
                .compare_exchange(seen_word, own_word, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    /// Does an operation of the process of `slot`, unless another process was faster.
    fn exchange(&self, seen: State, after: State, slot: u32) -> bool {
        let known = Holding::from_word(self.holding(slot).load(Ordering::Acquire)).number;
        let next = seen.number.wrapping_add(1);
        // The number tells whether the holding was written: it must differ from the last one's.
        let number = if next == known { next.wrapping_add(1) } else { next };
        let after = State { slot, number, ..after };
        let exchanged = self.state().compare_exchange(
            seen.to_word(),
            after.to_word(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if exchanged.is_ok() {
            self.settle(after);
        }
        exchanged.is_ok()
    }

    /// The state, when all that the last operation did is written.
    fn settled(&self) -> State {
        let state = State::from_word(self.state().load(Ordering::Acquire));
        self.settle(state);
        state
    }

    /// Writes the units held after the operation of this state, unless a process did.
    fn settle(&self, state: State) {
        if state.done == Done::Given || state.slot >= self.segment.plan().slots() {
            return;
        }
        let word = self.holding(state.slot);
        let seen = Holding::from_word(word.load(Ordering::Acquire));
        // While the state is the same, the holding is of before its operation, or of after.
        let is_current = self.state().load(Ordering::Acquire) == state.to_word();
        if seen.number == state.number || !is_current {
            return;
        }
        let units = match state.done {
            Done::Taken => seen.units.saturating_add(1),
            _ => seen.units.saturating_sub(1),
        };
        let after = Holding { units, number: state.number, ..seen };
        // A faster process has written the same.
        let _ = word.compare_exchange(
            seen.to_word(),
            after.to_word(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    fn units_in(&self, state: &State) -> u32 {
        u32::from(state.units.wrapping_add(self.units))
    }

    fn state(&self) -> &AtomicU64 {
        &self.area.words()[STATE]
    }

    fn holding(&self, slot: u32) -> &AtomicU64 {
        &self.area.words()[HOLDINGS + 2 * slot as usize]
    }
}

impl std::fmt::Debug for SemaphoreWords {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SemaphoreWords")
            .field("units", &self.units())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::membership::{SlotRecord, SlotState};
    use landeck_memory::plan::SegmentPlan;
    use landeck_memory::shared_area;

    const SLOTS: u32 = 4;

    fn segment() -> Segment {
        let plan =
            SegmentPlan { heap_bytes_per_process: 0, guests: 0, ..SegmentPlan::new(1, SLOTS) };
        let segment = Segment::local(&plan);
        for slot in 0..SLOTS {
            set(&segment, slot, SlotState::Alive, 1);
        }
        segment
    }

    fn set(segment: &Segment, slot: u32, state: SlotState, incarnation: u32) {
        segment.set_slot_record(slot, SlotRecord { state, incarnation, ..SlotRecord::default() });
    }

    fn views(segment: &Segment, units: u64) -> Vec<SemaphoreWords> {
        let bytes = SemaphoreWords::bytes(segment);
        let file = shared_area::file(bytes).unwrap();
        let area = SharedArea::map(&file, bytes).unwrap();
        (0..SLOTS)
            .map(|slot| SemaphoreWords::open(area.clone(), segment, slot, units).unwrap())
            .collect()
    }

    #[test]
    fn units_are_taken_until_there_are_none() {
        let segment = segment();
        let views = views(&segment, 2);
        assert_eq!(views[0].try_take(), Take::Taken);
        assert_eq!(views[1].try_take(), Take::Taken);
        assert_eq!(views[2].try_take(), Take::Empty);
        views[0].release(true);
        assert_eq!((views[2].units(), views[2].try_take()), (1, Take::Taken));
        views[2].release(false);
        assert_eq!(views[0].units(), 0);
        assert!(views[3].give(UNITS_MAX));
        assert!(!views[3].give(1), "too many");
        assert_eq!(views[0].units(), UNITS_MAX);
        views[0].release(true);
        assert_eq!(views[0].units(), UNITS_MAX, "it holds none");
        views[1].release(true);
        assert_eq!(views[0].units(), UNITS_MAX, "there is no room for its unit");
    }

    #[test]
    fn units_of_the_dead_are_known_and_come_back_once() {
        let segment = segment();
        let views = views(&segment, 3);
        assert_eq!([views[1].try_take(), views[1].try_take()], [Take::Taken; 2]);
        assert_eq!(views[2].try_take(), Take::Taken);
        assert_eq!(views[0].dead_holder(), None);
        set(&segment, 1, SlotState::Dead, 1);
        assert_eq!(views[0].dead_holder(), Some(1));
        assert_eq!((views[0].recover(), views[2].recover()), (2, 0));
        assert_eq!((views[0].dead_holder(), views[0].units()), (None, 2));
    }

    #[test]
    fn a_process_that_dies_between_two_steps_is_helped() {
        let segment = segment();
        let views = views(&segment, 1);
        let seen = views[1].settled();
        let own = Holding::from_word(views[1].holding(1).load(Ordering::Acquire));
        assert!(views[1].move_in(own));
        let taken =
            State { units: seen.units.wrapping_sub(1), done: Done::Taken, slot: 1, number: 1 };
        views[1].state().store(taken.to_word(), Ordering::Release);
        set(&segment, 1, SlotState::Dead, 1);
        assert_eq!((views[0].try_take(), views[0].dead_holder()), (Take::Empty, Some(1)));
        assert_eq!((views[0].recover(), views[0].try_take()), (1, Take::Taken));
    }

    #[test]
    fn the_next_process_of_a_slot_does_not_inherit() {
        let segment = segment();
        let old = views(&segment, 2);
        assert_eq!(old[1].try_take(), Take::Taken);
        set(&segment, 1, SlotState::Alive, 2);
        let next = SemaphoreWords::open(old[0].area.clone(), &segment, 1, 2).unwrap();
        assert!(!next.release(true), "what it does not hold cannot come back");
        assert_eq!(next.try_take(), Take::OwnerDied { slot: 1 });
        assert_eq!((next.dead_holder(), next.recover()), (Some(1), 1));
        assert_eq!((next.try_take(), next.dead_holder()), (Take::Taken, None));
    }

    #[test]
    fn whoever_brings_units_has_those_look_who_wait_and_nobody_else() {
        let segment = segment();
        let views = views(&segment, 2);
        let told = |brings: &dyn Fn()| {
            let before = [2, 3].map(|slot| segment.news(slot));
            brings();
            [0, 1].map(|at| segment.news(at as u32 + 2).wrapping_sub(before[at]))
        };
        assert_eq!([views[0].try_take(), views[1].try_take()], [Take::Taken; 2]);
        views[2].waits(true);
        assert_eq!(told(&|| assert!(views[0].release(true))), [1, 0], "3 does not wait");
        assert_eq!(told(&|| assert!(views[3].give(1))), [1, 0]);
        assert_eq!(views[0].try_take(), Take::Taken);
        assert_eq!(told(&|| assert!(views[0].release(false))), [0, 0], "there is nothing to take");
        set(&segment, 1, SlotState::Dead, 1);
        assert_eq!(told(&|| assert_eq!(views[0].recover(), 1)), [1, 0]);
        assert_eq!(told(&|| assert_eq!(views[0].recover(), 0)), [0, 0]);
        views[2].waits(false);
        assert_eq!(told(&|| assert!(views[3].give(1))), [0, 0], "nobody waits any more");
    }

    #[test]
    fn no_unit_is_lost_or_made_between_threads() {
        const ROUNDS: u32 = 20_000;
        let segment = segment();
        let views = views(&segment, 2);
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|threads| {
            for view in &views {
                threads.spawn(|| {
                    let mut taken = 0;
                    while taken < ROUNDS {
                        if view.try_take() == Take::Taken {
                            assert!(inside.fetch_add(1, Ordering::AcqRel) < 2);
                            inside.fetch_sub(1, Ordering::AcqRel);
                            view.release(true);
                            taken += 1;
                        }
                    }
                });
            }
        });
        assert_eq!(views[0].units(), 2);
        set(&segment, 1, SlotState::Dead, 1);
        assert_eq!(views[0].dead_holder(), None, "all came back");
    }

    #[test]
    fn scribbled_words_lead_to_wrong_numbers_at_worst() {
        let segment = segment();
        let views = views(&segment, 1);
        for word in [u64::MAX, 1 << 63, 0x5555_5555_5555_5555] {
            views[0].area.words().iter().for_each(|at| at.store(word, Ordering::Relaxed));
            views[0].try_take();
            views[0].release(true);
            views[0].give(1);
            views[0].dead_holder();
            views[0].recover();
            views[0].waits(true);
            views[0].waits(false);
        }
    }

    #[test]
    fn an_impossible_semaphore_is_not_opened() {
        let segment = segment();
        let file = shared_area::file(64).unwrap();
        let area = SharedArea::map(&file, 64).unwrap();
        assert!(SemaphoreWords::open(area, &segment, 0, 1).is_none(), "too short");
        let file = shared_area::file(4096).unwrap();
        let area = SharedArea::map(&file, 4096).unwrap();
        for (slot, units) in [(SLOTS, 1), (0, 1 << 16)] {
            assert!(SemaphoreWords::open(area.clone(), &segment, slot, units).is_none());
        }
    }
}
