//! Why a layout or a cursor cannot be made.

use std::ops::Range;

use thiserror::Error;

/// Why a layout or a cursor cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Some size, offset or extent does not fit in 63 bits.
    #[error(
        "{what} of this data layout does not fit in 63 bits; use a smaller count, stride or offset"
    )]
    TooLarge {
        /// What does not fit.
        what: &'static str,
    },
    /// The layout nests or lists more parts than 32 bits can number.
    #[error("a data layout of {parts} parts is beyond the limit of {limit}; build it of vectors")]
    TooManyParts {
        /// How many parts it would have.
        parts: usize,
        /// How many it may have.
        limit: usize,
    },
    /// Parts lie within each other too deeply.
    #[error(
        "a data layout of more than {limit} layouts within each other is refused; \
         describe it with fewer levels"
    )]
    TooDeep {
        /// How deep it may be.
        limit: u16,
    },
    /// A range of packed bytes that the items do not have.
    #[error(
        "packed bytes {}..{} were asked for, but the items have {size_bytes} packed bytes",
        range.start, range.end
    )]
    OutOfRange {
        /// The range asked for.
        range: Range<u64>,
        /// The packed bytes there are.
        size_bytes: u64,
    },
    /// An element kind of an impossible width.
    #[error("no element kind is {bytes} bytes wide; a width lies between 1 and {limit}")]
    NoSuchWidth {
        /// The width asked for.
        bytes: usize,
        /// The widest element.
        limit: usize,
    },
}
