//! The properties of data that stay on a host, a checker each, and what the simulator knows of each message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use landeck_kernel::stored::FetchingState;
use landeck_protocols::hosts::{MessageStore, StoredMessage};
use landeck_wire::ProcessId;
use landeck_wire::relay::RELAY_PART_BYTES;

use super::draw::Draw;
use super::host_checks::{Check, ensure};

/// The most parts of a message.
const PARTS_MAX: usize = 4;
/// The places at which the bytes of messages begin.
const FIRSTS: usize = 200_000;
/// Places and lengths in a store are multiples of this.
const GRAIN: u64 = 64;
const ONCE: &str = "a message is fetched once, with its bytes";
const UNFETCHED: &str = "no message is freed unfetched";
const QUOTA: &str = "a store is within its quota, and no two messages overlap";

/// A message that a process has begun to store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The numbers of the processes.
    pub(super) sender: usize,
    pub(super) receiver: usize,
    pub(super) host: usize,
    pub(super) bytes: u64,
    /// The number in the store, when the sender knows it.
    pub(super) number: Option<u64>,
    pub(super) state: SentState,
    /// Where its bytes begin in the bytes of all messages.
    first: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentState {
    /// The receiver does not know of it.
    Untold,
    /// The receiver knows of it.
    Told,
    /// The receiver has it.
    Fetched,
    /// The receiver does not want it.
    GivenUp,
    /// It is not stored, or its sender has given it up.
    Refused,
}

/// The bytes from which those of each message are a part.
fn all_bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let mut draw = Draw::new(1);
        let words = (FIRSTS + PARTS_MAX * RELAY_PART_BYTES) / 8 + 1;
        (0..words).flat_map(|_| draw.bits().to_le_bytes()).collect()
    })
}

impl Sent {
    /// Draws a message to a receiver, over a host.
    pub(super) fn new(sender: usize, (receiver, host): (usize, usize), draw: &mut Draw) -> Self {
        let part = RELAY_PART_BYTES as u64;
        let bytes = match draw.below(10) {
            0 => 0,
            1..6 => 1 + draw.below(300),
            6 => part - 1 + draw.below(3),
            7 => 2 * part - 1 + draw.below(3),
            _ => draw.below(PARTS_MAX as u64 * part + 1),
        };
        let (number, state) = (None, SentState::Untold);
        let first = draw.below(FIRSTS as u64) as usize;
        Self { sender, receiver, host, bytes, number, state, first }
    }

    /// So many of its bytes from a position on.
    pub(super) fn data(&self, position: u64, bytes: usize) -> &'static [u8] {
        &all_bytes()[self.first + position as usize..][..bytes]
    }
}

/// A message in a store takes whole grains.
fn room_of(message: &StoredMessage) -> u64 {
    message.bytes.max(1).next_multiple_of(GRAIN)
}

/// No other message is where a process writes the data of its own.
pub(super) fn place_is_its_own(store: &MessageStore, sent: &Sent, place: u64) -> Check {
    for message in store.messages() {
        let is_apart =
            message.place + room_of(message) <= place || place + sent.bytes <= message.place;
        let is_it = (message.place, message.bytes) == (place, sent.bytes) && !message.is_sealed;
        ensure(is_apart || is_it, "a process writes into its own message", || {
            format!("{sent:?} at {place}, but there is {message:?}")
        })?;
    }
    Ok(())
}

/// A message that was given up is not stored.
pub(super) fn is_wanted(sent: &Sent) -> Check {
    let is_wanted = sent.state == SentState::Untold;
    ensure(is_wanted, "a message that is given up is not stored", || format!("{sent:?}"))
}

/// Each part of a message comes once, in its order, with its bytes.
pub(super) fn part_is_next(sent: &Sent, come: u64, (position, data): (u64, &[u8])) -> Check {
    let is_next = position == come && position + data.len() as u64 <= sent.bytes;
    ensure(is_next, ONCE, || format!("{} bytes at {position}, not {come}", data.len()))?;
    ensure(sent.data(position, data.len()) == data, ONCE, || {
        format!("{} other bytes at {position} of {sent:?}", data.len())
    })
}

/// A message comes whole, and once.
pub(super) fn message_comes_once(sent: &Sent, come: u64) -> Check {
    ensure(come == sent.bytes && sent.state == SentState::Told, ONCE, || {
        format!("{come} bytes of {sent:?} have come")
    })
}

/// A store takes what its messages take, no more than its quota, and none takes the room of another one.
pub(super) fn quota_holds(store: &MessageStore) -> Check {
    let mut messages: Vec<&StoredMessage> = store.messages().collect();
    messages.sort_by_key(|message| message.place);
    let sum: u64 = messages.iter().map(|message| room_of(message)).sum();
    ensure(sum == store.used() && sum <= store.quota(), QUOTA, || {
        format!("{} of {} bytes are used, and {sum} taken", store.used(), store.quota())
    })?;
    for pair in messages.windows(2) {
        let end = pair[0].place + room_of(pair[0]);
        ensure(end <= pair[1].place, QUOTA, || format!("{:?} and {:?}", pair[0], pair[1]))?;
    }
    let end = messages.last().map_or(0, |message| message.place + room_of(message));
    ensure(end <= store.quota(), QUOTA, || format!("a message ends at {end}"))
}

/// The messages that a store has had.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The messages that are there, by their numbers.
    there: BTreeMap<u64, StoredMessage>,
    /// The numbers of those that are gone.
    gone: BTreeSet<u64>,
}

impl Numbers {
    /// A number is that of one message. One that is gone does not return, and one that is sealed stays so.
    pub(super) fn name_one_message(&mut self, store: &MessageStore) -> Check {
        let now = store.messages().map(|message| (message.number, *message)).collect();
        let before = std::mem::replace(&mut self.there, now);
        for message in self.there.values() {
            let known = before.get(&message.number);
            let is_same = known.is_none_or(|known| {
                let was = StoredMessage { is_sealed: message.is_sealed, ..*known };
                was == *message && known.is_sealed <= message.is_sealed
            });
            let is_it = is_same && !self.gone.contains(&message.number);
            ensure(is_it, "a number is that of one message", || {
                format!("{message:?}, but before {known:?}")
            })?;
        }
        self.gone.extend(before.keys().filter(|number| !self.there.contains_key(number)));
        Ok(())
    }
}

/// A message of which its receiver knows is there until the receiver has it.
pub(super) fn told_messages_are_there<'a>(
    store: &MessageStore,
    told: impl Iterator<Item = &'a Sent>,
) -> Check {
    for sent in told {
        let mut messages = store.messages();
        let is_there = messages.any(|it| Some(it.number) == sent.number && it.is_sealed);
        ensure(is_there, UNFETCHED, || format!("{sent:?}"))?;
    }
    Ok(())
}

/// A fetch is not refused.
pub(super) fn is_not_refused(sent: &Sent, state: FetchingState) -> Check {
    let is_refused = matches!(state, FetchingState::Refused(_));
    ensure(!is_refused, UNFETCHED, || format!("{state:?}: {sent:?}"))
}

/// When everything was fetched or given up, nothing is left but sealed messages of which their receivers do not know, as
/// their senders have died. Returns how many those are.
pub(super) fn nothing_is_left(
    store: &MessageStore,
    is_known: impl Fn(u64) -> bool,
    has_died: impl Fn(ProcessId) -> bool,
    is_gone: impl Fn(ProcessId) -> bool,
) -> Result<u32, (&'static str, String)> {
    let mut left = 0;
    for message in store.messages() {
        let is_untold = message.is_sealed && has_died(message.sender) && !is_known(message.number);
        ensure(is_untold && !is_gone(message.receiver), "nothing is left in a store", || {
            format!("{message:?}")
        })?;
        left += 1;
    }
    Ok(left)
}
