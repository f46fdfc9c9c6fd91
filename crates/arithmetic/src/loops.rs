//! The loops that do the work: one body, compiled once for every processor and once for the
//! processors with wider vectors, chosen when a reduction is made.
//!
//! Elements are read and written as bytes, so no slice needs any alignment; the compiler turns the
//! body into unaligned vector loads and stores.

use crate::{Element, Operation};

/// A loop over two slices of equal length, a multiple of the element's width.
///
/// Unsafe to call unless this processor has the features it was compiled for: take it from
/// [`choose`], which has looked.
pub(crate) type Loop = unsafe fn(&mut [u8], &[u8]);

/// The loop for an operation on an element type that fits it.
pub(crate) fn choose(operation: Operation, element: Element) -> Option<Loop> {
    match element {
        Element::Bool => logical::<Truth>(operation),
        Element::I8 => integer::<i8>(operation),
        Element::I16 => integer::<i16>(operation),
        Element::I32 => integer::<i32>(operation),
        Element::I64 => integer::<i64>(operation),
        Element::U8 => integer::<u8>(operation),
        Element::U16 => integer::<u16>(operation),
        Element::U32 => integer::<u32>(operation),
        Element::U64 => integer::<u64>(operation),
        Element::F32 => number::<f32>(operation),
        Element::F64 => number::<f64>(operation),
    }
}

fn integer<T: Number + Logical + Bits>(operation: Operation) -> Option<Loop> {
    match operation {
        Operation::BitAnd => Some(fitting::<T, BitAnd>()),
        Operation::BitOr => Some(fitting::<T, BitOr>()),
        Operation::BitXor => Some(fitting::<T, BitXor>()),
        _ => number::<T>(operation).or_else(|| logical::<T>(operation)),
    }
}

fn number<T: Number>(operation: Operation) -> Option<Loop> {
    match operation {
        Operation::Sum => Some(fitting::<T, Sum>()),
        Operation::Product => Some(fitting::<T, Product>()),
        Operation::Minimum => Some(fitting::<T, Minimum>()),
        Operation::Maximum => Some(fitting::<T, Maximum>()),
        _ => None,
    }
}

fn logical<T: Logical>(operation: Operation) -> Option<Loop> {
    match operation {
        Operation::LogicalAnd => Some(fitting::<T, LogicalAnd>()),
        Operation::LogicalOr => Some(fitting::<T, LogicalOr>()),
        Operation::LogicalXor => Some(fitting::<T, LogicalXor>()),
        _ => None,
    }
}

/// The loop for the vectors this processor has.
fn fitting<T: Lane, C: Combine<T>>() -> Loop {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return walk_avx2::<T, C>;
    }
    walk::<T, C>
}

/// The loop with the vectors every processor of this architecture has.
fn walk<T: Lane, C: Combine<T>>(accumulator: &mut [u8], input: &[u8]) {
    combine_all::<T, C>(accumulator, input);
}

/// The loop with vectors of 256 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn walk_avx2<T: Lane, C: Combine<T>>(accumulator: &mut [u8], input: &[u8]) {
    combine_all::<T, C>(accumulator, input);
}

/// The body of every loop. Inlined always, so that it is compiled with its caller's features.
#[inline(always)]
fn combine_all<T: Lane, C: Combine<T>>(accumulator: &mut [u8], input: &[u8]) {
    let outputs = accumulator.chunks_exact_mut(T::BYTES);
    for (output, input) in outputs.zip(input.chunks_exact(T::BYTES)) {
        C::combine(T::load(output), T::load(input)).store(output);
    }
}

/// An element as bytes.
trait Lane: Copy {
    const BYTES: usize;
    fn load(bytes: &[u8]) -> Self;
    fn store(self, bytes: &mut [u8]);
}

/// An element that can be added, multiplied and compared.
trait Number: Lane + PartialOrd {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
}

/// An element that is true or false.
trait Logical: Lane {
    fn is_true(self) -> bool;
    fn from_truth(truth: bool) -> Self;
}

/// An element that is a row of bits.
trait Bits: Lane {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
}

/// An operation on one type of element.
trait Combine<T> {
    fn combine(accumulator: T, input: T) -> T;
}

/// A truth value in one byte.
#[derive(Clone, Copy)]
struct Truth(u8);

macro_rules! lane {
    ($($type:ty)*) => {$(
        impl Lane for $type {
            const BYTES: usize = size_of::<$type>();
            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                let mut element = [0; size_of::<$type>()];
                element.copy_from_slice(bytes);
                Self::from_ne_bytes(element)
            }
            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

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
        impl Bits for $type {
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
        }
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

macro_rules! operation {
    ($($name:ident: $bound:ident, |$accumulator:ident, $input:ident| $result:expr;)*) => {$(
        struct $name;
        impl<T: $bound> Combine<T> for $name {
            #[inline(always)]
            fn combine($accumulator: T, $input: T) -> T { $result }
        }
    )*};
}

lane!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
integer!(i8 i16 i32 i64 u8 u16 u32 u64);
float!(f32 f64);

operation! {
    Sum: Number, |accumulator, input| accumulator.sum(input);
    Product: Number, |accumulator, input| accumulator.product(input);
    Minimum: Number, |accumulator, input| if input < accumulator { input } else { accumulator };
    Maximum: Number, |accumulator, input| if input > accumulator { input } else { accumulator };
    LogicalAnd: Logical, |accumulator, input| T::from_truth(accumulator.is_true() & input.is_true());
    LogicalOr: Logical, |accumulator, input| T::from_truth(accumulator.is_true() | input.is_true());
    LogicalXor: Logical, |accumulator, input| T::from_truth(accumulator.is_true() ^ input.is_true());
    BitAnd: Bits, |accumulator, input| accumulator.and(input);
    BitOr: Bits, |accumulator, input| accumulator.or(input);
    BitXor: Bits, |accumulator, input| accumulator.xor(input);
}

impl Lane for Truth {
    const BYTES: usize = 1;
    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        Self(u8::load(bytes))
    }
    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        self.0.store(bytes);
    }
}

impl Logical for Truth {
    #[inline(always)]
    fn is_true(self) -> bool {
        self.0 != 0
    }
    #[inline(always)]
    fn from_truth(truth: bool) -> Self {
        Self(truth as u8)
    }
}
