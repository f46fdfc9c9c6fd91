//! The loops that combine elements: one body, compiled once for every processor and once for processors with wider
//! vectors. The choice is made when a reduction is created.
//!
//! Operands are places, not slices: others may write there at any time. Loaded data only affect values, never the
//! control flow of a loop. A body works on blocks of constant width and loads a block before it stores it. So the
//! result may lie exactly where an operand lies, and the compiler makes each block one vector instruction without
//! checking whether places overlap. No place needs any alignment.
//!
//! Vectors of 512 bits are not used. On an EPYC that has them they doubled the speed in the first-level cache, gained a
//! fifth in the second, and nothing beyond, where long reductions work. And if a processor has scatter instructions,
//! the compiler (Rust 1.95) uses them for some of these loops, sums and products of 64 bits among them, which then run
//! at a tenth of the speed.

use std::mem::MaybeUninit;

use crate::association::{self, HELD_MAX, Operand, Target};
use crate::composed::{Complex, Extended, Located};
use crate::element::{Place, Value};
use crate::half::Half;
use crate::lane::{Bits, Combine, Find, Lane, Logical, Number, Places, load, store};
use crate::{Element, Operation};

/// The loops of one operation on one type of element.
///
/// They may only be called if this processor has the vectors they were chosen for: [`Vectors::here`].
#[derive(Clone, Copy)]
pub(crate) struct Loops {
    /// Computes `into = left op right`, given the three places and their length in bytes, a multiple of the element's
    /// width. Each place is readable or writable for that length; the result lies exactly on an operand or apart from
    /// it.
    pub(crate) combine: Combining<2>,
    /// Combines four operands in the canonical association. Intermediate values are never stored, and loads from
    /// distant memory overlap.
    pub(crate) combine_four: Combining<4>,
    /// Combines eight operands in the canonical association.
    pub(crate) combine_eight: Combining<8>,
    /// Combines all inputs (two at least) in the canonical association, one element after the other: for few elements
    /// of many inputs. The places have the requirements of `combine`.
    pub(crate) fold: unsafe fn(&[*const u8], *mut u8, usize),
}

/// A loop that combines so many operands into the place after them.
pub(crate) type Combining<const OPERANDS: usize> = unsafe fn([*const u8; OPERANDS], *mut u8, usize);

/// The kinds of vectors that loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// The vectors that every processor of this architecture has.
    Common,
    /// Vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Vectors {
    /// The widest vectors that this processor has.
    pub(crate) fn here() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Common
    }

    fn loops<T: Lane, C: Combine<T>>(self) -> Loops {
        match self {
            Self::Common => Loops {
                combine: combine::<T, C, 2>,
                combine_four: combine::<T, C, 4>,
                combine_eight: combine::<T, C, 8>,
                fold: fold::<T, C>,
            },
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Loops {
                combine: combine_avx2::<T, C, 2>,
                combine_four: combine_avx2::<T, C, 4>,
                combine_eight: combine_avx2::<T, C, 8>,
                fold: fold::<T, C>,
            },
        }
    }
}

/// The loops for an operation on an element type, with these vectors; `None` if the operation does not fit the type.
///
/// Loops that do not depend on the sign are compiled for unsigned integers only.
pub(crate) fn choose(operation: Operation, element: Element, vectors: Vectors) -> Option<Loops> {
    if !operation.fits(element) {
        return None;
    }
    match (operation, element) {
        (_, Element::Placed(value, place)) => placed(operation, value, place, vectors),
        (Operation::Minimum | Operation::Maximum, _) => ordered(operation, element, vectors),
        _ => match element {
            Element::Bool | Element::I8 | Element::U8 | Element::Byte => {
                integer::<u8>(operation, vectors)
            }
            Element::I16 | Element::U16 | Element::Bool16 => integer::<u16>(operation, vectors),
            Element::I32 | Element::U32 | Element::Bool32 => integer::<u32>(operation, vectors),
            Element::I64 | Element::U64 | Element::Bool64 => integer::<u64>(operation, vectors),
            Element::I128 | Element::Bool128 => integer::<u128>(operation, vectors),
            Element::F16 => number::<Half>(operation, vectors),
            Element::F32 => number::<f32>(operation, vectors),
            Element::F64 => number::<f64>(operation, vectors),
            Element::F80 => number::<Extended>(operation, vectors),
            Element::ComplexF16 => number::<Complex<Half>>(operation, vectors),
            Element::ComplexF32 => number::<Complex<f32>>(operation, vectors),
            Element::ComplexF64 => number::<Complex<f64>>(operation, vectors),
            Element::ComplexF80 => number::<Complex<Extended>>(operation, vectors),
            Element::Placed(..) => None,
        },
    }
}

fn ordered(operation: Operation, element: Element, vectors: Vectors) -> Option<Loops> {
    match element {
        Element::I128 => extreme::<i128>(operation, vectors),
        Element::F80 => extreme::<Extended>(operation, vectors),
        Element::I8 => extreme::<i8>(operation, vectors),
        Element::I16 => extreme::<i16>(operation, vectors),
        Element::I32 => extreme::<i32>(operation, vectors),
        Element::I64 => extreme::<i64>(operation, vectors),
        Element::U8 => extreme::<u8>(operation, vectors),
        Element::U16 => extreme::<u16>(operation, vectors),
        Element::U32 => extreme::<u32>(operation, vectors),
        Element::U64 => extreme::<u64>(operation, vectors),
        Element::F16 => extreme::<Half>(operation, vectors),
        Element::F32 => extreme::<f32>(operation, vectors),
        Element::F64 => extreme::<f64>(operation, vectors),
        _ => None,
    }
}

fn placed(operation: Operation, value: Value, place: Place, vectors: Vectors) -> Option<Loops> {
    match value {
        Value::I8 => found::<i8>(operation, place, vectors),
        Value::I16 => found::<i16>(operation, place, vectors),
        Value::I32 => found::<i32>(operation, place, vectors),
        Value::I64 => found::<i64>(operation, place, vectors),
        Value::U8 => found::<u8>(operation, place, vectors),
        Value::U16 => found::<u16>(operation, place, vectors),
        Value::U32 => found::<u32>(operation, place, vectors),
        Value::U64 => found::<u64>(operation, place, vectors),
        Value::F32 => found::<f32>(operation, place, vectors),
        Value::F64 => found::<f64>(operation, place, vectors),
        Value::F80 => found::<Extended>(operation, place, vectors),
    }
}

fn found<V: Copy + PartialOrd>(
    operation: Operation,
    place: Place,
    vectors: Vectors,
) -> Option<Loops> {
    match place {
        Place::I32 => first_found::<Located<V, i32>>(operation, vectors),
        Place::I64 => first_found::<Located<V, i64>>(operation, vectors),
        Place::Same => first_found::<Located<V, V>>(operation, vectors),
    }
}

fn first_found<T: Lane + Find>(operation: Operation, vectors: Vectors) -> Option<Loops> {
    match operation {
        Operation::MinimumAt => Some(vectors.loops::<T, MinimumAt>()),
        Operation::MaximumAt => Some(vectors.loops::<T, MaximumAt>()),
        _ => None,
    }
}

fn extreme<T: Lane + PartialOrd>(operation: Operation, vectors: Vectors) -> Option<Loops> {
    match operation {
        Operation::Minimum => Some(vectors.loops::<T, Minimum>()),
        Operation::Maximum => Some(vectors.loops::<T, Maximum>()),
        _ => None,
    }
}

fn integer<T: Number + Logical + Bits>(operation: Operation, vectors: Vectors) -> Option<Loops> {
    match operation {
        Operation::LogicalAnd => Some(vectors.loops::<T, LogicalAnd>()),
        Operation::LogicalOr => Some(vectors.loops::<T, LogicalOr>()),
        Operation::LogicalXor => Some(vectors.loops::<T, LogicalXor>()),
        Operation::BitAnd => Some(vectors.loops::<T, BitAnd>()),
        Operation::BitOr => Some(vectors.loops::<T, BitOr>()),
        Operation::BitXor => Some(vectors.loops::<T, BitXor>()),
        _ => number::<T>(operation, vectors),
    }
}

fn number<T: Number>(operation: Operation, vectors: Vectors) -> Option<Loops> {
    match operation {
        Operation::Sum => Some(vectors.loops::<T, Sum>()),
        Operation::Product => Some(vectors.loops::<T, Product>()),
        _ => None,
    }
}

/// Combines with the vectors that every processor of this architecture has.
///
/// # Safety
/// The requirements of [`Loops::combine`].
unsafe fn combine<T: Lane, C: Combine<T>, const OPERANDS: usize>(
    operands: [*const u8; OPERANDS],
    into: *mut u8,
    length_bytes: usize,
) {
    // SAFETY: the caller gives the same guarantees.
    unsafe { T::combine_all::<C, OPERANDS>(Places { operands, into }, length_bytes) };
}

/// Combines with vectors of 256 bits.
///
/// # Safety
/// The requirements of [`Loops::combine`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn combine_avx2<T: Lane, C: Combine<T>, const OPERANDS: usize>(
    operands: [*const u8; OPERANDS],
    into: *mut u8,
    length_bytes: usize,
) {
    // SAFETY: the caller gives the guarantees that the body needs.
    unsafe { T::combine_all::<C, OPERANDS>(Places { operands, into }, length_bytes) };
}

/// Combines all inputs in the canonical association, one element after the other.
///
/// # Safety
/// The requirements of [`Loops::fold`].
unsafe fn fold<T: Lane, C: Combine<T>>(inputs: &[*const u8], into: *mut u8, length_bytes: usize) {
    let mut held = [MaybeUninit::<T>::uninit(); HELD_MAX];
    for offset in (0..length_bytes).step_by(size_of::<T>()) {
        association::walk(inputs.len(), |left, right, target| {
            let value = |operand| match operand {
                // SAFETY: every input is readable for the whole length; any bits are an element.
                Operand::Input(index) => unsafe { load::<T>(inputs[index].add(offset)) },
                // SAFETY: the walk only takes a held value that it has put there.
                Operand::Held(index) => unsafe { held[index].assume_init() },
            };
            let combined = C::combine(value(left), value(right));
            match target {
                Target::Held(index) => held[index] = MaybeUninit::new(combined),
                // SAFETY: the result is writable for the whole length. If it lies on an input, this element of that
                // input was read before, since this is the walk's last step.
                Target::Result => unsafe { store(combined, into.add(offset)) },
            }
        });
    }
}

macro_rules! operation {
    ($($name:ident: $($bound:ident)+, |$left:ident, $right:ident| $result:expr;)*) => {$(
        struct $name;
        impl<T: $($bound +)+> Combine<T> for $name {
            #[inline(always)]
            fn combine($left: T, $right: T) -> T { $result }
        }
    )*};
}

operation! {
    Sum: Number, |left, right| left.sum(right);
    Product: Number, |left, right| left.product(right);
    Minimum: Lane PartialOrd, |left, right| if right < left { right } else { left };
    Maximum: Lane PartialOrd, |left, right| if right > left { right } else { left };
    LogicalAnd: Logical, |left, right| T::from_truth(left.is_true() & right.is_true());
    LogicalOr: Logical, |left, right| T::from_truth(left.is_true() | right.is_true());
    LogicalXor: Logical, |left, right| T::from_truth(left.is_true() ^ right.is_true());
    BitAnd: Bits, |left, right| left & right;
    BitOr: Bits, |left, right| left | right;
    BitXor: Bits, |left, right| left ^ right;
    MinimumAt: Find, |left, right| left.smaller(right);
    MaximumAt: Find, |left, right| left.larger(right);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of the loops for random bytes, in lengths around their blocks.
    fn results(loops: Loops, width: usize) -> [Vec<Vec<u8>>; 3] {
        let mut state = 7u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8 & 0xbf // no floating-point number that is infinite or not a number
        };
        let inputs: [Vec<u8>; 8] = std::array::from_fn(|_| (0..600).map(|_| byte()).collect());
        let place = |input: usize| inputs[input].as_ptr();
        let of = |combine: &dyn Fn(*mut u8, usize)| {
            let lengths = (0..=600).filter(|length| length % width == 0);
            let result = |length| {
                let mut into = vec![0; 600];
                combine(into.as_mut_ptr(), length);
                into
            };
            lengths.map(result).collect()
        };
        // SAFETY: all places have 600 bytes, and the caller has checked for the vectors.
        unsafe {
            [
                of(&|into, length| (loops.combine)([place(0), place(1)], into, length)),
                of(&|into, length| (loops.combine_four)(std::array::from_fn(place), into, length)),
                of(&|into, length| (loops.combine_eight)(std::array::from_fn(place), into, length)),
            ]
        }
    }

    #[test]
    fn all_vectors_give_the_same_bits() {
        for operation in Operation::ALL {
            for element in Element::ALL {
                let chosen = |vectors| choose(operation, element, vectors);
                let Some(common) = chosen(Vectors::Common) else { continue };
                let here = chosen(Vectors::here()).expect("a choice does not depend on vectors");
                let width = element.size_bytes();
                assert_eq!(
                    results(common, width),
                    results(here, width),
                    "{operation} of {element}"
                );
            }
        }
    }
}
