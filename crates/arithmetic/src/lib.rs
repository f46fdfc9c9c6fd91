//! Element types and reduction operations.
//!
//! A [`Reduction`] is an operation on elements of one type, resolved once to loops that fit this processor. It combines
//! in rank order: `result = left op right`, element by element. Many inputs are combined in one canonical association,
//! so that the same inputs always give the same bits. An [`Operator`] is a reduction or a user's own function, for
//! callers to which the difference does not matter.
//!
//! All functions work on memory that others may write at any time, given as raw places; only a user's function sees
//! private memory. Whether a combination is defined is a pure question; every other fault is a named
//! [`ReductionError`].

mod association;
mod composed;
mod element;
mod error;
mod half;
mod lane;
mod loops;
mod operation;
mod operator;
mod reduction;
mod scratch;
mod user_function;

pub use element::{Element, Place, Value};
pub use error::ReductionError;
pub use operation::Operation;
pub use operator::Operator;
pub use reduction::{Reduction, reduce_into};
pub use scratch::Scratch;
pub use user_function::UserFunction;
