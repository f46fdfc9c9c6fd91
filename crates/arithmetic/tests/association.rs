//! Checks many inputs at once against the definition of the association, bit for bit.

use landeck_arithmetic::{Element, Operation, Operator, Reduction, Scratch, UserFunction};

/// Numbers whose sum depends on the order, different for every seed.
fn numbers(seed: usize, count: usize) -> Vec<f64> {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let magnitude = (state >> 59) as i32 - 16;
        ((state >> 12) as f64 / (1u64 << 52) as f64 - 0.5) * 10f64.powi(magnitude)
    };
    (0..count).map(|_| number()).collect()
}

/// The definition: split at the largest power of two smaller than the number of inputs.
fn defined(inputs: &[Vec<f64>]) -> Vec<f64> {
    if let [only] = inputs {
        return only.clone();
    }
    let (left, right) = inputs.split_at(inputs.len().next_power_of_two() / 2);
    let sides = defined(left).into_iter().zip(defined(right));
    sides.map(|(left, right)| left + right).collect()
}

/// The sum of all inputs, into memory of its own or into one of them; nothing else may change.
fn combined(operator: &Operator, inputs: &[Vec<f64>], place: Option<usize>) -> Vec<f64> {
    let mut memory = inputs.to_vec();
    let mut apart = vec![0.0; inputs[0].len()];
    let starts: Vec<*mut f64> = memory.iter_mut().map(|input| input.as_mut_ptr()).collect();
    let into = place.map_or(apart.as_mut_ptr(), |place| starts[place]);
    let places: Vec<*const u8> = starts.iter().map(|start| start.cast_const().cast()).collect();
    let length_bytes = size_of_val(&inputs[0][..]);
    let mut scratch = Scratch::new();
    // SAFETY: all are vectors of this length, and the result is one of them or apart.
    unsafe { operator.combine_in_order(&places, into.cast(), length_bytes, &mut scratch) }
        .expect("whole elements");

    let result = match place {
        Some(place) => std::mem::replace(&mut memory[place], inputs[place].clone()),
        None => apart,
    };
    assert_eq!(memory, inputs, "an input was written to");
    result
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

fn number(bytes: &[u8]) -> f64 {
    f64::from_ne_bytes(bytes.try_into().expect("one element"))
}

/// A sum, as the crate defines it and as a user might write it.
fn sums() -> [Operator; 2] {
    let predefined = Reduction::new(Operation::Sum, Element::F64).expect("numbers have sums");
    let written = UserFunction::commutative(8, |left, right| {
        for (left, right) in left.chunks(8).zip(right.chunks_mut(8)) {
            right.copy_from_slice(&(number(left) + number(right)).to_ne_bytes());
        }
    });
    [predefined.into(), written.expect("elements have bytes").into()]
}

/// One element, a few, some, and more than one part.
const COUNTS: [usize; 5] = [1, 3, 5, 70, 1100];

#[test]
fn all_numbers_of_inputs_are_the_definition() {
    for members in 1..=70 {
        for count in COUNTS {
            let inputs: Vec<_> =
                (0..members).map(|rank| numbers(rank + members * 1000, count)).collect();
            let expected = bits(&defined(&inputs));
            for operator in sums() {
                for place in [None, Some(0), Some(members / 2), Some(members - 1)] {
                    let result = bits(&combined(&operator, &inputs, place));
                    assert_eq!(result, expected, "{members} of {count} in {place:?}: {operator:?}");
                }
            }
        }
    }
}

#[test]
fn inputs_beyond_the_caches_are_the_definition() {
    let inputs: Vec<_> = (0..5).map(|rank| numbers(rank, 500_001)).collect();
    let [predefined, _] = sums();
    assert_eq!(bits(&combined(&predefined, &inputs, Some(3))), bits(&defined(&inputs)));
}

#[test]
fn the_order_of_these_numbers_matters() {
    let inputs: Vec<_> = (0..16).map(|rank| numbers(rank, 70)).collect();
    let mut one_by_one = inputs[0].clone();
    for input in &inputs[1..] {
        one_by_one.iter_mut().zip(input).for_each(|(sum, number)| *sum += number);
    }
    assert_ne!(bits(&one_by_one), bits(&defined(&inputs)));
}
