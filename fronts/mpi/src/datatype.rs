//! The predefined datatypes of C.

use std::ffi::{c_int, c_long, c_longlong, c_short, c_uint, c_ulong, c_ulonglong, c_ushort};

use landeck::arithmetic::Element;

use crate::abi::Handle;

/// A datatype: elements of one kind, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datatype {
    /// What the program calls it.
    pub(crate) handle: Handle,
    /// The width of one.
    pub(crate) size_bytes: usize,
    /// What it is in a reduction.
    pub(crate) element: Element,
}

impl Datatype {
    /// The datatype of a handle.
    pub(crate) fn of(handle: Handle) -> Option<Self> {
        let element = element_of(handle)?;
        Some(Self { handle, size_bytes: element.size_bytes(), element })
    }
}

fn element_of(handle: Handle) -> Option<Element> {
    Some(match handle {
        // MPI_AINT, MPI_COUNT, MPI_OFFSET
        0x201..=0x203 => Element::I64,
        // MPI_SHORT ... MPI_UNSIGNED_LONG_LONG
        0x208 => signed::<c_short>()?,
        0x209 => signed::<c_int>()?,
        0x20a => signed::<c_long>()?,
        0x20b => signed::<c_longlong>()?,
        0x20c => unsigned::<c_ushort>()?,
        0x20d => unsigned::<c_uint>()?,
        0x20e => unsigned::<c_ulong>()?,
        0x20f => unsigned::<c_ulonglong>()?,
        // MPI_FLOAT, MPI_DOUBLE, MPI_C_BOOL
        0x210 => Element::F32,
        0x214 => Element::F64,
        0x238 => Element::Bool,
        // MPI_INT8_T, MPI_UINT8_T, MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE
        0x240 | 0x244 => Element::I8,
        0x241 | 0x245 | 0x247 => Element::U8,
        0x243 if std::ffi::c_char::MIN == 0 => Element::U8,
        0x243 => Element::I8,
        // MPI_INT16_T ... MPI_UINT64_T
        0x248 => Element::I16,
        0x249 => Element::U16,
        0x250 => Element::I32,
        0x251 => Element::U32,
        0x258 => Element::I64,
        0x259 => Element::U64,
        _ => return None,
    })
}

fn signed<T>() -> Option<Element> {
    match size_of::<T>() {
        2 => Some(Element::I16),
        4 => Some(Element::I32),
        8 => Some(Element::I64),
        _ => None,
    }
}

fn unsigned<T>() -> Option<Element> {
    match size_of::<T>() {
        2 => Some(Element::U16),
        4 => Some(Element::U32),
        8 => Some(Element::U64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_fixed_handles() {
        for handle in 0x240..0x260 {
            if let Some(datatype) = Datatype::of(handle) {
                assert_eq!(datatype.size_bytes, 1 << ((handle >> 3) & 7), "{handle:#x}");
            }
        }
        assert_eq!(Datatype::of(0x20a).unwrap().size_bytes, size_of::<c_long>());
        assert_eq!(Datatype::of(0x200), None);
    }
}
