//! Members that get no memory are told so, as are those that need them; nobody hangs, and the world goes
//! on.

use landeck::unstable::collectives::Way;
use landeck::unstable::collectives::architecture::{Flat, Ring};
use landeck::{Error, ErrorKind, Job, Sum, Tag, ThreadMode, World};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{in_job, is_member, job_of, run_well};

const VALUES: usize = 1 << 19;
const LEFT_BYTES: u64 = 2 << 20;

/// Limits the address space of this process to little more than it has, until it is dropped.
struct Narrow(Rlimit);

impl Narrow {
    fn if_is(wanted: bool) -> Option<Self> {
        let usual = getrlimit(Resource::As);
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
        let current = Some(pages * rustix::param::page_size() as u64 + LEFT_BYTES);
        wanted.then(|| setrlimit(Resource::As, Rlimit { current, ..usual }).unwrap())?;
        Some(Self(usual))
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        setrlimit(Resource::As, self.0).unwrap();
    }
}

/// One operation that needs memory of its own, and whether its result is right.
type Call = fn(&World, &mut [u64], &mut [u64]) -> landeck::Result<bool>;

fn calls() -> [Call; 4] {
    [
        |world, own, _| {
            world.all_to_all_in_place(own)?;
            let each = own.len() / world.size();
            Ok((0..world.size()).all(|from| own[from * each] == 1 + from as u64))
        },
        |world, own, result| {
            world.all_reduce_into(own, result, Sum)?;
            Ok(result.iter().all(|value| *value == sum_up_to(world.size())))
        },
        |world, own, result| {
            world.reduce(own, result, Sum, 0)?;
            Ok(world.rank() > 0 || result.iter().all(|value| *value == sum_up_to(world.size())))
        },
        |world, own, result| {
            world.scan(own, result, Sum)?;
            Ok(result.iter().all(|value| *value == sum_up_to(world.rank() + 1)))
        },
    ]
}

fn sum_up_to(members: usize) -> u64 {
    (1..=members as u64).sum()
}

/// Runs `body` in every process of a job in which much memory that is freed is the system's at once, and no
/// thread has set any aside.
fn in_exact_job(processes: usize, test: &str, body: impl FnOnce(&Job)) {
    if is_member() {
        return in_job(processes, test, ThreadMode::Single, body);
    }
    let mut job = job_of(processes, test, &[]);
    run_well(job.env("MALLOC_MMAP_THRESHOLD_", "131072").env("MALLOC_ARENA_MAX", "1"));
}

fn fail_and_go_on(world: &World, call: Call, is_short: bool) -> bool {
    let (mut own, mut result) = (vec![1 + world.rank() as u64; VALUES], vec![0; VALUES]);
    world.barrier().unwrap();
    let narrow = Narrow::if_is(is_short);
    let ended = call(world, &mut own, &mut result);
    drop(narrow);
    let has_failed = match ended {
        Ok(is_right) => {
            assert!(is_right);
            false
        }
        Err(Error {
            kind: ErrorKind::NoMemory(_) | ErrorKind::PeerHeapFull { .. } | ErrorKind::Heap(_),
            ..
        }) => true,
        Err(error) => panic!("{error}"),
    };
    world.barrier().unwrap();
    own.fill(1 + world.rank() as u64);
    assert!(call(world, &mut own, &mut result).unwrap(), "there is memory again");
    has_failed
}

#[test]
fn members_without_memory_are_told_so_and_the_world_goes_on() {
    let name = "memory::members_without_memory_are_told_so_and_the_world_goes_on";
    in_exact_job(4, name, |job| {
        let world = job.world();
        let ways = [Way::by(Ring), Way::by(Flat)].map(|way| world.via(way));
        let mut failed = 0;
        for way in [world.clone()].iter().chain(&ways) {
            for call in calls() {
                for shorts in [0b1111, 0b0001, 0b1000] {
                    failed += u64::from(fail_and_go_on(way, call, shorts >> world.rank() & 1 == 1));
                }
            }
        }
        assert!(world.all_reduce(failed, Sum).unwrap() > 0);
    });
}

#[test]
fn a_message_that_there_is_no_memory_for_is_an_error() {
    let name = "memory::a_message_that_there_is_no_memory_for_is_an_error";
    in_exact_job(2, name, |job| {
        let world = job.world();
        let values = vec![7u64; VALUES];
        for tag in [Tag(1), Tag(2)] {
            if world.rank() == 0 {
                world.send(&values, 1, tag).unwrap();
            } else {
                let narrow = Narrow::if_is(tag == Tag(1));
                let received = world.receive_vec::<u64>(0, tag);
                drop(narrow);
                match (tag, received) {
                    (Tag(1), Err(Error { kind: ErrorKind::NoMemory(_), .. })) => {}
                    (_, received) => assert_eq!(received.unwrap().0, values),
                }
            }
            world.barrier().unwrap();
        }
    });
}
