//! A hardened job: all works as ever, and a stray write into what another process alone writes ends its
//! writer alone, whatever lies there.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::unstable::memory::heap::{Block, Heap};
use landeck::unstable::memory::{Presence, SlotRecord};
use landeck::{Error, ErrorKind, Job, Remote, Sum, Tag, World};
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
    share_loans(&job, &world);
    let region = job.create_region(64).unwrap();
    let mut words = [[0; landeck::RegionAddress::WORDS]; 3];
    words[rank] = region.address().to_words();
    (0..size).for_each(|root| world.broadcast(&mut words[root], root).unwrap());
    let remote = job.open_region(landeck::RegionAddress::from_words(words[next])).unwrap();
    let twice = job.open_region(remote.address()).unwrap();
    remote.put_and_notify(0, &[7u64]).unwrap();
    drop(remote);
    assert_eq!(twice.fetch_add(0, 1).unwrap(), 7, "it is open as long as anybody here has it");
    world.barrier().unwrap();
    assert_eq!(region.notifications().unwrap(), 1);
    let mut put = [0u64];
    region.read(0, &mut put).unwrap();
    assert_eq!(put, [8]);
    world.barrier().unwrap();
    drop(twice);
    let mut mailbox = job.create_mailbox().unwrap();
    mailbox.register(format!("of {rank}")).unwrap();
    world.barrier().unwrap();
    job.open_mailbox(format!("of {next}")).unwrap().post_values(&[rank as u32]).unwrap();
    let mut came = [0u32];
    mailbox.retrieve_values(&mut came).unwrap();
    assert_eq!(came, [last as u32]);
    world.barrier().unwrap();
    drop((region, mailbox, parts));
    job.leave().unwrap();
}

/// Blocks of a heap that one, or several, read where they lie, give back and get again.
fn share_loans(job: &Job, world: &World) {
    for round in 0..50u32 {
        let length = 1 + round as usize * 700;
        let root = round as usize % world.size();
        let others: Vec<_> = (0..world.size()).filter(|&rank| rank != root).collect();
        if world.rank() == root {
            let mut loan = job.loan::<u32>(length).unwrap();
            loan.fill(round);
            world.send_loan_to(loan, &others, Tag(5)).unwrap();
            let mut loan = job.loan::<u32>(length).unwrap();
            loan.fill(round + 1);
            world.send_loan(loan, others[0], Tag(6)).unwrap();
            continue;
        }
        let mut into = vec![0u32; length];
        world.receive_into(&mut into, root, Tag(5)).unwrap();
        assert!(into.iter().all(|&value| value == round));
        if world.rank() == others[0] {
            world.receive_into(&mut into, root, Tag(6)).unwrap();
            assert!(into.iter().all(|&value| value == round + 1));
        }
    }
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
            Err(Error { kind: ErrorKind::Connect(_), .. }) => {
                thread::sleep(Duration::from_millis(10));
            }
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
    assert!(matches!(gone.kind, ErrorKind::PeerFailed { .. }), "the other leaves first: {gone}");
}

#[test]
fn memory_that_two_jobs_map_of_each_other_is_hardened_too() {
    const NAME: &str = "LANDECK_TEST_NAME";
    const SIDE: &str = "LANDECK_TEST_SIDE";
    if is_member() {
        let job = Job::join().unwrap();
        let name = std::env::var(NAME).unwrap();
        match std::env::var(SIDE).unwrap().as_str() {
            "publish" => echo(&job.create_port(&name).unwrap().accept(RUN_MAX).unwrap()),
            _ => hear_echo(&connected(&job, &name)),
        }
        return job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let name = format!("hardening-test-{}", std::process::id());
    let jobs = ["publish", "connect"].map(|side| {
        let test = "hardening::memory_that_two_jobs_map_of_each_other_is_hardened_too";
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
    assert!(matches!(lost.kind, ErrorKind::PeerFailed { .. }), "{lost}");
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

/// The objects in rank 0's heap that rank 1 writes to: a filled loan that was not sent, data of a
/// message that was not received, memory of a region that rank 1 has not opened, and the mark of a
/// mailbox.
const OBJECTS: [&str; 4] = ["loan", "message", "region", "mailbox"];
const OBJECT: &str = "LANDECK_TEST_OBJECT";
/// The content of the first three objects.
const WORD: u64 = 0x216b_6365_646e_616c;

#[test]
fn a_stray_write_into_an_object_of_another_ends_its_writer() {
    const TEST: &str = "hardening::a_stray_write_into_an_object_of_another_ends_its_writer";
    if is_member() {
        return write_into_an_object();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX * OBJECTS.len() as u32);
    for object in OBJECTS {
        for harden in [&["--on-failure", "notify", "--harden"][..], &["--on-failure", "notify"]] {
            let trail = Trail::new();
            let ended = trail.run(job_of(3, TEST, harden).env(OBJECT, object), RUN_MAX);
            trail.assert_gone(GONE_WITHIN);
            let said = text(&ended);
            let is_hardened = harden.len() == 3;
            assert_eq!(said.contains("killed by signal 11"), is_hardened, "{object}: {said}");
            assert_eq!(said.contains("it was written"), !is_hardened, "{object}: {said}");
            assert_eq!(said.contains("it was changed"), !is_hardened, "{object}: {said}");
            assert!(said.matches("goes on\n").count() >= 2, "{object}: {said}");
        }
    }
}

fn write_into_an_object() {
    let job = Job::join().unwrap();
    let world = job.world();
    let heap = job.segment().plan().heap(0);
    let word_at = |place: u64| {
        let mut word = [0; 8];
        job.segment().bytes().part((heap + place) as usize, 8).copy_to_slice(&mut word);
        u64::from_ne_bytes(word)
    };
    let mut held: Vec<Box<dyn std::any::Any>> = Vec::new();
    let (place, before) = if world.rank() == 0 {
        let place = hold_object(&job, &world, &mut held);
        let before = word_at(place);
        world.send(&[place], 1, Tag(3)).unwrap();
        (place, before)
    } else {
        (0, 0)
    };
    if world.rank() == 1 {
        let (place, _) = world.receive::<u64>(0, Tag(3)).unwrap();
        let mut heap_of_another = Heap::of(job.segment(), 0).unwrap();
        let (mut block, at) = block_at(&mut heap_of_another, heap + place);
        block[at] ^= 0xff;
        println!("it was written");
        std::process::exit(3);
    }
    let lost = world.receive::<u8>(1, Tag(1)).unwrap_err();
    assert!(matches!(lost.kind, ErrorKind::PeerFailed { .. }), "{lost}");
    if world.rank() == 0 && word_at(place) != before {
        println!("it was changed");
    }
    println!("rank {} goes on", world.rank());
    std::process::exit(0);
}

/// Makes the object that is asked for; where it is in this process's heap.
fn hold_object(job: &Job, world: &World, held: &mut Vec<Box<dyn std::any::Any>>) -> u64 {
    let mut loan = job.loan::<u64>(50_000).unwrap();
    match std::env::var(OBJECT).unwrap().as_str() {
        "loan" => {
            loan.fill(WORD);
            held.push(Box::new(loan));
        }
        "message" => {
            loan.fill(WORD);
            world.send_loan(loan, 2, Tag(7)).unwrap();
        }
        "region" => {
            let region = job.create_region(8_000).unwrap();
            region.write(0, &[WORD; 1_000]).unwrap();
            held.push(Box::new(region));
        }
        _ => {
            let mailbox = job.create_mailbox().unwrap();
            let [.., place] = mailbox.address().to_words();
            held.push(Box::new(mailbox));
            return place;
        }
    }
    let plan = job.segment().plan();
    let heap = job.segment().bytes().part(plan.heap(0) as usize, 8 << 20).to_vec();
    let mut words = heap.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    let first = words.position(|word| word == WORD).unwrap() as u64;
    8 * (first + 500)
}

/// A block that one who takes itself for the owner of a heap gets there, over a place that it has not
/// given out: the word there is at this index.
fn block_at(heap: &mut Heap, place: u64) -> (Block, usize) {
    let large = heap.allocate(4 << 20).unwrap();
    if large.offset() <= place {
        let at = place - large.offset();
        return (large, at as usize);
    }
    let mut others = vec![large];
    loop {
        let block = heap.allocate(8).unwrap();
        let at = place.checked_sub(block.offset()).filter(|&at| at < 8);
        if let Some(at) = at {
            return (block, at as usize);
        }
        others.push(block);
        assert!(others.len() < 1_000, "the heap is not laid out so");
    }
}
