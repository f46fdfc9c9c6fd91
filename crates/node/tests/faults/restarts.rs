//! A process that is started again meets the others as a guest does, and its predecessor stays dead.

use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::{ErrorKind, Job, Message, Peer, Restarted, Tag};

use crate::support::{self, NOTICED_WITHIN, RUN_MAX, is_member, job_of, kill_myself};
use landeck_testing::{Trail, Watchdog};

/// How long somebody who is started again may take to be there.
const COMES_WITHIN: Duration = Duration::from_secs(100);

/// Runs a job of two whose processes are started again.
fn run(test: &str) {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let ended = trail.run(&mut job_of(2, test, &["--on-failure", "restart"]), RUN_MAX);
    let said = support::text(&ended);
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("Started again: rank 1 twice."), "{said}");
    trail.assert_gone(support::GONE_WITHIN);
}

/// Asks again and again until there is an answer.
fn until_there<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + COMES_WITHIN;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < give_up, "nobody came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_next_process_is_found_by_name_and_the_last_one_stays_dead() {
    if !is_member() {
        return run("restarts::the_next_process_is_found_by_name_and_the_last_one_stays_dead");
    }
    let job = Job::join().unwrap();
    if job.restart().is_some() || job.world().rank() == 1 {
        return serve(job);
    }
    let world = job.world();
    let mut replies = job.create_mailbox().unwrap();
    replies.register("boss").unwrap();
    for round in 0..3u32 {
        let worker = until_there(|| job.open_mailbox("worker").ok());
        worker.post_values(&[round]).unwrap();
        let mut answer = [0u32; 2];
        replies.retrieve_values(&mut answer).unwrap();
        assert_eq!(answer, [round, round], "the number of the new start, and what was said");
        if round == 2 {
            break;
        }
        let began = Instant::now();
        let lost = until_there(|| worker.post_values(&[9u32]).err());
        assert!(matches!(lost.kind, ErrorKind::PeerFailed { .. }), "{lost}");
        assert!(began.elapsed() < NOTICED_WITHIN);
        let lost = world.receive::<u32>(1, Tag(1)).unwrap_err();
        assert!(matches!(lost.kind, ErrorKind::PeerFailed { .. }), "{lost}");
    }
    let lost = world.send(&[1u32], 1, Tag(1)).unwrap_err();
    assert!(
        matches!(lost.kind, ErrorKind::PeerFailed { .. }),
        "rank 1 of the first world is no more: {lost}"
    );
    job.leave().unwrap();
}

/// Rank 1, and those who replace it: answers once, and dies if it is not the last.
fn serve(job: Job) {
    let number = job.restart().map_or(0, |Restarted { rank, number }| {
        assert_eq!((rank, job.world().rank()), (1, usize::MAX));
        number
    });
    let mut orders = job.create_mailbox().unwrap();
    orders.register("worker").unwrap();
    let mut order = [0u32];
    orders.retrieve_values(&mut order).unwrap();
    let boss = until_there(|| job.open_mailbox("boss").ok());
    boss.post(Message::new().pack(&[number, order[0]])).unwrap_or_else(|error| panic!("{error}"));
    if number < 2 {
        job.drain().unwrap();
        kill_myself();
    }
    drop(orders);
    job.leave().unwrap();
}

#[test]
fn the_next_process_meets_the_others_in_a_world_that_both_name() {
    if !is_member() {
        return run("restarts::the_next_process_meets_the_others_in_a_world_that_both_name");
    }
    let job = Job::join().unwrap();
    let number = job.restart().map_or(0, |restart| restart.number);
    if number == 0 && job.world().rank() == 1 {
        kill_myself();
    }
    // Nobody has had the slots behind the ranks; the first one is the first new start's.
    let slot = 2 + number.saturating_sub(1);
    for next in 1..=2 {
        let is_next = number == next;
        if !is_next && number != 0 {
            continue;
        }
        let members = [Peer(0), Peer(1 + next)];
        let pair = job.world_of(100 + next, &members).unwrap();
        if is_next {
            assert_eq!(job.slot(), slot);
            pair.send(&[number], 0, Tag(1)).unwrap();
            assert_eq!(pair.receive::<u32>(0, Tag(2)).unwrap().0, 10 * number);
            if number == 1 {
                kill_myself();
            }
        } else {
            let came = || pair.receive::<u32>(1, Tag(1)).ok();
            let (came, _) = until_there(came);
            pair.send(&[10 * came], 1, Tag(2)).unwrap();
        }
    }
    job.leave().unwrap();
}
