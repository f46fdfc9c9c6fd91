//! Mailboxes as programs use them: found by name or in a message, posted to by all, retrieved by
//! the thread that made them; and what remains when owners or posters die.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use landeck::{
    Error, ErrorKind, Job, MailboxAddress, MailboxError, Message, NameError, ObjectError, Options,
    Progress, Tag, ThreadMode,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::{Count, NOTICED_WITHIN, in_enduring_job, in_job, in_job_with, kill_myself};

const MOMENT: Duration = Duration::from_millis(30);

fn is_gone(error: &Error) -> bool {
    use MailboxError::{Gone, GoneElsewhere};
    matches!(error.kind, ErrorKind::Mailbox(Gone { .. } | GoneElsewhere { .. }))
}

#[test]
fn a_named_mailbox_gets_what_all_post_in_the_order_of_each() {
    let name = "mailboxes::a_named_mailbox_gets_what_all_post_in_the_order_of_each";
    in_job(4, name, ThreadMode::Single, |job| {
        const EACH: u32 = 500;
        let world = job.world();
        let (own, mut posters) = (job.process(), vec![[0; 2]; world.size()]);
        world.all_gather(&[[own.segment.0, own.slot.0.into()]], &mut posters).unwrap();
        if world.rank() != 0 {
            world.barrier().unwrap();
            let inbox = job.open_mailbox("inbox").unwrap();
            let mut message = Message::new();
            for number in 0..EACH {
                message.clear();
                message.pack_text("from").pack(&[world.rank() as u32, number]);
                inbox.post(&message).unwrap();
            }
            return;
        }
        let mut inbox = job.create_mailbox().unwrap();
        assert!(inbox.try_retrieve().unwrap().is_none());
        inbox.register("inbox").unwrap();
        world.barrier().unwrap();
        let mut next = vec![0; world.size()];
        for _ in 0..EACH * (world.size() as u32 - 1) {
            let mut message = inbox.retrieve().unwrap();
            assert_eq!(message.unpack_text().unwrap(), "from");
            let [rank, number] = message.unpack_all::<u32>()[..] else { panic!("two numbers") };
            let poster = inbox.last_poster().unwrap();
            assert_eq!([poster.segment.0, poster.slot.0.into()], posters[rank as usize]);
            assert_eq!(number, next[rank as usize]);
            next[rank as usize] += 1;
        }
        assert!(
            inbox.retrieve_within(MOMENT).is_err_and(|e| matches!(e.kind, ErrorKind::TimedOut(_)))
        );
    });
}

#[test]
fn an_address_travels_in_a_message_and_is_answered() {
    let name = "mailboxes::an_address_travels_in_a_message_and_is_answered";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let mut own = job.create_mailbox().unwrap();
        if world.rank() == 0 {
            own.register("squares").unwrap();
            world.barrier().unwrap();
            for _ in 1..world.size() {
                let mut asked = own.retrieve().unwrap();
                let answers = job.open_mailbox_by_address(asked.unpack_mailbox().unwrap()).unwrap();
                let number: u64 = asked.unpack_value().unwrap();
                answers.post_values(&[number * number]).unwrap();
            }
        } else {
            world.barrier().unwrap();
            let mut question = Message::new();
            question.pack_mailbox(own.address()).pack(&[world.rank() as u64]);
            job.open_mailbox("squares").unwrap().post(&question).unwrap();
            let mut answer = [0u64; 4];
            assert_eq!(own.retrieve_values(&mut answer).unwrap(), 1);
            assert_eq!(answer[0], (world.rank() * world.rank()) as u64);
        }
        // An address is a plain value as well.
        let words = own.address().to_words();
        assert_eq!(MailboxAddress::from_words(words), own.address());
    });
}

#[test]
fn messages_of_any_length_and_from_oneself_arrive_whole() {
    let name = "mailboxes::messages_of_any_length_and_from_oneself_arrive_whole";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let mut own = job.create_mailbox().unwrap();
        let address: [u64; 4] = own.address().to_words();
        let mut other = [0u64; 4];
        let to = 1 - world.rank();
        world.send_receive(&address, (to, Tag(1)), &mut other, (to, Tag(1))).unwrap();
        for address in [other, address] {
            let outbox = job.open_mailbox_by_address(MailboxAddress::from_words(address)).unwrap();
            for length in [0usize, 1, 5, 31, 32, 33, 2_000, 3_000, 30_000] {
                let values: Vec<u64> = (0..length as u64).collect();
                let mut message = Message::new();
                message.pack(&values).pack_text("end");
                outbox.post(&message).unwrap();
                let mut arrived = own.retrieve().unwrap();
                assert_eq!(arrived.unpack_all::<u64>(), values, "length {length}");
                assert_eq!(arrived.unpack_text().unwrap(), "end");
            }
            world.barrier().unwrap();
        }
        assert!(own.try_retrieve().unwrap().is_none());
        // A longer one is read as it is written.
        if world.rank() == 0 {
            let outbox = job.open_mailbox_by_address(MailboxAddress::from_words(other)).unwrap();
            outbox.post_values(&vec![7u64; 1_000_000]).unwrap();
        } else {
            assert_eq!(own.retrieve().unwrap().unpack_all::<u64>(), vec![7; 1_000_000]);
        }
    });
}

#[test]
fn bad_retrieves_name_their_fault_and_lose_nothing() {
    let name = "mailboxes::bad_retrieves_name_their_fault_and_lose_nothing";
    in_job(1, name, ThreadMode::Single, |job| {
        let mut own = job.create_mailbox().unwrap();
        let outbox = job.open_mailbox_by_address(own.address()).unwrap();
        outbox.post_values(&[1.5f64, 2.5]).unwrap();
        let other = own.retrieve_values(&mut [0u64; 2]).unwrap_err();
        assert!(
            matches!(other.kind, ErrorKind::Mailbox(MailboxError::OtherType { .. })),
            "{other}"
        );
        let long = own.retrieve_values(&mut [0f64]).unwrap_err();
        let told = matches!(
            long.kind,
            ErrorKind::Mailbox(MailboxError::TooLong { message_bytes: 16, buffer_bytes: 8 })
        );
        assert!(told, "{long}");
        let mut values = [0f64; 3];
        assert_eq!(own.try_retrieve_values(&mut values).unwrap(), Some(2));
        assert_eq!(values, [1.5, 2.5, 0.0]);
        assert_eq!(own.try_retrieve_values(&mut values).unwrap(), None);
        let late = own.retrieve_values_within(&mut values, MOMENT).unwrap_err();
        assert!(matches!(late.kind, ErrorKind::TimedOut(_)), "{late}");
    });
}

#[test]
fn bad_names_and_addresses_are_told_apart() {
    let name = "mailboxes::bad_names_and_addresses_are_told_apart";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let mut own = job.create_mailbox().unwrap();
        let named = |error: Error| match error.kind {
            ErrorKind::Object(ObjectError::Name(error)) => error,
            other => panic!("{other}"),
        };
        assert_eq!(named(own.register("").unwrap_err()), NameError::Empty);
        let long = named(own.register("n".repeat(65)).unwrap_err());
        assert!(matches!(long, NameError::TooLong(_)), "{long}");
        let bytes = named(job.open_mailbox([0xc3, 0x28]).unwrap_err());
        assert!(matches!(bytes, NameError::NotUtf8(_)), "{bytes}");
        let unknown = job.open_mailbox("nobody's").unwrap_err();
        assert!(
            matches!(unknown.kind, ErrorKind::Object(ObjectError::Unknown { .. })),
            "{unknown}"
        );
        let never = own.unregister("nobody's").unwrap_err();
        assert!(matches!(never.kind, ErrorKind::Object(ObjectError::Unknown { .. })), "{never}");
        if world.rank() == 0 {
            own.register("one").unwrap();
        }
        world.barrier().unwrap();
        if world.rank() == 1 {
            let taken = own.register("one").unwrap_err();
            let ErrorKind::Object(taken) = taken.kind else { panic!("{taken}") };
            let is_taken =
                matches!(taken, ObjectError::Taken { .. } | ObjectError::TakenElsewhere { .. });
            assert!(is_taken, "{taken}");
        }
        world.barrier().unwrap();
        if world.rank() == 0 {
            own.unregister("one").unwrap();
        }
        world.barrier().unwrap();
        if world.rank() == 1 {
            own.register("one").unwrap();
        }
        world.barrier().unwrap();
        let [host, process, context, place] = own.address().to_words();
        let open =
            |words| job.open_mailbox_by_address(MailboxAddress::from_words(words)).unwrap_err();
        let another = open([host ^ 1, process, context, place]);
        assert!(matches!(another.kind, ErrorKind::Mailbox(MailboxError::AnotherJob)), "{another}");
        for words in [
            [host, u64::MAX, context, place],
            [host, process, context, u64::MAX],
            [host, process, context, place + 1],
        ] {
            let none = open(words);
            assert!(matches!(none.kind, ErrorKind::Mailbox(MailboxError::NoAddress)), "{none}");
        }
        assert!(is_gone(&open([host, process, context + 1, place])));
    });
}

#[test]
fn a_destroyed_mailbox_is_gone_and_never_anothers() {
    let name = "mailboxes::a_destroyed_mailbox_is_gone_and_never_anothers";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        if world.rank() == 0 {
            let mut first = job.create_mailbox().unwrap();
            first.register("first").unwrap();
            world.barrier().unwrap();
            world.barrier().unwrap();
            drop(first);
            let mut second = job.create_mailbox().unwrap();
            second.register("second").unwrap();
            world.barrier().unwrap();
            world.barrier().unwrap();
            let mut message = second.retrieve().unwrap();
            assert_eq!(message.unpack_text().unwrap(), "for the second");
            assert!(second.try_retrieve().unwrap().is_none());
            return;
        }
        world.barrier().unwrap();
        let first = job.open_mailbox("first").unwrap();
        first.post(Message::new().pack_text("never retrieved")).unwrap();
        world.barrier().unwrap();
        world.barrier().unwrap();
        let text = |text: &str| {
            let mut message = Message::new();
            message.pack_text(text);
            message
        };
        assert!(is_gone(&first.post(&text("too late")).unwrap_err()));
        assert!(is_gone(&first.try_post(&text("too late")).unwrap_err()));
        assert!(is_gone(&first.post_and_wait(&text("too late")).unwrap_err()));
        assert!(is_gone(&job.open_mailbox_by_address(first.address()).unwrap_err()));
        assert!(job.open_mailbox("first").is_err());
        job.open_mailbox("second").unwrap().post(&text("for the second")).unwrap();
        world.barrier().unwrap();
    });
}

#[test]
fn a_post_that_waits_for_room_or_retrieval_is_told_when_the_mailbox_goes() {
    let name = "mailboxes::a_post_that_waits_for_room_or_retrieval_is_told_when_the_mailbox_goes";
    in_job(3, name, ThreadMode::Single, |job| {
        let (world, about_to_wait) = (job.world(), Count::new(job, "about to wait"));
        if world.rank() == 0 {
            let mut full = job.create_mailbox().unwrap();
            full.register("full").unwrap();
            world.barrier().unwrap();
            about_to_wait.wait_for(2);
            std::thread::sleep(5 * MOMENT);
            drop(full);
            // What lies in the way of the others is dropped during calls only.
            world.barrier().unwrap();
            return;
        }
        world.barrier().unwrap();
        let full = job.open_mailbox("full").unwrap();
        let mut message = Message::new();
        message.pack(&vec![7u8; 4_000]);
        if world.rank() == 1 {
            about_to_wait.add_one();
            assert!(is_gone(&full.post_and_wait(&message).unwrap_err()));
        } else {
            while full.try_post(&message).is_ok() {}
            let late = full.post_within(&message, MOMENT).unwrap_err();
            assert!(matches!(late.kind, ErrorKind::TimedOut(_)), "{late}");
            message.clear();
            message.pack(&vec![7u8; 20 << 20]);
            about_to_wait.add_one();
            assert!(is_gone(&full.post(&message).unwrap_err()));
        }
        world.barrier().unwrap();
    });
}

/// They come piece by piece, and may be given up at any of them.
#[test]
fn long_messages_come_once_whatever_the_limits_of_who_retrieves_them() {
    let name = "mailboxes::long_messages_come_once_whatever_the_limits_of_who_retrieves_them";
    in_job(2, name, ThreadMode::Single, |job| {
        const LENGTH: u64 = 1_500_000;
        let world = job.world();
        if world.rank() == 0 {
            world.barrier().unwrap();
            let inbox = job.open_mailbox("long").unwrap();
            for number in 0..9 {
                let values: Vec<u64> = (0..LENGTH).map(|at| at ^ number).collect();
                inbox.post_values(&values).unwrap();
                inbox.post_values(&[number]).unwrap();
            }
            return world.barrier().unwrap();
        }
        let mut inbox = job.create_mailbox().unwrap();
        inbox.register("long").unwrap();
        world.barrier().unwrap();
        for number in 0..9 {
            let limit = Duration::from_micros(100 * number);
            let mut retrieve = || match number % 3 {
                0 => inbox.try_retrieve().unwrap().map(|mut message| message.unpack_all()),
                1 => match inbox.retrieve_within(limit) {
                    Err(Error { kind: ErrorKind::TimedOut(given), .. }) if given == limit => None,
                    message => Some(message.unwrap().unpack_all()),
                },
                _ => {
                    let mut values = vec![0u64; LENGTH as usize];
                    match inbox.retrieve_values_within(&mut values, limit) {
                        Err(Error { kind: ErrorKind::TimedOut(given), .. }) if given == limit => {
                            None
                        }
                        count => Some(values[..count.unwrap()].to_vec()),
                    }
                }
            };
            let mut next = || (0..).find_map(|_| retrieve()).unwrap();
            let (long, short): (Vec<u64>, Vec<u64>) = (next(), next());
            assert!(long.iter().copied().eq((0..LENGTH).map(|at| at ^ number)), "{number}");
            assert_eq!(short, [number]);
        }
        assert!(inbox.try_retrieve().unwrap().is_none());
        world.barrier().unwrap();
    });
}

/// Nobody retrieves: a post with a limit has posted all of a message or nothing, whatever its length.
#[test]
fn a_post_with_a_limit_ends_though_nobody_retrieves() {
    let name = "mailboxes::a_post_with_a_limit_ends_though_nobody_retrieves";
    in_job(2, name, ThreadMode::Single, |job| {
        let (world, posted, has_ended) =
            (job.world(), Count::new(job, "posted"), Count::new(job, "has ended"));
        if world.rank() == 0 {
            let mut inbox = job.create_mailbox().unwrap();
            inbox.register("slow").unwrap();
            world.barrier().unwrap();
            has_ended.wait_for(1);
            for number in 0..posted.get() {
                let mut message = inbox.retrieve().unwrap();
                assert_eq!(message.unpack_value::<u64>().unwrap(), number);
                assert!(message.unpack_all::<u8>().into_iter().all(|byte| byte == number as u8));
            }
            world.barrier().unwrap();
            assert!(inbox.try_retrieve().unwrap().is_none());
            return;
        }
        world.barrier().unwrap();
        let slow = job.open_mailbox("slow").unwrap();
        for bytes in [30 << 20, 4 << 20, 300 << 10, 1 << 10] {
            let late = loop {
                let (number, mut message) = (posted.get(), Message::new());
                message.pack(&[number]).pack(&vec![number as u8; bytes]);
                match slow.post_within(&message, MOMENT) {
                    Ok(()) => posted.add_one(),
                    Err(error) => break error,
                }
            };
            assert!(matches!(late.kind, ErrorKind::TimedOut(MOMENT)), "{late}");
        }
        has_ended.add_one();
        world.barrier().unwrap();
    });
}

#[test]
fn the_death_of_an_owner_is_told_and_frees_its_name() {
    let name = "mailboxes::the_death_of_an_owner_is_told_and_frees_its_name";
    in_enduring_job(3, name, 137, |job| {
        let world = job.world();
        if world.rank() == 2 {
            let mut inbox = job.create_mailbox().unwrap();
            inbox.register("mortal").unwrap();
            world.send(&[1u8], 0, Tag(1)).unwrap();
            world.send(&[1u8], 1, Tag(1)).unwrap();
            for rank in [0, 1] {
                world.receive::<u8>(rank, Tag(2)).unwrap();
            }
            std::thread::sleep(3 * MOMENT);
            kill_myself();
        }
        world.receive::<u8>(2, Tag(1)).unwrap();
        let mortal = job.open_mailbox("mortal").unwrap();
        world.send(&[1u8], 2, Tag(2)).unwrap();
        let mut message = Message::new();
        message.pack(&vec![1u8; 10_000]);
        let began = Instant::now();
        let told = loop {
            match mortal.post(&message) {
                Ok(()) => assert!(began.elapsed() < NOTICED_WITHIN),
                Err(error) => break error,
            }
        };
        assert!(matches!(told.kind, ErrorKind::PeerFailed { .. }), "{told}");
        let opened = job.open_mailbox_by_address(mortal.address());
        assert!(opened.is_err() || opened.unwrap().post(&message).is_err());
        // One of the others takes the name, once.
        let mut own = job.create_mailbox().unwrap();
        let registered = own.register("mortal").is_ok();
        let (count, _) = exchange(&job, u64::from(registered));
        assert_eq!(count, 1);
        println!("survivor done");
        job.leave().unwrap();
    });
}

/// Exchanges values between ranks 0 and 1; returns their sum and the other rank's value.
fn exchange(job: &Job, value: u64) -> (u64, u64) {
    let world = job.world();
    let other = 1 - world.rank();
    world.send(&[value], other, Tag(9)).unwrap();
    let theirs = world.receive::<u64>(other, Tag(9)).unwrap().0;
    (value + theirs, theirs)
}

#[test]
fn the_death_of_a_poster_leaves_what_it_posted_and_the_others() {
    let name = "mailboxes::the_death_of_a_poster_leaves_what_it_posted_and_the_others";
    in_enduring_job(3, name, 137, |job| {
        let world = job.world();
        if world.rank() == 0 {
            let mut inbox = job.create_mailbox().unwrap();
            inbox.register("inbox").unwrap();
            for rank in [1, 2] {
                world.send(&[1u8], rank, Tag(1)).unwrap();
            }
            std::thread::sleep(5 * MOMENT);
            let mut seen = [0u32; 3];
            while seen[1..] != [20, 20] {
                let mut message = inbox.retrieve().unwrap();
                let [rank, number] = message.unpack_all::<u32>()[..2] else { panic!("two") };
                assert_eq!(seen[rank as usize], number, "in order, none missing");
                seen[rank as usize] += 1;
            }
            let late = inbox.retrieve_within(MOMENT).unwrap_err();
            assert!(
                matches!(late.kind, ErrorKind::TimedOut(_)),
                "a death is not its business: {late}"
            );
            world.send(&[1u8], 1, Tag(2)).unwrap();
        } else {
            world.receive::<u8>(0, Tag(1)).unwrap();
            let inbox = job.open_mailbox("inbox").unwrap();
            for number in 0..20u32 {
                inbox.post_values(&[world.rank() as u32, number]).unwrap();
            }
            if world.rank() == 2 {
                kill_myself();
            }
            world.receive::<u8>(0, Tag(2)).unwrap();
        }
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn threads_have_mailboxes_of_their_own() {
    let name = "mailboxes::threads_have_mailboxes_of_their_own";
    in_job(2, name, ThreadMode::Multiple, |job| {
        const ROUNDS: u64 = 200;
        let rank = job.world().rank();
        std::thread::scope(|threads| {
            for thread in 0..3 {
                threads.spawn(move || {
                    let mut own = job.create_mailbox().unwrap();
                    own.register(format!("{rank}.{thread}")).unwrap();
                    let other = loop {
                        match job.open_mailbox(format!("{}.{thread}", 1 - rank)) {
                            Ok(found) => break found,
                            Err(Error { kind: ErrorKind::Object(_), .. }) => {
                                std::thread::sleep(MOMENT / 10);
                            }
                            Err(error) => panic!("{error}"),
                        }
                    };
                    for round in 0..ROUNDS {
                        other.post_values(&[round, thread]).unwrap();
                        let mut values = [0u64; 2];
                        own.retrieve_values(&mut values).unwrap();
                        assert_eq!(values, [round, thread]);
                    }
                    // Who is ahead keeps its mailbox until the other has found and used it.
                    other.post(&Message::new()).unwrap();
                    assert!(own.retrieve().unwrap().is_empty());
                });
            }
        });
        job.world().barrier().unwrap();
    });
}

#[test]
fn a_descriptor_and_a_function_tell_of_messages() {
    let name = "mailboxes::a_descriptor_and_a_function_tell_of_messages";
    let options = Options { progress: Progress::Thread, ..Options::default() };
    in_job_with(2, name, options, |job| {
        let world = job.world();
        if world.rank() == 1 {
            world.barrier().unwrap();
            let inbox = job.open_mailbox("watched").unwrap();
            for number in 0..3u32 {
                std::thread::sleep(MOMENT);
                inbox.post_values(&[number]).unwrap();
                world.barrier().unwrap();
            }
            return world.barrier().unwrap();
        }
        let mut inbox = job.create_mailbox().unwrap();
        inbox.register("watched").unwrap();
        let calls = Arc::new(AtomicU32::new(0));
        let (called, (tell, told)) = (calls.clone(), mpsc::channel());
        inbox
            .on_message(move || {
                called.fetch_add(1, Ordering::Relaxed);
                tell.send(()).unwrap();
            })
            .unwrap();
        assert!(!is_readable(&mut inbox, Duration::ZERO));
        world.barrier().unwrap();
        for number in 0..3u32 {
            assert!(is_readable(&mut inbox, Duration::from_secs(100)));
            let mut value = [0];
            assert_eq!(inbox.try_retrieve_values(&mut value).unwrap(), Some(1));
            assert_eq!(value, [number]);
            assert!(!is_readable(&mut inbox, Duration::ZERO), "as many as were told of");
            world.barrier().unwrap(); // the next one may come
        }
        told.recv_timeout(Duration::from_secs(100)).unwrap();
        world.barrier().unwrap();
        drop(inbox);
        assert!((1..=3).contains(&calls.load(Ordering::Relaxed)));
    });
}

fn is_readable(inbox: &mut landeck::Mailbox, time: Duration) -> bool {
    let descriptor = inbox.descriptor().unwrap();
    let limit = Timespec::try_from(time).unwrap();
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

#[test]
fn nobody_is_told_where_nobody_receives() {
    let name = "mailboxes::nobody_is_told_where_nobody_receives";
    in_job(1, name, ThreadMode::Single, |job| {
        let mut inbox = job.create_mailbox().unwrap();
        let refused = inbox.descriptor().unwrap_err();
        let told = matches!(refused.kind, ErrorKind::Mailbox(MailboxError::NoProgressThread));
        assert!(told, "{refused}");
    });
}
