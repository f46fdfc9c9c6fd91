//! The relayed path of a process: messages over the relays of other hosts, and those that the relay of its own host
//! brings. Requests about regions of another host take the same connection to its relay ([`RelayRequests`]), and so do those
//! about data that stay there. About data on its own host a process asks the relay of that.
//!
//! A process has one such connection to each host, whatever number of processes it sends to there. It belongs to the
//! pieces of all of them. Each pair and direction has positions in whole pieces ([`landeck_wire::relayed`]): a sender
//! goes as far as its receiver has granted. So a receiver that does nothing stops its own senders alone.
//!
//! The sending side of a direction is a pair ([`landeck_channel::pair`]), whose lanes are the connections. It keeps a piece until the receiver is
//! known to have taken it, which grants tell. So at most a window is kept for each receiver, 4 MiB for all. When a
//! connection breaks, the daemon opens another one. The relay says first how many pieces of each direction it has, and the
//! process sends the others again. Nothing is lost, and nothing comes twice.

mod outgoing;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use landeck_channel::relay_requests::RelayRequests;
use landeck_channel::silence::Barren;
use landeck_channel::{BrokenPeer, Peer, SendError, Sink, Verdict};
use landeck_memory::{Bytes, FarRecord, LaneRecord, Segment};
use landeck_wire::handover::{Handover, LaneKeys, LaneSilence, RELAY_LANE};
use landeck_wire::relayed::{message_of, relayed_piece_bytes, relayed_window};
use landeck_wire::{Class, HEADER_BYTES, Header, Kind, POSITION_BYTES};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::daemon::DaemonSocket;
use super::framing::DATA_BYTES_MAX;
use super::relay::{RelayEnd, RelayStream};
use super::relay_ring::RelayRingReceiver;
use outgoing::{Outgoing, Rest};

/// The bytes that may wait for the network on one connection before ordered messages are refused, and urgent ones.
const UNSENT_MAX: usize = 256 << 10;
const UNSENT_MAX_URGENT: usize = 512 << 10;
/// The most pieces taken from the ring in one poll.
const PIECES_PER_POLL: u32 = 256;
/// How long a first connection to a relay may be asked for in vain.
const REFUSED_TIME: Duration = Duration::from_secs(15);
/// How often one connection is read in one poll.
const READS_PER_POLL: u32 = 16;

/// The relayed path.
pub(super) struct Relayed {
    segment: Segment,
    slot: u32,
    /// The number of the first far process as a peer.
    first_far: u32,
    window: u64,
    piece_max: usize,
    /// Where the relay of this host lays pieces.
    ring: Option<RelayRingReceiver>,
    /// The connections, by the numbers of their hosts.
    links: BTreeMap<u16, Link>,
    outgoing: HashMap<u32, Outgoing>,
    /// The far process that has a slot of a host.
    receivers: HashMap<(u16, u32), u32>,
    /// The far processes whose last message has pieces that are not sent.
    unfinished: Vec<u32>,
    incoming: HashMap<u32, Incoming>,
    /// The far processes with messages that the sink holds.
    offering: Vec<u32>,
    /// The number of connections so far, to all relays. Later ones have higher numbers.
    connections: u32,
    has_left: bool,
}

/// The connection to the relay of one host.
#[derive(Default)]
struct Link {
    stream: Option<RelayStream>,
    /// The number of the last connection.
    number: u32,
    watched: EventFlags,
    /// The relay takes messages.
    is_open: bool,
    /// The process has said goodbye.
    has_left: bool,
    /// The relay has everything that came before the goodbye.
    is_left: bool,
    /// The relay takes nothing of this process any more.
    is_over: bool,
    /// The pieces of all directions that the relay had when this connection began.
    began_at: u64,
    /// The connections before that brought nothing over.
    barren: Barren,
    /// The far processes that wait for the connection, or have used it.
    users: Vec<u32>,
    /// The requests about regions and stored data. They outlive their connections.
    requests: RelayRequests,
    /// Requests about stored data want the connection.
    stores: bool,
    /// The far process whose region was asked about last.
    owner: Option<u32>,
    /// The daemon has said that there is no first connection. It is asked for it again.
    is_refused: bool,
    /// Since when it is asked in vain, by the looks at silences, and whether that is long.
    refused_since: Option<Duration>,
    is_unreached: bool,
    /// The report that no connection has followed.
    unexplained: Option<MissingRelay>,
}

/// The reason why a connection to a relay is missing.
#[derive(Clone, Copy)]
enum MissingRelay {
    /// It broke, by this error of the system, or none could be had.
    Broken(i32),
    Silent(LaneSilence),
}

impl MissingRelay {
    /// The report of a process that needs the connection for this far one.
    const fn report(self, far: u32, incarnation: u32) -> Handover {
        let lane = RELAY_LANE;
        match self {
            Self::Broken(errno) => Handover::Broken { far, incarnation, lane, errno },
            Self::Silent(silence) => Handover::Silent { far, lane, silence },
        }
    }
}

/// The incoming direction of a pair.
#[derive(Default)]
struct Incoming {
    incarnation: u32,
    sequence: u16,
    /// The number of pieces taken, urgent messages included.
    taken: u64,
    granted: u64,
    /// The message that has not come to its end.
    begun: Option<(Header, Vec<u8>)>,
    /// Whole messages that the sink holds.
    held: VecDeque<(Header, Vec<u8>)>,
    held_urgent: VecDeque<(Header, Vec<u8>)>,
    is_broken: bool,
}

impl Relayed {
    /// The relayed path of a process of this segment.
    pub(super) fn new(segment: &Segment, slot: u32, incarnation: u32) -> Self {
        let plan = segment.plan();
        Self {
            segment: segment.clone(),
            slot,
            first_far: plan.slots(),
            window: relayed_window(plan.ranks),
            piece_max: relayed_piece_bytes(plan.ranks),
            ring: RelayRingReceiver::new(segment, slot, incarnation),
            links: BTreeMap::new(),
            outgoing: HashMap::new(),
            receivers: HashMap::new(),
            unfinished: Vec::new(),
            incoming: HashMap::new(),
            offering: Vec::new(),
            connections: 0,
            has_left: false,
        }
    }

    /// Sends a message, or the first piece of it, and keeps the rest.
    pub(super) fn try_send(
        &mut self,
        far: u32,
        header: &Header,
        data: Bytes<'_>,
        daemon: &mut DaemonSocket,
        epoll: &OwnedFd,
    ) -> Result<(), SendError> {
        let record = self.segment.far_record(far);
        let host = record.host_number;
        let link = self.links.entry(host).or_default();
        if !link.users.contains(&far) {
            link.users.push(far);
            link.want(host, daemon);
        }
        let Some(stream) = link.stream.as_mut().filter(|_| link.is_open && !link.has_left) else {
            return Err(SendError::Full);
        };
        let window = self.window;
        let out = self.outgoing.entry(far).or_insert_with(|| {
            self.receivers.insert((host, record.process.slot), far);
            Outgoing::new(record.process, (host, link.number), window)
        });
        let is_urgent = header.class == Class::Urgent;
        let unsent_max = if is_urgent { UNSENT_MAX_URGENT } else { UNSENT_MAX };
        let is_in_order = !out.pair.is_behind() && (is_urgent || out.rest.is_none());
        if !is_in_order || !out.is_granted(header.class) || stream.unsent() >= unsent_max {
            return Err(SendError::Full);
        }
        let header = Header { length: data.len() as u32, ..*header };
        let whole = data.to_vec();
        let first = whole.len().min(self.piece_max);
        let mut pushed = out.push(stream, &header, &whole[..first]);
        if first < whole.len() {
            out.rest = Some(Rest { header, data: whole, at: first });
            pushed = pushed.and_then(|()| out.push_rest(stream, self.piece_max));
            if out.rest.is_some() {
                self.unfinished.push(far);
            }
        }
        if let Err(end) = pushed.and_then(|()| stream.flush()) {
            self.end(host, &end, daemon, epoll); // the message is kept
        } else {
            self.watch(host, epoll);
        }
        Ok(())
    }

    /// The requests about regions of processes of a far process's host.
    pub(super) fn requests_to(
        &mut self,
        far: u32,
        daemon: &mut DaemonSocket,
    ) -> &mut RelayRequests {
        let host = self.segment.far_record(far).host_number;
        let link = self.links.entry(host).or_default();
        if link.owner.replace(far).is_none() {
            link.want(host, daemon);
        }
        &mut link.requests
    }

    /// The requests about data that stay on a host; `None` if its relay cannot be reached.
    pub(super) fn requests_at(
        &mut self,
        host: u16,
        daemon: &mut DaemonSocket,
    ) -> Option<&mut RelayRequests> {
        let link = self.links.entry(host).or_default();
        if link.is_over || link.is_unreached {
            return None;
        }
        if !std::mem::replace(&mut link.stores, true) {
            // A process of that host names its connection in reports.
            let records = (0..self.segment.plan().far).map(|far| self.segment.far_record(far));
            let is_there = |record: &FarRecord| record.is_there() && record.host_number == host;
            let far = records.enumerate().find(|(_, record)| is_there(record));
            link.owner = link.owner.or(far.map(|(far, _)| far as u32));
            link.want(host, daemon);
        }
        Some(&mut link.requests)
    }

    /// Sends what waits for the relay of a far process's host, and sleeps until its connection is ready. False if there is
    /// none.
    pub(super) fn sleep_for_answers(
        &mut self,
        (far, longest): (u32, Duration),
        daemon: &mut DaemonSocket,
        epoll: &OwnedFd,
    ) -> bool {
        let host = self.segment.far_record(far).host_number;
        self.tend(daemon, epoll);
        // The relay may have answered by now.
        if self.ready(host, daemon, epoll) {
            return true;
        }
        let link = self.links.get(&host).filter(|link| link.awaits_answers());
        let Some(stream) = link.and_then(|link| link.stream.as_ref()) else { return false };
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, stream.unsent() > 0);
        let mut sockets = [PollFd::new(stream, wanted)];
        let longest = Timespec::try_from(longest).ok();
        if poll(&mut sockets, longest.as_ref()).is_ok_and(|ready| ready > 0) {
            self.ready(host, daemon, epoll);
        }
        true
    }

    /// Takes over a connection to the relay of a host.
    pub(super) fn connected(
        &mut self,
        host: u32,
        keys: &LaneKeys,
        socket: Option<OwnedFd>,
        daemon: &mut DaemonSocket,
        epoll: &OwnedFd,
    ) {
        let Ok(host) = u16::try_from(host) else { return };
        let Some(link) = self.links.get_mut(&host) else { return };
        if link.stream.is_some() || link.is_over {
            return;
        }
        let stream = match socket {
            Some(socket) => RelayStream::new(socket, keys),
            // The system passed none on: this process has no room for a descriptor.
            None => Err(RelayEnd::System(rustix::io::Errno::MFILE)),
        };
        let opened = stream.and_then(|mut stream| {
            // A relay that has started again needs to know what the one before may have done.
            let open = Header { context: link.requests.sent(), ..Header::RELAY_OPEN };
            stream.push(&open, &[], &[])?;
            stream.flush()?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                self.connections += 1;
                (link.stream, link.number) = (Some(stream), self.connections);
                (link.unexplained, link.refused_since) = (None, None);
                for out in self.outgoing.values_mut().filter(|out| out.host == host) {
                    // It is the newest.
                    let _ = out.pair.open(link.number);
                }
                self.watch(host, epoll);
            }
            Err(end) => self.end(host, &end, daemon, epoll),
        }
    }

    /// No address leads to the relay of a host. Where messages wait, or there was a connection before, the daemon tries it
    /// again for a while, and the arbiter decides then.
    pub(super) fn refused(&mut self, host: u32, daemon: &mut DaemonSocket) {
        let Ok(host) = u16::try_from(host) else { return };
        let link = self.links.get_mut(&host);
        let Some(link) = link.filter(|link| link.stream.is_none() && !link.is_over) else { return };
        link.is_refused = link.requests.is_new() && link.asks();
        link.unexplained = Some(MissingRelay::Broken(libc::EHOSTUNREACH));
        self.report(host, daemon);
    }

    /// Ends the connections that have carried nothing for the limit, by a time.
    pub(super) fn look_at_silences(
        &mut self,
        (now, limit): (Duration, Duration),
        daemon: &mut DaemonSocket,
        epoll: &OwnedFd,
    ) {
        for host in self.links.keys().copied().collect::<Vec<_>>() {
            let Some(link) = self.links.get_mut(&host) else { continue };
            if std::mem::take(&mut link.is_refused) {
                let since = *link.refused_since.get_or_insert(now);
                link.is_unreached = now.saturating_sub(since) > REFUSED_TIME;
                link.want(host, daemon);
            }
            let Some(stream) = &mut link.stream else { continue };
            let Err(end) = stream.look_at_silence(now, limit) else { continue };
            self.end(host, &end, daemon, epoll);
        }
    }

    /// Describes the connections whose bytes nobody acknowledges, each with one far process that it leads to.
    pub(super) fn describe_silences(&self, tell: &mut dyn FnMut(LaneRecord)) {
        for link in self.links.values() {
            let silence = link.stream.as_ref().and_then(RelayStream::silence);
            let far = link.users().find(|far| !self.is_gone(*far));
            let (Some((unsent_bytes, since)), Some(far)) = (silence, far) else { continue };
            let since_ns = since.as_nanos() as u64;
            let peer = self.first_far + far;
            let silent_since_ns = since_ns;
            tell(LaneRecord { peer, unsent_bytes, since_ns, silent_since_ns, open_messages: 0 });
        }
    }

    /// Tells the daemon that a connection is missing. Another one, or a word, explains it.
    fn report(&self, host: u16, daemon: &mut DaemonSocket) {
        let Some(link) = self.links.get(&host) else { return };
        let Some(missing) = link.unexplained else { return };
        for far in link.users().filter(|far| !self.is_gone(*far)) {
            let incarnation = self.segment.far_record(far).process.incarnation;
            daemon.say(missing.report(far, incarnation));
        }
    }

    /// Tells a daemon which connections are missing.
    pub(super) fn introduce(&mut self, daemon: &mut DaemonSocket) {
        self.links.keys().for_each(|host| self.report(*host, daemon));
        for (host, link) in &mut self.links {
            if !link.users.is_empty() || link.asks() {
                link.want(*host, daemon);
            }
        }
    }

    /// The relay of this host has started again. Takes what the one before has laid, and says how far each sender may go from
    /// there: it sends again what that relay has held.
    pub(super) fn restarted<S: Sink + ?Sized>(&mut self, sink: &mut S, daemon: &mut DaemonSocket) {
        if let Some(ring) = &self.ring {
            ring.end_sender();
        }
        let is_laid = |ring: &mut RelayRingReceiver| matches!(ring.peek(), Ok(Some(_)));
        while self.ring.as_mut().is_some_and(is_laid) {
            self.poll(sink, daemon);
        }
        if let Some(ring) = &mut self.ring {
            ring.begin_again();
        }
        for (&far, from) in self.incoming.iter_mut().filter(|(_, from)| !from.is_broken) {
            from.granted = from.pieces() + self.window;
            let (incarnation, position) = (from.incarnation, from.granted);
            daemon.say(Handover::Granted { far, incarnation, position });
        }
        daemon.say(Handover::RelayRestarted);
    }

    fn is_gone(&self, far: u32) -> bool {
        self.segment.far_record(far).state.is_gone()
    }

    /// Goes on with a connection whose socket is ready. Returns whether answers about regions have come.
    pub(super) fn ready(&mut self, host: u16, daemon: &mut DaemonSocket, epoll: &OwnedFd) -> bool {
        let answered = |all: &Self| all.links.get(&host).map(|link| link.requests.answered());
        let before = answered(self);
        if let Err(end) = self.read(host) {
            self.end(host, &end, daemon, epoll);
        }
        self.tend(daemon, epoll);
        self.watch(host, epoll);
        answered(self) != before
    }

    /// Reads the connections that requests without an answer have gone over. Returns whether answers have come.
    #[inline]
    pub(super) fn read_answers(&mut self, daemon: &mut DaemonSocket, epoll: &OwnedFd) -> bool {
        let awaited = |(host, link): (&u16, &Link)| link.awaits_answers().then_some(*host);
        let mut after = 0;
        let mut any = false;
        while let Some(host) = self.links.range(after..).find_map(awaited) {
            any |= self.ready(host, daemon, epoll);
            after = host.saturating_add(1);
        }
        any
    }

    fn read(&mut self, host: u16) -> Result<(), RelayEnd> {
        for _ in 0..READS_PER_POLL {
            let Some(link) = self.links.get_mut(&host) else { return Ok(()) };
            let Some(stream) = &mut link.stream else { return Ok(()) };
            let answered = link.requests.answered();
            if !stream.fill()? {
                return Ok(());
            }
            while let Some((header, data)) = stream.first()? {
                match header.kind {
                    Kind::RelayOpen if header == Header::RELAY_OPEN && !link.is_open => {
                        (link.is_open, link.began_at) = (true, link.requests.answered());
                        link.requests.connected(link.number);
                        let its = self.outgoing.iter_mut().filter(|(_, out)| out.host == host);
                        for (far, out) in its {
                            if self.segment.far_record(*far).state.is_gone() {
                                out.drop_all();
                            } else if out.pair.is_opening() {
                                out.hear(0, 0)?; // the relay has nothing of this direction
                            }
                            link.began_at += out.pair.received_there();
                            if out.pair.is_behind() && !self.unfinished.contains(far) {
                                self.unfinished.push(*far);
                            }
                        }
                    }
                    Kind::RelayAnswer => link.requests.answer(&header, data)?,
                    Kind::Goodbye if link.has_left => link.is_left = true,
                    kind @ (Kind::Granted | Kind::Received) => {
                        let far = self.receivers.get(&(host, header.context));
                        let is_there = |far: &&u32| !self.segment.far_record(**far).state.is_gone();
                        let out = far.filter(is_there).and_then(|far| self.outgoing.get_mut(far));
                        // Another process may have had the slot before.
                        let out = out.filter(|it| it.process.incarnation == header.tag);
                        let data: &[u8; POSITION_BYTES] =
                            data.try_into().map_err(|_| BrokenPeer::Form)?;
                        let position = u64::from_le_bytes(*data);
                        match out {
                            Some(out) if kind == Kind::Granted => {
                                out.hear_grant(position, self.window)?;
                            }
                            Some(out) if !link.is_open => out.hear(position, 0)?,
                            Some(_) => return Err(BrokenPeer::Form.into()),
                            None => {}
                        }
                    }
                    _ => return Err(BrokenPeer::Form.into()),
                }
                stream.consume();
            }
            // Behind answers their caller asks further, so that the relay always has something to do.
            if !stream.may_have_more() || link.requests.answered() != answered {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends what waits: pieces that were lost with a connection, further pieces, requests, and goodbyes behind them.
    pub(super) fn tend(&mut self, daemon: &mut DaemonSocket, epoll: &OwnedFd) {
        for far in std::mem::take(&mut self.unfinished) {
            let is_gone = self.is_gone(far);
            let Some(out) = self.outgoing.get_mut(&far) else { continue };
            let Some(link) = self.links.get_mut(&out.host).filter(|it| !is_gone && !it.is_over)
            else {
                out.drop_all();
                continue;
            };
            let Some(stream) = link.stream.as_mut().filter(|_| link.is_open) else {
                self.unfinished.push(far);
                continue;
            };
            let again = out.push_again(stream);
            let pushed = again.and_then(|()| out.push_rest(stream, self.piece_max));
            let host = out.host;
            if out.rest.is_some() || out.pair.is_behind() {
                self.unfinished.push(far);
            }
            if let Err(end) = pushed.and_then(|()| stream.flush()) {
                self.end(host, &end, daemon, epoll);
            }
        }
        if self.links.is_empty() {
            return;
        }
        for host in self.links.keys().copied().collect::<Vec<_>>() {
            let is_its = |far: &u32| self.outgoing.get(far).is_some_and(|out| out.host == host);
            let is_whole = !self.unfinished.iter().any(is_its);
            let says_goodbye = self.has_left && is_whole;
            let Some(link) = self.links.get_mut(&host) else { continue };
            let Some(stream) = &mut link.stream else { continue };
            let mut result = Ok(());
            while result.is_ok()
                && stream.unsent() < UNSENT_MAX
                && let Some((header, data)) = link.requests.next_to_send()
            {
                result = stream.push(header, data, &[]);
            }
            let is_behind = link.requests.has_waiting();
            if says_goodbye && link.is_open && !link.has_left && !is_behind {
                link.has_left = true;
                result = result.and_then(|()| stream.push(&Header::GOODBYE, &[], &[]));
            }
            if let Err(end) = result.and_then(|()| stream.flush()) {
                self.end(host, &end, daemon, epoll);
            }
            self.watch(host, epoll);
        }
    }

    /// Whether [`Relayed::tend`] may have something to do.
    #[inline]
    pub(super) fn needs_care(&self) -> bool {
        !self.unfinished.is_empty()
            || self.has_left
            || self.links.values().any(|link| link.requests.has_waiting())
    }

    /// Watches the socket of a connection for what it now waits for.
    fn watch(&mut self, host: u16, epoll: &OwnedFd) {
        let Some(link) = self.links.get_mut(&host) else { return };
        let Some(stream) = &link.stream else { return };
        let mut wanted = EventFlags::IN;
        wanted.set(EventFlags::OUT, stream.unsent() > 0);
        if wanted == link.watched {
            return;
        }
        let data = EventData::new_u64(key(host));
        let watched = match link.watched.is_empty() {
            true => epoll::add(epoll, stream, data, wanted),
            false => epoll::modify(epoll, stream, data, wanted),
        };
        if watched.is_ok() {
            link.watched = wanted;
        }
    }

    /// A connection has ended. There is another one, or the arbiter gives a word.
    fn end(&mut self, host: u16, end: &RelayEnd, daemon: &mut DaemonSocket, epoll: &OwnedFd) {
        let Some(link) = self.links.get_mut(&host) else { return };
        if let Some(stream) = link.stream.take() {
            let _ = epoll::delete(epoll, &stream);
        }
        link.watched = EventFlags::empty();
        link.requests.disconnected();
        if link.is_over || link.is_left {
            return;
        }
        // The goodbye may be lost as well.
        (link.is_open, link.has_left) = (false, false);
        let (missing, is_over) = match end {
            RelayEnd::Closed => (MissingRelay::Broken(0), false),
            RelayEnd::System(errno) => (MissingRelay::Broken(errno.raw_os_error()), false),
            RelayEnd::Broken(_) | RelayEnd::Keys(_) => (MissingRelay::Broken(libc::EPROTO), true),
            RelayEnd::Silent(silence) => {
                let its = self.outgoing.values().filter(|out| out.host == host);
                let has_more = link.requests.has_unanswered()
                    || its.into_iter().any(|out| !out.pair.may_change_path());
                let is_hopeless = link.barren.count(link.began_at, has_more);
                let silence = LaneSilence { is_hopeless, ..*silence };
                (MissingRelay::Silent(silence), is_hopeless)
            }
        };
        (link.unexplained, link.is_over) = (Some(missing), is_over);
        self.report(host, daemon);
        let Some(link) = self.links.get_mut(&host) else { return };
        if link.users().any(|far| !self.segment.far_record(far).state.is_gone()) {
            link.want(host, daemon);
        } else {
            // The next message or request asks for another one.
            *link = Link { requests: std::mem::take(&mut link.requests), ..Link::default() };
        }
    }

    /// Takes what the relay of this host has laid, and offers it to the sink with what that held before.
    #[inline]
    pub(super) fn poll<S: Sink + ?Sized>(
        &mut self,
        sink: &mut S,
        daemon: &mut DaemonSocket,
    ) -> bool {
        let mut any = !self.offering.is_empty() && self.offer(sink, daemon);
        let Some(mut ring) = self.ring.take() else { return any };
        for _ in 0..PIECES_PER_POLL {
            match ring.peek() {
                Ok(None) => break,
                Ok(Some((frame, data))) => {
                    any |= self.arrived(&frame, data, sink, daemon);
                    if ring.consume(&frame) {
                        daemon.say(Handover::Room);
                    }
                }
                // Only the relay writes there. No far process is at fault, and none can be heard any more.
                Err(broken) => {
                    ring.close();
                    sink.broken(Peer(self.slot), broken);
                    break;
                }
            }
        }
        self.ring = Some(ring);
        any
    }

    /// Takes one piece; whether the sink has taken a message.
    fn arrived<S: Sink + ?Sized>(
        &mut self,
        frame: &Header,
        data: Bytes<'_>,
        sink: &mut S,
        daemon: &mut DaemonSocket,
    ) -> bool {
        let far = frame.context;
        if far >= self.segment.plan().far {
            return false;
        }
        let (window, peer) = (self.window, Peer(self.first_far + far));
        let from = self.incoming.entry(far).or_default();
        if from.incarnation != frame.tag {
            if from.incarnation > frame.tag {
                return false; // from a former process, which nobody waits for
            }
            *from = Incoming { incarnation: frame.tag, granted: window, ..Incoming::default() };
        }
        if from.is_broken {
            return false;
        }
        let was_holding = from.holds();
        match from.arrived(peer, frame, data, self.piece_max, sink) {
            Ok(any) => {
                if !was_holding && from.holds() {
                    self.offering.push(far);
                }
                from.grant(far, window, daemon);
                any
            }
            Err(broken) => {
                from.is_broken = true;
                sink.broken(peer, broken);
                let (incarnation, errno) = (from.incarnation, libc::EPROTO);
                daemon.say(Handover::Broken { far, incarnation, lane: 0, errno });
                false
            }
        }
    }

    /// Offers the messages that the sink held.
    fn offer<S: Sink + ?Sized>(&mut self, sink: &mut S, daemon: &mut DaemonSocket) -> bool {
        let mut any = false;
        for far in std::mem::take(&mut self.offering) {
            let Some(from) = self.incoming.get_mut(&far) else { continue };
            any |= from.offer(Peer(self.first_far + far), sink);
            from.grant(far, self.window, daemon);
            if from.holds() {
                self.offering.push(far);
            }
        }
        any
    }

    /// Whether nothing more can arrive from a far process over the relay.
    pub(super) fn is_read_out(&self, far: u32) -> bool {
        // In this order: the relay first lays everything, and then says that it takes no more.
        let open = self.segment.far_relayed(far).load(Ordering::Acquire);
        let is_open = open != 0 && open == self.segment.far_record(far).process.incarnation;
        let has_held = || self.incoming.get(&far).is_some_and(Incoming::holds);
        !is_open && self.ring.as_ref().is_none_or(RelayRingReceiver::is_empty) && !has_held()
    }

    /// Whether pieces of an earlier process of a far place are not taken yet, now that this incarnation has it.
    pub(super) fn holds_before(&self, far: u32, incarnation: u32) -> bool {
        // In this order, as above.
        let open = self.segment.far_relayed(far).load(Ordering::Acquire);
        let is_former = |it: &Incoming| it.incarnation < incarnation && it.holds();
        open != 0 && open != incarnation
            || self.ring.as_ref().is_some_and(|ring| !ring.is_empty())
            || self.incoming.get(&far).is_some_and(is_former)
    }

    /// Whether a far process has sent something over the relay.
    pub(super) fn has_heard(&self, far: u32) -> bool {
        self.incoming.contains_key(&far)
    }

    /// Says goodbye to all relays behind everything that was sent.
    pub(super) fn leave(&mut self, daemon: &mut DaemonSocket, epoll: &OwnedFd) {
        self.has_left = true;
        self.tend(daemon, epoll);
    }

    /// Whether something waits for the network, for a grant, or for a relay's word that it has everything.
    pub(super) fn has_unsent(&self) -> bool {
        let waits = |(host, link): (&u16, &Link)| {
            let is_leaving = self.has_left && !link.is_left && !link.is_over;
            link.stream.as_ref().is_some_and(|stream| stream.unsent() > 0)
                || is_leaving && (link.is_open || self.keeps_pieces_for(*host))
        };
        !self.unfinished.is_empty() || self.links.iter().any(waits)
    }

    /// Whether bytes for a far process wait in this process: for a grant, for a connection, or for the network.
    pub(super) fn has_unsent_to(&self, far: u32) -> bool {
        let Some(out) = self.outgoing.get(&far) else { return false };
        let stream = self.links.get(&out.host).and_then(|link| link.stream.as_ref());
        let is_unsent = stream.is_some_and(|stream| stream.unsent() > 0);
        is_unsent || out.rest.is_some() || out.pair.is_behind()
    }

    /// Whether a living process of a host may not have all pieces.
    fn keeps_pieces_for(&self, host: u16) -> bool {
        let its = self.outgoing.iter().filter(|(_, out)| out.host == host);
        its.into_iter().any(|(far, out)| !out.pair.may_change_path() && !self.is_gone(*far))
    }

    /// Forgets the processes that had a far place before this incarnation. The next message asks anew for a connection that
    /// is missing: the daemon tries again only for processes that are there.
    pub(super) fn forget_before(&mut self, far: u32, incarnation: u32) {
        let is_former = |its: u32| its < incarnation;
        if self.outgoing.get(&far).is_some_and(|out| is_former(out.process.incarnation)) {
            self.forget_receiver(far);
        }
        if !self.outgoing.contains_key(&far) {
            self.links.values_mut().for_each(|link| link.users.retain(|user| *user != far));
        }
        // Pieces of the former process may still lie in the ring.
        if let Some(from) = self.incoming.get_mut(&far).filter(|it| is_former(it.incarnation)) {
            let incarnation = from.incarnation;
            *from = Incoming { incarnation, is_broken: true, ..Incoming::default() };
            self.offering.retain(|offering| *offering != far);
        }
    }

    fn forget_receiver(&mut self, far: u32) {
        if let Some(out) = self.outgoing.remove(&far) {
            self.receivers.remove(&(out.host, out.process.slot));
        }
        self.unfinished.retain(|unfinished| *unfinished != far);
    }
}

impl Link {
    /// Asks the daemon for a connection, if there is none and may be one.
    fn want(&mut self, host: u16, daemon: &mut DaemonSocket) {
        if self.stream.is_none() && !self.is_over {
            daemon.say(Handover::Relay { host: host.into() });
        }
    }

    /// Whether requests want the connection.
    fn asks(&self) -> bool {
        self.owner.is_some() || self.stores
    }

    fn awaits_answers(&self) -> bool {
        self.is_open && self.requests.has_unanswered()
    }

    /// The far processes for which a connection must not be missing. A process may ask in vain about a region, if there
    /// never was a connection.
    fn users(&self) -> impl Iterator<Item = u32> {
        let owner = self.owner.filter(|_| !self.requests.is_new());
        self.users.iter().copied().chain(owner)
    }
}

/// The key of a host's connection in events, which no far process has.
pub(super) fn key(host: u16) -> u64 {
    1 << 32 | u64::from(host)
}

/// The host of a connection with this key.
pub(super) fn host_of(key: u64) -> Option<u16> {
    (key >> 32 == 1).then_some(key as u16)
}

impl Incoming {
    /// The number of pieces that have come. Of a whole message that the sink holds, the last one is not taken.
    fn pieces(&self) -> u64 {
        self.taken + (self.held.len() + self.held_urgent.len()) as u64
    }

    fn holds(&self) -> bool {
        !self.held.is_empty() || !self.held_urgent.is_empty()
    }

    /// Takes one piece; whether the sink has taken a message.
    fn arrived<S: Sink + ?Sized>(
        &mut self,
        peer: Peer,
        frame: &Header,
        data: Bytes<'_>,
        piece_max: usize,
        sink: &mut S,
    ) -> Result<bool, BrokenPeer> {
        let mut head = [0; HEADER_BYTES];
        let piece_bytes = data.len().checked_sub(HEADER_BYTES).ok_or(BrokenPeer::Form)?;
        data.copy_to_slice(&mut head);
        let message =
            message_of(frame, &head, piece_bytes, piece_max).map_err(|_| BrokenPeer::Form)?;
        let piece = data.part(HEADER_BYTES, piece_bytes);
        if message.length as usize > DATA_BYTES_MAX {
            let (length, most) = (u64::from(message.length), DATA_BYTES_MAX as u64);
            return Err(BrokenPeer::TooLong { length, most });
        }
        if message.class == Class::Urgent {
            if self.held_urgent.is_empty() && sink.arrive(peer, &message, piece) == Verdict::Taken {
                self.taken += 1;
                return Ok(true);
            }
            self.held_urgent.push_back((message, piece.to_vec()));
            return Ok(false);
        }
        if message.sequence != self.sequence {
            return Err(BrokenPeer::Order { found: message.sequence, wanted: self.sequence });
        }
        self.sequence = self.sequence.wrapping_add(1);
        let is_whole = self.begun.is_none() && message.length as usize == piece_bytes;
        if is_whole && self.held.is_empty() {
            if sink.arrive(peer, &message, piece) == Verdict::Taken {
                self.taken += 1;
                return Ok(true);
            }
            self.held.push_back((message, piece.to_vec()));
            return Ok(false);
        }
        let (begun, mut bytes) = self
            .begun
            .take()
            .unwrap_or_else(|| (message, Vec::with_capacity(message.length as usize)));
        let is_its = Header { sequence: begun.sequence, ..message } == begun
            && bytes.len() + piece_bytes <= begun.length as usize
            && (piece_bytes > 0 || begun.length == 0);
        if !is_its {
            return Err(BrokenPeer::Form);
        }
        piece.append_to(&mut bytes);
        if bytes.len() < begun.length as usize {
            self.taken += 1;
            self.begun = Some((begun, bytes));
            return Ok(false);
        }
        // Its last piece counts when the sink has taken it.
        self.held.push_back((begun, bytes));
        Ok(self.offer(peer, sink))
    }

    /// Offers whole messages.
    fn offer<S: Sink + ?Sized>(&mut self, peer: Peer, sink: &mut S) -> bool {
        let mut any = false;
        for queue in [&mut self.held_urgent, &mut self.held] {
            while let Some((header, data)) = queue.front()
                && sink.arrive(peer, header, Bytes::from(&data[..])) == Verdict::Taken
            {
                queue.pop_front();
                self.taken += 1;
                any = true;
            }
        }
        any
    }

    /// Lets the sender go on when it has used up half of what it had.
    fn grant(&mut self, far: u32, window: u64, daemon: &mut DaemonSocket) {
        let position = self.taken + window;
        if position.saturating_sub(self.granted) >= (window / 2).max(1) {
            self.granted = position;
            let incarnation = self.incarnation;
            daemon.say(Handover::Granted { far, incarnation, position });
        }
    }
}
