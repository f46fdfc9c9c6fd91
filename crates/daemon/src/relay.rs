//! The relay: a thread of the daemon that serves processes elsewhere. It reads and writes regions of this host's
//! processes for them, and lays messages for these processes. For processes here and elsewhere it stores data that stay on
//! this host.
//!
//! A region's owner takes no part, so it may compute. The thread starts when the first process elsewhere wants it, and
//! nothing of the daemon's loop depends on it. Nothing that comes is trusted: every request names its region, owner and
//! range, and an answer says what was wrong. [`source`] checks messages, and [`receivers`] lays them. [`stores`] has the
//! data that stay, and [`lasting`] what outlives a connection.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use landeck_channel::BrokenPeer;
use landeck_channel::relay_requests::Turn;
use landeck_memory::Segment;
use landeck_objects::region::{AccessError, RegionPlace, RegionView};
use landeck_transports::lanes::relay::{RelayEnd, RelayStream};
use landeck_transports::lanes::silence::may_be_of_long_packets;
use landeck_wire::handover::LaneKeys;
use landeck_wire::relay::{RELAY_PART_BYTES, RelayOperation, RelayOutcome, RelayRequest};
use landeck_wire::stored::StoredRequest;
use landeck_wire::{Header, HostNumber, Kind, ProcessId, SegmentId};
use rustix::event::epoll::EventFlags;

use crate::orders::{Inbox, Orders, orders};

#[cfg(test)]
pub(crate) mod conformance;
#[cfg(test)]
mod hostile;
mod lasting;
mod receivers;
#[cfg(test)]
mod resuming;
mod source;
mod stores;

use lasting::{Connection, Ending, Lasting};

/// The bytes of answers that may wait for one process. Beyond, none of its requests is read.
const UNSENT_MAX: usize = 1 << 20;
/// So many bytes are sent at once.
const FLUSHED_BYTES: usize = 128 << 10;
/// The connections that one process may have. A further one closes its oldest.
const STREAMS_MAX: usize = 4;
/// How often one connection is read before the next one has its turn.
const ROUNDS_MAX: usize = 16;
/// The time between two looks at connections that may carry nothing.
const SILENCE_INTERVAL: Duration = Duration::from_millis(200);
/// How long the connection of a process that has ended may take to end: its last bytes may be under way.
const LAST_BYTES_TIME: Duration = Duration::from_secs(5);

/// A process that wants the relay.
#[derive(Debug)]
pub(crate) struct RelayCaller {
    /// The connection.
    pub(crate) socket: OwnedFd,
    /// Its keys.
    pub(crate) keys: LaneKeys,
    /// The process.
    pub(crate) process: ProcessId,
    /// The place of the process in the segment's table of far processes; `None` for a process of this host.
    pub(crate) far: Option<u32>,
    /// The segment of its job here.
    pub(crate) segment: Segment,
    /// Its host.
    pub(crate) host: HostNumber,
    /// The number that the daemon there has given the connection. Later ones are higher.
    pub(crate) number: u32,
    /// The connection is broken when it has carried nothing for so long.
    pub(crate) silence: Duration,
}

/// An order for the thread.
#[derive(Debug)]
enum Order {
    Serve(Box<RelayCaller>),
    /// A process has ended, here or elsewhere.
    Ended(ProcessId),
    /// A host is lost.
    Lost(HostNumber),
    /// A process of this host lets a process elsewhere send up to a position.
    Granted {
        receiver: ProcessId,
        source: ProcessId,
        position: u64,
    },
    /// A process of this host has made room.
    Room(ProcessId),
    /// The relay of an earlier run has served the processes of a segment. These have not said how many messages came.
    Resume(Segment, Vec<ProcessId>),
    /// A process of this host has said so.
    Told(ProcessId),
    /// A job has no part here any more.
    Over(SegmentId),
}

/// The relay of this host, as the daemon's loop has it.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    orders: Option<Orders<Order>>,
    /// The hosts to whose processes long packets do not pass.
    narrow: Option<Receiver<HostNumber>>,
}

impl Relay {
    /// Serves a process elsewhere from now on. If the thread cannot be started, its connection is closed.
    pub(crate) fn serve(&mut self, caller: RelayCaller) {
        if self.orders.is_none() {
            *self = Self::start().unwrap_or_default();
        }
        self.order(Order::Serve(Box::new(caller)));
    }

    /// A process has ended, here or elsewhere.
    pub(crate) fn process_ended(&self, process: ProcessId) {
        self.order(Order::Ended(process));
    }

    /// A host is lost.
    pub(crate) fn host_lost(&self, host: HostNumber) {
        self.order(Order::Lost(host));
    }

    /// A process of this host lets a process elsewhere send up to a position.
    pub(crate) fn granted(&self, receiver: ProcessId, source: ProcessId, position: u64) {
        self.order(Order::Granted { receiver, source, position });
    }

    /// A process of this host has made room for messages.
    pub(crate) fn has_room(&self, process: ProcessId) {
        self.order(Order::Room(process));
    }

    /// Goes on with the processes elsewhere that the relay of an earlier run has served, as soon as the `untold` processes here
    /// have said how many messages came.
    pub(crate) fn resume(&mut self, segment: Segment, untold: Vec<ProcessId>) {
        let far = 0..segment.plan().far;
        let was_used =
            far.into_iter().any(|far| segment.far_relayed(far).load(Ordering::Acquire) != 0);
        if !was_used && untold.is_empty() && segment.stored_next() == 0 {
            return;
        }
        if self.orders.is_none() {
            *self = Self::start().unwrap_or_default();
        }
        self.order(Order::Resume(segment, untold));
    }

    /// A process of this host has said how many messages of an earlier run's relay came.
    pub(crate) fn told(&self, process: ProcessId) {
        self.order(Order::Told(process));
    }

    /// The part of a job with this segment is over.
    pub(crate) fn part_over(&self, segment: SegmentId) {
        self.order(Order::Over(segment));
    }

    /// Serves a process, where the thread was started before.
    #[cfg(test)]
    fn serve_here(&self, caller: RelayCaller) {
        self.order(Order::Serve(Box::new(caller)));
    }

    /// Ends the thread, and returns when it has ended.
    #[cfg(test)]
    fn end(mut self) {
        let narrow = self.narrow.take();
        drop(self);
        narrow.into_iter().for_each(|narrow| while narrow.recv().is_ok() {});
    }

    /// A relay whose thread runs.
    #[cfg(test)]
    fn started() -> Self {
        Self::start().unwrap_or_default()
    }

    /// Takes the hosts to whose processes long packets were found not to pass.
    pub(crate) fn take_narrow(&self) -> Vec<HostNumber> {
        self.narrow.iter().flat_map(Receiver::try_iter).collect()
    }

    fn start() -> io::Result<Self> {
        let (orders, inbox) = orders()?;
        let (tells_narrow, narrow) = channel();
        let (clients, lasting) = (HashMap::new(), Lasting::default());
        let worker = Worker { inbox, tells_narrow, clients, lasting };
        std::thread::Builder::new().name("landeckd-relay".to_owned()).spawn(|| worker.run())?;
        Ok(Self { orders: Some(orders), narrow: Some(narrow) })
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            orders.give(order);
        }
    }
}

/// The thread.
struct Worker {
    inbox: Inbox<Order>,
    tells_narrow: Sender<HostNumber>,
    clients: HashMap<u64, Client>,
    lasting: Lasting,
}

/// A connection of a process elsewhere.
struct Client {
    stream: RelayStream,
    connection: Connection,
    /// The process has opened the connection, and the answer waits for processes here. It has sent so many requests before.
    opens: Option<u32>,
    /// The region that it used last.
    view: Option<(RegionPlace, RegionView)>,
    watched: EventFlags,
    answer: Vec<u8>,
    /// The process is gone: when its connection is closed if it does not end by itself.
    ends_at: Option<Instant>,
    /// The connection is broken when it has carried nothing for so long.
    silence: Duration,
    /// Something was sent that the process's host may not have, so the connection is looked at.
    is_looked_at: bool,
}

impl Worker {
    /// Serves until the daemon's loop is gone.
    fn run(mut self) {
        let mut ready = Vec::new();
        while let Some(orders) = self.inbox.wait(self.time_left(), &mut ready) {
            ready.drain(..).for_each(|(token, _)| self.serve(token));
            orders.into_iter().for_each(|order| self.obey(order));
            self.close_late();
            self.close_silent();
        }
    }

    /// How long to wait at most.
    fn time_left(&self) -> Option<Duration> {
        let first = self.clients.values().filter_map(|client| client.ends_at).min();
        let ends = first.map(|at| at.saturating_duration_since(Instant::now()));
        let looks = self.clients.values().any(|client| client.is_looked_at);
        ends.into_iter().chain(looks.then_some(SILENCE_INTERVAL)).min()
    }

    /// Closes connections of processes that are gone, whose time is over.
    fn close_late(&mut self) {
        let now = Instant::now();
        let is_late = |client: &Client| client.ends_at.is_some_and(|at| now >= at);
        let late = self.clients.iter().filter(|(_, client)| is_late(client));
        for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.remove(token, Ending::Gone);
        }
    }

    /// Closes connections that carry nothing. The process notices that its end is closed, or that nothing answers there, and
    /// asks for another one.
    fn close_silent(&mut self) {
        let now = Duration::from_nanos(landeck_memory::system::now_ns());
        let mut silent = Vec::new();
        for (token, client) in self.clients.iter_mut().filter(|(_, client)| client.is_looked_at) {
            match client.stream.look_at_silence(now, client.silence) {
                Ok(()) => client.is_looked_at = client.stream.has_unacknowledged(),
                Err(RelayEnd::Silent(silence)) => {
                    if may_be_of_long_packets(&silence) {
                        // If the loop is gone, so is the thread soon.
                        let _ = self.tells_narrow.send(client.connection.host);
                    }
                    silent.push(*token);
                }
                Err(_) => silent.push(*token),
            }
        }
        silent.into_iter().for_each(|token| self.remove(token, Ending::Broken));
    }

    /// Closes a connection.
    fn remove(&mut self, token: u64, ending: Ending) {
        let Some(client) = self.clients.remove(&token) else { return };
        let ending = if client.is_gone() { Ending::Gone } else { ending };
        self.lasting.disconnected(client.connection.process, token, ending);
    }

    /// Carries out an order of the loop.
    fn obey(&mut self, order: Order) {
        match order {
            Order::Serve(caller) => self.add(*caller),
            Order::Ended(process) => {
                self.lasting.process_ended(process);
                self.open_waiting();
                self.end_soon(|its| its.process == process, LAST_BYTES_TIME);
            }
            Order::Lost(host) => {
                self.lasting.host_lost(host);
                self.end_soon(|its| its.host == host, Duration::ZERO);
            }
            Order::Over(segment) => {
                let is_its = |it: &Client| it.connection.segment.plan().host == segment.0;
                let its = self.clients.iter().filter(|(_, client)| is_its(client));
                for token in its.map(|(token, _)| *token).collect::<Vec<_>>() {
                    self.remove(token, Ending::Gone);
                }
                self.lasting.part_over(segment);
            }
            Order::Granted { receiver, source, position } => {
                self.granted(receiver, source, position);
            }
            Order::Resume(segment, untold) => self.lasting.resume(&segment, untold),
            Order::Told(process) => {
                self.lasting.told(process);
                self.open_waiting();
            }
            Order::Room(process) => self.lasting.receivers.has_room(process),
        }
    }

    /// Opens the connections that have waited for processes here.
    fn open_waiting(&mut self) {
        let waiting = self.clients.iter().filter(|(_, client)| client.opens.is_some());
        for token in waiting.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.serve(token);
        }
    }

    /// Closes the connections of processes that are gone. What they have sent over them is read first.
    fn end_soon(&mut self, is_gone: impl Fn(&Connection) -> bool, time: Duration) {
        let its = self.clients.iter().filter(|(_, client)| is_gone(&client.connection));
        for token in its.map(|(token, _)| *token).collect::<Vec<_>>() {
            let Some(client) = self.clients.get_mut(&token) else { continue };
            if !self.lasting.is_source(client.connection.process, token) {
                self.remove(token, Ending::Gone);
                continue;
            }
            client.ends_at = Some(Instant::now() + time);
            self.serve(token);
        }
    }

    /// Tells a process elsewhere how far it may send.
    fn granted(&mut self, receiver: ProcessId, source: ProcessId, position: u64) {
        let told = self.lasting.granted(receiver, source, position);
        let Some((token, header, position)) = told else { return };
        let Some(client) = self.clients.get_mut(&token) else { return };
        if client.stream.push(&header, &position, &[]).is_ok() {
            self.serve(token);
        } else {
            self.remove(token, Ending::Broken);
        }
    }

    fn add(&mut self, caller: RelayCaller) {
        let RelayCaller { socket, keys, process, far, segment, host, number, silence } = caller;
        let mut its: Vec<u64> = (self.clients.values().map(|client| &client.connection))
            .filter(|it| it.process == process && !self.lasting.is_source(process, it.token))
            .map(|it| it.token)
            .collect();
        its.sort_unstable();
        if its.len() >= STREAMS_MAX {
            self.remove(its[0], Ending::Broken);
        }
        let Ok(stream) = RelayStream::new(socket, &keys) else { return };
        let (token, watched) = (self.inbox.reactor.token(), EventFlags::IN);
        if self.inbox.reactor.watch(&stream, token, watched).is_ok() {
            let connection = Connection { token, process, far, segment, host, number };
            let (opens, view, answer, ends_at) = (None, None, Vec::new(), None);
            let client = Client {
                stream,
                connection,
                opens,
                view,
                watched,
                answer,
                ends_at,
                silence,
                is_looked_at: true,
            };
            self.clients.insert(token, client);
            self.serve(token);
        }
    }

    fn serve(&mut self, token: u64) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        client.is_looked_at = true;
        let ending = match client.serve(&mut self.lasting) {
            Ok(wanted) if wanted == client.watched => None,
            Ok(wanted) => {
                client.watched = wanted;
                let watched = self.inbox.reactor.rewatch(&client.stream, token, wanted);
                watched.is_err().then_some(Ending::Broken)
            }
            Err(RelayEnd::Broken(_)) => Some(Ending::Refused),
            Err(_) => Some(Ending::Broken),
        };
        if let Some(ending) = ending {
            // The process sees the end of its connection, and asks its daemon for another one.
            self.remove(token, ending);
        }
        for token in self.lasting.take_replaced() {
            self.remove(token, Ending::Broken);
        }
    }
}

impl Client {
    /// Answers what has come, as far as answers have room. Returns the events that the connection waits for.
    fn serve(&mut self, lasting: &mut Lasting) -> Result<EventFlags, RelayEnd> {
        self.open(lasting)?;
        self.answer_all(lasting)?;
        let is_last = self.ends_at.is_some();
        let mut rounds = 0;
        while rounds < ROUNDS_MAX || is_last {
            rounds += 1;
            if self.stream.unsent() > UNSENT_MAX || !self.stream.fill()? {
                break;
            }
            // Whatever was read is answered now: nothing reports it again.
            self.answer_all(lasting)?;
            if !is_last && !self.stream.may_have_more() {
                break;
            }
        }
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, self.stream.unsent() <= UNSENT_MAX);
        wanted.set(EventFlags::OUT, self.stream.unsent() > 0);
        Ok(wanted)
    }

    /// Answers all requests that have come whole, as far as answers have room.
    fn answer_all(&mut self, lasting: &mut Lasting) -> Result<(), RelayEnd> {
        loop {
            let mut is_done = false;
            while !is_done && self.stream.unsent() <= UNSENT_MAX {
                is_done = !self.answer_first(lasting)?;
                // The other end takes what is there while the next answers are made.
                if self.stream.unsent() >= FLUSHED_BYTES {
                    self.stream.flush()?;
                }
            }
            self.stream.flush()?;
            if is_done || self.stream.unsent() > UNSENT_MAX {
                return Ok(());
            }
        }
    }

    /// Answers the first request, or lays the first message; false if none has come whole.
    fn answer_first(&mut self, lasting: &mut Lasting) -> Result<bool, RelayEnd> {
        let Connection { token, process, .. } = self.connection;
        let Some((header, data)) = self.stream.first()? else { return Ok(false) };
        match header.kind {
            Kind::Relayed => {
                lasting.take((process, token), &header, data)?;
                self.stream.consume();
            }
            Kind::RelayOpen
                if self.opens.is_none()
                    && Header { context: 0, ..header } == Header::RELAY_OPEN =>
            {
                self.stream.consume();
                self.opens = Some(header.context);
                self.open(lasting)?;
            }
            Kind::Goodbye if header == Header::GOODBYE => {
                lasting.take_goodbye(process, token)?;
                self.stream.consume();
                self.stream.push(&Header::GOODBYE, &[], &[])?;
            }
            _ => self.answer_request(lasting)?,
        }
        Ok(true)
    }

    /// Opens the connection, if that waits for nothing.
    fn open(&mut self, lasting: &mut Lasting) -> Result<(), RelayEnd> {
        if let Some(asked) = self.opens.take_if(|_| lasting.may_open(&self.connection.segment)) {
            for (frame, data) in lasting.open_source(&self.connection, asked)? {
                self.stream.push(&frame, &data, &[])?;
            }
        }
        Ok(())
    }

    /// Answers the first request. One that was done before is not done again, unless it reads.
    fn answer_request(&mut self, lasting: &mut Lasting) -> Result<(), RelayEnd> {
        let Connection { token, process, far, ref segment, .. } = self.connection;
        let (requests, stores) = lasting.requests((process, token)).ok_or(BrokenPeer::Form)?;
        self.answer.clear();
        let Some((header, data)) = self.stream.first()? else { return Ok(()) };
        let number = header.context;
        let request = Request::decode(&header, data);
        let reads = request.as_ref().is_some_and(Request::reads);
        let turn = requests.turn(number, request.as_ref().is_some_and(Request::may_repeat))?;
        let is_new = !matches!(turn, Turn::Again(..));
        let outcome = match (turn, request) {
            (Turn::Again(outcome, answer), _) if !reads => {
                self.answer.extend_from_slice(answer);
                outcome
            }
            (Turn::Unknown, Some(_)) => RelayOutcome::Unknown,
            (_, Some(Request::Region(request, bytes))) => {
                let view = &mut self.view;
                perform((far, segment), view, &request, bytes, &mut self.answer)
            }
            (_, Some(Request::Stored(request, bytes))) => {
                stores.perform((segment, process), (number, request, bytes), &mut self.answer)
            }
            (_, None) => RelayOutcome::Senseless,
        };
        if is_new {
            requests.done(outcome, if reads { &[] } else { &self.answer });
        }
        let answer = RelayRequest::answer(number, outcome, self.answer.len());
        self.stream.consume();
        self.stream.push(&answer, &self.answer, &[])
    }

    /// Whether its process is gone: it opens no further connection.
    fn is_gone(&self) -> bool {
        let Connection { process, far, ref segment, .. } = self.connection;
        let record = match far {
            Some(far) => segment.far_record(far).as_slot(),
            None => segment.slot_record(process.slot.0),
        };
        let is_other = record.incarnation != process.incarnation.0;
        self.ends_at.is_some() || is_other || record.state.is_gone()
    }
}

/// A request with the bytes to write.
enum Request<'a> {
    Region(RelayRequest, &'a [u8]),
    Stored(StoredRequest, &'a [u8]),
}

impl<'a> Request<'a> {
    fn decode(header: &Header, data: &'a [u8]) -> Option<Self> {
        let stored = StoredRequest::decode(header, data).map(|(it, bytes)| Self::Stored(it, bytes));
        let region =
            || RelayRequest::decode(header, data).map(|(it, bytes)| Self::Region(it, bytes));
        stored.or_else(region)
    }

    /// Whether it reads, so that its answer is not kept.
    fn reads(&self) -> bool {
        match self {
            Self::Region(request, _) => matches!(request.operation, RelayOperation::Get { .. }),
            Self::Stored(request, _) => request.reads(),
        }
    }

    /// Whether it may be done once more. Others change a word by what it was, are counted by the owner, or take room.
    fn may_repeat(&self) -> bool {
        use RelayOperation::{Get, Look, Put};
        match self {
            Self::Region(request, _) => {
                matches!(request.operation, Get { .. } | Look | Put { notifies: false })
            }
            // One that stores finds its message.
            Self::Stored(..) => true,
        }
    }
}

/// Does what a request says; the data of the answer are appended to `answer`.
fn perform(
    (far, segment): (Option<u32>, &Segment),
    view: &mut Option<(RegionPlace, RegionView)>,
    request: &RelayRequest,
    bytes: &[u8],
    answer: &mut Vec<u8>,
) -> RelayOutcome {
    // Processes of this host access its regions by themselves.
    let Some(far) = far else { return RelayOutcome::Senseless };
    let RelayRequest { slot, incarnation, place, number, .. } = *request;
    if slot >= segment.plan().slots() {
        return RelayOutcome::OwnerGone;
    }
    let owner = segment.slot_record(slot);
    if owner.incarnation != incarnation || owner.state.is_gone() {
        return RelayOutcome::OwnerGone;
    }
    let place = RegionPlace { slot, place, number };
    if !matches!(view, Some((of, _)) if *of == place) {
        match RegionView::open_for_far(segment, far, place) {
            Ok(opened) => *view = Some((place, opened)),
            Err(error) => return outcome_of(&error, answer),
        }
    }
    let Some((_, opened)) = view else { return RelayOutcome::Gone };
    match access(opened, request, bytes, answer) {
        Ok(()) => RelayOutcome::Done,
        Err(error) => {
            answer.clear();
            if error == AccessError::Gone {
                *view = None;
            }
            outcome_of(&error, answer)
        }
    }
}

fn access(
    view: &RegionView,
    request: &RelayRequest,
    bytes: &[u8],
    answer: &mut Vec<u8>,
) -> Result<(), AccessError> {
    let offset = usize::try_from(request.offset).unwrap_or(usize::MAX);
    let word = match request.operation {
        RelayOperation::Put { notifies: false } => return view.put(offset, bytes),
        RelayOperation::Put { notifies: true } => return view.put_and_notify(offset, bytes),
        RelayOperation::Get { bytes } => {
            // What leaves the region is refused before memory is made for it.
            let length = usize::try_from(bytes).unwrap_or(usize::MAX).min(RELAY_PART_BYTES + 1);
            answer.resize(length.min(RELAY_PART_BYTES), 0);
            return view.get(offset, answer);
        }
        RelayOperation::Look if view.is_there() => view.bytes() as u64,
        RelayOperation::Look => return Err(AccessError::Gone),
        RelayOperation::Add(number) => {
            view.with_word(offset, |word| word.fetch_add(number, Ordering::AcqRel))?
        }
        RelayOperation::Swap(number) => {
            view.with_word(offset, |word| word.swap(number, Ordering::AcqRel))?
        }
        RelayOperation::CompareSwap { expected, new } => view.with_word(offset, |word| {
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match word.compare_exchange(expected, new, success, failure) {
                Ok(was) | Err(was) => was,
            }
        })?,
    };
    answer.extend_from_slice(&word.to_le_bytes());
    Ok(())
}

fn outcome_of(error: &AccessError, answer: &mut Vec<u8>) -> RelayOutcome {
    let (outcome, word) = match error {
        AccessError::Outside(outside) => (RelayOutcome::Outside, outside.bytes as u64),
        AccessError::Unaligned { .. } => return RelayOutcome::Unaligned,
        AccessError::Unmapped(errno) => {
            (RelayOutcome::Unmapped, u64::from(errno.raw_os_error().unsigned_abs()))
        }
        _ => return RelayOutcome::Gone,
    };
    answer.extend_from_slice(&word.to_le_bytes());
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::heap::Heap;
    use landeck_memory::membership::{SlotRecord, SlotState};
    use landeck_memory::plan::SegmentPlan;
    use landeck_objects::region::Region;

    const BYTES: usize = 4_096;

    /// A segment with one far process, and a region of slot 1.
    fn region() -> (Segment, Region) {
        let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&SegmentPlan { ranks: 3, far: 1, hosts: 2, ..plan });
        let state = SlotState::Alive;
        segment.set_slot_record(1, SlotRecord { incarnation: 3, state, ..SlotRecord::default() });
        let mut heap = Heap::of(&segment, 1).unwrap();
        let block = heap.allocate(Region::block_bytes(&segment, BYTES)).unwrap();
        let region = Region::new(&segment, 1, block, BYTES, 7).unwrap();
        std::mem::forget(heap);
        (segment, region)
    }

    fn request(region: &Region, offset: u64, operation: RelayOperation) -> RelayRequest {
        let RegionPlace { slot, place, number } = region.place();
        RelayRequest { slot, incarnation: 3, place, number, offset, operation }
    }

    fn ask(segment: &Segment, request: &RelayRequest, bytes: &[u8]) -> (RelayOutcome, Vec<u8>) {
        let mut answer = Vec::new();
        let outcome = perform((Some(0), segment), &mut None, request, bytes, &mut answer);
        (outcome, answer)
    }

    #[test]
    fn requests_read_write_and_count() {
        let (segment, region) = region();
        let put = request(&region, 8, RelayOperation::Put { notifies: true });
        assert_eq!(ask(&segment, &put, &[1, 2, 3]), (RelayOutcome::Done, vec![]));
        assert_eq!(region.notifications(), 1);
        let get = request(&region, 7, RelayOperation::Get { bytes: 5 });
        assert_eq!(ask(&segment, &get, &[]), (RelayOutcome::Done, vec![0, 1, 2, 3, 0]));
        let words = [
            (RelayOperation::Add(5), 0u64),
            (RelayOperation::Add(2), 5),
            (RelayOperation::CompareSwap { expected: 6, new: 1 }, 7),
            (RelayOperation::CompareSwap { expected: 7, new: 1 }, 7),
            (RelayOperation::Swap(9), 1),
            (RelayOperation::Look, BYTES as u64),
        ];
        for (operation, was) in words {
            let asked = ask(&segment, &request(&region, 64, operation), &[]);
            assert_eq!(asked, (RelayOutcome::Done, was.to_le_bytes().to_vec()), "{operation:?}");
        }
        assert_eq!(segment.far_hazard(0).load(Ordering::Relaxed), 0, "no access is going on");
    }

    /// The next answer on a connection in the test's hands; `None` if the relay has closed it.
    fn hear(stream: &mut RelayStream) -> Option<(Header, Vec<u8>)> {
        let give_up = Instant::now() + Duration::from_secs(60);
        while Instant::now() < give_up {
            stream.flush().ok()?;
            if let Some((header, data)) = stream.first().unwrap() {
                let heard = Some((header, data.to_vec()));
                stream.consume();
                return heard;
            }
            stream.fill().ok()?;
        }
        panic!("the relay does not answer");
    }

    #[test]
    fn a_change_whose_answer_was_lost_is_not_done_again() {
        let (segment, region) = region();
        let relay = Relay::started();
        let process = conformance::id(7, 1);
        let far_process = landeck_memory::FarProcess { host: 8, slot: 0, incarnation: 1 };
        let state = SlotState::Alive;
        let record =
            landeck_memory::FarRecord { process: far_process, state, ..Default::default() };
        segment.set_far_record(0, record);
        let connect = |number: u32| {
            let (mine, socket) = conformance::tcp_pair();
            let (keys, segment) = (conformance::keys(true), segment.clone());
            let host = HostNumber(1);
            relay.serve_here(RelayCaller {
                socket,
                keys,
                process,
                far: Some(0),
                segment,
                host,
                number,
                silence: Duration::from_secs(60),
            });
            let mut stream = RelayStream::new(mine, &conformance::keys(false)).unwrap();
            stream.push(&Header::RELAY_OPEN, &[], &[]).unwrap();
            let answer = hear(&mut stream).map(|(header, _)| header);
            (stream, answer)
        };
        let ask = |stream: &mut RelayStream, number: u32, operation| {
            let asked = request(&region, 64, operation);
            let data: &[u8] = match operation {
                RelayOperation::Put { .. } => &[9],
                _ => &[],
            };
            let (header, head) = asked.encode(number, data.len());
            stream.push(&header, &head, data).unwrap();
            hear(stream).map(|(header, data)| (header.context, header.tag, data))
        };
        let done =
            |number: u32, data: &[u8]| Some((number, RelayOutcome::Done as u32, data.to_vec()));
        let word = |number: u64| number.to_le_bytes();
        let (mut stream, answer) = connect(1);
        assert_eq!(answer, Some(Header::RELAY_OPEN));
        assert_eq!(ask(&mut stream, 0, RelayOperation::Add(5)), done(0, &word(0)));
        assert_eq!(ask(&mut stream, 1, RelayOperation::Add(5)), done(1, &word(5)));
        let notify = RelayOperation::Put { notifies: true };
        assert_eq!(ask(&mut stream, 2, notify), done(2, &[]));
        // The process has heard the first answer alone.
        let (mut next, answer) = connect(2);
        assert_eq!(answer, Some(Header::RELAY_OPEN));
        assert_eq!(hear(&mut stream), None, "its older connection is closed");
        assert_eq!(ask(&mut next, 1, RelayOperation::Add(5)), done(1, &word(5)));
        assert_eq!(ask(&mut next, 2, notify), done(2, &[]));
        assert_eq!(region.notifications(), 1);
        let get = RelayOperation::Get { bytes: 8 };
        assert_eq!(ask(&mut next, 3, get), done(3, &word(9)), "the word is below 256");
        assert_eq!(ask(&mut next, 4, RelayOperation::Add(1)), done(4, &word(9)));
        assert_eq!(ask(&mut next, 3, get), done(3, &word(10)), "reading is done again");
        // No process asks out of order: it gets no further connection.
        assert_eq!(ask(&mut next, 7, get), None);
        assert_eq!(connect(3).1, Some(Header::GOODBYE));
    }

    #[test]
    fn no_request_follows_a_goodbye() {
        let hosts = conformance::RelayedHosts::with(2);
        let (mine, theirs) = conformance::tcp_pair();
        hosts.serve_relay(0, 1, theirs, conformance::id(1, 1));
        let mut stream = RelayStream::new(mine, &conformance::keys(false)).unwrap();
        for frame in [Header::RELAY_OPEN, Header::GOODBYE] {
            stream.push(&frame, &[], &[]).unwrap();
            assert_eq!(hear(&mut stream).map(|(header, _)| header), Some(frame));
        }
        let look = RelayOperation::Look;
        let (slot, incarnation, place, number, offset) = (0, 1, 64, 1, 0);
        let request = RelayRequest { slot, incarnation, place, number, offset, operation: look };
        let (header, head) = request.encode(0, 0);
        stream.push(&header, &head, &[]).unwrap();
        assert_eq!(hear(&mut stream), None);
    }

    #[test]
    fn nothing_that_comes_is_trusted() {
        let (segment, region) = region();
        let look = request(&region, 0, RelayOperation::Look);
        for (wrong, outcome) in [
            (RelayRequest { slot: u32::MAX, ..look }, RelayOutcome::OwnerGone),
            (RelayRequest { incarnation: 2, ..look }, RelayOutcome::OwnerGone),
            (RelayRequest { number: 8, ..look }, RelayOutcome::Gone),
            (RelayRequest { number: 0, ..look }, RelayOutcome::Gone),
            (RelayRequest { place: look.place + 8, ..look }, RelayOutcome::Gone),
            (RelayRequest { place: u64::MAX - 63, ..look }, RelayOutcome::Gone),
        ] {
            assert_eq!(ask(&segment, &wrong, &[]).0, outcome, "{wrong:?}");
        }
        let outside = (RelayOutcome::Outside, (BYTES as u64).to_le_bytes().to_vec());
        for (offset, operation) in [
            (BYTES as u64, RelayOperation::Put { notifies: false }),
            (u64::MAX, RelayOperation::Put { notifies: true }),
            (BYTES as u64, RelayOperation::Add(1)),
            (0, RelayOperation::Get { bytes: u64::MAX }),
            (1, RelayOperation::Get { bytes: BYTES as u64 }),
        ] {
            assert_eq!(ask(&segment, &request(&region, offset, operation), &[1]), outside);
        }
        assert_eq!(region.notifications(), 0);
        let unaligned = request(&region, 4, RelayOperation::Add(1));
        assert_eq!(ask(&segment, &unaligned, &[]), (RelayOutcome::Unaligned, vec![]));
    }

    #[test]
    fn a_region_that_was_withdrawn_or_whose_owner_died_is_gone_for_an_open_view_too() {
        let (segment, region) = region();
        let (mut view, mut answer) = (None, Vec::new());
        let add = request(&region, 0, RelayOperation::Add(1));
        let mut again = |view: &mut _| perform((Some(0), &segment), view, &add, &[], &mut answer);
        assert_eq!(again(&mut view), RelayOutcome::Done);
        assert!(region.withdraw(&segment).is_none(), "no access is going on");
        assert_eq!(again(&mut view), RelayOutcome::Gone);
        let state = SlotState::Dead;
        segment.set_slot_record(1, SlotRecord { incarnation: 3, state, ..SlotRecord::default() });
        assert_eq!(again(&mut view), RelayOutcome::OwnerGone);
    }
}
