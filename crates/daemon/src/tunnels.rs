//! Tunnels: a thread of the daemon that carries the streams of all processes of this host to the relay of another one, over
//! one connection of the two daemons, and the streams from there to the relay here.
//!
//! Each stream has a pair of Unix sockets, whose other end a process or the relay of this host has. What it carries is sealed
//! between these two. [`tunnel`] has one connection. The daemon's loop opens tunnels and checks who opens a stream
//! (`lanes/tunnels.rs`). Nothing of it waits for this thread.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use landeck_transports::lanes::relay::prepare;
use landeck_transports::lanes::silence::{
    SilenceLooks, has_unacknowledged, may_be_of_long_packets,
};
use landeck_wire::HostNumber;
use landeck_wire::preamble::PREAMBLE_BYTES;
use rustix::event::epoll::EventFlags;

use crate::orders::{Bell, Inbox, Orders, orders};

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;
mod tunnel;

use tunnel::{Tunnel, TunnelEnd};

/// The time between two looks at connections that may carry nothing.
const SILENCE_INTERVAL: Duration = Duration::from_millis(200);
/// The bytes that are read, or sent, at once.
const BUFFER_BYTES: usize = 256 << 10;
/// The events of a token's descriptor. Each comes once: the thread remembers what is ready.
const ALL_EVENTS: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// The name of a stream on one of its hosts: the other one, the number of the tunnel, and its own.
pub(crate) type StreamName = (HostNumber, u32, u32);

/// An order for the thread.
#[derive(Debug)]
enum Order {
    /// A tunnel to a host has this connection. The one before ends.
    Begin { host: HostNumber, tunnel: u32, socket: OwnedFd },
    /// The tunnel ends.
    End { host: HostNumber, tunnel: u32 },
    /// A process of this host begins a stream with a preamble.
    Open { name: StreamName, preamble: Box<[u8; PREAMBLE_BYTES]>, socket: OwnedFd },
    /// The relay takes a stream from another host, or not.
    Answer { name: StreamName, socket: Option<OwnedFd> },
}

/// Something that the daemon's loop must know.
#[derive(Debug)]
pub(crate) enum TunnelEvent {
    /// The other daemon begins a stream. It waits for [`Tunnels::answer`].
    Opened { name: StreamName, preamble: Box<[u8; PREAMBLE_BYTES]> },
    /// The other daemon has accepted a stream.
    Accepted(StreamName),
    /// The other daemon has refused a stream, or there is no such tunnel.
    Refused(StreamName),
    /// A tunnel has broken, and its streams with it.
    Broken {
        host: HostNumber,
        tunnel: u32,
        /// The thing that no daemon does, if the other one has done it.
        fault: Option<&'static str>,
        /// Long packets may not pass.
        is_narrow: bool,
    },
}

/// The thread, as the daemon's loop has it. It starts when it is needed.
#[derive(Debug)]
pub(crate) struct Tunnels {
    own: HostNumber,
    silence: Duration,
    thread: Option<Thread>,
}

#[derive(Debug)]
struct Thread {
    orders: Orders<Order>,
    events: Receiver<TunnelEvent>,
    /// It rings when there are events.
    bell: Bell,
}

impl Tunnels {
    /// No tunnel. One is broken when it has carried nothing for so long.
    pub(crate) fn new(own: HostNumber, silence: Duration) -> Self {
        Self { own, silence, thread: None }
    }

    /// Starts the thread, if it does not run. Returns the descriptor that is ready when there are events.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn start(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        if self.thread.is_some() {
            return Ok(None);
        }
        let ((orders, inbox), bell) = (orders()?, Bell::new()?);
        let (events_in, events) = channel();
        let worker = Worker {
            own: self.own,
            silence: self.silence,
            inbox,
            events: events_in,
            bell: bell.clone(),
            has_told: false,
            tunnels: BTreeMap::new(),
            look_at: Instant::now(),
            buffer: vec![0; BUFFER_BYTES],
        };
        std::thread::Builder::new().name("landeckd-tunnel".to_owned()).spawn(|| worker.run())?;
        let thread = self.thread.insert(Thread { orders, events, bell });
        Ok(Some(thread.bell.as_fd()))
    }

    /// A connection to another host is a tunnel from now on.
    pub(crate) fn begin(&self, (host, tunnel): (HostNumber, u32), socket: OwnedFd) {
        self.order(Order::Begin { host, tunnel, socket });
    }

    /// A tunnel ends.
    pub(crate) fn end(&self, (host, tunnel): (HostNumber, u32)) {
        self.order(Order::End { host, tunnel });
    }

    /// Begins a stream with a preamble. The other end of the socket is that of a process.
    pub(crate) fn open(&self, name: StreamName, preamble: [u8; PREAMBLE_BYTES], socket: OwnedFd) {
        self.order(Order::Open { name, preamble: Box::new(preamble), socket });
    }

    /// Accepts a stream, whose other end the relay has, or refuses it.
    pub(crate) fn answer(&self, name: StreamName, socket: Option<OwnedFd>) {
        self.order(Order::Answer { name, socket });
    }

    /// Takes what has happened.
    pub(crate) fn take_events(&self) -> Vec<TunnelEvent> {
        let Some(thread) = &self.thread else { return Vec::new() };
        thread.bell.hear();
        thread.events.try_iter().collect()
    }

    fn order(&self, order: Order) {
        if let Some(thread) = &self.thread {
            thread.orders.give(order);
        }
    }
}

/// The thread.
struct Worker {
    own: HostNumber,
    silence: Duration,
    inbox: Inbox<Order>,
    events: Sender<TunnelEvent>,
    bell: Bell,
    /// Something was told that the loop was not woken for.
    has_told: bool,
    tunnels: BTreeMap<HostNumber, Connection>,
    look_at: Instant,
    buffer: Vec<u8>,
}

/// A tunnel and its connection.
struct Connection {
    number: u32,
    tunnel: Tunnel,
    looks: SilenceLooks,
    /// Something may have to be done.
    is_due: bool,
    /// The other host may not have everything that was sent, so the connection is looked at.
    is_looked_at: bool,
}

/// The token of a stream, or of the connection itself for stream 0, which no stream has.
fn token(host: HostNumber, stream: u32) -> u64 {
    u64::from(host.0) << 32 | u64::from(stream)
}

impl Worker {
    /// Carries streams until the daemon's loop is gone.
    fn run(mut self) {
        let mut ready = Vec::new();
        while let Some(orders) = self.inbox.wait(self.time_left(), &mut ready) {
            ready.drain(..).for_each(|(token, flags)| self.ready(token, flags));
            orders.into_iter().for_each(|order| self.obey(order));
            self.go_on();
            self.look();
            if std::mem::take(&mut self.has_told) {
                self.bell.ring();
            }
        }
    }

    /// How long to wait at most.
    fn time_left(&self) -> Option<Duration> {
        if self.tunnels.values().any(|one| one.is_due) {
            return Some(Duration::ZERO);
        }
        let left = self.look_at.saturating_duration_since(Instant::now());
        let looks = self.tunnels.values().any(|one| one.is_looked_at);
        looks.then_some(left)
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Begin { host, tunnel: number, socket } => {
                self.tunnels.remove(&host);
                let prepared = prepare(&socket, self.silence / 3);
                let watched = self.inbox.reactor.watch(&socket, token(host, 0), ALL_EVENTS);
                let tunnel = Tunnel::new(socket, self.own < host);
                let looks = SilenceLooks::default();
                let (is_due, is_looked_at) = (true, true);
                let one = Connection { number, tunnel, looks, is_due, is_looked_at };
                self.tunnels.insert(host, one);
                if prepared.is_err() || watched.is_err() {
                    self.broken(host, &TunnelEnd::System);
                }
            }
            Order::End { host, tunnel } => {
                if self.tunnels.get(&host).is_some_and(|one| one.number == tunnel) {
                    self.tunnels.remove(&host);
                }
            }
            Order::Open { name, preamble, socket } => {
                let is_watched = self.watch(name, &socket);
                match self.tunnel(name) {
                    Some(tunnel) if is_watched => tunnel.open(name.2, &preamble, socket),
                    _ => self.tell(TunnelEvent::Refused(name)),
                }
            }
            Order::Answer { name, socket } => {
                let socket = socket.filter(|socket| self.watch(name, socket));
                if let Some(tunnel) = self.tunnel(name) {
                    tunnel.answer(name.2, socket);
                }
            }
        }
    }

    /// The tunnel of a stream, which has something to do.
    fn tunnel(&mut self, (host, tunnel, _): StreamName) -> Option<&mut Tunnel> {
        let one = self.tunnels.get_mut(&host).filter(|one| one.number == tunnel)?;
        one.is_due = true;
        Some(&mut one.tunnel)
    }

    /// Watches the socket of a stream. The system forgets it when it is closed.
    fn watch(&self, (host, _, stream): StreamName, socket: &OwnedFd) -> bool {
        self.inbox.reactor.watch(socket, token(host, stream), ALL_EVENTS).is_ok()
    }

    /// Notes what a descriptor is ready for.
    fn ready(&mut self, token: u64, flags: EventFlags) {
        let (host, stream) = (HostNumber((token >> 32) as u16), token as u32);
        let Some(one) = self.tunnels.get_mut(&host) else { return };
        one.is_due = true;
        one.tunnel.ready(stream, flags);
    }

    /// Goes on with the tunnels that have something to do.
    fn go_on(&mut self) {
        let mut ended = Vec::new();
        for (host, one) in self.tunnels.iter_mut().filter(|(_, one)| one.is_due) {
            let outcome = one.tunnel.go_on(&mut self.buffer);
            one.is_looked_at = true;
            for event in one.tunnel.take_events() {
                self.has_told = true;
                // If the loop is gone, so is the thread soon.
                let _ = self.events.send(event.named(*host, one.number));
            }
            match outcome {
                Ok(has_more) => one.is_due = has_more,
                Err(end) => ended.push((*host, end)),
            }
        }
        ended.into_iter().for_each(|(host, end)| self.broken(host, &end));
    }

    /// Ends the tunnels that carry nothing.
    fn look(&mut self) {
        if Instant::now() < self.look_at {
            return;
        }
        self.look_at = Instant::now() + SILENCE_INTERVAL;
        let now = Duration::from_nanos(landeck_memory::system::now_ns());
        let mut ended = Vec::new();
        for (host, one) in self.tunnels.iter_mut().filter(|(_, one)| one.is_looked_at) {
            one.is_looked_at = has_unacknowledged(one.tunnel.socket());
            if let Some(silence) = one.looks.look(one.tunnel.socket(), now, self.silence) {
                let is_narrow = may_be_of_long_packets(&silence);
                ended.push((*host, TunnelEnd::Silent { is_narrow }));
            }
        }
        ended.into_iter().for_each(|(host, end)| self.broken(host, &end));
    }

    /// A tunnel ends with all of its streams.
    fn broken(&mut self, host: HostNumber, end: &TunnelEnd) {
        if let Some(one) = self.tunnels.remove(&host) {
            let (fault, is_narrow) =
                (end.fault(), matches!(end, TunnelEnd::Silent { is_narrow: true }));
            self.tell(TunnelEvent::Broken { host, tunnel: one.number, fault, is_narrow });
        }
    }

    fn tell(&mut self, event: TunnelEvent) {
        self.has_told = true;
        let _ = self.events.send(event);
    }
}
