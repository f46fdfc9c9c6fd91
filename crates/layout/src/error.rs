//! The reasons why a layout or a cursor cannot be created.

use std::ops::Range;

use thiserror::Error;

/// The reason why a layout or a cursor cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// A size, offset or extent does not fit in 63 bits.
    #[error(
        "{what} of this data layout does not fit in 63 bits; use a smaller count, stride or offset"
    )]
    TooLarge {
        /// The value that does not fit.
        what: &'static str,
    },
    /// The layout nests or lists more parts than 32 bits can number.
    #[error("a data layout of {parts} parts is beyond the limit of {limit}; build it of vectors")]
    TooManyParts {
        /// The number of parts that it would have.
        parts: usize,
        /// The largest number of parts.
        limit: usize,
    },
    /// The parts are nested too deeply.
    #[error(
        "a data layout of more than {limit} layouts within each other is refused; \
         describe it with fewer levels"
    )]
    TooDeep {
        /// The largest depth.
        limit: u16,
    },
    /// The items do not have this range of packed bytes.
    #[error(
        "packed bytes {}..{} were asked for, but the items have {size_bytes} packed bytes",
        range.start, range.end
    )]
    OutOfRange {
        /// The given range.
        range: Range<u64>,
        /// The number of packed bytes.
        size_bytes: u64,
    },
    /// No element kind has this width.
    #[error("no element kind is {bytes} bytes wide; a width lies between 1 and {limit}")]
    NoSuchWidth {
        /// The given width.
        bytes: usize,
        /// The width of the widest element.
        limit: usize,
    },
}
