//! A daemon that ends, and starts again or not: its processes go on, and tell the next run what they have and wait for.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use landeck_channel::conformance::Arrivals;
use landeck_channel::{Channel, Peer, SendError};
use landeck_memory::Bytes;
use landeck_testing::Watchdog;
use landeck_transports::Lanes;
use landeck_wire::handover::{Cipher, Handover};
use landeck_wire::{Header, Kind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};

use crate::support::{PATIENCE, TestDaemon, until};

fn send(from: &mut Lanes, to: u32) -> Result<(), SendError> {
    let header = Header::user(Kind::Eager, 3, 1, 2);
    from.try_send(Peer(to), &header, Bytes::from(&b"abc"[..]))
}

/// Sends a message to a far process, and waits until it is there.
fn pass(from: &mut Lanes, to: &mut Lanes, far: u32) {
    let mut arrivals = Arrivals::default();
    until("the message can be sent", || {
        from.poll_thoroughly(&mut Arrivals::default());
        to.poll_thoroughly(&mut arrivals);
        send(from, far).is_ok()
    });
    until("the message has come", || {
        from.poll_thoroughly(&mut Arrivals::default());
        to.poll_thoroughly(&mut arrivals);
        !arrivals.is_empty()
    });
}

/// The messages of channel 0 to its daemon, as soon as there are so many.
fn said(daemon: &mut TestDaemon, channel: &mut Lanes, count: usize) -> Vec<Handover> {
    let mut said = Vec::new();
    until("the channel has said all", || {
        channel.poll_thoroughly(&mut Arrivals::default());
        said.extend(daemon.heard().into_iter().filter(|(by, _)| *by == 0).map(|(_, it)| it));
        said.len() >= count
    });
    said
}

#[test]
fn a_process_tells_the_next_run_of_its_daemon_what_it_has_and_waits_for() {
    let _watchdog = Watchdog::start(Duration::from_secs(100));
    let mut daemon = TestDaemon::new(4, Cipher::Aes256Gcm);
    let (mut one, meeting) = daemon.lasting(0);
    let mut other = daemon.channel(1);
    daemon.connect(0, 1);
    pass(&mut one, &mut other, 1);
    // A lane that has broken, and one that is not there yet.
    let cut = daemon.possess(0, 3, 5);
    until("it is there", || {
        one.poll_thoroughly(&mut Arrivals::default());
        one.has_lane(Peer(3))
    });
    shutdown(&cut, Shutdown::Both).unwrap();
    drop(cut);
    until("it has ended", || {
        one.poll_thoroughly(&mut Arrivals::default());
        !one.has_lane(Peer(3))
    });
    assert_eq!(send(&mut one, 2), Err(SendError::Full));
    one.poll_thoroughly(&mut Arrivals::default());
    let before = daemon.heard();
    let report = Handover::Broken { far: 3, incarnation: 0, lane: 5, errno: 0 };
    assert!(before.contains(&(0, report.clone())), "{before:?}");
    assert!(one.is_read_out(Peer(2)));

    daemon.restart(0, &meeting);
    let again = said(&mut daemon, &mut one, 6);
    let expected = [
        Handover::Hello { slot: 0, incarnation: 0, lanes_max: 0 },
        Handover::Has { far: 1, incarnation: 0, lane: 1 },
        Handover::Want { far: 2 },
        Handover::Has { far: 3, incarnation: 0, lane: 5 },
        report,
        Handover::Want { far: 3 },
    ];
    assert_eq!(again, expected);
    assert!(!one.is_read_out(Peer(2)), "lanes that came before may wait in the daemon");
    daemon.hand(0, &Handover::Welcome { silence_ms: 60_000 }, None);
    until("it is welcome", || {
        one.poll_thoroughly(&mut Arrivals::default());
        one.is_read_out(Peer(2))
    });
    pass(&mut one, &mut other, 1);
    let mut newcomer = daemon.channel(2);
    daemon.connect(0, 2);
    pass(&mut one, &mut newcomer, 2);

    // A further run hears of the new lane, too, and that the process has left.
    one.tell_departure();
    daemon.restart(0, &meeting);
    let again = said(&mut daemon, &mut one, 7);
    assert_eq!(again[2], Handover::Has { far: 2, incarnation: 0, lane: 1 });
    assert_eq!(again[6], Handover::Left);
    assert_eq!(meeting.attempts(), 2);
}

fn is_readable(descriptors: &[BorrowedFd<'_>]) -> bool {
    let mut watched: Vec<PollFd<'_>> =
        descriptors.iter().map(|it| PollFd::from_borrowed_fd(*it, PollFlags::IN)).collect();
    let longest = Timespec::try_from(PATIENCE).unwrap();
    poll(&mut watched, Some(&longest)).unwrap() > 0
}

#[test]
fn a_sleeper_is_woken_by_the_end_of_its_daemon_and_by_the_next_run() {
    let _watchdog = Watchdog::start(Duration::from_secs(100));
    let mut daemon = TestDaemon::new(2, Cipher::Plain);
    let (mut channel, meeting) = daemon.lasting(0);
    channel.poll_thoroughly(&mut Arrivals::default());
    daemon.restart(0, &meeting);
    assert!(is_readable(&channel.wake_descriptors()));
    channel.poll_thoroughly(&mut Arrivals::default());
    assert!(daemon.heard().len() == 1);
    daemon.hand(0, &Handover::Welcome { silence_ms: 60_000 }, None);
    assert!(is_readable(&channel.wake_descriptors()));
    channel.poll_thoroughly(&mut Arrivals::default());
    assert!(channel.is_read_out(Peer(1)));
}

#[test]
fn a_process_gives_up_where_nobody_listens_and_goes_on() {
    let _watchdog = Watchdog::start(Duration::from_secs(100));
    let mut daemon = TestDaemon::new(3, Cipher::Plain);
    let ((mut one, meeting), mut other) = (daemon.lasting(0), daemon.channel(1));
    daemon.connect(0, 1);
    pass(&mut one, &mut other, 1);
    daemon.end(0);
    let begin = Instant::now();
    let mut last = 0;
    until("it has given up", || {
        pass(&mut one, &mut other, 1);
        assert!(one.is_read_out(Peer(2)), "nobody will hand a lane over");
        let attempts = meeting.attempts();
        if attempts != last {
            assert!(begin.elapsed() >= (attempts - 1) * Duration::from_millis(300));
            last = attempts;
        }
        begin.elapsed() > Duration::from_secs(4)
    });
    assert_eq!(meeting.attempts(), 10);
}

#[test]
fn a_process_whose_daemon_sends_it_away_again_and_again_gives_up() {
    let _watchdog = Watchdog::start(Duration::from_secs(100));
    let mut daemon = TestDaemon::new(2, Cipher::Plain);
    let (mut channel, meeting) = daemon.lasting(0);
    until("it has given up", || {
        daemon.restart(0, &meeting);
        daemon.end(0);
        channel.poll_thoroughly(&mut Arrivals::default());
        meeting.attempts() == 10
    });
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        channel.poll_thoroughly(&mut Arrivals::default());
    }
    assert_eq!(meeting.attempts(), 10);
    assert!(channel.is_read_out(Peer(1)));
}
