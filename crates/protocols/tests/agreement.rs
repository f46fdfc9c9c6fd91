//! Agreement and flood in simulated groups whose members die: one member at every step of many schedules, and several
//! members anywhere in many more.
//!
//! Messages between two members stay in order; everything else happens in an order drawn from a seed. A member may die
//! between two messages that belong together, and some of its last messages may be lost. The others learn of it one
//! after the other, at any time later.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use landeck_protocols::agreement::{
    Agreement, Input, MemberStanding, Message, Outcome, Part, Send,
};
use landeck_protocols::flood::Flood;
use landeck_testing::{Random, Watchdog, seed};

/// The time limit of each test.
const TIME_MAX: Duration = Duration::from_secs(300);
/// A schedule that takes more steps does not end.
const STEPS_MAX: usize = 100_000;

/// A group whose members agree several times.
struct World {
    random: Random,
    members: Vec<Agreement>,
    is_dead: Vec<bool>,
    /// The number of agreements that each member has brought a part to.
    brought: Vec<u32>,
    rounds: u32,
    links: BTreeMap<(u32, u32), VecDeque<Message>>,
    /// Deaths that members have yet to learn of: the member, and the dead one.
    untold: Vec<(u32, u32)>,
    /// The decisions of each member, by the number of the agreement.
    decided: Vec<Vec<Outcome>>,
    steps: usize,
    /// At this step the acting member dies, after so many of its messages.
    kill_at: Option<(usize, usize)>,
    /// The number of further deaths, anywhere.
    kills_left: u32,
    /// The number of messages that the last acting member had to send.
    last_sent: usize,
}

impl World {
    fn new(seed: u64, size: u32, rounds: u32) -> Self {
        Self {
            random: Random::new(seed),
            members: (0..size).map(|own| Agreement::new(size, own)).collect(),
            is_dead: vec![false; size as usize],
            brought: vec![0; size as usize],
            rounds,
            links: BTreeMap::new(),
            untold: Vec::new(),
            decided: vec![Vec::new(); size as usize],
            steps: 0,
            kill_at: None,
            kills_left: 0,
            last_sent: 0,
        }
    }

    /// Takes steps until none is possible.
    fn run(&mut self) {
        while let Some(step) = self.next_step() {
            self.steps += 1;
            assert!(self.steps < STEPS_MAX, "it does not end");
            self.take(step);
            if self.kills_left > 0 && self.random.once_in(12) {
                self.kills_left -= 1;
                let victim = self.random.below(self.members.len() as u64) as u32;
                self.kill(victim);
            }
        }
    }

    fn next_step(&mut self) -> Option<Step> {
        let living = (0..self.members.len() as u32).filter(|&at| !self.is_dead[at as usize]);
        let is_free = |at: &u32| {
            let at = *at as usize;
            !self.members[at].is_under_way() && self.brought[at] < self.rounds
        };
        let mut steps: Vec<Step> = living.filter(is_free).map(Step::Bring).collect();
        let waiting = self.links.iter().filter(|(_, queue)| !queue.is_empty());
        steps.extend(waiting.map(|(&(from, to), _)| Step::Deliver(from, to)));
        steps.extend((0..self.untold.len()).map(Step::Tell));
        (!steps.is_empty()).then(|| *self.random.pick(&steps))
    }

    fn take(&mut self, step: Step) {
        let (acting, out) = match step {
            Step::Bring(own) => {
                self.brought[own as usize] += 1;
                let flags = !(1 << own) & 0xffff | self.brought[own as usize] << 16;
                let part = Part { flags, acknowledged: vec![], offer: [u64::from(own) + 1, 0, 0] };
                (own, self.members[own as usize].bring(part))
            }
            Step::Deliver(from, to) => {
                let message = self.links.get_mut(&(from, to)).unwrap().pop_front().unwrap();
                if self.is_dead[to as usize] {
                    return;
                }
                // In its encoded form, as it travels.
                let message = Message::from_words(&message.to_words()).unwrap();
                (to, self.members[to as usize].handle(Input::Heard { from, message }))
            }
            Step::Tell(at) => {
                let (who, member) = self.untold.swap_remove(at);
                if self.is_dead[who as usize] {
                    return;
                }
                let standing = MemberStanding::Died;
                (who, self.members[who as usize].handle(Input::Gone { member, standing }))
            }
        };
        self.last_sent = out.len();
        let dies_after = self.kill_at.filter(|&(step, _)| step == self.steps).map(|(_, sent)| sent);
        for Send { to, message } in out.into_iter().take(dies_after.unwrap_or(usize::MAX)) {
            self.links.entry((acting, to)).or_default().push_back(message);
        }
        // It may have acted upon the outcome before it died.
        self.note_decision(acting);
        if dies_after.is_some() {
            self.kill(acting);
        }
    }

    fn note_decision(&mut self, own: u32) {
        let (member, decided) = (&self.members[own as usize], &mut self.decided[own as usize]);
        if decided.len() < self.brought[own as usize] as usize
            && let Some(outcome) = member.outcome()
        {
            decided.push(outcome.clone());
        }
    }

    fn kill(&mut self, victim: u32) {
        if std::mem::replace(&mut self.is_dead[victim as usize], true) {
            return;
        }
        let others = (0..self.members.len() as u32).filter(|&other| other != victim);
        for other in others {
            self.untold.push((other, victim));
            if let Some(queue) = self.links.get_mut(&(victim, other)) {
                let kept = self.random.below(queue.len() as u64 + 1) as usize;
                queue.truncate(kept);
            }
        }
    }

    /// Checks that all decisions are equal, that living members decided everything, that no living member counts as
    /// gone, and that all living members have their part in it.
    fn check(&self) {
        for number in 0..self.rounds as usize {
            let mut outcomes = self.decided.iter().filter_map(|decided| decided.get(number));
            let Some(first) = outcomes.next() else { continue };
            assert!(outcomes.all(|outcome| outcome == first), "members differ in {number}");
            for own in (0..self.members.len()).filter(|&own| !self.is_dead[own]) {
                assert_eq!(first.standing[own], MemberStanding::Lives);
                assert_eq!(first.flags() >> own & 1, 0, "the part of {own} counts");
                assert_eq!(first.flags() >> 16, number as u32 + 1);
            }
        }
        for own in (0..self.members.len()).filter(|&own| !self.is_dead[own]) {
            assert_eq!(self.decided[own].len(), self.rounds as usize, "{own} still waits");
        }
    }
}

#[derive(Clone, Copy)]
enum Step {
    Bring(u32),
    /// A message from one member to another arrives.
    Deliver(u32, u32),
    Tell(usize),
}

#[test]
fn nobody_dies() {
    let _watchdog = Watchdog::start(TIME_MAX);
    let mut random = Random::new(seed());
    for size in 1..=8 {
        for _ in 0..50 {
            let mut world = World::new(random.bits(), size, 5);
            world.run();
            world.check();
            assert!(world.decided[0].iter().all(|outcome| outcome.gone().is_empty()));
        }
    }
}

/// Each schedule is played again for each of its steps, and for each message that this step sends: the acting member
/// then dies right there.
#[test]
fn one_member_dies_at_every_step() {
    let _watchdog = Watchdog::start(TIME_MAX);
    let mut random = Random::new(seed());
    let mut played = 0;
    for size in 2..=5 {
        for _ in 0..15 {
            let seed = random.bits();
            let mut whole = World::new(seed, size, 2);
            whole.run();
            for step in 1..=whole.steps {
                for sent in 0..=size as usize {
                    let mut world = World::new(seed, size, 2);
                    world.kill_at = Some((step, sent));
                    world.run();
                    world.check();
                    played += 1;
                }
            }
        }
    }
    assert!(played > 5_000, "{played}");
}

#[test]
fn any_number_of_members_die_anywhere() {
    let _watchdog = Watchdog::start(TIME_MAX);
    let is_soak = std::env::var_os("LANDECK_SOAK").is_some();
    let mut random = Random::new(seed());
    for _ in 0..if is_soak { 200_000 } else { 10_000 } {
        let size = 2 + random.below(7) as u32;
        let mut world = World::new(random.bits(), size, 3);
        world.kills_left = random.below(u64::from(size)) as u32;
        world.run();
        world.check();
    }
}

/// Checks that a revocation reaches all living members if one of them has heard it.
#[test]
fn a_flood_reaches_all_that_live() {
    let _watchdog = Watchdog::start(TIME_MAX);
    let mut random = Random::new(seed());
    for _ in 0..20_000 {
        let size = 1 + random.below(12) as u32;
        let mut floods: Vec<Flood> = (0..size).map(|own| Flood::new(size, own)).collect();
        let mut is_dead = vec![false; size as usize];
        let mut going: Vec<(u32, u32)> = Vec::new();
        let mut untold: Vec<(u32, u32)> = Vec::new();
        let says = random.below(u64::from(size)) as u32;
        let send = |from: u32, to: Vec<u32>| to.into_iter().map(move |to| (from, to));
        going.extend(send(says, floods[says as usize].hear()));
        let mut kills = random.below(u64::from(size));
        while !(going.is_empty() && untold.is_empty()) {
            if kills > 0 && random.once_in(4) {
                kills -= 1;
                let victim = random.below(u64::from(size)) as u32;
                if !std::mem::replace(&mut is_dead[victim as usize], true) {
                    untold.extend((0..size).filter(|&to| to != victim).map(|to| (to, victim)));
                    going.retain(|&(from, _)| from != victim || random.once_in(2));
                }
                continue;
            }
            let at = random.below((going.len() + untold.len()) as u64) as usize;
            let (to, out) = match at.checked_sub(going.len()) {
                None => {
                    let (_, to) = going.swap_remove(at);
                    (to, floods[to as usize].hear())
                }
                Some(at) => {
                    let (to, gone) = untold.swap_remove(at);
                    (to, floods[to as usize].note_gone(gone))
                }
            };
            if !is_dead[to as usize] {
                going.extend(send(to, out));
            }
        }
        let living = || (0..size as usize).filter(|&at| !is_dead[at]);
        let heard = living().filter(|&at| floods[at].has_heard()).count();
        assert!(heard == 0 || heard == living().count(), "{heard} of {}", living().count());
    }
}
