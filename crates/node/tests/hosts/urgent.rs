//! Urgent messages to another host: they pass what waits, on the same pair as well, and have a limit of their own.

use std::collections::VecDeque;
use std::time::Duration;

use landeck::unstable::memory::system::now_ns;
use landeck::{Job, Tag};

use crate::job::{EACH, on_hosts, run};
use crate::support::{is_member, text};

const BULK: Tag = Tag(1);
const URGENT: Tag = Tag(2);

/// Prints the median and the longest of these times, and returns the median.
fn median(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("urgent messages {what}: median {median:?}, longest {longest:?} of {}", times.len());
    median
}

/// An urgent message may take 5 ms. Tests allow ten times the limit, for the median, beside others that compute.
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
            median("sent", times);
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
        assert!(median("arrived", times) < DELAY_MAX);
        println!("urgent messages: {left} left");
        (0..left).try_for_each(|_| world.receive_vec::<u8>(0, BULK).map(drop))
    };
    match world.rank() {
        0 => send_all().unwrap(),
        EACH => receive_all().unwrap(),
        _ => {}
    }
    world.barrier().unwrap();
}
