//! A reduction: an operation on elements of one type, ready to be applied.

use std::fmt;
use std::ops::Range;

use crate::association;
use crate::loops::{self, Loops, Vectors};
use crate::scratch::Areas;
use crate::{Element, Operation, ReductionError, Scratch};

/// The largest number of elements of each input that are combined element by element: for more, the calls of a loop per
/// pair of inputs pay for themselves.
const FOLD_ELEMENTS_MAX: usize = 4;

/// The length of the parts of each input that are combined at a time: held values of this size stay in the first-level
/// cache.
const CHUNK_BYTES: usize = 4 * 1024;

/// The length of the parts for inputs that no cache holds. Memory is slow whenever an input continues after the others
/// had their turn; longer parts make that rare.
const FAR_CHUNK_BYTES: usize = 16 * 1024;

/// The total length of inputs that the last cache of most machines holds.
const NEAR_INPUTS_BYTES: usize = 16 * 1024 * 1024;

/// An operation on elements of one type, resolved to the loop that fits this processor.
#[derive(Clone, Copy)]
pub struct Reduction {
    operation: Operation,
    element: Element,
    loops: Loops,
}

impl Reduction {
    /// Creates the reduction of this operation and element type.
    ///
    /// # Errors
    /// [`ReductionError::Senseless`] if the operation is not defined for the type.
    pub fn new(operation: Operation, element: Element) -> Result<Self, ReductionError> {
        let loops = loops::choose(operation, element, Vectors::here())
            .ok_or(ReductionError::Senseless { operation, element })?;
        Ok(Self { operation, element, loops })
    }

    /// The operation.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Combines in rank order: `accumulator = accumulator op input`, element by element. Neither
    /// side needs any alignment.
    ///
    /// # Errors
    /// [`ReductionError::LengthsDiffer`], or [`ReductionError::CutElement`]; the accumulator is unchanged in these
    /// cases.
    pub fn apply(&self, accumulator: &mut [u8], input: &[u8]) -> Result<(), ReductionError> {
        let (accumulator_bytes, input_bytes) = (accumulator.len(), input.len());
        if accumulator_bytes != input_bytes {
            return Err(ReductionError::LengthsDiffer { accumulator_bytes, input_bytes });
        }
        let into = accumulator.as_mut_ptr();
        // SAFETY: both slices are borrowed for the call and equally long; the result lies exactly on the left operand.
        unsafe { self.combine_raw(into, input.as_ptr(), into, input_bytes) }
    }

    /// Combines `into = left op right`, element by element, in memory that others may write at any
    /// time: at worst the values are wrong. No place needs any alignment.
    ///
    /// # Safety
    /// For the length, the operands are readable and `into` is writable. `into` is exactly `left`, exactly `right`, or
    /// does not overlap them. No reference to `into` is in use, and none to an operand that another thread or process
    /// may write.
    /// operand that somebody may write.
    ///
    /// # Errors
    /// [`ReductionError::CutElement`]; nothing is written in this case.
    #[inline]
    pub unsafe fn combine_raw(
        &self,
        left: *const u8,
        right: *const u8,
        into: *mut u8,
        length_bytes: usize,
    ) -> Result<(), ReductionError> {
        self.check_whole(length_bytes)?;
        // SAFETY: the loop was chosen for the vectors found on this processor; they are the same on every core of a
        // machine that Linux runs on. The caller guarantees the places.
        unsafe { (self.loops.combine)([left, right], into, length_bytes) };
        Ok(())
    }

    /// Combines all inputs, given in rank order, in the canonical association: split at the largest
    /// power of two smaller than their number. The bits depend on nothing but the inputs. Reads
    /// every input once and writes the result once, part by part; the scratch is used from three
    /// inputs on.
    ///
    /// # Safety
    /// The requirements of [`Reduction::combine_raw`], for every input. `into` may be exactly one of the inputs (or
    /// several that are the same place): each part is read from all before it is written.
    ///
    /// # Errors
    /// [`ReductionError::CutElement`] or [`ReductionError::NoInputs`]; nothing is written in these cases.
    #[inline]
    pub unsafe fn combine_in_order(
        &self,
        inputs: &[*const u8],
        into: *mut u8,
        length_bytes: usize,
        scratch: &mut Scratch,
    ) -> Result<(), ReductionError> {
        self.check_whole(length_bytes)?;
        match *inputs {
            [] => return Err(ReductionError::NoInputs),
            // SAFETY: the caller guarantees both places; they may be the same.
            [only] => unsafe { std::ptr::copy(only, into, length_bytes) },
            // SAFETY: the caller guarantees the places, and the loop fits this processor.
            [left, right] => unsafe { (self.loops.combine)([left, right], into, length_bytes) },
            _ if length_bytes <= FOLD_ELEMENTS_MAX * self.element.size_bytes() => {
                // SAFETY: the caller guarantees the places, and there are more than two inputs.
                unsafe { (self.loops.fold)(inputs, into, length_bytes) };
            }
            // SAFETY: the caller's guarantees are passed on unchanged.
            _ => unsafe { self.combine_in_chunks(inputs, into, length_bytes, scratch) },
        }
        Ok(())
    }

    /// Combines part by part, so that held values stay in a near cache.
    ///
    /// # Safety
    /// The requirements of [`Reduction::combine_in_order`].
    unsafe fn combine_in_chunks(
        &self,
        inputs: &[*const u8],
        into: *mut u8,
        length_bytes: usize,
        scratch: &mut Scratch,
    ) {
        let is_near = inputs.len().saturating_mul(length_bytes) <= NEAR_INPUTS_BYTES;
        let chunk_max_bytes = if is_near { CHUNK_BYTES } else { FAR_CHUNK_BYTES };
        let chunk_max_bytes = chunk_max_bytes - chunk_max_bytes % self.element.size_bytes();
        let held_max = association::held_max(inputs.len());
        let held = scratch.areas(held_max, chunk_max_bytes.min(length_bytes));
        for offset in (0..length_bytes).step_by(chunk_max_bytes) {
            let chunk = offset..length_bytes.min(offset + chunk_max_bytes);
            // SAFETY: the chunk lies within the length that the caller guarantees for inputs and result, and each area
            // holds one chunk.
            unsafe { self.combine_chunk(inputs, into.wrapping_add(offset), &chunk, (held, 0)) };
        }
    }

    /// Combines the same chunk of two or more inputs, with the areas from an index on for held values.
    ///
    /// # Safety
    /// All inputs have the chunk. `into` and the areas have room for it, and do not overlap anything else, except that
    /// `into` may lie on the chunk of an input, or in the first of the areas.
    unsafe fn combine_chunk(
        &self,
        inputs: &[*const u8],
        into: *mut u8,
        chunk: &Range<usize>,
        (held, first): (Areas, usize),
    ) {
        let bytes = chunk.len();
        // SAFETY: the caller guarantees the places. Each loop reads a part of all its operands before it writes it, and
        // the areas of the right half differ from those of the left half.
        unsafe {
            if let Ok(eight) = <[*const u8; 8]>::try_from(inputs) {
                let operands = eight.map(|input| input.wrapping_add(chunk.start));
                return (self.loops.combine_eight)(operands, into, bytes);
            }
            if let Ok(four) = <[*const u8; 4]>::try_from(inputs) {
                let operands = four.map(|input| input.wrapping_add(chunk.start));
                return (self.loops.combine_four)(operands, into, bytes);
            }
            let (left, right) = inputs.split_at(association::split(inputs.len()));
            let operand = |half: &[*const u8], area: usize| match *half {
                [only] => only.wrapping_add(chunk.start),
                _ => {
                    let into = held.at(area);
                    self.combine_chunk(half, into, chunk, (held, area));
                    into.cast_const()
                }
            };
            let operands = [operand(left, first), operand(right, first + 1)];
            (self.loops.combine)(operands, into, bytes);
        }
    }

    /// Checks that so many bytes are whole elements, whose width mostly is a power of two.
    #[inline]
    fn check_whole(&self, length_bytes: usize) -> Result<(), ReductionError> {
        let (element, width) = (self.element, self.element.size_bytes());
        let is_whole = match width.is_power_of_two() {
            true => length_bytes & (width - 1) == 0,
            false => length_bytes.is_multiple_of(width),
        };
        if !is_whole {
            return Err(ReductionError::CutElement { length_bytes, element });
        }
        Ok(())
    }
}

impl fmt::Debug for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Reduction({} of {})", self.operation, self.element)
    }
}

/// Combines once: `accumulator = accumulator op input`, element by element.
///
/// # Errors
/// The errors of [`Reduction::new`] and [`Reduction::apply`].
pub fn reduce_into(
    operation: Operation,
    element: Element,
    accumulator: &mut [u8],
    input: &[u8],
) -> Result<(), ReductionError> {
    Reduction::new(operation, element)?.apply(accumulator, input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_without_meaning_are_named() {
        for operation in Operation::ALL {
            for element in Element::ALL {
                let made = Reduction::new(operation, element);
                assert_eq!(made.is_ok(), operation.fits(element), "{operation} of {element}");
            }
        }
        let error = Reduction::new(Operation::BitAnd, Element::F32).unwrap_err();
        assert_eq!(
            error.to_string(),
            "bitwise and means nothing for elements of type f32; use another operation"
        );
    }

    #[test]
    fn lengths_are_checked() {
        let sum = Reduction::new(Operation::Sum, Element::I32).unwrap();
        let mut accumulator = [0; 8];
        assert_eq!(
            sum.apply(&mut accumulator, &[1; 4]),
            Err(ReductionError::LengthsDiffer { accumulator_bytes: 8, input_bytes: 4 })
        );
        assert_eq!(
            sum.apply(&mut accumulator[..6], &[1; 6]),
            Err(ReductionError::CutElement { length_bytes: 6, element: Element::I32 })
        );
        assert_eq!(accumulator, [0; 8]);
        assert_eq!(sum.apply(&mut [], &[]), Ok(()));
    }

    /// Whether the left value stays, in enough elements for a vector and a rest.
    fn kept(operation: Operation, left: f64, right: f64) -> bool {
        let before = left.to_ne_bytes().repeat(21);
        let mut accumulator = before.clone();
        let input = right.to_ne_bytes().repeat(21);
        reduce_into(operation, Element::F64, &mut accumulator, &input).unwrap();
        accumulator == before
    }

    #[test]
    fn the_accumulator_stays_unless_the_input_is_beyond_it() {
        for operation in [Operation::Minimum, Operation::Maximum] {
            for (left, right) in [(1.5, f64::NAN), (f64::NAN, 1.5), (0.0, -0.0), (-0.0, 0.0)] {
                assert!(kept(operation, left, right), "{operation} of {left} and {right}");
            }
        }
        assert!(!kept(Operation::Minimum, 1.5, 1.0) && !kept(Operation::Maximum, 1.0, 1.5));
    }
}
