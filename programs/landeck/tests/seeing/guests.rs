//! Processes that join a running job, as from another terminal, and leave it.

use super::*;
use landeck::unstable::JobInternals;
use landeck::{Error, Options, Peer, Tag, World};
use std::process::ExitStatus;

/// In a guest: what it is to do.
const GUEST: &str = "LANDECK_TEST_GUEST";

/// The command that runs a test of this file as a guest.
fn guest(job: &Watched, test: &str, prefix: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let words = [prefix, &[program.to_str().unwrap(), test]].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--exact", "--nocapture", "--test-threads=1"]);
    command.env("XDG_RUNTIME_DIR", &job.runtime).env(GUEST, &job.name);
    job.trail.mark(&mut command);
    command
}

fn is_guest() -> Option<String> {
    std::env::var(GUEST).ok()
}

/// Rank 0's part: it meets one guest after the other; each sends a number and gets the next one.
fn meet_guests(job: &Job) {
    for number in 0.. {
        meet_guest(job, number, &[slot_of(number)]);
    }
}

/// Its part with one of them, which has one of these slots.
fn meet_guest(job: &Job, number: u32, slots: &[u32]) {
    let pair = |slot: &u32| job.world_of(CONTEXT + number, &[Peer(0), Peer(*slot)]).unwrap();
    let pairs: Vec<World> = slots.iter().map(pair).collect();
    // An error while the last guest is gone and the next not there.
    let received = pairs.iter().cycle().find_map(|pair| {
        std::thread::sleep(Duration::from_millis(2));
        Some((pair, pair.receive::<u64>(1, Tag(1)).ok()?.0))
    });
    let (pair, received) = received.unwrap();
    pair.send(&[received + 1], 1, Tag(2)).unwrap();
}

/// Where rank 0 and guest number n talk: this and n.
const CONTEXT: u32 = 100;
/// Slots for guests, behind those of the two ranks.
const GUESTS: u32 = 16;

/// Unused slots come first, then those of guests that are gone.
fn slot_of(number: u32) -> u32 {
    2 + number % GUESTS
}

/// A guest's part.
fn visit(name: &str, number: u32) {
    visit_as(name, number, &[slot_of(number)], number / GUESTS + 1);
}

/// The part of a guest that is to get one of these slots, with this incarnation.
fn visit_as(name: &str, number: u32, slots: &[u32], incarnation: u32) {
    let began = Instant::now();
    let job = Job::join_running(name, Options::default()).unwrap();
    println!("joined within {:?} as slot {}", began.elapsed(), job.slot());
    assert!(slots.contains(&job.slot()), "{} of {slots:?}", job.slot());
    assert_eq!(job.process().incarnation.0, incarnation);
    let pair = job.world_of(CONTEXT + number, &[Peer(0), Peer(job.slot())]).unwrap();
    pair.send(&[41u64], 0, Tag(1)).unwrap();
    assert_eq!(pair.receive::<u64>(0, Tag(2)).unwrap().0, 42);
    job.leave().unwrap();
}

fn succeeded(mut command: Command) -> ExitStatus {
    let said = command.output().unwrap();
    assert!(said.status.success(), "{}", support::text(&said));
    said.status
}

#[test]
fn guests_come_go_and_others_take_their_slots() {
    const TEST: &str = "guests::guests_come_go_and_others_take_their_slots";
    if let Some(name) = is_guest() {
        let number = std::env::var("LANDECK_TEST_NUMBER").unwrap().parse().unwrap();
        return visit(&name, number);
    }
    if is_member() {
        return take_part(|job, world| match world.rank() {
            0 => meet_guests(job),
            _ => stay(),
        });
    }
    let job = Watched::start(2, TEST);
    job.until_said(&["ps"], "rank 1");
    for number in 0..GUESTS + 2 {
        let mut command = guest(&job, TEST, &[]);
        command.env("LANDECK_TEST_NUMBER", number.to_string());
        succeeded(command);
        job.until_said(&["ps"], "guest 2");
    }
    job.end();
}

/// Processes of the first world in the test below; the last two of them leave.
const RANKS: u32 = 4;

/// The slots that guest number n may get there: an unused one, one of the two that left, the first guest's.
fn slots_after_ranks(number: u32) -> Vec<u32> {
    match number.checked_sub(GUESTS) {
        None => vec![RANKS + number],
        Some(0 | 1) => vec![2, 3], // whichever process ended first
        Some(later) => vec![2 + later],
    }
}

/// The part of ranks 0 and 1. A guest that left stays gone, whichever process has its slot.
fn stay_when_others_leave(job: &Job, world: &World) {
    let has_left = |error: Error| error.to_string().contains("has left");
    if world.rank() == 1 {
        assert!(world.receive::<u64>(3, Tag(9)).is_err_and(has_left));
        let _ = world.receive::<u64>(0, Tag(9)); // until the job ends
        return;
    }
    (0..GUESTS).for_each(|number| meet_guest(job, number, &slots_after_ranks(number)));
    assert!(world.send(&[1u64], 2, Tag(9)).is_err_and(has_left));
    (GUESTS..GUESTS + 2).for_each(|number| meet_guest(job, number, &slots_after_ranks(number)));
    assert!(world.send(&[1u64], 2, Tag(9)).is_err_and(has_left));
    assert!(world.barrier().is_err_and(has_left));
    // A rank that has found all that meets the last guest.
    meet_guest(job, GUESTS + 2, &slots_after_ranks(GUESTS + 2));
    stay();
}

#[test]
fn guests_take_the_slots_of_ranks_that_left() {
    const TEST: &str = "guests::guests_take_the_slots_of_ranks_that_left";
    if let Some(name) = is_guest() {
        let number = std::env::var("LANDECK_TEST_NUMBER").unwrap().parse().unwrap();
        let incarnation = 1 + u32::from(number >= GUESTS);
        return visit_as(&name, number, &slots_after_ranks(number), incarnation);
    }
    if is_member() {
        return take_part(|job, world| {
            world.barrier().unwrap();
            match world.rank() {
                0 | 1 => stay_when_others_leave(job, world),
                _ => {}
            }
        });
    }
    let job = Watched::start(RANKS as usize, TEST);
    job.until_said(&["ps"], "2 left");
    for number in 0..GUESTS + 3 {
        let mut command = guest(&job, TEST, &[]);
        command.env("LANDECK_TEST_NUMBER", number.to_string());
        succeeded(command);
    }
    let said = job.until_said(&["ps"], "guest 2");
    assert!(said.contains("rank 1") && !said.contains("rank 2"), "{said}");
    job.end();
}

#[test]
fn a_container_with_namespaces_of_its_own_joins_by_the_file() {
    const TEST: &str = "guests::a_container_with_namespaces_of_its_own_joins_by_the_file";
    if let Some(name) = is_guest() {
        return visit(&name, 0);
    }
    if is_member() {
        return take_part(|job, world| match world.rank() {
            0 => meet_guests(job),
            _ => stay(),
        });
    }
    let unshare = ["unshare", "--net", "--pid", "--fork"];
    let is_permitted = Command::new(unshare[0]).args(&unshare[1..]).arg("true").output();
    if !is_permitted.is_ok_and(|ended| ended.status.success()) {
        return support::skipped(TEST, "namespaces are not permitted here");
    }
    let job = Watched::start(2, TEST);
    job.until_said(&["ps"], "rank 1");
    succeeded(guest(&job, TEST, &unshare));
    job.end();
}

#[test]
fn a_program_started_by_hand_finds_the_job_that_the_environment_names() {
    const TEST: &str = "guests::a_program_started_by_hand_finds_the_job_that_the_environment_names";
    if is_guest().is_some() {
        let job = Job::join().unwrap();
        assert_eq!(job.slot(), 1, "not a job of one");
        return job.leave().unwrap();
    }
    if is_member() {
        return take_part(|_, _| stay());
    }
    let job = Watched::start(1, TEST);
    job.until_said(&["ps"], "rank 0");
    let mut command = guest(&job, TEST, &[]);
    command.env("LANDECK_JOB", &job.name);
    succeeded(command);
    let mut command = guest(&job, TEST, &[]);
    let said = command.env("LANDECK_JOB", "nobody is called so").output().unwrap();
    assert!(
        !said.status.success() && support::text(&said).contains("no job is called"),
        "{said:?}"
    );
    job.end();
}
