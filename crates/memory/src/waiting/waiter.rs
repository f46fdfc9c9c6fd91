//! The one way to wait, everywhere.
//!
//! A wait climbs a ladder: it polls a little; gives the core away and measures how long that took (the *yield
//! probe*: it tells whether another task wanted the core); sleeps on the process's own word in the segment. How
//! long it stays on each step depends on whether the cores are oversubscribed. The plan of the segment says so at
//! first. Later the probe knows better, because sleeping processes take no core and those of other jobs may.
//!
//! On an oversubscribed core a yield helps only if the process that is waited for runs on this core. Some waits
//! have a *yield policy* ([`Waiting::keep_core_ns`]): they keep the core for a moment when the data are about to
//! come from another core, so the next operation begins with no switch. Such a wait gives its first turns away
//! without clock, wait record or probe. One wait in `MEASURE_EVERY` begins with the probe all the same, and the
//! others are counted as turns of the last measured length.
//!
//! Before it sleeps, a process raises its sleep word and looks once more; a process that publishes something for it
//! looks at that word afterwards and wakes it ([`Doorbell`]). The two looks must not both miss (Dekker). In an
//! oversubscribed job both sides use a fence; otherwise publishing must stay cheap, so the sleeper alone pays: it
//! runs a barrier on every core (`membarrier`) between its store and its look.
//!
//! A change of the membership makes every waiting process ask again whether its wait can still succeed, and a
//! group's revocation makes its members ask. The page of a process says what it waits for, for others to read.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};
use std::time::Duration;

use crate::lanes_page::{LANES_EVERY_NS, LaneRecord};
use crate::remark::{self, Remark};
use crate::segment::Segment;
use crate::sleep_word::{self, RAISED};
use crate::slots::membership::JobState;
use crate::slots::page::WaitRecord;
use crate::slots::waited_for::WaitedForMost;
use crate::sync;
use crate::system::{self, now_ns};
use crate::waiting::ladder::{ComputingTasks, Ladder, Step};
use crate::waiting::placement::{self, CrowdingDetector, HostShare};
use crate::waiting::scheduler_order::SchedulerOrder;

pub use crate::waiting::ladder::Patience;

/// Polls before the clock is looked at for the first time; the first half without a pause. Between two
/// cores side by side a message takes less time than these, and a pause is so long that it matters in
/// which of them the message comes: half a round trip of 8 bytes took 68 or 79 ns, by chance.
const POLLS_AT_ONCE: u32 = 64;
const POLLS_WITHOUT_PAUSE: u32 = 32;
/// Fewest polls at once, when others want the core and polling has not paid.
const POLLS_OVERSUBSCRIBED: u32 = 4;
/// One wait in so many polls as long as a wait that has the core to itself, to see whether that pays by now.
const EXPLORE_EVERY: u32 = 16;
/// Polls between two looks at the clock while the core is kept.
const POLLS_WHILE_KEPT: u32 = 16;
/// Turns that are given away before the clock is looked at, on an oversubscribed core.
const TURNS_AT_ONCE: u32 = 4;
/// One wait in so many looks at the clock from the beginning, to see whether the core is still oversubscribed.
const MEASURE_EVERY: u32 = 16;
/// A sleeper looks by itself so often, should a wake-up ever be lost.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// The longest sleep where the kernel offers no barrier, so that wake-ups may well be lost.
const SLEEP_MAX_UNSAFE: Duration = Duration::from_millis(1);

/// A wait publishes its remark after this time, in nanoseconds: at the end of its first sleep.
const REMARKED_NS: u64 = 50_000_000;

/// How a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The awaited event has happened.
    Ready,
    /// The deadline passed first.
    TimedOut,
    /// The event can never happen: a process it depends on is gone.
    PeerFailed,
    /// Its context was revoked.
    Revoked,
    /// This process cancelled it.
    Cancelled,
    /// The job is being ended.
    Ended,
}

/// A wait, as the waiter sees it: how to poll it, describe it and sleep in it.
pub trait Waiting {
    /// Makes progress; returns true once the awaited event has happened.
    fn poll(&mut self) -> bool;

    /// Makes progress more thoroughly, as the last look before sleep: it publishes everything that others may wait for.
    fn poll_before_sleep(&mut self) -> bool {
        self.poll()
    }

    /// Called at first, after each change of the membership, and after a group of this process was revoked: returns
    /// how the wait ends if the event can no longer happen.
    fn verdict(&mut self) -> Option<End>;

    /// Whether the wait has a yield policy: the methods below have answers.
    const HAS_YIELD_POLICY: bool = false;

    /// Called on an oversubscribed core: for how many nanoseconds polling helps more than yielding.
    fn keep_core_ns(&self, _core: u32) -> u64 {
        0
    }

    /// Called before a yield: takes this thread's position in the scheduler's order, if that is known.
    fn order_turns(&self, order: &mut SchedulerOrder, _core: u32) {
        order.restore();
    }

    /// How long to stay awake on an oversubscribed core.
    fn patience(&self) -> Patience {
        Patience::ONE
    }

    /// The wait record to publish. The waiter fills in `since_ns`.
    fn record(&self) -> WaitRecord;

    /// Called once when the wait is long: the slots any of which can end it; empty where that is not known, or the
    /// record names the peer.
    fn any_of(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Called once when the wait is long: the members of the group that the record is about, in the order of their
    /// ranks; empty if a board knows them.
    fn members(&self, _record: &WaitRecord) -> Vec<u32> {
        Vec::new()
    }

    /// Called now and then in a long wait, if the job spans hosts: the lanes with unsent bytes.
    fn lanes(&mut self, _now_ns: u64) -> Vec<LaneRecord> {
        Vec::new()
    }

    /// Called when the process is about to sleep for the first time: the moment to hand sockets to the thread that
    /// wakes it.
    fn prepare_sleep(&mut self) {}
}

/// The remarks on a long wait.
#[derive(Clone, Copy, Debug, Default)]
struct Remarks {
    /// Those that are made once.
    is_made: bool,
    /// When the lanes are published again.
    lanes_due_ns: u64,
}

/// The generation of the membership, and how many groups of this process were revoked.
type News = (u32, u32);

/// The time and number of a process's waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTimes {
    /// Waits that reached the second step.
    pub waits: u64,
    /// Time in them, in nanoseconds.
    pub waited_ns: u64,
    /// Sleeps.
    pub sleeps: u64,
}

/// The waiter of one process (or guest) in a segment.
pub struct Waiter {
    segment: Segment,
    slot: u32,
    /// Another task wanted the core when we last looked.
    oversubscribed: bool,
    spin: Spin,
    crowding: CrowdingDetector,
    share: HostShare,
    order: SchedulerOrder,
    /// The core that this process last published.
    core: Option<u32>,
    /// The cost of a yield when no other task wants the core; unknown before the first yield.
    yield_alone_ns: Option<u64>,
    /// The duration of the last measured yield.
    turn_ns: u64,
    computing: ComputingTasks,
    /// The core's other tasks compute, by the last wait that looked at the clock.
    is_beside_computing: bool,
    /// Waits since one looked at the clock from the beginning.
    unmeasured: u32,
    times: WaitTimes,
    waited_for: WaitedForMost,
}

impl Waiter {
    /// The waiter of the process of `slot`. Registers the process for barriers of other sleepers.
    pub fn new(segment: &Segment, slot: u32) -> Self {
        let oversubscribed = segment.plan().is_oversubscribed();
        Self {
            segment: segment.clone(),
            slot,
            oversubscribed,
            spin: Spin::new(oversubscribed),
            crowding: CrowdingDetector::new(slot),
            share: HostShare::WHOLE,
            order: SchedulerOrder::default(),
            core: None,
            yield_alone_ns: None,
            turn_ns: 0,
            computing: ComputingTasks::default(),
            is_beside_computing: false,
            unmeasured: 0,
            times: WaitTimes::default(),
            waited_for: WaitedForMost::default(),
        }
    }

    /// So many hosts of one kernel, this one among them, share their processors. If they are all hosts of the job and have as
    /// many processes each, this one's go to a part of the processors of its own.
    pub fn share_processors(&mut self, hosts: u32) {
        let plan = self.segment.plan();
        if let Some(number) = self.segment.own_host_number()
            && plan.processes.checked_mul(hosts) == Some(plan.ranks)
        {
            self.share = HostShare::taken(number, hosts);
        }
    }

    /// The waits so far.
    pub fn times(&self) -> WaitTimes {
        self.times
    }

    /// Whether other tasks wanted the core when it was last probed.
    pub fn is_oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    /// Only the first step of a wait: calls `poll` a few times, as often as has paid before; true
    /// as soon as it is.
    #[inline]
    pub fn look(&mut self, poll: impl FnMut() -> bool) -> bool {
        let polls = self.spin.polls();
        let found = poll_times(poll, polls);
        if found {
            self.spin.paid(polls);
        }
        found
    }

    /// Waits until what `waiting` polls for is there, or until the wait ends otherwise.
    /// `deadline_ns` is a time of the monotonic clock ([`now_ns`]).
    #[inline]
    pub fn wait(&mut self, waiting: &mut impl Waiting, deadline_ns: Option<u64>) -> End {
        if self.look_first(waiting) {
            return End::Ready;
        }
        self.wait_long(waiting, deadline_ns)
    }

    /// A wait with a yield policy need not try whether polling pays.
    #[inline(always)]
    fn look_first<W: Waiting>(&mut self, waiting: &mut W) -> bool {
        if W::HAS_YIELD_POLICY && self.oversubscribed {
            return poll_times(|| waiting.poll(), POLLS_OVERSUBSCRIBED) || self.give_turns(waiting);
        }
        self.look(|| waiting.poll())
    }

    /// Yields the first turns with nothing published or measured, since that takes as long as a turn: with many
    /// processes to a core, each finds cold caches at every turn. True once the event has happened.
    #[inline(never)]
    fn give_turns(&mut self, waiting: &mut impl Waiting) -> bool {
        let Some(core) = self.core.filter(|_| !self.is_beside_computing) else { return false };
        self.unmeasured += 1;
        if self.unmeasured >= MEASURE_EVERY {
            self.unmeasured = 0;
            return false;
        }
        for turn in 1..=TURNS_AT_ONCE {
            let longest_ns = waiting.keep_core_ns(core);
            if longest_ns > 0 && poll_until(waiting, &mut now_ns(), longest_ns) {
                return true;
            }
            waiting.order_turns(&mut self.order, core);
            system::yield_processor();
            if waiting.poll() {
                self.account(u64::from(turn) * self.turn_ns, None);
                return true;
            }
        }
        false
    }

    #[inline(never)]
    fn wait_long<W: Waiting>(&mut self, waiting: &mut W, deadline_ns: Option<u64>) -> End {
        let began_ns = now_ns();
        if !W::HAS_YIELD_POLICY || !self.oversubscribed {
            self.order.restore();
        }
        self.publish_core();
        let record = WaitRecord { since_ns: began_ns, ..waiting.record() };
        self.segment.set_wait_record(self.slot, &record);
        let (end, ended_ns) = self.climb(waiting, &record, deadline_ns);
        self.segment.end_wait_record(self.slot);
        self.account(ended_ns.saturating_sub(began_ns), record.peer);
        end
    }

    /// Publishes on which core this process is, if that is another than before.
    #[inline]
    fn publish_core(&mut self) {
        let core = system::processor();
        if self.core != core
            && let Some(here) = core
        {
            self.core = core;
            self.segment.set_processor(self.slot, here);
        }
    }

    fn account(&mut self, waited_ns: u64, peer: Option<u32>) {
        self.times.waits += 1;
        self.times.waited_ns += waited_ns;
        let WaitTimes { waits, waited_ns: all_ns, sleeps } = self.times;
        self.segment.set_waited(self.slot, waits, all_ns, sleeps);
        if let Some(peer) = peer {
            let place = self.waited_for.add(peer, waited_ns);
            self.segment.set_waited_for(self.slot, place, self.waited_for.at(place));
        }
    }

    /// How the wait ends, and when the clock was last looked at: once for each step.
    fn climb<W: Waiting>(
        &mut self,
        waiting: &mut W,
        record: &WaitRecord,
        deadline_ns: Option<u64>,
    ) -> (End, u64) {
        let began_ns = record.since_ns;
        let patience = waiting.patience();
        let mut ladder = self.ladder(began_ns, patience);
        let (mut seen, mut now_ns, mut remarks) = (None, began_ns, Remarks::default());
        loop {
            if waiting.poll() {
                return (End::Ready, now_ns);
            }
            let news = self.news();
            if seen != Some(news) {
                seen = Some(news);
                if let Some(end) = self.judge(waiting) {
                    return (end, now_ns);
                }
            }
            if deadline_ns.is_some_and(|deadline| now_ns >= deadline) {
                return (if waiting.poll() { End::Ready } else { End::TimedOut }, now_ns);
            }
            let is_there = match ladder.step(now_ns) {
                Step::Poll => {
                    let is_there = poll_times(|| waiting.poll(), POLLS_AT_ONCE);
                    now_ns = if is_there { now_ns } else { self::now_ns() };
                    is_there
                }
                Step::Yield => self.give_turn(waiting, &mut ladder, &mut now_ns),
                Step::Sleep => {
                    let woken = self.sleep(waiting, news, now_ns, deadline_ns);
                    now_ns = self::now_ns();
                    if now_ns.saturating_sub(began_ns) >= REMARKED_NS {
                        self.remark(waiting, record, now_ns, &mut remarks);
                    }
                    if woken {
                        ladder = self.ladder(now_ns, patience);
                    }
                    false
                }
            };
            if is_there {
                return (End::Ready, now_ns);
            }
        }
    }

    /// The steps of a wait with this patience from now on.
    fn ladder(&mut self, now_ns: u64, patience: Patience) -> Ladder {
        self.is_beside_computing = self.computing.are_there(now_ns);
        let patience = if self.is_beside_computing { Patience::NONE } else { patience };
        Ladder::new(self.oversubscribed, now_ns, patience)
    }

    /// Keeps the core for as long as that helps, then yields it and measures. True once the event has happened.
    fn give_turn<W: Waiting>(
        &mut self,
        waiting: &mut W,
        ladder: &mut Ladder,
        now_ns: &mut u64,
    ) -> bool {
        if W::HAS_YIELD_POLICY && self.oversubscribed && self.poll_while_kept(waiting, now_ns) {
            return true;
        }
        self.oversubscribed = self.probe(now_ns);
        self.spin.failed(self.oversubscribed);
        let is_crowded = self.crowding.is_due(self.oversubscribed, *now_ns);
        if is_crowded || self.core.is_some_and(|core| self.share.is_left(core, *now_ns)) {
            placement::even_out(&self.segment, self.slot, &self.share);
        }
        ladder.yielded(self.oversubscribed);
        // Where the job has more processes than cores, a long turn may be one of all of them.
        let is_roomy = !self.segment.plan().is_oversubscribed();
        if is_roomy && self.computing.yielded(self.turn_ns, *now_ns) {
            ladder.give_up_turns();
        }
        false
    }

    /// Publishes more about a wait that has lasted for long.
    #[cold]
    fn remark(
        &self,
        waiting: &mut impl Waiting,
        record: &WaitRecord,
        now_ns: u64,
        remarks: &mut Remarks,
    ) {
        let since_ns = record.since_ns;
        if !std::mem::replace(&mut remarks.is_made, true) {
            let (call, any_of) = (remark::call_of_this_thread(), waiting.any_of());
            let members = waiting.members(record);
            self.segment.set_remark(self.slot, &Remark { since_ns, call, any_of, members });
        }
        if self.segment.plan().has_host_tables() && now_ns >= remarks.lanes_due_ns {
            remarks.lanes_due_ns = now_ns + LANES_EVERY_NS;
            self.segment.set_lanes(self.slot, since_ns, waiting.lanes(now_ns));
        }
    }

    /// The counters whose change makes a wait check again whether it can still succeed.
    fn news(&self) -> News {
        (self.segment.membership_generation(), self.segment.revocations(self.slot))
    }

    /// Polls for as long as that helps more than yielding. True once the event has happened.
    fn poll_while_kept(&mut self, waiting: &mut impl Waiting, now_ns: &mut u64) -> bool {
        let Some(core) = self.core else { return false };
        waiting.order_turns(&mut self.order, core);
        let longest_ns = waiting.keep_core_ns(core);
        longest_ns > 0 && poll_until(waiting, now_ns, longest_ns)
    }

    /// Yields the core; `now_ns` is the time a moment ago. True if another task wanted the core.
    fn probe(&mut self, now_ns: &mut u64) -> bool {
        let began_ns = *now_ns;
        system::yield_processor();
        *now_ns = self::now_ns();
        let took_ns = now_ns.saturating_sub(began_ns).max(1);
        let alone_ns = self.yield_alone_ns.unwrap_or_else(yield_guess_ns).min(took_ns);
        self.yield_alone_ns = Some(alone_ns);
        self.turn_ns = took_ns;
        took_ns > alone_ns + alone_ns / 2
    }

    /// The verdict after a change. What arrived before the change still counts.
    fn judge(&self, waiting: &mut impl Waiting) -> Option<End> {
        let end = match self.segment.job_state() {
            JobState::Ending => Some(End::Ended),
            JobState::Running => waiting.verdict(),
        }?;
        Some(if waiting.poll_before_sleep() { End::Ready } else { end })
    }

    /// Sleeps until the bell rings, or for a while. True if it rang or the event has happened.
    fn sleep(
        &mut self,
        waiting: &mut impl Waiting,
        news: News,
        now_ns: u64,
        deadline_ns: Option<u64>,
    ) -> bool {
        self.crowding.ends();
        waiting.prepare_sleep();
        let word = self.segment.sleep_word(self.slot);
        sleep_word::raise(word);
        let safe = self.segment.plan().is_oversubscribed() || system::barrier_everywhere();
        let changed = self.news() != news;
        if changed || waiting.poll_before_sleep() {
            sleep_word::lower(word);
            return true;
        }
        let longest = if safe { SLEEP_MAX } else { SLEEP_MAX_UNSAFE };
        let left =
            deadline_ns.map(|deadline| Duration::from_nanos(deadline.saturating_sub(now_ns)));
        self.times.sleeps += 1;
        system::futex_wait(word, RAISED, left.map_or(longest, |left| left.min(longest)));
        sleep_word::lower_after_sleep(word)
    }
}

/// An upper bound for the cost of a yield on a free core: a few times the shortest system call. The first yields
/// cannot tell, since the core may be oversubscribed.
fn yield_guess_ns() -> u64 {
    const SYSTEM_CALLS: u64 = 5;
    let shortest = (0..3).map(|_| {
        let began_ns = now_ns();
        system::shortest_call();
        now_ns().saturating_sub(began_ns)
    });
    shortest.min().unwrap_or(1).max(1) * SYSTEM_CALLS
}

/// Polls for at most `longest_ns`; true once the event has happened.
fn poll_until(waiting: &mut impl Waiting, now_ns: &mut u64, longest_ns: u64) -> bool {
    let until_ns = *now_ns + longest_ns;
    loop {
        if poll_times(|| waiting.poll(), POLLS_WHILE_KEPT) {
            return true;
        }
        *now_ns = self::now_ns();
        if *now_ns >= until_ns {
            return false;
        }
    }
}

#[inline(always)]
pub(crate) fn poll_times(mut poll: impl FnMut() -> bool, times: u32) -> bool {
    for number in 0..times {
        if poll() {
            return true;
        }
        if number >= POLLS_WITHOUT_PAUSE {
            sync::pause();
        }
    }
    false
}

/// How often to poll before anything else. Polling pays when the process that is waited for has a core of its own at
/// that moment. The kernel cannot be asked for that, so this learns from what happened.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    polls: u32,
    waits: u32,
}

impl Spin {
    /// Before the first wait; `oversubscribed` where other tasks want the core.
    pub fn new(oversubscribed: bool) -> Self {
        Self { polls: if oversubscribed { POLLS_OVERSUBSCRIBED } else { POLLS_AT_ONCE }, waits: 0 }
    }

    /// How often to poll in the wait that begins.
    #[inline]
    pub fn polls(&mut self) -> u32 {
        if self.polls == POLLS_AT_ONCE {
            return POLLS_AT_ONCE;
        }
        self.waits = self.waits.wrapping_add(1);
        if self.waits.is_multiple_of(EXPLORE_EVERY) { POLLS_AT_ONCE } else { self.polls }
    }

    /// Records that the awaited event happened within `polls` polls.
    #[inline]
    pub fn paid(&mut self, polls: u32) {
        self.polls = polls;
    }

    /// Records that the event did not happen and the core was yielded; `oversubscribed` if another task wanted it.
    pub fn failed(&mut self, oversubscribed: bool) {
        self.polls =
            if oversubscribed { (self.polls / 2).max(POLLS_OVERSUBSCRIBED) } else { POLLS_AT_ONCE };
    }
}

/// The sleep word of another process, to be looked at after publishing something for it.
pub struct Doorbell {
    word: NonNull<AtomicU32>,
    fenced: bool,
    _segment: Segment,
}

// SAFETY: the word is an atomic that stays mapped while the segment handle lives.
unsafe impl Send for Doorbell {}
// SAFETY: as above.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// The bell of the process of `slot`. None when there is no such slot.
    pub fn of(segment: &Segment, slot: u32) -> Option<Self> {
        if slot >= segment.plan().slots() {
            return None;
        }
        let fenced = segment.plan().is_oversubscribed() || !is_registered();
        Some(Self {
            word: NonNull::from(segment.sleep_word(slot)),
            fenced,
            _segment: segment.clone(),
        })
    }

    /// Wakes the process if it sleeps. Everything stored before is visible to it.
    #[inline]
    pub fn ring(&self) {
        if self.fenced {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        // SAFETY: the word stays mapped while `_segment` lives.
        let word = unsafe { self.word.as_ref() };
        if sleep_word::is_raised(word) {
            sleep_word::wake(word);
        }
    }

    /// Wakes the process as [`Doorbell::ring`] does, for a thread that may have published without a fence of its own.
    pub fn ring_fenced(&self) {
        fence(Ordering::SeqCst);
        self.ring();
    }
}

/// A thread that sleeps while another thread of its process waits for both.
#[derive(Default)]
pub struct Follower {
    called: AtomicU32,
}

impl Follower {
    /// Sleeps until called, or until the deadline, or for a while: the caller looks by itself then.
    pub fn sleep(&self, deadline_ns: Option<u64>) {
        let left =
            deadline_ns.map(|deadline| Duration::from_nanos(deadline.saturating_sub(now_ns())));
        if self.called.load(Ordering::Acquire) == 0 {
            system::futex_wait(&self.called, 0, left.map_or(SLEEP_MAX, |left| left.min(SLEEP_MAX)));
        }
        self.called.store(0, Ordering::Release);
    }

    /// Makes it look.
    pub fn call(&self) {
        self.called.store(1, Ordering::Release);
        system::futex_wake(&self.called, 1);
    }
}

/// Whether other processes' barriers reach this one; asked of the kernel once. That is best done while
/// the process has one thread: with more of them the kernel waits until every processor has
/// been somewhere else, which takes milliseconds.
#[inline]
pub fn is_registered() -> bool {
    static REGISTERED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *REGISTERED.get_or_init(system::register_for_barriers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;
    use crate::slots::membership::{SlotRecord, SlotState};
    use crate::slots::page::WaitedFor;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn segment(processes: u32, cpus: u32) -> Segment {
        Segment::local(&SegmentPlan {
            heap_bytes_per_process: 0,
            cpus,
            ..SegmentPlan::new(1, processes)
        })
    }

    struct Flag<'a>(&'a AtomicBool, &'a Segment);

    impl Waiting for Flag<'_> {
        fn poll(&mut self) -> bool {
            self.0.load(Ordering::Acquire)
        }
        fn verdict(&mut self) -> Option<End> {
            (self.1.slot_record(1).state == SlotState::Dead).then_some(End::PeerFailed)
        }
        fn record(&self) -> WaitRecord {
            WaitRecord {
                peer: Some(1),
                operation: crate::slots::page::Operation::Receive,
                ..WaitRecord::default()
            }
        }
    }

    #[test]
    fn a_condition_that_holds_is_ready_at_once() {
        let segment = segment(2, 2);
        let flag = AtomicBool::new(true);
        assert_eq!(Waiter::new(&segment, 0).wait(&mut Flag(&flag, &segment), None), End::Ready);
    }

    #[test]
    fn a_deadline_ends_a_wait() {
        for cpus in [1, 2] {
            let segment = segment(2, cpus);
            let flag = AtomicBool::new(false);
            let mut waiter = Waiter::new(&segment, 0);
            let deadline = now_ns() + 300_000_000;
            assert_eq!(waiter.wait(&mut Flag(&flag, &segment), Some(deadline)), End::TimedOut);
            assert!(now_ns() >= deadline);
            assert!(waiter.times().sleeps > 0 && waiter.times().waited_ns >= 200_000_000);
            assert_eq!(segment.wait_record(0).operation, crate::slots::page::Operation::None);
            let (counters, times) = (segment.counters(0), waiter.times());
            let seen = (counters.waits, counters.waited_ns, counters.sleeps);
            assert_eq!(seen, (times.waits, times.waited_ns, times.sleeps));
            assert_eq!(segment.waited_for(0), [WaitedFor { peer: 1, ns: times.waited_ns }]);
        }
    }

    #[test]
    fn a_sleeper_is_woken_by_a_bell() {
        for cpus in [1, 2] {
            let segment = segment(2, cpus);
            for _ in 0..200 {
                let flag = Arc::new(AtomicBool::new(false));
                let (publisher, bell) = (flag.clone(), Doorbell::of(&segment, 0).unwrap());
                let watched = segment.clone();
                let thread = std::thread::spawn(move || {
                    while !sleep_word::is_raised(watched.sleep_word(0)) {
                        std::thread::yield_now();
                    }
                    publisher.store(true, Ordering::Release);
                    bell.ring();
                });
                let end = Waiter::new(&segment, 0).wait(&mut Flag(&flag, &segment), None);
                assert_eq!(end, End::Ready);
                thread.join().unwrap();
            }
        }
    }

    #[test]
    fn a_death_and_an_end_are_noticed_in_sleep() {
        for ending in [false, true] {
            let segment = segment(2, 1);
            let agent = segment.clone();
            let thread = std::thread::spawn(move || {
                while !sleep_word::is_raised(agent.sleep_word(0)) {
                    std::thread::yield_now();
                }
                assert_eq!(agent.wait_record(0).peer, Some(1), "readable while it sleeps");
                if ending {
                    agent.set_job_state(JobState::Ending);
                } else {
                    agent.set_slot_record(
                        1,
                        SlotRecord { state: SlotState::Dead, ..SlotRecord::default() },
                    );
                }
                agent.announce_membership();
            });
            let flag = AtomicBool::new(false);
            let end = Waiter::new(&segment, 0).wait(&mut Flag(&flag, &segment), None);
            assert_eq!(end, if ending { End::Ended } else { End::PeerFailed });
            thread.join().unwrap();
        }
    }

    #[test]
    fn polling_goes_on_while_it_pays_and_is_tried_again_when_it_did_not() {
        let mut spin = Spin::new(false);
        assert_eq!(spin.polls(), POLLS_AT_ONCE);
        (0..10).for_each(|_| spin.failed(true));
        let tried: Vec<u32> = (0..EXPLORE_EVERY).map(|_| spin.polls()).collect();
        assert_eq!(tried.iter().filter(|&&polls| polls == POLLS_AT_ONCE).count(), 1);
        spin.paid(POLLS_AT_ONCE);
        assert_eq!(spin.polls(), POLLS_AT_ONCE);
        spin.failed(true);
        spin.failed(false);
        assert_eq!(spin.polls(), POLLS_AT_ONCE, "no other task wants the core");
    }
}
