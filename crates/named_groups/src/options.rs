//! How a group is made, and the encoding of that as two words beside its memory.

use std::time::Duration;

use landeck_host::report::thousands;
use landeck_memory::shared_area::AREA_BYTES_MAX;
use landeck_objects::group_log::{GroupShape, MESSAGES_MAX};
use landeck_protocols::service::{MEMBERS_MAX, Rules, SNAPSHOT_WORDS_MAX};

use crate::group_error::GroupError;

/// Bits of the second word that hold the bytes; the slot stands above them.
const BYTES_BITS: u32 = 48;
const SLOT_MASK: u64 = (1 << 16) - 1;
/// The most bytes that the messages of a group can have together. Beside them lie 8 bytes for each 4 KiB, and the log.
const BYTES_MAX: u64 = AREA_BYTES_MAX - (4 << 30);

/// How a group is made.
///
/// ```
/// # use landeck_named_groups::{GroupOptions, WhenFull};
/// use std::time::Duration;
/// let options = GroupOptions::default()
///     .minimum(4)
///     .messages(64)
///     .when_full(WhenFull::Evict(Duration::from_secs(2)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    minimum: u32,
    messages: u32,
    bytes: u64,
    is_persistent: bool,
    when_full: WhenFull,
    served_by: ServedBy,
}

/// The process that appends to a group's log for its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServedBy {
    /// Each process appends its own entries, by one exchange of one word each.
    #[default]
    Nobody,
    /// A server, which gets requests as messages. It is a thread of the process that makes the group.
    Creator,
    /// A server in the process of this slot of the job, from when that opens the group.
    Process(u32),
    /// A server in the launcher, beside all processes: `landeck run --serve-groups`.
    Launcher,
}

/// The treatment of a broadcast that has no room because a member does not retrieve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits.
    #[default]
    Hold,
    /// It waits for so long (whole milliseconds); then the members that have retrieved least are removed
    /// from the group.
    Evict(Duration),
    /// It is refused ([`GroupError::Full`]).
    Refuse,
}

impl Default for GroupOptions {
    /// No minimum; 1,024 messages of 256 MiB together; ends with the last member; broadcasts wait.
    fn default() -> Self {
        Self {
            minimum: 0,
            messages: 1024,
            bytes: 256 << 20,
            is_persistent: false,
            when_full: WhenFull::Hold,
            served_by: ServedBy::Nobody,
        }
    }
}

impl GroupOptions {
    /// Sets how many members the group needs to start. Until it has had so many once, broadcasts,
    /// synchronisation and collective operations wait.
    #[must_use]
    pub const fn minimum(self, minimum: u32) -> Self {
        Self { minimum, ..self }
    }

    /// Sets how many messages may wait in a mailbox (rounded up to a power of two). One process may have
    /// half of them.
    #[must_use]
    pub const fn messages(self, messages: u32) -> Self {
        Self { messages, ..self }
    }

    /// Sets how many bytes the messages may have together, and thus one message. Memory is used where
    /// messages lie, not before.
    #[must_use]
    pub const fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Sets whether the group stays without members, until it is destroyed.
    #[must_use]
    pub const fn persistent(self, is_persistent: bool) -> Self {
        Self { is_persistent, ..self }
    }

    /// Sets what happens to a broadcast without room.
    #[must_use]
    pub const fn when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// Sets whether the group has a server, as DECK's groups had, and where it is. Each join, leave and destruction
    /// is then a message to the server and one back. A broadcast is one message to the server and one to each member,
    /// a synchronisation one from and one to each member. Broadcasts of different senders arrive in no promised
    /// order. Accepted entries are as safe as without a server. When the server is gone, the next process that needs
    /// it takes its seat.
    #[must_use]
    pub const fn served_by(self, served_by: ServedBy) -> Self {
        Self { served_by, ..self }
    }

    /// The slot of the process that serves first; none without a server.
    pub(crate) fn first_server(&self) -> Option<u32> {
        match self.served_by {
            ServedBy::Process(slot) => Some(slot),
            ServedBy::Nobody | ServedBy::Creator | ServedBy::Launcher => None,
        }
    }

    /// The options with the creator's slot in place of [`ServedBy::Creator`].
    pub(crate) fn made_by(self, slot: u32) -> Self {
        match self.served_by {
            ServedBy::Creator => self.served_by(ServedBy::Process(slot)),
            ServedBy::Nobody | ServedBy::Process(_) | ServedBy::Launcher => self,
        }
    }

    /// How many members the group needs to start.
    pub const fn members_to_start(&self) -> u32 {
        self.minimum
    }

    /// Whether the group has a server, and where the first one is. In a group that was made, that is always a
    /// process.
    pub const fn served_by_whom(&self) -> ServedBy {
        self.served_by
    }

    pub(crate) fn full(&self) -> WhenFull {
        self.when_full
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules { minimum: self.minimum, is_persistent: self.is_persistent }
    }

    pub(crate) fn shape(&self) -> Option<GroupShape> {
        GroupShape::new(self.messages, self.bytes, SNAPSHOT_WORDS_MAX as u32)
    }

    /// How many broadcasts one process may have in mailboxes.
    pub(crate) fn credit(&self) -> u64 {
        u64::from(self.messages.next_power_of_two() / 2).max(1)
    }

    /// The shape of the group's memory.
    ///
    /// # Errors
    /// [`GroupError::Options`]: no group can have these options.
    pub(crate) fn check(&self) -> Result<GroupShape, GroupError> {
        let Self { minimum, messages, bytes, .. } = *self;
        let wrong = |what| Err(GroupError::Options { what });
        if minimum as usize > MEMBERS_MAX {
            let (minimum, most) = (thousands(minimum.into()), thousands(MEMBERS_MAX as u64));
            return wrong(format!("the minimum is {minimum} members, at most {most} can be"));
        }
        if !(1..=MESSAGES_MAX).contains(&messages) {
            let (messages, most) = (thousands(messages.into()), thousands(MESSAGES_MAX.into()));
            return wrong(format!("{messages} messages are to wait, 1 to {most} can"));
        }
        if let Some(slot) = self.first_server().filter(|&slot| slot > SLOT_MASK as u32) {
            return wrong(format!("process {slot} is to serve it, and there is none"));
        }
        match self.shape() {
            Some(shape) if bytes <= BYTES_MAX => Ok(shape),
            _ => {
                let (bytes, most) = (thousands(bytes), thousands(BYTES_MAX));
                wrong(format!(
                    "its messages are to have {bytes} bytes together, at most {most} fit"
                ))
            }
        }
    }

    /// The options as words: minimum (16 bits), messages as a power of two (8), flags (8), milliseconds (32); bytes
    /// (48), slot of the server (16).
    pub(crate) fn to_words(self) -> [u64; 2] {
        let (policy, time_ms) = match self.when_full {
            WhenFull::Hold => (0, 0),
            WhenFull::Evict(time) => (1, u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            WhenFull::Refuse => (2, 0),
        };
        let server = self.first_server();
        let flags = u64::from(self.is_persistent) | policy << 1 | u64::from(server.is_some()) << 3;
        let server = u64::from(server.unwrap_or_default()) << BYTES_BITS;
        let messages = u64::from(self.messages.next_power_of_two().ilog2());
        let time_ms = time_ms.min(u64::from(u32::MAX));
        [
            u64::from(self.minimum) | messages << 16 | flags << 24 | time_ms << 32,
            self.bytes | server,
        ]
    }

    /// The options of [`GroupOptions::to_words`]; none for words that encode no options.
    pub(crate) fn from_words([word, bytes]: [u64; 2]) -> Option<Self> {
        let flags = word >> 24 & 0xff;
        let slot = (bytes >> BYTES_BITS) as u32;
        let bytes = bytes & ((1 << BYTES_BITS) - 1);
        let served_by = if flags & 8 != 0 { ServedBy::Process(slot) } else { ServedBy::Nobody };
        let when_full = match flags >> 1 & !4 {
            0 => WhenFull::Hold,
            1 => WhenFull::Evict(Duration::from_millis(word >> 32)),
            2 => WhenFull::Refuse,
            _ => return None,
        };
        let messages = 1u32.checked_shl((word >> 16 & 0xff) as u32)?;
        let minimum = word as u32 & 0xffff;
        let is_persistent = flags & 1 != 0;
        let options = Self { minimum, messages, bytes, is_persistent, when_full, served_by };
        options.check().is_ok().then_some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_travel_as_words() {
        let default = GroupOptions::default();
        let evicting = default.when_full(WhenFull::Evict(Duration::from_millis(2_500)));
        let small = GroupOptions { minimum: 1024, messages: 1, bytes: 0, ..default };
        let served = default.served_by(ServedBy::Process(65_535));
        let all = [default, evicting.persistent(true), small.when_full(WhenFull::Refuse), served];
        for options in all {
            assert_eq!(GroupOptions::from_words(options.to_words()), Some(options));
        }
        assert_eq!(
            GroupOptions::from_words(default.messages(65).to_words()).unwrap().messages,
            128
        );
    }

    #[test]
    fn impossible_options_are_refused() {
        let default = GroupOptions::default();
        for wrong in [
            default.minimum(1025),
            default.messages(0),
            default.messages(65_537),
            default.bytes(u64::MAX),
            default.served_by(ServedBy::Process(65_536)),
        ] {
            assert!(matches!(wrong.check(), Err(GroupError::Options { .. })), "{wrong:?}");
        }
        let text = default.bytes(1 << 41).check().unwrap_err().to_string();
        assert!(
            text.ends_with("have 2,199,023,255,552 bytes together, at most 1,095,216,660,480 fit"),
            "{text}"
        );
        let most = default.bytes(BYTES_MAX).messages(MESSAGES_MAX);
        assert!(most.check().unwrap().memory_bytes(1 << 14) <= AREA_BYTES_MAX);
        for words in [[0x1100, 0], [u64::MAX, 0], [40 << 16, 0], [3 << 25, 0]] {
            assert_eq!(GroupOptions::from_words(words), None, "{words:x?}");
        }
    }
}
