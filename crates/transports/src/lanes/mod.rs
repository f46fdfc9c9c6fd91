//! The channel between processes on different hosts: lanes, and relays where there is none.
//!
//! A lane is the TCP connection of two processes. Daemons open it: a process asks the daemon of its host over a Unix
//! socket, and gets a connected socket with the keys of this lane alone ([`landeck_wire::handover`]). So a process
//! neither dials nor listens. Lanes are opened at first need, by either side, and kept.
//!
//! On a lane frames follow each other, header and data, in clear or sealed ([`framing`], [`sealing`]). Each frame of a
//! program has the low 16 bits of its position. Frames about positions tell the sender how much was received. A process
//! that leaves in good order says goodbye behind the last frame, and stays until the other hosts have everything.
//!
//! A pair that has no lane sends over the relay of the receiver's host ([`Lanes::with_relays`]). Which path a message
//! takes is the answer of [`choose`].
//!
//! Nothing here decides that a process is gone. A connection that ends without a goodbye is reported to the daemon, and
//! sends stay without room ([`SendError::Full`]) until there is another one, or the membership says what has happened.
//! The lane goes on with the frames that are not received. So nothing is lost, and nothing comes twice. Relays do so too.
//!
//! The daemon may start again, which no lane notices. The process connects to its next run and says which lanes it has and
//! what it waits for ([`Lanes::reconnect_by`]).
//!
//! | module | content |
//! |---|---|
//! | [`framing`] | from bytes to frames |
//! | [`sealing`] | the encryption of frames |
//! | [`relay`] | a connection to the relay of another host |
//! | [`relay_ring`] | where the relay of a host lays messages for a process of it |
//! | `relayed` | the path over relays |
//! | `lane` | one lane |
//! | `burst` | short messages that leave in one system call |
//! | `daemon` | the socket to the daemon |
//! | `conversation` | what the process and the daemon tell each other |
//! | [`silence`] | whether a connection carries what it is given |
//! | `sight` | since when a lane does not move, for observers |
//! | `socket` | system calls |
//! | `unconfirmed` | what the receiver is not known to have taken |
//!
//! A lane costs a descriptor. It needs memory for at most one frame while the network accepts no more, and
//! [`STAGING_BYTES`] while a frame is incomplete or held by the sink; an idle lane needs none.

mod burst;
mod conversation;
mod daemon;
pub mod framing;
mod lane;
pub mod relay;
pub mod relay_ring;
mod relayed;
pub mod sealing;
mod sight;
pub mod silence;
mod socket;
mod unconfirmed;

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_channel::relay_requests::RelayRequests;
use landeck_channel::{Channel, Peer, SendError, Sink, Traffic, URGENT_BYTES_MAX};
use landeck_memory::{Bytes, FarRecord, LaneRecord, Segment};
use landeck_wire::handover::{Handover, LaneKeys};
use landeck_wire::way::{Extent, LaneState, MessageWay, PathWish, Receiver, choose};
use landeck_wire::{Class, Header, HostNumber};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

pub use framing::{DATA_BYTES_MAX, STAGING_BYTES};

use burst::Bursts;
use daemon::DaemonSocket;
use framing::Spare;
use lane::{Break, Lane};
use relayed::Relayed;
use sight::Stall;

/// The key of the daemon's socket in events; those of lanes are the numbers of their far processes.
const DAEMON: u64 = u64::MAX;
/// The most events handled in one poll; others wait for the next.
const EVENTS_MAX: usize = 64;
/// The most messages of the daemon handled at once.
const HEARD_MAX: u32 = 64;
/// The most rounds of the last poll before sleep.
const ROUNDS_MAX: u32 = 64;
/// A process with one lane reads it directly. Every so many polls it also looks at the daemon's socket.
const DIRECT_LOOKS: u32 = 32;
/// Every so many looks at all sockets, and before each sleep, the time says whether the next look at silences is due.
const TIMED_LOOKS: u64 = 64;
/// The time between two looks at silences.
const SILENCE_INTERVAL: Duration = Duration::from_millis(100);

/// The most lanes of a process if nothing says otherwise.
const LANES_MAX: u64 = 1024;

/// The most lanes of a process of this user: as many as are wished for, or else half of the open files that this process may
/// have, so that the program has the other half.
pub fn lanes_max(wish: Option<u32>) -> u32 {
    wish.unwrap_or_else(|| half_of(getrlimit(Resource::Nofile).current))
}

fn half_of(descriptors: Option<u64>) -> u32 {
    descriptors.map_or(LANES_MAX, |most| (most / 2).clamp(1, LANES_MAX)) as u32
}

/// The lanes of one process.
pub struct Lanes {
    daemon: DaemonSocket,
    /// The slot of this process, its incarnation, and the most lanes that it can have.
    own: (u32, u32, u32),
    /// The epoll descriptor of all sockets, which a sleeper watches.
    epoll: OwnedFd,
    /// The number of the first far process as a peer.
    first_far: u32,
    /// The far processes.
    places: Vec<Place>,
    /// The far processes whose lanes have not ended.
    open: Vec<u32>,
    /// The far processes whose lanes have something to send besides messages.
    tended: Vec<u32>,
    /// The far processes whose lanes have frames for the sink.
    offering: Vec<u32>,
    /// The far processes whose connection was lost, and whose lanes may have to send frames again.
    broken: Vec<u32>,
    /// The reports of missing lanes that no lane has followed, by their far processes.
    unexplained: BTreeMap<u32, Handover>,
    /// Lanes to processes that have returned, and messages of which from before are not taken yet.
    later: Vec<OfferedLane>,
    /// The path over relays.
    relayed: Option<Box<Relayed>>,
    /// The segment, which says whose place a far one is.
    segment: Option<Segment>,
    wish: PathWish,
    spare: Spare,
    bursts: Bursts,
    looks: u32,
    has_left: bool,
    /// The daemon was told that the process has left its job.
    has_told: bool,
    /// The daemon has handed over the lanes that came before this process. Some may hold all that their processes sent.
    is_welcome: bool,
    /// A connection that has carried nothing for so long is broken; by the daemon's welcome.
    silence: Option<Duration>,
    /// The time of the next look at silences.
    silence_due: Duration,
}

/// A lane that the daemon has handed over.
struct OfferedLane {
    far: u32,
    /// The incarnation of the far process that it leads to.
    incarnation: u32,
    number: u32,
    keys: LaneKeys,
    /// `None` if this process has no room for a descriptor.
    socket: Option<OwnedFd>,
}

/// The place of a far process.
#[derive(Default)]
struct Place {
    lane: Option<Box<Lane>>,
    /// The incarnation of the far process that the lane leads to.
    incarnation: u32,
    /// The number of the last lane of the pair.
    last: Option<u32>,
    /// The daemon was asked for a lane.
    is_wanted: bool,
    /// The daemon has said that no lane can be had.
    is_refused: bool,
    /// The path of the outgoing direction, once an ordered message has taken it.
    path: Option<MessageWay>,
    is_tended: bool,
    is_offering: bool,
    /// The stall of the lane, as an observer was told of it.
    stall: Option<Stall>,
}

impl Lanes {
    /// Creates the channel of the process of `slot`, whose daemon is at the other end of `socket` (a connected Unix
    /// socket that keeps the borders of messages). The `far` far processes are the peers from `first_far` on.
    ///
    /// # Errors
    /// If the system gives no descriptor.
    pub fn new(
        socket: OwnedFd,
        slot: u32,
        incarnation: u32,
        first_far: u32,
        far: u32,
    ) -> io::Result<Self> {
        Self::create(socket, (slot, incarnation, 0), first_far, far)
    }

    /// Creates the channel of a process of a segment, which also uses relays, as the user wishes. It can have at most
    /// so many lanes.
    ///
    /// # Errors
    /// If the system gives no descriptor.
    pub fn with_relays(
        socket: OwnedFd,
        segment: &Segment,
        slot: u32,
        wish: PathWish,
        lanes_max: u32,
    ) -> io::Result<Self> {
        let incarnation = segment.slot_record(slot).incarnation;
        let (slots, far) = (segment.plan().slots(), segment.plan().far);
        let mut lanes = Self::create(socket, (slot, incarnation, lanes_max), slots, far)?;
        lanes.segment = Some(segment.clone());
        lanes.relayed = Some(Box::new(Relayed::new(segment, slot, incarnation)));
        lanes.wish = wish;
        Ok(lanes)
    }

    fn create(socket: OwnedFd, own: (u32, u32, u32), first_far: u32, far: u32) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &socket, EventData::new_u64(DAEMON), EventFlags::IN)?;
        let mut places = Vec::new();
        places.resize_with(far as usize, Place::default);
        let mut lanes = Self {
            daemon: DaemonSocket::new(socket),
            own,
            epoll,
            first_far,
            places,
            open: Vec::new(),
            tended: Vec::new(),
            offering: Vec::new(),
            broken: Vec::new(),
            unexplained: BTreeMap::new(),
            later: Vec::new(),
            segment: None,
            relayed: None,
            wish: PathWish::Lane,
            spare: Spare::default(),
            looks: 0,
            bursts: Bursts::default(),
            has_left: false,
            has_told: false,
            is_welcome: false,
            silence: None,
            silence_due: Duration::ZERO,
        };
        lanes.introduce();
        Ok(lanes)
    }

    /// Whether a peer has a lane that has not ended.
    pub fn has_lane(&self, peer: Peer) -> bool {
        let lane = self.number_of(peer).and_then(|far| self.places[far as usize].lane.as_ref());
        lane.is_some_and(|lane| !lane.is_over())
    }

    /// Chooses the path of a message to a far process.
    #[inline]
    fn way(&self, far: u32, class: Class, bytes: u64) -> MessageWay {
        let place = &self.places[far as usize];
        let lane = match (place.path, &place.lane) {
            (Some(way), _) if way.is_relayed() => LaneState::Unused,
            (_, Some(lane)) if class == Class::Urgent && lane.is_crowded() => LaneState::Crowded,
            (_, Some(_)) => LaneState::Free,
            (Some(_), None) => LaneState::Possible,
            (None, None) if place.is_refused => LaneState::Impossible,
            (None, None) => LaneState::Possible,
        };
        choose(Receiver::Far { lane, wish: self.wish }, class, Extent::whole(bytes))
    }

    /// Whether the outgoing direction has taken the lane.
    fn sends_over_lane(&self, far: u32) -> bool {
        self.places[far as usize].path == Some(MessageWay::Lane)
    }

    #[cold]
    fn send_relayed(
        &mut self,
        far: u32,
        header: &Header,
        data: Bytes<'_>,
    ) -> Result<(), SendError> {
        let Some(relayed) = &mut self.relayed else { return Err(SendError::Full) };
        relayed.try_send(far, header, data, &mut self.daemon, &self.epoll)?;
        if header.class != Class::Urgent {
            self.places[far as usize].path = Some(MessageWay::Relay);
        }
        Ok(())
    }

    /// Whether bytes for a far process wait here on their way over the relay.
    fn has_unsent_relayed(&self, far: u32) -> bool {
        self.relayed.as_ref().is_some_and(|relayed| relayed.has_unsent_to(far))
    }

    /// Watches the daemon's socket for room if messages wait for it.
    fn watch_daemon(&self) {
        if let (waits, Some(socket)) = self.daemon.waits_at() {
            let mut wanted = EventFlags::IN;
            wanted.set(EventFlags::OUT, waits);
            // If it fails, the messages go with the next look.
            let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(DAEMON), wanted);
        }
    }

    /// The number of a peer among the far processes.
    #[inline]
    fn number_of(&self, peer: Peer) -> Option<u32> {
        peer.0.checked_sub(self.first_far).filter(|far| (*far as usize) < self.places.len())
    }

    #[inline]
    fn poll_once<S: Sink + ?Sized>(&mut self, everywhere: bool, sink: &mut S) -> (bool, usize) {
        self.tend(false);
        let (mut any, events) = self.look(everywhere, sink);
        any |= self.offer(sink);
        if !self.broken.is_empty() {
            self.send_again(sink);
        }
        for offered in std::mem::take(&mut self.later) {
            self.accept(offered, sink);
        }
        if let Some(relayed) = &mut self.relayed {
            any |= relayed.poll(sink, &mut self.daemon);
        }
        (any, events)
    }

    /// Handles the sockets' events; returns whether parts have come to their place, and the number of events.
    #[inline]
    fn look<S: Sink + ?Sized>(&mut self, everywhere: bool, sink: &mut S) -> (bool, usize) {
        self.looks = self.looks.wrapping_add(1);
        let has_answers = match &mut self.relayed {
            Some(relayed) => relayed.read_answers(&mut self.daemon, &self.epoll),
            None => false,
        };
        if let [only] = self.open[..]
            && !everywhere
            && !self.looks.is_multiple_of(DIRECT_LOOKS)
        {
            return (self.read(only, sink) | has_answers, 0);
        }
        let (any, events) = self.look_everywhere(sink);
        (any | has_answers, events)
    }

    fn look_everywhere<S: Sink + ?Sized>(&mut self, sink: &mut S) -> (bool, usize) {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.daemon.flush();
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS_MAX];
        self.spare.traffic.looks += 1;
        if self.spare.traffic.looks.is_multiple_of(TIMED_LOOKS) {
            self.look_at_time();
        }
        let (events, _) = match epoll::wait(&self.epoll, &mut events[..], Some(&AT_ONCE)) {
            Ok(events) => events,
            Err(_) => return (false, 0),
        };
        let mut any = false;
        for event in events.iter() {
            let (data, flags) = (event.data, event.flags);
            if data.u64() == DAEMON {
                self.hear_daemon(sink);
                if flags.contains(EventFlags::OUT) {
                    self.daemon.flush();
                    self.watch_daemon();
                }
                continue;
            }
            if let Some(host) = relayed::host_of(data.u64()) {
                if let Some(relayed) = &mut self.relayed {
                    any |= relayed.ready(host, &mut self.daemon, &self.epoll);
                }
                continue;
            }
            let far = data.u64() as u32;
            if flags.contains(EventFlags::OUT)
                && let Some(lane) = &mut self.places[far as usize].lane
            {
                lane.tend(false, &self.epoll, &mut self.spare);
            }
            any |= self.read(far, sink);
        }
        (any, events.len())
    }

    /// Reads a lane; returns whether parts have come to their place.
    #[inline]
    fn read<S: Sink + ?Sized>(&mut self, far: u32, sink: &mut S) -> bool {
        let Some(place) = self.places.get_mut(far as usize) else { return false };
        let Some(lane) = &mut place.lane else { return false };
        let any = lane.read(Peer(self.first_far + far), sink, &self.epoll, &mut self.spare);
        if lane.is_awaited() {
            lane.tend(false, &self.epoll, &mut self.spare);
        }
        if lane.needs_care() && !std::mem::replace(&mut place.is_tended, true) {
            self.tended.push(far);
        }
        if lane.has_news() && !std::mem::replace(&mut place.is_offering, true) {
            self.offering.push(far);
        }
        any
    }

    /// Sends what waits in lanes.
    #[inline]
    fn tend(&mut self, sleeps: bool) {
        if let Some(relayed) = &mut self.relayed
            && relayed.needs_care()
        {
            relayed.tend(&mut self.daemon, &self.epoll);
        }
        if self.tended.is_empty() {
            return;
        }
        for far in std::mem::take(&mut self.tended) {
            let place = &mut self.places[far as usize];
            place.is_tended = false;
            let Some(lane) = &mut place.lane else { continue };
            lane.tend(sleeps, &self.epoll, &mut self.spare);
            if lane.is_over() && !std::mem::replace(&mut place.is_offering, true) {
                self.offering.push(far);
            }
            self.tend_later(far);
        }
    }

    /// Notes a lane that has something to send.
    #[inline]
    fn tend_later(&mut self, far: u32) {
        let place = &mut self.places[far as usize];
        if !place.is_tended && place.lane.as_ref().is_some_and(|lane| lane.needs_care()) {
            place.is_tended = true;
            self.tended.push(far);
        }
    }

    /// Offers arrived messages; returns whether the sink took any.
    #[inline]
    fn offer<S: Sink + ?Sized>(&mut self, sink: &mut S) -> bool {
        let mut any = false;
        for at in 0..self.offering.len() {
            any |= self.offer_from(self.offering[at], sink);
        }
        let places = &self.places;
        self.offering.retain(|far| places[*far as usize].is_offering);
        any
    }

    /// Offers the arrived messages of one far process, which stays among those with messages only if the sink holds one.
    #[inline]
    fn offer_from<S: Sink + ?Sized>(&mut self, far: u32, sink: &mut S) -> bool {
        let place = &mut self.places[far as usize];
        let Some(lane) = &mut place.lane else {
            place.is_offering = false;
            return false;
        };
        let peer = Peer(self.first_far + far);
        let offered = lane.offer(peer, sink, &self.epoll, &mut self.spare);
        if lane.is_awaited() {
            lane.tend(false, &self.epoll, &mut self.spare);
        }
        lane.watch(false, &self.epoll);
        place.is_offering = offered.is_held;
        if lane.is_over() {
            self.note_end(far, offered.is_held);
        } else {
            self.tend_later(far);
        }
        offered.any
    }

    /// Ends the connections that have carried nothing for too long. There is another one for each, as for those that
    /// break.
    fn look_at_silences(&mut self) {
        let (now, Some(limit)) = (self.clock(), self.silence) else { return };
        if now < self.silence_due {
            return;
        }
        self.silence_due = now + SILENCE_INTERVAL;
        for &far in &self.open {
            let record = self.segment.as_ref().map(|segment| segment.far_record(far));
            let place = &mut self.places[far as usize];
            let Some(lane) = &mut place.lane else { continue };
            lane.look_at_silence(now, limit, &self.epoll);
            let is_gone =
                |it: FarRecord| it.state.is_gone() || it.process.incarnation > place.incarnation;
            if record.is_some_and(is_gone) {
                lane.look_at_rest(now, limit, &self.epoll);
            }
            if lane.is_over() && !std::mem::replace(&mut place.is_offering, true) {
                self.offering.push(far);
            }
        }
        if let Some(relayed) = &mut self.relayed {
            relayed.look_at_silences((now, limit), &mut self.daemon, &self.epoll);
        }
    }

    /// Notes that the connection of a lane has ended. The daemon learns of a break when all messages that had come are
    /// out, and opens another one.
    #[cold]
    fn note_end(&mut self, far: u32, is_held: bool) {
        self.open.retain(|open| *open != far);
        let place = &mut self.places[far as usize];
        if let (Some(lane), false) = (&mut place.lane, is_held)
            && let Some(reason) = lane.take_break()
        {
            let is_refused = lane.is_refused();
            let (lane, incarnation) = (place.last.unwrap_or(0), place.incarnation);
            let (report, is_last) = match reason {
                Break::System(errno) => {
                    (Handover::Broken { far, incarnation, lane, errno }, is_refused)
                }
                Break::Silent(silence) => {
                    (Handover::Silent { far, lane, silence }, silence.is_hopeless)
                }
            };
            place.is_wanted = !is_last;
            self.report(far, report);
            if !is_last {
                self.daemon.say(Handover::Want { far });
                self.note_broken(far);
            }
        }
    }

    fn note_broken(&mut self, far: u32) {
        if !self.broken.contains(&far) {
            self.broken.push(far);
        }
    }

    /// Sends frames again that were lost with a connection, where there is another one.
    #[cold]
    fn send_again<S: Sink + ?Sized>(&mut self, sink: &mut S) {
        for far in std::mem::take(&mut self.broken) {
            let Some(lane) = &mut self.places[far as usize].lane else { continue };
            if lane.can_send_again() {
                let peer = Peer(self.first_far + far);
                lane.send_again(peer, sink, &self.epoll, &mut self.spare);
            }
            if lane.has_unsent() {
                self.broken.push(far);
            }
            self.tend_later(far);
        }
    }

    /// Takes over a lane, or closes it if it is none that can be used: there is a later one, or its process is no more.
    fn accept<S: Sink + ?Sized>(&mut self, offered: OfferedLane, sink: &mut S) {
        let OfferedLane { far, incarnation, number, .. } = offered;
        if far as usize >= self.places.len() || incarnation < self.incarnation_of(far) {
            return;
        }
        if self.reads_former(far, incarnation, sink) {
            return self.later.push(offered);
        }
        let place = &mut self.places[far as usize];
        if place.last.is_some_and(|last| number <= last) {
            return;
        }
        place.last = Some(number);
        if let Err(errno) = self.take_over(offered) {
            let errno = errno.raw_os_error();
            return self.report(far, Handover::Broken { far, incarnation, lane: number, errno });
        }
        self.tend_later(far);
        self.read(far, sink); // into the staging memory, since no header is there yet
    }

    /// Where a lane leads to an earlier process of a place, takes what that has sent; returns whether not all could be taken.
    fn reads_former<S: Sink + ?Sized>(&mut self, far: u32, incarnation: u32, sink: &mut S) -> bool {
        let place = &self.places[far as usize];
        if place.lane.is_none() || place.incarnation >= incarnation {
            return false;
        }
        while self.read(far, sink) | self.offer_from(far, sink) {}
        let place = &mut self.places[far as usize];
        let is_held = place.lane.as_ref().is_some_and(|lane| !lane.is_read_out());
        if !is_held {
            place.last = None;
        }
        is_held
    }

    /// Goes on with a further connection, or begins a lane to a process that had none.
    fn take_over(&mut self, offered: OfferedLane) -> Result<(), Errno> {
        let OfferedLane { far, incarnation, number, keys, socket } = offered;
        let socket = socket.ok_or(Errno::MFILE)?;
        socket::set_up(&socket)?;
        let place = &mut self.places[far as usize];
        let is_same = place.incarnation == incarnation;
        if let Some(lane) = place.lane.as_mut().filter(|_| is_same) {
            if lane.is_refused() {
                return Ok(());
            }
            lane.go_on(number, socket, &keys, &self.epoll, &mut self.spare)?;
        } else {
            let mut lane = Lane::new(u64::from(far), number, socket, &keys, &mut self.spare)?;
            if self.has_left {
                lane.leave(&mut self.spare);
            }
            if let Some(mut old) = place.lane.replace(Box::new(lane)) {
                old.forget(&self.epoll, &mut self.spare);
            }
            place.incarnation = incarnation;
        }
        if let Some(lane) = &mut place.lane {
            lane.watch(false, &self.epoll);
        }
        self.open.retain(|open| *open != far);
        self.open.push(far);
        self.unexplained.remove(&far);
        self.note_broken(far);
        Ok(())
    }

    /// The incarnation of the process that has a far place now.
    fn incarnation_of(&self, far: u32) -> u32 {
        self.segment.as_ref().map_or(0, |segment| segment.far_record(far).process.incarnation)
    }

    fn want(&mut self, far: u32) {
        if !std::mem::replace(&mut self.places[far as usize].is_wanted, true) {
            self.daemon.say(Handover::Want { far });
        }
    }
}

impl Channel for Lanes {
    fn data_bytes_max(&self) -> usize {
        DATA_BYTES_MAX
    }

    #[inline]
    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        let is_urgent = header.class == Class::Urgent;
        if data.len() > DATA_BYTES_MAX || is_urgent && data.len() > URGENT_BYTES_MAX {
            return Err(SendError::TooLong);
        }
        let far = self.number_of(to).filter(|_| !self.has_left).ok_or(SendError::Gone)?;
        if self.way(far, header.class, data.len() as u64).is_relayed() {
            return self.send_relayed(far, header, data);
        }
        let place = &mut self.places[far as usize];
        let Some(lane) = &mut place.lane else {
            self.want(far);
            return Err(SendError::Full);
        };
        let sent = lane.try_send(header, data, self.looks, (&mut self.spare, &mut self.bursts));
        if sent.is_ok() && !is_urgent {
            place.path = Some(MessageWay::Lane);
        }
        if lane.needs_care() {
            self.tend_later(far);
        }
        sent
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.poll_once(false, sink).0
    }

    #[inline]
    fn poll_into<S: Sink>(&mut self, sink: &mut S) -> bool {
        self.poll_once(false, sink).0
    }

    /// Reads the peer's lane directly, and looks at the others only now and then.
    #[inline]
    fn poll_peer_into<S: Sink>(&mut self, peer: Peer, sink: &mut S) -> bool {
        let lane = self.number_of(peer).filter(|far| self.places[*far as usize].lane.is_some());
        self.looks = self.looks.wrapping_add(1);
        match lane {
            Some(far) if self.broken.is_empty() && !self.looks.is_multiple_of(DIRECT_LOOKS) => {
                self.tend(false);
                let placed = self.read(far, sink);
                if !self.places[far as usize].is_offering {
                    return placed;
                }
                let any = self.offer_from(far, sink) | placed;
                let is_held = self.places[far as usize].is_offering;
                if !is_held {
                    self.offering.retain(|offering| *offering != far);
                }
                any
            }
            _ => self.poll_once(true, sink).0,
        }
    }

    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = false;
        self.look_at_time();
        for _ in 0..ROUNDS_MAX {
            let (took, events) = self.poll_once(true, sink);
            any |= took;
            if events == 0 {
                break;
            }
        }
        self.tend(true);
        self.daemon.flush();
        if self.daemon.waits_at().0 {
            self.watch_daemon();
        }
        any
    }

    fn sent_mark(&self, peer: Peer) -> u64 {
        let far = self.number_of(peer).filter(|far| self.sends_over_lane(*far));
        far.and_then(|far| self.places[far as usize].lane.as_ref()).map_or(0, |it| it.sent_mark())
    }

    fn is_received(&self, peer: Peer, mark: u64) -> bool {
        let Some(far) = self.number_of(peer) else { return true };
        if !self.sends_over_lane(far) {
            return !self.has_unsent_relayed(far);
        }
        self.places[far as usize].lane.as_ref().is_none_or(|lane| lane.is_received(mark))
    }

    fn has_unsent_to(&self, peer: Peer) -> bool {
        let Some(far) = self.number_of(peer) else { return false };
        let lane = self.places[far as usize].lane.as_ref();
        lane.is_some_and(|lane| lane.keeps_rest()) || self.has_unsent_relayed(far)
    }

    fn way_to(&self, peer: Peer, class: Class, bytes: u64) -> Option<MessageWay> {
        self.number_of(peer).map(|far| self.way(far, class, bytes))
    }

    fn way_from(&self, peer: Peer) -> Option<MessageWay> {
        let far = self.number_of(peer)?;
        let has_heard = self.relayed.as_ref().is_some_and(|relayed| relayed.has_heard(far));
        Some(match self.wish {
            PathWish::Daemons => MessageWay::Daemons,
            PathWish::Relay => MessageWay::Relay,
            _ if has_heard => MessageWay::Relay,
            PathWish::Auto | PathWish::Lane => MessageWay::Lane,
        })
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        let Some(far) = self.number_of(peer) else { return true };
        // Nothing closes the connections of a lost host.
        if self.segment.as_ref().is_some_and(|segment| segment.far_record(far).is_host_lost) {
            return true;
        }
        let lane = self.places[far as usize].lane.as_ref();
        lane.map_or(self.is_welcome, |lane| lane.is_read_out())
            && self.relayed.as_ref().is_none_or(|relayed| relayed.is_read_out(far))
    }

    fn holds_before(&self, peer: Peer, incarnation: u32) -> bool {
        let Some(far) = self.number_of(peer) else { return false };
        let place = &self.places[far as usize];
        let lane = place.lane.as_ref().filter(|_| place.incarnation != incarnation);
        lane.is_some_and(|lane| !lane.is_read_out())
            || self.relayed.as_ref().is_some_and(|it| it.holds_before(far, incarnation))
    }

    fn clock(&self) -> Duration {
        Duration::from_nanos(landeck_memory::system::now_ns())
    }

    fn ask_for_group_numbers(&mut self) {
        self.daemon.say(Handover::Numbers);
    }

    fn tell_departure(&mut self) {
        self.has_told = true;
        self.daemon.say(Handover::Left);
    }

    fn leave(&mut self) {
        self.has_left = true;
        for at in 0..self.open.len() {
            let far = self.open[at];
            if let Some(lane) = &mut self.places[far as usize].lane {
                lane.leave(&mut self.spare);
            }
            self.tend_later(far);
        }
        if let Some(relayed) = &mut self.relayed {
            relayed.leave(&mut self.daemon, &self.epoll);
        }
    }

    fn forget(&mut self, peer: Peer) {
        self.forget_before(peer, u32::MAX);
    }

    /// A lane to the process that has the place now stays, though this process hears of it only now.
    fn forget_before(&mut self, peer: Peer, incarnation: u32) {
        let Some(far) = self.number_of(peer) else { return };
        let place = &mut self.places[far as usize];
        if place.lane.is_none() || place.incarnation != incarnation {
            if let Some(mut lane) = place.lane.take() {
                lane.forget(&self.epoll, &mut self.spare);
            }
            (place.last, place.is_wanted) = (None, false);
            self.unexplained.remove(&far);
            self.open.retain(|open| *open != far);
            self.broken.retain(|broken| *broken != far);
        }
        (place.is_refused, place.path) = (false, None);
        if let Some(relayed) = &mut self.relayed {
            relayed.forget_before(far, incarnation);
        }
    }

    fn wake_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.epoll.as_fd()]
    }

    fn describe_lanes(&mut self, now_ns: u64, tell: &mut dyn FnMut(LaneRecord)) {
        for &far in &self.open {
            let place = &mut self.places[far as usize];
            let load = place.lane.as_ref().map(|lane| lane.load());
            place.stall = load.and_then(|load| Stall::after(place.stall, load, now_ns));
            if let Some(stall) = &place.stall {
                let silent = place.lane.as_ref().and_then(|lane| lane.silent_since());
                let silent_since_ns = silent.map_or(0, |since| since.as_nanos() as u64);
                tell(stall.record(self.first_far + far, silent_since_ns));
            }
        }
        if let Some(relayed) = &self.relayed {
            relayed.describe_silences(tell);
        }
    }

    fn traffic(&self) -> Traffic {
        self.spare.traffic
    }

    fn take_disorder(&mut self, peer: Peer) -> u64 {
        let far = self.number_of(peer);
        let lane = far.and_then(|far| self.places[far as usize].lane.as_mut());
        lane.map_or(0, |lane| lane.take_disorder())
    }

    fn relay_requests(&mut self, owner: Peer) -> Option<&mut RelayRequests> {
        let far = self.number_of(owner).filter(|_| !self.has_left)?;
        self.relayed.as_mut().map(|relayed| relayed.requests_to(far, &mut self.daemon))
    }

    fn store_requests(&mut self, host: HostNumber) -> Option<&mut RelayRequests> {
        let relayed = self.relayed.as_mut().filter(|_| !self.has_left)?;
        relayed.requests_at(host.0, &mut self.daemon)
    }

    fn sleep_for_answers(&mut self, owner: Peer, longest: Duration) -> bool {
        let (Some(far), Some(relayed)) = (self.number_of(owner), &mut self.relayed) else {
            return false;
        };
        relayed.sleep_for_answers((far, longest), &mut self.daemon, &self.epoll)
    }

    fn has_unsent(&self) -> bool {
        let lanes = self.open.iter().filter_map(|far| self.places[*far as usize].lane.as_ref());
        let broken = self.broken.iter().filter_map(|far| self.places[*far as usize].lane.as_ref());
        lanes.chain(broken).any(|lane| lane.has_unsent())
            || self.relayed.as_ref().is_some_and(|relayed| relayed.has_unsent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_open_files_may_be_lanes() {
        let usual = [Some(256), Some(1), Some(1 << 20), None].map(half_of);
        assert_eq!(usual, [128, 1, 1_024, 1_024]);
        assert_eq!(lanes_max(Some(3)), 3);
    }
}
