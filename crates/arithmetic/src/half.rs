//! Floating-point numbers of 16 bits, for which Rust has no type yet. They are computed with 32 bits and rounded to the
//! nearest, ties to even. That is exact: a sum or product of two of them, rounded to the 24 bits in between, rounds to
//! the same 11 bits as the true one.

use std::cmp::Ordering;

/// A floating-point number of 16 bits: a sign, 5 bits of exponent, 10 of fraction.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Half(pub(crate) u16);

/// The difference between the exponents of 32 and 16 bits, at the place of an exponent.
const EXPONENT_SHIFT: u32 = (127 - 15) << 23;
/// The number of fraction bits that 32-bit numbers have in addition.
const FRACTION_SHIFT: u32 = 23 - 10;
/// The smallest 32-bit number that rounds to infinity.
const INFINITE_FROM: u32 = 0x477f_f000;
/// The smallest normal number; below it, numbers are multiples of [`SMALLEST`].
const NORMAL_FROM: u32 = 0x3880_0000;
/// The smallest positive number: two to the power of -24.
const SMALLEST: f32 = 1.0 / 16_777_216.0;

impl Half {
    /// Converts the number to 32 bits.
    #[inline(always)]
    pub(crate) fn wide(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let magnitude = u32::from(self.0 & 0x7fff);
        let bits = match magnitude >> 10 {
            0 => (magnitude as f32 * SMALLEST).to_bits(),
            0x1f => 0x7f80_0000 | (magnitude & 0x3ff) << FRACTION_SHIFT,
            _ => (magnitude << FRACTION_SHIFT) + EXPONENT_SHIFT,
        };
        f32::from_bits(sign | bits)
    }

    /// The nearest number of 16 bits.
    #[inline(always)]
    pub(crate) fn nearest(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        let rounded = if value.is_nan() {
            0x7e00 | (magnitude >> FRACTION_SHIFT) as u16
        } else if magnitude >= INFINITE_FROM {
            0x7c00
        } else if magnitude < NORMAL_FROM {
            (f32::from_bits(magnitude) / SMALLEST).round_ties_even() as u16
        } else {
            let half_unit = (1 << (FRACTION_SHIFT - 1)) - 1;
            let is_odd = magnitude >> FRACTION_SHIFT & 1;
            ((magnitude + half_unit + is_odd - EXPONENT_SHIFT) >> FRACTION_SHIFT) as u16
        };
        Self(sign | rounded)
    }
}

impl PartialEq for Half {
    fn eq(&self, other: &Self) -> bool {
        self.wide() == other.wide()
    }
}

impl PartialOrd for Half {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.wide().partial_cmp(&other.wide())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Operation, reduce_into};

    #[test]
    fn every_number_comes_back() {
        for bits in 0..=u16::MAX {
            let wide = Half(bits).wide();
            let back = Half::nearest(wide);
            if wide.is_nan() {
                assert!(back.wide().is_nan());
            } else {
                assert_eq!(back.0, bits, "{wide}");
            }
        }
    }

    #[test]
    fn a_value_between_two_halves_goes_to_the_nearest_and_ties_to_even() {
        for bits in 0..0x7c00_u16 {
            let (low, high) = (Half(bits).wide(), Half(bits + 1).wide());
            let high = if high.is_infinite() { 65_536.0 } else { high };
            let middle = (low + high) / 2.0;
            let even = if bits % 2 == 0 { bits } else { bits + 1 };
            assert_eq!(Half::nearest(middle).0, even, "{middle}");
            assert_eq!(Half::nearest(middle.next_down()).0, bits, "below {middle}");
            assert_eq!(Half::nearest(-middle.next_up()).0, 0x8000 | (bits + 1), "above {middle}");
        }
        assert_eq!(Half::nearest(f32::MAX).0, 0x7c00);
        assert_eq!(Half::nearest(f32::MIN_POSITIVE).0, 0);
    }

    #[test]
    fn they_are_reduced() {
        let bytes = |value: f32| Half::nearest(value).0.to_ne_bytes().repeat(77);
        let reduced = |operation, left, right| {
            let mut accumulator = bytes(left);
            reduce_into(operation, Element::F16, &mut accumulator, &bytes(right)).unwrap();
            accumulator
        };
        assert_eq!(reduced(Operation::Sum, 2.5, -1.0), bytes(1.5));
        assert_eq!(reduced(Operation::Sum, 2048.0, 1.0), bytes(2048.0));
        assert_eq!(reduced(Operation::Product, 300.0, 300.0), bytes(f32::INFINITY));
        assert_eq!(reduced(Operation::Minimum, 2.5, -1.0), bytes(-1.0));
        assert_eq!(reduced(Operation::Maximum, 2.5, -1.0), bytes(2.5));
        let complex = |real, imaginary| {
            [Half::nearest(real), Half::nearest(imaginary)]
                .map(|part| part.0.to_ne_bytes())
                .concat()
        };
        let mut product = complex(2.0, 1.0);
        let element = Element::ComplexF16;
        reduce_into(Operation::Product, element, &mut product, &complex(2.0, -1.0)).unwrap();
        assert_eq!(product, complex(5.0, 0.0));
    }
}
