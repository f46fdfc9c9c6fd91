//! Sending and receiving in every way the API offers.

use std::time::Duration;

use landeck::{Any, Error, ErrorKind, OneCopy, Tag, ThreadMode};

use crate::support::{Count, in_job, is_member};

const LENGTHS: [usize; 9] = [0, 1, 6, 7, 100, 2_048, 2_049, 40_000, 1_000_000];

#[test]
fn a_ring_passes_every_length_on() {
    for n in [1, 2, 3, 5] {
        in_job(n, "messages::a_ring_passes_every_length_on", ThreadMode::Single, |job| {
            let world = job.world();
            let (rank, size) = (world.rank(), world.size());
            let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
            for (tag, length) in (0..).zip(LENGTHS) {
                let values: Vec<u64> = (0..length as u64).map(|at| at * 3 + rank as u64).collect();
                let mut into = vec![0u64; length];
                let status = world
                    .send_receive(&values, (next, Tag(tag)), &mut into, (previous, Tag(tag)))
                    .unwrap();
                assert_eq!((status.rank(), status.bytes()), (previous, 8 * length as u64));
                let expected = (0..length as u64).map(|at| at * 3 + previous as u64);
                assert!(into.iter().copied().eq(expected), "length {length}");
            }
        });
        if is_member() {
            return;
        }
    }
}

#[test]
fn everybody_sends_to_one_who_takes_what_comes() {
    in_job(6, "messages::everybody_sends_to_one_who_takes_what_comes", ThreadMode::Single, |job| {
        let world = job.world();
        const EACH: u32 = 2_000;
        if world.rank() != 0 {
            for number in 0..EACH {
                world.send(&[number], 0, Tag(number % 3)).unwrap();
            }
            return;
        }
        let mut next = vec![[0; 3]; world.size()];
        for _ in 0..EACH * (world.size() as u32 - 1) {
            let (number, status) = world.receive::<u32>(Any, Any).unwrap();
            let counter = &mut next[status.rank()][status.tag().0 as usize];
            assert_eq!(number, *counter * 3 + status.tag().0, "in order per sender and tag");
            *counter += 1;
        }
    });
}

#[test]
fn probing_tells_length_and_sender_before_receiving() {
    in_job(
        2,
        "messages::probing_tells_length_and_sender_before_receiving",
        ThreadMode::Single,
        |job| {
            let world = job.world();
            if world.rank() == 1 {
                world.send(&vec![7u16; 50_000], 0, Tag(4)).unwrap();
                world.receive::<u8>(0, Tag(5)).unwrap();
                return;
            }
            let status = world.probe(Any, Any).unwrap();
            assert_eq!((status.rank(), status.tag(), status.bytes()), (1, Tag(4), 100_000));
            assert_eq!(world.try_probe(1, Tag(4)).unwrap(), Some(status));
            let (values, _) = world.receive_vec::<u16>(1, Tag(4)).unwrap();
            assert_eq!(values, vec![7; 50_000]);
            assert_eq!(world.try_probe(1, Any).unwrap(), None);
            world.send(&[0u8], 1, Tag(5)).unwrap();
        },
    );
}

#[test]
fn a_loan_arrives_in_place() {
    in_job(2, "messages::a_loan_arrives_in_place", ThreadMode::Single, |job| {
        let world = job.world();
        for round in 0..200u64 {
            if world.rank() == 0 {
                let mut loan = job.loan::<u64>(100_000).unwrap();
                loan.fill(round);
                world.send_loan(loan, 1, Tag(1)).unwrap();
            } else {
                let (loaned, status) = world.receive_loan::<u64>(0, Tag(1)).unwrap();
                assert!(loaned.is_in_place());
                assert_eq!((loaned.len(), status.bytes()), (100_000, 800_000));
                assert_eq!(
                    (loaned.get(0), loaned.get(99_999), loaned.get(100_000)),
                    (Some(round), Some(round), None)
                );
            }
        }
    });
}

#[test]
fn operations_overlap_and_complete_in_any_order() {
    in_job(
        3,
        "messages::operations_overlap_and_complete_in_any_order",
        ThreadMode::Single,
        |job| {
            let world = job.world();
            if world.rank() != 0 {
                for tag in [2, 0, 1] {
                    world.send(&[world.rank() as u32 * 10 + tag], 0, Tag(tag)).unwrap();
                }
                return;
            }
            let mut values = [[0u32; 1]; 6];
            world
                .scope(|scope| {
                    let mut requests = Vec::new();
                    for (at, value) in values.iter_mut().enumerate() {
                        let (from, tag) = (1 + at / 3, Tag((at % 3) as u32));
                        requests.push(scope.receive_into(value, from, tag)?);
                    }
                    let mut seen = 0;
                    while let Some((_, status)) = scope.wait_any(&mut requests)? {
                        assert_eq!(status.bytes(), 4);
                        seen += 1;
                        seen += scope.wait_some(&mut requests)?.len();
                    }
                    assert_eq!(seen, 6);
                    Ok(())
                })
                .unwrap();
            assert_eq!(values.concat(), [10, 11, 12, 20, 21, 22]);
        },
    );
}

#[test]
fn requests_left_in_a_scope_are_given_up() {
    in_job(2, "messages::requests_left_in_a_scope_are_given_up", ThreadMode::Single, |job| {
        let world = job.world();
        let mut never = [0u8; 8];
        let result: landeck::Result<()> = world.scope(|scope| {
            let _forgotten = scope.receive_into(&mut never, Any, Tag(99))?;
            Err(ErrorKind::WouldBlock.into())
        });
        assert!(matches!(result, Err(Error { kind: ErrorKind::WouldBlock, .. })));
        let mut cancelled = [0u8; 8];
        world
            .scope(|scope| {
                let mut request = scope.receive_into(&mut cancelled, Any, Tag(98))?;
                assert!(request.test()?.is_none());
                request.cancel()?;
                assert!(request.wait()?.is_cancelled());
                Ok(())
            })
            .unwrap();
        // The world goes on.
        let other = 1 - world.rank();
        world.send(&[1u8], other, Tag(1)).unwrap();
        world.receive::<u8>(other, Tag(1)).unwrap();
    });
}

/// Its sender has sent as much as there is room for, and calls nothing until it is told to.
#[test]
fn time_ends_a_receive_in_the_middle_of_a_message_and_the_next_has_all_of_it() {
    let name =
        "messages::time_ends_a_receive_in_the_middle_of_a_message_and_the_next_has_all_of_it";
    in_job(2, name, ThreadMode::Single, |job| {
        let (world, begun, is_late) =
            (job.world(), Count::new(job, "begun"), Count::new(job, "is late"));
        // In one copy the message needs nothing of its sender.
        world.set_one_copy(OneCopy::Never).unwrap();
        let data: Vec<u64> = (0..3_000_000).collect();
        if world.rank() == 0 {
            let sent = world.scope(|scope| {
                let request = scope.send(&data, 1, Tag(1))?;
                let _behind = scope.send(&[7u64], 1, Tag(1))?;
                begun.add_one();
                is_late.wait_for(1);
                request.wait()
            });
            sent.unwrap();
            return;
        }
        begun.wait_for(1);
        for _ in 0..3 {
            let (mut values, time) = (vec![0u64; data.len()], Duration::from_millis(20));
            let late = world.receive_into_within(&mut values, 0, Tag(1), time).unwrap_err();
            assert!(matches!(late.kind, ErrorKind::TimedOut(given) if given == time), "{late}");
            assert_eq!(world.probe(0, Any).unwrap().bytes(), 8 * data.len() as u64);
        }
        is_late.add_one();
        let mut values = vec![0u64; data.len()];
        world.receive_into(&mut values, 0, Tag(1)).unwrap();
        assert!(values == data);
        assert_eq!(world.receive::<u64>(0, Tag(1)).unwrap().0, 7);
    });
}

#[test]
fn calls_that_would_wait_say_so_or_time_out() {
    in_job(2, "messages::calls_that_would_wait_say_so_or_time_out", ThreadMode::Single, |job| {
        let (world, is_full) = (job.world(), Count::new(job, "is full"));
        let time = Duration::from_millis(20);
        let mut nothing = [0u8; 1];
        let timed_out = world.receive_into_within(&mut nothing, Any, Tag(50), time);
        assert!(
            matches!(timed_out, Err(Error { kind: ErrorKind::TimedOut(given), .. }) if given == time),
            "{timed_out:?}"
        );
        if world.rank() == 0 {
            let mut sent = 0u64;
            let refused = loop {
                match world.try_send(&[sent; 100], 1, Tag(1)) {
                    Ok(()) => sent += 1,
                    Err(error) => break error,
                }
                assert!(sent < 1_000_000, "nobody receives");
            };
            assert!(matches!(refused.kind, ErrorKind::WouldBlock), "{refused}");
            is_full.add_one();
            world.send(&[sent], 1, Tag(2)).unwrap();
            // Who leaves early would end the other's waits otherwise.
            world.receive::<u8>(1, Tag(3)).unwrap();
        } else {
            // Rank 0 goes on filling while this process does not look.
            is_full.wait_for(1);
            let (count, _) = (world.probe(0, Tag(1)).unwrap(), ());
            assert_eq!(count.bytes(), 800);
            let mut received = 0u64;
            loop {
                let status = world.probe(0, Any).unwrap();
                if status.tag() == Tag(2) {
                    break;
                }
                let mut values = [0u64; 100];
                world.receive_into(&mut values, 0, Tag(1)).unwrap();
                assert_eq!(values[99], received, "nothing lost, nothing twice");
                received += 1;
            }
            assert_eq!(world.receive::<u64>(0, Tag(2)).unwrap().0, received);
            world.send(&[0u8], 0, Tag(3)).unwrap();
        }
    });
}

#[test]
fn mistakes_are_named() {
    in_job(2, "messages::mistakes_are_named", ThreadMode::Single, |job| {
        let world = job.world();
        let other = 1 - world.rank();
        let text = world.send(&[1u8], 2, 0).unwrap_err().kind.to_string();
        assert_eq!(text, "rank 2 is not in this world of 2: ranks go from 0 to 1");
        world.send(&[1u8, 2, 3], other, Tag(1)).unwrap();
        let wrong = world.receive_vec::<u16>(other, Tag(1)).unwrap_err();
        assert!(
            matches!(wrong.kind, ErrorKind::WrongType { message_bytes: 3, value_bytes: 2 }),
            "{wrong}"
        );
        world.send(&[1u64, 2], other, Tag(2)).unwrap();
        let mut short = [0u64; 1];
        let cut = world.receive_into(&mut short, other, Tag(2)).unwrap_err();
        assert!(
            matches!(cut.kind, ErrorKind::Truncated { message_bytes: 16, buffer_bytes: 8, .. }),
            "{cut}"
        );
        assert_eq!(short, [1]);
        let elsewhere = std::thread::scope(|threads| {
            threads
                .spawn(|| world.send(&[1u8], other, Tag(3)).unwrap_err().to_string())
                .join()
                .unwrap()
        });
        assert!(elsewhere.contains("thread mode single"), "{elsewhere}");
    });
}
