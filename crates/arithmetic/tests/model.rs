//! Every operation on every element type against one scalar at a time, at any alignment.

use landeck_arithmetic::{Element, Operation, reduce_into};
use proptest::prelude::*;

/// One element, written out the slow way.
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
    }
}

/// Whether two results are the same, where any two that are no numbers are.
fn same(element: Element, left: &[u8], right: &[u8]) -> bool {
    let is_not_a_number = |bytes: &[u8]| match element {
        Element::F32 => f32::from_ne_bytes(bytes.try_into().expect("one element")).is_nan(),
        Element::F64 => f64::from_ne_bytes(bytes.try_into().expect("one element")).is_nan(),
        _ => false,
    };
    left == right || (is_not_a_number(left) && is_not_a_number(right))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_loop_is_its_model(
        operation in prop::sample::select(Operation::ALL.to_vec()),
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
