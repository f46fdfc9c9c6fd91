//! Mailboxes of other hosts: found by name, posted to by address, and gone in order.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use landeck::{
    ErrorKind, Job, MailboxAddress, MailboxError, Message, ObjectError, Options, Progress, Tag,
};

use crate::job::{EACH, RANKS, on_hosts, on_hosts_with};

const LENGTHS: [usize; 8] = [0, 1, 48, 100, 4_000, 65_536, 70_000, 1 << 20];

/// The file, on all hosts, with the number of posted messages.
const POSTED: &str = "/run/hosts/posted";

/// The bytes of a message of a rank.
fn bytes(rank: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + rank) as u8).collect()
}

#[test]
fn messages_of_every_length_reach_a_mailbox_found_by_name() {
    on_hosts("mailboxes::messages_of_every_length_reach_a_mailbox_found_by_name", |job| {
        let world = job.world();
        let rank = world.rank();
        let mut inbox = job.create_mailbox().unwrap();
        inbox.register(format!("inbox of {rank}")).unwrap();
        world.barrier().unwrap();
        let far = (rank + EACH) % RANKS;
        let outbox = job.open_mailbox(format!("inbox of {far}")).unwrap();
        let near = job.open_mailbox(format!("inbox of {}", rank ^ 1)).unwrap();
        // Everything that the lengths need is on its way at once, so each process retrieves in a thread's stead.
        for length in LENGTHS {
            let mut message = Message::new();
            message.pack_text("far").pack(&bytes(rank, length));
            if length <= 4_000 {
                outbox.post(&message).unwrap();
            } else if rank < EACH {
                outbox.post(&message).unwrap();
                continue;
            }
            let mut got = inbox.retrieve().unwrap();
            assert_eq!(got.unpack_text().unwrap(), "far");
            let mut data = vec![0u8; length];
            got.unpack(&mut data).unwrap();
            assert!(data == bytes(far, length), "{length} bytes");
            assert_eq!(inbox.last_poster().unwrap(), outbox.address().process());
        }
        world.barrier().unwrap();
        outbox.post_urgent(&[rank as u64]).unwrap();
        let mut value = [0u64];
        assert_eq!(inbox.retrieve_values(&mut value).unwrap(), 1);
        assert_eq!(value, [far as u64]);
        world.barrier().unwrap();
        near.post_values(&[rank as u64]).unwrap();
        inbox.retrieve_values(&mut value).unwrap();
        assert_eq!(value, [(rank ^ 1) as u64]);
        world.barrier().unwrap();
    });
}

#[test]
fn one_of_two_publishers_owns_the_name_and_the_other_is_told_where() {
    on_hosts("mailboxes::one_of_two_publishers_owns_the_name_and_the_other_is_told_where", |job| {
        let world = job.world();
        let rank = world.rank();
        let mut inbox = job.create_mailbox().unwrap();
        for round in 0..10 {
            let name = format!("round {round}");
            world.barrier().unwrap();
            let registered = inbox.register(&name);
            let mut all = [0u64; RANKS];
            world.all_gather(&[u64::from(registered.is_ok())], &mut all).unwrap();
            assert_eq!(all.iter().sum::<u64>(), 1, "one owner per name");
            let owner = all.iter().position(|&is_owner| is_owner == 1).unwrap();
            let found = job.open_mailbox(&name).unwrap().address();
            let mut owners = inbox.address().to_words();
            world.broadcast(&mut owners, owner).unwrap();
            assert_eq!(found, MailboxAddress::from_words(owners));
            world.barrier().unwrap();
            if let Err(refused) = registered {
                let is_here = (owner < EACH) == (rank < EACH);
                let host = if owner < EACH { "n1" } else { "n2" };
                match refused.kind {
                    ErrorKind::Object(ObjectError::Taken { .. }) => assert!(is_here),
                    ErrorKind::Object(ObjectError::TakenElsewhere { host: on, .. }) => {
                        assert_eq!((is_here, &on[..]), (false, host));
                    }
                    other => panic!("{other}"),
                }
            } else {
                inbox.unregister(&name).unwrap();
            }
            world.barrier().unwrap();
            let unknown = job.open_mailbox(&name).unwrap_err();
            assert!(matches!(unknown.kind, ErrorKind::Object(ObjectError::Unknown { .. })));
        }
    });
}

#[test]
fn an_address_in_a_message_is_good_for_an_answer() {
    on_hosts("mailboxes::an_address_in_a_message_is_good_for_an_answer", |job| {
        let world = job.world();
        let mut inbox = job.create_mailbox().unwrap();
        if world.rank() == RANKS - 1 {
            inbox.register("service").unwrap();
            world.barrier().unwrap();
            for _ in 0..RANKS - 1 {
                let mut question = inbox.retrieve().unwrap();
                let back = job.open_mailbox_by_address(question.unpack_mailbox().unwrap()).unwrap();
                back.post_values(&[question.unpack_value::<u64>().unwrap() + 1]).unwrap();
            }
        } else {
            world.barrier().unwrap();
            let service = job.open_mailbox("service").unwrap();
            let question = world.rank() as u64 * 10;
            let mut message = Message::new();
            message.pack_mailbox(inbox.address()).pack(&[question]);
            service.post_and_wait(&message).unwrap();
            let mut answer = [0u64];
            inbox.retrieve_values(&mut answer).unwrap();
            assert_eq!(answer, [question + 1]);
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_dropped_mailbox_returns_posts_that_wait_and_drops_the_others() {
    on_hosts("mailboxes::a_dropped_mailbox_returns_posts_that_wait_and_drops_the_others", |job| {
        let world = job.world();
        let rank = world.rank();
        let inbox = job.create_mailbox().unwrap();
        let mut words = inbox.address().to_words();
        world.broadcast(&mut words, 0).unwrap();
        if rank == 0 {
            world.barrier().unwrap();
            drop(inbox);
            world.barrier().unwrap();
            world.barrier().unwrap();
            return;
        }
        let outbox = job.open_mailbox_by_address(MailboxAddress::from_words(words)).unwrap();
        world.barrier().unwrap();
        world.barrier().unwrap();
        let long = vec![1u8; 1 << 20];
        if rank >= EACH {
            // Short ones are dropped there, until the answer to the first has come.
            let begun = Instant::now();
            let told = loop {
                match outbox.post_values(&[1u8]) {
                    Ok(()) => assert!(begun.elapsed() < Duration::from_secs(60)),
                    Err(told) => break told,
                }
            };
            assert!(matches!(told.kind, ErrorKind::Mailbox(MailboxError::GoneElsewhere { .. })));
            let again = job.open_mailbox_by_address(MailboxAddress::from_words(words));
            assert!(again.is_err(), "the process knows it by now");
            let mut message = Message::new();
            message.pack(&[2u8]);
            for refused in
                [outbox.post_and_wait(&message), outbox.post_values(&long)].map(Result::unwrap_err)
            {
                let ErrorKind::Mailbox(MailboxError::GoneElsewhere { host, .. }) = &refused.kind
                else {
                    panic!("{refused}")
                };
                assert_eq!(host, "n1");
            }
            // From then on every post says so.
            for refused in [outbox.post_values(&[3u8]), outbox.try_post_values(&[4u8])] {
                let gone = refused.unwrap_err();
                let ErrorKind::Mailbox(MailboxError::GoneElsewhere { .. }) = gone.kind else {
                    panic!("{gone}")
                };
            }
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_long_post_with_a_limit_is_posted_whole_or_not_at_all() {
    on_hosts("mailboxes::a_long_post_with_a_limit_is_posted_whole_or_not_at_all", |job| {
        let world = job.world();
        let mut inbox = job.create_mailbox().unwrap();
        let mut words = inbox.address().to_words();
        world.broadcast(&mut words, 0).unwrap();
        let long = vec![7u64; 100_000];
        if world.rank() == EACH {
            let outbox = job.open_mailbox_by_address(MailboxAddress::from_words(words)).unwrap();
            let mut message = Message::new();
            message.pack(&long);
            // Its owner does not call: posts wait in this process's heap until that is full.
            let mut posted = 0u64;
            let late = loop {
                match outbox.post_within(&message, Duration::from_millis(50)) {
                    Ok(()) => posted += 1,
                    Err(late) => break late,
                }
            };
            assert!(matches!(late.kind, ErrorKind::TimedOut(_)), "{late}");
            assert!(posted > 0);
            fs::write(POSTED, posted.to_string()).unwrap();
        }
        if world.rank() == 0 {
            let posted: u64 = loop {
                std::thread::sleep(Duration::from_millis(1));
                let said = fs::read_to_string(POSTED).ok();
                if let Some(posted) = said.and_then(|said| said.parse().ok()) {
                    break posted;
                }
            };
            for _ in 0..posted {
                let mut values = vec![0u64; long.len()];
                inbox.retrieve().unwrap().unpack(&mut values).unwrap();
                assert!(values == long);
            }
            world.receive::<u8>(EACH, Tag(1)).unwrap();
            assert!(inbox.try_retrieve().unwrap().is_none(), "nothing of the last one");
        } else if world.rank() == EACH {
            world.send(&[1u8], 0, Tag(1)).unwrap();
        }
        world.barrier().unwrap();
    });
}

#[test]
fn all_may_post_long_messages_before_they_retrieve() {
    on_hosts("mailboxes::all_may_post_long_messages_before_they_retrieve", |job| {
        let world = job.world();
        let rank = world.rank();
        let mut inbox = job.create_mailbox().unwrap();
        let mut addresses = [[0u64; MailboxAddress::WORDS]; RANKS];
        world.all_gather(&[inbox.address().to_words()], &mut addresses).unwrap();
        for length in [120_000, 256 << 10] {
            let others = || (0..RANKS).filter(|&other| other != rank);
            for other in others() {
                let address = MailboxAddress::from_words(addresses[other]);
                let outbox = job.open_mailbox_by_address(address).unwrap();
                outbox.post_values(&bytes(rank, length)).unwrap();
            }
            let mut values = vec![0u8; length];
            for _ in others() {
                assert_eq!(inbox.retrieve_values(&mut values).unwrap(), length);
                let from = usize::from(values[0]);
                assert!(from != rank && values == bytes(from, length), "from {from}");
            }
            world.barrier().unwrap();
        }
    });
}

#[test]
fn a_mailbox_announces_messages_from_other_hosts() {
    let options = Options { progress: Progress::Thread, ..Options::default() };
    let test = "mailboxes::a_mailbox_announces_messages_from_other_hosts";
    on_hosts_with(test, options, |job| {
        let world = job.world();
        if world.rank() != 0 {
            world.barrier().unwrap();
            return job.open_mailbox("told").unwrap().post_values(&[world.rank()]).unwrap();
        }
        let mut inbox = job.create_mailbox().unwrap();
        inbox.register("told").unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let count = move || {
            counted.fetch_add(1, Ordering::SeqCst);
        };
        inbox.on_message(count).unwrap();
        world.barrier().unwrap();
        let begun = Instant::now();
        let mut got = 0;
        while got < RANKS - 1 {
            while calls.swap(0, Ordering::SeqCst) == 0 {
                assert!(begun.elapsed() < Duration::from_secs(60), "{got} announced");
                std::thread::sleep(Duration::from_millis(1));
            }
            let mut value = [0usize];
            while inbox.try_retrieve_values(&mut value).unwrap().is_some() {
                got += 1;
            }
        }
    });
}

#[test]
fn the_names_of_a_dead_owner_are_free_and_posts_to_it_fail_by_name() {
    let test = "mailboxes::the_names_of_a_dead_owner_are_free_and_posts_to_it_fail_by_name";
    let body = |job: &Job| {
        let world = job.world();
        let rank = world.rank();
        let mut inbox = job.create_mailbox().unwrap();
        if rank == 1 {
            inbox.register("mortal").unwrap();
        }
        world.barrier().unwrap();
        if rank == 1 {
            crate::support::kill_myself();
        }
        let begun = Instant::now();
        // Its end is a word that every host hears in its time.
        while let Ok(outbox) = job.open_mailbox("mortal") {
            let posted = outbox.post_values(&[1u8]);
            if let Err(error) = posted {
                let ErrorKind::PeerFailed { how, who, .. } = &error.kind else { panic!("{error}") };
                assert_eq!(how, "was killed by signal 9");
                assert!(rank < EACH || who.contains(" on n1"), "{who}");
            }
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        // The next owner of the name comes when all have seen the end of the first.
        if rank == RANKS - 1 {
            for other in [0, 2] {
                world.receive::<u8>(other, Tag(1)).unwrap();
            }
            inbox.register("mortal").unwrap();
        } else {
            world.send(&[0u8], RANKS - 1, Tag(1)).unwrap();
        }
    };
    let options = ["--on-failure", "notify"];
    if crate::support::is_member() {
        return on_hosts(test, body);
    }
    let Some(ended) = crate::job::run(test, &options) else { return };
    assert!(!crate::support::text(&ended).contains("panicked"), "{}", crate::support::text(&ended));
}

/// A poster dies behind long messages that it had posted and that were not retrieved. Of those that are lost the owner is
/// told once, whether the poster was on its host or not, and it retrieves everything of others.
#[test]
fn messages_that_are_lost_with_their_poster_are_told_once() {
    const LONG: usize = 20;
    const SHORT: u64 = 10;
    let test = "mailboxes::messages_that_are_lost_with_their_poster_are_told_once";
    let body = |job: &Job| {
        let world = job.world();
        let (rank, living) = (world.rank(), RANKS - 2);
        let victims = [1, RANKS - 1];
        let mut inbox = job.create_mailbox().unwrap();
        if rank == 0 {
            inbox.register("lossy").unwrap();
        }
        world.barrier().unwrap();
        let outbox = job.open_mailbox("lossy").unwrap();
        if victims.contains(&rank) {
            let mut message = Message::new();
            message.pack(&bytes(rank, 100_000));
            (0..LONG).for_each(|_| outbox.post(&message).unwrap());
            world.send(&[0u8], 0, Tag(1)).unwrap();
            world.receive::<u8>(0, Tag(2)).unwrap();
            crate::support::kill_myself();
        }
        if rank != 0 {
            (0..SHORT).for_each(|number| outbox.post_values(&[number]).unwrap());
            return;
        }
        for victim in victims {
            world.receive::<u8>(victim, Tag(1)).unwrap();
            world.send(&[0u8], victim, Tag(2)).unwrap();
        }
        for victim in victims {
            world.receive::<u8>(victim, Tag(3)).unwrap_err();
        }
        let (mut told, mut short) = (Vec::new(), 0);
        while short < (living - 1) as u64 * SHORT || told.is_empty() {
            match inbox.retrieve_within(Duration::from_secs(60)) {
                Ok(message) => short += u64::from(message.bytes() < 1_000),
                Err(error) => told.push(error),
            }
        }
        let rest = std::iter::from_fn(|| match inbox.retrieve_within(Duration::from_millis(50)) {
            Err(error) if matches!(error.kind, ErrorKind::TimedOut(_)) => None,
            retrieved => Some(retrieved),
        });
        told.extend(rest.filter_map(Result::err));
        for victim in victims {
            let name = format!("rank {victim} on ");
            let of_it = told.iter().filter(|error| error.to_string().contains(&name));
            let (of_it, is_far) = (of_it.count(), victim >= EACH);
            assert!(of_it <= 1 && (of_it == 1 || !is_far), "{told:?}");
        }
        assert!(told.iter().all(|error| matches!(error.kind, ErrorKind::PeerFailed { .. })));
    };
    if crate::support::is_member() {
        return on_hosts(test, body);
    }
    let Some(ended) = crate::job::run(test, &["--on-failure", "notify"]) else { return };
    assert!(!crate::support::text(&ended).contains("panicked"), "{}", crate::support::text(&ended));
}
