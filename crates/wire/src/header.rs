//! The 16 bytes in front of every message.
//!
//! ```text
//!  byte  0        2      3       4              8              12            16
//!        | sequence | kind | flags | length     | context      | tag          |
//!                     class: the two high bits of the kind byte
//! ```
//!
//! The first eight bytes are one word, the *head*. In shared memory its store publishes the message, so the sequence
//! number distinguishes a fresh line from a stale one. On a socket the same bytes travel in little-endian order. The
//! source is not part of the header: the ring or the connection that carries a message names its sender.

/// The length of an encoded header.
pub const HEADER_BYTES: usize = 16;
/// The length of the data of [`Kind::Received`] and [`Kind::Granted`].
pub const POSITION_BYTES: usize = 8;

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The data travel with the header: this is the whole message.
    Eager = 1,
    /// The data lie in the shared heap; a [`crate::Reference`] to them travels.
    Reference = 2,
    /// A large message is offered; its data follow when the receiver asks for them.
    Offer = 3,
    /// The receiver of an offer asks for the data.
    Accept = 4,
    /// A part of an accepted message.
    Part = 5,
    /// A message that was offered was read where it lies, or thrown away: the sender may reuse its buffer.
    Done = 6,
    /// From now on the sender writes to a ring (shared memory only; never seen by matching).
    RingOpen = 7,
    /// A message between the kernels of two processes.
    Control = 8,
    /// The sender withdraws a message that has met no receive.
    Withdraw = 9,
    /// The message had met no receive and will meet none: its sender has asked for it, no such mailbox is there, or the
    /// receiver leaves. The tag says which.
    Withdrawn = 10,
    /// The sender leaves in good order, and nothing follows (on a stream only; never seen by matching).
    Goodbye = 11,
    /// The data lie in a cell (handoff buffer) of the segment, which then belongs to the receiver; its number and the
    /// length of the data travel.
    InCell = 12,
    /// The sender has received all frames up to a position (on a lane only; never seen by matching). The position, 64
    /// bits, is the data.
    Received = 13,
    /// The receiver of this may send up to a position (on a lane only; never seen by matching). The position, 64 bits,
    /// is the data.
    Granted = 14,
    /// The process has ended, and nothing follows (from a relay only; never seen by matching).
    EndMarker = 15,
    /// The relay of the receiver's host writes to a region ([`crate::relay`]; never seen by matching).
    RelayPut = 16,
    /// The relay reads from a region.
    RelayGet = 17,
    /// The relay changes a word of a region, or looks at the region.
    RelayWord = 18,
    /// The relay answers a request.
    RelayAnswer = 19,
    /// A piece of a frame for a process of the relay's host ([`crate::relayed`]; never seen by matching).
    Relayed = 20,
    /// A process is about to send relayed frames, or the relay will take them.
    RelayOpen = 21,
    /// A chunk of a message that goes in chunks: it names the send, and fits into one of the receiver's fixed buffers.
    Chunk = 22,
    /// So many of the receiver's fixed buffers are empty again: the context of low priority, the tag of high priority.
    Emptied = 23,
    /// The data of an offered message are stored on a host, from which the receiver fetches them ([`crate::stored`]).
    Stored = 24,
    /// The relay stores data, or has what it stores fetched (never seen by matching).
    RelayStored = 25,
}

impl Kind {
    const ALL: [Self; 25] = [
        Self::Eager,
        Self::Reference,
        Self::Offer,
        Self::Accept,
        Self::Part,
        Self::Done,
        Self::RingOpen,
        Self::Control,
        Self::Withdraw,
        Self::Withdrawn,
        Self::Goodbye,
        Self::InCell,
        Self::Received,
        Self::Granted,
        Self::EndMarker,
        Self::RelayPut,
        Self::RelayGet,
        Self::RelayWord,
        Self::RelayAnswer,
        Self::Relayed,
        Self::RelayOpen,
        Self::Chunk,
        Self::Emptied,
        Self::Stored,
        Self::RelayStored,
    ];

    /// Whether only channels send and handle frames of this kind: matching never sees one.
    #[must_use]
    pub const fn is_of_channels(self) -> bool {
        match self {
            Self::RingOpen
            | Self::Goodbye
            | Self::Received
            | Self::Granted
            | Self::EndMarker
            | Self::RelayPut
            | Self::RelayGet
            | Self::RelayWord
            | Self::RelayAnswer
            | Self::Relayed
            | Self::RelayOpen
            | Self::RelayStored => true,
            Self::Eager
            | Self::Reference
            | Self::Offer
            | Self::Accept
            | Self::Part
            | Self::Done
            | Self::Control
            | Self::Withdraw
            | Self::Withdrawn
            | Self::InCell
            | Self::Chunk
            | Self::Emptied
            | Self::Stored => false,
        }
    }

    const fn from_bits(bits: u8) -> Option<Self> {
        if bits == 0 || bits as usize > Self::ALL.len() {
            return None;
        }
        Some(Self::ALL[bits as usize - 1])
    }
}

/// The three kinds of traffic. Urgent messages overtake user traffic and never carry MPI messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Messages of programs.
    User = 0,
    /// Messages of kernels.
    Kernel = 1,
    /// Messages that must not wait behind bulk data.
    Urgent = 2,
}

impl Class {
    const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::User),
            1 => Some(Self::Kernel),
            2 => Some(Self::Urgent),
            _ => None,
        }
    }
}

/// The flags of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The data were written in place by the sender and may be read in place by the receiver.
    pub const LOAN: Self = Self(1);
    /// The data lie in the bulk area of the ring, not in the header's line.
    pub const BULK: Self = Self(2);
    /// A receiver that does not know the kind may skip the message (on a lane only).
    pub const SKIPPABLE: Self = Self(4);
    /// The part is the last of its message, whose sender waits for the word that it was received.
    pub const LAST: Self = Self(8);
    const KNOWN: u8 = 15;

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The fields of a message that a receiver needs to match it and to find its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// A counter of the messages of one sender to one receiver, whatever path they take.
    pub sequence: u16,
    /// The purpose of the message.
    pub kind: Kind,
    /// The kind of traffic.
    pub class: Class,
    /// The flags.
    pub flags: Flags,
    /// The length of the data in bytes, here or elsewhere; each [`Kind`] defines its use.
    pub length: u32,
    /// The context in which it was sent.
    pub context: u32,
    /// The sender's tag.
    pub tag: u32,
}

/// The reason why 16 bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The kind byte has an unknown value.
    #[error("a message header names the unknown kind {0}: its sender is broken or newer than this")]
    UnknownKind(u8),
    /// The class bits have an unknown value.
    #[error("a message header names the unknown traffic class {0}: its sender is broken or newer")]
    UnknownClass(u8),
    /// A flag is set that no sender sets.
    #[error(
        "a message header has the unknown flags {0:#x}: its sender is broken or newer than this"
    )]
    UnknownFlags(u8),
}

impl Header {
    /// The last header of a stream whose sender leaves in good order.
    pub const GOODBYE: Self = Self { class: Class::Kernel, ..Self::user(Kind::Goodbye, 0, 0, 0) };

    /// The header of the frame that opens the relayed path of a process to a host, and of the relay's answer.
    pub const RELAY_OPEN: Self =
        Self { class: Class::Kernel, ..Self::user(Kind::RelayOpen, 0, 0, 0) };

    /// The header of the frame that ends a relayed stream.
    pub const END_MARKER: Self =
        Self { class: Class::Kernel, ..Self::user(Kind::EndMarker, 0, 0, 0) };

    /// The header of a frame about a position, whose data are `POSITION_BYTES` long.
    pub const fn position(kind: Kind) -> Self {
        Self { class: Class::Kernel, ..Self::user(kind, POSITION_BYTES as u32, 0, 0) }
    }

    /// Creates a header of user traffic with the given kind, context and tag.
    pub const fn user(kind: Kind, length: u32, context: u32, tag: u32) -> Self {
        Self { sequence: 0, kind, class: Class::User, flags: Flags::NONE, length, context, tag }
    }

    /// The first word, which publishes a message in shared memory.
    #[inline]
    pub const fn head(&self) -> u64 {
        self.sequence as u64
            | (self.kind as u64 | (self.class as u64) << 6) << 16
            | (self.flags.0 as u64) << 24
            | (self.length as u64) << 32
    }

    /// The second word, which matching uses.
    #[inline]
    pub const fn label(&self) -> u64 {
        self.context as u64 | (self.tag as u64) << 32
    }

    /// The sequence number in a head word, without the rest.
    #[inline]
    pub const fn sequence_of(head: u64) -> u16 {
        head as u16
    }

    /// Decodes the header in these two words.
    ///
    /// # Errors
    /// [`HeaderError`] if no sender writes such words.
    #[inline]
    pub const fn from_words(head: u64, label: u64) -> Result<Self, HeaderError> {
        let kind_byte = (head >> 16) as u8;
        let Some(kind) = Kind::from_bits(kind_byte & 0x3f) else {
            return Err(HeaderError::UnknownKind(kind_byte & 0x3f));
        };
        let Some(class) = Class::from_bits(kind_byte >> 6) else {
            return Err(HeaderError::UnknownClass(kind_byte >> 6));
        };
        let flags = (head >> 24) as u8;
        if flags & !Flags::KNOWN != 0 {
            return Err(HeaderError::UnknownFlags(flags));
        }
        Ok(Self {
            sequence: head as u16,
            kind,
            class,
            flags: Flags(flags),
            length: (head >> 32) as u32,
            context: label as u32,
            tag: (label >> 32) as u32,
        })
    }

    /// Encodes the header as it travels on a socket.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.head().to_le_bytes());
        bytes[8..].copy_from_slice(&self.label().to_le_bytes());
        bytes
    }

    /// Decodes the header in these bytes.
    ///
    /// # Errors
    /// [`HeaderError`] if the bytes cannot have come from [`Header::encode`].
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderError> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Self::from_words(word(0), word(8))
    }

    /// The length of the data behind a header of an unknown kind, if a receiver may skip both. `None` for known kinds,
    /// and for unknown ones without [`Flags::SKIPPABLE`].
    #[must_use]
    pub const fn skippable_length(bytes: &[u8; HEADER_BYTES]) -> Option<u32> {
        let kind = bytes[2] & 0x3f;
        let is_known = kind == 0 || Kind::from_bits(kind).is_some();
        if is_known || !Flags(bytes[3]).contains(Flags::SKIPPABLE) {
            return None;
        }
        Some(u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Header {
        Header {
            sequence: 0xfffe,
            kind: Kind::Offer,
            class: Class::Urgent,
            flags: Flags::LOAN.with(Flags::BULK),
            length: u32::MAX,
            context: 0x8000_0001,
            tag: 7,
        }
    }

    #[test]
    fn a_header_survives_its_encoding() {
        for kind in Kind::ALL {
            for class in [Class::User, Class::Kernel, Class::Urgent] {
                let header = Header { kind, class, ..sample() };
                assert_eq!(Header::decode(&header.encode()), Ok(header));
            }
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let header = Header { flags: Flags::LOAN, ..sample() };
        assert_eq!(
            header.encode(),
            [0xfe, 0xff, 0x83, 1, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0x80, 7, 0, 0, 0]
        );
    }

    #[test]
    fn bytes_that_no_sender_writes_are_refused() {
        let good = sample().encode();
        let mut unknown_kind = good;
        unknown_kind[2] = 0x3f;
        assert_eq!(Header::decode(&unknown_kind), Err(HeaderError::UnknownKind(0x3f)));
        let mut unknown_class = good;
        unknown_class[2] |= 0xc0;
        assert_eq!(Header::decode(&unknown_class), Err(HeaderError::UnknownClass(3)));
        let mut unknown_flags = good;
        unknown_flags[3] = 0x80;
        assert_eq!(Header::decode(&unknown_flags), Err(HeaderError::UnknownFlags(0x80)));
        assert!(Header::decode(&[0; HEADER_BYTES]).is_err(), "an untouched line is no header");
    }

    #[test]
    fn only_unknown_kinds_are_skipped_and_only_with_the_flag() {
        let mut bytes = Header { flags: Flags::SKIPPABLE, length: 77, ..sample() }.encode();
        assert_eq!(Header::skippable_length(&bytes), None, "a known kind");
        bytes[2] = 0x3f;
        assert_eq!(Header::skippable_length(&bytes), Some(77));
        bytes[3] = 3;
        assert_eq!(Header::skippable_length(&bytes), None, "without the flag");
        (bytes[2], bytes[3]) = (0, 4);
        assert_eq!(Header::skippable_length(&bytes), None, "zero is no kind");
    }
}
