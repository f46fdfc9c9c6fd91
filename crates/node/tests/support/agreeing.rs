//! The steps of members that agree, make groups and shrink while others are killed.

use std::thread;
use std::time::Duration;

use landeck::{Agreement, ErrorKind, Job, World};
use landeck_testing::Random;

use super::kill_myself;

/// All kills of a job happen within this time.
const KILLS_WITHIN_US: u64 = 30_000;

/// Kills this process at a moment that it does not choose, unless it is the one that is to live.
pub(crate) fn arm(own: usize, processes: usize, seed: u64) {
    let mut random = Random::new(seed);
    let survivor = random.below(processes as u64);
    let moments: Vec<u64> = (0..processes).map(|_| random.below(KILLS_WITHIN_US)).collect();
    if own as u64 == survivor {
        return;
    }
    thread::spawn(move || {
        thread::sleep(Duration::from_micros(moments[own]));
        kill_myself()
    });
}

/// The belief of a member: all agreements in order, as one number.
#[derive(Default)]
pub(crate) struct Belief {
    digest: u64,
    pub(crate) agreements: u64,
    pub(crate) shrinks: u64,
}

impl Belief {
    fn add(&mut self, word: u64) {
        self.digest = (self.digest ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
    }

    fn add_agreement(&mut self, agreement: &Agreement) {
        self.agreements += 1;
        self.add(u64::from(agreement.flags) << 1 | u64::from(agreement.are_acknowledged));
        agreement.gone.iter().for_each(|&rank| self.add(rank as u64));
    }
}

/// One thing done together, then what comes of it: agreed on by all.
pub(crate) fn next_world(job: &Job, world: World, round: u64, belief: &mut Belief) -> World {
    let done = match round % 4 {
        0 => world.barrier().map(|()| None),
        1 => world.split(Some(0), 0),
        2 => world.duplicate().map(Some),
        _ => compare(&world, belief).map(|()| None),
    };
    if let Err(error) = &done {
        let is_expected =
            matches!(error.kind, ErrorKind::PeerFailed { .. } | ErrorKind::Revoked { .. });
        assert!(is_expected, "{error}");
        world.revoke().unwrap();
    }
    let flags = u32::from(done.is_ok()) | 2;
    let agreement = world.agree_on_failures(flags).unwrap();
    belief.add_agreement(&agreement);
    if agreement.flags == 3 && agreement.gone.is_empty() {
        return done.unwrap().unwrap_or(world);
    }
    let smaller = world.shrink().unwrap();
    belief.shrinks += 1;
    belief.add(smaller.size() as u64);
    let own_place = smaller.rank() < smaller.size();
    assert!(own_place && smaller.size() + agreement.gone.len() <= world.size());
    job.acknowledge_failures().unwrap();
    smaller
}

fn compare(world: &World, belief: &Belief) -> landeck::Result<()> {
    let mut all = vec![0; world.size()];
    world.all_gather(&[belief.digest], &mut all)?;
    assert!(all.iter().all(|&digest| digest == belief.digest), "{all:x?}");
    Ok(())
}
