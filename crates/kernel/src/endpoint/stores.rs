//! Messages whose data stay on a host ([`crate::stored`]): which do, and the steps of both sides within an endpoint.
//!
//! Such a message begins as an offer. So its header is in its place among the others, and a receiver that takes it at once
//! gets the data from the sender. Meanwhile the sender stores them, and then tells the receiver where they are: the send is
//! over with that. If the store refuses them, the message stays an offer, and the sender waits as for any other.
//!
//! On one host the data lie in a block of the sender's heap, with or without a wish. With one, the block has room for all of
//! them whatever their length, and so the sender goes on.

use landeck_channel::relay_requests::RelayRequests;
use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink};
use landeck_memory::{Bytes, FarRecord, Segment};
use landeck_wire::relay::RelayOutcome;
use landeck_wire::stored::{
    STORED_NOTICE_BYTES, StoreWish, StoredNotice, StoredPlace, StoredRequest,
};
use landeck_wire::{Header, HostNumber, Incarnation, Kind, ProcessId, SegmentId, Slot};

use super::{Endpoint, Started};
use crate::area::Area;
use crate::arrival::Core;
use crate::budget::Interest;
use crate::endpoint::sending::{WHOLE_BYTES, sent};
use crate::failure::Failure;
use crate::kept::Kept;
use crate::mailboxes::is_of_programs;
use crate::matching::Waiting;
use crate::request::RequestId;
use crate::status::Status;
use crate::stored::{Fetching, FetchingState, StoredData, Storing, StoringState, free};
use crate::stores::{SendStep, StoredReceive, StoredSend};
use crate::transfer::{Collecting, Target};
use crate::work::Work;

/// So many messages go to the least loaded host before the hosts are asked again.
const MESSAGES_PER_LOOK: u32 = 16;
/// Loads that differ by less than so many hundredths of a task for each processor are alike.
const LIKE_LOADS: u64 = 50;
/// The bytes that are copied at once between a store and data whose parts lie apart.
const BETWEEN_BYTES: u64 = 64 << 10;

/// The data of a send, for a store that this process may reach by its memory.
struct AreaData<'a> {
    area: &'a Area,
    segment: &'a Segment,
    is_here: bool,
}

impl StoredData for AreaData<'_> {
    fn write_here(&mut self, place: u64) -> bool {
        if !self.is_here {
            return false;
        }
        if let Some(bytes) = self.area.one_piece() {
            return self.segment.write_stored(place, bytes);
        }
        let (mut between, mut at, total) = (Vec::new(), 0, self.area.packed_bytes());
        while at < total {
            between.clear();
            self.append(at, BETWEEN_BYTES.min(total - at) as usize, &mut between);
            if !self.segment.write_stored(place + at, Bytes::from(&between[..])) {
                return false;
            }
            at += between.len() as u64;
        }
        true
    }

    fn append(&mut self, position: u64, bytes: usize, to: &mut Vec<u8>) {
        self.area.append_to(position, bytes, to);
    }
}

impl<N: Channel> Endpoint<N> {
    /// Sets where the data of long messages to other hosts wait that have no wish of their own.
    pub fn set_store(&mut self, wish: StoreWish) {
        self.core.stores.usual = wish;
    }

    /// Sets that for one context.
    pub fn set_store_of(&mut self, context: u32, wish: StoreWish) {
        self.core.stores.by_context.insert(context, wish);
    }

    /// Sends the bytes of an area as [`Endpoint::send`] does, with a wish of its own for the place where the data wait.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`].
    pub fn send_stored(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        (area, wish): (Area, StoreWish),
    ) -> Result<Started, Failure> {
        if area.packed_bytes() <= self.channel(to).data_bytes_max() as u64 {
            return self.send(to, context, tag, area);
        }
        self.check(to, context)?;
        self.core.tally.sent(area.packed_bytes());
        let header = Header::user(Kind::Eager, 0, context, tag);
        let id = self.core.requests.insert(Work::Queued { to, header, area, loan: None });
        let Core { stores, requests, .. } = &mut self.core;
        stores.wishes.retain(|(of, _)| {
            matches!(requests.get(*of), Some(Work::Queued { .. } | Work::Offered { .. }))
        });
        stores.wishes.push((id, wish));
        self.queue((to, context), id);
        Ok(self.settled(id))
    }

    /// The wish for a send of so many bytes that begins, if its data may stay on a host.
    #[inline]
    pub(super) fn store_wish(
        &self,
        id: RequestId,
        to: Peer,
        (header, bytes): (&Header, u64),
    ) -> StoreWish {
        let stores = &self.core.stores;
        let may_stay =
            !stores.has_no_wishes() && is_of_programs(header.context) && header.kind == Kind::Eager;
        match stores.wish(id, header.context) {
            _ if !may_stay => StoreWish::Receiver,
            StoreWish::Auto if bytes > WHOLE_BYTES && stores.late.contains(&to) => {
                StoreWish::Sender
            }
            wish => wish,
        }
    }

    /// Whether data may wait in this process's heap that it would not have there otherwise: up to a quarter of it.
    pub(super) fn has_room_for(&mut self, bytes: u64) -> bool {
        let most = self.core.segment.plan().heap_bytes_per_process / 4;
        bytes <= most && {
            self.core.heap.collect();
            self.core.heap.bytes_in_use() <= most - bytes
        }
    }

    /// A send has begun as an offer, and its data go to a store.
    pub(super) fn begin_storing(
        &mut self,
        (id, to): (RequestId, Peer),
        bytes: u64,
        wish: StoreWish,
    ) {
        self.core.stores.wishes.retain(|(of, _)| *of != id);
        let Some(own) = self.core.segment.own_host_number().map(HostNumber) else { return };
        let there = self.core.segment.far_record(to.0 - self.first_far);
        let step = match wish {
            StoreWish::Receiver => return,
            StoreWish::Sender | StoreWish::Auto => own,
            StoreWish::Host(host)
                if host == own || self.other_hosts([own, own]).contains(&host) =>
            {
                host
            }
            // No process of the job is there any more.
            StoreWish::Host(_) => return,
            StoreWish::LeastLoaded => match self.core.stores.least_loaded.take() {
                Some((host, left @ 1..)) => {
                    self.core.stores.least_loaded = Some((host, left - 1));
                    host
                }
                _ => HostNumber::NONE,
            },
        };
        let receiver = ProcessId {
            segment: SegmentId(there.process.host),
            slot: Slot(there.process.slot),
            incarnation: Incarnation(there.process.incarnation),
        };
        let step = match step {
            HostNumber::NONE => {
                let hosts = self.other_hosts([own, HostNumber(there.host_number)]);
                SendStep::Looking(hosts.into_iter().map(|host| (host, None)).collect(), Vec::new())
            }
            host => SendStep::Storing(host, Storing::new(receiver, bytes)),
        };
        self.core.stores.sends.push(StoredSend { id, receiver, bytes, step, asked: 0 });
    }

    /// The hosts of the job that have living processes, without two of them.
    fn other_hosts(&self, without: [HostNumber; 2]) -> Vec<HostNumber> {
        let segment = &self.core.segment;
        let records = (0..segment.plan().far).map(|far| segment.far_record(far));
        let alive = records.filter(FarRecord::is_there);
        let mut hosts: Vec<_> =
            alive.map(|FarRecord { host_number, .. }| HostNumber(host_number)).collect();
        hosts.retain(|host| !without.contains(host));
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// Has the data of offered sends stored whose receivers are late, if the wish is so. Returns whether there are any.
    #[cold]
    pub(crate) fn store_late(&mut self) -> bool {
        let stores = &self.core.stores;
        if stores.has_no_wishes() {
            return false;
        }
        let is_late = |id: &RequestId| match self.core.requests.get(*id) {
            Some(Work::Offered { to, context, area, is_standard: true, .. }) => {
                // Shorter ones are copied into the heap.
                area.packed_bytes() > WHOLE_BYTES
                    && stores.wish(*id, *context) == StoreWish::Auto
                    && self.is_far(*to)
                    && is_of_programs(*context)
                    && !stores.has(*id)
            }
            _ => false,
        };
        let late: Vec<RequestId> = self.core.requests.pending().filter(is_late).collect();
        for id in &late {
            let Some(Work::Offered { to, area, .. }) = self.core.requests.get(*id) else {
                continue;
            };
            let (to, bytes) = (*to, area.packed_bytes());
            self.core.stores.late.insert(to);
            self.begin_storing((*id, to), bytes, StoreWish::Auto);
        }
        if !late.is_empty() {
            self.advance();
        }
        !late.is_empty()
    }

    /// The host on which the data of an operation are, or will be.
    pub(super) fn store_of(&self, id: RequestId) -> Option<HostNumber> {
        if let Some(Work::Fetching(receive)) = self.core.requests.get(id) {
            return Some(receive.stored.host);
        }
        let one = self.core.stores.sends.iter().find(|one| one.id == id)?;
        match &one.step {
            SendStep::Looking(..) => None,
            SendStep::Storing(host, _) | SendStep::Telling(StoredPlace { host, .. }) => Some(*host),
        }
    }

    /// Makes the steps that can be made of all sends that are being stored, and frees what is fetched. Returns whether anything
    /// moved, or was asked: that leaves with the next look.
    pub(super) fn move_stored(&mut self) -> bool {
        if self.core.stores.is_empty() {
            return false;
        }
        self.budget.expect(Interest::Surely);
        for (host, number) in std::mem::take(&mut self.core.stores.forgotten) {
            if let Some(requests) = self.store_requests(host) {
                requests.forget(number);
            }
        }
        let mut any = false;
        for mut one in std::mem::take(&mut self.core.stores.sends) {
            let before = one.asked;
            match self.move_stored_send(&mut one) {
                None => {
                    any |= one.asked != before;
                    self.core.stores.sends.push(one);
                }
                Some(()) => any = true,
            }
        }
        for stored in std::mem::take(&mut self.core.stores.frees) {
            let requests = self.store_requests(stored.host);
            // A store that is lost has nothing to free.
            let Some(requests) = requests else { continue };
            match free(stored.number, requests) {
                true => any = true,
                false => self.core.stores.frees.push(stored),
            }
        }
        any
    }

    /// The requests to the relay of a host about data there; `None` if the host is lost, or its relay cannot be reached.
    fn store_requests(&mut self, host: HostNumber) -> Option<&mut RelayRequests> {
        let (_, is_gone) = self.core.segment.host_state(host.0);
        self.far.as_mut().filter(|_| !is_gone)?.store_requests(host)
    }

    /// Makes a step of one send; the end if it is not stored any more, or does not wait any more.
    fn move_stored_send(&mut self, one: &mut StoredSend) -> Option<()> {
        loop {
            let is_waiting = matches!(
                self.core.requests.get(one.id),
                Some(Work::Offered { is_standard: true, .. })
            );
            match &mut one.step {
                SendStep::Looking(..) if !is_waiting => return Some(()),
                SendStep::Looking(hosts, loads) => {
                    self.look_at_loads(hosts, loads);
                    if !hosts.is_empty() {
                        return None;
                    }
                    let own = self.core.segment.own_host_number().map(HostNumber);
                    let least = loads.iter().min().map(|(_, _, host)| *host);
                    let host = least.or(own)?;
                    self.core.stores.least_loaded = Some((host, MESSAGES_PER_LOOK));
                    one.step = SendStep::Storing(host, Storing::new(one.receiver, one.bytes));
                }
                SendStep::Storing(host, storing) => {
                    let host = *host;
                    if !is_waiting {
                        storing.give_up();
                    }
                    let is_here = self.core.segment.own_host_number() == Some(host.0);
                    let (_, is_gone) = self.core.segment.host_state(host.0);
                    let network = self.far.as_mut().filter(|_| !is_gone);
                    let requests = network.and_then(|network| network.store_requests(host));
                    let Some(requests) = requests else { return Some(()) };
                    let area = match self.core.requests.get(one.id) {
                        Some(Work::Offered { area, .. }) => area,
                        _ => &Area::EMPTY,
                    };
                    let segment = &self.core.segment;
                    let state = storing.advance(requests, &mut AreaData { area, segment, is_here });
                    one.asked = requests.asked();
                    match state {
                        StoringState::Waits => return None,
                        StoringState::Refused(_) => return Some(()),
                        StoringState::Stored { number, place } => {
                            one.step = SendStep::Telling(StoredPlace { host, number, place });
                        }
                    }
                }
                SendStep::Telling(stored) => {
                    let stored = *stored;
                    return self.tell_stored(one.id, one.bytes, stored);
                }
            }
        }
    }

    /// Asks hosts for their loads, and takes the answers. Hosts without an answer stay in the list.
    fn look_at_loads(
        &mut self,
        hosts: &mut Vec<(HostNumber, Option<u32>)>,
        loads: &mut Vec<(u64, u64, HostNumber)>,
    ) {
        hosts.retain_mut(|(host, asked)| {
            let Some(requests) = self.store_requests(*host) else { return false };
            *asked = asked.or_else(|| requests.ask_stored(&StoredRequest::Look, &[]));
            let Some((outcome, words)) = asked.and_then(|number| requests.take(number)) else {
                return true;
            };
            if let (RelayOutcome::Done, [room, busy, _]) = (outcome, words.as_chunks::<8>().0) {
                let [room, busy] = [room, busy].map(|word| u64::from_le_bytes(*word));
                loads.push((busy / LIKE_LOADS, u64::MAX - room, *host));
            }
            false
        });
    }

    /// Tells the receiver where the data are, and ends the send. `None` while there is no room for that.
    fn tell_stored(&mut self, id: RequestId, length: u64, stored: StoredPlace) -> Option<()> {
        let Some(&Work::Offered { to, context, tag, is_standard: true, .. }) =
            self.core.requests.get(id)
        else {
            self.core.stores.free(stored);
            return Some(());
        };
        let notice = StoredNotice { send: id.to_bits(), stored, length }.encode();
        let header = Header::user(Kind::Stored, notice.len() as u32, context, tag);
        match self.try_channel(to, &header, (&notice[..]).into()) {
            Ok(()) => self.core.requests.put(id, Work::Done(sent(to, tag, length))),
            Err(SendError::Gone) => {
                self.core.stores.free(stored);
                let failed = Work::failed(self.gone(to));
                self.core.requests.put(id, failed);
            }
            Err(_) => return None,
        }
        Some(())
    }

    /// Makes a step of a receive whose data are on a host; returns whether it moved, and whether it goes on.
    pub(super) fn move_fetching(&mut self, id: RequestId) -> (bool, bool) {
        self.budget.expect(Interest::Surely);
        let Some(work) = self.core.requests.get_mut(id) else { return (false, false) };
        let mut receive = match std::mem::replace(work, Work::Free) {
            Work::Fetching(receive) => receive,
            other => {
                *work = other;
                return (false, false);
            }
        };
        let (before, host) = (receive.fetching.asked(), receive.stored.host);
        let state = match self.core.segment.own_host_number() == Some(host.0) {
            true => Some(self.core.read_stored(&mut receive)),
            false => self.store_requests(host).map(|requests| {
                let StoredReceive { fetching, target, .. } = &mut *receive;
                fetching.advance(requests, &mut |at, data| target.write(at, Bytes::from(data)))
            }),
        };
        let next = match state {
            Some(FetchingState::Waits) => {
                // What is asked leaves with the next look.
                let moved = receive.fetching.asked() != before;
                self.core.requests.put(id, Work::Fetching(receive));
                return (moved, true);
            }
            Some(FetchingState::Fetched) => Work::Done(receive.target.complete(receive.status)),
            Some(FetchingState::Refused(_)) | None => {
                Work::failed(Failure::StoreLost { peer: receive.status.peer, host: host.0 })
            }
        };
        self.core.requests.put(id, next);
        (true, false)
    }
}

impl Core {
    /// Reads the data of a message in the store of this host.
    fn read_stored(&mut self, receive: &mut StoredReceive) -> FetchingState {
        let (place, bytes) = (receive.stored.place, receive.status.bytes);
        let Some(data) = self.segment.stored_data(place, bytes) else {
            return FetchingState::Refused(RelayOutcome::Outside);
        };
        receive.target.write(0, data);
        self.stores.free(receive.stored);
        FetchingState::Fetched
    }

    /// Handles the word that the data of an offered message are stored.
    #[cold]
    pub(crate) fn arrive_stored(&mut self, from: Peer, data: Bytes<'_>) {
        let mut bytes = [0; STORED_NOTICE_BYTES];
        let is_whole = data.len() == bytes.len() && data.copy_to_slice(&mut bytes) == bytes.len();
        let notice = StoredNotice::decode(&bytes).filter(|_| is_whole);
        let Some(StoredNotice { send, stored, length }) = notice else {
            return self.broken(from, BrokenPeer::Reference);
        };
        let its_offer = |source: u32, kept: &Kept| {
            source == from.0
                && matches!(kept, Kept::Offer { send: its, length: all, .. } if (*its, *all) == (send, length))
        };
        if let Some(waiting) = self.matching.take_out(|label, kept| its_offer(label.source, kept)) {
            let message = Kept::Stored { stored, length };
            return self.matching.keep_again(Waiting { message, ..waiting });
        }
        let held = self.requests.find(
            |work| matches!(work, Work::Held(held) if its_offer(held.label.source, &held.message)),
        );
        if let Some(Work::Held(held)) = held.and_then(|id| self.requests.get_mut(id)) {
            held.message = Kept::Stored { stored, length };
            return;
        }
        let collecting = self.requests.find(|work| {
            matches!(work, Work::Collecting(it)
                if (it.status.peer, it.send, it.position, it.status.bytes) == (from, send, 0, length))
        });
        match collecting {
            Some(id) => self.fetch_instead(id, stored),
            // Nobody receives it.
            None => self.stores.free(stored),
        }
    }

    /// A receive that has asked its sender for the data fetches them from a store.
    fn fetch_instead(&mut self, id: RequestId, stored: StoredPlace) {
        let its = |_, kept: &Kept| matches!(kept, Kept::Coming { named, .. } if *named == id);
        if let Some(waiting) = self.matching.take_out(its) {
            // The receive was given up, and the message waits for the next one.
            self.requests.remove(id);
            let message = Kept::Stored { stored, length: waiting.message.message_bytes() };
            return self.matching.keep_again(Waiting { message, ..waiting });
        }
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Collecting(collecting) = std::mem::replace(work, Work::Free) else { return };
        let Collecting { context, target, status, named, number, .. } = collecting;
        self.requests.put(id, fetch(context, target, status, stored, number));
        self.forget_named(id, named);
        self.active.push(id);
    }

    /// Hands a message whose data are on a host to its receive.
    pub(crate) fn receive_stored(
        &mut self,
        id: RequestId,
        status: Status,
        stored: StoredPlace,
        number: u64,
    ) {
        self.count_received(status.bytes);
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Posted { target, wanted } = std::mem::replace(work, Work::Free) else { return };
        *work = fetch(wanted.context, target, status, stored, number);
        self.active.push(id);
    }
}

fn fetch(context: u32, target: Target, status: Status, stored: StoredPlace, number: u64) -> Work {
    let fetching = Fetching::new(stored.number, status.bytes);
    Work::Fetching(Box::new(StoredReceive { context, target, status, stored, fetching, number }))
}
