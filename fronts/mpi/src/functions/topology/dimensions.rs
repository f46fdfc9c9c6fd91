//! Dividing a number of processes among the dimensions of a grid.

use std::ffi::c_int;

use landeck_c_boundary::pointer;

use crate::abi::{ERR_ARG, ERR_DIMS};
use crate::mistake::Mistake;

/// Fills the dimensions that are 0 so that the grid has so many processes, as evenly as it goes, the
/// larger ones first.
pub(crate) unsafe fn dims_create(
    nnodes: c_int,
    ndims: c_int,
    dims: *mut c_int,
) -> Result<(), Mistake> {
    let count = usize::try_from(ndims).map_err(|_| {
        Mistake::new(ERR_DIMS, format_args!("ndims is {ndims}; it must be 0 or more"))
    })?;
    if nnodes <= 0 {
        let text = format!("nnodes is {nnodes}; it must be 1 or more");
        return Err(Mistake::new(ERR_ARG, text));
    }
    // SAFETY: the program gives a writable array of so many.
    let dimensions = unsafe { pointer::slice_mut("dims", dims, count)? };
    if let Some(dimension) = dimensions.iter().find(|dimension| **dimension < 0) {
        let text = format!("dims has {dimension}; a dimension is 1 or more, or 0 to be chosen");
        return Err(Mistake::new(ERR_DIMS, text));
    }
    let free = dimensions.iter().filter(|dimension| **dimension == 0).count();
    let given = dimensions.iter().filter(|dimension| **dimension > 0);
    let fixed =
        given.fold(1i64, |product, dimension| product.saturating_mul(i64::from(*dimension)));
    let fits = i64::from(nnodes) % fixed == 0 && (free > 0 || i64::from(nnodes) == fixed);
    if !fits {
        let text = format!("nnodes is {nnodes}, which dims, {dimensions:?}, do not divide");
        return Err(Mistake::new(ERR_DIMS, text));
    }
    let mut chosen = even(nnodes / fixed as c_int, free).into_iter();
    for dimension in dimensions.iter_mut().filter(|dimension| **dimension == 0) {
        *dimension = chosen.next().unwrap_or(1);
    }
    Ok(())
}

/// So many factors of a number, the largest first: the largest is as small as it can be, then the
/// next, and so on.
fn even(number: c_int, count: usize) -> Vec<c_int> {
    let divisors = divisors(number);
    let mut factors = Vec::with_capacity(count);
    if count > 0 && !search(number, count, number, &divisors, &mut factors) {
        // It cannot be: the number itself is a divisor, and so is 1.
        factors = vec![1; count];
        factors[0] = number;
    }
    factors
}

/// Looks for so many factors of a number, none larger than a limit.
fn search(
    number: c_int,
    count: usize,
    limit: c_int,
    divisors: &[c_int],
    factors: &mut Vec<c_int>,
) -> bool {
    if count == 1 {
        factors.extend((number <= limit).then_some(number));
        return number <= limit;
    }
    let fitting = divisors.iter().filter(|divisor| number % **divisor == 0 && **divisor <= limit);
    for &divisor in fitting.filter(|divisor| is_enough(**divisor, count, number)) {
        factors.push(divisor);
        if search(number / divisor, count - 1, divisor, divisors, factors) {
            return true;
        }
        factors.pop();
    }
    false
}

/// Whether so many factors of this size make at least the number.
fn is_enough(factor: c_int, count: usize, number: c_int) -> bool {
    let power = u32::try_from(count).ok().and_then(|count| i64::from(factor).checked_pow(count));
    power.is_none_or(|power| power >= i64::from(number))
}

/// The divisors of a number, the smallest first.
fn divisors(number: c_int) -> Vec<c_int> {
    let small = (1..).take_while(|divisor| i64::from(*divisor).pow(2) <= i64::from(number));
    let small: Vec<c_int> = small.filter(|divisor| number % divisor == 0).collect();
    let large = small.iter().rev().map(|divisor| number / divisor);
    let large: Vec<c_int> = large.filter(|divisor| !small.contains(divisor)).collect();
    small.into_iter().chain(large).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_even_as_they_can_be() {
        for (number, wanted) in [
            (1, vec![1, 1, 1]),
            (6, vec![3, 2]),
            (7, vec![7, 1]),
            (12, vec![4, 3]),
            (12, vec![3, 2, 2]),
            (16, vec![4, 2, 2]),
            (24, vec![4, 3, 2]),
            (30, vec![5, 3, 2]),
            (36, vec![4, 3, 3]),
            (97, vec![97]),
            (1 << 30, vec![1 << 10; 3]),
        ] {
            assert_eq!(even(number, wanted.len()), wanted, "{number}");
        }
        assert_eq!(even(c_int::MAX, 2), [c_int::MAX, 1]);
        assert!(even(5, 0).is_empty());
        // The number with the most divisors, in many dimensions, is found at once.
        assert_eq!(
            even(2_095_133_040, 12).iter().map(|factor| i64::from(*factor)).product::<i64>(),
            2_095_133_040
        );
    }
}
