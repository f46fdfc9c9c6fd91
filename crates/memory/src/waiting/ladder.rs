//! How long a wait stays on each step of its ladder: polling, giving the core away, asleep.
//!
//! The ladder decides from times, probes and the patience of the wait alone; [`crate::waiter`] acts on it.

/// Time on the first two steps when there are processors for all, in nanoseconds.
const AWAKE_NS: u64 = 1_000_000;
/// Most that is added to it for the data of others.
const MOVING_MAX_NS: u64 = 20_000_000;
/// Yields on the second step on an oversubscribed core, unless a wait has reasons for more.
const YIELDS_OVERSUBSCRIBED: u32 = 32;
/// Time between two yield probes that found no other task, in nanoseconds.
const PROBE_EVERY_NS: u64 = 10_000;

/// How long a wait stays awake on an oversubscribed core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    yields: u32,
    awake_ns: u64,
}

impl Patience {
    /// For one other process.
    pub const ONE: Self = Self { yields: YIELDS_OVERSUBSCRIBED, awake_ns: AWAKE_NS };

    /// None: whatever else the core does takes longer than to be woken.
    pub(crate) const NONE: Self = Self { yields: 0, awake_ns: 0 };

    /// For all of a group: they will all be here again soon, and to wake a sleeper costs more than its turn on
    /// the core. With many members a turn of all takes long.
    pub const fn all_of(members: u32) -> Self {
        const TURNS: u32 = 8;
        const MEMBER_NS: u64 = 20_000;
        let yields = TURNS.saturating_mul(members);
        Self {
            yields: if yields > YIELDS_OVERSUBSCRIBED { yields } else { YIELDS_OVERSUBSCRIBED },
            awake_ns: AWAKE_NS + MEMBER_NS * members as u64,
        }
    }

    /// For all of a group while each of its members moves so many bytes. A member that sleeps in the middle of that
    /// is woken wherever there is room, and then most members may share one core.
    pub const fn all_moving(members: u32, bytes: u64) -> Self {
        const BYTES_PER_NS: u64 = 8;
        const TURN_NS: u64 = 500;
        let Self { yields, awake_ns } = Self::all_of(members);
        let moving_ns = bytes.saturating_mul(members as u64) / BYTES_PER_NS;
        let moving_ns = if moving_ns < MOVING_MAX_NS { moving_ns } else { MOVING_MAX_NS };
        Self { yields: yields + (moving_ns / TURN_NS) as u32, awake_ns: awake_ns + moving_ns }
    }
}

/// Whether tasks that compute have the core in turn with a process. A yield gives them their whole slices. The scheduler
/// prefers a task that has slept, so waits sleep then.
#[derive(Debug, Default)]
pub(crate) struct ComputingTasks {
    /// The last so many yields were long.
    long_turns: u32,
    /// Until this time a yield is not tried again.
    until_ns: u64,
}

impl ComputingTasks {
    /// A yield that takes as long is a slice, in nanoseconds.
    const SLICE_NS: u64 = 1_000_000;
    /// So many in a row are no chance.
    const SLICES: u32 = 3;
    /// The time of so many yields passes before another one.
    const TURNS: u64 = 50;

    pub(crate) fn are_there(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }

    /// Learns from a yield, which has ended now. Returns whether waits sleep from now on.
    pub(crate) fn yielded(&mut self, turn_ns: u64, now_ns: u64) -> bool {
        self.long_turns = if turn_ns < Self::SLICE_NS { 0 } else { self.long_turns + 1 };
        let are_there = self.long_turns >= Self::SLICES;
        if are_there {
            self.until_ns = now_ns + Self::TURNS * turn_ns;
        }
        are_there
    }
}

/// The next action of a waiter: poll, yield the core, or sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Poll,
    Yield,
    Sleep,
}

/// Decides the steps of one wait, from times and probes alone.
pub(crate) struct Ladder {
    oversubscribed: bool,
    began_ns: u64,
    yields: u32,
    patience: Patience,
    next_probe_ns: u64,
}

impl Ladder {
    pub(crate) fn new(oversubscribed: bool, began_ns: u64, patience: Patience) -> Self {
        let next_probe_ns = if oversubscribed { began_ns } else { began_ns + PROBE_EVERY_NS };
        Self { oversubscribed, began_ns, yields: 0, patience, next_probe_ns }
    }

    /// Chooses the action at the time `now_ns`.
    pub(crate) fn step(&mut self, now_ns: u64) -> Step {
        let awake_ns = if self.oversubscribed { self.patience.awake_ns } else { AWAKE_NS };
        let is_long = now_ns.saturating_sub(self.began_ns) > awake_ns;
        if self.yields >= self.patience.yields || is_long {
            return Step::Sleep;
        }
        if self.oversubscribed {
            return Step::Yield;
        }
        if now_ns >= self.next_probe_ns {
            self.next_probe_ns = now_ns + PROBE_EVERY_NS;
            return Step::Yield;
        }
        Step::Poll
    }

    /// Sleeps at the next step.
    pub(crate) fn give_up_turns(&mut self) {
        self.patience = Patience::NONE;
    }

    /// Learns from a yield whether another task wanted the core.
    pub(crate) fn yielded(&mut self, oversubscribed: bool) {
        self.oversubscribed = oversubscribed;
        self.yields += u32::from(oversubscribed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_sleeps_early_when_oversubscribed_and_late_when_not() {
        let mut oversubscribed = Ladder::new(true, 0, Patience::ONE);
        for _ in 0..YIELDS_OVERSUBSCRIBED {
            assert_eq!(oversubscribed.step(1), Step::Yield);
            oversubscribed.yielded(true);
        }
        assert_eq!(oversubscribed.step(1), Step::Sleep);
        let mut roomy = Ladder::new(false, 0, Patience::ONE);
        assert_eq!(roomy.step(0), Step::Poll);
        assert_eq!(roomy.step(PROBE_EVERY_NS), Step::Yield);
        roomy.yielded(false);
        assert_eq!(roomy.step(PROBE_EVERY_NS), Step::Poll);
        assert_eq!(roomy.step(AWAKE_NS + 1), Step::Sleep);
    }

    #[test]
    fn a_wait_for_many_stays_awake_longer() {
        let many = Patience::all_of(1000);
        let mut ladder = Ladder::new(true, 0, many);
        for _ in 0..YIELDS_OVERSUBSCRIBED * 2 {
            assert_eq!(ladder.step(AWAKE_NS + 1), Step::Yield);
            ladder.yielded(true);
        }
        assert_eq!(ladder.step(many.awake_ns + 1), Step::Sleep);
        ladder.yielded(false);
        assert_eq!(ladder.step(AWAKE_NS + 1), Step::Sleep, "no other task wants the core");
        assert_eq!(Patience::all_of(1).yields, Patience::ONE.yields);
    }

    #[test]
    fn a_wait_for_members_that_move_much_stays_awake_as_long_as_that_takes() {
        let (idle, moving) = (Patience::all_of(32), Patience::all_moving(32, 1 << 20));
        assert_eq!(moving.awake_ns - idle.awake_ns, (32 << 20) / 8);
        assert!(moving.yields > 32 * idle.yields);
        assert_eq!(Patience::all_moving(32, 0), idle);
        let most = Patience::all_moving(32, u64::MAX);
        assert_eq!(most.awake_ns - idle.awake_ns, MOVING_MAX_NS, "but not for ever");
    }

    #[test]
    fn slices_in_a_row_make_waits_sleep_until_a_yield_is_short_again() {
        const MS: u64 = 1_000_000;
        let mut tasks = ComputingTasks::default();
        let long = [3, 4, 3].map(|turn| tasks.yielded(turn * MS, 10 * MS));
        assert_eq!(long, [false, false, true]);
        assert!(tasks.are_there(159 * MS) && !tasks.are_there(160 * MS));
        assert!(tasks.yielded(2 * MS, 163 * MS), "they are still there");
        assert!(!tasks.yielded(MS - 1, 300 * MS) && !tasks.are_there(300 * MS));
        assert!(!tasks.yielded(9 * MS, 310 * MS), "one alone may be chance");
        let mut ladder = Ladder::new(true, 0, Patience::ONE);
        assert_eq!(ladder.step(1), Step::Yield);
        ladder.give_up_turns();
        assert_eq!(ladder.step(1), Step::Sleep);
        assert_eq!(Ladder::new(true, 0, Patience::NONE).step(1), Step::Sleep);
        assert_eq!(Ladder::new(false, 0, Patience::NONE).step(1), Step::Sleep);
    }

    #[test]
    fn the_result_of_a_probe_counts_more_than_the_plan() {
        let mut hogged = Ladder::new(false, 0, Patience::ONE);
        assert_eq!(hogged.step(PROBE_EVERY_NS), Step::Yield);
        for _ in 0..YIELDS_OVERSUBSCRIBED {
            hogged.yielded(true);
            assert!(matches!(hogged.step(PROBE_EVERY_NS), Step::Yield | Step::Sleep));
        }
        assert_eq!(hogged.step(PROBE_EVERY_NS), Step::Sleep);
        let mut quiet = Ladder::new(true, 0, Patience::ONE);
        assert_eq!(quiet.step(1), Step::Yield);
        quiet.yielded(false);
        quiet.next_probe_ns = 100;
        assert_eq!(quiet.step(2), Step::Poll);
    }
}
