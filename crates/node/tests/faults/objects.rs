//! A process that overwrites random words of the objects that all use (regions, mailboxes and their
//! marks, semaphores, shared segments): the others get errors or wrong data, and never crash, fail an
//! assertion of ours, or hang in a call that has a limit.

use std::fs::File;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::unstable::joining::objects::{self, Name, ObjectKind};
use landeck::unstable::memory::SegmentPlan;
use landeck::{
    Job, Mailbox, MailboxAddress, Message, Region, RegionAddress, RemoteRegion, Result, Semaphore,
    SharedSegment, World,
};
use landeck_testing::{Random, Trail, Watchdog, seed};

use crate::scribble::{
    EPISODE, EPISODE_MAX, EPISODES, EPISODES_SOAK, PROCESSES, SCRIBBLER, SEED, WHOLE, draw_word,
    heap_of, judge, options, watch_calls,
};
use crate::support::{GONE_WITHIN, RUN_MAX, is_member, is_soak, job_of};

const REGION_BYTES: usize = 4_000;
const UNITS: u32 = 2;

#[test]
fn scribbles_over_objects_crash_nobody() {
    if is_member() {
        return take_part();
    }
    let episodes = if is_soak() { EPISODES_SOAK } else { EPISODES };
    let _watchdog = Watchdog::start(RUN_MAX + EPISODE_MAX * episodes);
    let mut random = Random::new(seed());
    for _ in 0..episodes {
        let name = "objects::scribbles_over_objects_crash_nobody";
        let mut command = job_of(PROCESSES, name, options(&mut random));
        command.env(SEED, random.bits().to_string());
        let trail = Trail::new();
        let ended = trail.run(&mut command, RUN_MAX);
        trail.assert_gone(GONE_WITHIN);
        judge(&ended, false);
    }
}

fn take_part() {
    let job = Job::join().unwrap();
    let world = job.world();
    let mut random = Random::new(std::env::var(SEED).unwrap().parse().unwrap());
    (0..world.rank()).for_each(|_| random = Random::new(random.bits()));
    let mut objects = Objects::make(&job, &world);
    if world.rank() == SCRIBBLER {
        scribble(&job, &mut random);
    } else {
        use_objects(&job, &mut objects, &mut random);
        println!("{WHOLE}");
    }
    // As in the other scribbles.
    std::process::exit(0);
}

/// The objects that a process owns, and those of other processes that it uses.
struct Objects {
    region: Region,
    mailbox: Mailbox,
    regions: Vec<RegionAddress>,
    opened: Vec<RemoteRegion>,
    mailboxes: Vec<MailboxAddress>,
    semaphore: Semaphore,
    segment: SharedSegment,
}

impl Objects {
    fn make(job: &Job, world: &World) -> Self {
        let (region, mut mailbox) =
            (job.create_region(REGION_BYTES).unwrap(), job.create_mailbox().unwrap());
        mailbox.register(format!("of {}", world.rank())).unwrap();
        // They live as long as anybody uses them.
        let made = (world.rank() == 0).then(|| {
            let semaphore = job.create_semaphore("units", UNITS).unwrap();
            (semaphore, job.create_segment("memory", 8_192).unwrap())
        });
        let mut regions = vec![[0; RegionAddress::WORDS]; PROCESSES];
        let mut mailboxes = vec![[0; MailboxAddress::WORDS]; PROCESSES];
        for rank in 0..PROCESSES {
            if world.rank() == rank {
                regions[rank] = region.address().to_words();
                mailboxes[rank] = mailbox.address().to_words();
            }
            world.broadcast(&mut regions[rank], rank).unwrap();
            world.broadcast(&mut mailboxes[rank], rank).unwrap();
        }
        // Nothing is overwritten before everybody has everything: the barrier.
        let regions: Vec<_> = regions.into_iter().map(RegionAddress::from_words).collect();
        let objects = Self {
            opened: regions.iter().map(|&address| job.open_region(address).unwrap()).collect(),
            mailboxes: mailboxes.into_iter().map(MailboxAddress::from_words).collect(),
            semaphore: job.open_semaphore("units").unwrap(),
            segment: job.open_segment("memory").unwrap(),
            region,
            mailbox,
            regions,
        };
        world.barrier().unwrap();
        drop(made);
        objects
    }
}

/// Overwrites words of objects for an episode.
fn scribble(job: &Job, random: &mut Random) {
    let name = |name: &str| Name::new(name).unwrap();
    let open =
        |kind, of: &str| File::from(objects::open(job.process(), kind, &name(of)).unwrap().1);
    let semaphore = open(ObjectKind::Semaphore, "units");
    let memory = open(ObjectKind::Segment, "memory");
    let segment = File::from(job.segment().descriptor().unwrap().try_clone_to_owned().unwrap());
    let plan = job.segment().plan();
    let began = Instant::now();
    let at_once = 1 << random.below(8);
    let pause = Duration::from_micros(random.below(500));
    let mut count = 0u64;
    while began.elapsed() < EPISODE {
        thread::sleep(pause);
        for _ in 0..at_once {
            let semaphore_bytes = 128 + 16 * u64::from(plan.slots());
            let (file, place) = match random.below(8) {
                0 | 1 => (&semaphore, random.below(semaphore_bytes / 8) * 8),
                2 => (&memory, random.below(1_024) * 8),
                _ => (&segment, draw_place(plan, random)),
            };
            let mut word = [0; 8];
            let _ = rustix::io::pread(file, &mut word, place);
            let word = draw_word(u64::from_ne_bytes(word), random);
            assert_eq!(rustix::io::pwrite(file, &word.to_ne_bytes(), place), Ok(8), "at {place}");
            count += 1;
        }
    }
    println!("{count} words were overwritten");
}

/// Heaps where regions and marks are, mailboxes, and pages that several write.
fn draw_place(plan: &SegmentPlan, random: &mut Random) -> u64 {
    let slot = random.below(PROCESSES as u64) as u32;
    let (start, bytes) = match random.below(8) {
        0 => (plan.shared_page(slot), 1_024),
        1 => (plan.mailbox(slot), plan.credit(slot, 0) - plan.mailbox(slot)),
        2 => (plan.ring(slot, 0), 8_192),
        3..6 => (heap_of(plan, slot, random), 2_048),
        _ => (heap_of(plan, slot, random), 64 << 10),
    };
    start + random.below(bytes / 8) * 8
}

fn use_objects(job: &Job, objects: &mut Objects, random: &mut Random) {
    let beats = watch_calls();
    let began = Instant::now();
    let (mut good, mut bad) = (0u64, 0u64);
    while began.elapsed() < EPISODE + EPISODE / 4 {
        beats.fetch_add(1, Ordering::Relaxed);
        match call(job, objects, random) {
            Ok(()) => good += 1,
            Err(_) => bad += 1,
        }
    }
    println!("{good} calls went well, {bad} did not");
}

/// One call, or a few that belong together, of a kind that ends by itself.
fn call(job: &Job, objects: &mut Objects, random: &mut Random) -> Result<()> {
    let peer = random.below(PROCESSES as u64) as usize;
    let moment = Duration::from_micros(random.below(2_000));
    let mut values = vec![random.bits(); 8 + random.below(300) as usize];
    let offset = 8 * random.below(600) as usize;
    match random.below(16) {
        0 => objects.opened[peer].put(offset, &values),
        1 => objects.opened[peer].put_and_notify(offset, &values[..1]),
        2 => objects.opened[peer].get(offset, &mut values),
        3 => objects.opened[peer].fetch_add(offset, 1).map(drop),
        4 => objects.opened[peer].compare_swap(offset, values[0], 1).map(drop),
        5 => objects.region.wait_notified_within(1, moment),
        6 => {
            objects.opened[peer] = job.open_region(objects.regions[peer])?;
            objects.region.read(offset, &mut values)
        }
        7 | 8 => {
            let mut message = Message::new();
            message.pack_text("word").pack(&values);
            job.open_mailbox_by_address(objects.mailboxes[peer])?.try_post(&message)
        }
        9 => job.open_mailbox_by_address(objects.mailboxes[peer])?.try_post_values(&values),
        10 => objects.opened[peer].swap(offset, values[0]).map(drop),
        11 => {
            let mut message = objects.mailbox.retrieve_within(moment)?;
            message.unpack_text()?;
            drop(message.unpack_all::<u64>());
            Ok(())
        }
        12 => objects.mailbox.try_retrieve_values(&mut values).map(drop),
        13 => match objects.semaphore.take_within(moment) {
            Ok(permit) => {
                drop(permit);
                objects.semaphore.recover().map(drop)
            }
            Err(error) => objects.semaphore.recover().map(drop).and(Err(error)),
        },
        14 => objects.semaphore.give(random.below(3) as u32),
        _ => {
            objects.segment.write(offset % 4_096, &values[..8])?;
            objects.segment.read(offset % 4_096, &mut values[..8])?;
            job.open_mailbox(format!("of {peer}")).map(drop)
        }
    }
}
