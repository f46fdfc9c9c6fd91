//! kill -9 of half of the members of a named group at any moment, while all broadcast, synchronise,
//! join and leave: those that live have retrieved the same, each message once, and nobody hangs.

use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::{Error, ErrorKind, Group, GroupError, GroupOptions, Job, Mailbox, Member, Message};
use landeck_testing::{Random, Trail, Watchdog, seed};

use crate::support::{
    GONE_WITHIN, RUN_MAX, is_member, is_soak, kill_myself, run_each, seed_of_job, seeded_job_of,
    text,
};

const JOBS: u64 = 30;
const JOBS_SOAK: u64 = 1_000;
const PROCESSES: usize = 6;
const SURVIVORS: usize = 3;
const JOB_MAX: Duration = Duration::from_secs(10);
const KILLS_WITHIN_US: u64 = 40_000;
const DONE: &str = "survivor done";
/// Each survivor sends as many at least, however early the others die.
const SENT_MIN: u64 = 10;
const LAST: u64 = 1 << 40;

const TEST: &str = "named_groups::those_who_live_retrieve_the_same_whoever_dies_whenever";

#[test]
fn those_who_live_retrieve_the_same_whoever_dies_whenever() {
    if is_member() {
        return take_part();
    }
    let jobs = if is_soak() { JOBS_SOAK } else { JOBS };
    let _watchdog = Watchdog::start(JOB_MAX * jobs as u32 + RUN_MAX);
    let (seed, began) = (seed(), Instant::now());
    let seen = run_each(jobs, |number| run(seed.wrapping_add(number << 32)));
    let (kills, messages) = (jobs * (PROCESSES - SURVIVORS) as u64, seen.iter().sum::<u64>());
    println!("{kills} kills in {:?}: {messages} messages retrieved alike", began.elapsed());
    assert!(messages > 20 * jobs);
}

/// One job; how many messages its survivors have retrieved.
fn run(seed: u64) -> u64 {
    let trail = Trail::new();
    let ended = trail.run(&mut seeded_job_of(PROCESSES, TEST, seed), RUN_MAX);
    let output = text(&ended);
    assert_eq!(ended.status.code(), Some(137), "seed {seed}: {output}");
    assert!(!output.contains("panicked"), "seed {seed}: {output}");
    assert_eq!(output.matches(DONE).count(), SURVIVORS, "seed {seed}: {output}");
    trail.assert_gone(GONE_WITHIN);
    let told = output.lines().find_map(|line| Some(line.split_once(DONE)?.1));
    told.and_then(|told| told.trim().parse().ok()).unwrap_or_else(|| panic!("{output}"))
}

/// A member with what it has retrieved.
struct Part<'a> {
    job: &'a Job,
    group: Group,
    inbox: Mailbox,
    member: Option<Member>,
    seen: Vec<u64>,
    random: Random,
    sent: u64,
}

fn take_part() {
    let job = Job::join().unwrap();
    let world = job.world();
    let seed = seed_of_job();
    let options = GroupOptions::default().messages(32).bytes(4 << 20).minimum(PROCESSES as u32);
    let made = (world.rank() == 0).then(|| job.create_group("kills", options).unwrap());
    world.barrier().unwrap();
    let group = made.unwrap_or_else(|| job.open_group("kills").unwrap());
    let mut inbox = job.create_mailbox().unwrap();
    let member = Some(group.join(&mut inbox).unwrap());
    world.barrier().unwrap();
    let random = Random::new(seed.wrapping_add(world.rank() as u64));
    let mut part = Part { job: &job, group, inbox, member, seen: Vec::new(), random, sent: 0 };
    if world.rank() >= SURVIVORS {
        let moment = Duration::from_micros(part.random.below(KILLS_WITHIN_US));
        thread::spawn(move || {
            thread::sleep(moment);
            kill_myself()
        });
        loop {
            part.go_on();
            part.come_and_go();
        }
    }
    while !part.victims_are_gone() || part.sent < SENT_MIN {
        part.go_on();
    }
    part.compare();
    println!("{DONE} {}", part.seen.len());
    job.leave().unwrap();
}

impl Part<'_> {
    fn go_on(&mut self) {
        let number = (self.job.slot() as u64) << 32 | self.sent;
        if self.send(number, self.sent.is_multiple_of(7)) {
            self.sent += 1;
        }
        self.retrieve();
        if self.random.below(10) == 0 {
            self.synchronise();
        }
    }

    /// Broadcasts a message; returns false if there is no room or no membership, whereupon the
    /// caller retrieves.
    fn send(&mut self, number: u64, is_long: bool) -> bool {
        let mut message = Message::new();
        let length = if is_long { 20_000 } else { 1 };
        message.pack(&vec![number; length]);
        let Some(member) = &self.member else { return false };
        match member.broadcast_within(&message, Duration::from_micros(200)) {
            Ok(()) => true,
            Err(Error { kind: ErrorKind::Group(GroupError::Full { .. }), .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn retrieve(&mut self) {
        while let Some(mut message) = self.inbox.try_retrieve().unwrap() {
            let values = message.unpack_all::<u64>();
            assert!(values.iter().all(|value| *value == values[0]), "a message is whole");
            self.seen.push(values[0]);
        }
    }

    fn synchronise(&mut self) {
        let Some(member) = &mut self.member else { return };
        // A process that waits for room does not arrive at the synchronisation, so this waits only
        // briefly.
        match member.sync_within(Duration::from_millis(2)) {
            Ok(())
            | Err(Error {
                kind: ErrorKind::TimedOut(_) | ErrorKind::Group(GroupError::MemberDied { .. }),
                ..
            }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn come_and_go(&mut self) {
        if self.random.below(4) != 0 {
            return;
        }
        match self.member.take() {
            Some(member) => member.leave().unwrap(),
            None => self.member = Some(self.group.join(&mut self.inbox).unwrap()),
        }
        self.seen.clear();
    }

    fn victims_are_gone(&self) -> bool {
        let slots = SURVIVORS as u32..PROCESSES as u32;
        slots.into_iter().all(|slot| self.job.segment().slot_record(slot).state.is_gone())
    }

    /// Checks that all survivors have retrieved the same messages, without a gap in those of each
    /// sender.
    fn compare(&mut self) {
        let own = self.job.slot() as u64;
        while !self.send(LAST | own, false) {
            self.retrieve();
        }
        let lasts = |seen: &[u64]| seen.iter().filter(|&&value| value >= LAST).count();
        while lasts(&self.seen) < SURVIVORS {
            let mut message = self.inbox.retrieve_within(RUN_MAX).unwrap();
            self.seen.push(message.unpack_all::<u64>()[0]);
        }
        for sender in 0..PROCESSES as u64 {
            let numbers = self.seen.iter().filter(|&&value| value < LAST && value >> 32 == sender);
            for (expected, value) in (0..).zip(numbers) {
                assert_eq!(value & 0xffff_ffff, expected, "of sender {sender}");
            }
        }
        assert_eq!(self.group.view().unwrap().members.len(), SURVIVORS);
        let ranks: Vec<usize> = (0..SURVIVORS).collect();
        let world = self.job.world().among(&ranks, landeck::Tag(3)).unwrap();
        let mut length = [self.seen.len()];
        world.broadcast(&mut length, 0).unwrap();
        assert_eq!(length[0], self.seen.len());
        let mut first = self.seen.clone();
        world.broadcast(&mut first, 0).unwrap();
        assert_eq!(first, self.seen, "all that live have retrieved the same");
    }
}
