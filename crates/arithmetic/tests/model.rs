//! Checks every operation on every element type against one scalar at a time, at any alignment, wherever the result
//! lies.

use landeck_arithmetic::{Element, Operation, Reduction, reduce_into};
use proptest::prelude::*;

/// Combines one element in the slow way.
fn combine(operation: Operation, element: Element, accumulator: &[u8], input: &[u8]) -> Vec<u8> {
    macro_rules! integer {
        ($type:ty) => {{
            let left = <$type>::from_ne_bytes(accumulator.try_into().expect("one element"));
            let right = <$type>::from_ne_bytes(input.try_into().expect("one element"));
            let truth = (left != 0, right != 0);
            let result = match operation {
                Operation::Sum => left.wrapping_add(right),
                Operation::Product => left.wrapping_mul(right),
                Operation::Minimum => left.min(right),
                Operation::Maximum => left.max(right),
                Operation::LogicalAnd => <$type>::from(truth.0 && truth.1),
                Operation::LogicalOr => <$type>::from(truth.0 || truth.1),
                Operation::LogicalXor => <$type>::from(truth.0 != truth.1),
                Operation::BitAnd => left & right,
                Operation::BitOr => left | right,
                Operation::BitXor => left ^ right,
                Operation::MinimumAt | Operation::MaximumAt => unreachable!("they fit no number"),
            };
            result.to_ne_bytes().to_vec()
        }};
    }
    macro_rules! float {
        ($type:ty) => {{
            let left = <$type>::from_ne_bytes(accumulator.try_into().expect("one element"));
            let right = <$type>::from_ne_bytes(input.try_into().expect("one element"));
            let result = match operation {
                Operation::Sum => left + right,
                Operation::Product => left * right,
                Operation::Minimum if right < left => right,
                Operation::Maximum if right > left => right,
                _ => left,
            };
            result.to_ne_bytes().to_vec()
        }};
    }
    match element {
        Element::Bool | Element::U8 => integer!(u8),
        Element::I8 => integer!(i8),
        Element::I16 => integer!(i16),
        Element::I32 => integer!(i32),
        Element::I64 => integer!(i64),
        Element::U16 => integer!(u16),
        Element::U32 => integer!(u32),
        Element::U64 => integer!(u64),
        Element::F32 => float!(f32),
        Element::F64 => float!(f64),
        _ => unreachable!("not among those that are tested here"),
    }
}

/// Whether two results are equal, where any two NaNs are.
fn same(element: Element, left: &[u8], right: &[u8]) -> bool {
    let is_not_a_number = |bytes: &[u8]| match element {
        Element::F32 => f32::from_ne_bytes(bytes.try_into().expect("one element")).is_nan(),
        Element::F64 => f64::from_ne_bytes(bytes.try_into().expect("one element")).is_nan(),
        _ => false,
    };
    left == right || (is_not_a_number(left) && is_not_a_number(right))
}

/// The places of the operands and the result of one call, in one piece of memory.
#[derive(Clone, Copy, Debug)]
struct Places {
    left: usize,
    right: usize,
    into: usize,
}

const MEMORY_BYTES: usize = 3 * 2048;

/// Results apart, on either operand and on both, at alignments that depend on a number.
fn arrangements(number: usize) -> [Places; 4] {
    let (left, right, into) = (number % 9, 2048 + number / 2 % 9, 4096 + number / 3 % 9);
    [
        Places { left, right, into },
        Places { left, right, into: left },
        Places { left, right, into: right },
        Places { left, right: left, into: left },
    ]
}

/// Combines in memory and checks every byte of it.
fn check(reduction: Reduction, before: &[u8], places: Places, length: usize) {
    let mut memory = before.to_vec();
    let start = memory.as_mut_ptr();
    let at = |place| start.wrapping_add(place);
    let (left, right, into) = (at(places.left), at(places.right), at(places.into));
    // SAFETY: all places have the length within the memory, and overlap only exactly.
    unsafe { reduction.combine_raw(left, right, into, length) }.expect("whole elements");

    let (operation, element) = (reduction.operation(), reduction.element());
    let width = element.size_bytes();
    for offset in (0..length).step_by(width) {
        let [left, right] =
            [places.left, places.right].map(|place| &before[place + offset..][..width]);
        let result = &mut memory[places.into + offset..][..width];
        let expected = combine(operation, element, left, right);
        assert!(
            same(element, result, &expected),
            "{reduction:?}, {length} bytes, {places:?}: {left:?} and {right:?} gave {result:?}"
        );
        result.copy_from_slice(&before[places.into + offset..][..width]);
    }
    assert!(memory == before, "{reduction:?}, {length} bytes, {places:?}: wrote beside the result");
}

#[test]
fn every_length_and_place_is_its_model() {
    let mut state = 1u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // A quarter is zero, so that truth values differ.
        if state >> 30 == 0 { 0 } else { (state >> 16) as u8 }
    };
    let before: Vec<u8> = (0..MEMORY_BYTES).map(|_| byte()).collect();
    for operation in Operation::ALL {
        for element in Element::ALL {
            let Ok(reduction) = Reduction::new(operation, element) else { continue };
            for count in (0..=70).chain([127, 128, 129, 200, 255]) {
                for places in arrangements(count) {
                    check(reduction, &before, places, count * element.size_bytes());
                }
            }
        }
    }
}

/// The operations that fit some of the elements that are tested here.
fn on_numbers() -> Vec<Operation> {
    let fits = |operation: &Operation| operation.fits(Element::I32);
    Operation::ALL.into_iter().filter(fits).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_loop_is_its_model(
        operation in prop::sample::select(on_numbers()),
        element in prop::sample::select(Element::ALL.to_vec()),
        count in 0usize..70,
        shifts in (0usize..9, 0usize..9),
        bytes in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 2 * 70 * 8 + 16),
    ) {
        prop_assume!(operation.fits(element));
        let width = element.size_bytes();
        let length = count * width;
        let mut accumulator = bytes[..70 * 8 + 8].to_vec();
        let before = accumulator.clone();
        let input = &bytes[70 * 8 + 8..][shifts.1..][..length];

        let range = shifts.0..shifts.0 + length;
        reduce_into(operation, element, &mut accumulator[range.clone()], input).unwrap();

        prop_assert_eq!(&accumulator[..range.start], &before[..range.start]);
        prop_assert_eq!(&accumulator[range.end..], &before[range.end..]);
        let results = accumulator[range.clone()].chunks(width);
        let operands = before[range].chunks(width).zip(input.chunks(width));
        for (result, (left, right)) in results.zip(operands) {
            let expected = combine(operation, element, left, right);
            prop_assert!(same(element, result, &expected), "{left:?} {right:?}: {result:?}");
        }
    }
}
