//! Processes leave while others have not received everything, and abort.

use std::thread;
use std::time::Duration;

use landeck::{ErrorKind, Job, Tag};

use crate::job::{EACH, RANKS, on_hosts, run};
use crate::support::{is_member, text};

#[test]
fn everything_arrives_from_a_process_that_has_left() {
    on_hosts("leaving::everything_arrives_from_a_process_that_has_left", |job| {
        const SMALL: u32 = 500;
        let world = job.world();
        let (rank, far) = (world.rank(), (world.rank() + EACH) % RANKS);
        if rank < EACH {
            for number in 0..SMALL {
                world.send(&[number], far, Tag(1)).unwrap();
            }
            return world.send(&vec![rank as u32; 300_000], far, Tag(2)).unwrap();
        }
        let long = world.receive_vec::<u32>(far, Tag(2)).unwrap().0;
        assert!(long.len() == 300_000 && long.iter().all(|&value| value == far as u32));
        let gone = world.receive::<u8>(far, Tag(3)).unwrap_err();
        let ErrorKind::PeerFailed { rank, who, how } = gone.kind else { panic!("{gone}") };
        assert_eq!((rank, &how[..]), (Some(far), "has left the job"));
        assert!(who.contains(" on n1"), "{who}");
        for number in 0..SMALL {
            assert_eq!(world.receive::<u32>(far, Tag(1)).unwrap().0, number);
        }
        let gone = world.send(&[1u8], far, Tag(1)).unwrap_err();
        assert!(matches!(gone.kind, ErrorKind::PeerFailed { .. }), "{gone}");
    });
}

#[test]
fn a_process_leaves_that_has_only_sent() {
    on_hosts("leaving::a_process_leaves_that_has_only_sent", |job| {
        let world = job.world();
        if world.rank() != 0 {
            return world.send(&[world.rank()], 0, Tag(1)).unwrap();
        }
        thread::sleep(Duration::from_millis(300));
        let sum: usize =
            (1..RANKS).map(|from| world.receive::<usize>(from, Tag(1)).unwrap().0).sum();
        assert_eq!(sum, 6);
    });
}

#[test]
fn an_abort_ends_all_hosts() {
    let test = "leaving::an_abort_ends_all_hosts";
    if is_member() {
        let job = Job::join().unwrap();
        let world = job.world();
        // Rank 3 may be through the barrier, and end the job, before all others are.
        let outcome = world.barrier();
        if world.rank() == 3 {
            outcome.unwrap();
            job.abort(41, "enough");
        }
        let ended = outcome.and_then(|()| world.receive::<u8>(3, Tag(1))).unwrap_err();
        assert!(matches!(ended.kind, ErrorKind::Ended | ErrorKind::PeerFailed { .. }), "{ended}");
        thread::sleep(Duration::from_secs(30)); // the guardian is faster
        return;
    }
    let Some(ended) = run(test, &[]) else { return };
    assert_eq!(ended.status.code(), Some(41), "{}", text(&ended));
    assert!(!text(&ended).contains("panicked"), "{}", text(&ended));
}
