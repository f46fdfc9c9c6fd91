//! On which cores the processes of a job run, and which of them should move.
//!
//! Each process publishes its core when it begins to wait. A process that shares a core for long looks whether it
//! should be elsewhere: no scheduler moves tasks that ran a moment ago, so two processes that wake each other may stay
//! on one core while another idles. Each has a *home*, the cores in turn by slots, so that ranks that follow each
//! other, which mostly talk to each other, run side by side. A process moves only to cores that it is allowed.
//!
//! Hosts of one kernel may share cores. Then each takes a part of them: processes of one host wait for each other by turns,
//! while two that talk over a socket both need a core.

use crate::segment::Segment;
use crate::sleep_word;
use crate::slots::membership::SlotState;
use crate::system;

/// With more processes to a core than so many the scheduler spreads them well enough, and counting takes long.
const COUNTED_PER_PROCESSOR: u32 = 16;

/// The part of its cores that a host takes: the whole, or one of as many as there are hosts that share them.
#[derive(Clone, Debug)]
pub(crate) struct HostShare {
    number: usize,
    hosts: usize,
    /// The cores of this part when it was taken; empty for the whole.
    cores: Vec<u32>,
    /// The time until which a process may be on another core: the scheduler goes on moving it.
    away_until_ns: u64,
}

impl HostShare {
    /// The shortest time between two moves home, in nanoseconds.
    const MOVE_EVERY_NS: u64 = 1_000_000;

    pub(crate) const WHOLE: Self = Self::part(0, 1);

    const fn part(number: usize, hosts: usize) -> Self {
        Self { number, hosts, cores: Vec::new(), away_until_ns: 0 }
    }

    /// The part of a host with this number.
    pub(crate) fn taken(number: u16, hosts: u32) -> Self {
        let mut share = Self::part(number.into(), hosts.max(1) as usize);
        share.cores = share.of(&system::allowed_processors()).to_vec();
        share
    }

    /// Whether a process on this core should go home now.
    pub(crate) fn is_left(&mut self, core: u32, now_ns: u64) -> bool {
        let is_left =
            !self.cores.is_empty() && !self.cores.contains(&core) && now_ns >= self.away_until_ns;
        if is_left {
            self.away_until_ns = now_ns + Self::MOVE_EVERY_NS;
        }
        is_left
    }

    /// The cores of this part; with fewer cores than hosts one of them.
    fn of<'a>(&self, allowed: &'a [u32]) -> &'a [u32] {
        let &Self { number, hosts, .. } = self;
        if allowed.len() < hosts {
            let at = number % allowed.len().max(1);
            return allowed.get(at..=at).unwrap_or(allowed);
        }
        let begin = |number: usize| allowed.len() * number / hosts;
        &allowed[begin(number % hosts)..begin(number % hosts + 1)]
    }
}

/// Moves the calling process, that of `slot`, to the core of its host where it should be, if it may run there.
pub(crate) fn even_out(segment: &Segment, slot: u32, share: &HostShare) {
    let plan = segment.plan();
    if plan.processes > plan.cpus.saturating_mul(COUNTED_PER_PROCESSOR) {
        return;
    }
    let Some(here) = system::processor() else { return };
    segment.set_processor(slot, here);
    if let Some(processor) = better(segment, slot, here, share.of(&system::allowed_processors())) {
        system::move_to_processor(processor);
        segment.set_processor(slot, system::processor().unwrap_or(here));
    }
}

/// The core where the process of `slot`, which is `here`, should be instead: its home, unless more are awake there;
/// or one with two fewer, unless another process here has its home there and will go.
fn better(segment: &Segment, slot: u32, here: u32, allowed: &[u32]) -> Option<u32> {
    let home_of = |slot: u32| allowed.get(slot as usize % allowed.len().max(1)).copied();
    let is_awake = |&slot: &u32| {
        segment.slot_record(slot).state == SlotState::Alive
            && !sleep_word::is_raised(segment.sleep_word(slot))
    };
    let awake = (0..segment.plan().slots()).filter(is_awake);
    let places: Vec<(u32, u32)> =
        awake.filter_map(|slot| Some((slot, segment.processor(slot)?))).collect();
    let count = |processor| places.iter().filter(|(_, place)| *place == processor).count();
    let home = home_of(slot)?;
    if home != here && (!allowed.contains(&here) || count(home) <= count(here)) {
        return Some(home);
    }
    let lightest = allowed.iter().copied().min_by_key(|&processor| count(processor))?;
    let goes_there = |&(slot, place): &(u32, u32)| place == here && home_of(slot) == Some(lightest);
    let is_lighter = count(lightest) + 2 <= count(here);
    (is_lighter && !places.iter().any(goes_there)).then_some(lightest)
}

/// Notices that a process shares its core for long.
pub(crate) struct CrowdingDetector {
    /// Differs between neighbours, so that not both move.
    patience_ns: u64,
    /// Since when every probe found another task.
    since_ns: Option<u64>,
}

impl CrowdingDetector {
    const PATIENCE_NS: u64 = 4_000_000;
    const STEP_NS: u64 = 1_000_000;

    pub(crate) fn new(slot: u32) -> Self {
        let patience_ns = Self::PATIENCE_NS + u64::from(slot % 4) * Self::STEP_NS;
        Self { patience_ns, since_ns: None }
    }

    /// Begins anew: a process that sleeps makes room itself. Then there are more processes than cores, and those that
    /// talk to each other do well to share one.
    pub(crate) fn ends(&mut self) {
        self.since_ns = None;
    }

    /// Learns from a probe; true when it is time to look for another core, and then not soon again.
    pub(crate) fn is_due(&mut self, oversubscribed: bool, now_ns: u64) -> bool {
        if !oversubscribed {
            self.ends();
            return false;
        }
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        let is_due = now_ns.saturating_sub(since_ns) > self.patience_ns;
        if is_due {
            self.since_ns = Some(now_ns);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;
    use crate::slots::membership::SlotRecord;

    #[test]
    fn only_long_crowding_moves_a_process_and_not_its_neighbour() {
        let (mut one, mut other) = (CrowdingDetector::new(0), CrowdingDetector::new(1));
        for now_ns in (0..4_000_000).step_by(1000) {
            assert!(!one.is_due(true, now_ns) && !other.is_due(true, now_ns));
        }
        assert!(one.is_due(true, 4_000_001) && !other.is_due(true, 4_000_001));
        assert!(!one.is_due(true, 4_001_000), "not soon again");
        assert!(!other.is_due(false, 4_002_000), "the neighbour has moved");
        assert!(!other.is_due(true, 6_000_000));
        other.ends();
        assert!(!other.is_due(true, 60_000_000), "it has slept meanwhile");
    }

    #[test]
    fn hosts_that_share_cores_take_a_part_each() {
        let part = |number, hosts, allowed| HostShare::part(number, hosts).of(allowed).to_vec();
        assert_eq!(HostShare::WHOLE.of(&[3, 4]), [3, 4]);
        assert_eq!([0, 1, 2].map(|number| part(number, 2, &[3, 4])), [[3], [4], [3]]);
        assert_eq!(part(0, 2, &[3, 4, 5]), [3]);
        assert_eq!(part(1, 2, &[3, 4, 5]), [4, 5]);
        assert_eq!([0, 1, 2].map(|number| part(number, 3, &[3, 4])), [[3], [4], [3]]);
        assert_eq!(part(1, 3, &[]), [0; 0]);
        let mut own = HostShare { cores: vec![4], ..HostShare::part(1, 2) };
        assert!(!own.is_left(4, 1) && own.is_left(3, 1), "it goes home");
        assert!(!own.is_left(3, 1_000_000) && own.is_left(3, 1_000_001), "not soon again");
        let mut whole = HostShare::WHOLE;
        assert!(!whole.is_left(3, 1));
    }

    #[test]
    fn a_process_that_shares_a_core_goes_home_or_where_fewer_are() {
        let plan = SegmentPlan { guests: 0, cpus: 2, ..SegmentPlan::new(1, 4) };
        let segment = Segment::local(&plan);
        let place = |places: [u32; 4]| {
            for (slot, place) in (0..).zip(places) {
                let record = SlotRecord { state: SlotState::Alive, ..SlotRecord::default() };
                segment.set_slot_record(slot, record);
                segment.set_processor(slot, place);
            }
        };
        let better = |slot, here| better(&segment, slot, here, &[7, 9]);
        place([7, 7, 7, 7]);
        assert_eq!((better(0, 7), better(1, 7)), (None, Some(9)), "the first is at home");
        place([7, 9, 7, 7]);
        assert_eq!((better(2, 7), better(3, 7)), (None, Some(9)), "the third is at home");
        place([7, 9, 7, 9]);
        assert_eq!([0, 1, 2, 3].map(|slot| better(slot, [7, 9, 7, 9][slot as usize])), [None; 4]);
        place([7, 7, 9, 9]);
        assert_eq!((better(1, 7), better(2, 9)), (Some(9), Some(7)), "neighbours side by side");
        assert_eq!(super::better(&segment, 1, 7, &[7]), None, "it is bound");
        place([7, 9, 7, 9]);
        sleep_word::raise(segment.sleep_word(1));
        sleep_word::raise(segment.sleep_word(3));
        assert_eq!(better(0, 7), Some(9), "no process is awake there");
    }
}
