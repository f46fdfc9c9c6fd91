//! Connections of a process to a relay that break: at each byte, and again and again. Nothing is lost, nothing comes twice,
//! and the order stays.
//!
//! The test is the cable between the process and the relay.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use landeck_channel::conformance::{Arrival, Arrivals};
use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};
use landeck_memory::heap::Heap;
use landeck_memory::{Bytes, RelayWords};
use landeck_objects::region::Region;
use landeck_testing::{Random, Watchdog, seed};
use landeck_wire::handover::{Handover, RELAY_LANE};
use landeck_wire::relay::{RelayOperation, RelayOutcome, RelayRequest};
use landeck_wire::{Class, Header, Kind};
use rustix::net::sockopt;

use super::Relay;
use super::conformance::until;
use super::conformance::{RelayedHosts, id, keys, tcp_pair};

/// The process that sends, and the one that receives.
const FROM: u32 = 1;
const TO: u32 = 0;

struct Cabled {
    hosts: RelayedHosts,
    /// The test's ends: the process's cable and the relay's.
    cable: Option<[TcpStream; 2]>,
    /// The bytes that have passed on this cable, by the side that sent them.
    passed: [usize; 2],
    /// The connections that the process has reported as broken.
    reported: usize,
    /// The messages to send, the next one first.
    waiting: Vec<(Header, Vec<u8>)>,
    arrivals: Arrivals,
    arrived: Vec<Arrival>,
    /// The sender stays, and asks about regions.
    stays: bool,
}

/// A message of a class with so many bytes.
fn message(tag: u32, class: Class, length: usize) -> (Header, Vec<u8>) {
    let header = Header { class, ..Header::user(Kind::Eager, length as u32, 3, tag) };
    (header, (0..length).map(|at| (at * 7 + tag as usize * 31 + at / 251) as u8).collect())
}

impl Cabled {
    fn new(messages: &[(Header, Vec<u8>)]) -> Self {
        Self {
            hosts: RelayedHosts::with(2),
            cable: None,
            passed: [0; 2],
            reported: 0,
            waiting: messages.iter().rev().cloned().collect(),
            arrivals: Arrivals::default(),
            arrived: Vec::new(),
            stays: false,
        }
    }

    /// Does what the daemons would do. A connection of the sender goes through the test.
    fn serve(&mut self) {
        for number in [TO, FROM] {
            while let Some(message) = self.hosts.hear(number) {
                match message {
                    Handover::Relay { host } if number == FROM => {
                        let (mine, process) = tcp_pair();
                        let (mine_too, relay) = tcp_pair();
                        self.hosts.serve_relay(TO, FROM, relay, id(FROM, 1));
                        let message = Handover::Relayed { host, keys: keys(false) };
                        self.hosts.hand(FROM, &message, process.as_fd());
                        let ends = [mine, mine_too].map(TcpStream::from);
                        ends.iter().for_each(|end| end.set_nonblocking(true).unwrap());
                        (self.cable, self.passed) = (Some(ends), [0; 2]);
                    }
                    Handover::Broken { lane, .. } => {
                        assert_eq!(lane, RELAY_LANE);
                        self.reported += 1;
                    }
                    message => self.hosts.heard(number, &message),
                }
            }
        }
    }

    /// Both processes send and look.
    fn turn(&mut self) {
        self.serve();
        let sender = self.hosts.channel(FROM);
        while let Some((header, data)) = self.waiting.last() {
            match sender.try_send(Peer(TO), header, Bytes::from(&data[..])) {
                Ok(()) => drop(self.waiting.pop()),
                Err(SendError::Full) => break,
                Err(error) => panic!("{error:?}"),
            }
            if self.waiting.is_empty() {
                sender.leave();
            }
        }
        sender.poll_thoroughly(&mut Arrivals::default());
        self.hosts.channel(TO).poll_thoroughly(&mut self.arrivals);
        self.arrived.extend(self.arrivals.take());
        self.serve();
    }

    /// Passes on what has come, in each direction at most up to these numbers of bytes in all.
    fn pass(&mut self, most: [usize; 2]) {
        for (from, most) in most.into_iter().enumerate() {
            let Some(cable) = &mut self.cable else { return };
            let mut room = vec![0; (most - self.passed[from]).min(100_000)];
            if room.is_empty() {
                continue;
            }
            let count = match cable[from].read(&mut room) {
                Ok(count) => count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    continue;
                }
            };
            let mut left = &room[..count];
            while !left.is_empty() {
                let Some(cable) = &mut self.cable else { return };
                match cable[1 - from].write(left) {
                    Ok(count) => left = &left[count..],
                    // The relay reads in its own thread, and the process when it has its turn.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.turn(),
                    Err(_) => return,
                }
            }
            self.passed[from] += count;
        }
    }

    /// Cuts the cable, and goes on when the process has asked for another one.
    fn cut(&mut self) {
        if !self.sever() || self.is_over() {
            return;
        }
        until("there is another cable", || {
            self.turn();
            self.cable.is_some() || self.is_over()
        });
    }

    /// Cuts the cable; false if there is none.
    fn sever(&mut self) -> bool {
        let Some(cable) = self.cable.take() else { return false };
        for end in &cable {
            sockopt::set_socket_linger(end, Some(Duration::ZERO)).unwrap();
        }
        true
    }

    /// Plays that the daemon of the receiver dies with its relay, and the next one begins, which knows nothing.
    fn restart(&mut self) {
        self.sever();
        let host = &mut self.hosts.hosts[TO as usize];
        std::mem::replace(&mut host.relay, Relay::started()).end();
        let words = RelayWords::of(&host.segment, 0).unwrap();
        let untold = if words.was_used() { vec![id(TO, 1)] } else { Vec::new() };
        if !untold.is_empty() {
            self.hosts.tell(TO, &Handover::RelayRestarted);
        }
        let host = &mut self.hosts.hosts[TO as usize];
        host.relay.resume(host.segment.clone(), untold);
    }

    /// Whether the sender has left and the receiver has everything.
    fn is_over(&mut self) -> bool {
        !self.stays
            && self.waiting.is_empty()
            && !self.hosts.channel(FROM).has_unsent()
            && self.hosts.channel(TO).is_read_out(Peer(FROM))
    }

    fn finish(&mut self, what: &str, messages: &[(Header, Vec<u8>)]) {
        until(what, || {
            self.turn();
            self.pass([usize::MAX; 2]);
            self.is_over()
        });
        self.turn();
        assert_eq!(self.arrivals.broken_peers(), [], "{what}");
        // Urgent messages have no order.
        for class in [Class::User, Class::Urgent] {
            let arrived = self.arrived.iter().filter(|it| it.header.class == class);
            let sent = messages.iter().filter(|(header, _)| header.class == class);
            let names: Vec<u32> = arrived.clone().map(|it| it.header.tag).collect();
            assert!(sent.clone().map(|(header, _)| header.tag).eq(names.iter().copied()), "{what}");
            for (arrival, (_, data)) in arrived.zip(sent) {
                assert!(arrival.data == *data, "{what}: {:?}", arrival.header);
            }
        }
    }
}

#[test]
fn a_relayed_direction_goes_on_wherever_its_connection_breaks() {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let messages = [
        message(0, Class::User, 8),
        message(1, Class::User, 70),
        message(2, Class::Urgent, 20),
        message(3, Class::User, 0),
    ];
    let mut whole = Cabled::new(&messages);
    whole.finish("a cable without a cut", &messages);
    let bytes = whole.passed;
    assert!(bytes[0] > 250 && bytes[1] >= 64 && whole.reported == 0, "{bytes:?}");
    for from in 0..2 {
        for at in 0..=bytes[from] {
            let mut most = [usize::MAX; 2];
            most[from] = at;
            let mut cabled = Cabled::new(&messages);
            let what = format!("{most:?} bytes");
            until(&what, || {
                cabled.turn();
                cabled.pass(most);
                cabled.passed[from] == at && cabled.cable.is_some() || cabled.is_over()
            });
            cabled.cut();
            cabled.finish(&what, &messages);
            assert!(cabled.reported > 0 || at == bytes[from], "{what}: the break is reported");
        }
    }
}

/// A receiver that takes nothing.
struct Holding;

impl Sink for Holding {
    fn arrive(&mut self, _: Peer, _: &Header, _: Bytes<'_>) -> Verdict {
        Verdict::Held
    }

    fn broken(&mut self, _: Peer, what: BrokenPeer) {
        panic!("{what}");
    }
}

/// Requests about a region of the receiver, and those of them that are answered.
struct Asked {
    region: Region,
    requests: Vec<(RelayOperation, &'static [u8])>,
    numbers: Vec<u32>,
    outcomes: Vec<RelayOutcome>,
    answers: Vec<Vec<u8>>,
}

impl Asked {
    fn new(hosts: &RelayedHosts) -> Self {
        let segment = &hosts.hosts[TO as usize].segment;
        let mut heap = Heap::of(segment, 0).unwrap();
        let block = heap.allocate(Region::block_bytes(segment, 4_096)).unwrap();
        std::mem::forget(heap);
        let notify = RelayOperation::Put { notifies: true };
        let requests = vec![
            (RelayOperation::Add(5), &[][..]),
            (notify, &[7; 100]),
            (RelayOperation::Add(1), &[]),
            (RelayOperation::Swap(9), &[]),
            // Last, as reading is done again.
            (RelayOperation::Get { bytes: 70 }, &[]),
        ];
        let region = Region::new(segment, 0, block, 4_096, 3).unwrap();
        let (numbers, outcomes, answers) = (Vec::new(), Vec::new(), Vec::new());
        Self { region, requests, numbers, outcomes, answers }
    }

    /// Asks and takes what is possible; whether everything is answered.
    fn turn(&mut self, cabled: &mut Cabled) -> bool {
        let requests = cabled.hosts.channel(FROM).relay_requests(Peer(TO)).unwrap();
        while let Some((operation, bytes)) = self.requests.get(self.numbers.len()) {
            let place = self.region.place();
            let offset = if bytes.is_empty() { 0 } else { 64 };
            let request = RelayRequest {
                slot: 0,
                incarnation: 1,
                place: place.place,
                number: place.number,
                offset,
                operation: *operation,
            };
            let Some(number) = requests.ask(&request, bytes) else { break };
            self.numbers.push(number);
        }
        while let Some(number) = self.numbers.get(self.answers.len())
            && let Some((outcome, data)) = requests.take(*number)
        {
            self.outcomes.push(outcome);
            self.answers.push(data.to_vec());
        }
        cabled.turn();
        self.answers.len() == self.requests.len()
    }

    fn check(&self, what: &str) {
        let word = |word: u64| word.to_le_bytes().to_vec();
        let mut got = vec![0; 70];
        got[0] = 9;
        got[64..].fill(7);
        let expected = [word(0), vec![], word(5), word(6), got];
        assert_eq!(self.answers, expected, "{what}");
        assert!(self.outcomes.iter().all(|outcome| *outcome == RelayOutcome::Done), "{what}");
        assert_eq!(self.region.notifications(), 1, "{what}");
    }
}

#[test]
fn requests_about_a_region_are_done_once_wherever_their_connection_breaks() {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let mut whole = Cabled::new(&[]);
    whole.stays = true;
    let mut asked = Asked::new(&whole.hosts);
    until("a cable without a cut", || {
        whole.pass([usize::MAX; 2]);
        asked.turn(&mut whole)
    });
    asked.check("a cable without a cut");
    let bytes = whole.passed;
    assert!(bytes[0] > 500 && bytes[1] > 250 && whole.reported == 0, "{bytes:?}");
    for from in 0..2 {
        for at in 0..=bytes[from] {
            let mut most = [usize::MAX; 2];
            most[from] = at;
            let mut cabled = Cabled::new(&[]);
            cabled.stays = true;
            let mut asked = Asked::new(&cabled.hosts);
            let what = format!("{most:?} bytes");
            until(&what, || {
                cabled.pass(most);
                asked.turn(&mut cabled) || cabled.passed[from] == at && cabled.cable.is_some()
            });
            cabled.sever();
            until(&what, || {
                cabled.pass([usize::MAX; 2]);
                asked.turn(&mut cabled)
            });
            asked.check(&what);
        }
    }
}

#[test]
fn a_relay_that_is_not_reached_is_asked_for_again_and_not_reported() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut hosts = RelayedHosts::with(2);
    let silence_ms = 60_000;
    let welcome = Handover::Welcome { silence_ms };
    hosts.tell(FROM, &welcome);
    for _ in 0..3 {
        until("the process asks for the relay", || {
            let channel = hosts.channel(FROM);
            assert!(channel.relay_requests(Peer(TO)).unwrap().is_new());
            channel.poll_thoroughly(&mut Arrivals::default());
            match hosts.hear(FROM) {
                Some(Handover::Relay { host }) => host == TO,
                Some(Handover::Hello { .. }) | None => false,
                Some(other) => panic!("{other:?}"),
            }
        });
        hosts.tell(FROM, &Handover::NoRelay { host: TO });
    }
}

#[test]
fn a_relayed_direction_goes_on_however_often_its_connection_breaks() {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    const CUTS: usize = 60;
    let mut random = Random::new(seed());
    let mut one = |tag| match random.below(8) {
        0 => message(tag, Class::User, 16_000 + random.below(48_000) as usize),
        1 => message(tag, Class::Urgent, random.below(48) as usize),
        2..5 => message(tag, Class::User, random.below(5_000) as usize),
        _ => message(tag, Class::User, random.below(100) as usize),
    };
    let messages: Vec<_> = (0..1_000).map(&mut one).collect();
    let mut cabled = Cabled::new(&messages);
    let mut done = 0;
    for _ in 0..CUTS {
        let most = [0, 1].map(|_| random.below(200_000) as usize);
        for _ in 0..random.below(60) {
            cabled.turn();
            cabled.pass(most);
        }
        done += usize::from(!cabled.waiting.is_empty() && cabled.cable.is_some());
        cabled.cut();
    }
    assert!(done > CUTS / 4, "only {done} cuts were under load");
    cabled.finish("the end of many cuts", &messages);
}

#[test]
fn a_relayed_direction_goes_on_however_often_its_relay_starts_again() {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    const RESTARTS: usize = 60;
    let mut random = Random::new(seed());
    let mut one = |tag| match random.below(8) {
        0 => message(tag, Class::User, 16_000 + random.below(48_000) as usize),
        1 => message(tag, Class::Urgent, random.below(48) as usize),
        2..5 => message(tag, Class::User, random.below(5_000) as usize),
        _ => message(tag, Class::User, random.below(100) as usize),
    };
    let messages: Vec<_> = (0..1_000).map(&mut one).collect();
    let mut cabled = Cabled::new(&messages);
    let mut done = 0;
    for _ in 0..RESTARTS {
        let most = [0, 1].map(|_| random.below(200_000) as usize);
        for _ in 0..random.below(60) {
            cabled.turn();
            cabled.pass(most);
        }
        done += usize::from(!cabled.waiting.is_empty() && cabled.cable.is_some());
        cabled.restart();
        // The receiver holds messages, and the sender has another connection before or behind that.
        for _ in 0..random.below(3) {
            cabled.hosts.channel(FROM).poll_thoroughly(&mut Arrivals::default());
            cabled.hosts.channel(TO).poll_thoroughly(&mut Holding);
            cabled.serve();
        }
        if random.below(4) == 0 {
            cabled.cut();
        }
    }
    assert!(done > RESTARTS / 4, "only {done} relays ended under load");
    cabled.finish("the end of many relays", &messages);
}

#[test]
fn a_sender_that_ends_behind_the_end_of_a_relay_is_read_out() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut cabled = Cabled::new(&[]);
    let (header, data) = message(0, Class::User, 8);
    let mut is_sent = false;
    until("a message has come", || {
        let bytes = Bytes::from(&data[..]);
        is_sent = is_sent || cabled.hosts.channel(FROM).try_send(Peer(TO), &header, bytes).is_ok();
        cabled.turn();
        cabled.pass([usize::MAX; 2]);
        !cabled.arrived.is_empty()
    });
    // The relay was killed while it looked at a region.
    let segment = cabled.hosts.hosts[TO as usize].segment.clone();
    segment.far_hazard(FROM).store(7, Ordering::Release);
    cabled.restart();
    assert!(!cabled.hosts.channel(TO).is_read_out(Peer(FROM)));
    cabled.hosts.hosts[TO as usize].relay.process_ended(id(FROM, 1));
    until("nothing more can come", || {
        cabled.hosts.channel(TO).poll_thoroughly(&mut cabled.arrivals);
        cabled.hosts.channel(TO).is_read_out(Peer(FROM))
    });
    assert_eq!(segment.far_hazard(FROM).load(Ordering::Acquire), 0);
}

#[test]
fn a_request_that_an_ended_relay_may_have_done_is_given_up_unless_it_can_be_repeated() {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let whole = {
        let mut whole = Cabled::new(&[]);
        whole.stays = true;
        let mut asked = Asked::new(&whole.hosts);
        until("a cable without a cut", || {
            whole.pass([usize::MAX; 2]);
            asked.turn(&mut whole)
        });
        whole.passed
    };
    let mut given_up = 0;
    for from in 0..2 {
        for at in (0..=whole[from]).step_by(3) {
            let mut most = [usize::MAX; 2];
            most[from] = at;
            let mut cabled = Cabled::new(&[]);
            cabled.stays = true;
            let mut asked = Asked::new(&cabled.hosts);
            let what = format!("{most:?} bytes");
            until(&what, || {
                cabled.pass(most);
                asked.turn(&mut cabled) || cabled.passed[from] == at && cabled.cable.is_some()
            });
            cabled.restart();
            until("there is another cable", || {
                asked.turn(&mut cabled);
                cabled.cable.is_some()
            });
            // The last is asked only now, so the relay before cannot have done it.
            asked.requests.push((RelayOperation::Add(100), &[]));
            until(&what, || {
                cabled.pass([usize::MAX; 2]);
                asked.turn(&mut cabled)
            });
            let is_known = |at: &usize| asked.outcomes[*at] == RelayOutcome::Done;
            assert!([4, 5].iter().all(is_known), "{what}: {:?}", asked.outcomes);
            given_up += (0..4).filter(|at| !is_known(at)).count();
            let notifications = asked.region.notifications();
            assert!(notifications <= 1 && (notifications == 1 || !is_known(&1)), "{what}");
            let last = u64::from_le_bytes(asked.answers[5][..].try_into().unwrap());
            let swapped = if is_known(&3) { &[9][..] } else { &[0, 1, 5, 6, 9] };
            assert!(swapped.contains(&last), "{what}: {last}, {:?}", asked.outcomes);
        }
    }
    assert!(given_up > 50, "only {given_up} were given up");
}
