//! The predefined datatypes: what their elements are.

use std::ffi::{c_char, c_int};

use landeck::layout::{Family, Kind, Layout, Member};
use landeck::unstable::arithmetic::{Element, Place, Value};

use crate::abi::{self, Handle};

/// The pairs that have names: the pair, its value, its index.
pub(crate) const PAIRS: [(Handle, Handle, Handle); 9] = [
    (abi::FLOAT_INT, abi::FLOAT, abi::INT),
    (abi::DOUBLE_INT, abi::DOUBLE, abi::INT),
    (abi::LONG_INT, abi::LONG, abi::INT),
    (abi::TWO_INT, abi::INT, abi::INT),
    (abi::SHORT_INT, abi::SHORT, abi::INT),
    (abi::LONG_DOUBLE_INT, abi::LONG_DOUBLE, abi::INT),
    (abi::TWO_REAL, abi::REAL, abi::REAL),
    (abi::TWO_DOUBLE_PRECISION, abi::DOUBLE_PRECISION, abi::DOUBLE_PRECISION),
    (abi::TWO_INTEGER, abi::INTEGER, abi::INTEGER),
];

/// The datatypes that MPI_Type_match_size finds: class, size, datatype.
pub(crate) const SIZED: [(c_int, c_int, Handle); 18] = [
    (abi::TYPECLASS_INTEGER, 1, abi::INTEGER1),
    (abi::TYPECLASS_INTEGER, 2, abi::INTEGER2),
    (abi::TYPECLASS_INTEGER, 4, abi::INTEGER4),
    (abi::TYPECLASS_INTEGER, 8, abi::INTEGER8),
    (abi::TYPECLASS_INTEGER, 16, abi::INTEGER16),
    (abi::TYPECLASS_REAL, 2, abi::REAL2),
    (abi::TYPECLASS_REAL, 4, abi::REAL4),
    (abi::TYPECLASS_REAL, 8, abi::REAL8),
    (abi::TYPECLASS_REAL, 16, abi::REAL16),
    (abi::TYPECLASS_COMPLEX, 4, abi::COMPLEX4),
    (abi::TYPECLASS_COMPLEX, 8, abi::COMPLEX8),
    (abi::TYPECLASS_COMPLEX, 16, abi::COMPLEX16),
    (abi::TYPECLASS_COMPLEX, 32, abi::COMPLEX32),
    (abi::MPIX_TYPECLASS_LOGICAL, 1, abi::LOGICAL1),
    (abi::MPIX_TYPECLASS_LOGICAL, 2, abi::LOGICAL2),
    (abi::MPIX_TYPECLASS_LOGICAL, 4, abi::LOGICAL4),
    (abi::MPIX_TYPECLASS_LOGICAL, 8, abi::LOGICAL8),
    (abi::MPIX_TYPECLASS_LOGICAL, 16, abi::LOGICAL16),
];

/// The size of `long` in the portable format.
const EXTERNAL_LONG_BYTES: usize = 4;

/// The value and the index of a pair that has a name.
pub(crate) fn pair_of(handle: Handle) -> Option<[Kind; 2]> {
    let (_, value, index) = PAIRS.iter().find(|(pair, ..)| *pair == handle)?;
    Some([kind_of(*value)?, kind_of(*index)?])
}

/// A value and its index, as a structure of C has them.
pub(crate) fn pair([value, index]: [Kind; 2]) -> Option<Layout> {
    let offset = value.size_bytes().next_multiple_of(index.alignment_bytes()) as i64;
    let member = |offset, kind| Member { offset, count: 1, layout: Layout::element(kind) };
    Layout::structure(&[member(0, value), member(offset, index)]).ok()
}

/// The layout of a predefined datatype.
pub(crate) fn layout_of(handle: Handle) -> Option<Layout> {
    match pair_of(handle) {
        Some(kinds) => pair(kinds),
        None => kind_of(handle).map(Layout::element),
    }
}

/// The elements of a predefined datatype that is no pair.
pub(crate) fn kind_of(handle: Handle) -> Option<Kind> {
    let (family, bytes) = match handle {
        abi::BYTE => return Some(Kind::BYTE),
        abi::PACKED => return Some(Kind::PACKED),
        abi::LONG | abi::UNSIGNED_LONG => {
            let family = if handle == abi::LONG { Family::Signed } else { Family::Unsigned };
            let long = Kind::new(family, size_of::<std::ffi::c_long>()).ok()?;
            return long.with_external_bytes(EXTERNAL_LONG_BYTES).ok();
        }
        abi::SHORT..=abi::UNSIGNED_LONG_LONG => integer_of_c(handle)?,
        0x240..=0x25f => sized_of_c(handle)?,
        0x2c0..=0x2eb => sized_of_fortran(handle)?,
        _ => other(handle)?,
    };
    Kind::new(family, bytes).ok()
}

/// Returns the element that a predefined datatype is in a reduction.
pub(crate) fn element_of_name(handle: Handle) -> Option<Element> {
    match pair_of(handle) {
        Some(kinds) => element_of_pair(kinds),
        None if handle == abi::CHAR => Some(CHAR),
        None => kind_of(handle).and_then(element_of),
    }
}

/// The standard has no reductions of MPI_CHAR. Other libraries compute it as the number that `char` of C is,
/// and programs count on that.
const CHAR: Element = if c_char::MIN == 0 { Element::U8 } else { Element::I8 };

/// Returns the element of a kind in a reduction, if the standard has one: it has none for
/// characters and for what was packed.
pub(crate) fn element_of(kind: Kind) -> Option<Element> {
    Some(match (kind.family(), kind.size_bytes()) {
        (Family::Byte, 1) => Element::Byte,
        (Family::Unsigned, 1) => Element::U8,
        (Family::Unsigned, 2) => Element::U16,
        (Family::Unsigned, 4) => Element::U32,
        (Family::Unsigned, 8) => Element::U64,
        (Family::Signed, 1) => Element::I8,
        (Family::Signed, 2) => Element::I16,
        (Family::Signed, 4) => Element::I32,
        (Family::Signed, 8) => Element::I64,
        (Family::Signed, 16) => Element::I128,
        (Family::Logical, 1) => Element::Bool,
        (Family::Logical, 2) => Element::Bool16,
        (Family::Logical, 4) => Element::Bool32,
        (Family::Logical, 8) => Element::Bool64,
        (Family::Logical, 16) => Element::Bool128,
        (Family::Float, 2) => Element::F16,
        (Family::Float, 4) => Element::F32,
        (Family::Float, 8) => Element::F64,
        (Family::Extended, 16) => Element::F80,
        (Family::Complex, 4) => Element::ComplexF16,
        (Family::Complex, 8) => Element::ComplexF32,
        (Family::Complex, 16) => Element::ComplexF64,
        (Family::ExtendedComplex, 32) => Element::ComplexF80,
        _ => return None,
    })
}

/// Returns the element that a value and its index are in a reduction.
pub(crate) fn element_of_pair([value, index]: [Kind; 2]) -> Option<Element> {
    let place = match element_of(index)? {
        Element::I32 => Place::I32,
        Element::I64 => Place::I64,
        other if other == element_of(value)? => Place::Same,
        _ => return None,
    };
    let value = match element_of(value)? {
        Element::I8 => Value::I8,
        Element::I16 => Value::I16,
        Element::I32 => Value::I32,
        Element::I64 => Value::I64,
        Element::U8 => Value::U8,
        Element::U16 => Value::U16,
        Element::U32 => Value::U32,
        Element::U64 => Value::U64,
        Element::F32 => Value::F32,
        Element::F64 => Value::F64,
        Element::F80 => Value::F80,
        _ => return None,
    };
    Some(Element::Placed(value, place))
}

fn integer_of_c(handle: Handle) -> Option<(Family, usize)> {
    Some(match handle {
        abi::SHORT => (Family::Signed, 2),
        abi::INT => (Family::Signed, 4),
        abi::LONG_LONG => (Family::Signed, 8),
        abi::UNSIGNED_SHORT => (Family::Unsigned, 2),
        abi::UNSIGNED => (Family::Unsigned, 4),
        abi::UNSIGNED_LONG_LONG => (Family::Unsigned, 8),
        _ => return None,
    })
}

/// The width of a datatype that says it in its handle.
fn width_of(handle: Handle) -> usize {
    1 << ((handle >> 3) & 7)
}

fn sized_of_c(handle: Handle) -> Option<(Family, usize)> {
    let family = match handle {
        abi::CHAR => Family::Character,
        abi::INT8_T | abi::SIGNED_CHAR | abi::INT16_T | abi::INT32_T | abi::INT64_T => {
            Family::Signed
        }
        abi::UINT8_T | abi::UNSIGNED_CHAR | abi::UINT16_T | abi::UINT32_T | abi::UINT64_T => {
            Family::Unsigned
        }
        _ => return None,
    };
    Some((family, width_of(handle)))
}

/// The low bits of such a handle say the family.
fn sized_of_fortran(handle: Handle) -> Option<(Family, usize)> {
    let has_name = abi::DATATYPES.iter().any(|(named, _)| *named == handle);
    let family = [Family::Logical, Family::Signed, Family::Float, Family::Complex];
    let family = *family.get(handle & 7)?;
    has_name.then_some((family, width_of(handle)))
}

fn other(handle: Handle) -> Option<(Family, usize)> {
    Some(match handle {
        abi::AINT | abi::COUNT | abi::OFFSET => (Family::Signed, 8),
        abi::FLOAT | abi::REAL => (Family::Float, 4),
        abi::DOUBLE | abi::DOUBLE_PRECISION => (Family::Float, 8),
        abi::LONG_DOUBLE => (LONG_DOUBLE, 16),
        abi::C_FLOAT_COMPLEX | abi::CXX_FLOAT_COMPLEX | abi::COMPLEX => (Family::Complex, 8),
        abi::C_DOUBLE_COMPLEX | abi::CXX_DOUBLE_COMPLEX | abi::DOUBLE_COMPLEX => {
            (Family::Complex, 16)
        }
        abi::C_LONG_DOUBLE_COMPLEX | abi::CXX_LONG_DOUBLE_COMPLEX => (LONG_DOUBLE_COMPLEX, 32),
        abi::LOGICAL => (Family::Logical, 4),
        abi::INTEGER => (Family::Signed, 4),
        abi::CHARACTER => (Family::Character, 1),
        abi::C_BOOL | abi::CXX_BOOL => (Family::Logical, 1),
        abi::WCHAR => (Family::Character, 4),
        _ => return None,
    })
}

#[cfg(target_arch = "x86_64")]
const LONG_DOUBLE: Family = Family::Extended;
#[cfg(target_arch = "x86_64")]
const LONG_DOUBLE_COMPLEX: Family = Family::ExtendedComplex;
#[cfg(not(target_arch = "x86_64"))]
const LONG_DOUBLE: Family = Family::Float;
#[cfg(not(target_arch = "x86_64"))]
const LONG_DOUBLE_COMPLEX: Family = Family::Complex;

#[cfg(test)]
mod tests {
    use landeck::layout::Bounds;

    use super::*;

    #[test]
    fn every_name_has_a_layout() {
        for (handle, name) in abi::DATATYPES {
            assert_eq!(layout_of(handle).is_some(), handle != abi::DATATYPE_NULL, "{name}");
        }
        let known = (0..0x400).filter(|handle| layout_of(*handle).is_some()).count();
        assert_eq!(known, abi::DATATYPES.len() - 1);
    }

    #[test]
    fn pairs_are_structures_of_c() {
        let shape = |handle| {
            let layout = layout_of(handle).unwrap();
            (layout.size_bytes(), layout.bounds())
        };
        let bounds = |upper| Bounds { lower: 0, upper };
        assert_eq!(shape(abi::DOUBLE_INT), (12, bounds(16)));
        assert_eq!(shape(abi::SHORT_INT), (6, bounds(8)));
        assert_eq!(shape(abi::LONG_DOUBLE_INT), (20, bounds(32)));
        assert_eq!(shape(abi::TWO_INT), (8, bounds(8)));
    }

    #[test]
    fn sizes_are_matched() {
        for (class, size, handle) in SIZED {
            assert_eq!(layout_of(handle).unwrap().size_bytes(), size as u64, "{class} {size}");
        }
    }
}
