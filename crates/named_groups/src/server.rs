//! The server of groups that were made to have one: a thread that appends what clients ask for.
//!
//! A process has one such thread for all groups that it serves. The thread is a guest of the job with an endpoint of
//! its own, so it does not depend on the thread mode and waits for no other thread's calls. It appends to the log
//! like any process; its only private state is which clients await replies. It waits for no client and no member:
//! messages that cannot be sent at once go on in their requests, and members that do not retrieve hold their senders.
//! A long broadcast is copied in pieces, with other requests in between.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use landeck_engine::{Engine, OperationId, Shared};
use landeck_joining::objects::{self, Name, ObjectError, ObjectKind};
use landeck_kernel::{Area, Peer, Received, Started, Wanted};
use landeck_memory::plain::bytes_of_mut;
use landeck_memory::{Buffer, Operation, WaitRecord};
use landeck_objects::group_log::entries::asking_of;
use landeck_objects::group_log::{Aside, Claim, WaitsFor};
use landeck_protocols::service::{
    Ask, Asking, GroupEntry, MemberRecord, Outcome, Party, Phase, Serving,
};

use crate::answer::Answer;
use crate::error::Result;
use crate::follower::Follower;
use crate::log_copy::words_of;
use crate::origin::{Origin, RequestId};
use crate::replica::{Accepted, LocalState, Replica};
use crate::server_client::{Forwarded, RequestKind, bytes_of, open_context};
use crate::server_handle::{Order, ServerHandle, ServerShared, lock};

mod other_hosts;

/// Words in front of a request's data.
const HEAD_WORDS: usize = 4;
const HEAD_BYTES: usize = 8 * HEAD_WORDS;
/// Bytes of a broadcast that are copied at a time.
const PIECE_BYTES: usize = 256 << 10;

struct Server<'a> {
    shared: &'a Arc<Shared>,
    server_handle: &'a Arc<ServerHandle>,
    control: &'a ServerShared,
    /// The contexts of the messages that have arrived, one for each message.
    arrivals: Arc<Mutex<VecDeque<u32>>>,
    /// The served groups, by the contexts in which requests arrive.
    groups: HashMap<u32, ServedGroup>,
    receiving: Vec<Receiving>,
    sending: Vec<Sending>,
    /// Broadcasts of which members are being told, or were since this was last published.
    forwarding: Vec<Forwarding>,
    unfinished: Vec<UnfinishedBroadcast>,
}

/// A request that is being received.
struct Receiving {
    context: u32,
    id: OperationId,
}

/// A message that is being sent: a notice to a member, or a reply.
struct Sending {
    id: OperationId,
    /// The words of the message, which the request reads.
    words: Option<Box<[u64; 2]>>,
    /// Whether they are a notice.
    is_notice: bool,
}

/// A received request.
struct ReceivedRequest {
    context: u32,
    peer: u32,
    tag: u32,
    data: Received,
}

/// A broadcast that is being copied into the memory of its group.
struct UnfinishedBroadcast {
    context: u32,
    aside: Aside,
    received: Received,
    copied: usize,
    origin: Origin,
    client: Client,
    was_held: bool,
}

/// A broadcast of which members are being told.
#[derive(Clone, Copy)]
struct Forwarding {
    context: u32,
    notice: Forwarded,
}

/// A group that this process serves.
struct ServedGroup {
    replica: Arc<Replica>,
    epoch: u64,
    /// The position in the log at the last look.
    seen: u64,
    /// Clients that await the end of a synchronisation.
    syncing: Vec<SyncingClient>,
    /// Clients that await the end of the group.
    destroying: Vec<Client>,
    /// Clients on other hosts.
    followers: Vec<Follower>,
    /// There was such a client, so each broadcast of this host's processes wakes the server.
    has_fed: bool,
    /// The held broadcasts of other hosts, when this server looked last.
    far_held: usize,
    /// The number of the name by which other hosts find the group.
    name: Option<u64>,
    /// The group has ended, or has another server: only followers are told so.
    is_over: bool,
}

/// A client that awaits a reply.
#[derive(Clone, Copy)]
pub(super) struct Client {
    process: Party,
    peer: u32,
    context: u32,
    number: u32,
}

/// A client that awaits the end of a round.
#[derive(Clone, Copy)]
struct SyncingClient {
    client: Client,
    round: u64,
}

/// An accepted broadcast, and the members of this host.
struct AcceptedBroadcast {
    number: u64,
    members: Vec<MemberRecord>,
}

/// Serves groups as a guest of the job, until the process that has started the thread ends it.
pub(crate) fn serve(
    control: &ServerShared,
    shared: &Arc<Shared>,
    server_handle: &Arc<ServerHandle>,
) {
    let server = Server {
        shared,
        server_handle,
        control,
        arrivals: Arc::default(),
        groups: HashMap::new(),
        receiving: Vec::new(),
        sending: Vec::new(),
        forwarding: Vec::new(),
        unfinished: Vec::new(),
    };
    server.run();
}

impl Server<'_> {
    fn run(mut self) {
        let shared = self.shared;
        let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
        loop {
            let ended = shared.wait_until(&record, None, |engine| {
                engine.endpoint.refresh();
                self.look_beside_long_broadcasts(engine);
                self.has_work(engine).then_some(())
            });
            if ended.is_err() || self.control.is_ending() {
                break;
            }
            // A broken group reports itself to its clients.
            let _ = self.work();
        }
        self.finish_feeds();
        self.release_all();
    }

    /// Looks for requests of other hosts while long broadcasts are received and copied. The wait does not: there is always
    /// another piece.
    fn look_beside_long_broadcasts(&self, engine: &mut Engine) {
        if !(self.receiving.is_empty() && self.unfinished.is_empty()) {
            engine.progress_thoroughly();
        }
    }

    fn has_work(&self, engine: &Engine) -> bool {
        self.control.is_ending()
            || self.control.has_orders()
            || !lock(&self.arrivals).is_empty()
            || !self.unfinished.is_empty()
            || self.forwarding.iter().any(|it| self.is_delivered(it))
            || self.receiving.iter().any(|it| engine.is_done(it.id))
            || self.sending.iter().any(|it| engine.is_done(it.id))
            || self.groups.values().any(ServedGroup::has_news)
            || self.has_feeds(engine)
    }

    fn work(&mut self) -> Result<()> {
        for order in self.control.take_orders() {
            if let Err(error) = self.acquire_lease(&order) {
                self.control.fail(order.number, error.to_string());
            }
            self.control.wake_client();
        }
        self.start_receiving()?;
        for request in self.received()? {
            self.handle(request)?;
        }
        for unfinished in std::mem::take(&mut self.unfinished) {
            self.copy_piece(unfinished)?;
        }
        let mut engine = self.shared.engine.enter()?;
        self.sending.retain(|it| engine.take(it.id).is_none());
        drop(engine);
        self.publish_forwarded();
        let contexts: Vec<u32> = self.groups.keys().copied().collect();
        contexts.into_iter().try_for_each(|context| self.finish_requests(context))?;
        self.feed_followers()
    }

    /// Publishes up to which broadcast all members have been told.
    fn publish_forwarded(&mut self) {
        let (done, rest) = self.forwarding.iter().partition(|it| self.is_delivered(it));
        self.forwarding = rest;
        for Forwarding { context, notice } in done {
            // Members of a group whose seat was lost find the messages by themselves.
            if let Some(served) = self.groups.get(&context) {
                served.replica.log.set_sent_on(notice.message + 1);
                served.replica.wake(WaitsFor::Others);
            }
        }
    }

    /// Whether all members have a broadcast, or were told of it.
    fn is_delivered(&self, forwarding: &Forwarding) -> bool {
        let Forwarding { context, notice } = *forwarding;
        let has_message = |served: &ServedGroup| served.followers_have(notice.message);
        self.is_forwarded(notice) && self.groups.get(&context).is_none_or(has_message)
    }

    /// Whether no notice of this broadcast, or of an earlier one, is on its way to a member.
    fn is_forwarded(&self, of: Forwarded) -> bool {
        let notices = self.sending.iter().filter(|it| it.is_notice);
        let mut notices = notices.filter_map(|it| it.words.as_deref());
        !notices.any(|&[group, message]| group == of.group && message <= of.message)
    }

    /// Takes the seat of a group, if it is free.
    fn acquire_lease(&mut self, order: &Order) -> Result<()> {
        let is_it = |served: &ServedGroup| served.is_of(order.number);
        let had = self.groups.iter().find(|(_, served)| is_it(served)).map(|(&context, _)| context);
        if let Some(context) = had {
            // A client may have taken the seat away.
            self.finish_requests(context)?;
            if self.groups.get(&context).is_some_and(|served| !served.is_over) {
                return Ok(());
            }
        }
        self.finish_namesakes(&order.name)?;
        let name = Name::new(&order.name).map_err(ObjectError::from)?;
        let (shared, process) = (self.shared, self.shared.process());
        let memory = objects::open_number(process, ObjectKind::Group, order.number)?;
        let replica = Replica::open(shared, self.server_handle, &name, memory)?;
        if replica.with(|local| Ok(local.state.server().is_some()))? {
            return Ok(());
        }
        let context = open_context(shared)?;
        let arrivals = self.arrivals.clone();
        let arrival = Box::new(move || lock(&arrivals).push_back(context));
        shared.engine.enter()?.endpoint.watch_mailbox(context, arrival);
        let name = self.publish(&replica, context, &name)?;
        let seated = replica.with(|local| {
            let process = replica.own_party(&local.state);
            let entry = GroupEntry::Serve(Serving { process, context });
            replica.append(local, entry, |_| Ok(()))
        })?;
        let Accepted { outcome: Outcome::Seated(epoch), .. } = seated else {
            shared.engine.enter()?.endpoint.close_mailbox(context);
            self.withdraw_name(name);
            return Ok(());
        };
        replica.log.waits(WaitsFor::Others, true);
        self.groups.insert(context, ServedGroup::new(replica, epoch, name));
        Ok(())
    }

    /// Releases all seats.
    fn release_all(&mut self) {
        for (context, mut served) in std::mem::take(&mut self.groups) {
            self.release(context, &mut served);
        }
        if let Ok(mut engine) = self.shared.engine.enter() {
            // Members find by themselves the messages of which they were not told.
            self.sending.drain(..).for_each(|it| engine.abandon(it.id));
            self.receiving.drain(..).for_each(|it| engine.abandon(it.id));
        }
    }

    fn release(&self, context: u32, served: &mut ServedGroup) {
        let replica = &served.replica;
        let entry = GroupEntry::Vacate { epoch: served.epoch };
        // A process that finds this one gone appends the entry as well.
        let _ = replica.with(|local| replica.append(local, entry, |_| Ok(())));
        replica.log.waits(WaitsFor::Others, false);
        if served.has_fed {
            replica.log.waits(WaitsFor::Messages, false);
        }
        (0..served.far_held).for_each(|_| replica.log.is_held(false));
        self.withdraw_name(served.name);
        if let Ok(mut engine) = self.shared.engine.enter() {
            engine.endpoint.close_mailbox(context);
            served.followers.iter_mut().for_each(|follower| follower.give_up(&mut engine));
        }
    }

    /// Starts to receive the requests that have arrived.
    fn start_receiving(&mut self) -> Result<()> {
        let arrivals = std::mem::take(&mut *lock(&self.arrivals));
        let mut engine = self.shared.engine.enter()?;
        for context in arrivals {
            let wanted = Wanted { context, source: None, tag: None };
            if self.groups.contains_key(&context) && engine.endpoint.probe(wanted).is_some() {
                let id = engine.endpoint.receive_own(wanted).into();
                self.receiving.push(Receiving { context, id });
            }
        }
        Ok(())
    }

    /// The requests that have been received.
    fn received(&mut self) -> Result<Vec<ReceivedRequest>> {
        let mut engine = self.shared.engine.enter()?;
        let mut received = Vec::new();
        self.receiving.retain(|&Receiving { context, id }| match engine.take(id) {
            None => true,
            // A client that died during the request gets no answer.
            Some(Err(_)) => false,
            Some(Ok(completion)) => {
                if let (Ok(status), Some(data)) = (completion.result, completion.data) {
                    let (peer, tag) = (status.peer.0, status.tag);
                    received.push(ReceivedRequest { context, peer, tag, data });
                }
                false
            }
        });
        Ok(received)
    }

    fn handle(&mut self, request: ReceivedRequest) -> Result<()> {
        let ReceivedRequest { context, peer, tag, data: received } = request;
        let bytes = bytes_of(&received);
        let mut head = [0u64; HEAD_WORDS];
        let is_whole = bytes.copy_to_slice(bytes_of_mut(&mut head)) == HEAD_BYTES;
        let [first, second, third, reply_context] = head;
        let Some((kind, number)) = RequestKind::of_tag(tag) else { return Ok(()) };
        // A client that is gone needs nothing any more.
        if !(is_whole && self.is_its_own(peer, first)) {
            return Ok(());
        }
        let Some(process) = self.party_of(context, peer)? else { return Ok(()) };
        let client = Client { process, peer, context: reply_context as u32, number };
        let first = process.to_word();
        match kind {
            RequestKind::Follow | RequestKind::Delivered | RequestKind::Withdraw => {
                let more = words_of(&received).split_off(HEAD_WORDS);
                return self.hear_follower(context, client, kind, ([second, third], &more));
            }
            RequestKind::Ask | RequestKind::Broadcast | RequestKind::HeldBroadcast => {
                if self.was_answered(context, client)? {
                    return Ok(());
                }
            }
        }
        let Some(served) = self.groups.get(&context) else { return Ok(()) };
        if kind == RequestKind::Ask {
            return match asking_of([first, second, third]) {
                Some(asking) if asking.number == number => {
                    self.append_asked(context, client, &asking)
                }
                _ => Ok(()),
            };
        }
        let origin = Origin { request: Some(number), ..Origin::from_words([first, second, 0]) };
        let length = (bytes.len() - HEAD_BYTES) as u64;
        let Some(aside) = served.claim(origin, third as u32, length)? else {
            return self.tell_refusal(context, client);
        };
        let was_held = kind == RequestKind::HeldBroadcast;
        self.copy_piece(UnfinishedBroadcast {
            context,
            aside,
            received,
            copied: 0,
            origin,
            client,
            was_held,
        })
    }

    /// Copies a piece of a broadcast. After the last piece it is appended and forwarded.
    fn copy_piece(&mut self, mut unfinished: UnfinishedBroadcast) -> Result<()> {
        let Some(served) = self.groups.get(&unfinished.context) else { return Ok(()) };
        let data = bytes_of(&unfinished.received);
        let (length, copied) = (data.len() - HEAD_BYTES, unfinished.copied);
        let piece = data.part(HEAD_BYTES + copied, PIECE_BYTES.min(length - copied));
        unfinished.copied += piece.len();
        let claim = served.replica.log.take_up(unfinished.aside);
        claim.fill_part(length as u64, copied as u64, piece);
        if unfinished.copied < length {
            unfinished.aside = claim.put_aside();
            self.unfinished.push(unfinished);
            return Ok(());
        }
        let UnfinishedBroadcast { context, origin, client, was_held, .. } = unfinished;
        let accepted = served.append_broadcast(&claim, origin, was_held)?;
        let Some(AcceptedBroadcast { number, members }) = accepted else {
            drop(claim);
            return self.tell_refusal(context, client);
        };
        claim.end();
        let is_direct = served.replica.server_client.is_none();
        let group = served.replica.number();
        self.note_accepted(context, client, number);
        // Members of this host read it by themselves, or are told.
        if is_direct {
            return Ok(());
        }
        let notice = Forwarded { group, message: number };
        self.forwarding.push(Forwarding { context, notice });
        self.forward(notice, origin.left_out, &members)
    }

    /// Appends a request that is not a broadcast.
    fn append_asked(&mut self, context: u32, client: Client, asking: &Asking) -> Result<()> {
        let Some(served) = self.groups.get_mut(&context) else { return Ok(()) };
        let Some(outcome) = served.append_asked(asking)? else {
            return self.tell_refusal(context, client);
        };
        if client.peer >= self.shared.segment.plan().slots() {
            return Ok(());
        }
        match (asking.what, outcome) {
            (Ask::Sync(_), Outcome::Come(round)) => {
                served.syncing.push(SyncingClient { client, round });
            }
            (Ask::Destroy, Outcome::Destroying) => served.destroying.push(client),
            (_, Outcome::Stale) => {}
            (Ask::Join { .. } | Ask::Leave { .. }, _) => self.reply(client)?,
            _ => {}
        }
        Ok(())
    }

    fn reply(&mut self, client: Client) -> Result<()> {
        self.post((client.peer, client.context), client.number, None, false)
    }

    /// Tells the members of a broadcast, but for the one that is left out.
    fn forward(
        &mut self,
        notice: Forwarded,
        left_out: Option<u32>,
        members: &[MemberRecord],
    ) -> Result<()> {
        for member in members.iter().filter(|member| Some(member.id) != left_out) {
            let to = (member.process.slot.into(), member.context);
            let words = Some(notice.to_words());
            self.post(to, Forwarded::TAG, words, true)?;
        }
        Ok(())
    }

    fn post(
        &mut self,
        (peer, context): (u32, u32),
        tag: u32,
        words: Option<[u64; 2]>,
        is_notice: bool,
    ) -> Result<()> {
        let words = words.map(Box::new);
        let area = match &words {
            // SAFETY: the words are on the heap, and kept until the request is taken or abandoned.
            Some(words) => Area::contiguous(unsafe { Buffer::of(&words[..]) }),
            None => Area::EMPTY,
        };
        let started = self.shared.engine.enter()?.endpoint.send(Peer(peer), context, tag, area);
        // A process that is gone needs no message.
        if let Ok(Started::Pending(id)) = started {
            self.sending.push(Sending { id: id.into(), words, is_notice });
        }
        Ok(())
    }

    /// Replies to clients whose round, or group, has ended. Releases the seat of a group that has ended or has
    /// another server.
    fn finish_requests(&mut self, context: u32) -> Result<()> {
        let Some(served) = self.groups.get_mut(&context) else { return Ok(()) };
        let (clients, is_complete) = served.finished_clients()?;
        let is_new = is_complete && !std::mem::replace(&mut served.is_over, is_complete);
        let name = if is_new { served.end_name()? } else { None };
        let is_told = served.followers.iter().all(Follower::is_finished);
        self.withdraw_name(name);
        clients.into_iter().try_for_each(|client| self.reply(client))?;
        if is_complete
            && is_told
            && let Some(mut served) = self.groups.remove(&context)
        {
            let is_its = |unfinished: &mut UnfinishedBroadcast| unfinished.context == context;
            for unfinished in self.unfinished.extract_if(.., is_its) {
                drop(served.replica.log.take_up(unfinished.aside));
            }
            self.release(context, &mut served);
        }
        Ok(())
    }
}

impl ServedGroup {
    fn new(replica: Arc<Replica>, epoch: u64, name: Option<u64>) -> Self {
        let (syncing, destroying, followers) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            replica,
            epoch,
            seen: 0,
            syncing,
            destroying,
            followers,
            has_fed: false,
            far_held: 0,
            name,
            is_over: false,
        }
    }

    /// Whether the log has entries since the last look.
    fn has_news(&self) -> bool {
        let position = self.replica.with(|local| Ok(local.state.position()));
        position.is_ok_and(|position| position != self.seen)
    }

    /// The clients whose round or group has ended, and whether the seat is to be released.
    fn finished_clients(&mut self) -> Result<(Vec<Client>, bool)> {
        let Self { replica, epoch, seen, syncing, destroying, .. } = self;
        replica.with(|local| {
            let state = &local.state;
            *seen = state.position();
            let is_complete = |it: &mut SyncingClient| state.ended(it.round).is_some();
            let mut finished: Vec<Client> =
                syncing.extract_if(.., is_complete).map(|it| it.client).collect();
            let has_ended = state.phase() == Phase::Ended;
            if has_ended {
                finished.append(destroying);
            }
            let is_mine = state.server().is_some_and(|server| server.epoch == *epoch);
            Ok((finished, has_ended || !is_mine))
        })
    }

    /// Appends a request that is not a broadcast; none when it was refused or withdrawn.
    fn append_asked(&self, asking: &Asking) -> Result<Option<Outcome>> {
        let replica = &self.replica;
        let request = RequestId::of(asking);
        replica.with(|local| {
            if !self.begin(local, request) {
                return Ok(None);
            }
            let entry = GroupEntry::Asked(*asking, self.epoch);
            let accepted = replica.append_if(local, entry, |local| {
                // A member that leaves has copies of all messages that were accepted before.
                Ok(match asking.what {
                    Ask::Leave { seat, kept } => {
                        local.state.member(seat).is_none() || local.state.broadcasts() == kept
                    }
                    _ => true,
                })
            })?;
            if accepted.is_none() {
                self.refuse(local, request, Answer::NotNow);
            }
            Ok(accepted.map(|accepted| accepted.outcome))
        })
    }

    /// Claims memory for a broadcast; none when there is none, or its client has withdrawn the request.
    fn claim(&self, origin: Origin, tag: u32, bytes: u64) -> Result<Option<Aside>> {
        let Some(request) = origin.request_id() else { return Ok(None) };
        let replica = &self.replica;
        replica.with(|local| {
            let RequestId { process, number } = request;
            let Some(peer) = replica.peer(&local.state, process) else { return Ok(None) };
            if !replica.log.take_request(peer, process.incarnation, number, self.epoch) {
                return Ok(None);
            }
            let claim = match replica.has_room_without_credit(local) {
                true => replica.claim(local, bytes)?,
                false => None,
            };
            if claim.is_none() {
                self.refuse(local, request, Answer::NotNow);
            }
            Ok(claim.map(|claim| {
                claim.describe(tag, origin.to_words(), bytes);
                claim.put_aside()
            }))
        })
    }

    /// Appends a broadcast; none when it was refused or withdrawn.
    fn append_broadcast(
        &self,
        claim: &Claim<'_>,
        origin: Origin,
        was_held: bool,
    ) -> Result<Option<AcceptedBroadcast>> {
        let Some(request) = origin.request_id() else { return Ok(None) };
        let replica = &self.replica;
        replica.with(|local| {
            if !self.begin(local, request) {
                return Ok(None);
            }
            let entry = GroupEntry::Broadcast { was_held, by: Some(self.epoch) };
            let accepted = replica.append_with(local, entry, Some(claim), |local| {
                Ok(replica.has_room_without_credit(local))
            })?;
            match accepted.map(|accepted| accepted.outcome) {
                Some(Outcome::Broadcast(number)) => {
                    // Members of other hosts have it by a feed.
                    let members = local.state.members().iter();
                    let near = members.filter(|it| replica.is_near(&local.state, it.process));
                    let members = near.copied().collect();
                    return Ok(Some(AcceptedBroadcast { number, members }));
                }
                // The client repeats the request at the next server.
                Some(Outcome::Stale) => {}
                Some(_) => self.refuse(local, request, Answer::Closed),
                None => self.refuse(local, request, Answer::NotNow),
            }
            Ok(None)
        })
    }

    /// Marks a request as begun; false when its client has withdrawn it.
    fn begin(&self, local: &LocalState, RequestId { process, number }: RequestId) -> bool {
        let peer = self.replica.peer(&local.state, process);
        let begin =
            |peer| self.replica.log.begin_request(peer, process.incarnation, number, self.epoch);
        peer.is_some_and(begin)
    }

    fn refuse(&self, local: &LocalState, request: RequestId, answer: Answer) {
        let RequestId { process, number } = request;
        if let Some(peer) = self.replica.peer(&local.state, process) {
            let (incarnation, answer) = (process.incarnation, answer.to_bits());
            self.replica.log.refuse(peer, incarnation, number, self.epoch, answer);
        }
        self.replica.wake(WaitsFor::Others);
    }
}
