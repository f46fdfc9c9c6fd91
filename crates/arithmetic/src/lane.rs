//! Elements as the loops see them: the body of every loop, and the operations on elements.

use std::ops;

use crate::half::Half;

/// The places of a loop's operands and of its result.
#[derive(Clone, Copy)]
pub(crate) struct Places<const OPERANDS: usize> {
    pub(crate) operands: [*const u8; OPERANDS],
    pub(crate) into: *mut u8,
}

/// The width of the vectors that the loops are written for; a processor with narrower ones uses two.
pub(crate) const VECTOR_BYTES: usize = 32;

/// The number of bytes that a loop combines in each turn.
pub(crate) const TURN_BYTES: usize = 4 * VECTOR_BYTES;

/// Combines `LANES` elements, all of which are loaded before any is stored. Neighbours are combined first, then their
/// results, so a power of two of operands is combined in the canonical association.
///
/// # Safety
/// All places have that many elements at the offset.
#[inline(always)]
pub(crate) unsafe fn combine_block<
    T: Lane,
    C: Combine<T>,
    const LANES: usize,
    const OPERANDS: usize,
>(
    places: Places<OPERANDS>,
    offset: usize,
) {
    // SAFETY: the caller guarantees `LANES` elements at the offset in every operand.
    let mut values: [[T; LANES]; OPERANDS] =
        places.operands.map(|operand| unsafe { load(operand.add(offset)) });
    let mut count = OPERANDS;
    while count > 1 {
        count /= 2;
        for at in 0..count {
            let (left, right) = (values[2 * at], values[2 * at + 1]);
            values[at] = std::array::from_fn(|lane| C::combine(left[lane], right[lane]));
        }
    }
    // SAFETY: the caller guarantees `LANES` elements at the offset in the result.
    unsafe { store(values[0], places.into.add(offset)) };
}

/// Combines `LANES` elements if the length has this bit, after those for its higher bits. Returns the next offset. If
/// elements are wider than the bit, there are no lanes, and nothing is done.
///
/// # Safety
/// The offset is the sum of the higher bits of the length, and all places have the whole length.
#[inline(always)]
pub(crate) unsafe fn combine_bit<
    T: Lane,
    C: Combine<T>,
    const LANES: usize,
    const OPERANDS: usize,
>(
    places: Places<OPERANDS>,
    offset: usize,
    length_bytes: usize,
) -> usize {
    let bit = LANES * size_of::<T>();
    if length_bytes & bit == 0 {
        return offset;
    }
    // SAFETY: offset and bit together do not exceed the length.
    unsafe { combine_block::<T, C, LANES, OPERANDS>(places, offset) };
    offset + bit
}

/// Loads a value at any alignment, once.
///
/// # Safety
/// The place is readable for a whole `V`, and any bits are a valid `V`.
#[inline(always)]
pub(crate) unsafe fn load<V: Copy>(place: *const u8) -> V {
    // SAFETY: the caller guarantees a readable place, whose bits are a valid `V`.
    unsafe { place.cast::<V>().read_unaligned() }
}

/// Stores at any alignment.
///
/// # Safety
/// The place is writable for a whole `V`.
#[inline(always)]
pub(crate) unsafe fn store<V: Copy>(value: V, place: *mut u8) {
    // SAFETY: the caller guarantees room for a whole `V`.
    unsafe { place.cast::<V>().write_unaligned(value) };
}

/// An element: any bits of its width are a valid one.
pub(crate) trait Lane: Copy {
    /// The body of every loop. It is always inlined, so that it is compiled with its caller's features.
    ///
    /// # Safety
    /// The requirements of [`crate::loops::Loops::combine`].
    unsafe fn combine_all<C: Combine<Self>, const OPERANDS: usize>(
        places: Places<OPERANDS>,
        length_bytes: usize,
    );
}

/// An element that can be added and multiplied.
pub(crate) trait Number: Lane {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
}

/// An element that is true or false.
pub(crate) trait Logical: Lane {
    fn is_true(self) -> bool;
    fn from_truth(truth: bool) -> Self;
}

/// An element that is a row of bits.
pub(crate) trait Bits:
    Lane + ops::BitAnd<Output = Self> + ops::BitOr<Output = Self> + ops::BitXor<Output = Self>
{
}

/// A value with its place.
pub(crate) trait Find: Lane {
    /// The other value if it is smaller, or equal with a smaller place; otherwise this one.
    fn smaller(self, other: Self) -> Self;
    /// The other value if it is larger, or equal with a smaller place; otherwise this one.
    fn larger(self, other: Self) -> Self;
}

/// An operation on one type of element.
pub(crate) trait Combine<T> {
    fn combine(left: T, right: T) -> T;
}

/// Implements the body of every loop for elements whose width is a power of two.
macro_rules! lane {
    ($($type:ty)*) => {$(
        impl Lane for $type {
            #[inline(always)]
            unsafe fn combine_all<C: $crate::lane::Combine<Self>, const OPERANDS: usize>(
                places: $crate::lane::Places<OPERANDS>,
                length_bytes: usize,
            ) {
                use $crate::lane::{TURN_BYTES, VECTOR_BYTES, combine_bit, combine_block};
                const WIDTH: usize = size_of::<$type>();
                let mut at = 0;
                // SAFETY: blocks lie within the turns that the length has, and bits within the rest.
                unsafe {
                    while length_bytes - at >= TURN_BYTES {
                        for vector in 0..TURN_BYTES / VECTOR_BYTES {
                            let at = at + vector * VECTOR_BYTES;
                            combine_block::<Self, C, { VECTOR_BYTES / WIDTH }, OPERANDS>(places, at);
                        }
                        at += TURN_BYTES;
                    }
                    at = combine_bit::<Self, C, { 64 / WIDTH }, OPERANDS>(places, at, length_bytes);
                    at = combine_bit::<Self, C, { 32 / WIDTH }, OPERANDS>(places, at, length_bytes);
                    at = combine_bit::<Self, C, { 16 / WIDTH }, OPERANDS>(places, at, length_bytes);
                    at = combine_bit::<Self, C, { 8 / WIDTH }, OPERANDS>(places, at, length_bytes);
                    at = combine_bit::<Self, C, { 4 / WIDTH }, OPERANDS>(places, at, length_bytes);
                    at = combine_bit::<Self, C, { 2 / WIDTH }, OPERANDS>(places, at, length_bytes);
                    at = combine_bit::<Self, C, { 1 / WIDTH }, OPERANDS>(places, at, length_bytes);
                }
                debug_assert_eq!(at, length_bytes);
            }
        }
    )*};
}

pub(crate) use lane;

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn product(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
        impl Logical for $type {
            #[inline(always)]
            fn is_true(self) -> bool { self != 0 }
            #[inline(always)]
            fn from_truth(truth: bool) -> Self { truth as $type }
        }
        impl Bits for $type {}
    )*};
}

macro_rules! float {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn product(self, other: Self) -> Self { self * other }
        }
    )*};
}

lane!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 Half);
integer!(u8 u16 u32 u64 u128);
float!(f32 f64);
