//! Elements that consist of numbers, or for which Rust has no type: complex numbers, values with places, the extended
//! numbers of x86 processors.

use std::cmp::Ordering;

use crate::half::Half;
use crate::lane::{Combine, Find, Lane, Number, Places, combine_block, lane};

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Complex<T> {
    pub(crate) real: T,
    pub(crate) imaginary: T,
}

/// A value and the place where it was found, without a gap.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(crate) struct Located<V, P> {
    pub(crate) value: V,
    pub(crate) place: P,
}

/// A floating-point number of 80 bits, as x86 processors store it; the last six bytes have no meaning.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct Extended(pub(crate) [u8; 16]);

/// The operations that complex numbers need of their parts.
pub(crate) trait Real: Copy {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! real {
    ($($type:ty)*) => {$(
        impl Real for $type {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
        }
    )*};
}

real!(f32 f64);

lane!(Extended Complex<Half> Complex<f32> Complex<f64> Complex<Extended>);

impl<T: Real> Number for Complex<T>
where
    Self: Lane,
{
    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        Self { real: self.real.plus(other.real), imaginary: self.imaginary.plus(other.imaginary) }
    }

    #[inline(always)]
    fn product(self, other: Self) -> Self {
        let (a, b, c, d) = (self.real, self.imaginary, other.real, other.imaginary);
        Self { real: a.times(c).minus(b.times(d)), imaginary: a.times(d).plus(b.times(c)) }
    }
}

impl<V: Copy + PartialOrd, P: Copy + PartialOrd> Lane for Located<V, P> {
    #[inline(always)]
    unsafe fn combine_all<C: Combine<Self>, const OPERANDS: usize>(
        places: Places<OPERANDS>,
        length_bytes: usize,
    ) {
        for offset in (0..length_bytes).step_by(size_of::<Self>()) {
            // SAFETY: the length is a whole number of elements, which all places have.
            unsafe { combine_block::<Self, C, 1, OPERANDS>(places, offset) };
        }
    }
}

impl<V: Copy + PartialOrd, P: Copy + PartialOrd> Find for Located<V, P> {
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        self.unless(other, Ordering::Less)
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.unless(other, Ordering::Greater)
    }
}

impl<V: Copy + PartialOrd, P: Copy + PartialOrd> Located<V, P> {
    /// Returns the other value if it compares as `beyond`, or is equal and has the smaller place; otherwise this one.
    #[inline(always)]
    fn unless(self, other: Self, beyond: Ordering) -> Self {
        // The fields are copied, since they need not be aligned.
        let (value, other_value) = (self.value, other.value);
        match other_value.partial_cmp(&value) {
            Some(Ordering::Equal) => {
                let (place, other_place) = (self.place, other.place);
                if other_place < place { other } else { self }
            }
            Some(order) if order == beyond => other,
            _ => self,
        }
    }
}

impl Number for Half {
    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        self.plus(other)
    }

    #[inline(always)]
    fn product(self, other: Self) -> Self {
        self.times(other)
    }
}

impl Real for Half {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self::nearest(self.wide() + other.wide())
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Self::nearest(self.wide() - other.wide())
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Self::nearest(self.wide() * other.wide())
    }
}

impl Number for Extended {
    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        self.plus(other)
    }

    #[inline(always)]
    fn product(self, other: Self) -> Self {
        self.times(other)
    }
}

/// Applies an instruction to two numbers on top of the stack, the first below the second, and returns its result.
macro_rules! on_stack {
    ($instruction:literal, $left:expr, $right:expr) => {{
        let (left, right, mut result) = ($left, $right, Extended([0; 16]));
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this reads and writes ten bytes of each place, and leaves the stack empty, as it is everywhere in
        // code that uses no such numbers.
        unsafe {
            std::arch::asm!(
                "fld tbyte ptr [{left}]",
                "fld tbyte ptr [{right}]",
                $instruction,
                "fstp tbyte ptr [{result}]",
                left = in(reg) &raw const left,
                right = in(reg) &raw const right,
                result = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        // On other processors no operation fits these numbers, so this is never reached.
        #[cfg(not(target_arch = "x86_64"))]
        {
            result = if left.0 == right.0 { left } else { result };
        }
        result
    }};
}

impl Real for Extended {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        on_stack!("faddp st(1), st", self, other)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        on_stack!("fsubp st(1), st", self, other)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        on_stack!("fmulp st(1), st", self, other)
    }
}

impl Extended {
    /// The sign, the exponent and the fraction.
    fn parts(self) -> (bool, u16, u64) {
        let Self([f0, f1, f2, f3, f4, f5, f6, f7, e0, e1, ..]) = self;
        let exponent = u16::from_le_bytes([e0, e1]);
        let fraction = u64::from_le_bytes([f0, f1, f2, f3, f4, f5, f6, f7]);
        (exponent >> 15 != 0, exponent & 0x7fff, fraction)
    }
}

impl PartialEq for Extended {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Extended {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let (left, right) = (self.parts(), other.parts());
        let is_number =
            |(_, exponent, fraction): (bool, u16, u64)| exponent != 0x7fff || fraction << 1 == 0;
        if !is_number(left) || !is_number(right) {
            return None;
        }
        let magnitude = |(_, exponent, fraction): (bool, u16, u64)| (exponent, fraction);
        if left.2 == 0 && right.2 == 0 && left.1 != 0x7fff && right.1 != 0x7fff {
            return Some(Ordering::Equal);
        }
        let order = magnitude(left).cmp(&magnitude(right));
        Some(match (left.0, right.0) {
            (false, false) => order,
            (true, true) => order.reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Place, Value};
    use crate::{Element, Operation, Reduction, Scratch};

    /// Converts a whole number into an extended one.
    fn extended(value: i64) -> Extended {
        let mut bytes = [0; 16];
        if value != 0 {
            let magnitude = value.unsigned_abs();
            let shift = magnitude.leading_zeros();
            bytes[..8].copy_from_slice(&(magnitude << shift).to_le_bytes());
            let exponent = 16_383 + 63 - shift as u16;
            let sign = if value < 0 { 0x8000 } else { 0 };
            bytes[8..10].copy_from_slice(&(exponent | sign).to_le_bytes());
        }
        Extended(bytes)
    }

    fn reduced(operation: Operation, element: Element, inputs: &[Vec<u8>]) -> Vec<u8> {
        let reduction = Reduction::new(operation, element).unwrap();
        let places: Vec<_> = inputs.iter().map(|input| input.as_ptr()).collect();
        let mut result = vec![0; inputs[0].len()];
        let into = result.as_mut_ptr();
        let mut scratch = Scratch::new();
        // SAFETY: all inputs are as long as the result.
        unsafe { reduction.combine_in_order(&places, into, inputs[0].len(), &mut scratch) }
            .unwrap();
        result
    }

    #[test]
    fn complex_numbers_add_and_multiply() {
        let bytes = |numbers: [f64; 2]| -> Vec<u8> {
            numbers.iter().flat_map(|part| part.to_ne_bytes()).collect::<Vec<_>>().repeat(300)
        };
        let inputs = [bytes([1.0, 2.0]), bytes([3.0, -1.0]), bytes([0.5, 0.5])];
        let sum = reduced(Operation::Sum, Element::ComplexF64, &inputs);
        assert_eq!(sum, bytes([4.5, 1.5]));
        // (1 + 2i)(3 - i) = 5 + 5i; times (1 + i) / 2 = 5i.
        let product = reduced(Operation::Product, Element::ComplexF64, &inputs);
        assert_eq!(product, bytes([0.0, 5.0]));
        assert!(Reduction::new(Operation::Minimum, Element::ComplexF32).is_err());
    }

    #[test]
    fn the_smaller_place_wins_where_values_are_equal() {
        let bytes = |value: f64, place: i32| -> Vec<u8> {
            [&value.to_ne_bytes()[..], &place.to_ne_bytes()].concat().repeat(900)
        };
        let element = Element::Placed(Value::F64, Place::I32);
        let inputs = [bytes(2.0, 7), bytes(1.0, 9), bytes(1.0, 4), bytes(3.0, 1), bytes(3.0, 2)];
        assert_eq!(reduced(Operation::MinimumAt, element, &inputs), bytes(1.0, 4));
        assert_eq!(reduced(Operation::MaximumAt, element, &inputs), bytes(3.0, 1));
        assert!(Reduction::new(Operation::Minimum, element).is_err());
        assert!(Reduction::new(Operation::MinimumAt, Element::F64).is_err());
    }

    #[test]
    fn wide_integers_and_truth_values() {
        let bytes = |value: i128| value.to_ne_bytes().repeat(40);
        let inputs = [bytes(-(1 << 100)), bytes(1 << 70)];
        let sum = reduced(Operation::Sum, Element::I128, &inputs);
        assert_eq!(sum, bytes((1 << 70) - (1 << 100)));
        assert_eq!(reduced(Operation::Minimum, Element::I128, &inputs), bytes(-(1 << 100)));
        let truth = |value: u32| value.to_ne_bytes().repeat(40);
        let inputs = [truth(7), truth(256)];
        assert_eq!(reduced(Operation::LogicalAnd, Element::Bool32, &inputs), truth(1));
        assert_eq!(reduced(Operation::LogicalXor, Element::Bool32, &inputs), truth(0));
        assert!(Reduction::new(Operation::Sum, Element::Bool32).is_err());
        assert!(Reduction::new(Operation::Sum, Element::Byte).is_err());
        assert!(Reduction::new(Operation::BitOr, Element::Byte).is_ok());
    }

    #[test]
    fn extended_numbers_are_ordered() {
        let numbers: Vec<_> = [i64::MIN, -3, -1, 0, 1, 2, 1 << 40].map(extended).into();
        for (at, left) in numbers.iter().enumerate() {
            for (beside, right) in numbers.iter().enumerate() {
                assert_eq!(left.partial_cmp(right), Some(at.cmp(&beside)));
            }
        }
        let mut infinite = extended(1);
        infinite.0[8..10].copy_from_slice(&0x7fff_u16.to_le_bytes());
        assert!(infinite > extended(i64::MAX) && infinite == infinite);
        infinite.0[0] = 1;
        assert_eq!(infinite.partial_cmp(&extended(0)), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn extended_numbers_add_and_multiply() {
        let of = |value| extended(value).0.repeat(30);
        let inputs = [of(3_000_000_001), of(-5), of(7)];
        let sum = reduced(Operation::Sum, Element::F80, &inputs);
        assert_eq!(sum, of(3_000_000_003));
        let product = reduced(Operation::Product, Element::F80, &inputs);
        assert_eq!(product, of(-105_000_000_035));
        assert_eq!(reduced(Operation::Maximum, Element::F80, &inputs), inputs[0]);
        // (2 + i)(2 - i) = 5.
        let complex = |real, imaginary| [extended(real).0, extended(imaginary).0].concat();
        let inputs = [complex(2, 1), complex(2, -1)];
        assert_eq!(reduced(Operation::Product, Element::ComplexF80, &inputs), complex(5, 0));
    }
}
