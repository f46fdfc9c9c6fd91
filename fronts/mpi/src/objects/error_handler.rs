//! Error handlers: what happens when a call goes wrong.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use landeck::unstable::host::say::quoted;
use landeck_c_boundary::{HandleError, Table};

use crate::abi::{ERR_OTHER, ERRORS_ABORT, ERRORS_ARE_FATAL, ERRORS_RETURN, ErrorFunction, Handle};
use crate::mistake::Mistake;
use crate::objects::kind::Kind;

/// The reaction to a mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reaction {
    /// The whole job ends.
    Fatal,
    /// The processes of the communicator end; here that is the whole job.
    Abort,
    /// The function returns the code.
    Return,
    /// The program is asked.
    Call(ErrorFunction),
}

/// The program's own handler. It lives until its handles are freed and no object has it any more.
struct Own {
    function: ErrorFunction,
    /// The kind of objects that it is for.
    kind: Kind,
    uses: AtomicU32,
}

static OWN: Table<Own> = Table::new(Kind::ErrorHandler as u8);

/// Makes a handler of a function of the program.
pub(crate) fn create(function: ErrorFunction, kind: Kind) -> Result<Handle, Mistake> {
    OWN.make_room()?;
    Ok(OWN.insert(Own { function, kind, uses: AtomicU32::new(1) }) as Handle)
}

/// Frees one handle of a handler; objects that have it keep it. Programs free what they got from
/// MPI_Comm_get_errhandler, which may be a predefined one: that stays.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<(), Mistake> {
    if is_predefined(handle) {
        return Ok(());
    }
    release(handle).map_err(|error| Kind::ErrorHandler.refuse(argument, handle, error))
}

/// Returns the reaction of a handler for objects of a kind.
pub(crate) fn reaction(argument: &str, handle: Handle, kind: Kind) -> Result<Reaction, Mistake> {
    match handle {
        ERRORS_ARE_FATAL => Ok(Reaction::Fatal),
        ERRORS_ABORT => Ok(Reaction::Abort),
        ERRORS_RETURN => Ok(Reaction::Return),
        _ => {
            // SAFETY: who gives this handle has it, or an object has it, during this call.
            let own = unsafe { OWN.get(handle as u64) }
                .map_err(|error| Kind::ErrorHandler.refuse(argument, handle, error))?;
            if own.kind != kind {
                return Err(Mistake::new(
                    crate::abi::ERR_ARG,
                    format_args!(
                        "{argument} is {handle:#x}, an error handler that was made for another \
                         kind of objects"
                    ),
                ));
            }
            Ok(Reaction::Call(own.function))
        }
    }
}

/// The handler that there is at first: before MPI_Init, after MPI_Finalize, and on the predefined
/// communicators. Whoever starts the program may choose one of those that are predefined.
pub(crate) fn initial() -> Result<Handle, Mistake> {
    static INITIAL: LazyLock<Result<Handle, Mistake>> =
        LazyLock::new(|| initial_of(std::env::var_os(INITIAL_VARIABLE)));
    INITIAL.clone()
}

/// Returns the reaction to mistakes before MPI_Init and after MPI_Finalize.
pub(crate) fn initial_reaction() -> Reaction {
    initial()
        .and_then(|handle| reaction("errhandler", handle, Kind::Communicator))
        .unwrap_or(Reaction::Fatal)
}

/// The name of the handler that there is at first.
pub(crate) fn initial_name() -> Option<&'static str> {
    let initial = initial().ok()?;
    NAMES.iter().find(|(handle, _)| *handle == initial).map(|(_, name)| *name)
}

/// The variable by which a launcher says which handler there is at first.
const INITIAL_VARIABLE: &str = "LANDECK_MPI_INITIAL_ERRHANDLER";
/// How launchers and MPI_INFO_ENV call the predefined handlers.
const NAMES: [(Handle, &str); 3] = [
    (ERRORS_ARE_FATAL, "mpi_errors_are_fatal"),
    (ERRORS_ABORT, "mpi_errors_abort"),
    (ERRORS_RETURN, "mpi_errors_return"),
];

fn initial_of(value: Option<OsString>) -> Result<Handle, Mistake> {
    let Some(value) = value else { return Ok(ERRORS_ARE_FATAL) };
    let found = NAMES.iter().find(|(_, name)| value == *name);
    found.map(|(handle, _)| *handle).ok_or_else(|| {
        let names = NAMES.map(|(_, name)| name).join(", ");
        let value = quoted(&value.to_string_lossy());
        let text = format!("{INITIAL_VARIABLE} is {value}; set it to one of {names}");
        Mistake::new(ERR_OTHER, text)
    })
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &OWN
}

fn is_predefined(handle: Handle) -> bool {
    matches!(handle, ERRORS_ARE_FATAL | ERRORS_ABORT | ERRORS_RETURN)
}

fn retain(handle: Handle) -> Result<(), HandleError> {
    // SAFETY: as in `reaction`.
    unsafe { OWN.get(handle as u64) }?.uses.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn release(handle: Handle) -> Result<(), HandleError> {
    // SAFETY: as in `reaction`; the last use, which ends here, is the only one that removes it.
    if unsafe { OWN.get(handle as u64) }?.uses.fetch_sub(1, Ordering::AcqRel) == 1 {
        OWN.remove(handle as u64)?;
    }
    Ok(())
}

/// The place in an object where its error handler is.
#[derive(Debug)]
pub(crate) struct Slot {
    kind: Kind,
    handle: Mutex<Handle>,
}

impl Slot {
    /// A place for the handler of an object, at first a predefined one.
    pub(crate) fn new(kind: Kind, predefined: Handle) -> Self {
        Self { kind, handle: Mutex::new(predefined) }
    }

    /// Returns this handler for a child object, which inherits it.
    pub(crate) fn inherit(&self) -> Self {
        let handle = self.handle();
        Self { kind: self.kind, handle: Mutex::new(handle) }
    }

    /// Another handler from now on.
    pub(crate) fn set(&self, argument: &str, handle: Handle) -> Result<(), Mistake> {
        reaction(argument, handle, self.kind)?;
        let mut place = self.lock();
        if !is_predefined(handle) {
            retain(handle).map_err(|error| Kind::ErrorHandler.refuse(argument, handle, error))?;
        }
        Self::leave(std::mem::replace(&mut *place, handle));
        Ok(())
    }

    /// The handler, as one more handle to it.
    pub(crate) fn handle(&self) -> Handle {
        let place = self.lock();
        if !is_predefined(*place) {
            // It is there: the place has it.
            let _ = retain(*place);
        }
        *place
    }

    /// Returns the reaction of the handler.
    pub(crate) fn reaction(&self) -> Reaction {
        reaction("errhandler", *self.lock(), self.kind).unwrap_or(Reaction::Fatal)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Handle> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(handle: Handle) {
        if !is_predefined(handle) {
            // It is there: the place has it.
            let _ = release(handle);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        Self::leave(*self.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_int;

    unsafe extern "C-unwind" fn nothing(_: *mut Handle, _: *mut c_int) {}

    fn own() -> Handle {
        // SAFETY: the function is never called, so what it takes besides does not matter.
        let function = unsafe {
            std::mem::transmute::<unsafe extern "C-unwind" fn(*mut Handle, *mut c_int), ErrorFunction>(
                nothing,
            )
        };
        create(function, Kind::Communicator).unwrap()
    }

    #[test]
    fn a_handler_lives_as_long_as_an_object_has_it() {
        let handler = own();
        let slot = Slot::new(Kind::Communicator, ERRORS_RETURN);
        slot.set("errhandler", handler).unwrap();
        free("errhandler", handler).unwrap();
        let child = slot.inherit();
        drop(slot);
        assert!(matches!(child.reaction(), Reaction::Call(_)));
        assert_eq!(child.handle(), handler);
        drop(child);
        free("errhandler", handler).unwrap();
        assert!(free("errhandler", handler).is_err());
    }

    #[test]
    fn the_first_handler_has_a_name() {
        assert_eq!(initial_of(None).unwrap(), ERRORS_ARE_FATAL);
        for (handle, name) in NAMES {
            assert_eq!(initial_of(Some(name.into())).unwrap(), handle);
        }
        for name in ["", "MPI_ERRORS_RETURN", "return"] {
            let mistake = initial_of(Some(name.into())).unwrap_err();
            assert!(mistake.text().contains("mpi_errors_return"), "{mistake}");
        }
    }

    #[test]
    fn a_handler_is_for_objects_of_its_kind() {
        let handler = own();
        assert!(Slot::new(Kind::Session, ERRORS_RETURN).set("errhandler", handler).is_err());
        free("errhandler", handler).unwrap();
        free("errhandler", ERRORS_RETURN).unwrap();
        assert!(free("errhandler", crate::abi::ERRHANDLER_NULL).is_err());
    }
}
