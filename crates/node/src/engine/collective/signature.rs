//! What a member calls, as it travels with its messages.

use std::fmt;

use landeck_collectives::Operation;
use landeck_memory::board::{CALL_BITS, ROOT_BITS, call_of};

/// The number of an operation in its group, which operation it is, and its root (or in how many rounds
/// it goes). Members whose calls differ in any of it never take each other's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    number: u32,
    operation: u32,
    /// The root; where there is none, the rounds it is done in if these are several, or 0.
    root_or_rounds: u32,
}

const NUMBER_BITS: u32 = 13;
const OPERATION_BITS: u32 = 5;
const _: () = assert!(OPERATION_BITS + ROOT_BITS == CALL_BITS);

/// What is added to the number of an operation in checking mode: members of whom some check are out
/// of step.
const CHECKED: u32 = 1 << (OPERATION_BITS - 1);
/// The operation of a message that tells of a mismatch.
const ALARM: u32 = (1 << OPERATION_BITS) - 1;
/// The operation of a message that says what its sender is in.
const REMARK: u32 = ALARM - 1;

impl Signature {
    /// A call. The number and the root, or the rounds, are cut to their fields.
    pub(crate) fn new(number: u32, operation: Operation, root_or_rounds: u32) -> Self {
        let number = number % (1 << NUMBER_BITS);
        Self { number, operation: operation as u32, root_or_rounds }.cut()
    }

    /// The same in checking mode.
    pub(crate) fn checked(self) -> Self {
        Self { operation: self.operation | CHECKED, ..self }
    }

    fn cut(self) -> Self {
        Self { root_or_rounds: self.root_or_rounds % (1 << ROOT_BITS), ..self }
    }

    /// The tag of all its messages.
    pub(crate) fn tag(self) -> u32 {
        let called = self.operation << ROOT_BITS | self.root_or_rounds;
        self.number << (OPERATION_BITS + ROOT_BITS) | called
    }

    /// The call of a message.
    pub(crate) fn of_tag(tag: u32) -> Self {
        Self {
            number: tag >> (OPERATION_BITS + ROOT_BITS),
            operation: tag >> ROOT_BITS & ((1 << OPERATION_BITS) - 1),
            root_or_rounds: tag & ((1 << ROOT_BITS) - 1),
        }
    }

    /// What is called, as it stands on a board.
    #[inline]
    pub(crate) fn call(self) -> u32 {
        call_of(self.tag())
    }

    /// What was called in the operation with this number on a board. Boards count from 1.
    pub(crate) fn at_board(number: u32, call: u32) -> Self {
        let number = number.wrapping_sub(1) % (1 << NUMBER_BITS);
        Self { number, ..Self::of_tag(call_of(call)) }
    }

    /// Which operation is called, if it is one.
    pub(crate) fn operation(self) -> Option<Operation> {
        Operation::from_number((self.operation & !CHECKED) as u8)
    }

    /// The root of the call, where an operation with one is called.
    pub(crate) fn root(self) -> Option<u32> {
        self.operation()?.has_root().then_some(self.root_or_rounds)
    }

    /// The message that tells of a mismatch at this call.
    pub(crate) fn alarm(self) -> Self {
        Self { operation: ALARM, root_or_rounds: 0, ..self }
    }

    /// Whether it is that message.
    pub(crate) fn is_alarm(self) -> bool {
        self.operation == ALARM
    }

    /// The message that says that its sender is in this call.
    pub(crate) fn remark(self) -> Self {
        Self { operation: REMARK, root_or_rounds: 0, ..self }
    }

    /// Whether it is such a message.
    pub(crate) fn is_remark(self) -> bool {
        self.operation == REMARK
    }

    /// The number of the operation in its group; 8,192 is 0 again.
    pub(crate) fn number(self) -> u32 {
        self.number
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation() {
            Some(operation) if operation.has_root() => {
                write!(formatter, "{operation} with root {}", self.root_or_rounds)
            }
            Some(operation) if self.root_or_rounds > 0 => {
                write!(formatter, "{operation} of much data, in {} rounds", self.root_or_rounds)
            }
            Some(operation) => write!(formatter, "{operation}"),
            None => write!(formatter, "operation {}, which is unknown here", self.operation),
        }?;
        formatter.write_str(if self.operation & CHECKED != 0 { " in checking mode" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_survives_its_tag() {
        let signature = Signature::new(8_191, Operation::ExclusiveScan, 16_383);
        assert_eq!(Signature::of_tag(signature.tag()), signature);
        assert_eq!(Signature::new(8_192 + 3, Operation::Barrier, 0).number(), 3);
        assert!(Signature::of_tag(signature.alarm().tag()).is_alarm());
        let checked = Signature::of_tag(signature.checked().tag());
        assert!(checked != signature && !checked.is_remark() && !checked.is_alarm());
        assert_eq!(checked.to_string(), format!("{signature} in checking mode"));
        assert_eq!(Signature::at_board(8_192, checked.call()), checked);
    }

    #[test]
    fn a_root_is_told_only_where_there_is_one() {
        let broadcast = Signature::new(0, Operation::Broadcast, 3);
        assert_eq!(
            (broadcast.root(), broadcast.to_string()),
            (Some(3), "broadcast with root 3".into())
        );
        let exchange = Signature::new(0, Operation::AllToAll, 4);
        let text = "alltoall of much data, in 4 rounds";
        assert_eq!((exchange.root(), exchange.to_string()), (None, text.into()));
    }
}
