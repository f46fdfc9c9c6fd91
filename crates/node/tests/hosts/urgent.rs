//! Urgent messages to another host: they pass what waits, on the same pair as well, and have a limit of their own.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use landeck::unstable::memory::system::now_ns;
use landeck::{ErrorKind, Job, MailboxAddress, Tag};

use crate::job::{EACH, on_hosts, run};
use crate::support::{Count, is_member, text};

const BULK: Tag = Tag(1);
const URGENT: Tag = Tag(2);
const ANSWER: Tag = Tag(3);

/// Prints quartile, median and longest of these times, and returns the quartile: others compute beside the test.
fn quartile(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let [quartile, median, longest] =
        [times.len() / 4, times.len() / 2, times.len() - 1].map(|at| times[at]);
    println!(
        "urgent messages {what}: quartile {quartile:?}, median {median:?}, longest {longest:?} of {}",
        times.len()
    );
    quartile
}

/// An urgent message may take 5 ms. Tests allow ten times the limit.
const DELAY_MAX: Duration = Duration::from_millis(50);

#[test]
fn urgent_messages_pass_the_bulk_of_their_pair() {
    let test = "urgent::urgent_messages_pass_the_bulk_of_their_pair";
    if is_member() {
        return on_hosts(test, pass_the_bulk);
    }
    for path in ["auto", "relay"] {
        let Some(ended) = run(test, &["--path", path]) else { return };
        assert!(ended.status.success(), "{path}: {}", text(&ended));
        let said = text(&ended);
        let times = said.lines().filter(|line| line.contains("urgent messages"));
        times.for_each(|line| println!("{path}: {line}"));
    }
}

/// Rank 0 sends more than all memory between the two holds. Now and then it sends an urgent message with the time.
fn pass_the_bulk(job: &Job) {
    const ROUNDS: usize = 15;
    const MESSAGES: usize = 1_500;
    const AHEAD: usize = 500;
    let world = job.world();
    let bulk = vec![7u8; 16 * 1024];
    let send_all = || {
        let mut times = Vec::new();
        world.scope(|scope| {
            let mut sends = VecDeque::new();
            for number in 1..=MESSAGES {
                sends.push_back(scope.send(&bulk, EACH, BULK)?);
                if number % (MESSAGES / ROUNDS) == 0 {
                    let begun = now_ns();
                    world.send_urgent(&[begun], EACH, URGENT)?;
                    times.push(Duration::from_nanos(now_ns() - begun));
                }
                if sends.len() > AHEAD
                    && let Some(first) = sends.pop_front()
                {
                    first.wait()?;
                }
            }
            quartile("sent", times);
            sends.into_iter().try_for_each(|send| send.wait().map(drop))
        })
    };
    let receive_all = || -> landeck::Result<()> {
        let (mut times, mut left) = (Vec::new(), MESSAGES);
        while times.len() < ROUNDS {
            if world.try_probe(0, URGENT)?.is_some() {
                let begun = world.receive::<u64>(0, URGENT)?.0;
                times.push(Duration::from_nanos(now_ns() - begun));
            } else if left > 0 {
                world.receive_vec::<u8>(0, BULK)?;
                left -= 1;
            }
        }
        assert!(quartile("arrived", times) < DELAY_MAX);
        assert!(left > 0, "they were not behind all of it");
        (0..left).try_for_each(|_| world.receive_vec::<u8>(0, BULK).map(drop))
    };
    match world.rank() {
        0 => send_all().unwrap(),
        EACH => receive_all().unwrap(),
        _ => {}
    }
    world.barrier().unwrap();
}

/// The receiver takes nothing else: it keeps 4 MiB, and the rest of the bulk is in sockets, which take it all or not.
#[test]
fn an_urgent_message_is_not_held_up_by_what_its_receiver_leaves() {
    const KEPT: usize = 256;
    on_hosts("urgent::an_urgent_message_is_not_held_up_by_what_its_receiver_leaves", |job| {
        let world = job.world();
        let bulk = vec![7u8; 16 * 1024];
        for messages in (KEPT + 18..KEPT + 50).step_by(2) {
            match world.rank() {
                0 => world
                    .scope(|scope| {
                        let sends = (0..messages).map(|_| scope.send(&bulk, EACH, BULK));
                        let sends = sends.collect::<landeck::Result<Vec<_>>>()?;
                        world.send_urgent(&[9u8], EACH, URGENT)?;
                        world.receive::<u8>(EACH, ANSWER)?;
                        sends.into_iter().try_for_each(|send| send.wait().map(drop))
                    })
                    .unwrap(),
                EACH => {
                    let begun = Instant::now();
                    while world.try_probe(0, URGENT).unwrap().is_none() {
                        let waits = begun.elapsed();
                        assert!(waits < Duration::from_secs(60), "{messages} hold it up");
                    }
                    assert_eq!(world.receive::<u8>(0, URGENT).unwrap().0, 9);
                    world.send_urgent(&[9u8], 0, ANSWER).unwrap();
                    (0..messages).for_each(|_| drop(world.receive_vec::<u8>(0, BULK).unwrap()));
                }
                _ => {}
            }
            world.barrier().unwrap();
        }
    });
}

/// Its owner does not call. Posts beyond the limit are refused, again and again, and none is lost.
#[test]
fn urgent_posts_to_another_host_have_a_limit() {
    let test = "urgent::urgent_posts_to_another_host_have_a_limit";
    if is_member() {
        return on_hosts(test, post_up_to_the_limit);
    }
    for path in ["auto", "relay"] {
        let Some(ended) = run(test, &["--path", path]) else { return };
        assert!(ended.status.success(), "{path}: {}", text(&ended));
    }
}

fn post_up_to_the_limit(job: &Job) {
    const TIME: Duration = Duration::from_millis(100);
    const MOST: u64 = 2_000;
    let world = job.world();
    let mut inbox = job.create_mailbox().unwrap();
    let mut words = inbox.address().to_words();
    world.broadcast(&mut words, EACH).unwrap();
    let is_refused = Count::new(job, "urgent posts");
    match world.rank() {
        0 => {
            let outbox = job.open_mailbox_by_address(MailboxAddress::from_words(words)).unwrap();
            let mut count = 0u64;
            let late = loop {
                match outbox.post_urgent_within(&[count], TIME) {
                    Ok(()) => count += 1,
                    Err(late) => break late,
                }
                assert!(count <= MOST, "there is room for ever");
            };
            assert!(matches!(late.kind, ErrorKind::TimedOut(TIME)), "{late}");
            assert!(outbox.post_urgent_within(&[count], TIME).is_err(), "the limit stands");
            let refused = outbox.try_post_urgent(&[count]).unwrap_err();
            assert!(matches!(refused.kind, ErrorKind::WouldBlock), "{refused}");
            is_refused.add_one();
            outbox.post_urgent(&[count]).unwrap();
            world.send(&[count + 1], EACH, ANSWER).unwrap();
        }
        EACH => {
            is_refused.wait_for(1);
            let count = world.receive::<u64>(0, ANSWER).unwrap().0;
            let mut all = Vec::new();
            for _ in 0..count {
                let mut value = [0];
                inbox.retrieve_values(&mut value).unwrap();
                all.push(value[0]);
            }
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            assert!(inbox.try_retrieve().unwrap().is_none());
        }
        _ => {}
    }
    world.barrier().unwrap();
}
