//! The types of elements that can be reduced.

use std::fmt;

/// The type of one element, in this machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A truth value in one byte: everything except zero is true.
    Bool,
    /// A signed integer of 8 bits.
    I8,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// An unsigned integer of 8 bits.
    U8,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A floating-point number of 16 bits.
    F16,
    /// A floating-point number of 32 bits.
    F32,
    /// A floating-point number of 64 bits.
    F64,
    /// Eight bits that are not a number.
    Byte,
    /// A truth value in 16 bits.
    Bool16,
    /// A truth value in 32 bits.
    Bool32,
    /// A truth value in 64 bits.
    Bool64,
    /// A truth value in 128 bits.
    Bool128,
    /// A signed integer of 128 bits.
    I128,
    /// The extended floating-point number of x86 processors: 80 bits in 16 bytes. On other processors no operation fits
    /// it.
    F80,
    /// A complex number of two [`Element::F16`].
    ComplexF16,
    /// A complex number of two [`Element::F32`].
    ComplexF32,
    /// A complex number of two [`Element::F64`].
    ComplexF64,
    /// A complex number of two [`Element::F80`].
    ComplexF80,
    /// A value, followed without a gap by the place where it was found.
    Placed(Value, Place),
}

/// The type of the value of an element with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A signed integer of 8 bits.
    I8,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// An unsigned integer of 8 bits.
    U8,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A floating-point number of 32 bits.
    F32,
    /// A floating-point number of 64 bits.
    F64,
    /// The extended number of [`Element::F80`].
    F80,
}

/// The type of the place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// The type of the value.
    Same,
}

/// The class of an element, which decides what operations fit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Integer,
    Float,
    Complex,
    Truth,
    Bits,
    Placed,
    /// A type that this processor does not have.
    Absent,
}

/// Whether this processor has numbers of 80 bits.
const HAS_F80: bool = cfg!(target_arch = "x86_64");

impl Element {
    /// The numbers and truth values for which every processor has registers.
    pub const ALL: [Self; 11] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F32,
        Self::F64,
    ];

    /// The width of one element, in bytes.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 | Self::Byte => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bool16 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::Bool32 | Self::ComplexF16 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Bool64 | Self::ComplexF32 => 8,
            Self::Bool128 | Self::I128 | Self::F80 | Self::ComplexF64 => 16,
            Self::ComplexF80 => 32,
            Self::Placed(value, place) => {
                value.size_bytes()
                    + match place {
                        Place::I32 => 4,
                        Place::I64 => 8,
                        Place::Same => value.size_bytes(),
                    }
            }
        }
    }

    pub(crate) const fn family(self) -> Family {
        match self {
            Self::F80 | Self::ComplexF80 | Self::Placed(Value::F80, _) if !HAS_F80 => {
                Family::Absent
            }
            Self::Bool | Self::Bool16 | Self::Bool32 | Self::Bool64 | Self::Bool128 => {
                Family::Truth
            }
            Self::Byte => Family::Bits,
            Self::F16 | Self::F32 | Self::F64 | Self::F80 => Family::Float,
            Self::ComplexF16 | Self::ComplexF32 | Self::ComplexF64 | Self::ComplexF80 => {
                Family::Complex
            }
            Self::Placed(..) => Family::Placed,
            _ => Family::Integer,
        }
    }

    /// The name of the type: Rust's, if Rust has the type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Byte => "byte",
            Self::Bool16 => "bool of 16 bits",
            Self::Bool32 => "bool of 32 bits",
            Self::Bool64 => "bool of 64 bits",
            Self::Bool128 => "bool of 128 bits",
            Self::I128 => "i128",
            Self::F80 => "f80",
            Self::ComplexF16 => "complex f16",
            Self::ComplexF32 => "complex f32",
            Self::ComplexF64 => "complex f64",
            Self::ComplexF80 => "complex f80",
            Self::Placed(..) => "value with its place",
        }
    }
}

impl Value {
    const fn size_bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
            Self::F80 => 16,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
