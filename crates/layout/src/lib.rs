//! Typed data: where the bytes of a message lie in a user's buffer.
//!
//! A [`Layout`] is a value. It says which bytes, counted from a base address, belong to one item of
//! a message and in which order they are packed. MPI datatypes, PVM strides and typed messages are
//! all built from the same few constructors. A [`Cursor`] walks the packed bytes of any number of
//! items, starts and stops anywhere, and names the [`Piece`]s of the user's buffer; who copies them
//! is the caller's business, so this crate never touches memory.

#![forbid(unsafe_code)]

mod cursor;
mod error;
mod fingerprint;
mod kind;
mod layout;
mod list;
mod path;
mod signature;
mod strips;
mod tree;

pub use cursor::{Cursor, Piece};
pub use error::LayoutError;
pub use kind::{Family, Kind};
pub use layout::{Block, Bounds, Layout, Member};
pub use signature::{Run, Runs, Signature};
pub use strips::Strip;
