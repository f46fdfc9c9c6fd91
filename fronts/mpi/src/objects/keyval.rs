//! Keys of attributes: how an attribute is copied with its object, and who is told when it goes.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use landeck_c_boundary::room;

use crate::abi::{
    COMM_DUP_FN, Callback, CopyFunction, DeleteFunction, ERR_KEYVAL, KEYVAL_INVALID, function,
};
use crate::mistake::Mistake;
use crate::objects::kind::Kind;

/// A key. It lives until it is freed and no object has an attribute of it any more.
#[derive(Debug)]
pub(crate) struct Keyval {
    /// The kind of objects whose attributes it names.
    pub(crate) kind: Kind,
    pub(crate) copying: Copying,
    pub(crate) deleting: Option<DeleteFunction>,
    extra_state: usize,
}

/// The treatment of an attribute when its object is duplicated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Copying {
    Never,
    Always,
    Asks(CopyFunction),
}

/// The program's keys are 1,024 and up; those below are the library's.
const FIRST: c_int = 1024;

/// The keys that are not freed.
static KEYS: RwLock<BTreeMap<c_int, Arc<Keyval>>> = RwLock::new(BTreeMap::new());
/// The number of the next key. None is given out twice: objects may have attributes of a key that was
/// freed.
static NEXT: AtomicI32 = AtomicI32::new(FIRST);

impl Keyval {
    /// A key with what the program says of it.
    ///
    /// # Safety
    /// The callbacks are of the types for this kind of objects, or constants.
    pub(crate) unsafe fn new(
        kind: Kind,
        copy: Callback,
        delete: Callback,
        extra_state: *mut c_void,
    ) -> Self {
        let copying = match copy.addr() {
            COMM_DUP_FN => Copying::Always,
            // SAFETY: as the caller says.
            _ => unsafe { function(copy) }.map_or(Copying::Never, Copying::Asks),
        };
        // SAFETY: as the caller says.
        let deleting = unsafe { function(delete) };
        Self { kind, copying, deleting, extra_state: extra_state.expose_provenance() }
    }

    pub(crate) fn extra_state(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.extra_state)
    }
}

/// Memory of a key, about.
const BYTES_PER_KEY: usize = 1 << 10;

/// Gives out the number of a key.
pub(crate) fn keep(keyval: Keyval) -> Result<c_int, Mistake> {
    room::for_many(KEYS.read().unwrap_or_else(PoisonError::into_inner).len(), BYTES_PER_KEY)?;
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
    let number = next.map_err(|_| {
        let all = c_int::MAX - FIRST;
        Mistake::new(
            ERR_KEYVAL,
            format_args!("all {all} keys were made; make them once, and keep them"),
        )
    })?;
    KEYS.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(keyval));
    Ok(number)
}

/// The key of a number, for attributes of this kind of objects.
pub(crate) fn get(argument: &str, number: c_int, kind: Kind) -> Result<Arc<Keyval>, Mistake> {
    let keys = KEYS.read().unwrap_or_else(PoisonError::into_inner);
    let found = keys.get(&number).filter(|keyval| keyval.kind == kind);
    found.cloned().ok_or_else(|| refuse(argument, number))
}

/// Frees a key.
pub(crate) fn free(argument: &str, number: c_int, kind: Kind) -> Result<(), Mistake> {
    get(argument, number, kind)?;
    let freed = KEYS.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
    freed.map(|_| ()).ok_or_else(|| refuse(argument, number))
}

#[cold]
fn refuse(argument: &str, number: c_int) -> Mistake {
    let what = match number {
        KEYVAL_INVALID => "MPI_KEYVAL_INVALID".to_owned(),
        1..FIRST => format!("{number}, a key of the library"),
        _ => format!("{number}, which is no key for this kind of objects, or was freed"),
    };
    Mistake::new(ERR_KEYVAL, format_args!("{argument} is {what}; pass one that was created for it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_number_until_it_is_freed() {
        // SAFETY: the callbacks are constants.
        let keyval = || unsafe {
            let (copy, delete) = (COMM_DUP_FN as Callback, std::ptr::null());
            Keyval::new(Kind::Communicator, copy, delete, std::ptr::null_mut())
        };
        let number = keep(keyval()).unwrap();
        assert!(number >= FIRST);
        let found = get("keyval", number, Kind::Communicator).unwrap();
        assert!(matches!(found.copying, Copying::Always) && found.deleting.is_none());
        assert!(get("keyval", number, Kind::Datatype).is_err());
        free("keyval", number, Kind::Communicator).unwrap();
        assert_eq!(get("keyval", number, Kind::Communicator).unwrap_err().code(), ERR_KEYVAL);
        assert_ne!(keep(keyval()).unwrap(), number);
        for number in [KEYVAL_INVALID, 501, FIRST - 1, c_int::MIN, c_int::MAX] {
            assert!(get("keyval", number, Kind::Communicator).is_err());
        }
    }
}
