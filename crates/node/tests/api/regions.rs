//! Memory that others put to and get from, as programs use it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use landeck::{
    AccessError, Error, ErrorKind, Job, Region, RegionAddress, RemoteRegion, Tag, ThreadMode,
};

use crate::support::{in_enduring_job, in_job, kill_myself};

const MOMENT: Duration = Duration::from_millis(30);

/// Tells `to` of a region.
fn tell(job: &Job, region: &Region, to: usize) {
    job.world().send(&region.address().to_words(), to, Tag(1)).unwrap();
}

fn told(job: &Job, by: usize) -> RemoteRegion {
    let words = job.world().receive(by, Tag(1)).unwrap().0;
    job.open_region(RegionAddress::from_words(words)).unwrap()
}

fn is_gone(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Access(AccessError::Gone))
}

#[test]
fn data_put_into_a_region_are_there_when_it_is_notified() {
    for mode in [ThreadMode::Single, ThreadMode::Multiple] {
        in_job(2, "regions::data_put_into_a_region_are_there_when_it_is_notified", mode, |job| {
            const ROUNDS: u64 = 2_000;
            let (own, other) = (job.create_region(100_000).unwrap(), 1 - job.world().rank());
            tell(job, &own, other);
            let remote = told(job, other);
            assert_eq!(remote.len(), 100_000);
            ping(own, &remote, job.world().rank(), ROUNDS);
            job.world().barrier().unwrap();
        });
        if crate::support::is_member() {
            return;
        }
    }
}

fn ping(mut own: Region, remote: &RemoteRegion, rank: usize, rounds: u64) {
    for round in 0..rounds {
        let length = [1usize, 7, 100, 10_000][(round % 4) as usize];
        if rank == 0 {
            remote.put(8, &vec![round; length]).unwrap();
            remote.put_and_notify(0, &[length as u64]).unwrap();
        }
        own.wait_notified(1).unwrap();
        let mut came = [0u64];
        own.read(0, &mut came).unwrap();
        let mut values = vec![0u64; came[0] as usize];
        own.read(8, &mut values).unwrap();
        assert_eq!((values.len(), values[0], values[length - 1]), (length, round, round));
        if rank == 1 {
            remote.put(8, &values).unwrap();
            remote.put_and_notify(0, &came).unwrap();
        }
    }
    assert_eq!(own.notifications().unwrap(), rounds);
    let late = own.wait_notified_within(1, MOMENT).unwrap_err();
    assert!(matches!(late.kind, ErrorKind::TimedOut(_)), "{late}");
}

#[test]
fn words_are_changed_by_all_at_once() {
    in_job(4, "regions::words_are_changed_by_all_at_once", ThreadMode::Single, |job| {
        const EACH: u64 = 10_000;
        let world = job.world();
        let own = (world.rank() == 0).then(|| job.create_region(24).unwrap());
        let remote = match &own {
            Some(own) => {
                (1..world.size()).for_each(|rank| tell(job, own, rank));
                job.open_region(own.address()).unwrap()
            }
            None => told(job, 0),
        };
        for _ in 0..EACH {
            remote.fetch_add(0, 1).unwrap();
            let mut seen = 0;
            loop {
                let was = remote.compare_swap(8, seen, seen + 2).unwrap();
                if was == seen {
                    break;
                }
                seen = was;
            }
        }
        world.barrier().unwrap();
        let mut words = [0u64; 2];
        remote.get(0, &mut words).unwrap();
        let all = EACH * world.size() as u64;
        assert_eq!(words, [all, 2 * all]);
        world.barrier().unwrap();
        let before = remote.swap(16, world.rank() as u64 + 1).unwrap();
        assert!(before <= world.size() as u64);
        world.barrier().unwrap();
        if let Some(own) = &own {
            assert_ne!(own.word(16).unwrap().load(Ordering::Acquire), 0);
        }
    });
}

#[test]
fn a_region_that_is_dropped_is_gone_and_its_memory_is_not_reached() {
    let name = "regions::a_region_that_is_dropped_is_gone_and_its_memory_is_not_reached";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        if world.rank() == 0 {
            let before = job.heap_in_use().unwrap();
            let first = job.create_region(1_000).unwrap();
            tell(job, &first, 1);
            world.barrier().unwrap();
            drop(first);
            let second = job.create_region(1_000).unwrap();
            world.barrier().unwrap();
            world.barrier().unwrap();
            let mut all = [1u8; 1_000];
            second.read(0, &mut all).unwrap();
            assert!(all.iter().all(|&byte| byte == 0), "nobody wrote to it");
            drop(second);
            assert_eq!(job.heap_in_use().unwrap(), before);
            let huge = job.create_region(usize::MAX).unwrap_err();
            assert!(matches!(huge.kind, ErrorKind::Heap(_)), "{huge}");
            return;
        }
        let first = told(job, 0);
        first.put(0, &[5u8; 1_000]).unwrap();
        let outside = first.put(999, &[1u16]).unwrap_err();
        assert!(matches!(outside.kind, ErrorKind::Access(AccessError::Outside(_))), "{outside}");
        let unaligned = first.fetch_add(3, 1).unwrap_err();
        assert!(
            matches!(unaligned.kind, ErrorKind::Access(AccessError::Unaligned { .. })),
            "{unaligned}"
        );
        world.barrier().unwrap();
        world.barrier().unwrap();
        assert!(is_gone(&first.put(0, &[6u8]).unwrap_err()));
        assert!(is_gone(&first.get(0, &mut [0u8]).unwrap_err()));
        assert!(is_gone(&first.fetch_add(0, 1).unwrap_err()));
        assert!(is_gone(&job.open_region(first.address()).unwrap_err()));
        let [host, process, place, number] = first.address().to_words();
        for words in [
            [host, process, u64::MAX, number],
            [host, process, place + 8, number],
            [host, process, place, 0],
        ] {
            let open = job.open_region(RegionAddress::from_words(words));
            assert!(is_gone(&open.unwrap_err()));
        }
        let open = |words| job.open_region(RegionAddress::from_words(words)).unwrap_err();
        assert!(open([host ^ 1, process, place, number]).to_string().contains("another job"));
        assert!(matches!(open([host, 9 << 32, place, number]).kind, ErrorKind::PeerFailed { .. }));
        world.barrier().unwrap();
    });
}

#[test]
fn the_memory_of_the_dead_is_told_as_such() {
    in_enduring_job(3, "regions::the_memory_of_the_dead_is_told_as_such", 137, |job| {
        let world = job.world();
        if world.rank() == 2 {
            let region = job.create_region(64).unwrap();
            tell(&job, &region, 0);
            world.receive::<u8>(0, Tag(2)).unwrap();
            // It dies while it waits, and so does what others wait for.
            kill_myself();
        }
        if world.rank() == 0 {
            let region = told(&job, 2);
            region.put(0, &[1u8]).unwrap();
            world.send(&[1u8], 2, Tag(2)).unwrap();
            assert!(world.receive::<u8>(2, Tag(3)).is_err(), "it is dead");
            // Its memory is there until its slot is used again, but nobody is behind it.
            let opened = job.open_region(region.address());
            let told = opened.and_then(|region| region.put(0, &[1u8]));
            let Err(Error { kind: ErrorKind::PeerFailed { who, .. }, .. }) = told else {
                panic!("{told:?}")
            };
            assert!(who.starts_with("rank 2 "), "{who}");
        }
        println!("survivor done");
        job.leave().unwrap();
    });
}
