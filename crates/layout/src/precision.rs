//! Fortran's kinds of numbers, chosen by the values that they must hold.

use crate::{Family, Kind, LayoutError};

/// The decimal digits, the decimal exponent range and the width of the floating-point formats, smallest first.
const FLOATS: [(u32, u32, usize); 3] = [(6, 37, 4), (15, 307, 8), (33, 4931, 16)];
/// The number of decimal digits that always fit, and the width.
const INTEGERS: [(u32, usize); 5] = [(2, 1), (4, 2), (9, 4), (18, 8), (38, 16)];

/// The smallest floating-point kind with so many decimal digits and so large a decimal exponent. An omitted value does
/// not matter. `None` if no kind suffices.
pub fn real(digits: Option<u32>, exponent: Option<u32>) -> Option<Kind> {
    kind(Family::Float, float_bytes(digits, exponent)?)
}

/// The smallest complex kind of two such numbers.
pub fn complex(digits: Option<u32>, exponent: Option<u32>) -> Option<Kind> {
    kind(Family::Complex, 2 * float_bytes(digits, exponent)?)
}

/// The smallest integer kind that holds all numbers of so many decimal digits.
pub fn integer(digits: u32) -> Option<Kind> {
    let (_, bytes) = INTEGERS.iter().find(|(most, _)| digits <= *most)?;
    kind(Family::Signed, *bytes)
}

fn float_bytes(digits: Option<u32>, exponent: Option<u32>) -> Option<usize> {
    let holds = |(most_digits, most_exponent, _): &&(u32, u32, usize)| {
        digits.is_none_or(|digits| digits <= *most_digits)
            && exponent.is_none_or(|exponent| exponent <= *most_exponent)
    };
    FLOATS.iter().find(holds).map(|(_, _, bytes)| *bytes)
}

fn kind(family: Family, bytes: usize) -> Option<Kind> {
    let kind: Result<Kind, LayoutError> = Kind::new(family, bytes);
    kind.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_that_suffices_is_chosen() {
        let bytes = |kind: Option<Kind>| kind.map(Kind::size_bytes);
        assert_eq!(bytes(real(Some(6), None)), Some(4));
        assert_eq!(bytes(real(Some(6), Some(38))), Some(8));
        assert_eq!(bytes(real(None, Some(308))), Some(16));
        assert_eq!(bytes(real(Some(34), None)), None);
        assert_eq!(bytes(complex(Some(15), Some(307))), Some(16));
        assert_eq!([2, 3, 9, 10, 38].map(|it| bytes(integer(it)).unwrap()), [1, 2, 4, 8, 16]);
        assert_eq!(integer(39), None);
    }
}
