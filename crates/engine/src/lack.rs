//! The reason why a member has nothing in the place of data that others need of it, as it travels to them.
//!
//! A member that lacks data sends a message of a length that stands for that, or comes to the board without data, and
//! says why. A member that passes data on does the same with what it was told, so all that depend on the data learn the
//! reason, however many members are between.

use landeck_collectives::Operation;
use landeck_kernel::Area;
use landeck_memory::Buffer;

use crate::binding::Owned;
use crate::fault::Fault;

/// Why a member has no data to pass on. Members are named by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// This member has no memory for its part.
    Memory { member: u32 },
    /// This member could not do its part.
    Part { member: u32 },
    /// The data of `member` have another length than `by` expects, which needs them.
    Length { member: u32, by: u32, message_bytes: u64, expected_bytes: u64 },
}

/// The length of the message that a member sends in the place of data. A receiver that expects so many bytes gets one
/// more.
const FRAME_BYTES: usize = 239;
/// The bytes of the words at the beginning of such a message; the others are filled.
const WORDS_BYTES: usize = 24;
const FILLED_WITH: u8 = 0xA5;

const MEMORY: u64 = 0xB1;
const PART: u64 = 0xB2;
const LENGTH: u64 = 0xB3;
const KIND_BITS: u32 = 8;
const MEMBER_BITS: u32 = 24;

impl Lack {
    /// The fault of a member that needs the data.
    pub(crate) fn fault(self, operation: Operation) -> Fault {
        match self {
            Self::Memory { member } => Fault::NoRoom { member, operation },
            Self::Part { member } => Fault::Spoiled { member, operation },
            Self::Length { member, by, message_bytes, expected_bytes } => {
                Fault::LengthElsewhere { member, by, operation, message_bytes, expected_bytes }
            }
        }
    }

    /// Returns the lack if it names members of a group of this size, else that `sender` could not do its part.
    pub(crate) fn in_group(self, size: usize, sender: u32) -> Self {
        let is_member = |member: u32| (member as usize) < size;
        let is_possible = match self {
            Self::Memory { member } | Self::Part { member } => is_member(member),
            Self::Length { member, by, .. } => is_member(member) && is_member(by),
        };
        if is_possible { self } else { Self::Part { member: sender } }
    }

    /// As it stands on a board.
    pub(crate) fn to_words(self) -> [u64; 3] {
        let first =
            |kind, member: u32| kind | (u64::from(member) & ((1 << MEMBER_BITS) - 1)) << KIND_BITS;
        match self {
            Self::Memory { member } => [first(MEMORY, member), 0, 0],
            Self::Part { member } => [first(PART, member), 0, 0],
            Self::Length { member, by, message_bytes, expected_bytes } => {
                [first(LENGTH, member) | u64::from(by) << 32, message_bytes, expected_bytes]
            }
        }
    }

    /// From how it stands on a board; none for other words.
    pub(crate) fn from_words([first, message_bytes, expected_bytes]: [u64; 3]) -> Option<Self> {
        let member = (first >> KIND_BITS) as u32 & ((1 << MEMBER_BITS) - 1);
        match first & ((1 << KIND_BITS) - 1) {
            MEMORY => Some(Self::Memory { member }),
            PART => Some(Self::Part { member }),
            LENGTH => {
                let by = (first >> 32) as u32;
                Some(Self::Length { member, by, message_bytes, expected_bytes })
            }
            _ => None,
        }
    }

    /// The lack in a message that came in the place of `expected_bytes`, whose beginning is in `area`; none in other
    /// messages. The area may have room for less than all of it says.
    #[cold]
    pub(crate) fn in_message(
        area: &Area,
        message_bytes: u64,
        expected_bytes: u64,
        sender: u32,
    ) -> Option<Self> {
        if message_bytes != frame_bytes(expected_bytes) as u64 {
            return None;
        }
        let mut said = Vec::new();
        area.append_to(0, frame_bytes(expected_bytes), &mut said);
        let words = &said[..said.len().min(WORDS_BYTES)];
        let is_filled = said.iter().skip(WORDS_BYTES).all(|&byte| byte == FILLED_WITH);
        let mut bytes = [0; WORDS_BYTES];
        bytes[..words.len()].copy_from_slice(words);
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[8 * at..8 * at + 8]);
            u64::from_le_bytes(word)
        };
        let lack = match words.len() {
            0 => return Some(Self::Part { member: sender }),
            _ => Self::from_words([word(0), word(1), word(2)]).filter(|_| is_filled)?,
        };
        Some(match (lack, words.len()) {
            (_, WORDS_BYTES) => lack,
            (Self::Memory { .. }, 1..4) => Self::Memory { member: sender },
            (Self::Memory { .. } | Self::Part { .. }, 4..) => lack,
            (Self::Length { by, .. }, 8..) => Self::Part { member: by },
            _ => Self::Part { member: sender },
        })
    }

    /// The memory of the messages that say it.
    #[cold]
    pub(crate) fn frame(self) -> Owned {
        let owned = Owned::new(FRAME_BYTES + 1);
        let mut bytes = [FILLED_WITH; FRAME_BYTES + 1];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.to_words()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        owned.buffer().write(0, (&bytes[..]).into());
        owned
    }

    /// The message in the place of so many bytes. For want of memory no byte is missing where there are none.
    pub(crate) fn message(self, frame: Buffer, bytes: u64) -> Area {
        match (self, bytes) {
            (Self::Memory { .. }, 0) => Area::EMPTY,
            _ => Area::contiguous(frame.part(0, frame_bytes(bytes))),
        }
    }
}

/// The length of the message in the place of so many bytes.
fn frame_bytes(bytes: u64) -> usize {
    FRAME_BYTES + usize::from(bytes == FRAME_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LACKS: [Lack; 3] = [
        Lack::Memory { member: 3 },
        Lack::Part { member: 70_000 },
        Lack::Length { member: 1, by: 70_000, message_bytes: 8, expected_bytes: u64::MAX },
    ];

    /// The lack that a receiver with so many bytes of room finds, and what it passes on.
    fn received(lack: Lack, expected_bytes: usize) -> Option<Lack> {
        let (frame, room) = (lack.frame(), Owned::new(expected_bytes));
        let sent = lack.message(frame.buffer(), expected_bytes as u64);
        let area = Area::contiguous(room.buffer());
        let bytes = sent.packed_bytes();
        sent.part(0, bytes.min(expected_bytes as u64)).copy_to(&area);
        Lack::in_message(&area, bytes, expected_bytes as u64, 9)
    }

    #[test]
    fn a_lack_survives_its_message_and_its_words() {
        for lack in LACKS {
            assert_eq!(Lack::from_words(lack.to_words()), Some(lack));
            for expected_bytes in [24, 40, 238, 239, 240, 10_000] {
                assert_eq!(received(lack, expected_bytes), Some(lack), "{expected_bytes} B");
            }
        }
        assert_eq!(Lack::from_words([7, 7, 7]), None);
    }

    #[test]
    fn a_receiver_of_a_few_bytes_finds_what_they_have_room_for() {
        let [memory, part, length] = LACKS;
        assert_eq!(received(memory, 4), Some(memory));
        assert_eq!(received(memory, 1), Some(Lack::Memory { member: 9 }));
        assert_eq!(received(part, 8), Some(part));
        assert_eq!(received(length, 8), Some(Lack::Part { member: 70_000 }));
        assert_eq!(received(length, 4), Some(Lack::Part { member: 9 }));
        assert_eq!(received(length, 0), Some(Lack::Part { member: 9 }));
        assert_eq!(received(memory, 0), None, "nothing is missing of no bytes");
    }

    #[test]
    fn other_data_of_that_length_are_no_lack() {
        let data = Owned::new(300);
        let area = Area::contiguous(data.buffer());
        assert_eq!(Lack::in_message(&area, 239, 300, 9), None, "zeroes");
        data.buffer().write(0, (&[MEMORY as u8; 300][..]).into());
        assert_eq!(Lack::in_message(&area, 239, 300, 9), None, "not filled as such a message");
        assert_eq!(Lack::in_message(&area, 238, 300, 9), None);
    }

    #[test]
    fn a_lack_that_names_nobody_is_its_senders() {
        let lack = Lack::Length { member: 1, by: 8, message_bytes: 8, expected_bytes: 9 };
        assert_eq!(lack.in_group(8, 2), Lack::Part { member: 2 });
        assert_eq!(lack.in_group(9, 2), lack);
    }
}
