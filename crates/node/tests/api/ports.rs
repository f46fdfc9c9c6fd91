//! Two jobs of one user on one host that meet by name, each with its own segment.

use std::time::Duration;

use landeck::{Error, ErrorKind, Job, Tag};
use landeck_testing::{Trail, Watchdog};

use crate::support::{GONE_WITHIN, RUN_MAX, is_member, job_of, text};

const TIME: Duration = Duration::from_secs(100);

/// A name that no other run of this test uses.
fn name() -> String {
    std::env::var("LANDECK_TEST_NAME").unwrap()
}

#[test]
fn two_jobs_meet_by_name_and_exchange_messages() {
    if is_member() {
        let job = Job::join().unwrap();
        match std::env::var("LANDECK_TEST_SIDE").unwrap().as_str() {
            "publish" if job.world().rank() == 0 => publish(&job),
            "connect" if job.world().rank() == 1 => connect(&job),
            _ => {}
        }
        return job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let name = format!("api-test-{}", std::process::id());
    let jobs = ["publish", "connect"].map(|side| {
        let mut command = job_of(2, "ports::two_jobs_meet_by_name_and_exchange_messages", &[]);
        command.env("LANDECK_TEST_SIDE", side).env("LANDECK_TEST_NAME", &name);
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        trail.spawn(&mut command)
    });
    for job in jobs {
        let ended = trail.finish(job, RUN_MAX);
        assert!(ended.status.success(), "{}", text(&ended));
    }
    trail.assert_gone(GONE_WITHIN);
}

fn publish(job: &Job) {
    let port = job.create_port(&name()).unwrap();
    let taken = job.create_port(&name());
    assert!(matches!(taken, Err(Error { kind: ErrorKind::Publish(_), .. })), "a name stands once");
    let remote = port.accept(TIME).unwrap();
    for round in 0..500u64 {
        let mut value = [0u64];
        remote.receive_into(&mut value, Tag(1)).unwrap();
        assert_eq!(value[0], round);
        remote.send(&[round + 1], Tag(2)).unwrap();
    }
    let mut large = vec![0u32; 1_000_000];
    remote.receive_into(&mut large, Tag(3)).unwrap();
    assert!(large.iter().all(|&value| value == 5));
    remote.send(&large, Tag(4)).unwrap();
    // The other side leaves first: its end is told, not waited for.
    let mut nothing = [0u8];
    let gone = remote.receive_into(&mut nothing, Tag(5)).unwrap_err();
    assert!(matches!(gone.kind, ErrorKind::PeerFailed { .. }), "{gone}");
}

fn connect(job: &Job) {
    let remote = loop {
        match job.connect(&name()) {
            Ok(remote) => break remote,
            // The other job may not have got that far.
            Err(Error { kind: ErrorKind::Connect(_), .. }) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{error}"),
        }
    };
    for round in 0..500u64 {
        remote.send(&[round], Tag(1)).unwrap();
        let mut value = [0u64];
        remote.receive_into(&mut value, Tag(2)).unwrap();
        assert_eq!(value[0], round + 1);
    }
    let large = vec![5u32; 1_000_000];
    remote.send(&large, Tag(3)).unwrap();
    let mut back = vec![0u32; 1_000_000];
    remote.receive_into(&mut back, Tag(4)).unwrap();
    assert!(back == large);
}
