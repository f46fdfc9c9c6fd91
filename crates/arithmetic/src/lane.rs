//! An element as the loops see it: the body of every loop, and what an operation asks of elements.

use std::ops;

use crate::half::Half;

/// Where the operands of a loop lie, and where its result goes.
#[derive(Clone, Copy)]
pub(crate) struct Places<const OPERANDS: usize> {
    pub(crate) operands: [*const u8; OPERANDS],
    pub(crate) into: *mut u8,
}

/// The vectors that the loops are written for; a processor with narrower ones takes two.
pub(crate) const VECTOR_BYTES: usize = 32;

/// How far a loop gets at each turn.
pub(crate) const TURN_BYTES: usize = 4 * VECTOR_BYTES;

/// Combines `LANES` elements, all of which are loaded before any is stored: neighbours first, then what
/// comes of them, so of a power of two in the canonical association.
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
    // SAFETY: the caller's promise.
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
    // SAFETY: as above.
    unsafe { store(values[0], places.into.add(offset)) };
}

/// Combines `LANES` elements if the length, whose greater bits are done, has this bit. Says where
/// to go on. Elements wider than the bit are no lanes, and nothing is done.
///
/// # Safety
/// The offset is the greater bits of the length, which all places have.
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
    // SAFETY: offset and bit together are not beyond the length.
    unsafe { combine_block::<T, C, LANES, OPERANDS>(places, offset) };
    offset + bit
}

/// Loads once, at any alignment.
///
/// # Safety
/// The place is readable for a whole `V`, and any bits are one.
#[inline(always)]
pub(crate) unsafe fn load<V: Copy>(place: *const u8) -> V {
    // SAFETY: the caller's promise.
    unsafe { place.cast::<V>().read_unaligned() }
}

/// Stores at any alignment.
///
/// # Safety
/// The place is writable for a whole `V`.
#[inline(always)]
pub(crate) unsafe fn store<V: Copy>(value: V, place: *mut u8) {
    // SAFETY: the caller promises the room.
    unsafe { place.cast::<V>().write_unaligned(value) };
}

/// An element: any bits of its width are one.
pub(crate) trait Lane: Copy {
    /// The body of every loop. Inlined always, so that it is compiled with its caller's features.
    ///
    /// # Safety
    /// As [`crate::loops::Loops::combine`] says.
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
    /// This, unless the other value is smaller, or as small and its place is.
    fn smaller(self, other: Self) -> Self;
    /// This, unless the other value is larger, or as large and its place is smaller.
    fn larger(self, other: Self) -> Self;
}

/// An operation on one type of element.
pub(crate) trait Combine<T> {
    fn combine(left: T, right: T) -> T;
}

/// The body of every loop for elements whose width is a power of two.
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
