//! A client's requests to a group's server: one message there, and where it pays one back.
//!
//! The server appends the entry, as the client would have done itself. The answer stands in the client's word of the
//! log ([`landeck_objects::group_log::Progress`]); messages only say when to look. So when the server is
//! gone, the client folds the log to its end: what was accepted is done, and the client repeats the rest at the next
//! server with the same number. A client that finds the seat empty takes it. A client whose time has passed after the
//! server began takes the seat away from the server. Then its request was accepted before that, or
//! never is.

use std::sync::atomic::Ordering;

use std::time::Duration;

use landeck_engine::{Engine, OperationId, deadline_ns};
use landeck_joining::objects::Use;
use landeck_kernel::{Area, Peer, Started};
use landeck_memory::{Buffer, Bytes, Operation, SlotState, WaitRecord};
use landeck_objects::group_log::entries::asking_details;
use landeck_objects::group_log::{Progress, WaitsFor};
use landeck_protocols::service::{Ask, Asking, GroupEntry, MemberRecord, Phase, Seat};

use crate::answer::Answer;
use crate::error::{Result, ServiceError};
use crate::group_error::GroupError;
use crate::log_copy::{FeedLink, LogCopy};
use crate::message::Broadcast;
use crate::replica::{LocalState, Replica, WaitNotice, no_peer};
use crate::server::serve;
use crate::server_client::{RequestKind, ServerClient};
use crate::time_limit::TimeLimit;

/// How long the server of another host has to say whether it has done what is taken back.
const SAYS_WITHIN: Duration = Duration::from_secs(2);

/// When a request is complete for its client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// When the server has appended its entry.
    Accepted,
    /// When the server has replied.
    Replied,
}

/// A request that was posted.
#[derive(Clone, Copy)]
pub(crate) struct PostedRequest {
    number: u32,
    /// The server that it went to, and its epoch.
    server: u32,
    epoch: u64,
}

/// The server of a group, as this process reaches it.
#[derive(Clone, Copy)]
pub(crate) struct SeatedServer {
    pub(crate) peer: u32,
    /// The context of its mailbox for requests.
    pub(crate) context: u32,
    pub(crate) epoch: u64,
}

/// The message to the server.
#[derive(Clone, Copy)]
struct RequestMessage<'a> {
    kind: RequestKind,
    head: [u64; 3],
    data: Bytes<'a>,
}

/// The turn of the one thread of this process that has a request at the server.
struct RequestTurn<'a> {
    replica: &'a Replica,
    client: &'a ServerClient,
}

impl Drop for RequestTurn<'_> {
    fn drop(&mut self) {
        self.client.is_asking.store(false, Ordering::Release);
        self.replica.log.wake_own();
    }
}

impl Replica {
    /// Requests a membership for a mailbox of this process. Returns its record, or the answer where it is no new
    /// member.
    pub(crate) fn request_to_join(
        &self,
        client: &ServerClient,
        context: u32,
        place: u64,
    ) -> Result<std::result::Result<MemberRecord, Answer>> {
        let ask = Ask::Join { context, place };
        match self.request(client, ask, Until::Replied, TimeLimit::Unlimited)?.1 {
            Answer::Joined(id) => self.with(|local| {
                let mut members = local.state.members().iter();
                let own = self.own_party(&local.state);
                let found =
                    members.find(|it| (it.id, it.context, it.process) == (id, context, own));
                found.copied().map(Ok).ok_or_else(|| self.no_member(id))
            }),
            other => Ok(Err(other)),
        }
    }

    /// Requests to leave, with copies of the broadcasts before number `kept`.
    pub(crate) fn request_to_leave(
        &self,
        client: &ServerClient,
        seat: Seat,
        kept: u64,
    ) -> Result<Answer> {
        let ask = Ask::Leave { seat, kept };
        Ok(self.request(client, ask, Until::Replied, TimeLimit::Unlimited)?.1)
    }

    /// Requests the arrival of a member at a synchronisation.
    pub(crate) fn request_sync(
        &self,
        client: &ServerClient,
        seat: Seat,
        limit: TimeLimit,
    ) -> Result<(PostedRequest, Answer)> {
        self.request(client, Ask::Sync(seat), Until::Accepted, limit)
    }

    /// Requests the group's destruction.
    pub(crate) fn request_destroy(
        &self,
        client: &ServerClient,
        limit: TimeLimit,
    ) -> Result<(PostedRequest, Answer)> {
        self.request(client, Ask::Destroy, Until::Accepted, limit)
    }

    /// Requests an entry that this process would append itself if it had the log.
    pub(crate) fn request_entry(&self, client: &ServerClient, entry: Ask) -> Result<Answer> {
        Ok(self.request(client, entry, Until::Accepted, TimeLimit::Unlimited)?.1)
    }

    /// Requests a broadcast.
    pub(crate) fn request_broadcast(
        &self,
        client: &ServerClient,
        broadcast: &Broadcast<'_>,
        limit: TimeLimit,
    ) -> Result<Answer> {
        let origin = self.with(|local| Ok(self.origin_of(&local.state, broadcast.sender)))?;
        let [process, members, _] = origin.to_words();
        let message = RequestMessage {
            kind: match broadcast.ticket {
                None => RequestKind::Broadcast,
                Some(_) => RequestKind::HeldBroadcast,
            },
            head: [process, members, u64::from(broadcast.tag)],
            data: broadcast.bytes,
        };
        let (_, answer) = self.have_done(client, |_| message, Until::Accepted, limit)?;
        if let Answer::Accepted(low) = answer {
            self.with(|local| {
                let number = Answer::nearest(local.state.broadcasts(), low);
                local.own_broadcasts.push_back(number);
                Ok(())
            })?;
        }
        Ok(answer)
    }

    /// Waits until `ready` finds something. Its argument says whether the server has replied, or is gone so that it
    /// never will.
    pub(crate) fn wait_for_reply<T>(
        &self,
        request: &PostedRequest,
        client: &ServerClient,
        limit: TimeLimit,
        mut ready: impl FnMut(&mut LocalState, bool) -> Result<Option<T>>,
    ) -> Result<T> {
        let _notice = WaitNotice::begin(&self.log, WaitsFor::Others);
        let peer = Some(request.server);
        let record = WaitRecord { operation: Operation::Group, peer, ..WaitRecord::default() };
        loop {
            let found = self.shared.wait_until(&record, limit.deadline_ns(), |engine| {
                engine.endpoint.refresh();
                let is_followed = self.follow(engine);
                let has_reply = self.has_reply(client, engine, request.number);
                let looked = self.with(|local| {
                    let is_told = has_reply || !self.is_served_in(local, request.epoch);
                    ready(local, is_told)
                });
                let looked = looked.transpose();
                looked.map(|found| found.map(Some)).or((!is_followed).then_some(Ok(None)))
            });
            match found.map_err(|error| ServiceError::of_wait(error, limit))?? {
                Some(found) => return Ok(found),
                None => self.find_server()?,
            }
        }
    }

    /// Whether a server has replied. What the server of another host tells is a reply.
    fn has_reply(&self, client: &ServerClient, engine: &mut Engine, number: u32) -> bool {
        if self.copy().is_some() {
            return true;
        }
        client.take_replies(engine);
        client.has_reply(number)
    }

    fn request(
        &self,
        client: &ServerClient,
        what: Ask,
        until: Until,
        limit: TimeLimit,
    ) -> Result<(PostedRequest, Answer)> {
        let process = self.with(|local| Ok(self.own_party(&local.state)))?;
        let message = |number| RequestMessage {
            kind: RequestKind::Ask,
            head: asking_details(&Asking { process, number, what }),
            data: Bytes::EMPTY,
        };
        self.have_done(client, message, until, limit)
    }

    /// Has the server do what a message asks for, or the next server if it is gone before that.
    fn have_done<'a>(
        &self,
        client: &ServerClient,
        message: impl Fn(u32) -> RequestMessage<'a>,
        until: Until,
        limit: TimeLimit,
    ) -> Result<(PostedRequest, Answer)> {
        let _turn = self.request_turn(client, limit)?;
        let mut server = self.server_or_seat(limit)?;
        let number = self.log.ask(server.epoch);
        loop {
            let request = PostedRequest { number, server: server.peer, epoch: server.epoch };
            let posted = self.post(client, &server, message(number), number, limit);
            let done = posted.and_then(|()| self.await_answer(client, &request, until, limit));
            match done {
                Ok(Some(answer)) => return Ok((request, answer)),
                Ok(None) => {
                    server = self.server_or_seat(limit).inspect_err(|_| {
                        self.log.withdraw(number, true);
                    })?;
                    self.log.ask_again(number, server.epoch);
                }
                Err(error) => return self.give_up(request, error),
            }
        }
    }

    /// Withdraws a request after an error. A server that has begun it may be stopped there, so it loses the seat.
    fn give_up(
        &self,
        request: PostedRequest,
        error: ServiceError,
    ) -> Result<(PostedRequest, Answer)> {
        if let Some(copy) = self.copy() {
            return self.give_up_elsewhere(copy, request, error);
        }
        if self.log.withdraw(request.number, false) {
            return Err(error);
        }
        if !matches!(self.log.progress(request.number), Progress::Answered(_)) {
            let entry = GroupEntry::Vacate { epoch: request.epoch };
            self.with(|local| self.append(local, entry, |_| Ok(())))?;
        }
        match self.log.progress(request.number) {
            Progress::Answered(bits) => Ok((request, Answer::from_bits(bits))),
            _ => {
                self.log.withdraw(request.number, true);
                Err(error)
            }
        }
    }

    /// Has the server of another host take a request back, after an error.
    fn give_up_elsewhere(
        &self,
        copy: &LogCopy,
        request: PostedRequest,
        error: ServiceError,
    ) -> Result<(PostedRequest, Answer)> {
        if !matches!(error, ServiceError::TimedOut(_)) {
            self.log.withdraw(request.number, true);
            return Err(error);
        }
        let mut engine = self.shared.engine.enter()?;
        copy.inbox().withdraw(&mut engine.endpoint, request.number);
        drop(engine);
        let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
        let answer = self.shared.wait_until(&record, deadline_ns(Some(SAYS_WITHIN)), |engine| {
            engine.endpoint.refresh();
            self.follow(engine);
            let progress = self.with(|_| Ok(self.log.progress(request.number)));
            match progress {
                Ok(Progress::Answered(bits)) => Some(Answer::from_bits(bits)),
                _ => None,
            }
        });
        match answer {
            Ok(Answer::Nothing) => Err(error),
            Ok(answer) => Ok((request, answer)),
            Err(_) => {
                self.log.withdraw(request.number, true);
                Err(self.in_doubt(copy))
            }
        }
    }

    /// Waits until no other thread of this process has a request at the server.
    fn request_turn<'a>(
        &'a self,
        client: &'a ServerClient,
        limit: TimeLimit,
    ) -> Result<RequestTurn<'a>> {
        self.wait(limit, no_peer, |_| {
            let was_asking = client.is_asking.swap(true, Ordering::AcqRel);
            Ok((!was_asking).then_some(()))
        })?;
        Ok(RequestTurn { replica: self, client })
    }

    /// The server of the group. This process becomes it where there is none any more.
    pub(crate) fn server_or_seat(&self, limit: TimeLimit) -> Result<SeatedServer> {
        if let Some(copy) = self.copy() {
            return self.server_elsewhere(copy);
        }
        self.wait(limit, no_peer, |local| {
            if let Some(server) = local.state.server() {
                // It is on this host.
                let (peer, context) = (server.who.process.slot.into(), server.who.context);
                return Ok(Some(SeatedServer { peer, context, epoch: server.epoch }));
            }
            if local.state.phase() == Phase::Ended {
                return self.check_open(&local.state).map(|()| None);
            }
            if local.state.epochs() > 0 || !self.is_first_server_there() {
                self.take_seat()?;
            }
            Ok(None)
        })
    }

    /// The server of a group of another host.
    fn server_elsewhere(&self, copy: &LogCopy) -> Result<SeatedServer> {
        self.find_server()?;
        let FeedLink { peer, context, epoch, is_cut, .. } = copy.inbox().link();
        if is_cut {
            return Err(self.destroyed());
        }
        Ok(SeatedServer { peer, context, epoch })
    }

    /// Orders the server thread of this process to take the seat.
    pub(crate) fn take_seat(&self) -> Result<()> {
        let Some(number) = self.object().map(Use::number) else { return Ok(()) };
        let ordered = self.server_handle.serve(&self.shared, &self.name, number, serve);
        ordered.map_err(|why| GroupError::NoServer { group: self.name.clone(), why }.into())
    }

    /// Takes the seat if the group was made to be served by this process first.
    pub(crate) fn serve_first(&self) -> Result<()> {
        let is_new =
            self.with(|local| Ok(local.state.epochs() == 0 && local.state.phase() == Phase::Open))?;
        if is_new && self.options.first_server() == Some(self.shared.slot) {
            self.take_seat()?;
            self.server_or_seat(TimeLimit::Unlimited)?;
        }
        Ok(())
    }

    fn is_first_server_there(&self) -> bool {
        let slot = self.options.first_server();
        let slots = self.shared.segment.plan().slots();
        slot.is_some_and(|slot| {
            slot < slots && self.shared.segment.slot_record(slot).state == SlotState::Alive
        })
    }

    /// Posts a message to the server. Whether it arrives, the log says.
    fn post(
        &self,
        client: &ServerClient,
        server: &SeatedServer,
        message: RequestMessage<'_>,
        number: u32,
        limit: TimeLimit,
    ) -> Result<()> {
        let RequestMessage { kind, head: [first, second, third], data } = message;
        let head = [first, second, third, u64::from(client.context)];
        // SAFETY: the request is complete, or abandoned, before this function returns.
        let head = Area::contiguous(unsafe { Buffer::of(&head) });
        // SAFETY: as above.
        let data = unsafe { Buffer::new(data.start(), data.len()) };
        let area = Area::joined([head, Area::contiguous(data)]);
        let (to, context) = (Peer(server.peer), server.context);
        let started =
            self.shared.engine.enter()?.endpoint.send(to, context, kind.tag(number), area);
        // A server that is gone is found in the log.
        let Ok(Started::Pending(id)) = started else { return Ok(()) };
        let record =
            WaitRecord { operation: Operation::Group, peer: Some(to.0), ..WaitRecord::default() };
        let sent = self.shared.wait_until(&record, limit.deadline_ns(), |engine| {
            engine.endpoint.refresh();
            if engine.take(OperationId::from(id)).is_some() {
                return Some(Ok(true));
            }
            self.follow(engine);
            let is_served = self.with(|local| Ok(self.is_served_in(local, server.epoch)));
            is_served.map(|is_served| (!is_served).then_some(false)).transpose()
        });
        if !matches!(sent, Ok(Ok(true))) {
            self.shared.engine.enter()?.abandon(id.into());
        }
        sent.map_err(|error| ServiceError::of_wait(error, limit))?.map(drop)
    }

    /// Whether the server of this epoch serves.
    fn is_served_in(&self, local: &LocalState, epoch: u64) -> bool {
        match self.copy().map(|copy| copy.inbox().link()) {
            Some(link) => link.epoch == epoch && !link.is_cut,
            None => local.state.server().is_some_and(|server| server.epoch == epoch),
        }
    }

    /// Waits for the answer to a request; none when its server is gone and has not done it.
    fn await_answer(
        &self,
        client: &ServerClient,
        request: &PostedRequest,
        until: Until,
        limit: TimeLimit,
    ) -> Result<Option<Answer>> {
        self.wait_for_reply(request, client, limit, |local, is_told| {
            let is_gone = !self.is_served_in(local, request.epoch);
            Ok(match self.log.progress(request.number) {
                Progress::Answered(bits) => {
                    let answer = Answer::from_bits(bits);
                    // A refusal comes without a reply.
                    let is_complete =
                        is_told || until == Until::Accepted || answer == Answer::NotNow;
                    is_complete.then_some(Some(answer))
                }
                _ => is_gone.then_some(None),
            })
        })
    }
}
