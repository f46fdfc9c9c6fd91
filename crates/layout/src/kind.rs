//! The kinds of elements a layout is made of.

use std::fmt;

use crate::LayoutError;

/// The meaning of an element's bits.
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
    /// A floating-point number of one of the IEEE formats.
    Float,
    /// Two floating-point numbers: real, imaginary.
    Complex,
    /// A truth value.
    Logical,
    /// Already packed data.
    Packed,
    /// A floating-point number with the 80 bits of the x87 and padding behind them.
    Extended,
    /// Two such numbers: real, imaginary.
    ExtendedComplex,
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
            Self::Extended => "extended",
            Self::ExtendedComplex => "complex-extended",
        }
    }

    /// The number of numbers in one element.
    pub(crate) const fn components(self) -> usize {
        match self {
            Self::Complex | Self::ExtendedComplex => 2,
            _ => 1,
        }
    }
}

/// The kind of one element: its family, its width here, and its width in the portable format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    family: Family,
    bytes: u8,
    external_bytes: u8,
}

impl Kind {
    /// A byte without a meaning.
    pub const BYTE: Self = Self { family: Family::Byte, bytes: 1, external_bytes: 1 };
    /// Already packed data.
    pub const PACKED: Self = Self { family: Family::Packed, bytes: 1, external_bytes: 1 };
    /// The width of the widest element.
    pub const WIDEST_BYTES: usize = 64;
    /// The largest alignment of an element.
    const ALIGNMENT_MAX: u64 = 16;

    /// Creates the kind of this family and width.
    ///
    /// # Errors
    /// [`LayoutError::NoSuchWidth`] unless the width lies between 1 and [`Kind::WIDEST_BYTES`].
    pub const fn new(family: Family, bytes: usize) -> Result<Self, LayoutError> {
        if bytes == 0 || bytes > Self::WIDEST_BYTES {
            return Err(LayoutError::NoSuchWidth { bytes, limit: Self::WIDEST_BYTES });
        }
        let external = match family {
            // Wide characters have two bytes in the portable format.
            Family::Character if bytes > 1 => 2,
            Family::Extended => 16,
            Family::ExtendedComplex => 32,
            _ => bytes,
        };
        Ok(Self { family, bytes: bytes as u8, external_bytes: external as u8 })
    }

    /// Changes the width in the portable format: C's `long` has four bytes there.
    ///
    /// # Errors
    /// [`LayoutError::NoSuchWidth`] unless the width lies between 1 and [`Kind::WIDEST_BYTES`].
    pub const fn with_external_bytes(self, bytes: usize) -> Result<Self, LayoutError> {
        if bytes == 0 || bytes > Self::WIDEST_BYTES {
            return Err(LayoutError::NoSuchWidth { bytes, limit: Self::WIDEST_BYTES });
        }
        Ok(Self { external_bytes: bytes as u8, ..self })
    }

    /// The family.
    pub const fn family(self) -> Family {
        self.family
    }

    /// The width of one element.
    pub const fn size_bytes(self) -> u64 {
        self.bytes as u64
    }

    /// The width of one element in the portable format.
    pub const fn external_bytes(self) -> u64 {
        self.external_bytes as u64
    }

    /// The alignment of an element in a structure, in bytes.
    pub const fn alignment_bytes(self) -> u64 {
        let number = self.size_bytes() / self.family.components() as u64;
        let alignment = 1 << number.trailing_zeros();
        if alignment > Self::ALIGNMENT_MAX { Self::ALIGNMENT_MAX } else { alignment }
    }

    /// Whether elements of the other kind have the same meaning and width on this machine, whatever their width in the
    /// portable format is.
    pub(crate) fn is_like(self, other: Self) -> bool {
        self.family == other.family && self.bytes == other.bytes
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

    #[test]
    fn alignments_are_those_of_structures_in_c() {
        let alignment = |family, bytes| Kind::new(family, bytes).unwrap().alignment_bytes();
        assert_eq!(alignment(Family::Signed, 4), 4);
        assert_eq!(alignment(Family::Complex, 16), 8);
        assert_eq!(alignment(Family::ExtendedComplex, 32), 16);
        assert_eq!(alignment(Family::Byte, 24), 8);
        assert_eq!(alignment(Family::Byte, 3), 1);
        assert_eq!(alignment(Family::Float, 64), 16);
    }
}
