//! Users' functions get their operands in rank order, as private copies, in whole elements.

use std::panic::{AssertUnwindSafe, catch_unwind};

use landeck_arithmetic::{Operator, Scratch, UserFunction};

/// Composes affine maps `x -> factor x + summand` of bytes, the left one first. This is not commutative, and exact.
fn compose(left: &[u8], right: &mut [u8]) {
    for (left, right) in left.chunks(2).zip(right.chunks_mut(2)) {
        right[1] = right[0].wrapping_mul(left[1]).wrapping_add(right[1]);
        right[0] = right[0].wrapping_mul(left[0]);
    }
}

/// Composes like [`compose`], and checks the arguments of the function.
fn checked(element_bytes: usize) -> Operator {
    let function = move |left: &[u8], right: &mut [u8]| {
        assert_eq!(left.len(), right.len());
        assert!(!left.is_empty() && left.len().is_multiple_of(element_bytes));
        assert_eq!((left.as_ptr().addr() % 64, right.as_ptr().addr() % 64), (0, 0));
        compose(left, right);
    };
    UserFunction::ordered(element_bytes, function).expect("elements have bytes").into()
}

/// Factors are odd, so that no map forgets what came before.
fn maps(rank: usize, bytes: usize) -> Vec<u8> {
    let byte = |index: usize| (index * 7 + rank * 31 + index * rank) as u8 | (index + 1) as u8 & 1;
    (0..bytes).map(byte).collect()
}

#[test]
fn functions_are_applied_in_rank_order() {
    for element_bytes in [2, 6, 64, 6000] {
        let operator = checked(element_bytes);
        for (members, elements) in (1..=40).flat_map(|members| [(members, 1), (members, 5)]) {
            let bytes = elements * element_bytes;
            let inputs: Vec<_> = (0..members).map(|rank| maps(rank, bytes)).collect();
            let mut expected = inputs[0].clone();
            for input in &inputs[1..] {
                let left = std::mem::replace(&mut expected, input.clone());
                compose(&left, &mut expected);
            }
            let places: Vec<*const u8> = inputs.iter().map(|input| input.as_ptr()).collect();
            let (mut result, mut scratch) = (vec![0; bytes], Scratch::new());
            let into = result.as_mut_ptr();
            // SAFETY: all are vectors of this length, and the result is apart from the inputs.
            unsafe { operator.combine_in_order(&places, into, bytes, &mut scratch) }.unwrap();
            assert_eq!(result, expected, "{members} members, {elements} of {element_bytes} bytes");
        }
    }
}

#[test]
fn one_pair_is_combined_in_place() {
    let operator = checked(6);
    let (left, right) = (maps(1, 6000), maps(2, 6000));
    let mut expected = right.clone();
    compose(&left, &mut expected);
    for is_left in [true, false] {
        let (mut left, mut right, mut scratch) = (left.clone(), right.clone(), Scratch::new());
        let (first, second) = (left.as_mut_ptr(), right.as_mut_ptr());
        let into = if is_left { first } else { second };
        // SAFETY: both are vectors of this length; the result is exactly one of them.
        unsafe { operator.combine_raw(first, second, into, 6000, &mut scratch) }.unwrap();
        assert_eq!(if is_left { left } else { right }, expected);
    }
}

#[test]
fn a_function_that_panics_leaves_all_usable() {
    let panics = UserFunction::ordered(2, |_, _| panic!("a user's fault")).unwrap();
    let (input, mut result, mut scratch) = (maps(1, 4), [9; 4], Scratch::new());
    let (places, into) = ([input.as_ptr(); 3], result.as_mut_ptr());
    // SAFETY: the places are 4 bytes long, and the result is apart from the input.
    let mut combine =
        |operator: Operator| unsafe { operator.combine_in_order(&places, into, 4, &mut scratch) };
    catch_unwind(AssertUnwindSafe(|| combine(panics.into()))).unwrap_err();
    combine(checked(2)).unwrap();
    let mut expected = input.clone();
    compose(&input, &mut expected);
    compose(&input, &mut expected);
    assert_eq!(result[..], expected);
}
