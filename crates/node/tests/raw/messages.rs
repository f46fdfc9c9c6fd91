//! Messages of items of a layout: modes, probes, what is cut, what is taken out and taken back.

use landeck::layout::{Family, Kind, Layout};
use landeck::raw::message::{self, Mode};
use landeck::raw::{self, Memory, Operation};
use landeck::{Any, Error, ErrorKind, Job, Tag, ThreadMode};

use crate::support::in_job;

const MODES: [ThreadMode; 2] = [ThreadMode::Single, ThreadMode::Multiple];

fn memory<'a, T>(values: &[T], layout: &'a Layout, count: usize) -> Memory<'a> {
    Memory { start: values.as_ptr().cast(), layout, count: count as u64 }
}

/// The memory of values to receive into.
fn room<'a, T>(values: &mut [T], layout: &'a Layout, count: usize) -> Memory<'a> {
    Memory { start: values.as_mut_ptr().cast(), layout, count: count as u64 }
}

fn doubles() -> Layout {
    Layout::element(Kind::new(Family::Float, 8).unwrap())
}

/// Runs a test in a job of two, in both thread modes.
fn in_pairs(test: &str, body: impl Fn(&Job)) {
    for threads in MODES {
        in_job(2, test, threads, &body);
        if crate::support::is_member() {
            return;
        }
    }
}

#[test]
fn a_synchronous_send_waits_for_its_receive() {
    in_pairs("messages::a_synchronous_send_waits_for_its_receive", |job| {
        let (world, layout) = (job.world(), doubles());
        for length in [0usize, 1, 100, 5_000, 200_000] {
            let mut values = vec![world.rank() as f64; length];
            let items = room(&mut values, &layout, length);
            if world.rank() == 1 {
                world.receive::<u8>(0, Tag(2)).unwrap();
                // SAFETY: the values are there until this returns.
                let status = unsafe { message::receive(&world, &items, 0, Tag(1)) }.unwrap();
                assert_eq!((status.rank(), status.bytes()), (0, 8 * length as u64));
                assert!(values.iter().all(|&value| value == 0.0));
                // SAFETY: as above.
                unsafe { message::send(&world, &items, 0, Tag(3), Mode::Synchronous) }.unwrap();
                continue;
            }
            // SAFETY: the values are there until the operation is waited for.
            let send = unsafe { message::start_send(&world, &items, 1, Tag(1), Mode::Synchronous) };
            let send = send.unwrap();
            for _ in 0..100 {
                assert!(raw::test(&world, send).unwrap().is_none(), "{length} values");
            }
            world.send(&[0u8], 1, Tag(2)).unwrap();
            raw::wait(&world, send).unwrap();
            let status = world.probe(1, Tag(3)).unwrap();
            assert_eq!(status.bytes(), 8 * length as u64);
            world.receive_into(&mut values, 1, Tag(3)).unwrap();
        }
    });
}

#[test]
fn items_that_lie_apart_arrive_apart() {
    in_pairs("messages::items_that_lie_apart_arrive_apart", |job| {
        let world = job.world();
        let (rank, other) = (world.rank(), 1 - world.rank());
        for rows in [1usize, 7, 300, 20_000] {
            // The second column of a matrix with three.
            let column = Layout::vector(rows as u64, 1, 24, &doubles()).unwrap();
            let mut matrix: Vec<f64> = (0..3 * rows).map(|at| (at + rank) as f64).collect();
            let items = Memory { start: matrix[1..].as_ptr().cast(), layout: &column, count: 1 };
            // SAFETY: the matrix is there until both are waited for, and both use what they are
            // meant to use: what is sent is not received into.
            let operations = unsafe {
                let mut into = vec![0.0; 3 * rows];
                let room = Memory { start: into[1..].as_mut_ptr().cast(), ..items };
                let receive = message::start_receive(&world, &room, other, Tag(1)).unwrap();
                let send = message::start_send(&world, &items, other, Tag(1), Mode::Standard);
                raw::wait(&world, send.unwrap()).unwrap();
                let status = raw::wait(&world, receive).unwrap();
                assert_eq!(status.bytes(), 8 * rows as u64);
                into
            };
            matrix.clear();
            let is_right = |(at, &value): (usize, &f64)| {
                value == if at % 3 == 1 { (at + other) as f64 } else { 0.0 }
            };
            assert!(operations.iter().enumerate().all(is_right), "{rows} rows");
        }
    });
}

#[test]
fn a_message_longer_than_its_buffer_is_received_and_named() {
    in_pairs("messages::a_message_longer_than_its_buffer_is_received_and_named", |job| {
        let (world, layout) = (job.world(), doubles());
        for length in [3usize, 1_000, 100_000] {
            if world.rank() == 0 {
                world.send(&vec![1.5f64; length], 1, Tag(9)).unwrap();
                world.send(&[2.5f64], 1, Tag(9)).unwrap();
                continue;
            }
            let mut values = [0.0f64; 2];
            let items = room(&mut values, &layout, 2);
            // SAFETY: the values are there until this returns.
            let cut = unsafe { message::receive(&world, &items, Any, Any) }.unwrap_err();
            let ErrorKind::Truncated { rank, tag, message_bytes, buffer_bytes, .. } = cut.kind
            else {
                panic!("{cut}");
            };
            assert_eq!((rank, tag), (Some(0), Tag(9)));
            assert_eq!((message_bytes, buffer_bytes), (8 * length as u64, 16));
            assert_eq!(values, [1.5; 2]);
            // SAFETY: as above.
            let next = unsafe { message::receive(&world, &items, 0, Tag(9)) }.unwrap();
            assert_eq!((next.bytes(), values[0]), (8, 2.5));
        }
    });
}

#[test]
fn a_message_that_is_taken_out_is_received_once() {
    in_pairs("messages::a_message_that_is_taken_out_is_received_once", |job| {
        let (world, layout) = (job.world(), doubles());
        if world.rank() == 0 {
            for length in [1usize, 1_000, 30_000] {
                world.send(&vec![1.0; length], 1, Tag(4)).unwrap();
                world.send(&[2.0], 1, Tag(4)).unwrap();
                world.receive::<u8>(1, Tag(5)).unwrap();
            }
            return;
        }
        for length in [1usize, 1_000, 30_000] {
            let (held, status) = message::hold(&world, Any, Any).unwrap();
            assert_eq!((status.tag(), status.bytes()), (Tag(4), 8 * length as u64));
            assert_eq!(world.receive::<f64>(0, Tag(4)).unwrap().0, 2.0);
            assert!(message::try_hold(&world, Any, Any).unwrap().is_none());
            let mut values = vec![0.0; length];
            let items = room(&mut values, &layout, length);
            // SAFETY: the values are there until the operation is waited for.
            unsafe {
                let started = message::start_receive_held(&world, held, &items).unwrap();
                assert_eq!(raw::wait(&world, started).unwrap().bytes(), 8 * length as u64);
                let again = message::receive_held(&world, held, &items);
                assert!(matches!(again, Err(Error { kind: ErrorKind::RequestGone, .. })));
            }
            assert!(values.iter().all(|&value| value == 1.0));
            world.send(&[0u8], 0, Tag(5)).unwrap();
        }
    });
}

#[test]
fn a_message_of_a_process_to_itself_is_complete_after_one_test() {
    in_pairs("messages::a_message_of_a_process_to_itself_is_complete_after_one_test", |job| {
        let (world, layout) = (job.world(), doubles());
        let own = world.rank();
        for length in [0usize, 1, 30, 1_000] {
            let (values, mut received) = (vec![1.5; length], vec![0.0; length]);
            let (items, place) =
                (memory(&values, &layout, length), room(&mut received, &layout, length));
            // SAFETY: the values are there until both operations are over.
            unsafe {
                let synchronous = Mode::Synchronous;
                let send = message::start_send(&world, &items, own, Tag(1), synchronous).unwrap();
                let (held, _) = message::hold(&world, own, Tag(1)).unwrap();
                let receive = message::start_receive_held(&world, held, &place).unwrap();
                assert!(raw::test(&world, receive).unwrap().is_some(), "{length} values");
                assert!(raw::test(&world, send).unwrap().is_some(), "{length} values");
            }
            assert_eq!(received, values);
        }
    });
}

#[test]
fn an_operation_that_has_met_nobody_is_taken_back() {
    in_pairs("messages::an_operation_that_has_met_nobody_is_taken_back", |job| {
        let (world, layout) = (job.world(), doubles());
        let other = 1 - world.rank();
        for length in [1usize, 100_000] {
            let mut values = vec![0.0; length];
            let items = room(&mut values, &layout, length);
            // SAFETY: the values are there until all are waited for; the receive gets nothing.
            let (receive, send) = unsafe {
                (
                    message::start_receive(&world, &items, Any, Tag(6)).unwrap(),
                    message::start_send(&world, &items, other, Tag(7), Mode::Synchronous).unwrap(),
                )
            };
            for operation in [receive, send] {
                raw::cancel(&world, operation).unwrap();
                assert!(raw::wait(&world, operation).unwrap().is_cancelled());
            }
            world.barrier().unwrap();
            assert!(world.try_probe(Any, Any).unwrap().is_none());
            world.barrier().unwrap();
        }
    });
}

#[test]
fn a_released_send_is_finished_before_the_end() {
    in_pairs("messages::a_released_send_is_finished_before_the_end", |job| {
        let (world, layout) = (job.world(), doubles());
        const LENGTH: usize = 200_000;
        if world.rank() == 1 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            for tag in [1, 2] {
                assert_eq!(world.receive_vec::<f64>(0, Tag(tag)).unwrap().0, [1.0; LENGTH]);
            }
            return;
        }
        let values: &[f64] = Box::leak(vec![1.0; LENGTH].into_boxed_slice());
        for (tag, mode) in [(1, Mode::Standard), (2, Mode::Synchronous)] {
            let items = memory(values, &layout, LENGTH);
            // SAFETY: the values are there for good.
            let send = unsafe { message::start_send(&world, &items, 1, Tag(tag), mode) };
            raw::release(&world, send.unwrap()).unwrap();
        }
    });
}

const MANY: usize = 12_000;

/// More than a receiver keeps that has not asked for them.
fn start_many(world: &landeck::World, to: usize, tag: Tag, values: &[f64]) -> Vec<Operation> {
    let layout = doubles();
    let items = memory(values, &layout, values.len());
    let start = |_| {
        // SAFETY: the caller keeps the values until it has waited for all.
        unsafe { message::start_send(world, &items, to, tag, Mode::Standard) }.unwrap()
    };
    (0..MANY).map(start).collect()
}

#[test]
fn a_message_behind_many_that_nobody_has_asked_for_is_received() {
    in_pairs("messages::a_message_behind_many_that_nobody_has_asked_for_is_received", |job| {
        let world = job.world();
        let (other, values) = (1 - world.rank(), [1.0; 100]);
        let sends = start_many(&world, other, Tag(1), &values);
        let last = start_many(&world, other, Tag(2), &values[..1]);
        assert_eq!(world.receive::<f64>(other, Tag(2)).unwrap().0, 1.0);
        for _ in 0..MANY {
            assert_eq!(world.receive_vec::<f64>(other, Tag(1)).unwrap().0, values);
        }
        for _ in 1..MANY {
            world.receive::<f64>(other, Tag(2)).unwrap();
        }
        for send in sends.into_iter().chain(last) {
            raw::wait(&world, send).unwrap();
        }
    });
}

#[test]
fn those_who_first_send_to_each_other_do_not_wait_for_good() {
    let name = "messages::those_who_first_send_to_each_other_do_not_wait_for_good";
    for threads in MODES {
        in_job(3, name, threads, |job| {
            let world = job.world();
            let (rank, size) = (world.rank(), world.size());
            let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
            let values = [rank as f64; 100];
            (0..MANY).for_each(|_| world.send(&values, next, Tag(1)).unwrap());
            for _ in 0..MANY {
                let got = world.receive_vec::<f64>(previous, Tag(1)).unwrap().0;
                assert_eq!(got, [previous as f64; 100]);
            }
        });
        if crate::support::is_member() {
            return;
        }
    }
}
