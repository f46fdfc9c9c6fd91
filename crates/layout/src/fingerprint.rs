//! A fingerprint of a sequence of element kinds: equal sequences have equal fingerprints.
//!
//! It is the value of a polynomial whose coefficients are the kinds, modulo a prime. So the fingerprint of two
//! concatenated sequences, and of a repeated one, follows from theirs without looking at the elements again.

use crate::Kind;

/// The Mersenne prime that is the modulus.
const MODULUS: u64 = (1 << 61) - 1;
/// The point at which the polynomial is evaluated.
const POINT: u64 = 0x0b7e_1516_28ae_d2a6;

/// The fingerprint of a sequence whose length is known elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of no elements.
    pub(crate) const EMPTY: Self = Self(0);

    /// The fingerprint of one element.
    pub(crate) fn of(kind: Kind) -> Self {
        let code = (kind.family() as u64) << 8 | kind.size_bytes();
        Self(mixed(code) % MODULUS)
    }

    /// The fingerprint of these elements followed by `elements` others.
    pub(crate) fn followed_by(self, other: Self, elements: u64) -> Self {
        Self(sum(product(self.0, power(elements)), other.0))
    }

    /// The fingerprint of these `elements` elements, repeated `count` times.
    pub(crate) fn repeated(self, elements: u64, count: u64) -> Self {
        // This is the sum of the powers 0 to count - 1 of `factor`, computed by doubling.
        let (mut total, mut run, mut factor) = (0, 1, power(elements));
        let mut left = count;
        while left > 0 {
            if left & 1 == 1 {
                total = sum(product(total, factor), run);
            }
            run = sum(product(run, factor), run);
            factor = product(factor, factor);
            left >>= 1;
        }
        Self(product(self.0, total))
    }

    /// The fingerprint as a number that also depends on the length.
    pub(crate) fn number(self, elements: u64) -> u64 {
        mixed(self.0 ^ mixed(elements))
    }
}

/// `POINT` to the power of `exponent`.
fn power(mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, POINT);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, square);
        }
        square = product(square, square);
        exponent >>= 1;
    }
    result
}

fn product(left: u64, right: u64) -> u64 {
    let wide = u128::from(left) * u128::from(right);
    sum(wide as u64 & MODULUS, (wide >> 61) as u64)
}

/// The sum of two numbers, modulo the prime.
fn sum(left: u64, right: u64) -> u64 {
    let sum = left + right;
    if sum >= MODULUS { sum - MODULUS } else { sum }
}

/// A number whose bits all depend on all bits of this one.
fn mixed(mut number: u64) -> u64 {
    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;

    #[test]
    fn a_repetition_is_one_behind_the_other() {
        let integer = Fingerprint::of(Kind::new(Family::Signed, 4).unwrap());
        let float = Fingerprint::of(Kind::new(Family::Float, 8).unwrap());
        let pair = integer.followed_by(float, 1);
        let mut walked = Fingerprint::EMPTY;
        for count in 0..70 {
            assert_eq!(pair.repeated(2, count), walked, "{count}");
            walked = walked.followed_by(pair, 2);
        }
        assert_ne!(pair, float.followed_by(integer, 1));
    }
}
