//! Faults, and the random numbers of a run, which follow from a seed and so can be repeated.

use std::collections::BTreeMap;
use std::str::FromStr;

use landeck_machine::quantity::Span;

use crate::time::Time;

/// The faults of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Each activity takes longer by its own random part of this many thousandths.
    pub jitter_permille: u32,
    /// The number of messages between hosts, of a million, that are lost and sent again.
    pub loss_per_million: u32,
    /// The time after which a lost message is sent again.
    pub resend_ps: u64,
    /// Members that end at some moment.
    pub deaths: Vec<Death>,
}

/// A member that ends at some moment and does nothing from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The member.
    pub member: u32,
    /// The moment of its end.
    pub at: Time,
}

/// A text that is not a death.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} does not say who ends when. Write the member, @ and a time of at most 10 s with its unit (ns, \
     us, ms, s), such as 3@12us"
)]
pub struct DeathError(String);

impl FromStr for Death {
    type Err = DeathError;

    fn from_str(text: &str) -> Result<Self, DeathError> {
        let read = || {
            let (member, at) = text.split_once('@')?;
            Some(Self {
                member: member.trim().parse().ok()?,
                at: Time::from_ps(Span::read(at)?.ps),
            })
        };
        read().ok_or_else(|| DeathError(text.into()))
    }
}

/// The random numbers of a run, and the order of each pair's messages.
#[derive(Debug)]
pub(crate) struct Chance {
    faults: Faults,
    state: u64,
    /// When the last message of each pair arrives. Few pairs whose time is past are kept.
    last: BTreeMap<(u32, u32), Time>,
    room: usize,
}

/// At this number of pairs, those whose time is past are dropped.
const FEW: usize = 1024;

impl Chance {
    pub(crate) fn new(faults: &Faults) -> Self {
        Self { faults: faults.clone(), state: faults.seed, last: BTreeMap::new(), room: FEW }
    }

    /// Adds the jitter to a length of time.
    pub(crate) fn stretched_ps(&mut self, picoseconds: u64) -> u64 {
        if self.faults.jitter_permille == 0 {
            return picoseconds;
        }
        let most = u128::from(picoseconds) * u128::from(self.faults.jitter_permille);
        let share = ((most * u128::from(self.random() >> 32)) >> 32) / 1000;
        picoseconds.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// The delay of a message by its losses.
    pub(crate) fn lost_ps(&mut self) -> u64 {
        let (mut late_ps, mut times) = (0u64, 0);
        while self.faults.loss_per_million > 0 && times < 16 && self.is_lost() {
            times += 1;
            late_ps = late_ps.saturating_add(self.faults.resend_ps);
        }
        late_ps
    }

    /// Shuffles by the algorithm of Fisher and Yates.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let other = self.random() % (last as u64 + 1);
            things.swap(last, other as usize);
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random() % 1_000_000 < u64::from(self.faults.loss_per_million)
    }

    /// The arrival of a message that could arrive at some moment: not before the earlier messages of its pair.
    pub(crate) fn in_order(&mut self, pair: (u32, u32), at: Time, now: Time) -> Time {
        if self.faults.jitter_permille == 0 && self.faults.loss_per_million == 0 {
            return at; // all ports keep the order
        }
        if self.last.len() >= self.room {
            self.last.retain(|_, last| *last >= now);
            self.room = FEW.max(2 * self.last.len());
        }
        let last = self.last.entry(pair).or_default();
        *last = at.max(*last + 1);
        *last
    }

    /// The next number of Vigna's SplitMix64. The generator is written here since published figures depend on its
    /// numbers.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(seed: u64, jitter_permille: u32, loss_per_million: u32) -> Chance {
        let faults =
            Faults { seed, jitter_permille, loss_per_million, resend_ps: 9, deaths: vec![] };
        Chance::new(&faults)
    }

    #[test]
    fn a_seed_gives_the_same_again() {
        let draw = |seed| {
            let mut chance = chance(seed, 100, 0);
            [1_000_000; 8].map(|span| chance.stretched_ps(span))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|span| (1_000_000..=1_100_000).contains(span)));
    }

    #[test]
    fn losses_cost_the_time_until_the_message_is_sent_again() {
        let mut chance = chance(7, 0, 500_000);
        let late: Vec<u64> = (0..1000).map(|_| chance.lost_ps()).collect();
        let lost = late.iter().filter(|&&late| late > 0).count();
        assert!((400..600).contains(&lost) && late.iter().all(|late| late % 9 == 0), "{lost}");
    }

    #[test]
    fn a_message_that_is_always_lost_arrives_some_time() {
        assert_eq!(chance(0, 0, 1_000_000).lost_ps(), 16 * 9);
    }

    #[test]
    fn an_order_that_nobody_has_chosen_has_everything_once() {
        let mut things: Vec<u32> = (0..50).collect();
        chance(1, 0, 0).shuffle(&mut things);
        assert_ne!(things, (0..50).collect::<Vec<_>>());
        things.sort_unstable();
        assert_eq!(things, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn a_death_is_a_member_and_a_time() {
        let death = Death { member: 3, at: Time::from_ps(1_500_000) };
        assert_eq!(("3@1.5us".parse(), "3 @ 1.5 us".parse()), (Ok(death), Ok(death)));
        for text in ["", "3", "3@", "3@soon", "3@5", "@5us", "-1@5us", "x@5us", "3@11s"] {
            let error = text.parse::<Death>().unwrap_err().to_string();
            assert!(error.contains("such as 3@12us"), "{error}");
        }
    }

    #[test]
    fn messages_of_a_pair_stay_in_order() {
        let mut chance = chance(0, 1, 0);
        let mut in_order = |pair, at| chance.in_order(pair, Time::from_ps(at), Time::ZERO).ps();
        assert_eq!([5, 3, 8].map(|at| in_order((0, 1), at)), [5, 6, 8]);
        assert_eq!(in_order((1, 0), 2), 2);
    }

    #[test]
    fn past_arrivals_are_forgotten() {
        let mut chance = chance(0, 1, 0);
        for number in 0..100_000 {
            let now = Time::from_ps(10 * u64::from(number));
            chance.in_order((number, 0), now + 50, now);
            assert!(chance.last.len() <= FEW, "five arrive at any time");
        }
        let now = Time::from_ps(999_990);
        assert_eq!(chance.in_order((99_999, 0), now + 7, now), now + 51, "not before the last");
    }
}
