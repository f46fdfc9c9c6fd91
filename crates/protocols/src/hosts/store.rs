//! The store of a host for one job: messages whose data stay there until their receivers fetch them.
//!
//! A sender makes room, writes the data, and *seals* the message: from then on it survives its sender. The receiver reads it
//! and frees it. It is freed as well when the receiver is gone. One that is not sealed goes with its sender. All messages
//! together take at most the quota.
//!
//! A process of this host writes its data by itself, without a word to the daemon. So the place of a message that is not
//! sealed is no other message's before its sender has sealed it, freed it or ended: not when the daemon has started again,
//! and not when the receiver is gone. A sender that repeats its request gets its message again.
//!
//! Pure: the data lie elsewhere, at the places that this machine gives out. Each message has an *index*, under which its
//! record is kept where the next run of the daemon finds it.

use std::collections::{BTreeMap, BTreeSet};

use landeck_wire::ProcessId;

/// Places and lengths are multiples of this.
const GRAIN: u64 = 64;
/// The bits of a number that are the index of its message.
const INDEX_BITS: u32 = 12;
/// The most messages of a store.
pub const STORED_MESSAGES_MAX: usize = 1 << INDEX_BITS;

/// A message in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its number, never zero, and never that of another message of this store.
    pub number: u64,
    /// The process that stores it.
    pub sender: ProcessId,
    /// The number of the request with which it does so.
    pub request: u32,
    /// The process that fetches it.
    pub receiver: ProcessId,
    /// Where its data begin.
    pub place: u64,
    /// Their length.
    pub bytes: u64,
    /// It is whole.
    pub is_sealed: bool,
}

impl StoredMessage {
    /// The index of its record.
    #[must_use]
    pub const fn index(&self) -> usize {
        index_of(self.number)
    }

    /// The bytes that it takes.
    fn room(&self) -> u64 {
        room_of(self.bytes)
    }
}

/// Why the store does not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreRefusal {
    /// There is no room for so much.
    #[error("the store is full")]
    NoRoom,
    /// The receiver has ended.
    #[error("the receiver has ended")]
    ReceiverGone,
    /// There is no such message (any more), or it is another process's.
    #[error("the store has no such message")]
    Gone,
    /// The bytes leave the message.
    #[error("the bytes leave the message of {bytes} bytes")]
    Outside {
        /// Its length.
        bytes: u64,
    },
}

/// A store.
#[derive(Debug)]
pub struct MessageStore {
    quota: u64,
    used: u64,
    /// The messages by their indices, and the indices that are free again.
    messages: BTreeMap<usize, StoredMessage>,
    free: BTreeSet<usize>,
    /// The first index that was never given.
    fresh: usize,
    messages_max: usize,
    /// The room that is taken: its length at each place.
    taken: BTreeMap<u64, u64>,
    /// The count in the number of the next message.
    next: u64,
}

impl MessageStore {
    /// An empty store for so many bytes and messages.
    #[must_use]
    pub fn new(quota: u64, messages: usize) -> Self {
        Self {
            quota: quota / GRAIN * GRAIN,
            used: 0,
            messages: BTreeMap::new(),
            free: BTreeSet::new(),
            fresh: 0,
            messages_max: messages.min(STORED_MESSAGES_MAX),
            taken: BTreeMap::new(),
            next: 1,
        }
    }

    /// The store that an earlier run of the daemon has left with these records. Records that no run writes are dropped.
    /// `next` was [`MessageStore::next`] at its end.
    #[must_use]
    pub fn resumed(
        quota: u64,
        messages: usize,
        next: u64,
        records: impl IntoIterator<Item = StoredMessage>,
    ) -> Self {
        let mut store = Self { next: next.max(1), ..Self::new(quota, messages) };
        for message in records {
            let index = message.index();
            let is_free = index < store.messages_max && !store.messages.contains_key(&index);
            let is_known = message.number >> INDEX_BITS < store.next && message.number != 0;
            if is_free && is_known && store.has_room_at(&message) {
                store.put_in(message);
            }
        }
        store.fresh = store.messages.last_key_value().map_or(0, |(index, _)| index + 1);
        store.free = (0..store.fresh).filter(|it| !store.messages.contains_key(it)).collect();
        store
    }

    /// The bytes that it may take.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// The bytes that it takes.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// The count in the number of the next message. The next run of the daemon needs it.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The messages.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = &StoredMessage> {
        self.messages.values()
    }

    /// Makes room for a message, or finds the one for which this request of the sender has made room.
    ///
    /// # Errors
    /// [`StoreRefusal::NoRoom`]; [`StoreRefusal::ReceiverGone`].
    pub fn store(
        &mut self,
        (sender, request): (ProcessId, u32),
        receiver: ProcessId,
        bytes: u64,
        is_gone: impl Fn(ProcessId) -> bool,
    ) -> Result<StoredMessage, StoreRefusal> {
        let is_it = |it: &&StoredMessage| (it.sender, it.request) == (sender, request);
        let known = self.messages().filter(is_it).find(|it| !it.is_sealed).copied();
        if is_gone(receiver) {
            if let Some(message) = known {
                self.take_out(message); // its sender does not know the place
            }
            return Err(StoreRefusal::ReceiverGone);
        }
        if let Some(message) = known {
            return Ok(message);
        }
        let room = room_of(bytes);
        if room > self.quota - self.used || self.messages.len() == self.messages_max {
            return Err(StoreRefusal::NoRoom);
        }
        let place = self.free_place(room).ok_or(StoreRefusal::NoRoom)?;
        let index = self.free.pop_first().unwrap_or_else(|| {
            self.fresh += 1;
            self.fresh - 1
        });
        let number = self.next << INDEX_BITS | index as u64;
        self.next += 1;
        let is_sealed = false;
        let message = StoredMessage { number, sender, request, receiver, place, bytes, is_sealed };
        self.put_in(message);
        Ok(message)
    }

    /// The message into which its sender writes so many bytes from an offset on.
    ///
    /// # Errors
    /// [`StoreRefusal::Gone`], also for a sealed message; [`StoreRefusal::Outside`].
    pub fn put(
        &self,
        sender: ProcessId,
        number: u64,
        (offset, bytes): (u64, u64),
    ) -> Result<StoredMessage, StoreRefusal> {
        let message = self.message(number, |it| it.sender == sender && !it.is_sealed)?;
        within(message, offset, bytes)
    }

    /// Its sender has written all of a message. One that is sealed stays so, and one whose receiver is gone is freed.
    ///
    /// # Errors
    /// [`StoreRefusal::Gone`].
    pub fn seal(
        &mut self,
        sender: ProcessId,
        number: u64,
        is_gone: impl Fn(ProcessId) -> bool,
    ) -> Result<StoredMessage, StoreRefusal> {
        let mut message = self.message(number, |it| it.sender == sender)?;
        if is_gone(message.receiver) {
            self.take_out(message);
            return Err(StoreRefusal::Gone);
        }
        message.is_sealed = true;
        self.messages.insert(message.index(), message);
        Ok(message)
    }

    /// The message from which its receiver reads so many bytes from an offset on.
    ///
    /// # Errors
    /// [`StoreRefusal::Gone`], also for a message that is not sealed; [`StoreRefusal::Outside`].
    pub fn get(
        &self,
        receiver: ProcessId,
        number: u64,
        (offset, bytes): (u64, u64),
    ) -> Result<StoredMessage, StoreRefusal> {
        let message = self.message(number, |it| it.receiver == receiver && it.is_sealed)?;
        within(message, offset, bytes)
    }

    /// The receiver has fetched a message or will not, or its sender gives it up before the receiver knows of it. Returns what
    /// is freed by that.
    pub fn free(&mut self, process: ProcessId, number: u64) -> Option<StoredMessage> {
        let may_free = |it: &StoredMessage| [it.sender, it.receiver].contains(&process);
        let message = self.message(number, may_free).ok()?;
        Some(self.take_out(message))
    }

    /// Processes are gone: frees the messages that nobody will fetch, and those that nobody will seal.
    pub fn end(&mut self, is_gone: impl Fn(ProcessId) -> bool) -> Vec<StoredMessage> {
        let is_over =
            |it: &&StoredMessage| is_gone(if it.is_sealed { it.receiver } else { it.sender });
        let over: Vec<StoredMessage> = self.messages().filter(is_over).copied().collect();
        over.into_iter().map(|message| self.take_out(message)).collect()
    }

    fn message(
        &self,
        number: u64,
        may: impl Fn(&StoredMessage) -> bool,
    ) -> Result<StoredMessage, StoreRefusal> {
        let message = self.messages.get(&index_of(number)).copied();
        message.filter(|it| it.number == number && may(it)).ok_or(StoreRefusal::Gone)
    }

    fn put_in(&mut self, message: StoredMessage) {
        self.used += message.room();
        self.taken.insert(message.place, message.room());
        self.messages.insert(message.index(), message);
    }

    fn take_out(&mut self, message: StoredMessage) -> StoredMessage {
        self.used -= message.room();
        self.taken.remove(&message.place);
        self.messages.remove(&message.index());
        self.free.insert(message.index());
        message
    }

    /// The first place with so much room.
    fn free_place(&self, room: u64) -> Option<u64> {
        let mut place = 0;
        for (&taken, &bytes) in &self.taken {
            if taken - place >= room {
                return Some(place);
            }
            place = taken + bytes;
        }
        (self.quota - place >= room).then_some(place)
    }

    /// Whether nothing is where a record says that its message is.
    fn has_room_at(&self, message: &StoredMessage) -> bool {
        let room = room_of(message.bytes);
        let Some(end) = message.place.checked_add(room).filter(|end| *end <= self.quota) else {
            return false;
        };
        let before = self.taken.range(..end).next_back();
        let is_behind = before.is_none_or(|(place, bytes)| place + bytes <= message.place);
        is_behind && message.place.is_multiple_of(GRAIN)
    }
}

const fn index_of(number: u64) -> usize {
    number as usize % STORED_MESSAGES_MAX
}

/// The bytes that a message takes. One that is longer than any store takes more than that.
fn room_of(bytes: u64) -> u64 {
    bytes.max(1).checked_next_multiple_of(GRAIN).unwrap_or(u64::MAX)
}

fn within(message: StoredMessage, offset: u64, bytes: u64) -> Result<StoredMessage, StoreRefusal> {
    match offset.checked_add(bytes).is_some_and(|end| end <= message.bytes) {
        true => Ok(message),
        false => Err(StoreRefusal::Outside { bytes: message.bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{Incarnation, SegmentId, Slot};

    fn process(slot: u32) -> ProcessId {
        ProcessId { segment: SegmentId(7), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    fn nobody(_: ProcessId) -> bool {
        false
    }

    const QUOTA: u64 = 10 * GRAIN;

    fn store() -> MessageStore {
        MessageStore::new(QUOTA + 1, 4)
    }

    #[test]
    fn a_message_is_written_sealed_read_and_freed_by_those_whose_it_is() {
        let (mut store, [sender, receiver, other]) = (store(), [1, 2, 3].map(process));
        let number = store.store((sender, 5), receiver, 100, nobody).expect("room").number;
        let gone = Err(StoreRefusal::Gone);
        assert_eq!(store.get(receiver, number, (0, 1)), gone, "it is not sealed");
        assert_eq!(store.put(other, number, (0, 1)), gone);
        assert!(store.put(sender, number, (10, 90)).is_ok());
        let outside = Err(StoreRefusal::Outside { bytes: 100 });
        assert_eq!(store.put(sender, number, (10, 91)), outside);
        assert_eq!(store.put(sender, number, (u64::MAX, 2)), outside);
        assert_eq!(store.seal(receiver, number, nobody), gone);
        for _ in 0..2 {
            assert!(store.seal(sender, number, nobody).is_ok());
        }
        assert_eq!(store.put(sender, number, (0, 1)), gone, "it is sealed");
        assert!(store.get(receiver, number, (99, 1)).is_ok());
        assert_eq!(store.get(receiver, number, (99, 2)), outside);
        assert_eq!(store.get(other, number, (0, 1)), gone);
        assert_eq!(store.free(other, number), None);
        assert!(store.free(receiver, number).is_some());
        assert_eq!((store.used(), store.free(receiver, number)), (0, None));
        let next = store.store((sender, 6), receiver, 100, nobody).expect("room").number;
        assert!(next != number && store.get(receiver, number, (0, 1)) == gone);
        assert!(store.free(sender, next).is_some(), "its sender gives it up");
    }

    #[test]
    fn the_quota_bounds_bytes_and_messages() {
        let (mut store, one) = (store(), process(1));
        assert_eq!(store.quota(), QUOTA);
        for bytes in [QUOTA + 1, u64::MAX] {
            assert_eq!(store.store((one, 0), one, bytes, nobody), Err(StoreRefusal::NoRoom));
        }
        let all: Vec<_> =
            (0..4).map(|it| store.store((one, it), one, 1, nobody).expect("room")).collect();
        assert_eq!(store.used(), 4 * GRAIN);
        assert_eq!(store.store((one, 4), one, 1, nobody), Err(StoreRefusal::NoRoom), "messages");
        store.free(one, all[1].number).expect("it is there");
        let long = store.store((one, 4), one, 7 * GRAIN, nobody);
        assert_eq!(long, Err(StoreRefusal::NoRoom), "no such gap");
        let again = store.store((one, 4), one, GRAIN, nobody).expect("the gap");
        assert_eq!((again.place, again.index()), (all[1].place, 1));
        store.free(one, all[0].number).expect("it is there");
        let behind = store.store((one, 5), one, 6 * GRAIN, nobody).expect("the end");
        assert_eq!(behind.place, 4 * GRAIN);
        assert_eq!(store.used(), 9 * GRAIN);
    }

    #[test]
    fn messages_end_with_their_receiver_and_unsealed_ones_with_their_sender() {
        let (mut store, [sender, receiver, other]) = (store(), [1, 2, 3].map(process));
        let sealed = store.store((sender, 0), receiver, 1, nobody).expect("room").number;
        store.seal(sender, sealed, nobody).expect("it is there");
        let begun = store.store((sender, 1), receiver, 1, nobody).expect("room").number;
        let numbers = |freed: Vec<StoredMessage>| -> Vec<u64> {
            freed.into_iter().map(|message| message.number).collect()
        };
        assert_eq!(numbers(store.end(|it| it == other)), []);
        assert_eq!(numbers(store.end(|it| it == sender)), [begun]);
        assert!(store.get(receiver, sealed, (0, 1)).is_ok(), "it survives its sender");
        let late = store.store((sender, 2), receiver, 1, nobody).expect("room").number;
        assert_eq!(numbers(store.end(|it| it == receiver)), [sealed]);
        let gone = store.seal(sender, late, |it| it == receiver);
        assert_eq!(gone, Err(StoreRefusal::Gone), "its sender may have been writing it");
        assert_eq!((store.used(), store.messages().count()), (0, 0));
    }

    #[test]
    fn a_request_that_is_repeated_finds_its_message() {
        let (mut store, [sender, receiver]) = (store(), [1, 2].map(process));
        let message = store.store((sender, 7), receiver, 100, nobody).expect("room");
        assert_eq!(store.store((sender, 7), receiver, 100, nobody), Ok(message));
        let other = store.store((receiver, 7), receiver, 100, nobody).expect("room");
        assert_ne!(other.number, message.number);
        store.seal(sender, message.number, nobody).expect("it is there");
        let gone = store.store((receiver, 7), receiver, 100, |_| true);
        assert_eq!((gone, store.messages().count()), (Err(StoreRefusal::ReceiverGone), 1));
        let later = store.store((sender, 7), receiver, 100, nobody).expect("room");
        assert_ne!(later.number, message.number, "the numbers of requests begin again one day");
    }

    #[test]
    fn the_next_run_goes_on_with_all_that_can_be() {
        let (mut store, one) = (store(), process(1));
        let all: Vec<_> =
            (0..3).map(|it| store.store((one, it), one, 1, nobody).expect("room")).collect();
        let sealed = store.seal(one, all[2].number, nobody).expect("it is there");
        store.free(one, all[1].number).expect("it is there");
        let next = store.next();
        let odd = StoredMessage { place: sealed.place + 1, number: sealed.number - 1, ..sealed };
        let over = StoredMessage { bytes: 65, place: sealed.place - GRAIN, ..odd };
        let outside = StoredMessage { place: u64::MAX / GRAIN * GRAIN, ..odd };
        let future = StoredMessage { place: GRAIN, number: next << INDEX_BITS | 1, ..sealed };
        let no_index = StoredMessage { place: GRAIN, number: sealed.number + 1, ..sealed };
        let records = [all[0], sealed, sealed, odd, over, outside, future, no_index];
        let mut resumed = MessageStore::resumed(QUOTA, 3, next, records);
        assert_eq!(resumed.messages().collect::<Vec<_>>(), [&all[0], &sealed]);
        assert_eq!((resumed.used(), resumed.next()), (2 * GRAIN, next));
        assert_eq!(resumed.store((one, 0), one, 1, nobody), Ok(all[0]), "its answer was lost");
    }
}
