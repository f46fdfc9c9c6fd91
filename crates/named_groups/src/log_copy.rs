//! A process's copy of a group's log that lies on another host, and the messages by which it follows the log.
//!
//! The server there feeds the copy ([`crate::feed`]): all entries, in their order, and the messages that members of this
//! process receive. Feeds arrive in the mailbox of the client's replies, whoever advances the engine; the next look at
//! the log folds them (`replica::copying`). This process tells the server which feeds have arrived and how far its
//! members have taken messages. The server sends the next feed only then, so a process that does not call holds up
//! nobody and fills no memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use landeck_engine::Shared;
use landeck_kernel::{Area, Endpoint, Peer, Received, RequestId, Started, Status};
use landeck_memory::plain::bytes_of_mut;
use landeck_memory::{Buffer, Segment};
use landeck_objects::group_log::GroupLog;
use landeck_protocols::service::Seat;
use landeck_transports::SharedMemory;
use landeck_wire::{ProcessId, SegmentId};

use crate::feed::{FeedHead, FeedItem, LastRequest, Opened, items};
use crate::origin::party;
use crate::server_client::{FEED_TAG, LAST_LOOK, RequestKind, bytes_of};
use crate::server_handle::lock;

/// Feeds that may wait here before the server gets no receipt for the next one.
const FEEDS_MAX: usize = 16;

/// A process's copy of a log.
pub(crate) struct LogCopy {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    home: SegmentId,
    /// The number of the group's memory on its host.
    number: u64,
    /// The last look that was asked for, and the last one that the copy has had.
    looks: AtomicU64,
    looked: AtomicU64,
    /// All members had taken so many messages when the server had no room for the last broadcast.
    refused_at: AtomicU64,
    /// For the thread that looks for the next server.
    turn: Mutex<()>,
}

/// The server, as a client reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeedLink {
    /// The server's process, and its peer number here.
    pub(crate) process: ProcessId,
    pub(crate) peer: u32,
    /// The context of its mailbox.
    pub(crate) context: u32,
    /// Counts the servers that this client has had.
    pub(crate) epoch: u64,
    /// It serves no more.
    pub(crate) is_cut: bool,
}

/// Where messages of the server arrive.
pub(crate) struct Inbox {
    /// This process as one word, as messages to the server begin.
    own: u64,
    context: u32,
    state: Mutex<InboxState>,
}

struct InboxState {
    link: FeedLink,
    arrived: VecDeque<FromServer>,
    /// A feed whose receipt waits until the feeds before it were folded.
    owed: Option<u64>,
    /// Messages to the server whose words are still read.
    said: Vec<(RequestId, Box<[u64]>)>,
    /// The members of this process, and what the server knows of the messages that they have taken.
    members: Vec<(Seat, u64)>,
}

/// A message of the server.
pub(crate) enum FromServer {
    Feed(Vec<u64>),
    /// The answer to a request that was not accepted, or was accepted before the copy began.
    Reply {
        request: u32,
        answer: u32,
        passed: u64,
    },
}

impl FeedLink {
    /// Whether this link leads to the mailbox of this process in this context.
    pub(crate) fn is_of(&self, process: ProcessId, context: u32) -> bool {
        (self.process, self.context) == (process, context)
    }
}

impl Inbox {
    /// An inbox of this process in a context of its own, whose messages are of a server.
    pub(crate) fn open(shared: &Shared, context: u32, link: FeedLink) -> Arc<Self> {
        let process = shared.process();
        let own = party(0, process).to_word(); // the server knows its host
        let state = InboxState {
            link,
            arrived: VecDeque::new(),
            owed: None,
            said: Vec::new(),
            members: Vec::new(),
        };
        Arc::new(Self { own, context, state: Mutex::new(state) })
    }

    pub(crate) fn link(&self) -> FeedLink {
        lock(&self.state).link
    }

    /// Goes on with another server. What the last one has sent counts; nothing more of it does.
    pub(crate) fn set_link(&self, link: FeedLink) {
        let mut state = lock(&self.state);
        state.owed = None;
        // The next server knows nothing of what they have taken.
        state.members.iter_mut().for_each(|(_, told)| *told = 0);
        state.link = link;
    }

    /// The opening words of the first feed that has arrived, if it opens a copy.
    pub(crate) fn opened(&self) -> Option<(Opened, LastRequest)> {
        let state = lock(&self.state);
        let FromServer::Feed(words) = state.arrived.front()? else { return None };
        let (mut opened, mut last) = (None, None);
        for item in items(words).flatten() {
            match item {
                FeedItem::Opened(it) => opened = Some(it),
                FeedItem::Request(it) => last = Some(it),
                _ => {}
            }
        }
        Some((opened?, last?))
    }

    /// The messages that have arrived.
    pub(crate) fn take_arrived(&self) -> VecDeque<FromServer> {
        std::mem::take(&mut lock(&self.state).arrived)
    }

    /// Takes a message of the server.
    pub(crate) fn receive(
        &self,
        endpoint: &mut Endpoint<SharedMemory>,
        status: &Status,
        received: &Received,
    ) {
        let mut state = lock(&self.state);
        if status.peer.0 != state.link.peer || state.link.is_cut {
            return;
        }
        let words = words_of(received);
        if status.tag != FEED_TAG {
            if let [answer, passed] = words[..] {
                let (request, answer) = (status.tag, answer as u32);
                state.arrived.push_back(FromServer::Reply { request, answer, passed });
            }
            return;
        }
        let Some(Some(FeedItem::Head(FeedHead { number, is_last, .. }))) = items(&words).next()
        else {
            return;
        };
        state.arrived.push_back(FromServer::Feed(words));
        state.link.is_cut = is_last;
        state.owed = Some(number);
        self.pay(&mut state, endpoint, Vec::new());
    }

    /// Tells the server what has arrived here, unless too much waits to be folded, and what members have taken.
    fn pay(&self, state: &mut InboxState, endpoint: &mut Endpoint<SharedMemory>, marks: Vec<u64>) {
        let is_open = state.arrived.len() < FEEDS_MAX;
        let owed = state.owed.take_if(|_| is_open);
        if owed.is_some() || !marks.is_empty() {
            self.say(state, endpoint, RequestKind::Delivered, 0, [owed.unwrap_or(0), 0], marks);
        }
    }

    /// Sends the server a message that needs no answer.
    fn say(
        &self,
        state: &mut InboxState,
        endpoint: &mut Endpoint<SharedMemory>,
        kind: RequestKind,
        number: u32,
        [second, third]: [u64; 2],
        more: Vec<u64>,
    ) {
        state.said.retain(|(id, _)| endpoint.take(*id).is_none());
        let mut words = vec![self.own, second, third, u64::from(self.context)];
        words.extend(more);
        let words = words.into_boxed_slice();
        // SAFETY: the words are on the heap, and kept until the request is taken or abandoned.
        let area = Area::contiguous(unsafe { Buffer::of(&words[..]) });
        let (to, context) = (Peer(state.link.peer), state.link.context);
        // A server that is gone needs no message.
        if let Ok(Started::Pending(id)) = endpoint.send(to, context, kind.tag(number), area) {
            state.said.push((id, words));
        }
    }

    /// Asks the server to feed this client, and to say when it has told everything up to now.
    pub(crate) fn follow(
        &self,
        endpoint: &mut Endpoint<SharedMemory>,
        look: u64,
        broadcasts: u64,
        awaits_delivery: bool,
    ) {
        let state = &mut *lock(&self.state);
        let more = vec![u64::from(awaits_delivery)];
        self.say(state, endpoint, RequestKind::Follow, 0, [look, broadcasts], more);
    }

    /// Asks the server to take a request back.
    pub(crate) fn withdraw(&self, endpoint: &mut Endpoint<SharedMemory>, request: u32) {
        let state = &mut *lock(&self.state);
        self.say(state, endpoint, RequestKind::Withdraw, request, [0, 0], Vec::new());
    }

    /// Looks whether the server is gone. Another process may have its slot by now.
    pub(crate) fn look_at_server(&self, segment: &Segment, endpoint: &Endpoint<SharedMemory>) {
        let mut state = lock(&self.state);
        let FeedLink { process, peer, .. } = state.link;
        let is_followed = segment.peer_record(peer).incarnation != process.incarnation.0;
        if is_followed || endpoint.is_gone(Peer(peer)).is_some() {
            state.link.is_cut = true;
        }
    }

    /// Follows no more, and gives up what was said.
    pub(crate) fn close(&self, endpoint: &mut Endpoint<SharedMemory>) {
        let state = &mut *lock(&self.state);
        self.say(state, endpoint, RequestKind::Follow, 0, [LAST_LOOK, 0], Vec::new());
        // Its words stay for as long as it goes on.
        if let Some((_, words)) = state.said.pop_if(|(_, words)| words[1] == LAST_LOOK) {
            Box::leak(words);
        }
        state.said.drain(..).for_each(|(id, _)| endpoint.abandon(id));
    }
}

impl LogCopy {
    pub(crate) fn new(shared: &Arc<Shared>, inbox: Arc<Inbox>, number: u64) -> Self {
        // The first look is that which opens the copy.
        let (looks, looked) = (AtomicU64::new(1), AtomicU64::new(0));
        let refused_at = AtomicU64::new(0);
        let home = inbox.link().process.segment;
        Self {
            shared: shared.clone(),
            inbox,
            home,
            number,
            looks,
            looked,
            refused_at,
            turn: Mutex::new(()),
        }
    }

    pub(crate) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The host of the log.
    pub(crate) fn home(&self) -> SegmentId {
        self.home
    }

    /// The number of the group's memory on its host.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The turn to look for the next server.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// The number of the next look.
    pub(crate) fn next_look(&self) -> u64 {
        1 + self.looks.fetch_add(1, Ordering::AcqRel)
    }

    /// Whether the copy has everything up to a look, or a later one.
    pub(crate) fn has_looked(&self, look: u64) -> bool {
        self.looked.load(Ordering::Acquire) >= look
    }

    pub(crate) fn note_look(&self, look: u64) {
        self.looked.fetch_max(look, Ordering::AcqRel);
    }

    /// All members had taken so many messages when the server had no room.
    pub(crate) fn refused_at(&self) -> u64 {
        self.refused_at.load(Ordering::Acquire)
    }

    pub(crate) fn note_refusal(&self, passed: u64) {
        self.refused_at.store(passed, Ordering::Release);
    }

    /// From now on the server is told what this member has taken.
    pub(crate) fn add_member(&self, seat: Seat) {
        lock(&self.inbox.state).members.push((seat, 0));
    }

    /// Nothing more is told about a member.
    pub(crate) fn forget_member(&self, seat: Seat) {
        lock(&self.inbox.state).members.retain(|(member, _)| *member != seat);
    }

    /// Tells the server what it has not been told: feeds that have arrived, messages that members have taken.
    pub(crate) fn report(&self, endpoint: &mut Endpoint<SharedMemory>, log: &GroupLog) {
        let mut state = lock(&self.inbox.state);
        if state.link.is_cut {
            return;
        }
        let mut marks = Vec::new();
        for (Seat { id, stamp }, told) in &mut state.members {
            if let Some(taken) = log.taken(*id, *stamp).filter(|taken| taken > told) {
                *told = taken;
                marks.extend([u64::from(*id) | u64::from(*stamp) << 32, taken]);
            }
        }
        self.inbox.pay(&mut state, endpoint, marks);
    }
}

impl Drop for LogCopy {
    fn drop(&mut self) {
        if let Ok(mut engine) = self.shared.engine.enter() {
            engine.end_stream(self.inbox.context);
            self.inbox.close(&mut engine.endpoint);
        }
    }
}

/// The words of a message; none where it has no whole words.
pub(crate) fn words_of(received: &Received) -> Vec<u64> {
    let bytes = bytes_of(received);
    let mut words = vec![0; bytes.len() / size_of::<u64>()];
    bytes.copy_to_slice(bytes_of_mut(&mut words));
    words
}
