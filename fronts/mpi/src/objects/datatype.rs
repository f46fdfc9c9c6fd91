//! Datatypes: what the items of a message look like.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex};

use landeck::arithmetic::Element;
use landeck::layout::{Kind as ElementKind, Layout};
use landeck_c_boundary::Table;

use crate::abi::{self, DATATYPES, Handle};
use crate::mistake::Mistake;
use crate::objects::attributes::Attributes;
use crate::objects::kind::Kind;

/// A datatype.
#[derive(Debug)]
pub(crate) struct Datatype {
    pub(crate) layout: Layout,
    /// The bytes of an item, without gaps.
    pub(crate) size_bytes: u64,
    /// Items lie one behind the other, without gaps, from the address that is given.
    pub(crate) is_dense: bool,
    /// What it is in a reduction.
    pub(crate) element: Option<Element>,
    /// Whether it may be used for messages.
    pub(crate) is_committed: AtomicBool,
    pub(crate) name: Mutex<String>,
    pub(crate) attributes: Attributes,
}

static TABLE: Table<Arc<Datatype>> = Table::new(Kind::Datatype as u8);
static PREDEFINED: LazyLock<Vec<Option<Arc<Datatype>>>> = LazyLock::new(|| {
    (FIRST..=LAST).map(|handle| Datatype::predefined(handle).map(Arc::new)).collect()
});

const FIRST: Handle = 0x200;
const LAST: Handle = 0x3ff;

impl Datatype {
    /// A datatype that is not committed yet.
    pub(crate) fn new(layout: Layout, element: Option<Element>) -> Self {
        let is_dense = layout.is_contiguous();
        Self {
            size_bytes: layout.size_bytes(),
            is_dense,
            layout,
            element,
            is_committed: AtomicBool::new(false),
            name: Mutex::default(),
            attributes: Attributes::default(),
        }
    }

    fn predefined(handle: Handle) -> Option<Self> {
        let element = element_of(handle)?;
        let name = DATATYPES.iter().find(|(own, _)| *own == handle)?.1;
        let layout = Layout::elements(ElementKind::BYTE, element.size_bytes() as u64).ok()?;
        let made = Self::new(layout, Some(element));
        Some(Self { is_committed: true.into(), name: Mutex::new(name.to_owned()), ..made })
    }
}

/// Gives out the handle of a datatype.
pub(crate) fn keep(datatype: Datatype) -> Handle {
    TABLE.insert(Arc::new(datatype)) as Handle
}

/// The datatype of a handle; borrowed for the call. What goes on after the call keeps a clone.
#[inline]
pub(crate) fn get(argument: &str, handle: Handle) -> Result<&'static Arc<Datatype>, Mistake> {
    if (FIRST..=LAST).contains(&handle) {
        return PREDEFINED[handle - FIRST]
            .as_ref()
            .ok_or_else(|| Kind::Datatype.refuse_unknown(argument, handle));
    }
    // SAFETY: a program frees an object when no other call of its uses it.
    unsafe { TABLE.get(handle as u64) }
        .map_err(|error| Kind::Datatype.refuse(argument, handle, error))
}

/// Takes a datatype of the program out of the table.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<Arc<Datatype>, Mistake> {
    if (FIRST..=LAST).contains(&handle) {
        return Err(Kind::Datatype.refuse_predefined(argument, handle));
    }
    let removed = TABLE.remove(handle as u64);
    removed.map_err(|error| Kind::Datatype.refuse(argument, handle, error))
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}

fn element_of(handle: Handle) -> Option<Element> {
    Some(match handle {
        abi::AINT | abi::COUNT | abi::OFFSET => Element::I64,
        abi::SHORT => Element::I16,
        abi::INT => Element::I32,
        abi::LONG | abi::LONG_LONG => Element::I64,
        abi::UNSIGNED_SHORT => Element::U16,
        abi::UNSIGNED => Element::U32,
        abi::UNSIGNED_LONG | abi::UNSIGNED_LONG_LONG => Element::U64,
        abi::FLOAT => Element::F32,
        abi::DOUBLE => Element::F64,
        abi::C_BOOL => Element::Bool,
        abi::INT8_T | abi::SIGNED_CHAR => Element::I8,
        abi::UINT8_T | abi::UNSIGNED_CHAR | abi::BYTE | abi::PACKED => Element::U8,
        abi::CHAR if std::ffi::c_char::MIN == 0 => Element::U8,
        abi::CHAR => Element::I8,
        abi::INT16_T => Element::I16,
        abi::UINT16_T => Element::U16,
        abi::INT32_T => Element::I32,
        abi::UINT32_T => Element::U32,
        abi::INT64_T => Element::I64,
        abi::UINT64_T => Element::U64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_fixed_handles() {
        for handle in 0x240..0x260 {
            if let Ok(datatype) = get("datatype", handle) {
                assert_eq!(datatype.size_bytes, 1 << ((handle >> 3) & 7), "{handle:#x}");
                assert!(datatype.is_dense);
            }
        }
        assert_eq!(get("datatype", abi::LONG).unwrap().size_bytes, 8);
        assert!(get("datatype", abi::DATATYPE_NULL).is_err());
        assert!(free("datatype", abi::INT).is_err());
    }
}
