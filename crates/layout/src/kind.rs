//! The kinds of elements a layout is made of.

use std::fmt;

use crate::LayoutError;

/// What the bits of an element mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Bytes without a meaning.
    Byte,
    /// A character.
    Character,
    /// A signed integer, two's complement.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// A floating-point number.
    Float,
    /// Two floating-point numbers: real, imaginary.
    Complex,
    /// A truth value.
    Logical,
    /// Already packed data.
    Packed,
}

impl Family {
    /// The name of the family in plain words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Character => "character",
            Self::Signed => "signed",
            Self::Unsigned => "unsigned",
            Self::Float => "float",
            Self::Complex => "complex",
            Self::Logical => "logical",
            Self::Packed => "packed",
        }
    }
}

/// The kind of one element: its family and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    family: Family,
    bytes: u8,
}

impl Kind {
    /// A byte without a meaning.
    pub const BYTE: Self = Self { family: Family::Byte, bytes: 1 };
    /// Already packed data.
    pub const PACKED: Self = Self { family: Family::Packed, bytes: 1 };
    /// The widest element.
    pub const WIDEST_BYTES: usize = 64;

    /// The kind of this family and width.
    ///
    /// # Errors
    /// [`LayoutError::NoSuchWidth`] unless the width lies between 1 and [`Kind::WIDEST_BYTES`].
    pub const fn new(family: Family, bytes: usize) -> Result<Self, LayoutError> {
        if bytes == 0 || bytes > Self::WIDEST_BYTES {
            return Err(LayoutError::NoSuchWidth { bytes, limit: Self::WIDEST_BYTES });
        }
        Ok(Self { family, bytes: bytes as u8 })
    }

    /// The family.
    pub const fn family(self) -> Family {
        self.family
    }

    /// The width of one element.
    pub const fn size_bytes(self) -> u64 {
        self.bytes as u64
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            Family::Byte | Family::Packed => formatter.write_str(self.family.as_str()),
            family => write!(formatter, "{}{}", family.as_str(), u32::from(self.bytes) * 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_checked() {
        assert_eq!(Kind::new(Family::Float, 8).unwrap().to_string(), "float64");
        assert_eq!(Kind::BYTE.to_string(), "byte");
        assert!(Kind::new(Family::Float, 0).is_err());
        assert!(Kind::new(Family::Byte, 65).is_err());
    }
}
