//! The operations that combine two elements into one.

use std::fmt;

use crate::Element;

/// An operation that combines two elements into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Addition; integers wrap.
    Sum,
    /// Multiplication; integers wrap.
    Product,
    /// The smaller one; the left one if either is not a number or both are equal.
    Minimum,
    /// The larger one; the left one if either is not a number or both are equal.
    Maximum,
    /// 1 if both are true, else 0.
    LogicalAnd,
    /// 1 if at least one is true, else 0.
    LogicalOr,
    /// 1 if exactly one is true, else 0.
    LogicalXor,
    /// Bits that are set in both.
    BitAnd,
    /// Bits that are set in at least one.
    BitOr,
    /// Bits that are set in exactly one.
    BitXor,
    /// For values with places: the smaller value; if both are equal, the smaller place.
    MinimumAt,
    /// For values with places: the larger value; if both are equal, the smaller place.
    MaximumAt,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 12] = [
        Self::Sum,
        Self::Product,
        Self::Minimum,
        Self::Maximum,
        Self::LogicalAnd,
        Self::LogicalOr,
        Self::LogicalXor,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
        Self::MinimumAt,
        Self::MaximumAt,
    ];

    /// Whether the operation is defined for elements of this type.
    pub const fn fits(self, element: Element) -> bool {
        use crate::element::Family;
        let family = element.family();
        match self {
            Self::Sum | Self::Product => {
                matches!(family, Family::Integer | Family::Float | Family::Complex)
            }
            Self::Minimum | Self::Maximum => matches!(family, Family::Integer | Family::Float),
            Self::LogicalAnd | Self::LogicalOr | Self::LogicalXor => {
                matches!(family, Family::Integer | Family::Truth)
            }
            Self::BitAnd | Self::BitOr | Self::BitXor => {
                matches!(family, Family::Integer | Family::Bits)
            }
            Self::MinimumAt | Self::MaximumAt => matches!(family, Family::Placed),
        }
    }

    /// Whether the operation works on truth values.
    pub const fn is_logical(self) -> bool {
        matches!(self, Self::LogicalAnd | Self::LogicalOr | Self::LogicalXor)
    }

    /// The name of the operation in plain words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::LogicalAnd => "logical and",
            Self::LogicalOr => "logical or",
            Self::LogicalXor => "logical exclusive or",
            Self::BitAnd => "bitwise and",
            Self::BitOr => "bitwise or",
            Self::BitXor => "bitwise exclusive or",
            Self::MinimumAt => "minimum with its place",
            Self::MaximumAt => "maximum with its place",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
