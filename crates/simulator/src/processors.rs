//! Processes on the processors of their hosts.
//!
//! Processes that share a processor take turns in a ring. A waiting process passes the processor to the next one, and
//! every process has a turn before any has a second. The order never changes; the seed decides it. A ready process
//! runs when its turn comes, until it must wait. Each turn costs a process switch, also the turn of a process that
//! has nothing to do. A process with a processor of its own runs as soon as it is ready. Some processes keep their
//! processor for a moment when they have nothing to do, and run at once if something arrives meanwhile.

use crate::fault::Chance;
use crate::time::Time;

/// All processors and the processes on them.
#[derive(Debug)]
pub(crate) struct Processors {
    rings: Vec<Ring>,
    /// The ring of each member, and its seat in it.
    seats: Vec<(u32, u32)>,
    switch_ps: u64,
}

/// A member's place in a ring.
#[derive(Clone, Copy, Debug)]
struct Seat {
    member: u32,
    is_ready: bool,
    /// How long the member keeps the processor when it has nothing to do.
    dwell_ps: u64,
}

#[derive(Debug)]
struct Ring {
    /// The members, in the order of their turns.
    members: Vec<Seat>,
    /// The seat that had the last turn, and when that turn ended.
    seat: u32,
    since: Time,
    is_running: bool,
    /// The next turn, if one is planned. Turns with an earlier number do not count.
    next: Option<Time>,
    number: u32,
}

/// A planned turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) at: Time,
    pub(crate) ring: u32,
    pub(crate) number: u32,
}

impl Processors {
    /// Deals out the members of these hosts in this order. All of them wait.
    pub(crate) fn new(
        hosts: &[Vec<u32>],
        processors: u32,
        switch_ps: u64,
        chance: &mut Chance,
    ) -> Self {
        let size = hosts.iter().map(Vec::len).sum();
        let mut all = Self { rings: Vec::new(), seats: vec![(0, 0); size], switch_ps };
        for members in hosts.iter().filter(|members| !members.is_empty()) {
            let count = (processors as usize).min(members.len());
            for place in 0..count {
                let ring = all.rings.len() as u32;
                let mut sharing: Vec<u32> =
                    members.iter().skip(place).step_by(count).copied().collect();
                chance.shuffle(&mut sharing[1..]); // a ring begins anywhere
                for (seat, &member) in (0..).zip(&sharing) {
                    all.seats[member as usize] = (ring, seat);
                }
                all.rings.push(Ring::new(sharing));
            }
        }
        all
    }

    /// The number of a member's processor among all.
    pub(crate) fn number(&self, member: u32) -> usize {
        self.seats[member as usize].0 as usize
    }

    /// The members of each processor.
    pub(crate) fn members(&self) -> impl Iterator<Item = impl Iterator<Item = u32>> {
        self.rings.iter().map(|ring| ring.members.iter().map(|seat| seat.member))
    }

    /// Whether this member shares its processor.
    pub(crate) fn is_shared(&self, member: u32) -> bool {
        self.rings[self.seats[member as usize].0 as usize].members.len() > 1
    }

    /// The other members on a member's processor.
    pub(crate) fn mates(&self, member: u32) -> impl Iterator<Item = u32> {
        let members = &self.rings[self.seats[member as usize].0 as usize].members;
        members.iter().map(|seat| seat.member).filter(move |mate| *mate != member)
    }

    /// Sets how long a waiting member keeps its processor each time its turn comes.
    pub(crate) fn dwell(&mut self, member: u32, dwell_ps: u64) {
        let (ring, seat) = self.seats[member as usize];
        self.rings[ring as usize].members[seat as usize].dwell_ps = dwell_ps;
    }

    /// A waiting member becomes ready. Returns the turn to plan, if that changes.
    pub(crate) fn wake(&mut self, member: u32, now: Time) -> Option<Turn> {
        let (number, seat) = self.seats[member as usize];
        let ring = &mut self.rings[number as usize];
        ring.members[seat as usize].is_ready = true;
        if ring.is_running {
            return None;
        }
        let at = ring.pass(seat, now, self.switch_ps);
        if ring.next.is_some_and(|next| next <= at) {
            return None;
        }
        Some(ring.plan(at, number))
    }

    /// Begins a planned turn. Returns the member that runs, unless another turn was planned instead.
    pub(crate) fn turn(&mut self, turn: Turn) -> Option<u32> {
        let ring = &mut self.rings[turn.ring as usize];
        if ring.number != turn.number || ring.is_running {
            return None;
        }
        let (seat, _) = ring.soonest(turn.at, self.switch_ps)?;
        (ring.is_running, ring.next) = (true, None);
        ring.members[seat as usize].is_ready = false;
        ring.seat = seat;
        Some(ring.members[seat as usize].member)
    }

    /// A running member waits. Returns the next turn to plan, if a member is ready.
    pub(crate) fn leave(&mut self, member: u32, now: Time) -> Option<Turn> {
        let (number, _) = self.seats[member as usize];
        let ring = &mut self.rings[number as usize];
        (ring.is_running, ring.since) = (false, now);
        let (_, at) = ring.soonest(now, self.switch_ps)?;
        Some(ring.plan(at, number))
    }
}

impl Ring {
    fn new(members: Vec<u32>) -> Self {
        let seat = |member| Seat { member, is_ready: false, dwell_ps: 0 };
        let members: Vec<Seat> = members.into_iter().map(seat).collect();
        let seat = members.len() as u32 - 1;
        let since = Time::ZERO;
        Self { members, seat, since, is_running: false, next: None, number: 0 }
    }

    fn plan(&mut self, at: Time, ring: u32) -> Turn {
        self.number = self.number.wrapping_add(1);
        self.next = Some(at);
        Turn { at, ring, number: self.number }
    }

    /// When the turn comes to a seat, not before `now`, if all others wait until then.
    fn pass(&self, seat: u32, now: Time, switch_ps: u64) -> Time {
        let size = self.members.len() as u64;
        if size == 1 {
            return now.max(self.since);
        }
        let ahead = (u64::from(seat) + size - u64::from(self.seat) - 1) % size + 1;
        let between = (1..ahead).map(|place| (u64::from(self.seat) + place) % size);
        let kept_ps: u64 = between.map(|place| self.members[place as usize].dwell_ps).sum();
        let first = self.since + ahead * switch_ps + kept_ps;
        let dwell_ps = self.members[seat as usize].dwell_ps;
        let dwells_ps: u64 = self.members.iter().map(|seat| seat.dwell_ps).sum();
        let round_ps = (size * switch_ps + dwells_ps).max(1);
        let rounds = now.since(first + dwell_ps).div_ceil(round_ps);
        (first + rounds * round_ps).max(now)
    }

    /// The ready seat with the next turn, and when that is.
    fn soonest(&self, now: Time, switch_ps: u64) -> Option<(u32, Time)> {
        let ready = (0..).zip(&self.members).filter(|(_, seat)| seat.is_ready);
        let turns = ready.map(|(seat, _)| (self.pass(seat, now, switch_ps), seat));
        turns.min().map(|(at, seat)| (seat, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Faults;

    fn at(picoseconds: u64) -> Time {
        Time::from_ps(picoseconds)
    }

    fn processors(hosts: &[Vec<u32>], count: u32, seed: u64) -> Processors {
        let mut chance = Chance::new(&Faults { seed, ..Faults::default() });
        Processors::new(hosts, count, 10, &mut chance)
    }

    /// A processor with these members in this order.
    fn ring(members: &[u32]) -> Processors {
        let seats = members.iter().map(|&member| (0, member));
        Processors {
            rings: vec![Ring::new(members.to_vec())],
            seats: seats.collect(),
            switch_ps: 10,
        }
    }

    #[test]
    fn a_member_alone_on_its_processor_runs_at_once() {
        let mut processors = processors(&[vec![0, 1], vec![2, 3]], 2, 0);
        assert!(!processors.is_shared(3));
        let turn = processors.wake(3, at(5)).unwrap();
        assert_eq!((turn.at, processors.turn(turn)), (at(5), Some(3)));
        assert_eq!(processors.leave(3, at(9)), None);
    }

    #[test]
    fn a_member_that_shares_a_processor_runs_when_its_turn_comes() {
        let mut processors = ring(&[0, 1, 2]);
        // Turns of 0, 1, 2 begin at 10, 20, 30, 40, ...: at 12 that of 0 has passed.
        let turn = processors.wake(0, at(12)).unwrap();
        assert_eq!(turn.at, at(40));
        // The turn of 2 comes before that of 0, so it is planned instead.
        let sooner = processors.wake(2, at(25)).unwrap();
        assert_eq!((sooner.at, processors.turn(turn)), (at(30), None));
        assert_eq!(processors.turn(sooner), Some(2));
        // No other process runs while 2 does. Then both others have a turn before 2 has another.
        assert_eq!(processors.wake(1, at(31)), None);
        let next = processors.leave(2, at(50)).unwrap();
        assert_eq!((next.at, processors.turn(next)), (at(60), Some(0)));
        let last = processors.leave(0, at(60)).unwrap();
        assert_eq!((last.at, processors.turn(last)), (at(70), Some(1)));
    }

    /// The members of one processor in the order of their turns, for some rounds.
    fn order(processors: &mut Processors, size: u32, rounds: u32) -> Vec<u32> {
        let mut now = at(0);
        let mut turns = Vec::new();
        let mut turn = (0..size).filter_map(|member| processors.wake(member, now)).last();
        for _ in 0..rounds * size {
            let next = turn.unwrap();
            let member = processors.turn(next).unwrap();
            turns.push(member);
            now = next.at;
            processors.wake(member, now);
            turn = processors.leave(member, now);
        }
        turns
    }

    #[test]
    fn all_have_a_turn_before_anybody_has_another_and_the_order_stays() {
        let mut processors = processors(&[(0..7).collect()], 1, 3);
        let turns = order(&mut processors, 7, 4);
        let mut all = turns[..7].to_vec();
        assert!(turns.chunks(7).all(|round| round == all), "{turns:?}");
        all.sort_unstable();
        assert_eq!(all, (0..7).collect::<Vec<_>>());
    }

    #[test]
    fn in_which_order_they_stand_follows_from_the_seed() {
        let of = |seed| order(&mut processors(&[(0..7).collect()], 1, seed), 7, 1);
        assert_eq!(of(1), of(1));
        assert!((2..9).any(|seed| of(seed) != of(1)));
    }

    #[test]
    fn a_member_that_wakes_while_it_has_its_processor_runs_at_once() {
        let mut processors = ring(&[0, 1]);
        processors.dwell(0, 7);
        processors.dwell(1, 3);
        // Member 0 has the processor from 10 to 17, 1 from 27 to 30, 0 from 40 on.
        for (member, wakes, runs) in
            [(0, 12, 12), (0, 18, 40), (1, 12, 27), (1, 29, 29), (1, 31, 57)]
        {
            let turn = processors.wake(member, at(wakes)).unwrap();
            assert_eq!(turn.at, at(runs), "{member} at {wakes}");
            processors.rings[0].next = None;
        }
    }

    #[test]
    fn a_member_that_wakes_later_does_not_delay_one_whose_turn_is_sooner() {
        let mut processors = ring(&[0, 1, 2]);
        let first = processors.wake(1, at(0)).unwrap();
        assert_eq!(first.at, at(20));
        assert_eq!(processors.wake(2, at(1)), None);
        assert_eq!(processors.turn(first), Some(1));
    }
}
