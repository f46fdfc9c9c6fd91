//! Waiting for the others of a synchronisation.
//!
//! Whoever waits knows for whom, and on which processors those are: as at the board of collective
//! operations, it keeps its processor where nobody beside it is awaited. It says that it waits only when
//! it falls asleep, so that who comes last has nobody to wake as long as all are awake.

use landeck_board::{LOOKED_AT_MAX, Neighbours};
use landeck_groups::service::Seat;
use landeck_memory::waiter::{Patience, Waiting};
use landeck_memory::{End, Operation, WaitRecord};
use landeck_objects::group_log::WaitsFor;

use super::coming::{Come, Said};
use super::live::{Live, Mirror, Waits};
use crate::error::{Error, Result};
use landeck_engine::{Engine, why};

/// In so many looks the messages are looked at once.
const LOOKS_PER_PROGRESS: u32 = 32;

/// The wait of a member that has come, as the thread that has the turn.
struct Gathering<'a> {
    live: &'a Live,
    seat: Seat,
    come: Come,
    looks: u32,
    ended: Option<Result<Option<u32>>>,
    /// There once it has fallen asleep.
    waits: Option<Waits<'a>>,
    /// What others had told of when it was looked at last.
    news: u32,
}

impl Live {
    /// Waits for the others; who died, if somebody did.
    pub(crate) fn gather(
        &self,
        seat: Seat,
        come: Come,
        deadline_ns: Option<u64>,
    ) -> Result<Option<u32>> {
        if come.is_last || self.said_of(&come) == Said::Over {
            return Ok(None);
        }
        let Some(mut waiter) = self.shared.turn.try_enter_in_turn()? else {
            return self.gather_behind(seat, come, deadline_ns);
        };
        let news = self.shared.segment.news(self.shared.slot);
        let mut gathering =
            Gathering { live: self, seat, come, looks: 0, ended: None, waits: None, news };
        let end = waiter.wait(&mut gathering, deadline_ns);
        if gathering.waits.is_some() {
            self.shared.kernel.enter()?.wake_up();
        }
        let ended = gathering.ended.take();
        drop(gathering);
        drop(waiter);
        self.shared.call_next();
        ended.unwrap_or_else(|| {
            let error = why(&*self.shared.kernel.enter()?, None, end);
            Err(Error::of_wait(&self.shared, error, None, |_| None))
        })
    }

    /// The same for a thread behind another of this process.
    fn gather_behind(
        &self,
        seat: Seat,
        come: Come,
        deadline_ns: Option<u64>,
    ) -> Result<Option<u32>> {
        let whom = |mirror: &Mirror| self.first_awaited(mirror, &come);
        self.wait(deadline_ns, whom, |mirror| self.how_it_ended(mirror, seat, &come))
    }

    /// The slot of a member that has not come.
    fn first_awaited(&self, mirror: &Mirror, come: &Come) -> Option<u32> {
        let mut members = mirror.state.members().iter();
        members.find(|member| self.is_awaited(mirror, come, member.id)).map(|member| member.slot)
    }
}

impl Gathering<'_> {
    #[inline]
    fn look(&mut self) {
        match self.live.said_of(&self.come) {
            Said::Over => {
                let (place, number) = self.come.next;
                self.live.log.foresee(place, number);
                self.ended = Some(self.live.catch_up().map(|()| None));
            }
            Said::GoesOn => {}
            Said::Nothing => self.look_thoroughly(),
        }
    }

    /// Looks at the log as well.
    fn look_thoroughly(&mut self) {
        if self.ended.is_none() {
            let Self { live, seat, come, .. } = *self;
            let ended = live.with(|mirror| live.how_it_ended(mirror, seat, &come));
            self.ended = ended.transpose();
        }
    }

    /// Moves what the other threads wait for, and calls those who may go on.
    fn look_after_others(&mut self, progress: impl FnOnce(&mut Engine) -> bool) {
        let shared = &self.live.shared;
        let Ok(mut kernel) = shared.kernel.enter() else { return };
        let moved = progress(&mut kernel);
        let news = shared.segment.news(shared.slot);
        let is_news = std::mem::replace(&mut self.news, news) != news;
        shared.call_ready(&kernel, moved || is_news);
    }

    /// What the members on this processor are to this wait.
    fn beside(&self, mirror: &Mirror, processor: u32) -> Neighbours {
        let shared = &self.live.shared;
        let is_beside =
            |slot| slot != shared.slot && shared.segment.processor(slot) == Some(processor);
        let mut beside = mirror.state.members().iter().filter(|member| is_beside(member.slot));
        match beside.any(|member| self.live.is_awaited(mirror, &self.come, member.id)) {
            true => Neighbours::Awaited,
            false => Neighbours::Waiting,
        }
    }
}

impl Waiting for Gathering<'_> {
    const HAS_YIELD_POLICY: bool = true;

    fn keep_core_ns(&self, core: u32) -> u64 {
        if self.come.members > LOOKED_AT_MAX {
            return 0;
        }
        let beside = self.live.with(|mirror| Ok(self.beside(mirror, core)));
        beside.map_or(0, Neighbours::keep_core_ns)
    }

    fn patience(&self) -> Patience {
        Patience::all_of(self.come.members)
    }

    #[inline]
    fn poll(&mut self) -> bool {
        if self.ended.is_none() {
            self.look();
            self.looks += 1;
        }
        let is_over = self.ended.is_some();
        let shared = &self.live.shared;
        if !is_over && (shared.is_awaited() || self.looks.is_multiple_of(LOOKS_PER_PROGRESS)) {
            self.look_after_others(Engine::progress);
        }
        is_over
    }

    fn poll_before_sleep(&mut self) -> bool {
        self.look_after_others(Engine::progress_thoroughly);
        self.look_thoroughly();
        if self.ended.is_none()
            && let Ok(kernel) = self.live.shared.kernel.enter()
        {
            self.live.shared.let_sockets_wake(&kernel);
        }
        self.ended.is_some()
    }

    fn verdict(&mut self) -> Option<End> {
        self.live.shared.kernel.enter().ok()?.refresh();
        self.live.shared.call_all();
        self.look_thoroughly();
        self.ended.as_ref().map(|_| End::PeerFailed)
    }

    fn record(&self) -> WaitRecord {
        let peer = self.live.with(|mirror| Ok(self.live.first_awaited(mirror, &self.come)));
        let peer = peer.unwrap_or_default();
        WaitRecord { operation: Operation::Group, peer, ..WaitRecord::default() }
    }

    fn prepare_sleep(&mut self) {
        let live = self.live;
        self.waits.get_or_insert_with(|| Waits::begin(&live.log, WaitsFor::Others));
        if let Ok(mut kernel) = live.shared.kernel.enter() {
            kernel.fall_asleep(None);
        }
    }
}
