//! A thread that passes bytes on between two connections, in both directions, until both have ended.
//!
//! It keeps at most [`PIECE_BYTES`] of each direction, and reads no more while the other end takes nothing: so the sender
//! waits as if the connection were one. What a connection carries stays sealed.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use landeck_transports::lanes::silence::SilenceLooks;
use landeck_wire::preamble::CHALLENGE_BYTES;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_socket_linger, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_nodelay,
};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::orders::{Inbox, Orders, orders};
use crate::reactor::Reactor;

/// The bytes that are read at once.
const PIECE_BYTES: usize = 256 << 10;
/// How often one direction is read before others have their turn.
const ROUNDS_MAX: usize = 8;
/// The time between two looks at connections that may carry nothing.
const SILENCE_INTERVAL: Duration = Duration::from_millis(200);
/// The kernel asks the other end this often whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(1);

/// An order for the thread.
#[derive(Debug)]
enum Order {
    Splice(Pair),
    /// Say when nothing is passed on any more.
    TellEnd(Sender<()>),
}

/// Two connections of which one is passed on to the other.
#[derive(Debug)]
struct Pair {
    ends: [OwnedFd; 2],
    /// The first bytes for the first end.
    first: [u8; CHALLENGE_BYTES],
    /// How long they are passed on at most.
    time: Option<Duration>,
}

/// The numbers of what the thread passes on.
#[derive(Debug, Default)]
struct Counts {
    all: AtomicUsize,
    strangers: AtomicUsize,
}

/// The thread, as the daemon's loop has it. It starts when it is needed.
#[derive(Debug)]
pub(super) struct Splices {
    silence: Duration,
    orders: Option<Orders<Order>>,
    counts: Arc<Counts>,
}

impl Splices {
    /// Nothing is passed on yet. A connection is broken when an end has taken nothing for so long.
    pub(super) fn new(silence: Duration) -> Self {
        Self { silence, orders: None, counts: Arc::default() }
    }

    /// The connections that are passed on.
    pub(super) fn count(&self) -> usize {
        self.counts.all.load(Ordering::Relaxed)
    }

    /// Those of them that end by time.
    pub(super) fn strangers(&self) -> usize {
        self.counts.strangers.load(Ordering::Relaxed)
    }

    /// Passes bytes on between two connections, and first of all these to the first one. Both are closed if the thread
    /// cannot be started.
    pub(super) fn splice(
        &mut self,
        ends: [OwnedFd; 2],
        first: [u8; CHALLENGE_BYTES],
        time: Option<Duration>,
    ) {
        if self.orders.is_none() {
            self.orders = self.start().ok();
        }
        let Some(orders) = &self.orders else { return };
        self.counts.all.fetch_add(1, Ordering::Relaxed);
        self.counts.strangers.fetch_add(usize::from(time.is_some()), Ordering::Relaxed);
        orders.give(Order::Splice(Pair { ends, first, time }));
    }

    /// Waits until nothing is passed on any more, but no longer than this time.
    pub(super) fn finish(&self, time: Duration) {
        let Some(orders) = &self.orders else { return };
        let (ended, end) = channel();
        orders.give(Order::TellEnd(ended));
        // It has ended, or its time is over.
        let _ = end.recv_timeout(time);
    }

    fn start(&self) -> io::Result<Orders<Order>> {
        let (orders, inbox) = orders()?;
        let worker = Worker {
            inbox,
            counts: self.counts.clone(),
            silence: self.silence,
            splices: HashMap::new(),
            last: 0,
            awaits_end: None,
            look_at: Instant::now(),
            buffer: vec![0; PIECE_BYTES],
        };
        std::thread::Builder::new().name("landeckd-gate".to_owned()).spawn(|| worker.run())?;
        Ok(orders)
    }
}

/// The thread.
struct Worker {
    inbox: Inbox<Order>,
    counts: Arc<Counts>,
    silence: Duration,
    /// The splices. Tokens are twice their number, and one more for the second end.
    splices: HashMap<u64, Splice>,
    last: u64,
    /// The loop waits until nothing is passed on any more.
    awaits_end: Option<Sender<()>>,
    look_at: Instant,
    buffer: Vec<u8>,
}

/// Two connections, and what is on its way to each.
struct Splice {
    ends: [OwnedFd; 2],
    /// By the end that the bytes go to.
    to: [Flow; 2],
    watched: [EventFlags; 2],
    looks: [SilenceLooks; 2],
    /// Something was sent since the last look.
    is_looked_at: bool,
    until: Option<Instant>,
}

/// The bytes on their way to one end.
#[derive(Default)]
struct Flow {
    held: Vec<u8>,
    sent: usize,
    /// The other end sends nothing any more.
    is_ended: bool,
    /// This end was told so.
    is_shut: bool,
}

impl Flow {
    /// Whether the end has something to get: bytes, or the word that no more come.
    fn has_more(&self) -> bool {
        !self.held.is_empty() || self.is_ended && !self.is_shut
    }
}

/// The outcome of a step with a connection.
enum Step {
    /// It may go on.
    Going,
    /// It waits for an end.
    Waiting,
}

impl Worker {
    /// Passes on until the daemon's loop is gone.
    fn run(mut self) {
        let mut ready = Vec::new();
        while let Some(orders) = self.inbox.wait(self.time_left(), &mut ready) {
            ready.drain(..).for_each(|(token, flags)| self.serve(token, flags));
            orders.into_iter().for_each(|order| self.obey(order));
            self.look();
            if self.splices.is_empty()
                && let Some(ended) = self.awaits_end.take()
            {
                // The loop may wait no longer.
                let _ = ended.send(());
            }
        }
    }

    /// How long to wait at most.
    fn time_left(&self) -> Option<Duration> {
        let now = Instant::now();
        let ends = self.splices.values().filter_map(|splice| splice.until);
        let looks = self.splices.values().any(|splice| splice.is_looked_at);
        let next = ends.chain(looks.then_some(self.look_at)).min()?;
        Some(next.saturating_duration_since(now))
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Splice(pair) => self.add(pair),
            Order::TellEnd(ended) => self.awaits_end = Some(ended),
        }
    }

    fn add(&mut self, Pair { ends, first, time }: Pair) {
        self.last += 1;
        let number = self.last;
        let until = time.map(|time| Instant::now() + time);
        let to = [Flow { held: first.to_vec(), ..Flow::default() }, Flow::default()];
        let watched = [EventFlags::IN | EventFlags::OUT, EventFlags::IN];
        for (end, flags) in watched.iter().enumerate() {
            tune(&ends[end]);
            // What cannot be watched ends with the splice, at the first look.
            let _ = self.inbox.reactor.watch(&ends[end], 2 * number + end as u64, *flags);
        }
        let looks = [SilenceLooks::default(); 2];
        let splice = Splice { ends, to, watched, looks, is_looked_at: true, until };
        self.splices.insert(number, splice);
    }

    /// Goes on with a connection that is ready.
    fn serve(&mut self, token: u64, flags: EventFlags) {
        let (number, end) = (token / 2, (token % 2) as usize);
        let Some(splice) = self.splices.get_mut(&number) else { return };
        let mut outcome = Ok(());
        if flags.intersects(EventFlags::OUT | EventFlags::ERR) {
            outcome = splice.pass(end, &mut self.buffer);
        }
        if outcome.is_ok() && flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            outcome = splice.pass(1 - end, &mut self.buffer);
        }
        match outcome {
            Ok(()) if !splice.is_over() => splice.watch(&self.inbox.reactor, number),
            Ok(()) => self.remove(number),
            Err(_) => self.break_off(number),
        }
    }

    /// Ends splices that are silent, or whose time is over.
    fn look(&mut self) {
        let now = Instant::now();
        let is_late = |splice: &Splice| splice.until.is_some_and(|until| now >= until);
        let mut over: Vec<u64> = self.numbers(is_late);
        if now >= self.look_at {
            self.look_at = now + SILENCE_INTERVAL;
            let (now, limit) =
                (Duration::from_nanos(landeck_memory::system::now_ns()), self.silence);
            for (number, splice) in self.splices.iter_mut().filter(|(_, it)| it.is_looked_at) {
                if splice.is_silent(now, limit) {
                    over.push(*number);
                }
            }
        }
        over.into_iter().for_each(|number| self.break_off(number));
    }

    fn numbers(&self, is_meant: impl Fn(&Splice) -> bool) -> Vec<u64> {
        let meant = self.splices.iter().filter(|(_, splice)| is_meant(splice));
        meant.map(|(number, _)| *number).collect()
    }

    /// Ends a splice as if its connection had broken: an end in good order would say that all was said.
    fn break_off(&mut self, number: u64) {
        if let Some(splice) = self.splices.get(&number) {
            for end in &splice.ends {
                let _ = set_socket_linger(end, Some(Duration::ZERO));
            }
        }
        self.remove(number);
    }

    fn remove(&mut self, number: u64) {
        if let Some(gone) = self.splices.remove(&number) {
            self.counts.all.fetch_sub(1, Ordering::Relaxed);
            let is_stranger = usize::from(gone.until.is_some());
            self.counts.strangers.fetch_sub(is_stranger, Ordering::Relaxed);
        }
    }
}

impl Splice {
    /// Passes on what one end has sent to the other, which is `to`, as long as both go on.
    ///
    /// # Errors
    /// One of them is broken.
    fn pass(&mut self, to: usize, buffer: &mut [u8]) -> Result<(), Errno> {
        for _ in 0..ROUNDS_MAX {
            if let Step::Waiting = self.send_held(to)? {
                return Ok(());
            }
            if let Step::Waiting = self.read(to, buffer)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends what is held for an end.
    fn send_held(&mut self, to: usize) -> Result<Step, Errno> {
        let flow = &mut self.to[to];
        while flow.sent < flow.held.len() {
            match send_now(&self.ends[to], &flow.held[flow.sent..])? {
                0 => return Ok(Step::Waiting),
                count => flow.sent += count,
            }
            self.is_looked_at = true;
        }
        flow.held.clear();
        flow.sent = 0;
        if flow.is_ended && !flow.is_shut {
            flow.is_shut = true;
            shutdown(&self.ends[to], Shutdown::Write)?;
        }
        Ok(if flow.is_ended { Step::Waiting } else { Step::Going })
    }

    /// Reads what the other end has sent, and sends as much of it as `to` takes. The rest is held.
    fn read(&mut self, to: usize, buffer: &mut [u8]) -> Result<Step, Errno> {
        let flow = &mut self.to[to];
        let count = match recv(&self.ends[1 - to], &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                flow.is_ended = true;
                return Ok(Step::Going);
            }
            Ok((count, _)) => count,
            Err(Errno::AGAIN) => return Ok(Step::Waiting),
            Err(Errno::INTR) => return Ok(Step::Going),
            Err(error) => return Err(error),
        };
        let sent = send_now(&self.ends[to], &buffer[..count])?;
        self.is_looked_at = true;
        flow.held.extend_from_slice(&buffer[sent..count]);
        Ok(Step::Going)
    }

    /// Watches each end for what it is waited for.
    fn watch(&mut self, reactor: &Reactor, number: u64) {
        for end in 0..2 {
            let (to, from) = (&self.to[end], &self.to[1 - end]);
            let mut flags = EventFlags::empty();
            flags.set(EventFlags::OUT, to.has_more());
            flags.set(EventFlags::IN, from.held.is_empty() && !from.is_ended);
            let before = std::mem::replace(&mut self.watched[end], flags);
            let (socket, token) = (&self.ends[end], 2 * number + end as u64);
            // An end that is not waited for would tell again and again that it has broken.
            let _ = match (before.is_empty(), flags.is_empty()) {
                _ if before == flags => Ok(()),
                (true, _) => reactor.watch(socket, token, flags),
                (false, true) => reactor.unwatch(socket),
                (false, false) => reactor.rewatch(socket, token, flags),
            };
        }
    }

    /// Whether both ends have said everything.
    fn is_over(&self) -> bool {
        self.to.iter().all(|flow| flow.is_shut)
    }

    /// Whether one of the ends takes nothing of what it was sent.
    fn is_silent(&mut self, now: Duration, limit: Duration) -> bool {
        let both = self.ends.iter().zip(&mut self.looks);
        both.fold(false, |is_one, (end, looks)| is_one | looks.look(end, now, limit).is_some())
    }
}

/// Sends as much as the kernel takes now.
fn send_now(to: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    match send(to, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Sends each piece at once, and notices an end that is gone while nothing is sent.
fn tune(end: &OwnedFd) {
    let _ = set_tcp_nodelay(end, true);
    let _ = set_socket_keepalive(end, true);
    let _ = set_tcp_keepidle(end, KEEPALIVE);
    let _ = set_tcp_keepintvl(end, KEEPALIVE);
    let _ = set_tcp_keepcnt(end, 10);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

    use landeck_testing::Watchdog;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const FIRST: [u8; CHALLENGE_BYTES] = [9; CHALLENGE_BYTES];

    /// The far ends of two connections that a thread passes on: the first one gets the first bytes.
    fn spliced(splices: &mut Splices, time: Option<Duration>) -> [TcpStream; 2] {
        let pair = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            far.set_read_timeout(Some(PATIENCE)).unwrap();
            (far, OwnedFd::from(listener.accept().unwrap().0))
        };
        let [(one, near), (other, next)] = [pair(), pair()];
        splices.splice([near, next], FIRST, time);
        [one, other]
    }

    fn pattern(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn bytes_pass_in_both_directions_and_so_do_both_ends() {
        let _watchdog = Watchdog::start(Duration::from_secs(170));
        let mut splices = Splices::new(PATIENCE);
        let [mut one, other] = spliced(&mut splices, None);
        let mut first = FIRST.map(|_| 0);
        one.read_exact(&mut first).unwrap();
        assert_eq!((first, splices.count()), (FIRST, 1));
        // More than all buffers on the way hold, in both directions at once.
        const BYTES: usize = 16 << 20;
        let both = [one, other].map(|mut stream| {
            std::thread::spawn(move || {
                let mut writes = stream.try_clone().unwrap();
                let writer = std::thread::spawn(move || {
                    writes.write_all(&pattern(BYTES)).unwrap();
                    writes.shutdown(Shutdown::Write).unwrap();
                });
                let mut came = Vec::new();
                stream.read_to_end(&mut came).unwrap();
                writer.join().unwrap();
                came == pattern(BYTES)
            })
        });
        assert!(both.map(|thread| thread.join().unwrap()).iter().all(|is_whole| *is_whole));
        splices.finish(PATIENCE);
        assert_eq!(splices.count(), 0);
    }

    #[test]
    fn an_end_passes_in_whatever_round_it_is_read() {
        let _watchdog = Watchdog::start(Duration::from_secs(170));
        for pieces in 0..3 * ROUNDS_MAX {
            let mut splices = Splices::new(PATIENCE);
            let [mut one, mut other] = spliced(&mut splices, None);
            one.read_exact(&mut [0; CHALLENGE_BYTES]).unwrap();
            // Each is a piece that the thread reads, and more come while it reads.
            let writer = std::thread::spawn(move || {
                (0..pieces).for_each(|_| other.write_all(&[7; PIECE_BYTES]).unwrap());
                other.shutdown(Shutdown::Write).unwrap();
                other
            });
            let mut came = Vec::new();
            one.read_to_end(&mut came).unwrap();
            assert_eq!(came.len(), pieces * PIECE_BYTES);
            drop(writer.join().unwrap());
        }
    }

    #[test]
    fn a_broken_end_breaks_the_other_one() {
        let _watchdog = Watchdog::start(Duration::from_secs(170));
        let mut splices = Splices::new(PATIENCE);
        let [mut one, other] = spliced(&mut splices, None);
        one.read_exact(&mut [0; CHALLENGE_BYTES]).unwrap();
        set_socket_linger(&other, Some(Duration::ZERO)).unwrap();
        drop(other);
        let ended = one.read(&mut [0; 1]).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::ConnectionReset, "no end in good order");
    }

    #[test]
    fn a_stranger_is_passed_on_for_its_time() {
        let _watchdog = Watchdog::start(Duration::from_secs(170));
        let mut splices = Splices::new(PATIENCE);
        let [_one, _other] = spliced(&mut splices, Some(PATIENCE));
        let [mut late, _other] = spliced(&mut splices, Some(Duration::from_millis(1)));
        assert!(late.read_to_end(&mut Vec::new()).is_err(), "it is broken off");
        splices.finish(Duration::ZERO);
        assert_eq!((splices.count(), splices.strangers()), (1, 1));
    }

    #[test]
    fn an_end_that_takes_nothing_holds_up_its_own_sender_alone() {
        let _watchdog = Watchdog::start(Duration::from_secs(170));
        let mut splices = Splices::new(PATIENCE);
        let [one, _deaf] = spliced(&mut splices, None);
        one.set_nonblocking(true).unwrap();
        let (piece, mut taken) = (pattern(1 << 20), 0usize);
        let give_up = Instant::now() + PATIENCE;
        let mut full_since = Instant::now();
        // Until nothing was taken for a while.
        while full_since.elapsed() < Duration::from_millis(300) {
            assert!(taken < 64 << 20 && Instant::now() < give_up, "{taken} bytes are held");
            if let Ok(count @ 1..) = (&one).write(&piece) {
                (taken, full_since) = (taken + count, Instant::now());
            }
        }
        let [mut first, mut second] = spliced(&mut splices, None);
        first.read_exact(&mut [0; CHALLENGE_BYTES]).unwrap();
        second.write_all(b"hello").unwrap();
        first.read_exact(&mut [0; 5]).unwrap();
    }
}
