//! A reduction: an operation on elements of one type, ready to be applied.

use std::fmt;

use thiserror::Error;

use crate::loops::{self, Loop};
use crate::{Element, Operation};

/// An operation on elements of one type, resolved to the loop that fits this processor.
#[derive(Clone, Copy)]
pub struct Reduction {
    operation: Operation,
    element: Element,
    combine: Loop,
}

/// Why a reduction cannot be made or applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReductionError {
    /// The operation means nothing for this type.
    #[error("{operation} means nothing for elements of type {element}; use another operation")]
    Senseless {
        /// The operation asked for.
        operation: Operation,
        /// The type of the elements.
        element: Element,
    },
    /// The two sides are not equally long.
    #[error(
        "the accumulator has {accumulator_bytes} bytes and the input {input_bytes}; give both the \
         same number of elements"
    )]
    LengthsDiffer {
        /// The length of the accumulator.
        accumulator_bytes: usize,
        /// The length of the input.
        input_bytes: usize,
    },
    /// The last element is cut.
    #[error("{length_bytes} bytes are no whole number of elements of type {element}")]
    CutElement {
        /// The length of both sides.
        length_bytes: usize,
        /// The type of the elements.
        element: Element,
    },
}

impl Reduction {
    /// The reduction of this operation and element type.
    ///
    /// # Errors
    /// [`ReductionError::Senseless`] when the operation means nothing for the type.
    pub fn new(operation: Operation, element: Element) -> Result<Self, ReductionError> {
        let combine = loops::choose(operation, element)
            .ok_or(ReductionError::Senseless { operation, element })?;
        Ok(Self { operation, element, combine })
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
    /// [`ReductionError::LengthsDiffer`], or [`ReductionError::CutElement`]; the accumulator is
    /// unchanged then.
    pub fn apply(&self, accumulator: &mut [u8], input: &[u8]) -> Result<(), ReductionError> {
        let (accumulator_bytes, input_bytes) = (accumulator.len(), input.len());
        if accumulator_bytes != input_bytes {
            return Err(ReductionError::LengthsDiffer { accumulator_bytes, input_bytes });
        }
        if !input_bytes.is_multiple_of(self.element.size_bytes()) {
            let element = self.element;
            return Err(ReductionError::CutElement { length_bytes: input_bytes, element });
        }
        // SAFETY: `loops::choose` returned this loop after it found the features it needs on the
        // processor; they are the same on every core of a machine that Linux runs on.
        unsafe { (self.combine)(accumulator, input) };
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
/// As [`Reduction::new`] and [`Reduction::apply`].
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

    #[test]
    fn not_a_number_leaves_the_accumulator() {
        let mut accumulator = 1.5f64.to_ne_bytes();
        for operation in [Operation::Minimum, Operation::Maximum] {
            reduce_into(operation, Element::F64, &mut accumulator, &f64::NAN.to_ne_bytes())
                .unwrap();
        }
        assert_eq!(f64::from_ne_bytes(accumulator), 1.5);
    }
}
