//! Hostile processes elsewhere, and receivers that do nothing: the relay serves all others.

use std::sync::atomic::Ordering;
use std::time::Duration;

use landeck_channel::conformance::{Arrivals, Network};
use landeck_channel::{Channel, Peer, SendError};
use landeck_memory::{Bytes, RelayWords};
use landeck_testing::Watchdog;
use landeck_transports::lanes::relay::{RelayEnd, RelayStream};
use landeck_wire::relayed::{RELAYED_PIECE_BYTES_MAX, RelayedPiece, relayed_window};
use landeck_wire::{Class, Header, Kind};

use super::conformance::{RelayedHosts, id, keys, tcp_pair, until};

fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(170))
}

/// The connection of process 1, in the test's hands, to the relay of host 0.
fn possessed(hosts: &RelayedHosts) -> RelayStream {
    let (mine, theirs) = tcp_pair();
    hosts.serve_relay(0, 1, theirs, id(1, 1));
    RelayStream::new(mine, &keys(false)).unwrap()
}

/// The relay's answer to an opening for messages: behind positions, whether it takes them.
fn open(stream: &mut RelayStream) -> Option<Header> {
    stream.push(&Header::RELAY_OPEN, &[], &[]).unwrap();
    loop {
        match answer(stream) {
            Some(Header { kind: Kind::Received | Kind::Granted, .. }) => {}
            other => return other,
        }
    }
}

fn opened(hosts: &RelayedHosts) -> RelayStream {
    let mut stream = possessed(hosts);
    assert_eq!(open(&mut stream), Some(Header::RELAY_OPEN));
    assert_eq!(hosts.hosts[0].segment.far_relayed(1).load(Ordering::Acquire), 1);
    stream
}

/// The next frame of the relay; `None` if it has closed the connection.
fn answer(stream: &mut RelayStream) -> Option<Header> {
    let mut heard = None;
    until("the relay answers", || {
        if let Err(RelayEnd::Closed | RelayEnd::System(_)) = stream.flush() {
            return true;
        }
        if let Some((header, _)) = stream.first().unwrap() {
            heard = Some(header);
            stream.consume();
            return true;
        }
        stream.fill().is_err()
    });
    heard
}

fn piece(sequence: u16, length: usize, to: (u32, u32)) -> (Header, Vec<u8>) {
    let message = Header { sequence, ..Header::user(Kind::Eager, length as u32, 7, 9) };
    let data = [&message.encode()[..], &vec![3; length]].concat();
    (Header { sequence, ..RelayedPiece::frame(Class::User, length, to) }, data)
}

#[test]
fn a_frame_that_no_process_sends_ends_its_connection_alone() {
    let _watchdog = watchdog();
    let (good, data) = piece(0, 100, (0, 1));
    let (long, long_data) = piece(0, RELAYED_PIECE_BYTES_MAX + 1, (0, 1));
    let (late, late_data) = piece(1, 100, (0, 1));
    let (nowhere, _) = piece(0, 100, (1, 1));
    let unknown = Header { kind: Kind::Goodbye, ..Header::user(Kind::Eager, 100, 7, 9) };
    let unknown = [&unknown.encode()[..], &[3; 100]].concat();
    let claims_less = Header::user(Kind::Eager, 99, 7, 9);
    let claims_less = [&claims_less.encode()[..], &[3; 100]].concat();
    for (what, frame, data) in [
        ("a slot that is not there", &nowhere, &data),
        ("too long", &long, &long_data),
        ("a piece is missing", &late, &late_data),
        ("an unknown kind", &good, &unknown),
        ("more data than the message has", &good, &claims_less),
        ("shorter than a header", &Header { length: 9, ..good }, &data[..9].to_vec()),
        ("opened twice", &Header::RELAY_OPEN, &Vec::new()),
    ] {
        let hosts = RelayedHosts::with(3);
        let mut stream = opened(&hosts);
        stream.push(frame, data, &[]).unwrap();
        assert_eq!(answer(&mut stream), None, "{what}");
        let relayed = hosts.hosts[0].segment.far_relayed(1);
        until("the relay takes no more", || relayed.load(Ordering::Acquire) == 0);
        // Such a process gets no further connection.
        let mut next = possessed(&hosts);
        assert_eq!(open(&mut next), Some(Header::GOODBYE), "{what}");
        assert_eq!(relayed.load(Ordering::Acquire), 0);
    }
    // Messages before the opening, and requests.
    let mut hosts = RelayedHosts::with(3);
    for (frame, data) in [(&good, &data[..]), (&Header::user(Kind::RelayGet, 48, 1, 0), &[0; 48])] {
        let mut stream = possessed(&hosts);
        stream.push(frame, data, &[]).unwrap();
        assert_eq!(answer(&mut stream), None);
    }
    // Another connection takes the place of the older one, and what it sends arrives.
    let (mut older, mut first) = (opened(&hosts), opened(&hosts));
    assert_eq!(answer(&mut older), None);
    first.push(&good, &data, &[]).unwrap();
    first.flush().unwrap();
    let mut arrivals = Arrivals::default();
    until("the message arrives", || {
        hosts.endpoint(0).poll(&mut arrivals);
        !arrivals.is_empty()
    });
    let arrived = arrivals.take();
    assert_eq!((arrived.len(), arrived[0].from, arrived[0].data.len()), (1, Peer(1), 100));
    assert_eq!(arrivals.broken_peers(), []);
    // A goodbye is the last.
    first.push(&Header::GOODBYE, &[], &[]).unwrap();
    assert_eq!(answer(&mut first), Some(Header::GOODBYE));
    first.push(&late, &late_data, &[]).unwrap();
    assert_eq!(answer(&mut first), None);
}

#[test]
fn messages_for_a_dead_receiver_are_dropped() {
    let _watchdog = watchdog();
    let mut hosts = RelayedHosts::with(3);
    let mut stream = opened(&hosts);
    let (frame, data) = piece(0, 100, (0, 9));
    stream.push(&frame, &data, &[]).unwrap();
    // The connection goes on, for the next message that has a receiver.
    let (frame, data) = piece(0, 200, (0, 1));
    stream.push(&frame, &data, &[]).unwrap();
    stream.flush().unwrap();
    let mut arrivals = Arrivals::default();
    until("the other message arrives", || {
        hosts.endpoint(0).poll(&mut arrivals);
        !arrivals.is_empty()
    });
    assert_eq!(arrivals.take()[0].data.len(), 200);
    hosts.end(0);
    let (frame, data) = piece(1, 200, (0, 1));
    stream.push(&frame, &data, &[]).unwrap();
    stream.push(&Header::GOODBYE, &[], &[]).unwrap();
    assert_eq!(answer(&mut stream), Some(Header::GOODBYE), "nothing waits for the dead");
}

#[test]
fn a_receiver_that_does_nothing_stops_its_senders_at_four_mebibytes() {
    let _watchdog = watchdog();
    const HOSTS: u32 = 3;
    let mut hosts = RelayedHosts::with(HOSTS);
    let header = Header::user(Kind::Eager, 0, 1, 1);
    let data = vec![7; RELAYED_PIECE_BYTES_MAX];
    let mut sent = [0; 2];
    for (count, sender) in sent.iter_mut().zip([1, 2]) {
        until("the window is used up", || {
            hosts.endpoint(sender).poll(&mut Arrivals::default());
            let result = hosts.endpoint(sender).try_send(Peer(0), &header, Bytes::from(&data[..]));
            *count += u64::from(result.is_ok());
            result == Err(SendError::Full) && *count >= relayed_window(HOSTS)
        });
        assert_eq!(*count, relayed_window(HOSTS));
    }
    let words = RelayWords::of(&hosts.hosts[0].segment, 0).unwrap();
    until("the relay holds what the ring does not", || words.has_held());
    // The others go on through the same relays.
    let mut arrivals = Arrivals::default();
    let mut others = 0;
    until("others go on", || {
        let result = hosts.endpoint(1).try_send(Peer(2), &header, Bytes::from(&data[..]));
        others += u64::from(result.is_ok());
        hosts.endpoint(1).poll(&mut Arrivals::default());
        hosts.endpoint(2).poll(&mut arrivals);
        others > 3 * relayed_window(HOSTS)
    });
    // When the receiver looks again, everything comes.
    let mut arrivals = Arrivals::default();
    let mut arrived = 0;
    until("everything arrives", || {
        hosts.endpoint(0).poll(&mut arrivals);
        arrived += arrivals.take().len() as u64;
        arrived == sent.iter().sum()
    });
    until("the relay holds nothing", || !words.has_held());
    until("there is room again", || {
        hosts.endpoint(1).poll(&mut Arrivals::default());
        hosts.endpoint(1).try_send(Peer(0), &header, Bytes::from(&data[..])).is_ok()
    });
}

#[test]
fn a_send_is_over_when_nothing_of_it_waits_in_its_process() {
    let _watchdog = watchdog();
    let mut hosts = RelayedHosts::with(2);
    let (header, data) = (Header::user(Kind::Eager, 0, 1, 1), vec![7; 64 << 10]);
    let mut sent = 0;
    until("a rest waits", || {
        hosts.endpoint(1).poll(&mut Arrivals::default());
        let result = hosts.endpoint(1).try_send(Peer(0), &header, Bytes::from(&data[..]));
        sent += usize::from(result.is_ok());
        // It has pieces beyond the window.
        result == Err(SendError::Full) && sent > relayed_window(2) as usize / 5
    });
    let is_over = |hosts: &mut RelayedHosts| {
        let peer = hosts.channel(1).peer(Peer(0));
        let lanes = &hosts.channel(1).0;
        let is_over = lanes.is_received(peer, 0);
        assert_eq!(lanes.has_unsent_to(peer), !is_over);
        is_over
    };
    assert!(!is_over(&mut hosts));
    let (mut arrivals, mut arrived) = (Arrivals::default(), 0);
    until("everything arrives", || {
        hosts.endpoint(0).poll(&mut arrivals);
        hosts.endpoint(1).poll(&mut Arrivals::default());
        arrived += arrivals.take().len();
        arrived == sent
    });
    until("it is over", || {
        hosts.endpoint(1).poll(&mut Arrivals::default());
        is_over(&mut hosts)
    });
}
