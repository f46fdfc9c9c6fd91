//! A hardened job: all works as ever, and a stray write ends its writer alone.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use landeck::memory::{Presence, SlotRecord};
use landeck::{Error, Job, Remote, Sum, Tag};
use landeck_testing::{Trail, Watchdog};

use crate::support::{GONE_WITHIN, RUN_MAX, is_member, job_of, run_well, text};

/// More than fits into a ring.
const LONG: usize = 300_000;

#[test]
fn everything_works_as_in_any_other_job() {
    if !is_member() {
        let name = "hardening::everything_works_as_in_any_other_job";
        return run_well(&mut job_of(3, name, &["--harden"]));
    }
    let job = Job::join().unwrap();
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    assert!(job.segment().plan().is_hardened);
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for length in [1, 5, 100, 5_000, LONG] {
        let values = vec![rank as u64; length];
        let mut into = vec![0; length];
        let exchanged = world.scope(|scope| {
            let send = scope.send(&values, next, Tag(1))?;
            scope.receive_into(&mut into, last, Tag(1))?.wait()?;
            send.wait()
        });
        exchanged.unwrap();
        assert!(into.iter().all(|&value| value == last as u64));
        let mut sum = vec![1u64; length];
        world.all_reduce_in_place(&mut sum, Sum).unwrap();
        assert!(sum.iter().all(|&value| value == size as u64));
    }
    let parts = world.split(Some(rank as u32 % 2), 0).unwrap().unwrap();
    parts.barrier().unwrap();
    let region = job.register(64).unwrap();
    let mut words = [[0; landeck::RegionAddress::WORDS]; 3];
    words[rank] = region.address().to_words();
    (0..size).for_each(|root| world.broadcast(&mut words[root], root).unwrap());
    let remote = job.open_region(landeck::RegionAddress::from_words(words[next])).unwrap();
    remote.put_and_notify(0, &[7u64]).unwrap();
    world.barrier().unwrap();
    assert_eq!(region.notifications().unwrap(), 1);
    let mut mailbox = job.mailbox().unwrap();
    mailbox.register(format!("of {rank}")).unwrap();
    world.barrier().unwrap();
    job.find_mailbox(format!("of {next}")).unwrap().post_values(&[rank as u32]).unwrap();
    let mut came = [0u32];
    mailbox.retrieve_values(&mut came).unwrap();
    assert_eq!(came, [last as u32]);
    world.barrier().unwrap();
    drop((region, mailbox, parts));
    job.leave().unwrap();
}

/// Shared files of which this process has mapped a part for reading alone.
fn hardened_files() -> BTreeSet<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let fields = maps.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let hardened = fields.filter(|of| of[1] == "r--s" && of.len() > 5 && of[5].contains("memfd:"));
    hardened.map(|of| of[4].to_owned()).collect()
}

/// The way to the other job, as soon as it has published the name.
fn connected(job: &Job, name: &str) -> Remote {
    loop {
        match job.connect(name) {
            Ok(remote) => return remote,
            Err(Error::Connect(_)) => thread::sleep(Duration::from_millis(10)),
            Err(error) => panic!("{error}"),
        }
    }
}

fn assert_both_are_hardened() {
    assert_eq!(hardened_files().len(), 2, "its own segment, and the other's");
}

fn hear_echo(remote: &Remote) {
    assert_both_are_hardened();
    let mut values = vec![7u64; LONG];
    remote.send(&values, Tag(1)).unwrap();
    values.fill(0);
    remote.receive_into(&mut values, Tag(2)).unwrap();
    assert!(values.iter().all(|&value| value == 7));
}

fn echo(remote: &Remote) {
    assert_both_are_hardened();
    let mut values = vec![0u64; LONG];
    remote.receive_into(&mut values, Tag(1)).unwrap();
    remote.send(&values, Tag(2)).unwrap();
    let gone = remote.receive_into(&mut values, Tag(3)).unwrap_err();
    assert!(matches!(gone, Error::PeerFailed { .. }), "the other leaves first: {gone}");
}

#[test]
fn what_two_jobs_map_of_each_other_is_hardened_too() {
    const NAME: &str = "LANDECK_TEST_NAME";
    const SIDE: &str = "LANDECK_TEST_SIDE";
    if is_member() {
        let job = Job::join().unwrap();
        let name = std::env::var(NAME).unwrap();
        match std::env::var(SIDE).unwrap().as_str() {
            "publish" => echo(&job.publish(&name).unwrap().accept(RUN_MAX).unwrap()),
            _ => hear_echo(&connected(&job, &name)),
        }
        return job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let name = format!("hardening-test-{}", std::process::id());
    let jobs = ["publish", "connect"].map(|side| {
        let test = "hardening::what_two_jobs_map_of_each_other_is_hardened_too";
        let mut command = job_of(1, test, &["--harden"]);
        command.env(SIDE, side).env(NAME, &name).stdin(Stdio::null());
        trail.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    });
    for job in jobs {
        let ended = trail.finish(job, RUN_MAX);
        assert!(ended.status.success(), "{}", text(&ended));
    }
    trail.assert_gone(GONE_WITHIN);
}

/// Runs a job of three in which rank 1 writes where it should not; says what came of it.
fn run(test: &str, options: &[&str]) -> String {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let options = [&["--on-failure", "notify"], options].concat();
    let ended = trail.run(&mut job_of(3, test, &options), RUN_MAX);
    trail.assert_gone(GONE_WITHIN);
    text(&ended)
}

/// Everybody's part; `write` is the stray one.
fn take_part(write: impl FnOnce(&Job)) {
    let job = Job::join().unwrap();
    let world = job.world();
    world.barrier().unwrap();
    if world.rank() == 1 {
        write(&job);
        println!("it was written");
        std::process::exit(3);
    }
    let lost = world.receive::<u8>(1, Tag(1)).unwrap_err();
    assert!(matches!(lost, Error::PeerFailed { .. }), "{lost}");
    assert_eq!(job.segment().presence(0), Presence::Attached, "nothing was changed");
    println!("rank {} goes on", world.rank());
    std::process::exit(0);
}

fn assert_ended_alone(said: &str) {
    assert!(said.contains("was killed by signal 11"), "{said}");
    assert!(!said.contains("it was written") && said.matches("goes on\n").count() >= 2, "{said}");
}

#[test]
fn a_stray_write_into_another_page_ends_its_writer() {
    const TEST: &str = "hardening::a_stray_write_into_another_page_ends_its_writer";
    if is_member() {
        return take_part(|job| job.segment().set_presence(0, Presence::Finalized));
    }
    assert_ended_alone(&run(TEST, &["--harden"]));
}

#[test]
fn a_stray_write_into_the_membership_ends_its_writer() {
    const TEST: &str = "hardening::a_stray_write_into_the_membership_ends_its_writer";
    if is_member() {
        return take_part(|job| job.segment().set_slot_record(0, SlotRecord::default()));
    }
    assert_ended_alone(&run(TEST, &["--harden"]));
}

#[test]
fn without_hardening_the_same_write_reaches_the_other() {
    const TEST: &str = "hardening::without_hardening_the_same_write_reaches_the_other";
    if is_member() {
        // What it was, so that nobody is harmed.
        return take_part(|job| job.segment().set_presence(0, Presence::Attached));
    }
    let said = run(TEST, &[]);
    assert!(said.contains("it was written") && !said.contains("signal 11"), "{said}");
}
