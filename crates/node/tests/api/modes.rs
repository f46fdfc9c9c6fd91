//! Sends in all modes, urgent messages, loans to many, matched probes, repeated operations.

use std::time::{Duration, Instant};

use landeck::{Any, Error, ErrorKind, Job, Message, Repeated, SendMode, Tag, ThreadMode};

use crate::support::{Count, NOTICED_WITHIN, in_enduring_job, in_job, kill_myself};

const MOMENT: Duration = Duration::from_millis(60);

#[test]
fn a_synchronous_send_ends_with_its_receive_and_a_buffered_one_before() {
    let name = "modes::a_synchronous_send_ends_with_its_receive_and_a_buffered_one_before";
    in_job(2, name, ThreadMode::Single, |job| {
        let (world, begun) = (job.world(), Count::new(job, "begun"));
        let long = vec![3u64; 1_000_000];
        if world.rank() == 0 {
            world.send_in(SendMode::Synchronous, &[1u8], 1, Tag(1)).unwrap();
            assert_eq!(begun.get(), 1, "its receive had not begun");
            // A standard send of this length would wait for a receive that comes last.
            world.send_in(SendMode::Buffered, &long, 1, Tag(2)).unwrap();
            world.send_in(SendMode::Buffered, &[4u8], 1, Tag(3)).unwrap();
            world.send_in(SendMode::Ready, &[5u8], 1, Tag(4)).unwrap();
            return;
        }
        std::thread::sleep(MOMENT);
        begun.add_one();
        assert_eq!(world.receive::<u8>(0, Tag(1)).unwrap().0, 1);
        assert_eq!(world.receive::<u8>(0, Tag(4)).unwrap().0, 5);
        assert_eq!(world.receive::<u8>(0, Tag(3)).unwrap().0, 4);
        assert_eq!(world.receive_vec::<u64>(0, Tag(2)).unwrap().0, long);
    });
}

#[test]
fn a_buffered_send_without_room_is_an_error_and_nothing_is_sent() {
    let name = "modes::a_buffered_send_without_room_is_an_error_and_nothing_is_sent";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        if world.rank() == 0 {
            let huge = vec![1u8; 300 << 20];
            let refused = world.send_in(SendMode::Buffered, &huge, 1, Tag(1)).unwrap_err();
            assert!(matches!(refused.kind, ErrorKind::Heap(_)), "{refused}");
            world.send(&[2u8], 1, Tag(1)).unwrap();
        } else {
            assert_eq!(world.receive::<u8>(0, Tag(1)).unwrap().0, 2);
        }
    });
}

#[test]
fn urgent_messages_overtake_what_waits() {
    let name = "modes::urgent_messages_overtake_what_waits";
    in_job(2, name, ThreadMode::Single, |job| {
        const BULK: usize = 1_000;
        let (world, is_sent) = (job.world(), Count::new(job, "is sent"));
        if world.rank() == 0 {
            let bulk = vec![7u8; 16 * 1024];
            world
                .scope(|scope| {
                    let mut requests = Vec::new();
                    for _ in 0..BULK {
                        requests.push(scope.send(&bulk, 1, Tag(1))?);
                    }
                    world.send_urgent(&[9u64], 1, Tag(2))?;
                    is_sent.add_one();
                    assert_eq!(world.receive::<u64>(1, Tag(3))?.0, 10);
                    let mut last = requests.pop().unwrap();
                    assert!(last.test()?.is_none(), "much is still on its way");
                    world.send_urgent(&[11u64], 1, Tag(4))
                })
                .unwrap();
            return;
        }
        // Who receives all the time may have much of it before the urgent one is sent. So this one only looks.
        is_sent.wait_for(1);
        let look_for = |tag| while world.try_probe(0, tag).unwrap().is_none() {};
        look_for(Tag(2));
        assert_eq!(world.receive::<u64>(Any, Tag(2)).unwrap().0, 9);
        world.send_urgent(&[10u64], 0, Tag(3)).unwrap();
        look_for(Tag(4));
        assert_eq!(world.receive::<u64>(0, Tag(4)).unwrap().0, 11);
        for _ in 0..BULK {
            assert_eq!(world.receive_vec::<u8>(0, Tag(1)).unwrap().0.len(), 16 * 1024);
        }
    });
}

#[test]
fn urgent_posts_pass_a_full_mailbox_and_long_ones_are_refused() {
    let name = "modes::urgent_posts_pass_a_full_mailbox_and_long_ones_are_refused";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        if world.rank() == 0 {
            let mut inbox = job.create_mailbox().unwrap();
            inbox.register("full").unwrap();
            let mut urgent = job.create_mailbox().unwrap();
            urgent.register("urgent").unwrap();
            world.barrier().unwrap();
            let mut value = [0u32];
            urgent.retrieve_values(&mut value).unwrap();
            assert_eq!(value, [77]);
            let count: u64 = world.receive(1, Tag(1)).unwrap().0;
            for _ in 0..count {
                assert_eq!(inbox.retrieve().unwrap().bytes(), 10_000);
            }
            return;
        }
        world.barrier().unwrap();
        let (full, urgent) =
            (job.open_mailbox("full").unwrap(), job.open_mailbox("urgent").unwrap());
        let mut message = Message::new();
        message.pack(&[1u8; 10_000]);
        let mut count = 0u64;
        while full.try_post(&message).is_ok() && count < 10_000 {
            count += 1;
        }
        urgent.post_urgent(&[77u32]).unwrap();
        let long = urgent.post_urgent(&[0u8; 49]).unwrap_err();
        assert!(matches!(long.kind, ErrorKind::UrgentTooLong { bytes: 49, most: 48 }), "{long}");
        world.send(&[count], 0, Tag(1)).unwrap();
    });
}

#[test]
fn urgent_posts_have_a_limit_and_lose_nothing() {
    const TIME: Duration = Duration::from_millis(100);
    let name = "modes::urgent_posts_have_a_limit_and_lose_nothing";
    in_job(2, name, ThreadMode::Single, |job| {
        let (world, is_late) = (job.world(), Count::new(job, "is late"));
        if world.rank() == 0 {
            let mut inbox = job.create_mailbox().unwrap();
            inbox.register("urgent").unwrap();
            world.barrier().unwrap();
            // Not looking for messages meanwhile: they fill the queue, then there is no room.
            is_late.wait_for(1);
            let count: u64 = world.receive(1, Tag(1)).unwrap().0;
            let mut all: Vec<u64> = (0..count)
                .map(|_| {
                    let mut value = [0];
                    inbox.retrieve_values(&mut value).unwrap();
                    value[0]
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            assert!(inbox.try_retrieve().unwrap().is_none());
            return;
        }
        world.barrier().unwrap();
        let urgent = job.open_mailbox("urgent").unwrap();
        let mut count = 0u64;
        let late = loop {
            assert!(count < 1_000_000, "there is room for ever");
            if let Err(refused) = urgent.try_post_urgent(&[count]) {
                assert!(matches!(refused.kind, ErrorKind::WouldBlock), "{refused}");
                let began = Instant::now();
                // A network may have been slow.
                if let Err(late) = urgent.post_urgent_within(&[count], TIME) {
                    assert!(began.elapsed() >= TIME);
                    break late;
                }
            }
            count += 1;
        };
        assert!(matches!(late.kind, ErrorKind::TimedOut(_)), "{late}");
        is_late.add_one();
        world.send(&[count + 1], 0, Tag(1)).unwrap();
        urgent.post_urgent(&[count]).unwrap();
    });
}

#[test]
fn a_message_that_is_held_is_received_by_nobody_else() {
    in_job(
        2,
        "modes::a_message_that_is_held_is_received_by_nobody_else",
        ThreadMode::Single,
        |job| {
            let world = job.world();
            if world.rank() == 0 {
                for number in 1..=4u32 {
                    world.send(&vec![number; number as usize * 10_000], 1, Tag(1)).unwrap();
                }
                world.receive::<u8>(1, Tag(2)).unwrap();
                return;
            }
            let first = world.hold(Any, Tag(1)).unwrap();
            assert_eq!((first.status().rank(), first.status().bytes()), (0, 40_000));
            let second = world.hold(0, Any).unwrap();
            drop(second); // thrown away
            assert_eq!(world.receive_vec::<u32>(0, Tag(1)).unwrap().0, vec![3; 30_000]);
            let mut values = vec![0u32; 20_000];
            assert_eq!(first.receive_into(&mut values).unwrap().bytes(), 40_000);
            assert_eq!((values[9_999], values[10_000]), (1, 0));
            let fourth = world.hold(Any, Any).unwrap();
            assert_eq!(fourth.receive_vec::<u32>().unwrap(), vec![4; 40_000]);
            assert!(world.try_hold(Any, Any).unwrap().is_none());
            world.send(&[1u8], 0, Tag(2)).unwrap();
        },
    );
}

#[test]
fn repeated_operations_take_new_values_each_time() {
    in_job(2, "modes::repeated_operations_take_new_values_each_time", ThreadMode::Single, |job| {
        let world = job.world();
        let other = 1 - world.rank();
        for mode in [SendMode::Standard, SendMode::Synchronous, SendMode::Buffered, SendMode::Ready]
        {
            let mut send = Repeated::send(&world, mode, vec![0u64; 3_000], other, Tag(1));
            let mut receive = Repeated::<u64>::receive(&world, 4_000, Any, Tag(1));
            assert!(receive.status().is_none());
            for round in 1..50 {
                receive.start().unwrap();
                send.values_mut().unwrap().fill(round);
                send.start().unwrap();
                let values = receive.values().unwrap();
                assert_eq!((values[0], values[2_999], values[3_000]), (round, round, 0));
                assert_eq!(receive.status().unwrap().bytes(), 24_000);
                assert!(receive.test().unwrap());
            }
            send.wait().unwrap();
        }
        let mut nowhere = Repeated::send(&world, SendMode::Standard, vec![1u8], 2, Tag(1));
        assert!(matches!(
            nowhere.start(),
            Err(Error { kind: ErrorKind::NoSuchRank { rank: 2, size: 2 }, .. })
        ));
    });
}

#[test]
fn a_loan_to_many_is_read_in_place_by_all_and_comes_back() {
    let name = "modes::a_loan_to_many_is_read_in_place_by_all_and_comes_back";
    in_job(4, name, ThreadMode::Single, |job| {
        let world = job.world();
        if world.rank() == 0 {
            let before = job.heap_in_use().unwrap();
            for round in 0..20u32 {
                let mut loan = job.loan::<u32>(100_000).unwrap();
                loan.fill(round);
                world.send_loan_to(loan, &[1, 2, 3], Tag(1)).unwrap();
            }
            let nobody = job.loan::<u8>(10).unwrap();
            world.send_loan_to(nobody, &[], Tag(1)).unwrap();
            let many = job.loan::<u8>(10).unwrap();
            let refused = world.send_loan_to(many, &[1; 32], Tag(1)).unwrap_err();
            assert!(matches!(refused.kind, ErrorKind::Lend(_)), "{refused}");
            world.barrier().unwrap();
            assert_eq!(job.heap_in_use().unwrap(), before);
            return;
        }
        for round in 0..20 {
            let (loaned, status) = world.receive_loan::<u32>(0, Tag(1)).unwrap();
            assert!(loaned.is_in_place() && status.bytes() == 400_000);
            assert_eq!((loaned.get(0), loaned.get(99_999)), (Some(round), Some(round)));
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_loan_that_a_dead_reader_held_comes_back() {
    in_enduring_job(3, "modes::a_loan_that_a_dead_reader_held_comes_back", 137, |job| {
        let world = job.world();
        if world.rank() == 2 {
            let _held = world.receive_loan::<u8>(0, Tag(1)).unwrap();
            kill_myself();
        }
        if world.rank() == 0 {
            let before = job.heap_in_use().unwrap();
            let loan = job.loan::<u8>(1 << 20).unwrap();
            world.send_loan_to(loan, &[1, 2], Tag(1)).unwrap();
            world.receive::<u8>(1, Tag(2)).unwrap();
            assert!(world.receive::<u8>(2, Tag(2)).is_err(), "it is dead");
            assert_eq!(in_use(&job, before), before);
        } else {
            drop(world.receive_loan::<u8>(0, Tag(1)).unwrap());
            world.send(&[1u8], 0, Tag(2)).unwrap();
        }
        println!("survivor done");
        job.leave().unwrap();
    });
}

/// Bytes in use, once they are as many as this or after a while.
fn in_use(job: &Job, wanted: u64) -> u64 {
    let give_up = Instant::now() + NOTICED_WITHIN;
    while Instant::now() < give_up {
        if job.heap_in_use().unwrap() == wanted {
            break;
        }
        std::thread::sleep(MOMENT / 10);
    }
    job.heap_in_use().unwrap()
}
