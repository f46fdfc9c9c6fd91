//! The canonical association over rank order, which makes reductions reproducible.
//!
//! Values are combined over aligned intervals of ranks whose lengths are powers of two. Two siblings merge as soon as
//! both exist; the remainder is merged from the right at the end. So `n` values are always split at the largest power
//! of two smaller than `n`, whichever member combines them and in whatever order they came. The result has the same
//! bits, even if the operation is not associative.

/// The largest number of values that are held, whatever the number of inputs.
pub(crate) const HELD_MAX: usize = usize::BITS as usize;

/// The place of a value that is to be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// The input of this rank.
    Input(usize),
    /// A value combined before; it is used once.
    Held(usize),
}

/// The target of a combined value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// It is held for another step, perhaps in the place of one of the operands.
    Held(usize),
    /// It is the last value of all.
    Result,
}

/// The largest number of held values in the walk over so many inputs.
pub(crate) const fn held_max(count: usize) -> usize {
    (usize::BITS - count.saturating_sub(1).leading_zeros()) as usize
}

/// The number of inputs in the left half, out of `count` (two at least): the largest power of two smaller than `count`.
#[inline]
pub(crate) const fn split(count: usize) -> usize {
    1 << (count - 1).ilog2()
}

/// Walks over so many inputs, and calls `merge(left, right, target)` for one pair of neighbours after the other. Each
/// input is used once, in rank order; only the last step goes to the result. One input or none has no steps.
#[inline(always)]
pub(crate) fn walk(count: usize, mut merge: impl FnMut(Operand, Operand, Target)) {
    if count < 2 {
        return;
    }
    let mut held = 0;
    for pair in 0..(count - 1) / 2 {
        merge(Operand::Input(2 * pair), Operand::Input(2 * pair + 1), Target::Held(held));
        held += 1;
        for _ in 0..(pair + 1).trailing_zeros() {
            held -= 1;
            merge(Operand::Held(held - 1), Operand::Held(held), Target::Held(held - 1));
        }
    }
    close(count, held, merge);
}

/// Combines the last pair, or the last input alone, with the held values, from the right.
#[inline(always)]
fn close(count: usize, mut held: usize, mut merge: impl FnMut(Operand, Operand, Target)) {
    let target = |held| if held == 0 { Target::Result } else { Target::Held(held) };
    let mut right = Operand::Input(count - 1);
    if count.is_multiple_of(2) {
        merge(Operand::Input(count - 2), right, target(held));
        right = Operand::Held(held);
    }
    while held > 0 {
        held -= 1;
        merge(Operand::Held(held), right, target(held));
        right = Operand::Held(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: split at the largest power of two smaller than the number.
    fn defined(first: usize, count: usize) -> String {
        if count == 1 {
            return first.to_string();
        }
        let split = (1..).map(|power| 1 << power).find(|end| *end >= count).unwrap() / 2;
        format!("({} {})", defined(first, split), defined(first + split, count - split))
    }

    /// The expression of the walk, with held values as it says.
    fn walked(count: usize) -> String {
        let mut held = vec![None; held_max(count)];
        let mut result = None;
        walk(count, |left, right, target| {
            assert_eq!(result, None, "a step after the last");
            let mut take = |operand| match operand {
                Operand::Input(rank) => rank.to_string(),
                Operand::Held(index) => held[index].take().expect("a value is held there"),
            };
            let combined = format!("({} {})", take(left), take(right));
            match target {
                Target::Held(index) => assert_eq!(held[index].replace(combined), None),
                Target::Result => result = Some(combined),
            }
        });
        assert!(held.iter().all(Option::is_none), "a value of {count} was left out");
        result.unwrap_or_default()
    }

    #[test]
    fn the_walk_is_the_definition() {
        for count in (2..=300).chain([1000, 1023, 1024, 1025]) {
            assert_eq!(walked(count), defined(0, count));
        }
        assert_eq!(walked(7), "(((0 1) (2 3)) ((4 5) 6))");
    }

    #[test]
    fn a_split_is_the_largest_power_of_two_below() {
        assert_eq!([2, 3, 4, 5, 8, 9, 17].map(split), [1, 2, 2, 4, 4, 8, 16]);
    }

    #[test]
    fn nothing_is_combined_with_nothing() {
        assert_eq!((walked(0), walked(1)), (String::new(), String::new()));
    }

    #[test]
    fn no_more_is_held_than_there_are_places_for() {
        assert_eq!(held_max(usize::MAX), HELD_MAX);
        assert_eq!([1, 2, 3, 4, 5, 8, 9].map(held_max), [0, 1, 2, 2, 3, 3, 4]);
    }
}
