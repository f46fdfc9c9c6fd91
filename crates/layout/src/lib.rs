//! Typed data: describes which bytes of a user's buffer belong to a message.
//!
//! A [`Layout`] is a value. It says which bytes, counted from a base address, belong to one item of a message and in
//! which order they are packed. MPI datatypes, PVM strides and typed messages are all built from the same few
//! constructors. A layout has the form that is walked fastest from the start: regularities are found while it is built.
//! For copying, a caller asks for the [`Strip`]s of a range of packed bytes, or walks a [`Cursor`] piece by piece. This
//! crate never touches memory.

#![forbid(unsafe_code)]

mod array;
mod bounds;
mod count;
mod cursor;
mod error;
mod external32;
mod fingerprint;
mod kind;
mod layout;
mod list;
mod path;
pub mod precision;
mod signature;
mod strips;
mod tree;

pub use array::{ArrayError, ArrayOrder, Axis, Distribution, Section};
pub use bounds::Bounds;
pub use cursor::{Cursor, Piece};
pub use error::LayoutError;
pub use external32::ConversionError;
pub use kind::{Family, Kind};
pub use layout::Layout;
pub use list::{LayoutBlock, Member};
pub use signature::{Run, Runs, TypeSignature};
pub use strips::{Strip, StripsBeside};
