//! Regions of other hosts: read, written and counted by their host's relay, while their owners compute or die.

use std::time::{Duration, Instant};

use landeck::{ErrorKind, Job, RegionAddress, RemoteRegion};

use crate::job::{EACH, RANKS, on_hosts, run};
use crate::support::{is_member, text};

const LENGTHS: [usize; 7] = [8, 64, 4_096, 65_472, 65_536, 1 << 20, 16 << 20];

/// Opens the region of a rank, of which all ranks have one.
fn open(job: &Job, own: &landeck::Region, owner: usize) -> RemoteRegion {
    let mut all = [0u64; 4 * RANKS];
    job.world().all_gather(&own.address().to_words(), &mut all).unwrap();
    let words: [u64; 4] = all[4 * owner..][..4].try_into().unwrap();
    job.open_region(RegionAddress::from_words(words)).unwrap()
}

#[test]
fn data_put_into_a_region_of_another_host_are_got_from_there() {
    on_hosts("regions::data_put_into_a_region_of_another_host_are_got_from_there", |job| {
        let world = job.world();
        let (rank, far) = (world.rank(), (world.rank() + EACH) % RANKS);
        let longest = LENGTHS[LENGTHS.len() - 1];
        let mut own = job.create_region(longest + 8).unwrap();
        let region = open(job, &own, far);
        assert_eq!(region.len(), longest + 8);
        for length in LENGTHS {
            for offset in [0, 8] {
                let bytes: Vec<u8> = (0..length).map(|at| (at * 5 + rank + offset) as u8).collect();
                region.put(offset, &bytes).unwrap();
                let mut got = vec![0u8; length];
                region.get(offset, &mut got).unwrap();
                assert!(got == bytes, "{length} bytes at {offset}");
            }
        }
        world.barrier().unwrap();
        let mut here = vec![0u8; longest];
        own.read(8, &mut here).unwrap();
        assert!(here.iter().enumerate().all(|(at, &byte)| byte == (at * 5 + far + 8) as u8));
        world.barrier().unwrap();
        region.put(16, &[7u64; 100_000]).unwrap();
        region.put_and_notify(8, &[rank as u64]).unwrap();
        own.wait_notified(1).unwrap();
        assert_eq!(own.notifications().unwrap(), 1);
        let mut words = vec![0u64; 100_001];
        own.read(8, &mut words).unwrap();
        assert!(words[0] == far as u64 && words[1..].iter().all(|&word| word == 7));
        world.barrier().unwrap();
    });
}

#[test]
fn clear_frames_carry_regions_too() {
    let test = "regions::clear_frames_carry_regions_too";
    let body = |job: &Job| {
        let own = job.create_region(1 << 20).unwrap();
        let region = open(job, &own, (job.world().rank() + EACH) % RANKS);
        region.put(0, &vec![3u8; 1 << 20]).unwrap();
        let mut got = vec![0u8; 1 << 20];
        region.get(0, &mut got).unwrap();
        assert!(got.iter().all(|&byte| byte == 3));
        job.world().barrier().unwrap();
    };
    if is_member() {
        return on_hosts(test, body);
    }
    let Some(ended) = run(test, &["--plain"]) else { return };
    assert!(ended.status.success(), "{}", text(&ended));
}

#[test]
fn counters_of_four_processes_add_up_while_the_owner_computes() {
    on_hosts("regions::counters_of_four_processes_add_up_while_the_owner_computes", |job| {
        const ROUNDS: u64 = 300;
        let world = job.world();
        let own = job.create_region(64).unwrap();
        let region = open(job, &own, 0);
        if world.rank() == 0 {
            // It calls nothing until all others are done.
            let begun = Instant::now();
            let done = own.word(8).unwrap();
            for _ in 0..ROUNDS {
                own.word(0).unwrap().fetch_add(1, std::sync::atomic::Ordering::AcqRel);
            }
            while done.load(std::sync::atomic::Ordering::Acquire) < RANKS as u64 - 1 {
                assert!(begun.elapsed() < Duration::from_secs(100), "the relay serves");
                std::thread::sleep(Duration::from_millis(1));
            }
            let sum = own.word(0).unwrap().load(std::sync::atomic::Ordering::Acquire);
            assert_eq!(sum, RANKS as u64 * ROUNDS);
        } else {
            for round in 0..ROUNDS {
                match round % 2 {
                    0 => {
                        region.fetch_add(0, 1).unwrap();
                    }
                    _ => {
                        let mut seen = region.fetch_add(0, 0).unwrap();
                        loop {
                            match region.compare_swap(0, seen, seen + 1).unwrap() {
                                was if was == seen => break,
                                was => seen = was,
                            }
                        }
                    }
                }
            }
            region.fetch_add(8, 1).unwrap();
        }
        world.barrier().unwrap();
        assert_eq!(region.fetch_add(0, 0).unwrap(), RANKS as u64 * ROUNDS);
        world.barrier().unwrap();
        if world.rank() == RANKS - 1 {
            assert_eq!(region.swap(0, 9).unwrap(), RANKS as u64 * ROUNDS);
        }
        world.barrier().unwrap();
    });
}

#[test]
fn errors_of_far_regions_are_those_of_near_ones() {
    on_hosts("regions::errors_of_far_regions_are_those_of_near_ones", |job| {
        let world = job.world();
        let own = job.create_region(100).unwrap();
        let errors = |region: &RemoteRegion| {
            [
                region.put(96, &[1u64]).unwrap_err(),
                region.get(usize::MAX, &mut [0u8]).unwrap_err(),
                region.fetch_add(4, 1).unwrap_err(),
                region.fetch_add(96, 1).unwrap_err(),
            ]
            .map(|error| {
                assert!(matches!(error.kind, ErrorKind::Access(_)), "{error}");
                error.to_string()
            })
        };
        let near = open(job, &own, world.rank() ^ 1);
        let far = open(job, &own, (world.rank() + EACH) % RANKS);
        assert_eq!(errors(&near), errors(&far));
        let mut got = [1u8];
        far.get(99, &mut got).unwrap();
        assert_eq!(got, [0]);
        let mut words = far.address().to_words();
        words[3] += 1; // the number of no region
        let unknown = job.open_region(RegionAddress::from_words(words)).unwrap_err();
        assert!(matches!(unknown.kind, ErrorKind::Access(_)), "{unknown}");
        world.barrier().unwrap();
        drop(own);
        world.barrier().unwrap();
        for region in [&near, &far] {
            let gone = region.put(0, &[1u64]).unwrap_err();
            assert!(matches!(gone.kind, ErrorKind::Access(_)), "{gone}");
        }
        world.barrier().unwrap();
    });
}

#[test]
fn an_owner_that_dies_in_the_middle_is_named() {
    let test = "regions::an_owner_that_dies_in_the_middle_is_named";
    let body = |job: &Job| {
        let own = job.create_region(1 << 20).unwrap();
        let region = open(job, &own, 1);
        if job.world().rank() == 1 {
            std::thread::sleep(Duration::from_millis(100));
            crate::support::kill_myself();
        }
        let (begun, bytes) = (Instant::now(), vec![1u8; 1 << 20]);
        let failed = loop {
            assert!(begun.elapsed() < Duration::from_secs(60));
            if let Err(failed) = region.put(0, &bytes) {
                break failed;
            }
        };
        let ErrorKind::PeerFailed { who, how, .. } = &failed.kind else { panic!("{failed}") };
        assert_eq!(how, "was killed by signal 9");
        assert!(job.world().rank() < EACH || who.starts_with("rank 1 on n1"), "{who}");
        // A near owner's memory is still there, and yet is not opened again.
        let again = job.open_region(region.address()).unwrap_err();
        assert!(matches!(again.kind, ErrorKind::PeerFailed { .. }), "{again}");
    };
    let options = ["--on-failure", "notify"];
    if is_member() {
        return on_hosts(test, body);
    }
    let Some(ended) = run(test, &options) else { return };
    assert!(!text(&ended).contains("panicked"), "{}", text(&ended));
}
