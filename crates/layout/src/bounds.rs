//! The bounds of a part: where it begins and ends.

use crate::LayoutError;

/// The beginning and the end of a part, in bytes from its base address. Both may lie before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first byte.
    pub lower: i64,
    /// The byte behind the last one.
    pub upper: i64,
}

impl Bounds {
    /// The bounds of an empty part, at the base address.
    pub const EMPTY: Self = Self { lower: 0, upper: 0 };

    /// The upper minus the lower bound, if 63 bits hold it.
    pub fn extent(&self) -> Option<i64> {
        self.upper.checked_sub(self.lower)
    }

    /// The smallest bounds that contain both.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        Self { lower: self.lower.min(other.lower), upper: self.upper.max(other.upper) }
    }

    /// The bounds, moved by an offset.
    pub(crate) fn moved(&self, offset: i64) -> Result<Self, LayoutError> {
        let moved = |bound: i64| {
            bound.checked_add(offset).ok_or(LayoutError::TooLarge { what: "an offset" })
        };
        Ok(Self { lower: moved(self.lower)?, upper: moved(self.upper)? })
    }
}
