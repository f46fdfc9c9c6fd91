//! Ports: connections by name between two jobs of one user on one host, or on two hosts of a machine.
//!
//! ```text
//! job A, process a                             job B, process b
//! publish "name" (agent of A listens) ->
//!                                    <- b joins A as guest g, attaches A's segment
//!                                    <- hello in A's context: "I am slot b of job B"
//! a joins B as guest h, attaches B's segment
//! welcome, over B's segment: "you are g" ->
//! ```
//!
//! From then on each process has two segments: it receives in its own, and sends in the other's,
//! where it is a guest. Each agent reports the end of the other process, since it watches the
//! guest.
//!
//! In a machine the name is also one of the machine. A process on another host joins job A there, on its own host, and is
//! then a guest of A like others: both talk as processes of A.

use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_channel::Peer;
use landeck_joining::attach::AttachError;
use landeck_joining::job_names;
use landeck_joining::objects::ObjectError;
use landeck_joining::socket::{self, AGENT_TIME, JoinError, Joined};
use landeck_kernel::{Area, Wanted};
use landeck_memory::plain::{bytes_of, bytes_of_mut};
use landeck_memory::{Buffer, Plain, Presence, Segment};
use landeck_protocols::door::{Name, ObjectKind};
use landeck_transports::shared_memory::first_provisional;
use landeck_wire::{JobId, SegmentId, Tag};

use crate::error::{self, Error, ErrorKind, Members, Result};
use crate::job::{Job, Options};
use crate::unstable::JobInternals;
use crate::world::{Status, TagFilter, World};
use landeck_engine::context::plain_context;
use landeck_engine::deadline_ns;
use landeck_engine::peers::peer_of;

/// The time that the other process has to answer in [`Port::accept`].
const HANDSHAKE_TIME: Duration = Duration::from_secs(60);
/// The tag of the handshake; programs cannot use it in this context before the handshake is
/// complete.
const HANDSHAKE: u32 = u32::MAX;

/// A published name under which other jobs of this user on this host find this process, or in the whole machine.
pub struct Port<'a> {
    job: &'a Job,
    name: String,
    context: u32,
    /// The number of the name in the machine, if this process is in one.
    number: Option<u64>,
}

/// A process of another job.
pub struct Remote {
    world: World,
    _place: Place,
}

/// The place in which two processes of different jobs meet.
enum Place {
    /// The segments of both, on one host.
    Segments { _visit: Visit },
    /// The job of the port, where the other process is a guest.
    Job,
    /// The job of the port, where this process is a guest.
    Guest { _job: Box<Job> },
}

/// The stay of this process in the segment of the other one.
struct Visit {
    segment: Segment,
    own_slot: u32,
    _connection: OwnedFd,
}

/// The handshake message of either process: its job, its slot in it, and the context.
#[derive(Clone, Copy)]
struct Greeting {
    host: u64,
    slot: u64,
    context: u64,
}

impl Greeting {
    fn words(self) -> [u64; 3] {
        [self.host, self.slot, self.context]
    }
}

impl Job {
    /// Creates a port: publishes a name under which other jobs connect, on this host, and in a machine on all its hosts. The
    /// port exists until it is dropped or the process ends.
    ///
    /// # Errors
    /// [`ErrorKind::Publish`]: among others, the name is in use on this host. [`ErrorKind::Object`]: it is in use on another host
    /// of the machine, or the daemon does not answer.
    pub fn create_port(&self, name: &str) -> Result<Port<'_>> {
        error::call(&self.shared, "create_port", || {
            let context = random_context();
            socket::publish(self.process(), name, context, AGENT_TIME)?;
            let mut port = Port { job: self, name: name.to_owned(), context, number: None };
            let segment = &self.shared.segment;
            if segment.plan().has_host_tables() {
                let name = Name::new(name).map_err(ObjectError::from)?;
                let words = [u64::from(context), segment.plan().job];
                let (process, kind) = (self.process(), ObjectKind::Port);
                let named = job_names::publish(segment, process, kind, &name, words)?;
                port.number = Some(named.number);
            }
            Ok(port)
        })
    }

    /// Connects to the process that published a name: on this host, else on another one of the machine. There this process is a
    /// guest of the other's job until the connection is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`]: among others, no process has published it. [`ErrorKind::Object`]: the daemon does not answer.
    /// [`ErrorKind::Attach`]: the other's job takes no guest here. [`ErrorKind::TimedOut`]: the other does not accept within a
    /// minute. [`ErrorKind::PeerFailed`], or [`ErrorKind::Ended`] with its job: it has died. [`ErrorKind::Handshake`].
    pub fn connect(&self, name: &str) -> Result<Remote> {
        error::call(&self.shared, "connect", || {
            let (published, joined) = match socket::connect_name(name, AGENT_TIME) {
                Err(nowhere @ JoinError::NoSuchName { .. })
                    if self.shared.segment.plan().has_host_tables() =>
                {
                    return self.connect_far(name, nowhere);
                }
                found => found?,
            };
            let visit = enter(joined)?;
            let (segment, own_slot) = (&visit.segment, visit.own_slot);
            let target = published.process.slot.0;
            // The other has no slot in our segment yet.
            let provisional = Peer(first_provisional(&self.shared.segment));
            let context = published.context;
            self.reach(provisional, segment, own_slot, target, name)?;
            self.say(provisional, context, self.greeting(context))?;
            let (answer, peer) = self.hear(context, None, HANDSHAKE_TIME)?;
            if answer.slot != u64::from(own_slot) || answer.host != segment.plan().host {
                return Err(ErrorKind::Handshake {
                    name: name.to_owned(),
                    what: "it answered somebody else",
                }
                .into());
            }
            let mut engine = self.shared.engine.enter()?;
            let renamed = engine.endpoint.near_mut().rename(provisional, peer);
            renamed.map_err(|_| ErrorKind::Handshake {
                name: name.to_owned(),
                what: "it has no slot in our segment",
            })?;
            engine.endpoint.set_heap_segment(peer, segment);
            drop(engine);
            self.remote(peer, context, Place::Segments { _visit: visit })
        })
    }

    /// Connects to the process on another host of the machine that published a name. If there is none, the error is `nowhere`.
    fn connect_far(&self, name: &str, nowhere: JoinError) -> Result<Remote> {
        let known = Name::new(name).map_err(ObjectError::from)?;
        let (segment, kind) = (&self.shared.segment, ObjectKind::Port);
        let found = match job_names::find(segment, self.process(), kind, &known) {
            Err(ObjectError::Unknown { .. }) => return Err(nowhere.into()),
            found => found?,
        };
        let [context, job] = found.words;
        let guest = Self::join_running(&JobId(job).to_string(), Options::default())?;
        let known = || peer_of(&guest.shared.segment, found.owner);
        let peer = job_names::wait_for(AGENT_TIME, known);
        let peer = peer.ok_or_else(|| ErrorKind::Handshake {
            name: name.to_owned(),
            what: "it is not in its job",
        })?;
        let context = context as u32;
        guest.say(peer, context, guest.greeting(context))?;
        guest.hear(context, Some(peer), HANDSHAKE_TIME)?;
        let world = guest.world_of(context, &[guest.own_peer(), peer])?;
        Ok(Remote { world, _place: Place::Guest { _job: Box::new(guest) } })
    }

    fn greeting(&self, context: u32) -> Greeting {
        let (host, slot) = (self.shared.segment.plan().host, u64::from(self.shared.slot));
        Greeting { host, slot, context: u64::from(context) }
    }

    fn reach(
        &self,
        peer: Peer,
        segment: &Segment,
        own_slot: u32,
        target: u32,
        name: &str,
    ) -> Result<()> {
        let mut engine = self.shared.engine.enter()?;
        engine.endpoint.near_mut().add_foreign(peer, segment, own_slot, target).map_err(|_| {
            ErrorKind::Handshake { name: name.to_owned(), what: "its segment has no such slot" }
                .into()
        })
    }

    fn say(&self, to: Peer, context: u32, greeting: Greeting) -> Result<()> {
        let words = greeting.words();
        // SAFETY: the request is over when `send` returns; the words live until then.
        let area = Area::contiguous(unsafe { Buffer::of(&words) });
        let sent = self.shared.send(to, context, HANDSHAKE, area);
        sent.map_err(|error| Error::of_wait(&self.shared, error, None, Members::OF_JOB))
    }

    /// Receives the greeting of this process, or of any. A death ends the wait for this one alone: a guest may come from anywhere.
    fn hear(&self, context: u32, from: Option<Peer>, time: Duration) -> Result<(Greeting, Peer)> {
        let mut words = [0u64; 3];
        let wanted = Wanted { context, source: from.map(|peer| peer.0), tag: Some(HANDSHAKE) };
        let members = std::iter::once(self.own_peer()).chain(from).collect();
        self.shared.engine.enter()?.endpoint.set_members(context, members);
        // SAFETY: the request is over when `receive` returns; the words live until then.
        let area = Area::contiguous(unsafe { Buffer::of_mut(&mut words) });
        let heard = self.shared.receive(wanted, area, deadline_ns(Some(time)));
        match heard {
            Ok(status) if status.bytes == size_of_val(&words) as u64 => {
                Ok((Greeting { host: words[0], slot: words[1], context: words[2] }, status.peer))
            }
            Ok(_) => Err(ErrorKind::Handshake {
                name: String::new(),
                what: "its greeting has another length",
            }
            .into()),
            Err(error) => Err(Error::of_wait(&self.shared, error, Some(time), Members::OF_JOB)),
        }
    }

    fn remote(&self, peer: Peer, context: u32, place: Place) -> Result<Remote> {
        let world = self.world_of(context, &[self.own_peer(), peer])?;
        Ok(Remote { world, _place: place })
    }
}

impl Port<'_> {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for at most `time` for the next process that connects.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], [`ErrorKind::Handshake`], [`ErrorKind::Connect`].
    pub fn accept(&self, time: Duration) -> Result<Remote> {
        let (greeting, peer) = self.job.hear(self.context, None, time)?;
        if peer.0 >= self.job.shared.segment.plan().slots() {
            // It is a guest of this job on another host.
            self.job.say(peer, self.context, self.job.greeting(self.context))?;
            return self.job.remote(peer, self.context, Place::Job);
        }
        let broken = |what| ErrorKind::Handshake { name: self.name.clone(), what }.into();
        let slot = u32::try_from(greeting.slot).map_err(|_| broken("it names no slot"))?;
        let joined = socket::join(SegmentId(greeting.host), AGENT_TIME)?;
        let visit = enter(joined)?;
        let segment = &visit.segment;
        if segment.plan().host != greeting.host {
            return Err(broken("its segment is another's"));
        }
        self.job.reach(peer, segment, visit.own_slot, slot, &self.name)?;
        self.job.shared.engine.enter()?.endpoint.set_heap_segment(peer, segment);
        let own = Greeting { slot: u64::from(peer.0), ..self.job.greeting(self.context) };
        self.job.say(peer, self.context, own)?;
        self.job.remote(peer, self.context, Place::Segments { _visit: visit })
    }
}

impl Drop for Port<'_> {
    fn drop(&mut self) {
        // The names go with the process in any case.
        if let Some(number) = self.number {
            let (segment, process) = (&self.job.shared.segment, self.job.process());
            let _ = job_names::withdraw(segment, process, ObjectKind::Port, number);
        }
        let _ = socket::unpublish(self.job.process(), &self.name, AGENT_TIME);
    }
}

impl Remote {
    /// Sends values to the other process, as [`World::send`] does.
    ///
    /// # Errors
    /// As [`World::send`].
    pub fn send<T: Plain>(&self, values: &[T], tag: impl Into<Tag>) -> Result<()> {
        self.world.send(values, 1, tag.into())
    }

    /// Receives values from the other process, as [`World::receive_into`] does.
    ///
    /// # Errors
    /// As [`World::receive_into`].
    pub fn receive_into<T: Plain>(
        &self,
        values: &mut [T],
        tag: impl Into<TagFilter>,
    ) -> Result<Status> {
        self.world.receive_into(values, 1, tag)
    }

    /// Returns the world of the two processes, in which this process has rank 0 and the other rank
    /// 1.
    pub fn world(&self) -> &World {
        &self.world
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.segment.set_presence(self.own_slot, Presence::Finalized);
    }
}

/// Attaches a segment that this process was admitted to.
fn enter(joined: Joined) -> Result<Visit> {
    let segment = Segment::attach(joined.segment)?;
    let own_slot = joined.process.slot.0;
    segment.keep_from_children();
    segment.harden(own_slot).map_err(AttachError::Harden)?;
    segment.set_presence(own_slot, Presence::Attached);
    Ok(Visit { segment, own_slot, _connection: joined.connection })
}

/// A context that no world of either job has, and no mailbox: worlds count from zero, mailboxes
/// are the uppermost quarter, this one is between.
fn random_context() -> u32 {
    let mut context = [0u32];
    let filled =
        rustix::rand::getrandom(bytes_of_mut(&mut context), rustix::rand::GetRandomFlags::empty());
    debug_assert_eq!(filled, Ok(bytes_of(&context).len()));
    (plain_context(context[0]) | 1 << 31) & !(1 << 30)
}
