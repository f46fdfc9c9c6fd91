//! Several daemons in one process, each with its own thread, over 127.0.0.1 and with jobs that only report.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landeck_launch::machine::MachineName;
use landeck_memory::Segment;
use landeck_trust::{KeyHash, KeyPair};
use landeck_wire::word::{HostEntry, HostPlace, Word, WordContent};
use landeck_wire::{ControlMessage, HostIncarnation, HostNumber, JobId, MachineId, ProcessId};
use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};

use crate::bootstrap::{DaemonOptions, Enrolment, Place};
use crate::context::{Context, JobHandler};
use crate::hub::record::Record;
use crate::hub::{Hub, Port, Station};
use crate::job_message::{JobContent, JobMessage};
use crate::journal::Journal;
use crate::machine_message::MachineMessage;
use crate::reactor::JOB_TOKENS;

mod founders;
mod gateways;
mod lanes;
mod links;
mod machines;
mod runs;
mod strangers;
mod tunnels;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);
const MACHINE: MachineId = MachineId(0x1234);
/// A job that ends when any host is lost, as jobs of people do. All others go on.
const FRAGILE: JobId = JobId(0x78);

/// Something that a daemon's jobs have seen.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Message(HostNumber, String),
    /// A text for the user.
    Said(String),
    Word(Word),
    Up(HostNumber),
    Restarted(HostNumber),
    Down(HostNumber, String),
}

type OnWord = Box<dyn Fn(&Word) + Send>;
type Command = Box<dyn FnOnce(&mut Context<'_>) -> Option<End> + Send>;

/// How a daemon of a test ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    InOrder,
    Killed,
}

/// Jobs that report what they see, and do what a test says.
struct Reporter {
    seen: Sender<Seen>,
    commands: Receiver<Command>,
    bell: Arc<OwnedFd>,
    is_watching: bool,
    end: Option<End>,
    /// The parts of the run before.
    parts: Vec<KeptPart>,
    is_founder: bool,
    /// Called with each word that is applied here.
    on_word: Option<OnWord>,
}

/// The memory that outlives the daemon of a founder.
struct Founding {
    journal: Journal,
    /// The record of the run before.
    record: Option<Vec<u8>>,
}

/// Everything that a daemon of a test begins with.
struct Beginning {
    station: Station,
    parts: Vec<KeptPart>,
    founding: Option<Founding>,
    on_word: Option<OnWord>,
}

impl Beginning {
    /// The hub of the daemon.
    fn hub(station: Station, port: Port, founding: Option<Founding>) -> Hub {
        let Some(Founding { journal, record }) = founding else {
            return Hub::new(port, station).unwrap();
        };
        let machine: MachineName = "lab".parse().unwrap();
        let mut hub = match record {
            None => Hub::new(port, station).unwrap(),
            Some(record) => {
                Hub::from_record(port, station, Record::decode(&record).unwrap()).unwrap()
            }
        };
        hub.keep(journal, Place { machine, ports: None, networks: Vec::new() });
        hub
    }
}

/// A part of a job that outlives its daemon, as its keeper has it: the job, its segment, and the processes elsewhere.
type KeptPart = (JobId, Segment, Vec<ProcessId>);

/// The message with this text.
fn text(text: &str) -> JobContent {
    JobContent::Text(text.to_owned())
}

fn text_of(message: JobMessage) -> String {
    match message.content {
        JobContent::Text(text) => text,
        _ => String::new(),
    }
}

impl JobHandler for Reporter {
    fn message(&mut self, _: &mut Context<'_>, from: HostNumber, message: JobMessage) {
        let _ = self.seen.send(Seen::Message(from, text_of(message)));
    }

    fn said(&mut self, _: &mut Context<'_>, _: HostNumber, text: String) {
        let _ = self.seen.send(Seen::Said(text));
    }

    fn machine(&mut self, _: &mut Context<'_>, _: HostNumber, _: MachineMessage) {}

    fn word(&mut self, _: &mut Context<'_>, word: &Word) {
        if let Some(on_word) = &self.on_word {
            on_word(word);
        }
        let _ = self.seen.send(Seen::Word(word.clone()));
    }

    fn ready(&mut self, context: &mut Context<'_>, _: u64, _: EventFlags) {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8][..]);
        while let Ok(command) = self.commands.try_recv() {
            self.end = self.end.or(command(context));
        }
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.is_watching, true) {
            context.watch(self.bell.as_fd(), JOB_TOKENS, EventFlags::IN).unwrap();
        }
    }

    fn host_up(&mut self, _: &mut Context<'_>, host: HostNumber) {
        let _ = self.seen.send(Seen::Up(host));
    }

    fn host_restarted(&mut self, _: &mut Context<'_>, host: HostNumber) {
        let _ = self.seen.send(Seen::Restarted(host));
    }

    fn welcomed(&mut self, context: &mut Context<'_>) {
        for (job, segment, far) in self.parts.drain(..) {
            context.add_part(job, segment, far).unwrap();
        }
    }

    fn host_down(&mut self, _: &mut Context<'_>, host: HostNumber, why: String) {
        let _ = self.seen.send(Seen::Down(host, why));
    }

    fn host_lost(&mut self, context: &mut Context<'_>, host: HostNumber, _: u64) {
        let cause = format!("h{} is lost", host.0);
        context.tell(WordContent::JobEnds { job: FRAGILE, code: 137, cause });
    }

    fn founder(&self) -> Option<Vec<u8>> {
        self.is_founder.then(Vec::new)
    }

    fn is_over(&self) -> Option<u8> {
        self.end.map(|_| 0)
    }
}

/// A daemon in a thread of its own.
struct Daemon {
    entry: HostEntry,
    options: DaemonOptions,
    seen: Receiver<Seen>,
    kept: VecDeque<Seen>,
    commands: Sender<Command>,
    bell: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// The arbiter, as it was told, and what its next run needs.
    arbiter: HostEntry,
    run: u32,
    kept_port: Option<KeptPort>,
}

/// The keys of a daemon and its sockets, which its keeper has too.
struct KeptPort {
    pair: KeyPair,
    sockets: [OwnedFd; 2],
}

/// A daemon that has announced itself and waits for its place.
struct Announced {
    key: KeyHash,
    address: SocketAddr,
    place: Sender<Beginning>,
    daemon: Box<dyn FnOnce(HostEntry, HostEntry, DaemonOptions) -> Daemon>,
}

fn options() -> DaemonOptions {
    // A busy machine may keep a daemon from its turn for a second or two.
    DaemonOptions { host_timeout_ms: 4_000, is_plain: false }
}

/// Starts a daemon that waits for its place.
fn announce(streams: Option<(OwnedFd, OwnedFd)>) -> Announced {
    announce_with(None, streams)
}

/// Starts a daemon that waits for its place, perhaps with the port of the run before.
fn announce_with(kept: Option<KeptPort>, streams: Option<(OwnedFd, OwnedFd)>) -> Announced {
    let (seen_in, seen) = channel();
    let (commands, commands_out) = channel();
    let (place, places) = channel::<Beginning>();
    let (announced, announcement) = channel();
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let bell = Arc::new(eventfd(0, flags).unwrap());
    let bell_of_thread = Arc::clone(&bell);
    let thread = std::thread::spawn(move || {
        let mut port = match kept {
            None => Port::open(None, &[]).unwrap(),
            Some(KeptPort { pair, sockets }) => {
                Port::inherited(pair, sockets.into(), (None, &[])).unwrap()
            }
        };
        port.addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        announced
            .send((
                port.pair.hash(),
                KeptPort { pair: port.pair.clone(), sockets: port.sockets().unwrap().unwrap() },
                port.entry(HostNumber(0), HostIncarnation(0), String::new()).addresses[0],
            ))
            .unwrap();
        let Ok(Beginning { station, parts, founding, on_word }) = places.recv() else { return };
        let is_founder = founding.is_some();
        let mut hub = Beginning::hub(station, port, founding);
        if let Some((input, output)) = streams {
            hub.keep_streams(input, output, false).unwrap();
        }
        let mut jobs = Reporter {
            seen: seen_in,
            commands: commands_out,
            bell: bell_of_thread,
            is_watching: false,
            end: None,
            parts,
            is_founder,
            on_word,
        };
        crate::run::turn(&mut hub, &mut jobs);
        if jobs.end != Some(End::Killed) {
            hub.close();
        }
    });
    let (key, kept_port, address) = announcement.recv().unwrap();
    let kept_port = Some(kept_port);
    let daemon = move |entry, arbiter, options| {
        let (kept, thread, run) = (VecDeque::new(), Some(thread), 0);
        Daemon { entry, options, seen, kept, commands, bell, thread, arbiter, run, kept_port }
    };
    Announced { key, address, place, daemon: Box::new(daemon) }
}

impl Announced {
    fn entry(&self, host: u16, addresses: Vec<SocketAddr>) -> HostEntry {
        let incarnation = HostIncarnation(u64::from(host) + 1_000);
        let name = format!("h{host}");
        HostEntry {
            host: HostNumber(host),
            incarnation,
            name,
            key: self.key.0,
            addresses,
            cores: 1,
            place: HostPlace::default(),
        }
    }

    /// Takes the place that the arbiter has given.
    fn enrol(self, enrolment: Enrolment) -> Daemon {
        let station = Station::first(enrolment);
        let (own, arbiter) = (station.own.clone(), station.arbiter.clone());
        let options = station.options;
        let (parts, founding, on_word) = (Vec::new(), None, None);
        self.place.send(Beginning { station, parts, founding, on_word }).unwrap();
        (self.daemon)(own, arbiter, options)
    }

    fn take_place(self, own: HostEntry, arbiter: HostEntry) -> Daemon {
        self.take_place_in(options(), own, arbiter)
    }

    fn take_place_in(self, options: DaemonOptions, own: HostEntry, arbiter: HostEntry) -> Daemon {
        self.begin(options, own, arbiter, (None, None))
    }

    fn begin(
        self,
        options: DaemonOptions,
        own: HostEntry,
        arbiter: HostEntry,
        (founding, on_word): (Option<Founding>, Option<OnWord>),
    ) -> Daemon {
        let station = Station {
            machine: MACHINE,
            options,
            own: own.clone(),
            arbiter: arbiter.clone(),
            gateways: Vec::new(),
            run: 0,
            leased_from: None,
        };
        self.place.send(Beginning { station, parts: Vec::new(), founding, on_word }).unwrap();
        (self.daemon)(own, arbiter, options)
    }

    /// Takes the place of the run before of a daemon, which has these parts.
    fn take_over(self, before: Killed, parts: Vec<KeptPart>, founding: Option<Founding>) -> Daemon {
        let Killed { entry, options, arbiter, run, leased_from } = before;
        let station = Station {
            machine: MACHINE,
            options,
            own: entry.clone(),
            arbiter: arbiter.clone(),
            gateways: Vec::new(),
            run: run + 1,
            leased_from,
        };
        self.place.send(Beginning { station, parts, founding, on_word: None }).unwrap();
        let mut daemon = (self.daemon)(entry, arbiter, options);
        daemon.run = run + 1;
        daemon
    }
}

/// A daemon that was killed, as its keeper knows it.
struct Killed {
    entry: HostEntry,
    options: DaemonOptions,
    arbiter: HostEntry,
    run: u32,
    leased_from: Option<Duration>,
}

/// The arbiter of a machine without other hosts.
fn arbiter() -> Daemon {
    arbiter_with(options())
}

fn arbiter_with(options: DaemonOptions) -> Daemon {
    let announced = announce(None);
    let entry = announced.entry(0, vec![announced.address]);
    announced.take_place_in(options, entry.clone(), entry)
}

/// The way between a host and its arbiter.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// The address at which the host finds the arbiter, if it is another one.
    to_arbiter: Option<SocketAddr>,
    /// The arbiter does not find the host.
    is_hidden: bool,
}

/// A host that the arbiter admits.
fn host(arbiter: &mut Daemon, way: Way) -> Daemon {
    let announced = announce(None);
    let addresses = if way.is_hidden { Vec::new() } else { vec![announced.address] };
    let entry = admit(arbiter, &announced, announced.key, addresses);
    let mut of_arbiter = arbiter.entry.clone();
    of_arbiter.addresses = way.to_arbiter.map_or(of_arbiter.addresses, |address| vec![address]);
    announced.take_place_in(arbiter.options, entry, of_arbiter)
}

fn admit(
    arbiter: &mut Daemon,
    announced: &Announced,
    key: KeyHash,
    addresses: Vec<SocketAddr>,
) -> HostEntry {
    let count = arbiter.ask(|context| context.hosts().count()) as u16;
    let entry = announced.entry(count, addresses);
    let wanted = entry.clone();
    let number = arbiter.ask(move |context| {
        context.admit(wanted.name, key, wanted.incarnation, wanted.addresses, 1)
    });
    assert_eq!(number, entry.host);
    entry
}

impl Daemon {
    /// Does something in the daemon's thread, and returns the answer.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Context<'_>) -> T + Send + 'static,
    ) -> T {
        let (answer, answers) = channel();
        self.command(Box::new(move |context| {
            let _ = answer.send(question(context));
            None
        }));
        answers.recv_timeout(PATIENCE).expect("the daemon answers")
    }

    fn command(&self, command: Command) {
        let _ = self.commands.send(command);
        rustix::io::write(&*self.bell, &1_u64.to_ne_bytes()).unwrap();
    }

    fn end(&mut self, end: End) {
        self.kept_port = None;
        self.command(Box::new(move |_| Some(end)));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Kills the daemon in the middle of a turn of its loop. Its port stays open, as its keeper has it too.
    fn kill_within_a_turn(mut self) -> (Killed, KeptPort) {
        let kept = self.kept_port.take().unwrap();
        self.command(Box::new(|_| std::panic::resume_unwind(Box::new("killed"))));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_err();
        }
        let (entry, arbiter, options) = (self.entry.clone(), self.arbiter.clone(), self.options);
        (Killed { entry, options, arbiter, run: self.run, leased_from: None }, kept)
    }

    /// Kills the daemon. Its port stays open, as its keeper has it too.
    fn kill(mut self) -> (Killed, KeptPort) {
        let leased_from = self.ask(|context| context.leased_from());
        let kept = self.kept_port.take().unwrap();
        self.end(End::Killed);
        let (entry, arbiter) = (self.entry.clone(), self.arbiter.clone());
        (Killed { entry, options: self.options, arbiter, run: self.run, leased_from }, kept)
    }

    fn send(&self, to: &Daemon, what: &str) {
        let (to, message) = (to.entry.host, text(what));
        self.ask(move |context| context.send(to, FRAGILE, message));
    }

    /// Waits for something, and returns it. What else is seen stays.
    fn wait_for<T>(&mut self, mut wanted: impl FnMut(&Seen) -> Option<T>) -> T {
        let give_up = Instant::now() + PATIENCE;
        let mut at = 0;
        loop {
            if at == self.kept.len() {
                let left = give_up.saturating_duration_since(Instant::now());
                match self.seen.recv_timeout(left) {
                    Ok(seen) => self.kept.push_back(seen),
                    Err(error) => panic!("{}: {error}; seen: {:?}", self.entry.name, self.kept),
                }
            }
            if let Some(found) = wanted(&self.kept[at]) {
                self.kept.remove(at);
                return found;
            }
            at += 1;
        }
    }

    fn wait_up(&mut self, host: u16) {
        self.wait_for(|seen| (*seen == Seen::Up(HostNumber(host))).then_some(()));
    }

    fn wait_restarted(&mut self, host: u16) {
        self.wait_for(|seen| (*seen == Seen::Restarted(HostNumber(host))).then_some(()));
    }

    fn wait_down(&mut self, host: u16) -> String {
        self.wait_for(|seen| match seen {
            Seen::Down(of, why) if of.0 == host => Some(why.clone()),
            _ => None,
        })
    }

    fn wait_text(&mut self) -> (u16, String) {
        self.wait_for(|seen| match seen {
            Seen::Message(from, text) => Some((from.0, text.clone())),
            _ => None,
        })
    }

    fn wait_word(&mut self, wanted: impl Fn(&WordContent) -> bool) -> Word {
        self.wait_for(|seen| match seen {
            Seen::Word(word) if wanted(&word.content) => Some(word.clone()),
            _ => None,
        })
    }

    /// Everything that was seen and not yet waited for.
    fn seen_so_far(&mut self) -> &VecDeque<Seen> {
        self.kept.extend(self.seen.try_iter());
        &self.kept
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.commands.send(Box::new(|_| Some(End::Killed)));
            let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        }
    }
}

/// A relay of connections that can be cut.
struct Relay {
    address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&streams);
        std::thread::spawn(move || {
            for incoming in listener.incoming() {
                let Ok(incoming) = incoming else { continue };
                let Ok(outgoing) = TcpStream::connect(target) else { continue };
                let mut all = kept.lock().unwrap();
                for (from, to) in [(&incoming, &outgoing), (&outgoing, &incoming)] {
                    all.push(from.try_clone().unwrap());
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || copy(from, to));
                }
            }
        });
        Self { address, streams }
    }

    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// The content that ends a job that nobody has.
fn end_of_job(job: u64) -> WordContent {
    WordContent::JobEnds { job: JobId(job), code: 3, cause: "a test".into() }
}
