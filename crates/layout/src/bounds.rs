//! Where something begins and ends.

use crate::LayoutError;

/// Where something begins and ends, in bytes from its base address. It may begin before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first byte.
    pub lower: i64,
    /// One behind the last byte.
    pub upper: i64,
}

impl Bounds {
    /// Nothing, at the base address.
    pub const EMPTY: Self = Self { lower: 0, upper: 0 };

    /// Upper less lower bound, if 63 bits hold it.
    pub fn extent(&self) -> Option<i64> {
        self.upper.checked_sub(self.lower)
    }

    /// The bounds of both.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        Self { lower: self.lower.min(other.lower), upper: self.upper.max(other.upper) }
    }

    /// The same bounds elsewhere.
    pub(crate) fn moved(&self, offset: i64) -> Result<Self, LayoutError> {
        let moved = |bound: i64| {
            bound.checked_add(offset).ok_or(LayoutError::TooLarge { what: "an offset" })
        };
        Ok(Self { lower: moved(self.lower)?, upper: moved(self.upper)? })
    }
}
