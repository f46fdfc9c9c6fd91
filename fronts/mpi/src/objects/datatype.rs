//! Datatypes: what the items of a message look like.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use landeck::layout::Layout;
use landeck::raw::Moves;
use landeck::unstable::arithmetic::Element;
use landeck_c_boundary::{Lingering, Table};

use crate::abi::{DATATYPES, ERR_TYPE, Handle};
use crate::mistake::Mistake;
use crate::objects::attributes::Attributes;
use crate::objects::contents::{Contents, ContentsPart};
use crate::objects::kind::Kind;
use crate::objects::predefined;

/// A datatype.
#[derive(Debug)]
pub(crate) struct Datatype {
    pub(crate) layout: Layout,
    /// The bytes of an item, without gaps.
    pub(crate) size_bytes: u64,
    /// Items lie one behind the other, without gaps, from the address that is given.
    pub(crate) is_dense: bool,
    /// The element that it is in a reduction.
    pub(crate) element: Option<Element>,
    /// Whether it may be used for messages.
    pub(crate) is_committed: AtomicBool,
    pub(crate) name: Mutex<String>,
    pub(crate) attributes: Attributes,
    /// How it was made.
    pub(crate) contents: Arc<Contents>,
    /// Its handle, if the program cannot free it.
    pub(crate) permanent: OnceLock<Handle>,
    /// How its items are copied; found out when some are packed.
    pub(crate) moves: OnceLock<Moves>,
}

static TABLE: Table<Arc<Datatype>> = Table::new(Kind::Datatype as u8);
static LINGERING: Lingering = Lingering::new();
static PREDEFINED: LazyLock<Vec<Option<Arc<Datatype>>>> = LazyLock::new(|| {
    let predefined: Vec<_> =
        (FIRST..=LAST).map(|handle| Datatype::predefined(handle).map(Arc::new)).collect();
    for (datatype, bytes) in predefined.iter().zip(&PLAIN_BYTES) {
        let dense = datatype.as_ref().filter(|datatype| datatype.is_dense);
        let plain = dense.and_then(|dense| u8::try_from(dense.size_bytes).ok()).unwrap_or(0);
        bytes.store(plain, Ordering::Relaxed);
    }
    predefined
});
/// The bytes of an item of each predefined datatype that has no gaps. Zero for those of which more must
/// be known, and for all as long as nobody has asked for one.
static PLAIN_BYTES: [AtomicU8; LAST - FIRST + 1] = [const { AtomicU8::new(0) }; LAST - FIRST + 1];
/// Predefined datatypes without a name, by what asks for them.
static UNNAMED: LazyLock<Mutex<HashMap<Asked, Handle>>> = LazyLock::new(Mutex::default);

/// A constructor and its arguments.
type Asked = (c_int, [i64; 2]);

/// The predefined datatypes lie between these.
pub(crate) const FIRST: Handle = 0x200;
pub(crate) const LAST: Handle = 0x3ff;

impl Datatype {
    /// A datatype of the program, not committed yet.
    pub(crate) fn new(layout: Layout, contents: Contents) -> Self {
        Self::of_part(&ContentsPart {
            permanent: None,
            layout,
            element: None,
            contents: contents.into(),
        })
    }

    /// A datatype like one that another was made of, not committed yet.
    pub(crate) fn of_part(part: &ContentsPart) -> Self {
        Self {
            size_bytes: part.layout.size_bytes(),
            is_dense: part.layout.is_contiguous(),
            layout: part.layout.clone(),
            element: part.element,
            is_committed: AtomicBool::new(false),
            name: Mutex::default(),
            attributes: Attributes::default(),
            contents: Arc::clone(&part.contents),
            permanent: OnceLock::new(),
            moves: OnceLock::new(),
        }
    }

    /// Whether so many items are anything at all.
    #[inline]
    pub(crate) fn has_bytes(&self, count: u64) -> bool {
        count > 0 && self.size_bytes > 0
    }

    /// How its items are copied.
    #[inline(always)]
    pub(crate) fn moves(&self) -> &Moves {
        match self.moves.get() {
            Some(moves) => moves,
            None => self.find_moves(),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_moves(&self) -> &Moves {
        self.moves.get_or_init(|| Moves::of(&self.layout))
    }

    /// Itself, for what is made of it.
    pub(crate) fn part(&self) -> ContentsPart {
        ContentsPart {
            permanent: self.permanent.get().copied(),
            layout: self.layout.clone(),
            element: self.element,
            contents: Arc::clone(&self.contents),
        }
    }

    fn predefined(handle: Handle) -> Option<Self> {
        let name = DATATYPES.iter().find(|(own, _)| *own == handle)?.1;
        let made = Self::new(predefined::layout_of(handle)?, Contents::named());
        Some(Self {
            element: predefined::element_of_name(handle),
            is_committed: true.into(),
            name: Mutex::new(name.to_owned()),
            permanent: handle.into(),
            ..made
        })
    }
}

/// Gives out the handle of a datatype.
pub(crate) fn keep(datatype: Datatype) -> Result<Handle, Mistake> {
    TABLE.make_room()?;
    Ok(TABLE.insert(Arc::new(datatype)) as Handle)
}

/// The handle of the predefined datatype without a name that these arguments of a constructor ask
/// for; it is made the first time.
pub(crate) fn unnamed(
    arguments: Asked,
    make: impl FnOnce() -> Result<Datatype, Mistake>,
) -> Result<Handle, Mistake> {
    let mut unnamed = UNNAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = unnamed.get(&arguments) {
        return Ok(*handle);
    }
    TABLE.make_room()?;
    let made = Arc::new(Datatype { is_committed: true.into(), ..make()? });
    let handle = TABLE.insert(Arc::clone(&made)) as Handle;
    // It is new, so nobody has set it.
    let _ = made.permanent.set(handle);
    unnamed.insert(arguments, handle);
    Ok(handle)
}

/// The datatype of a handle; borrowed for the call. What goes on after the call keeps a clone.
#[inline(always)]
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

/// The datatype of a handle, if it leads to one that is committed now; nothing is said of a mistake.
#[inline(always)]
pub(crate) fn find_committed(handle: Handle) -> Option<&'static Arc<Datatype>> {
    let datatype = if (FIRST..=LAST).contains(&handle) {
        PREDEFINED[handle - FIRST].as_ref()?
    } else {
        // SAFETY: as in `get`.
        unsafe { TABLE.find(handle as u64) }?
    };
    datatype.is_committed.load(Ordering::Relaxed).then_some(datatype)
}

/// The bytes of an item, if the datatype is a predefined one without gaps; zero if it is not, or not
/// known to be.
#[inline(always)]
pub(crate) fn plain_bytes(handle: Handle) -> usize {
    let place = PLAIN_BYTES.get(handle.wrapping_sub(FIRST));
    place.map_or(0, |bytes| bytes.load(Ordering::Relaxed).into())
}

/// Returns the datatype of a handle for messages: it must be committed.
#[inline]
pub(crate) fn get_committed(
    argument: &str,
    handle: Handle,
) -> Result<&'static Arc<Datatype>, Mistake> {
    let datatype = get(argument, handle)?;
    if datatype.is_committed.load(Ordering::Relaxed) {
        return Ok(datatype);
    }
    Err(not_committed(argument, handle))
}

#[cold]
fn not_committed(argument: &str, handle: Handle) -> Mistake {
    Mistake::new(
        ERR_TYPE,
        format_args!(
            "{argument} is {handle:#x}, a datatype that is not committed; call MPI_Type_commit first"
        ),
    )
}

/// A datatype that the program may free.
pub(crate) fn get_own(argument: &str, handle: Handle) -> Result<&'static Arc<Datatype>, Mistake> {
    let datatype = get(argument, handle)?;
    if datatype.permanent.get().is_some() {
        return Err(Kind::Datatype.refuse_predefined(argument, handle));
    }
    Ok(datatype)
}

/// Frees a datatype of the program. Its handle is stale when no operation needs it any more: operations of
/// the program are told of it until then.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<(), Mistake> {
    get_own(argument, handle)?;
    let freed = LINGERING.free(&TABLE, handle as u64);
    freed.map_err(|error| Kind::Datatype.refuse(argument, handle, error))
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi;

    #[test]
    fn plain_datatypes_are_those_without_gaps() {
        for handle in FIRST - 1..=LAST + 1 {
            let dense = get("datatype", handle).ok().filter(|datatype| datatype.is_dense);
            let bytes = dense.map_or(0, |dense| dense.size_bytes as usize);
            assert_eq!(plain_bytes(handle), bytes, "{handle:#x}");
        }
        assert!(plain_bytes(abi::DOUBLE) == 8 && plain_bytes(abi::DOUBLE_INT) == 0);
    }

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
