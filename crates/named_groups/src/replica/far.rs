//! Groups of other hosts: finding their servers, following them, and having them append entries.
//!
//! The name of a group stands at the arbiter and leads to its server. When the server is gone, another process of its
//! host takes the seat and the name. A client waits for that for a while, and goes on where it was.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use landeck_engine::peers::peer_of;
use landeck_engine::{Engine, Shared, deadline_ns};
use landeck_joining::job_names;
use landeck_joining::objects::{Name, Object, ObjectError, ObjectKind};
use landeck_memory::system::now_ns;
use landeck_memory::{FarRecord, Operation, SharedArea, SlotState, WaitRecord, shared_area};
use landeck_objects::group_log::{GroupLog, peers_of};
use landeck_protocols::service::{Ask, GroupEntry, Phase, State};
use landeck_wire::{ProcessId, SegmentId};

use crate::answer::Answer;
use crate::error::{Result, ServiceError};
use crate::group_error::GroupError;
use crate::log_copy::{FeedLink, Inbox, LogCopy};
use crate::options::GroupOptions;
use crate::replica::{Home, LocalState, Replica};
use crate::server_client::ServerClient;
use crate::server_handle::{ServerHandle, WeakCopy};
use crate::time_limit::TimeLimit;

/// How long a client waits until another process of a group's host serves it.
const SERVER_TIME: Duration = Duration::from_secs(10);
/// How long a client waits before it looks again whether the name leads to another server.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long a name may stay after its group has ended.
const END_TIME: Duration = Duration::from_secs(2);
/// The reason why a group is reached no more.
const HOST_LOST: &str = "its processes have left, or the host is lost";
const PAUSE: Duration = Duration::from_millis(5);
/// How long a server has to answer a call that may wait for less.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

type Handles<'a> = (&'a Arc<Shared>, &'a Arc<ServerHandle>);

impl Replica {
    /// Whether processes of other hosts may ask for what lies here.
    pub(crate) fn serves_other_hosts(&self) -> bool {
        self.copy().is_none() && self.shared.segment.plan().has_host_tables()
    }

    /// Takes the server's seat of a new group, so that other hosts find it.
    pub(crate) fn serve_other_hosts(&self, name: &Name) -> Result<()> {
        let own = self.shared.slot;
        if !self.serves_other_hosts() || self.options.first_server().is_some_and(|slot| slot != own)
        {
            return Ok(());
        }
        let Err(error) = self.server_or_seat(TimeLimit::Unlimited) else { return Ok(()) };
        self.with(|local| self.append(local, GroupEntry::Destroy, |_| Ok(())).map(drop))?;
        self.retire();
        // A process of another host was faster.
        let (shared, kind) = (&self.shared, ObjectKind::Group);
        match job_names::find(&shared.segment, shared.process(), kind, name) {
            Ok(taken) => Err(job_names::taken_by(&shared.segment, kind, name, &taken).into()),
            Err(_) => Err(error),
        }
    }

    /// Waits until a group of this host has its name on all hosts, or takes it in place of the group's maker, which has died.
    /// False: a group of another host has the name, and this one has ended.
    pub(crate) fn has_its_name(&self, name: &Name, maker: ProcessId) -> Result<bool> {
        let (slot, incarnation) = (maker.slot.0, maker.incarnation.0);
        let is_named_by_another = self.options.first_server().is_some_and(|first| first != slot);
        if !self.serves_other_hosts() || is_named_by_another {
            return Ok(true);
        }
        let settled = self.wait(
            TimeLimit::Unlimited,
            |_| Some(slot),
            |local| {
                Ok(match (local.state.epochs(), local.state.phase()) {
                    (0, Phase::Ended) => Some(Some(false)),
                    // The maker may have died in the middle.
                    (0, _) => self.how_it_left(slot, incarnation).map(|_| None),
                    _ => Some(Some(true)),
                })
            },
        )?;
        match settled.map_or_else(|| self.serve_other_hosts(name).map(|()| true), Ok) {
            Err(ServiceError::Object(
                ObjectError::Taken { .. } | ObjectError::TakenElsewhere { .. },
            )) => Ok(false),
            settled => settled,
        }
    }

    /// Checks that no group of another host has a name.
    pub(crate) fn check_free_elsewhere(
        shared: &Arc<Shared>,
        server_handle: &Arc<ServerHandle>,
        name: &Name,
    ) -> Result<()> {
        let (segment, kind) = (&shared.segment, ObjectKind::Group);
        if !segment.plan().has_host_tables() {
            return Ok(());
        }
        let until = now_ns() + END_TIME.as_nanos() as u64;
        loop {
            match job_names::find(segment, shared.process(), kind, name) {
                Err(ObjectError::Unknown { .. }) => return Ok(()),
                Ok(found) if found.owner.segment.0 == segment.plan().host => return Ok(()),
                Ok(found) => {
                    if now_ns() > until || !Self::has_ended(shared, server_handle, name)? {
                        return Err(job_names::taken_by(segment, kind, name, &found).into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
            pause(shared)?;
        }
    }

    /// Opens a group whose log lies on another host.
    pub(crate) fn find_elsewhere(
        shared: &Arc<Shared>,
        server_handle: &Arc<ServerHandle>,
        name: &Name,
    ) -> Result<Arc<Self>> {
        let found = find(shared, name)?;
        let mut copies = server_handle.copies();
        let known = copies.iter().filter_map(WeakCopy::upgrade);
        let mut known = known.filter_map(|copy| copy.downcast::<Self>().ok());
        let known = known.find(|known| known.is_copy_of(&found));
        if let Some(known) = known {
            drop(copies);
            return known.catch_up(TimeLimit::Unlimited).map(|()| known);
        }
        let client = ServerClient::open(shared)?;
        let link = link_to(shared, name.as_str(), &found, 1)?;
        let inbox = Inbox::open(shared, client.context, link);
        let own = inbox.clone();
        let sink = Box::new(move |endpoint: &mut _, status: &_, received| {
            own.receive(endpoint, status, &received);
        });
        shared.engine.enter()?.stream(client.context, sink);
        let opened = await_opening(shared, name, &inbox);
        let opened = opened.and_then(|()| Self::copied((shared, server_handle), name, &inbox));
        match opened {
            Ok(make) => {
                let made = make(client);
                let copy: Arc<dyn Any + Send + Sync> = made.clone();
                copies.push(Arc::downgrade(&copy));
                Ok(made)
            }
            Err(error) => {
                let mut engine = shared.engine.enter()?;
                engine.end_stream(client.context);
                inbox.close(&mut engine.endpoint);
                Err(error)
            }
        }
    }

    /// Whether this is a copy of the log that a name leads to. A process has one copy of a log: its requests have one
    /// count.
    fn is_copy_of(&self, found: &Object) -> bool {
        let is_it =
            |copy: &LogCopy| (copy.home(), copy.number()) == (found.owner.segment, found.words[1]);
        self.copy().is_some_and(is_it) && !self.has_ended_here()
    }

    /// The replica that begins with the first feed in the inbox.
    fn copied<'a>(
        handles: Handles<'a>,
        name: &'a Name,
        inbox: &Arc<Inbox>,
    ) -> Result<impl FnOnce(ServerClient) -> Arc<Self> + use<'a>> {
        let (shared, _) = handles;
        let malformed = || {
            let group = name.as_str().to_owned();
            ServiceError::from(GroupError::Broken { group, what: "its server does not open it" })
        };
        let (opened, last) = inbox.opened().ok_or_else(malformed)?;
        let options = GroupOptions::from_words(opened.options).ok_or_else(malformed)?;
        let shape = options.check()?;
        let bytes = shape.memory_bytes(peers_of(&shared.segment));
        let kind = ObjectKind::Group;
        let area = shared_area::file(bytes).and_then(|file| SharedArea::map(&file, bytes));
        let area = area.map_err(|_| ObjectError::NoMemory { kind, bytes })?;
        let log = GroupLog::open(area, &shared.segment, shared.slot, shape);
        let log = log.ok_or_else(malformed)?;
        log.count_requests_from(last.number);
        let copy = LogCopy::new(shared, inbox.clone(), opened.number);
        Ok(move |client| {
            let (name, state) =
                (name.as_str().to_owned(), State::new(options.rules(), copy.home()));
            let home = (Home::Elsewhere(copy), Some(client));
            Self::assemble(handles, (log, state), name, options, home)
        })
    }

    /// Takes what the server of another host has told, and tells it what it needs. False when that server is gone.
    #[inline]
    pub(crate) fn follow(&self, engine: &mut Engine) -> bool {
        match self.copy() {
            None => true,
            Some(copy) => self.follow_copied(copy, engine),
        }
    }

    fn follow_copied(&self, copy: &LogCopy, engine: &mut Engine) -> bool {
        engine.have_watched();
        copy.inbox().look_at_server(&self.shared.segment, &engine.endpoint);
        copy.report(&mut engine.endpoint, &self.log);
        !copy.inbox().link().is_cut || self.has_ended_here()
    }

    /// Whether this process knows that the group has ended.
    fn has_ended_here(&self) -> bool {
        self.with(|local| Ok(local.state.phase() == Phase::Ended)).unwrap_or(true)
    }

    /// Waits until this process knows everything that was accepted before this call. On the log's host it does.
    #[inline]
    pub(crate) fn catch_up(&self, limit: TimeLimit) -> Result<()> {
        match self.copy() {
            None => Ok(()),
            Some(copy) => self.look_at_home(copy, limit, false),
        }
    }

    /// Waits as [`Replica::catch_up`] does. The server tells of deliveries from now on, if they are awaited.
    pub(crate) fn look_at_home(
        &self,
        copy: &LogCopy,
        limit: TimeLimit,
        awaits_delivery: bool,
    ) -> Result<()> {
        // However short the limit is, a server that is there answers.
        let answers_until = deadline_ns(Some(ANSWER_WITHIN));
        let until = limit.deadline_ns().map(|until| until.max(answers_until.unwrap_or(until)));
        loop {
            if self.has_ended_here() || self.look_once(copy, until, limit, awaits_delivery)? {
                return Ok(());
            }
            self.find_server()?;
        }
    }

    /// Looks once; false when the server is gone.
    fn look_once(
        &self,
        copy: &LogCopy,
        until: Option<u64>,
        limit: TimeLimit,
        awaits_delivery: bool,
    ) -> Result<bool> {
        let look = copy.next_look();
        let broadcasts = self.with(|local| Ok(local.state.broadcasts()))?;
        let mut engine = self.shared.engine.enter()?;
        // The server may have the slot of one that has gone, which the endpoint has not seen yet.
        engine.endpoint.refresh();
        copy.inbox().follow(&mut engine.endpoint, look, broadcasts, awaits_delivery);
        drop(engine);
        let looked = self.shared.wait_until(&self.home_record(copy), until, |engine| {
            engine.endpoint.refresh();
            let is_followed = self.follow_copied(copy, engine);
            // Folds what has come.
            let is_over = self.has_ended_here();
            match copy.has_looked(look) || is_over {
                true => Some(true),
                false => (!is_followed).then_some(false),
            }
        });
        looked.map_err(|error| match (ServiceError::of_wait(error, limit), limit) {
            (ServiceError::TimedOut(_), TimeLimit::Now) => ServiceError::WouldBlock,
            (error, _) => error,
        })
    }

    fn home_record(&self, copy: &LogCopy) -> WaitRecord {
        let peer = Some(copy.inbox().link().peer);
        WaitRecord { operation: Operation::Group, peer, ..WaitRecord::default() }
    }

    /// Goes on with the next server of a group of another host.
    #[cold]
    pub(crate) fn find_server(&self) -> Result<()> {
        let Some(copy) = self.copy() else { return Ok(()) };
        let _turn = copy.turn();
        let until = now_ns() + SERVER_TIME.as_nanos() as u64;
        let name = Name::new(&self.name).map_err(ObjectError::from)?;
        loop {
            let link = copy.inbox().link();
            if !link.is_cut || self.has_ended_here() {
                return Ok(());
            }
            if let Some(found) = self.next_server(copy, &name, link)? {
                copy.inbox().set_link(link_to(&self.shared, &self.name, &found, link.epoch + 1)?);
                self.look_once(copy, None, TimeLimit::Unlimited, false)?;
            } else if now_ns() > until {
                let why = "no process there serves it any more";
                return Err(unreached(&self.shared, &self.name, link.process, why));
            } else {
                pause(&self.shared)?;
            }
        }
    }

    /// The server that has followed one that is gone; none so far.
    fn next_server(&self, copy: &LogCopy, name: &Name, before: FeedLink) -> Result<Option<Object>> {
        let home = before.process.segment;
        if is_gone(&self.shared, home) {
            return Err(unreached(&self.shared, &self.name, before.process, HOST_LOST));
        }
        match job_names::find(&self.shared.segment, self.shared.process(), ObjectKind::Group, name)
        {
            Err(ObjectError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error.into()),
            Ok(found) if before.is_of(found.owner, found.words[0] as u32) => Ok(None),
            // Another group has the name.
            Ok(found) if found.owner.segment != home || found.words[1] != copy.number() => {
                Err(self.destroyed())
            }
            Ok(found) => Ok(Some(found)),
        }
    }

    /// Has an entry accepted that needs no details: appends it, or has the server of another host append it.
    pub(crate) fn put(
        &self,
        entry: GroupEntry,
        mut check: impl FnMut(&mut LocalState) -> Result<()>,
    ) -> Result<Answer> {
        if self.copy().is_none() {
            let accepted = self.with(|local| self.append(local, entry, check))?;
            return Ok(Answer::of(accepted.outcome));
        }
        self.with(|local| check(local))?;
        let client = self.server_client.as_ref().ok_or_else(|| self.log_refuses())?;
        let ask = Ask::of(entry).ok_or_else(|| self.log_refuses())?;
        self.request_entry(client, ask)
    }

    /// The error of a call with a time limit whose server did not say in time whether it has done it.
    pub(crate) fn in_doubt(&self, copy: &LogCopy) -> ServiceError {
        let host = host_name(&self.shared, copy.inbox().link().process);
        GroupError::InDoubt { group: self.name.clone(), host }.into()
    }
}

/// Waits for the first feed of a group's server.
fn await_opening(shared: &Arc<Shared>, name: &Name, inbox: &Inbox) -> Result<()> {
    loop {
        let link = inbox.link();
        let mut engine = shared.engine.enter()?;
        engine.endpoint.refresh();
        inbox.follow(&mut engine.endpoint, 1, 0, false);
        drop(engine);
        let peer = Some(link.peer);
        let record = WaitRecord { operation: Operation::Group, peer, ..WaitRecord::default() };
        let opened = shared.wait_until(&record, deadline_ns(Some(LOOK_AGAIN)), |engine| {
            engine.endpoint.refresh();
            engine.have_watched();
            inbox.look_at_server(&shared.segment, &engine.endpoint);
            let is_cut = inbox.link().is_cut;
            inbox.opened().map(|_| true).or(is_cut.then_some(false))
        });
        match opened.map_err(|error| ServiceError::of_wait(error, TimeLimit::Unlimited)) {
            Ok(true) => return Ok(()),
            Ok(false) => pause(shared)?,
            Err(ServiceError::TimedOut(_)) => {}
            Err(error) => return Err(error),
        }
        // A server that has left its seat meanwhile tells nobody.
        let found = find(shared, name)?;
        if !link.is_of(found.owner, found.words[0] as u32) {
            inbox.set_link(link_to(shared, name.as_str(), &found, link.epoch + 1)?);
        }
    }
}

/// Finds a group of another host.
fn find(shared: &Shared, name: &Name) -> Result<Object> {
    let (segment, kind) = (&shared.segment, ObjectKind::Group);
    let found = job_names::find(segment, shared.process(), kind, name)?;
    let home = found.owner.segment;
    if home.0 == segment.plan().host {
        // It has ended, and the name goes.
        return Err(ObjectError::Unknown { kind, name: name.as_str().to_owned() }.into());
    }
    match is_lost(shared, home) {
        // The name stays until the host is known to be gone.
        true => Err(unreached(shared, name.as_str(), found.owner, HOST_LOST)),
        false => Ok(found),
    }
}

fn link_to(shared: &Shared, group: &str, found: &Object, epoch: u64) -> Result<FeedLink> {
    let (process, context) = (found.owner, found.words[0] as u32);
    let why = "this host's table of processes elsewhere is full";
    let peer = peer_of(&shared.segment, process);
    let peer = peer.ok_or_else(|| unreached(shared, group, process, why))?.0;
    Ok(FeedLink { process, peer, context, epoch, is_cut: false })
}

fn unreached(shared: &Shared, group: &str, server: ProcessId, why: &'static str) -> ServiceError {
    let (group, host) = (group.to_owned(), host_name(shared, server));
    GroupError::Unreached { group, host, why }.into()
}

fn host_name(shared: &Shared, process: ProcessId) -> String {
    job_names::host_name(&shared.segment, process).unwrap_or_else(|| "this host".to_owned())
}

/// Whether no process of a host is there that the job began with, or, on a host that was added, no process at all. In the own
/// job of a machine each host has a helper, which is started again: there the host itself is gone.
fn is_gone(shared: &Shared, host: SegmentId) -> bool {
    if shared.segment.plan().ranks == 0 {
        return is_lost(shared, host);
    }
    let its: Vec<_> = records_of(shared, host).collect();
    let is_added = its.iter().all(|record| record.rank.is_none());
    let mut counted = its.iter().filter(|record| is_added || record.rank.is_some());
    counted.all(|record| record.state == SlotState::Free || record.state.is_gone())
}

/// Whether a host is lost or has left.
fn is_lost(shared: &Shared, host: SegmentId) -> bool {
    let is_gone = |number| shared.segment.host_state(number).1;
    records_of(shared, host).any(|record| record.is_host_lost || is_gone(record.host_number))
}

/// The records of a host's processes.
fn records_of(shared: &Shared, host: SegmentId) -> impl Iterator<Item = FarRecord> {
    let records = (0..shared.segment.plan().far).map(|far| shared.segment.far_record(far));
    records.filter(move |record| record.process.host == host.0)
}

/// Makes progress for a moment.
fn pause(shared: &Shared) -> Result<()> {
    let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
    let waited = shared.wait_until(&record, deadline_ns(Some(PAUSE)), |_| None::<()>);
    match waited.map_err(|error| ServiceError::of_wait(error, TimeLimit::Unlimited)) {
        Ok(()) | Err(ServiceError::TimedOut(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
