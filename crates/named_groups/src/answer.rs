//! The answer to a request, as a client's word of the log holds it.

use landeck_protocols::service::Outcome;

const VALUE_BITS: u32 = 20;
const VALUE_MASK: u32 = (1 << VALUE_BITS) - 1;

/// The answer to a request. Numbers are low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The request changes nothing any more.
    Nothing,
    /// The message was accepted.
    Accepted(u32),
    /// The mailbox is a new member.
    Joined(u32),
    /// The mailbox was a member before.
    AlreadyMember(u32),
    /// The group has as many members as it can have.
    Full,
    /// The group takes no such request any more.
    Closed,
    /// The member has left.
    Left,
    /// The member has arrived at this round.
    Come(u32),
    /// The group is being destroyed.
    Destroying,
    /// The message has no room, or the leaving member lacks a copy of a message that was accepted before.
    NotNow,
    /// The broadcast is held; its ticket is the place of the entry.
    Held(u32),
}

impl Answer {
    pub(crate) fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Broadcast(number) => Self::Accepted(number as u32),
            Outcome::Joined(id) => Self::Joined(id),
            Outcome::AlreadyMember(id) => Self::AlreadyMember(id),
            Outcome::Full => Self::Full,
            Outcome::Closed => Self::Closed,
            Outcome::Removed(..) => Self::Left,
            Outcome::Come(round) => Self::Come(round as u32),
            Outcome::Destroying => Self::Destroying,
            Outcome::Held(ticket) => Self::Held(ticket as u32),
            _ => Self::Nothing,
        }
    }

    /// The number with these low bits that is nearest to `seen`, a number from shortly before or after.
    pub(crate) fn nearest(seen: u64, low: u32) -> u64 {
        let ahead = low.wrapping_sub(seen as u32) << (32 - VALUE_BITS);
        seen.wrapping_add_signed(i64::from(ahead as i32 >> (32 - VALUE_BITS)))
    }

    pub(crate) fn to_bits(self) -> u32 {
        let (kind, value) = match self {
            Self::Nothing => (0, 0),
            Self::Accepted(number) => (1, number),
            Self::Joined(id) => (2, id),
            Self::AlreadyMember(id) => (3, id),
            Self::Full => (4, 0),
            Self::Closed => (5, 0),
            Self::Left => (6, 0),
            Self::Come(round) => (7, round),
            Self::Destroying => (8, 0),
            Self::NotNow => (9, 0),
            Self::Held(ticket) => (10, ticket),
        };
        kind << VALUE_BITS | value & VALUE_MASK
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        let value = bits & VALUE_MASK;
        match bits >> VALUE_BITS {
            1 => Self::Accepted(value),
            2 => Self::Joined(value),
            3 => Self::AlreadyMember(value),
            4 => Self::Full,
            5 => Self::Closed,
            6 => Self::Left,
            7 => Self::Come(value),
            8 => Self::Destroying,
            9 => Self::NotNow,
            10 => Self::Held(value),
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_were_given() {
        for answer in [
            Answer::Nothing,
            Answer::Accepted(VALUE_MASK),
            Answer::Joined(1023),
            Answer::AlreadyMember(0),
            Answer::Full,
            Answer::Closed,
            Answer::Left,
            Answer::Come(5),
            Answer::Destroying,
            Answer::NotNow,
            Answer::Held(7),
        ] {
            assert_eq!(Answer::from_bits(answer.to_bits()), answer);
            assert!(answer.to_bits() < 1 << 24);
        }
    }

    #[test]
    fn numbers_are_known_by_their_low_bits() {
        for number in [0u64, 5, 1 << 20, (1 << 20) - 1, (1 << 40) + 3] {
            for seen in [number.saturating_sub(1), number, number + 1, number + 400_000] {
                assert_eq!(Answer::nearest(seen, number as u32 & VALUE_MASK), number, "{seen}");
            }
        }
    }
}
