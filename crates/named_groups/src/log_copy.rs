//! A process's copy of a group's log that lies on another host, and the messages by which it follows the log.
//!
//! The server there feeds the copy ([`crate::feed`]): all entries, in their order, and the messages that members of this
//! process receive. Feeds arrive in the mailbox of the client's replies, whoever advances the engine; the next look at
//! the log folds them (`replica::copying`). This process tells the server which feeds have arrived and how far its
//! members have taken messages. The server sends the next feed only then, so a process that does not call holds up
//! nobody and fills no memory.

use std::cmp;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use landeck_engine::Shared;
use landeck_engine::peers::peer_of_slot;
use landeck_kernel::{Area, Endpoint, Peer, Received, RequestId, Started, Status};
use landeck_memory::plain::bytes_of_mut;
use landeck_memory::{Buffer, Segment};
use landeck_objects::group_log::GroupLog;
use landeck_protocols::service::Seat;
use landeck_transports::SharedMemory;
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use crate::feed::{FeedHead, FeedItem, LastRequest, Opened, items};
use crate::origin::process_word;
use crate::server_client::{FEED_TAG, LAST_LOOK, RequestKind, bytes_of};
use crate::server_handle::lock;

/// Feeds that may wait here before the server gets no receipt for the next one.
const FEEDS_MAX: usize = 16;
/// A process that this host does not know: a guest of another one.
const NOBODY: u32 = u32::MAX;

/// A process's copy of a log.
pub(crate) struct LogCopy {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    directory: Directory,
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

/// The processes of the log's host and of all others, by the numbers that they have there.
pub(crate) struct Directory {
    segment: Segment,
    home: SegmentId,
    /// The slots of the log's host.
    slots: u32,
    /// The peers of the ranks that are far from there, in the order of its far records. Behind these are places for guests.
    elsewhere: Vec<u32>,
    /// The place of the home in the list of the job's hosts.
    home_place: u32,
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
        let own = process_word(process.slot, process.incarnation);
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
    pub(crate) fn new(
        shared: &Arc<Shared>,
        inbox: Arc<Inbox>,
        directory: Directory,
        number: u64,
    ) -> Self {
        // The first look is that which opens the copy.
        let (looks, looked) = (AtomicU64::new(1), AtomicU64::new(0));
        let refused_at = AtomicU64::new(0);
        Self {
            shared: shared.clone(),
            inbox,
            directory,
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

    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
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

impl Directory {
    /// The processes as the host of `home` numbers them, which has so many slots.
    pub(crate) fn new(segment: &Segment, home: SegmentId, slots: u32) -> Self {
        let ranks = (0..segment.plan().ranks).map(|rank| segment.peer_of_rank(rank));
        let elsewhere = ranks.filter(|&peer| host_of(segment, peer) != home.0).collect();
        let home_place = place_of(segment, home);
        Self { segment: segment.clone(), home, home_place, slots, elsewhere }
    }

    /// The host of the log.
    pub(crate) fn home(&self) -> SegmentId {
        self.home
    }

    /// The peer number here of a process that has another number there. The log may tell of a process before the word that
    /// it takes part has come here: its place is known from the beginning.
    pub(crate) fn peer(&self, there: u32) -> u32 {
        match there.checked_sub(self.slots) {
            Some(far) => match far.checked_sub(self.elsewhere.len() as u32) {
                None => self.elsewhere[far as usize],
                Some(guest) => self.guest(guest),
            },
            None => {
                let peer = peer_of_slot(&self.segment, self.home, Slot(there));
                peer.map_or(NOBODY, |peer| peer.0)
            }
        }
    }

    /// The peer number here of a place for guests of other hosts than the home. These have places for equally many guests
    /// each, in the order of the list of the job's hosts; so hosts that are added later have theirs behind all others.
    fn guest(&self, there: u32) -> u32 {
        let plan = self.segment.plan();
        let Some(number) = there.checked_div(plan.guests) else { return NOBODY };
        let (own, first) = (self.segment.own_host_place(), plan.ranks - plan.processes);
        let place = number + u32::from(number >= self.home_place);
        let first = match place.cmp(&own) {
            cmp::Ordering::Equal => plan.processes,
            cmp::Ordering::Less => plan.slots() + first + place * plan.guests,
            cmp::Ordering::Greater => plan.slots() + first + (place - 1) * plan.guests,
        };
        let peer = first + there % plan.guests;
        if peer < plan.slots() + plan.far { peer } else { NOBODY }
    }

    /// A word that names a process there ([`process_word`]), as it would be here.
    pub(crate) fn process_word(&self, there: u64) -> u64 {
        let incarnation = (there >> 32) as u32;
        process_word(Slot(self.peer(there as u32)), Incarnation(incarnation))
    }
}

/// The place of a host in the list of the job's hosts. Without its own, the places for guests have the order of that list.
fn place_of(segment: &Segment, host: SegmentId) -> u32 {
    let (plan, own) = (segment.plan(), segment.own_host_place());
    let first = plan.ranks - plan.processes;
    let mut firsts = (first..plan.far).step_by(plan.guests.max(1) as usize);
    let is_it = |far: u32| segment.far_record(far).process.host == host.0;
    match firsts.position(is_it) {
        Some(number) if host.0 != plan.host => number as u32 + u32::from(number as u32 >= own),
        _ => own,
    }
}

fn host_of(segment: &Segment, peer: u32) -> u64 {
    let plan = segment.plan();
    let far = peer.checked_sub(plan.slots());
    far.map_or(plan.host, |far| segment.far_record(far).process.host)
}

/// The words of a message; none where it has no whole words.
pub(crate) fn words_of(received: &Received) -> Vec<u64> {
    let bytes = bytes_of(received);
    let mut words = vec![0; bytes.len() / size_of::<u64>()];
    bytes.copy_to_slice(bytes_of_mut(&mut words));
    words
}

#[cfg(test)]
mod tests {
    use landeck_memory::{FarProcess, FarRecord, SegmentPlan};

    use super::*;

    const GUESTS: u32 = 2;
    /// The ranks of each host. The last two hosts were added while the job ran.
    const RANKS: [&[u32]; 4] = [&[0, 2], &[1], &[], &[]];

    fn id(place: usize) -> u64 {
        100 - place as u64
    }

    /// All processes elsewhere of a host that knows of so many hosts, in the order of its far records.
    fn far(place: usize, known: usize) -> Vec<FarProcess> {
        let process = |host: usize, slot: usize| FarProcess {
            host: id(host),
            slot: slot as u32,
            incarnation: 1,
        };
        let of_rank = |rank: u32| {
            let host = RANKS.iter().position(|ranks| ranks.contains(&rank)).unwrap();
            let slot = RANKS[host].iter().position(|it| *it == rank).unwrap();
            (host != place).then(|| process(host, slot))
        };
        let others = (0..known).filter(|host| *host != place);
        let guests = others.flat_map(|host| {
            let first = RANKS[host].len();
            (first..first + GUESTS as usize).map(move |slot| process(host, slot))
        });
        (0..3).filter_map(of_rank).chain(guests).collect()
    }

    fn segment(place: usize, known: usize) -> Segment {
        let processes = RANKS[place].len() as u32;
        let plan =
            SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(id(place), processes) };
        let room = 3 - processes + GUESTS * 3;
        let plan = SegmentPlan { ranks: 3, far: room, hosts: 4, guests: GUESTS, ..plan };
        let segment = Segment::local(&plan);
        segment.set_own_host(place as u16, place as u32);
        for (far, process) in (0..).zip(far(place, known)) {
            segment.set_far_record(far, FarRecord { process, ..FarRecord::default() });
        }
        for rank in 0..3 {
            let here = RANKS[place].iter().position(|it| *it == rank);
            let before = (0..rank).filter(|other| !RANKS[place].contains(other)).count() as u32;
            let peer = here.map_or(plan.slots() + before, |slot| slot as u32);
            segment.set_peer_of_rank(rank, peer);
        }
        segment
    }

    #[test]
    fn each_host_knows_the_processes_by_the_numbers_of_each_other_one() {
        for (own, home) in (0..4).flat_map(|own| (0..4).map(move |home| (own, home))) {
            if own == home {
                continue;
            }
            // This host may not have heard of the last ones, but in its table their places are kept.
            for known in [4, own.max(home) + 1] {
                let segment = segment(own, known);
                let slots = RANKS[home].len() as u32 + GUESTS;
                let directory = Directory::new(&segment, SegmentId(id(home)), slots);
                for (there, process) in (slots..).zip(far(home, 4)) {
                    let peer = directory.peer(there);
                    let plan = segment.plan();
                    let found = match peer.checked_sub(plan.slots()) {
                        None => FarProcess { host: plan.host, slot: peer, incarnation: 1 },
                        Some(far) => segment.far_record(far).process,
                    };
                    let is_unknown = !(0..known).any(|place| process.host == id(place));
                    let wanted = if is_unknown { FarProcess::default() } else { process };
                    assert_eq!(found, wanted, "{own} reads {there} of {home}");
                }
                assert_eq!(directory.peer(u32::MAX), NOBODY);
            }
        }
    }
}
