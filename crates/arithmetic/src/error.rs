//! The reasons why values cannot be combined.

use thiserror::Error;

use crate::{Element, Operation};

/// The reason why a reduction or a user's function cannot be created or applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReductionError {
    /// The operation is not defined for this type.
    #[error("{operation} means nothing for elements of type {element}; use another operation")]
    Senseless {
        /// The operation asked for.
        operation: Operation,
        /// The type of the elements.
        element: Element,
    },
    /// The two sides have different lengths.
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
    /// The length is not a whole number of elements.
    #[error("{length_bytes} bytes are no whole number of elements of type {element}")]
    CutElement {
        /// The length of all sides.
        length_bytes: usize,
        /// The type of the elements.
        element: Element,
    },
    /// The length is not a whole number of elements of a user's own type.
    #[error(
        "{length_bytes} bytes are no whole number of elements of {element_bytes} bytes, which the \
         user's function combines; give it whole elements"
    )]
    CutUserElement {
        /// The length of all sides.
        length_bytes: usize,
        /// The width that was given for the function.
        element_bytes: usize,
    },
    /// A user's function has elements without any bytes.
    #[error("a user's function cannot combine elements of 0 bytes; say how wide one element is")]
    EmptyElement,
    /// There are no inputs.
    #[error("there are no inputs to combine; give one input at least")]
    NoInputs,
}
