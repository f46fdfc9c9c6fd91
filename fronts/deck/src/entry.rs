//! How every function is entered and left: guarded, and with its mistake kept for who asks.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use landeck::unstable::memory::GateError;
use landeck_c_boundary::guarded;

use crate::errors;
use crate::mistake::Mistake;

/// Defines a function whose body gives a result: `Ok` or a mistake.
macro_rules! shell {
    (fn $name:ident ($($argument:ident: $type:ty),*) => $body:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
            #[allow(unused_unsafe, reason = "some bodies are safe")]
            // SAFETY: the caller of a C function keeps what `deck.h` says of its arguments; what
            // can be checked is checked in the body.
            $crate::entry::entered(stringify!($name), || unsafe { $body })
        }
    };
}
pub(crate) use shell;

/// Defines a function that a child made by fork may call as well.
macro_rules! shell_of_all {
    (fn $name:ident ($($argument:ident: $type:ty),*) => $body:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: as above.
            $crate::entry::entered_by_all(stringify!($name), || unsafe { $body })
        }
    };
}
pub(crate) use shell_of_all;

/// Defines a function that gives a value and has no mistakes.
macro_rules! value {
    (fn $name:ident ($($argument:ident: $type:ty),*) -> $returns:ty => $body:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $returns {
            let nothing = <$returns as $crate::entry::Value>::NOTHING;
            #[allow(unused_unsafe, reason = "some bodies are safe")]
            // SAFETY: the caller of a C function keeps what `deck.h` says of its arguments.
            landeck_c_boundary::guarded(stringify!($name), nothing, || unsafe { $body })
        }
    };
}
pub(crate) use value;

/// A result of functions that cannot fail.
pub(crate) trait Value {
    /// The result after a fault of this library.
    const NOTHING: Self;
}

impl Value for *const c_char {
    const NOTHING: Self = std::ptr::null();
}

impl Value for () {
    const NOTHING: Self = ();
}

/// The last call of a thread that failed, and its error.
struct Last {
    function: &'static str,
    mistake: Option<Mistake>,
    /// The error in words, once the program has asked for it.
    text: Option<CString>,
}

thread_local! {
    static LAST: RefCell<Last> =
        const { RefCell::new(Last { function: "", mistake: None, text: None }) };
}

/// Runs the body of a function. A child made by fork is turned away: whatever it did would pass for its
/// parent's.
#[inline(always)]
pub(crate) fn entered(function: &'static str, body: impl FnOnce() -> Result<(), Mistake>) -> c_int {
    entered_by_all(function, || match GateError::refuse_children() {
        Ok(()) => body(),
        Err(refused) => Err(landeck::Error::from(refused).into()),
    })
}

/// Runs the body of a function, also in a child made by fork.
#[inline(always)]
pub(crate) fn entered_by_all(
    function: &'static str,
    body: impl FnOnce() -> Result<(), Mistake>,
) -> c_int {
    guarded(function, errors::FAULT, || match body() {
        Ok(()) => errors::OK,
        Err(mistake) => remember(function, mistake),
    })
}

#[cold]
fn remember(function: &'static str, mistake: Mistake) -> c_int {
    let code = mistake.code();
    // A thread that is ending has nobody to ask.
    let _ = LAST.try_with(|last| {
        *last.borrow_mut() = Last { function, mistake: Some(mistake), text: None };
    });
    code
}

/// The error of the last call of this thread that failed.
pub(crate) fn last_code() -> c_int {
    let code = |last: &RefCell<Last>| last.borrow().mistake.as_ref().map(Mistake::code);
    LAST.try_with(code).ok().flatten().unwrap_or(errors::OK)
}

/// Returns the error text of the last call of this thread that failed.
pub(crate) fn last_text() -> *const c_char {
    let none: &CStr = c"no call of this thread has failed";
    let text = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        let Last { function, mistake, text } = &mut *last;
        let mistake = mistake.as_ref()?;
        let text = text.get_or_insert_with(|| {
            // Texts come from anywhere; one that has a zero byte ends there.
            let words = format!("{function}: {mistake}").replace('\0', " ");
            CString::new(words).unwrap_or_default()
        });
        Some(text.as_ptr())
    });
    text.ok().flatten().unwrap_or(none.as_ptr())
}
