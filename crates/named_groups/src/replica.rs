//! A process's replica of a named group: the log, and the state folded from it.

pub(crate) mod copying;
pub(crate) mod deaths;
pub(crate) mod destroying;
pub(crate) mod far;
pub(crate) mod folding;
pub(crate) mod parties;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use landeck_engine::Shared;
use landeck_joining::objects::{self, Name, Object, ObjectError, ObjectKind, Use, map};
use landeck_memory::{Gate, Operation, SharedArea, ThreadMode, WaitRecord};
use landeck_objects::group_log::entries::{details_of, word_of};
use landeck_objects::group_log::{Aside, Claim, Claims, GroupLog, Passed, WaitsFor, peers_of};
use landeck_protocols::service::{GroupEntry, Outcome, Phase, State};
use landeck_wire::SegmentId;

use crate::error::{Result, ServiceError};
use crate::group_error::GroupError;
use crate::log_copy::LogCopy;
use crate::message::SharedValues;
use crate::options::GroupOptions;
use crate::replica::parties::FarPeers;
use crate::roll_members::RollMembers;
use crate::server_client::ServerClient;
use crate::server_handle::ServerHandle;
use crate::time_limit::TimeLimit;

/// An exchange that other processes win so often means that the log is broken.
pub(crate) const ATTEMPTS: u32 = 1 << 20;
/// The bits of the number of a group's memory; above them are bits of its host.
const NUMBER_BITS: u32 = 40;
/// How often a new group's name is tried while the groups that have it end at once.
const CREATE_ATTEMPTS: u32 = 16;

/// A process's replica of a named group. Any thread may use it, as the thread mode says.
pub struct Replica {
    pub(crate) shared: Arc<Shared>,
    pub(crate) server_handle: Arc<ServerHandle>,
    pub(crate) log: GroupLog,
    pub(crate) name: String,
    pub(crate) options: GroupOptions,
    pub(crate) home: Home,
    /// Whether processes ask a server: all, or those of other hosts.
    pub(crate) is_asked: bool,
    /// Where the server's replies arrive; none where this process appends its entries itself.
    pub(crate) server_client: Option<ServerClient>,
    /// The segment of the log's host, which has number 0 in the group.
    pub(crate) log_host: SegmentId,
    pub(crate) far_peers: FarPeers,
    pub(crate) local: Gate<LocalState>,
    pub(crate) claims: Claims,
}

/// Where the log of a group lies.
pub(crate) enum Home {
    /// On this host: this process uses it.
    Here(Use),
    /// On another host: this process has a copy.
    Elsewhere(LogCopy),
}

/// The state that this process has folded, with its own records of messages.
pub(crate) struct LocalState {
    pub(crate) state: State,
    /// Messages and entries that no member needs any more, when this process looked last.
    pub(crate) passed: Passed,
    /// Broadcasts of this process that some member had not retrieved, when it looked last.
    pub(crate) own_broadcasts: VecDeque<u64>,
    /// The values of this process's last broadcast, for its own mailbox, which gets the same memory.
    pub(crate) kept_values: Option<(u64, SharedValues)>,
    /// The cell of the next short message, claimed while the process had nothing else to do.
    pub(crate) reserved_cell: Option<Aside>,
    pub(crate) roll_members: RollMembers,
    /// The generation of the membership up to which deaths were recorded in the log.
    pub(crate) deaths_recorded_at: Option<u32>,
}

/// The process that has appended an entry.
#[derive(Clone, Copy)]
pub(crate) enum EntryOwner<'a> {
    /// This process, with the memory of the message or of the details, if the entry has such.
    Own(Option<&'a Claim<'a>>),
    Others,
}

/// An accepted entry.
#[derive(Clone, Copy)]
pub(crate) struct Accepted {
    /// Its place in the log.
    pub(crate) place: u64,
    pub(crate) outcome: Outcome,
}

impl Replica {
    /// Makes a group under a name and opens it.
    ///
    /// # Errors
    /// [`GroupError::Options`], [`GroupError::NoServer`], [`ServiceError::Object`] (the name is taken, there is no
    /// memory, the agent does not answer), [`ServiceError::Thread`].
    pub fn create(
        shared: &Arc<Shared>,
        server_handle: &Arc<ServerHandle>,
        name: &Name,
        options: GroupOptions,
    ) -> Result<Arc<Self>> {
        let options = options.made_by(shared.slot);
        let bytes = options.check()?.memory_bytes(peers_of(&shared.segment));
        let (process, words) = (shared.process(), options.to_words());
        Self::check_free_elsewhere(shared, server_handle, name)?;
        for _ in 0..CREATE_ATTEMPTS {
            match objects::make(process, ObjectKind::Group, Some(name), bytes, words) {
                Err(ObjectError::Taken { .. }) if Self::has_ended(shared, server_handle, name)? => {
                }
                made => {
                    let replica = Self::open_and_serve(shared, server_handle, name, made?)?;
                    return replica.serve_other_hosts(name).map(|()| replica);
                }
            }
        }
        let name = name.as_str().to_owned();
        Err(ObjectError::Taken { kind: ObjectKind::Group, name, pid: 0 }.into())
    }

    /// Opens the group under a name.
    ///
    /// # Errors
    /// [`ServiceError::Object`] (no group has the name, the agent does not answer), [`GroupError::GroupDestroyed`],
    /// [`GroupError::NoServer`], [`GroupError::Broken`], [`ServiceError::Thread`].
    pub fn find(
        shared: &Arc<Shared>,
        server_handle: &Arc<ServerHandle>,
        name: &Name,
    ) -> Result<Arc<Self>> {
        let replica = match objects::open(shared.process(), ObjectKind::Group, name) {
            Err(ObjectError::Unknown { .. }) if shared.segment.plan().has_host_tables() => {
                Self::find_elsewhere(shared, server_handle, name)?
            }
            memory => {
                let memory = memory?;
                let maker = memory.0.owner;
                let here = Self::open_and_serve(shared, server_handle, name, memory)?;
                match here.has_its_name(name, maker)? {
                    true => here,
                    false => {
                        here.retire();
                        Self::find_elsewhere(shared, server_handle, name)?
                    }
                }
            }
        };
        match replica.with(|local| Ok(local.state.phase()))? {
            Phase::Ended => {
                replica.retire();
                match shared.segment.plan().has_host_tables() {
                    // Its name goes everywhere, but not at once.
                    true => {
                        let (kind, name) = (ObjectKind::Group, name.as_str().to_owned());
                        Err(ObjectError::Unknown { kind, name }.into())
                    }
                    false => Err(replica.destroyed()),
                }
            }
            Phase::Open | Phase::Destroying => Ok(replica),
        }
    }

    /// Whether the group of a taken name has ended, so that the name is free by now. Its last user may have died
    /// before it freed the name.
    pub(crate) fn has_ended(
        shared: &Arc<Shared>,
        server_handle: &Arc<ServerHandle>,
        name: &Name,
    ) -> Result<bool> {
        match Self::find(shared, server_handle, name) {
            Ok(_) => Ok(false),
            Err(
                ServiceError::Object(ObjectError::Unknown { .. })
                | ServiceError::Group(GroupError::GroupDestroyed { .. }),
            ) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn open_and_serve(
        shared: &Arc<Shared>,
        server_handle: &Arc<ServerHandle>,
        name: &Name,
        memory: (Object, OwnedFd),
    ) -> Result<Arc<Self>> {
        let replica = Self::open(shared, server_handle, name, memory)?;
        replica.serve_first()?;
        Ok(replica)
    }

    /// Opens a group whose memory the agent has handed out.
    ///
    /// # Errors
    /// [`GroupError::Broken`]: the memory is not that of a group; [`ServiceError::Thread`].
    pub(crate) fn open(
        shared: &Arc<Shared>,
        server_handle: &Arc<ServerHandle>,
        name: &Name,
        (object, file): (Object, OwnedFd),
    ) -> Result<Arc<Self>> {
        let used = Use::new(shared.process(), ObjectKind::Group, object.number);
        let area: SharedArea = map(&file, &object)?;
        let name = name.as_str().to_owned();
        let options = GroupOptions::from_words(object.words);
        let log = options.and_then(|options| {
            GroupLog::open(area, &shared.segment, shared.slot, options.shape()?)
        });
        let (Some(options), Some(log)) = (options, log) else {
            return Err(GroupError::Broken { group: name, what: "its memory has no shape" }.into());
        };
        let client = options.first_server().map(|_| ServerClient::open(shared)).transpose()?;
        let state = State::new(options.rules(), SegmentId(shared.segment.plan().host));
        let home = Home::Here(used);
        Ok(Self::assemble((shared, server_handle), (log, state), name, options, (home, client)))
    }

    /// The replica of a group: its log, or a copy of it, with the state so far.
    pub(crate) fn assemble(
        (shared, server_handle): (&Arc<Shared>, &Arc<ServerHandle>),
        (log, state): (GroupLog, State),
        name: String,
        options: GroupOptions,
        (home, client): (Home, Option<ServerClient>),
    ) -> Arc<Self> {
        let is_asked = client.is_some() || shared.segment.plan().has_host_tables();
        let log_host = match &home {
            Home::Here(_) => SegmentId(shared.segment.plan().host),
            Home::Elsewhere(copy) => copy.home(),
        };
        let local = LocalState {
            state,
            passed: Passed::default(),
            own_broadcasts: VecDeque::new(),
            kept_values: None,
            reserved_cell: None,
            roll_members: RollMembers::default(),
            deaths_recorded_at: None,
        };
        Arc::new(Self {
            shared: shared.clone(),
            server_handle: server_handle.clone(),
            log,
            name,
            options,
            home,
            is_asked,
            server_client: client,
            log_host,
            far_peers: FarPeers::default(),
            local: Gate::new(shared.engine.mode(), local),
            claims: Claims::default(),
        })
    }

    /// The copy of the log, if that lies on another host.
    #[inline]
    pub(crate) fn copy(&self) -> Option<&LogCopy> {
        match &self.home {
            Home::Here(_) => None,
            Home::Elsewhere(copy) => Some(copy),
        }
    }

    /// The use of the log's memory.
    pub(crate) fn object(&self) -> Option<&Use> {
        match &self.home {
            Home::Here(used) => Some(used),
            Home::Elsewhere(_) => None,
        }
    }

    /// The endpoint of this process, shared by its handles.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The name of the group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the group in the job. No other group has it.
    pub fn number(&self) -> u64 {
        match &self.home {
            Home::Here(used) if self.shared.segment.plan().has_host_tables() => {
                number_in_job(used.number(), self.log_host)
            }
            Home::Here(used) => used.number(),
            Home::Elsewhere(copy) => number_in_job(copy.number(), self.log_host),
        }
    }

    /// How the group was made.
    pub fn options(&self) -> GroupOptions {
        self.options
    }

    /// How many broadcasts the group has accepted.
    ///
    /// # Errors
    /// [`GroupError::Broken`], [`ServiceError::Thread`].
    pub fn broadcasts(&self) -> Result<u64> {
        self.catch_up(TimeLimit::Unlimited)?;
        self.with(|local| Ok(local.state.broadcasts()))
    }

    /// Frees the name of a group that has ended. For a log on another host its server does.
    pub(crate) fn retire(&self) {
        // Another process may have freed it, or will: a process that finds the name taken does.
        if let Some(object) = self.object() {
            let _ = objects::retire(self.shared.process(), object.number());
        }
    }

    /// Calls `then` with the local state after all accepted entries were folded.
    pub(crate) fn with<T>(&self, then: impl FnOnce(&mut LocalState) -> Result<T>) -> Result<T> {
        let mut local = self.local.enter()?;
        self.fold(&mut local)?;
        self.record_deaths(&mut local)?;
        then(&mut local)
    }

    /// Calls `then` with the local state as it is, without a look at the log. None when a death may have to be
    /// recorded first.
    #[inline]
    pub(crate) fn with_known<T>(
        &self,
        then: impl FnOnce(&mut LocalState) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut local = self.local.enter_in_turn()?;
        let generation = self.shared.segment.membership_generation();
        if local.deaths_recorded_at == Some(generation) { then(&mut local) } else { Ok(None) }
    }

    /// Calls `then` as [`Replica::with`] does, after a prefetch of the lines that a message will need.
    pub(crate) fn with_prepared_lines<T>(
        &self,
        then: impl FnOnce(&mut LocalState) -> Result<T>,
    ) -> Result<T> {
        let mut local = self.local.enter_in_turn()?;
        let (place, number) = (local.state.position(), local.state.broadcasts());
        self.log.prepare(&self.claims, place, number);
        self.fold(&mut local)?;
        self.record_deaths(&mut local)?;
        then(&mut local)
    }

    /// Waits until `ready` finds something. It is called after all accepted entries were folded. A wait that takes long
    /// shows other processes that it needs the process of slot `peer`.
    pub(crate) fn wait<T>(
        &self,
        limit: TimeLimit,
        peer: impl FnOnce(&LocalState) -> Option<u32>,
        mut ready: impl FnMut(&mut LocalState) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut found = None;
        let mut look = || {
            found = self.with(&mut ready).transpose();
            found.is_some()
        };
        self.shared.spin_once(&mut look)?;
        if let Some(found) = found {
            return found;
        }
        let _notice = WaitNotice::begin(&self.log, WaitsFor::Others);
        let peer = self.with(|local| Ok(peer(local)))?;
        let record = WaitRecord { operation: Operation::Group, peer, ..WaitRecord::default() };
        let deadline_ns = limit.deadline_ns();
        loop {
            let found = self.shared.wait_until(&record, deadline_ns, |engine| {
                let is_followed = self.follow(engine);
                let found = self.with(&mut ready).transpose();
                found.map(|found| found.map(Some)).or((!is_followed).then_some(Ok(None)))
            });
            match found.map_err(|error| ServiceError::of_wait(error, limit))?? {
                Some(found) => return Ok(found),
                None => self.find_server()?,
            }
        }
    }

    /// Appends an entry, after a check of the state before it.
    pub(crate) fn append(
        &self,
        local: &mut LocalState,
        entry: GroupEntry,
        mut check: impl FnMut(&mut LocalState) -> Result<()>,
    ) -> Result<Accepted> {
        let appended = self.append_if(local, entry, |local| check(local).map(|()| true))?;
        appended.ok_or_else(|| self.log_refuses())
    }

    /// Appends an entry that is no message if `may_append` allows it.
    pub(crate) fn append_if(
        &self,
        local: &mut LocalState,
        entry: GroupEntry,
        may_append: impl FnMut(&mut LocalState) -> Result<bool>,
    ) -> Result<Option<Accepted>> {
        let details = details_of(&entry).map(|details| self.claim_details(local, details));
        let details = details.transpose()?;
        let accepted = self.append_with(local, entry, details.as_ref(), may_append)?;
        if let (Some(details), Some(accepted)) = (details, accepted) {
            details.becomes_entry(accepted.place);
        }
        Ok(accepted)
    }

    /// Appends an entry if `may_append` allows it, which is asked after every entry that another process has
    /// appended first. The claimed memory holds the message, or the entry's details.
    pub(crate) fn append_with(
        &self,
        local: &mut LocalState,
        entry: GroupEntry,
        claim: Option<&Claim<'_>>,
        mut may_append: impl FnMut(&mut LocalState) -> Result<bool>,
    ) -> Result<Option<Accepted>> {
        for _ in 0..ATTEMPTS {
            self.fold(local)?;
            if !may_append(local)? {
                return Ok(None);
            }
            if changes_members(&entry) && !self.log.roll().is_settled() {
                self.close_roll(local)?;
                continue;
            }
            if let Some(accepted) = self.accept(local, entry, claim)? {
                if changes_members(&entry) {
                    self.close_stale_roll(local)?;
                }
                return Ok(Some(accepted));
            }
        }
        Err(self.log_refuses())
    }

    /// Appends an entry behind the folded ones; none when another process has appended first.
    pub(crate) fn accept(
        &self,
        local: &mut LocalState,
        entry: GroupEntry,
        claim: Option<&Claim<'_>>,
    ) -> Result<Option<Accepted>> {
        self.make_room(local)?;
        let place = local.state.position();
        let cell = claim.map_or(0, Claim::cell);
        if !self.log.accept(place, word_of(&entry, cell)) {
            return Ok(None);
        }
        let outcome = self.apply(local, entry, cell, EntryOwner::Own(claim));
        self.wake_concerned(local, &entry, outcome);
        Ok(Some(Accepted { place, outcome }))
    }

    /// Wakes the threads that an entry concerns.
    #[inline]
    fn wake_concerned(&self, local: &LocalState, entry: &GroupEntry, outcome: Outcome) {
        match (entry, outcome) {
            (GroupEntry::Broadcast { .. }, Outcome::Broadcast(_))
                if self.server_client.is_none() =>
            {
                self.wake(WaitsFor::Messages);
            }
            // Clients of the server that is gone wait for it; members find messages that it has not forwarded.
            (GroupEntry::Vacate { .. }, Outcome::Vacated) => {
                self.wake(WaitsFor::Messages);
                self.wake(WaitsFor::Others);
            }
            (GroupEntry::Sync(_), Outcome::Come(round)) if local.state.ended(round).is_none() => {}
            (_, Outcome::Nothing | Outcome::Stale) => {}
            _ => self.wake(WaitsFor::Others),
        }
        if local.state.phase() != Phase::Open {
            self.wake(WaitsFor::Messages);
            self.wake(WaitsFor::Others);
        }
    }

    pub(crate) fn wake(&self, what: WaitsFor) {
        self.log.wake(what);
        if self.local.mode() == ThreadMode::Multiple {
            self.log.wake_own();
        }
    }

    /// Checks that the group accepts new calls.
    pub(crate) fn check_open(&self, state: &State) -> Result<()> {
        match state.phase() {
            Phase::Open => Ok(()),
            Phase::Destroying => Err(GroupError::Destroying { group: self.name.clone() }.into()),
            Phase::Ended => Err(self.destroyed()),
        }
    }

    /// Checks that a call that began earlier may go on. It ends as soon as the group is being destroyed.
    pub(crate) fn check_not_destroyed(&self, state: &State) -> Result<()> {
        match state.phase() {
            Phase::Open => Ok(()),
            Phase::Destroying | Phase::Ended => Err(self.destroyed()),
        }
    }

    /// Waits until the group has reached its minimum once.
    ///
    /// # Errors
    /// [`GroupError::MinimumNotReached`], [`GroupError::Destroying`], [`GroupError::GroupDestroyed`],
    /// [`GroupError::Broken`], [`ServiceError::Ended`], [`ServiceError::Thread`].
    pub fn wait_started(&self, limit: TimeLimit) -> Result<()> {
        self.catch_up(limit)?;
        let has_started = self.with(|local| {
            self.check_open(&local.state)?;
            Ok(local.state.has_started())
        })?;
        if has_started {
            return Ok(());
        }
        let waited = self.wait(limit, no_peer, |local| {
            self.check_not_destroyed(&local.state)?;
            Ok(local.state.has_started().then_some(()))
        });
        match waited {
            Err(ServiceError::TimedOut(_)) => Err(self.minimum_not_reached()?),
            other => other,
        }
    }

    fn minimum_not_reached(&self) -> Result<ServiceError> {
        let have = self.with(|local| Ok(local.state.members().len() as u32))?;
        let (group, want) = (self.name.clone(), self.options.rules().minimum);
        Ok(GroupError::MinimumNotReached { group, have, want }.into())
    }

    #[cold]
    pub(crate) fn destroyed(&self) -> ServiceError {
        GroupError::GroupDestroyed { group: self.name.clone() }.into()
    }

    pub(crate) fn no_member(&self, id: u32) -> ServiceError {
        GroupError::NoMember { group: self.name.clone(), member: id }.into()
    }

    pub(crate) fn broken(&self, what: &'static str) -> ServiceError {
        GroupError::Broken { group: self.name.clone(), what }.into()
    }

    #[cold]
    pub(crate) fn log_refuses(&self) -> ServiceError {
        self.broken("its log does not take an entry")
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Ok(mut local) = self.local.enter()
            && let Some(reserved) = local.reserved_cell.take()
        {
            drop(self.log.take_up(reserved));
        }
    }
}

/// The number of a group in a job on several hosts, from that of its memory on its host.
fn number_in_job(number: u64, home: SegmentId) -> u64 {
    number | home.0 << NUMBER_BITS
}

/// Whether an entry may change the members of a synchronisation, or end the group.
fn changes_members(entry: &GroupEntry) -> bool {
    matches!(
        entry,
        GroupEntry::Join(_)
            | GroupEntry::Leave(_)
            | GroupEntry::Died(_)
            | GroupEntry::Departed(_)
            | GroupEntry::Evict(_)
            | GroupEntry::Destroy
            | GroupEntry::End
            | GroupEntry::Asked(..)
    )
}

/// A wait that no process in particular can end.
pub(crate) fn no_peer(_: &LocalState) -> Option<u32> {
    None
}

/// Tells other processes that a thread waits, until it is dropped.
pub(crate) struct WaitNotice<'a> {
    log: &'a GroupLog,
    what: WaitsFor,
}

impl<'a> WaitNotice<'a> {
    pub(crate) fn begin(log: &'a GroupLog, what: WaitsFor) -> Self {
        log.waits(what, true);
        Self { log, what }
    }
}

impl Drop for WaitNotice<'_> {
    fn drop(&mut self) {
        self.log.waits(self.what, false);
    }
}
