//! Operations of all kinds, waited for together.

use landeck::raw::collective::{self, Asked, Data};
use landeck::raw::{self, Operation, signal};
use landeck::unstable::collectives::Operation as What;
use landeck::{Any, Error, ErrorKind, Tag, ThreadMode, World};

use crate::support::in_job;

fn start_barrier(world: &World) -> Operation {
    let asked = Asked {
        operation: What::Barrier,
        root: 0,
        input: Data::Nothing,
        output: Data::Nothing,
        operator: None,
        missing: None,
    };
    // SAFETY: a barrier has no memory.
    unsafe { collective::start(world, &asked) }.unwrap()
}

#[test]
fn the_first_of_any_kind_is_found() {
    let name = "requests::the_first_of_any_kind_is_found";
    in_job(2, name, ThreadMode::Multiple, |job| {
        let world = job.world();
        let other = 1 - world.rank();
        for round in 0..30u32 {
            let mut value = [0u32];
            // SAFETY: the value is there until the receive is waited for.
            let receive = unsafe {
                raw::start_receive(&world, value.as_mut_ptr().cast(), 4, other, Tag(1)).unwrap()
            };
            let own = signal::start(&world).unwrap();
            let barrier = if round % 2 == 0 { Some(start_barrier(&world)) } else { None };
            let mut all = [Some(receive), None, Some(own), barrier];
            std::thread::scope(|threads| {
                let world = world.clone();
                threads.spawn(move || {
                    if round % 3 == 0 {
                        std::thread::sleep(std::time::Duration::from_millis(3));
                    }
                    signal::end(&world, own).unwrap();
                    world.send(&[round], other, Tag(1)).unwrap();
                });
            });
            let mut found = 0;
            while let Some(place) = raw::wait_any(&world, &all).unwrap() {
                raw::wait(&world, all[place].take().unwrap()).unwrap();
                found += 1;
            }
            assert_eq!((found, value), (if barrier.is_some() { 3 } else { 2 }, [round]));
            if barrier.is_none() {
                world.barrier().unwrap();
            }
        }
        assert_eq!(raw::wait_any(&world, &[None, None]).unwrap(), None);
    });
}

#[test]
fn a_sleeper_is_woken_by_another_thread() {
    in_job(1, "requests::a_sleeper_is_woken_by_another_thread", ThreadMode::Multiple, |job| {
        let world = job.world();
        for is_behind in [false, true] {
            let (own, other) = (signal::start(&world).unwrap(), signal::start(&world).unwrap());
            std::thread::scope(|threads| {
                let has_turn = is_behind.then(|| {
                    let started = threads.spawn(|| raw::wait(&world, other).unwrap());
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    started
                });
                let single = threads.spawn(|| raw::wait_any(&world, &[None, Some(own)]).unwrap());
                std::thread::sleep(std::time::Duration::from_millis(100));
                signal::end(&world, own).unwrap();
                assert_eq!(single.join().unwrap(), Some(1));
                signal::end(&world, other).unwrap();
                has_turn.map(|thread| thread.join().unwrap());
            });
            raw::wait(&world, own).unwrap();
            assert!(matches!(
                raw::wait(&world, own),
                Err(Error { kind: ErrorKind::RequestGone, .. })
            ));
            assert!(matches!(
                signal::end(&world, own),
                Err(Error { kind: ErrorKind::RequestGone, .. })
            ));
        }
    });
}

#[test]
fn tests_of_several_find_those_that_are_over() {
    for threads in [ThreadMode::Single, ThreadMode::Multiple] {
        in_job(2, "requests::tests_of_several_find_those_that_are_over", threads, |job| {
            let world = job.world();
            let other = 1 - world.rank();
            const COUNT: usize = 20;
            let mut values = [0u64; COUNT];
            let start = |(tag, value): (usize, &mut u64)| {
                let start = std::ptr::from_mut(value).cast();
                // SAFETY: the values are there until all receives are complete.
                let started =
                    unsafe { raw::start_receive(&world, start, 8, other, Tag(tag as u32)) };
                Some(started.unwrap())
            };
            let mut all: Vec<Option<Operation>> =
                values.iter_mut().enumerate().map(start).collect();
            assert_eq!(raw::find_over(&world, &all).unwrap(), None);
            world.barrier().unwrap();
            for tag in (0..COUNT).rev() {
                world.send(&[tag as u64 + 1], other, Tag(tag as u32)).unwrap();
            }
            let mut left = COUNT;
            while left > 0 {
                let mut over = Vec::new();
                raw::each_over(&world, &all, |place| over.push(place)).unwrap();
                for place in over {
                    let status = raw::test(&world, all[place].take().unwrap()).unwrap().unwrap();
                    assert_eq!((status.rank(), status.tag()), (other, Tag(place as u32)));
                    left -= 1;
                }
                assert!(raw::are_over(&world, &all).unwrap() || left > 0);
            }
            assert!(values.iter().zip(1..).all(|(&value, expected)| value == expected));
        });
        if crate::support::is_member() {
            return;
        }
    }
}

#[test]
fn a_wait_for_any_request_holds_nobody_up() {
    in_job(2, "requests::a_wait_for_any_request_holds_nobody_up", ThreadMode::Multiple, |job| {
        let world = job.world();
        let other = 1 - world.rank();
        std::thread::scope(|threads| {
            let patient = threads.spawn(|| {
                let mut value = [0u8; 4];
                let own = signal::start(&world).unwrap();
                let start = value.as_mut_ptr();
                // SAFETY: the value is there until the receive is waited for.
                let receive = unsafe { raw::start_receive(&world, start, 4, Any, Tag(9)) };
                let receive = receive.unwrap();
                let found = raw::wait_any(&world, &[Some(own), Some(receive)]).unwrap();
                raw::wait(&world, receive).unwrap();
                raw::release(&world, own).unwrap();
                (found, value)
            });
            for round in 0..500u32 {
                world.send(&[round], other, Tag(1)).unwrap();
                assert_eq!(world.receive::<u32>(other, Tag(1)).unwrap().0, round);
            }
            world.send(&[1u8, 2, 3, 4], other, Tag(9)).unwrap();
            assert_eq!(patient.join().unwrap(), (Some(1), [1, 2, 3, 4]));
        });
    });
}

#[test]
fn a_test_does_not_tell_of_a_peer_that_left_well() {
    for threads in [ThreadMode::Single, ThreadMode::Multiple] {
        in_job(2, "requests::a_test_does_not_tell_of_a_peer_that_left_well", threads, |job| {
            let world = job.world();
            if world.rank() == 1 {
                return;
            }
            let mut values = [0u8; 3];
            let [first, second, third] = values.each_mut();
            // SAFETY: the values are there until all three are over.
            let (named, anybody, own) = unsafe {
                (
                    raw::start_receive(&world, first, 1, 1usize, Tag(9)).unwrap(),
                    raw::start_receive(&world, second, 1, Any, Tag(9)).unwrap(),
                    raw::start_receive(&world, third, 1, 0usize, Tag(8)).unwrap(),
                )
            };
            // Who waits is told, so the other has left now.
            assert!(matches!(
                world.receive::<u8>(1, Tag(1)),
                Err(Error { kind: ErrorKind::PeerFailed { .. }, .. })
            ));
            assert!(world.try_probe(1, Tag(9)).unwrap().is_none());
            assert!(world.try_probe(Any, Any).unwrap().is_none());
            let mut all = [Some(named), Some(anybody), Some(own)];
            assert_eq!(raw::find_over(&world, &all).unwrap(), None);
            for operation in all.into_iter().flatten() {
                assert!(raw::test(&world, operation).unwrap().is_none());
            }
            world.send(&[7u8], 0, Tag(8)).unwrap();
            assert_eq!(raw::wait_any(&world, &all).unwrap(), Some(2), "the others may never end");
            raw::wait(&world, own).unwrap();
            raw::cancel(&world, named).unwrap();
            assert!(raw::wait(&world, named).unwrap().is_cancelled());
            // Nobody is left, and who waits for nothing else is told.
            all = [None, Some(anybody), None];
            assert_eq!(raw::wait_any(&world, &all).unwrap(), Some(1));
            assert!(matches!(
                raw::wait(&world, anybody),
                Err(Error { kind: ErrorKind::PeerFailed { .. }, .. })
            ));
            assert_eq!(values, [0, 0, 7]);
        });
        if crate::support::is_member() {
            return;
        }
    }
}
