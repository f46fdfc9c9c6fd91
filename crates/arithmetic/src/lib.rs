//! Element types and reduction operations.
//!
//! A [`Reduction`] is an operation on elements of one type, resolved once to a loop that fits this
//! processor. It combines in rank order: `accumulator = accumulator op input`, element by element.
//! Which combinations make sense is a pure question; all else is a [`ReductionError`] by name.

mod element;
mod loops;
mod operation;
mod reduction;

pub use element::Element;
pub use operation::Operation;
pub use reduction::{Reduction, ReductionError, reduce_into};
