//! A process that joins late: its daemon may keep lanes for it that hold all that their processes have sent.

use std::io::Write;
use std::time::Duration;

use landeck_channel::conformance::Arrivals;
use landeck_channel::{Channel, Peer};
use landeck_testing::Watchdog;
use landeck_wire::handover::{Cipher, Handover};
use landeck_wire::{Header, Kind};

use crate::support::{TestDaemon, until};

#[test]
fn nobody_is_read_out_before_the_daemon_has_handed_over_the_lanes_that_came_first() {
    let _watchdog = Watchdog::start(Duration::from_secs(100));
    let mut daemon = TestDaemon::new(3, Cipher::Plain);
    let mut channel = daemon.newcomer(0);
    let mut arrivals = Arrivals::default();
    channel.poll_thoroughly(&mut arrivals);
    assert!(!channel.is_read_out(Peer(1)) && !channel.is_read_out(Peer(2)));
    // Process 1 has sent a message and has left.
    let mut gone = daemon.possess(0, 1, 1);
    gone.write_all(&Header::user(Kind::Eager, 0, 5, 6).encode()).unwrap();
    gone.write_all(&Header::GOODBYE.encode()).unwrap();
    drop(gone);
    daemon.hand(0, &Handover::Welcome { silence_ms: 60_000 }, None);
    until("the message is there", || {
        channel.poll_thoroughly(&mut arrivals);
        channel.is_read_out(Peer(1)) && channel.is_read_out(Peer(2))
    });
    assert_eq!(arrivals.take().len(), 1);
}
