//! Sending to a group: waiting for room, and eviction.

use std::time::Duration;

use landeck_memory::system::now_ns;
use landeck_objects::group_log::{CELL_BYTES, Claim};
use landeck_protocols::service::{GroupEntry, MemberRecord, Outcome, Phase, State};

use crate::answer::Answer;
use crate::error::{Result, ServiceError};
use crate::group_error::GroupError;
use crate::log_copy::LogCopy;
use crate::message::{Broadcast, Outgoing, Sender, SharedValues};
use crate::options::WhenFull;
use crate::origin::Origin;
use crate::replica::{Accepted, LocalState, Replica};
use crate::server_client::ServerClient;
use crate::time_limit::TimeLimit;

/// Messages up to this length are copied while no other thread of the process uses the group.
const COPIED_INSIDE: u64 = 64 << 10;

/// Longer messages are not copied out for their own sender, which has the values.
pub(crate) const SHARED_FROM: u64 = 4 << 10;

/// How long the server has to answer a call that may not wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The result of an attempt to broadcast.
enum SendAttempt {
    Accepted,
    NotStarted,
    NoRoom,
}

/// A broadcast that waits for room. The log shows it until this is dropped.
struct HeldBroadcast<'a> {
    replica: &'a Replica,
    ticket: u64,
}

impl Replica {
    /// Sends a message to all members; returns when the log has accepted it.
    ///
    /// # Errors
    /// [`GroupError::NoMember`], [`GroupError::MinimumNotReached`], [`GroupError::Full`], [`GroupError::TooLong`],
    /// [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`GroupError::NoServer`], [`GroupError::Broken`],
    /// [`ServiceError::TimedOut`], [`ServiceError::WouldBlock`], [`ServiceError::Ended`], [`ServiceError::Thread`].
    pub fn broadcast(
        &self,
        message: &Outgoing<'_>,
        sender: Sender,
        limit: TimeLimit,
    ) -> Result<()> {
        self.catch_up(limit)?;
        let broadcast = Broadcast { tag: message.tag, bytes: message.bytes, sender, ticket: None };
        let length = broadcast.length();
        self.check_length(length)?;
        loop {
            let sent = match &self.server_client {
                Some(client) => self.try_by_server(client, &broadcast, limit)?,
                None if length > COPIED_INSIDE => self.try_long(&broadcast)?,
                None if length > SHARED_FROM => self.try_shared(&broadcast, message.share)?,
                None => self.with_prepared_lines(|local| self.try_short(local, &broadcast))?,
            };
            match sent {
                SendAttempt::Accepted => return Ok(()),
                SendAttempt::NotStarted => self.wait_started(limit)?,
                SendAttempt::NoRoom => return self.broadcast_held(broadcast, limit),
            }
        }
    }

    /// Waits until all broadcasts that were accepted so far are in all mailboxes. Without a server they are there as
    /// soon as they are accepted.
    ///
    /// # Errors
    /// [`ServiceError::TimedOut`], [`GroupError::Destroying`], [`GroupError::GroupDestroyed`], [`GroupError::Broken`],
    /// [`ServiceError::Ended`], [`ServiceError::Thread`].
    pub fn wait_delivered(&self, limit: TimeLimit) -> Result<()> {
        if let Some(copy) = self.copy() {
            self.look_at_home(copy, limit, true)?;
        }
        let (accepted, is_told) = self.with(|local| {
            self.check_open(&local.state)?;
            Ok((local.state.broadcasts(), self.server_client.is_some() || self.has_far(local)))
        })?;
        if !is_told {
            return Ok(());
        }
        let server = |local: &LocalState| {
            let state = &local.state;
            state.server().and_then(|server| self.peer(state, server.who.process))
        };
        self.wait(limit, server, |local| {
            // Members of the log's host find by themselves what was accepted by a server that is gone.
            let found = if self.has_far(local) { 0 } else { local.state.unserved() };
            if found.max(self.log.sent_on()) >= accepted {
                return Ok(Some(()));
            }
            self.check_not_destroyed(&local.state).map(|()| None)
        })
    }

    /// Whether some member is not on the log's host, as far as this process can tell.
    fn has_far(&self, local: &LocalState) -> bool {
        let is_far = |member: &MemberRecord| !self.is_near(&local.state, member.process);
        self.copy().is_some() || local.state.members().iter().any(is_far)
    }

    /// Tries to send a short message whose values the sender's own mailbox gets without a copy.
    #[inline(never)]
    fn try_shared(
        &self,
        broadcast: &Broadcast<'_>,
        share: &dyn Fn() -> Option<SharedValues>,
    ) -> Result<SendAttempt> {
        self.with_prepared_lines(|local| {
            let sent = self.try_short(local, broadcast)?;
            if broadcast.sender.receives()
                && matches!(sent, SendAttempt::Accepted)
                && let Some(values) = share()
            {
                let number = local.own_broadcasts.back();
                local.kept_values = number.map(|&number| (number, values));
            }
            Ok(sent)
        })
    }

    /// The values of a broadcast of this process, if they are kept. A second reader of them reads the group's memory.
    pub(crate) fn take_values(&self, number: u64) -> Option<SharedValues> {
        let mut local = self.local.enter_in_turn().ok()?;
        let kept = local.kept_values.take_if(|(kept, _)| *kept == number)?;
        Some(kept.1)
    }

    /// Tries to send a short message, while no other thread of this process uses the group.
    fn try_short(&self, local: &mut LocalState, broadcast: &Broadcast<'_>) -> Result<SendAttempt> {
        self.may_send(local, broadcast)?;
        if !local.state.has_started() {
            return Ok(SendAttempt::NotStarted);
        }
        if !self.has_room(local) {
            return Ok(SendAttempt::NoRoom);
        }
        let claim = self.claim_for_message(local, broadcast.length())?;
        let Some(claim) = claim else { return Ok(SendAttempt::NoRoom) };
        self.fill(local, &claim, broadcast);
        let entry = GroupEntry::Broadcast { was_held: false, by: None };
        let accepted = self.accept(local, entry, Some(&claim))?;
        if let Some(Accepted { outcome: Outcome::Broadcast(number), .. }) = accepted {
            claim.end();
            local.own_broadcasts.push_back(number);
            return Ok(SendAttempt::Accepted);
        }
        // Another process was first.
        self.append_message(local, claim, broadcast)
    }

    /// Tries to send a long message, which is copied while other threads of this process may use the group.
    fn try_long(&self, broadcast: &Broadcast<'_>) -> Result<SendAttempt> {
        if !self.may_begin(broadcast)? {
            return Ok(SendAttempt::NotStarted);
        }
        let claim = self.with(|local| {
            self.may_send(local, broadcast)?;
            match self.has_room(local) {
                true => self.claim(local, broadcast.length()),
                false => Ok(None),
            }
        })?;
        match claim {
            Some(claim) => self.fill_and_append(claim, broadcast),
            None => Ok(SendAttempt::NoRoom),
        }
    }

    /// Tries to send a message of any length by the server.
    fn try_by_server(
        &self,
        client: &ServerClient,
        broadcast: &Broadcast<'_>,
        limit: TimeLimit,
    ) -> Result<SendAttempt> {
        if !self.may_begin(broadcast)? {
            return Ok(SendAttempt::NotStarted);
        }
        match limit {
            TimeLimit::Now => {
                match self.request_if_room(client, broadcast, TimeLimit::within(ANSWER_WITHIN)) {
                    Err(ServiceError::TimedOut(_)) => Err(ServiceError::WouldBlock),
                    sent => sent,
                }
            }
            limit => self.request_if_room(client, broadcast, limit),
        }
    }

    /// Requests a broadcast from the server, if there is room.
    fn request_if_room(
        &self,
        client: &ServerClient,
        broadcast: &Broadcast<'_>,
        limit: TimeLimit,
    ) -> Result<SendAttempt> {
        let has_room = self.with(|local| {
            self.may_send(local, broadcast)?;
            Ok(self.has_room(local))
        })?;
        if !has_room {
            return Ok(SendAttempt::NoRoom);
        }
        match self.request_broadcast(client, broadcast, limit)? {
            Answer::Accepted(_) => Ok(SendAttempt::Accepted),
            Answer::NotNow => Ok(SendAttempt::NoRoom),
            _ => {
                self.catch_up(TimeLimit::Unlimited)?;
                Err(self.with(|local| Ok(self.why_refused(local)))?)
            }
        }
    }

    fn check_length(&self, bytes: u64) -> Result<()> {
        let most = self.log.shape().bytes().max(CELL_BYTES as u64);
        if bytes > most {
            return Err(GroupError::TooLong { group: self.name.clone(), bytes, most }.into());
        }
        Ok(())
    }

    /// Whether the group has started, for a sender that may send.
    fn may_begin(&self, broadcast: &Broadcast<'_>) -> Result<bool> {
        self.with(|local| {
            self.may_send(local, broadcast)?;
            Ok(local.state.has_started())
        })
    }

    /// Checks that a broadcast may be sent now. A held one may finish while the group is being destroyed.
    fn may_send(&self, local: &LocalState, broadcast: &Broadcast<'_>) -> Result<()> {
        let state = &local.state;
        if let Some(ticket) = broadcast.ticket {
            let is_held = || state.held().iter().any(|held| held.ticket == ticket);
            return match state.phase() {
                Phase::Destroying if is_held() => Ok(()),
                _ => self.check_not_destroyed(state),
            };
        }
        self.check_open(state)?;
        match broadcast.sender {
            Sender::Member { seat, .. } if state.member(seat).is_none() => {
                Err(self.no_member(seat.id))
            }
            _ => Ok(()),
        }
    }

    /// Why an accepted entry was no broadcast.
    fn why_refused(&self, local: &LocalState) -> ServiceError {
        self.check_not_destroyed(&local.state).err().unwrap_or(ServiceError::WouldBlock)
    }

    /// Fills a message's memory and appends the message, if there is room by then.
    fn fill_and_append(&self, claim: Claim<'_>, broadcast: &Broadcast<'_>) -> Result<SendAttempt> {
        let is_long = broadcast.length() > COPIED_INSIDE;
        if is_long {
            claim.fill_part(broadcast.length(), 0, broadcast.bytes);
        }
        self.with(|local| {
            match is_long {
                true => {
                    let origin = self.origin_of(&local.state, broadcast.sender);
                    claim.describe(broadcast.tag, origin.to_words(), broadcast.length());
                }
                false => self.fill(local, &claim, broadcast),
            }
            self.append_message(local, claim, broadcast)
        })
    }

    fn fill(&self, local: &LocalState, claim: &Claim<'_>, broadcast: &Broadcast<'_>) {
        let origin = self.origin_of(&local.state, broadcast.sender);
        claim.fill(broadcast.tag, origin.to_words(), broadcast.bytes);
    }

    /// Appends a message whose memory is filled, if there is room.
    fn append_message(
        &self,
        local: &mut LocalState,
        claim: Claim<'_>,
        broadcast: &Broadcast<'_>,
    ) -> Result<SendAttempt> {
        let was_held = broadcast.ticket.is_some();
        let entry = GroupEntry::Broadcast { was_held, by: None };
        let accepted =
            self.append_with(local, entry, Some(&claim), |local| match self.has_room(local) {
                true => self.may_send(local, broadcast).map(|()| true),
                false => Ok(false),
            })?;
        match accepted {
            None => Ok(SendAttempt::NoRoom),
            Some(Accepted { outcome: Outcome::Broadcast(number), .. }) => {
                claim.end();
                local.own_broadcasts.push_back(number);
                Ok(SendAttempt::Accepted)
            }
            Some(_) => Err(self.why_refused(local)),
        }
    }

    /// The origin of a broadcast of this process.
    pub(crate) fn origin_of(&self, state: &State, sender: Sender) -> Origin {
        let (sender, left_out) = (sender.id(), sender.left_out());
        Origin { process: self.own_party(state), sender, left_out, request: None }
    }

    /// Sends a message that found no room, as the group was made to do.
    #[cold]
    fn broadcast_held(&self, broadcast: Broadcast<'_>, limit: TimeLimit) -> Result<()> {
        if limit == TimeLimit::Now || self.options.full() == WhenFull::Refuse {
            return Err(self.full()?);
        }
        let Some(held) = self.hold()? else { return Err(self.full()?) };
        let broadcast = Broadcast { ticket: Some(held.ticket), ..broadcast };
        loop {
            let claim = self.wait_for_room(&broadcast, limit)?;
            let sent = match (&self.server_client, claim) {
                (None, Some(claim)) => self.fill_and_append(claim, &broadcast)?,
                (Some(client), claim) => {
                    // The server claims memory itself; this claim only showed that there is some.
                    drop(claim);
                    self.request_if_room(client, &broadcast, limit)?
                }
                (None, None) => return Err(self.log_refuses()),
            };
            if let SendAttempt::Accepted = sent {
                return Ok(());
            }
        }
    }

    /// Waits for room, and claims it where the log lies here.
    fn wait_for_room(
        &self,
        broadcast: &Broadcast<'_>,
        limit: TimeLimit,
    ) -> Result<Option<Claim<'_>>> {
        loop {
            let (until, evicts) = self.room_limit(limit);
            let slowest = |local: &LocalState| {
                let first = self.slowest(local).members.first()?.process;
                self.peer(&local.state, first)
            };
            let waited = self.wait(until, slowest, |local| {
                self.may_send(local, broadcast)?;
                if let Some(copy) = self.copy() {
                    return self.has_new_room(copy, local).map(|has_room| has_room.then_some(None));
                }
                let claim = match self.has_room(local) {
                    true => self.claim(local, broadcast.length())?,
                    false => None,
                };
                if claim.is_none() {
                    self.report_no_room(local);
                    if self.blocks_itself(local) {
                        return Err(self.full_now(local));
                    }
                }
                Ok(claim.map(Some))
            });
            match waited {
                Err(ServiceError::TimedOut(_)) if evicts => self.evict_slowest()?,
                Err(ServiceError::TimedOut(_)) => return Err(self.full()?),
                other => return other,
            }
        }
    }

    /// Whether there may be room since the server of another host had none.
    fn has_new_room(&self, copy: &LogCopy, local: &mut LocalState) -> Result<bool> {
        let has_room = self.has_room(local);
        let passed = local.passed.messages;
        let is_new = passed > copy.refused_at() || passed == local.state.broadcasts();
        match has_room && is_new {
            false if self.blocks_itself(local) => Err(self.full_now(local)),
            has_room => Ok(has_room),
        }
    }

    /// How long to wait for room, and whether the slowest members are evicted then.
    fn room_limit(&self, limit: TimeLimit) -> (TimeLimit, bool) {
        let WhenFull::Evict(time) = self.options.full() else { return (limit, false) };
        let evict_ns = now_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        match limit.deadline_ns() {
            Some(own_ns) if own_ns <= evict_ns => (limit, false),
            _ => (TimeLimit::Within { deadline_ns: evict_ns, time }, true),
        }
    }

    fn evict_slowest(&self) -> Result<()> {
        if self.copy().is_some() {
            let slowest = self.with(|local| Ok(self.slowest(local).members))?;
            let evict = |seat| self.put(GroupEntry::Evict(seat), |_| Ok(())).map(drop);
            return slowest.iter().map(MemberRecord::seat).try_for_each(evict);
        }
        self.with(|local| {
            for member in self.slowest(local).members {
                self.append(local, GroupEntry::Evict(member.seat()), |_| Ok(()))?;
            }
            Ok(())
        })
    }

    /// Records in the log that a broadcast is held; none when too many are.
    fn hold(&self) -> Result<Option<HeldBroadcast<'_>>> {
        let own = self.with(|local| Ok(self.own_party(&local.state)))?;
        match self.put(GroupEntry::Hold(own), |local| self.check_open(&local.state))? {
            Answer::Held(low) => {
                let ticket = self.with(|local| Ok(Answer::nearest(local.state.position(), low)))?;
                self.log.is_held(true);
                Ok(Some(HeldBroadcast { replica: self, ticket }))
            }
            _ => Ok(None),
        }
    }

    #[cold]
    fn full(&self) -> Result<ServiceError> {
        self.with(|local| Ok(self.full_now(local)))
    }

    fn full_now(&self, local: &LocalState) -> ServiceError {
        let slowest = self.slowest(local);
        let (members, waiting) = (slowest.ids(), slowest.waiting);
        GroupError::Full { group: self.name.clone(), members, waiting }.into()
    }
}

impl Drop for HeldBroadcast<'_> {
    fn drop(&mut self) {
        let Self { replica, ticket } = *self;
        replica.log.is_held(false);
        // Where the group is broken, no process waits for this.
        let is_held =
            replica.with(|local| Ok(local.state.held().iter().any(|held| held.ticket == ticket)));
        if is_held.unwrap_or(false) {
            let _ = replica.put(GroupEntry::Release { ticket }, |_| Ok(()));
        }
    }
}
