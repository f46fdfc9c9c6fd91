//! When members of a host read each other's blocks where they lie.

use super::class::Class;
use super::{Settings, Table};
use crate::derive::{BoardStyle, Way};
use crate::operation::Operation;

impl Table {
    /// Whether members of a host read each other's blocks of this class where they lie: what one of them reads of another has
    /// the length that was asked for, or else that from which the operation was measured to be faster.
    pub(super) fn is_told(&self, class: Class) -> bool {
        let parts = match class.operation {
            Operation::AllReduce | Operation::ReduceScatter => u64::from(self.facts.group.size()),
            _ => 1,
        };
        let Some(shortest) = class.octave.and_then(|octave| octave.checked_sub(1)) else {
            return false;
        };
        BoardStyle::Told.tells(class.operation)
            && (1 << shortest) / parts >= self.told_from(class.operation)
            && self.can(&Way::Board(BoardStyle::Told), class)
    }

    /// The length in bytes from which blocks of this operation are read where they lie. It is measured where each member has a
    /// processor; members that share processors take it only if it is asked for.
    fn told_from(&self, operation: Operation) -> u64 {
        let Settings { one_copy_from, figures, .. } = &self.facts.settings;
        match one_copy_from {
            Some(bytes) => *bytes,
            None if self.is_crowded() => u64::MAX,
            None => figures.told_from_bytes(operation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::facts;
    use super::super::{Facts, WayRequest};
    use super::*;
    use crate::cost_parameters::CostParameters;

    /// Whether four members on these processors read each other's blocks.
    fn is_told(settings: Settings, processors: u32, operation: Operation, bytes: u64) -> bool {
        let table = Table::new(Facts { settings, ..facts(4, processors, true) });
        table.look_up(&WayRequest::new(operation, bytes)).way.to_string() == "board (told)"
    }

    /// The bytes of an operation whose members read 64 KiB of each other, if there are four.
    fn bytes_of_64_kib(operation: Operation) -> u64 {
        match operation {
            Operation::AllReduce | Operation::ReduceScatter => 4 * 65_536,
            _ => 65_536,
        }
    }

    #[test]
    fn blocks_are_read_where_they_lie_from_the_length_that_is_asked_for() {
        let settings = Settings { one_copy_from: Some(65_536), ..Settings::default() };
        for operation in Operation::ALL {
            let length = bytes_of_64_kib(operation);
            let is = |bytes| is_told(settings.clone(), 2, operation, bytes);
            let can_be = BoardStyle::Told.tells(operation);
            assert_eq!((is(length), is(length - 1)), (can_be, false), "{operation}");
            let apart = Facts { settings: settings.clone(), ..facts(4, 2, false) };
            let way = Table::new(apart).look_up(&WayRequest::new(operation, 1 << 20)).way;
            assert!(!matches!(way, Way::Board(_)), "{operation}");
        }
    }

    #[test]
    fn blocks_are_read_where_they_lie_from_the_length_measured_for_their_operation() {
        for (number, operation) in BoardStyle::TELLING.into_iter().enumerate() {
            let mut figures = CostParameters::default();
            figures.told_from_kib[number] = 64;
            let measured = Settings { figures, ..Settings::default() };
            let length = bytes_of_64_kib(operation);
            let is = |processors, bytes| is_told(measured.clone(), processors, operation, bytes);
            assert!(is(4, length) && !is(4, length - 1), "{operation}");
            assert!(!is(3, length), "{operation}: members share processors");
            let never = Settings { one_copy_from: Some(u64::MAX), ..measured.clone() };
            assert!(!is_told(never, 4, operation, length), "{operation}");
            for other in BoardStyle::TELLING.into_iter().filter(|other| *other != operation) {
                assert!(!is_told(measured.clone(), 4, other, 1 << 20), "{operation}, {other}");
            }
        }
    }
}
