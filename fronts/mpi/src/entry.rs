//! How every entry point is entered and left: guarded, under both names, with the default error
//! handler.

use std::ffi::c_int;
use std::io::Write;

use landeck_c_boundary::guarded;

use crate::abi::{ErrorClass, SUCCESS};
use crate::job;
use crate::mistake::Mistake;

/// Defines functions under their two names: `MPI_X`, which a tool may take the place of, and
/// `PMPI_X`, by which the tool calls the library.
macro_rules! entry_points {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident / $twin:ident ($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {$(
        const _: () = {
            #[inline]
            unsafe fn body($($argument: $type),*) -> Result<(), $crate::mistake::Mistake> $body

            $(#[$attribute])*
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
                // SAFETY: the caller of a C function keeps what the standard demands of its
                // arguments; what can be checked is checked in the body.
                $crate::entry::entered(stringify!($name), || unsafe { body($($argument),*) })
            }

            $(#[$attribute])*
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $twin($($argument: $type),*) -> ::std::ffi::c_int {
                // SAFETY: as above.
                $crate::entry::entered(stringify!($name), || unsafe { body($($argument),*) })
            }
        };
    )*};
}
pub(crate) use entry_points;

/// Runs the body of an entry point; a mistake goes to the error handler.
#[inline]
pub(crate) fn entered(function: &'static str, body: impl FnOnce() -> Result<(), Mistake>) -> c_int {
    let code = guarded(function, ErrorClass::Internal.code(), || match body() {
        Ok(()) => SUCCESS,
        Err(mistake) => handle(function, &mistake),
    });
    if code == ErrorClass::Internal.code() {
        job::abort(code, "the library failed; see above");
    }
    code
}

/// The default error handler, MPI_ERRORS_ARE_FATAL: says what is wrong and ends the job.
#[cold]
pub(crate) fn handle(function: &'static str, mistake: &Mistake) -> c_int {
    let class = mistake.class();
    let text = format!(
        "{function} failed on {}: {mistake} ({}).\n\
         The job is aborted: errors are fatal unless the program asks for another handler.",
        job::own_name(),
        class.name(),
    );
    let _ = writeln!(std::io::stderr(), "{text}");
    job::abort(class.code(), &text)
}
