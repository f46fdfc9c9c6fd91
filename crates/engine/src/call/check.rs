//! The word that members compare in checking mode: each makes it of its own call.
//!
//! The word has a field for each thing that must agree, so that the member that finds a difference can say
//! what it is. Lengths and types are cut to their fields: two that differ may look alike, counts
//! once in some thousand times, and never when they are less than 2,039 bytes apart.

use landeck_arithmetic::{Element, Operation as Combining, Operator};
use landeck_collectives::{Operation, Way};

use crate::binding::Blocks;
use crate::call::Call;
use crate::call::value_type::{self, hash};

/// The facts of a call that must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Check(u32);

/// A field of the word: its first bit, and how many numbers it holds.
struct Field {
    shift: u32,
    count: u32,
}

const TYPE: Field = Field { shift: 0, count: value_type::NUMBERS };
const COMBINING: Field = Field { shift: 10, count: 1 << 5 };
/// Primes: nothing is lost of what differs by little.
const WAY: Field = Field { shift: 15, count: 31 };
const LENGTHS: Field = Field { shift: 20, count: 2039 };
/// The call is checked: its word is not that of one that is not.
const CHECKED: u32 = 1 << 31;

/// Numbers of functions of the user's.
const COMMUTATIVE: u32 = 30;
const ORDERED: u32 = 31;

impl Field {
    fn of(&self, word: u32) -> u32 {
        word >> self.shift & (self.count.next_power_of_two() - 1)
    }

    fn put(&self, number: u64) -> u32 {
        (number % u64::from(self.count)) as u32 * (1 << self.shift)
    }
}

impl Check {
    /// The word of a call that is not checked.
    pub(crate) const NONE: Self = Self(0);

    /// The word of this call, which goes this way.
    #[cold]
    pub(crate) fn of(call: &Call, way: &Way) -> Self {
        let kind = match call.operator.as_ref().and_then(Operator::reduction) {
            Some(reduction) => number_of(&Element::ALL, &reduction.element()),
            None => call.value_type.number(),
        };
        let style = format!("{way} {}", call.options.is_reproducible);
        Self(
            CHECKED
                | TYPE.put(kind.into())
                | COMBINING.put(call.operator.as_ref().map_or(0, combining).into())
                | WAY.put(hash(style.bytes().map(u64::from)))
                | LENGTHS.put(lengths(call)),
        )
    }

    /// As it stands on the board.
    pub(crate) fn word(self) -> u32 {
        self.0
    }

    /// From there.
    pub(crate) fn of_word(word: u32) -> Self {
        Self(word)
    }

    /// In what another's call differs from this one: what the other does.
    pub(crate) fn difference(self, theirs: Self) -> String {
        let differs = |field: &Field| field.of(self.0) != field.of(theirs.0);
        let mut differences = Vec::new();
        if differs(&COMBINING) {
            let [theirs, ours] = [theirs, self].map(|check| combining_name(COMBINING.of(check.0)));
            differences.push(format!("combines by {theirs}, this process by {ours}"));
        }
        if differs(&TYPE) {
            differences.push(types(TYPE.of(theirs.0), TYPE.of(self.0)));
        }
        if differs(&LENGTHS) {
            differences.push("has other counts than this process".to_owned());
        }
        if differs(&WAY) {
            differences.push("goes another way than this process".to_owned());
        }
        differences.join(", and ")
    }
}

impl Call {
    /// The word that members compare of it when it goes this way.
    #[inline]
    pub(crate) fn check_of(&self, way: &Way) -> Check {
        if self.options.is_checked { Check::of(self, way) } else { Check::NONE }
    }
}

/// The lengths that all members must give alike, as one number.
fn lengths(call: &Call) -> u64 {
    let all = |blocks: &Blocks| hash((0..blocks.count() as u32).map(|block| blocks.bytes(block)));
    match call.operation {
        Operation::AllGather if call.is_varying => all(&call.output),
        Operation::ReduceScatter if matches!(call.input, Blocks::Nothing) => all(&call.output),
        Operation::ReduceScatter => all(&call.input),
        // The others agree in pairs, and find out by themselves.
        _ => call.known_bytes(),
    }
}

fn combining(operator: &Operator) -> u32 {
    match operator.reduction() {
        Some(reduction) => number_of(&Combining::ALL, &reduction.operation()),
        None if operator.is_commutative() => COMMUTATIVE,
        None => ORDERED,
    }
}

fn combining_name(number: u32) -> &'static str {
    match number {
        0 => "nothing",
        COMMUTATIVE => "a commutative function of the user's",
        ORDERED => "an ordered function of the user's",
        _ => Combining::ALL
            .get(number as usize - 1)
            .map_or("an unknown operation", |operation| operation.as_str()),
    }
}

fn types(theirs: u32, ours: u32) -> String {
    let name = |number: u32| Element::ALL.get((number as usize).checked_sub(1)?);
    match (name(theirs), name(ours)) {
        (Some(theirs), Some(ours)) => format!("has values of {theirs}, this process of {ours}"),
        _ => "has values of another type than this process".to_owned(),
    }
}

/// The place of one of these, counted from 1.
fn number_of<T: PartialEq>(all: &[T], one: &T) -> u32 {
    all.iter().position(|other| other == one).map_or(0, |place| place as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::options::CallOptions;
    use landeck_arithmetic::Reduction;
    use landeck_collectives::BoardStyle;
    use landeck_collectives::architecture::{Flat, Ring};
    use landeck_kernel::Area;
    use landeck_memory::Buffer;

    fn call(bytes: &[u8], combining: Combining, element: Element) -> Call {
        let mut call = Call::new(Operation::AllReduce, &CallOptions::default());
        // SAFETY: the bytes outlive the call, which is never made.
        call.output = Blocks::whole(Area::contiguous(unsafe { Buffer::of(bytes) }));
        call.operator = Some(Reduction::new(combining, element).unwrap().into());
        call
    }

    #[test]
    fn every_difference_is_named() {
        let (board, bytes) = (Way::Board(BoardStyle::Each), [0; 64]);
        let usual = call(&bytes, Combining::Sum, Element::I32);
        let ours = Check::of(&usual, &board);
        assert_eq!(ours, Check::of(&usual.clone(), &board));
        let said = |theirs: &Call, way: &Way| ours.difference(Check::of(theirs, way));
        let maximum = call(&bytes, Combining::Maximum, Element::I32);
        assert_eq!(said(&maximum, &board), "combines by maximum, this process by sum");
        let float = call(&bytes, Combining::Sum, Element::F64);
        let text = said(&float, &board);
        assert!(text.starts_with("has values of ") && text.contains("64"), "{text}");
        let long = call(&bytes[..60], Combining::Sum, Element::I32);
        assert_eq!(said(&long, &board), "has other counts than this process");
        assert_eq!(said(&usual, &Way::by(Ring)), "goes another way than this process");
        let both = said(&call(&bytes[..8], Combining::Sum, Element::U64), &Way::by(Flat));
        assert_eq!(both.matches(", and ").count(), 2, "{both}");
        assert_ne!(ours, Check::NONE);
        assert!(!ours.difference(Check(u32::MAX)).is_empty(), "scribbled");
    }

    #[test]
    fn counts_that_differ_by_little_always_differ() {
        let all: Vec<u32> = (0..2039).map(|bytes| LENGTHS.put(bytes)).collect();
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])));
    }
}
