//! How every function is entered and left: guarded, under both names, with its error handler told
//! of mistakes.

use std::ffi::c_int;

use landeck_c_boundary::{Next, guarded};

use crate::abi::{ERR_INTERN, SUCCESS};
use crate::job;
use crate::mistake::Mistake;
use crate::origin::{Origin, raise};
use crate::walk::Walk;

/// Defines a function under its two names: `MPI_X`, which a tool may take the place of, and
/// `PMPI_X`, by which the tool calls the library.
macro_rules! shell {
    ($name:ident / $twin:ident $arguments:tt -> $returns:ty => $enter:expr) => {
        $crate::entry::symbol! { $name of $name $arguments -> $returns => $enter }
        $crate::entry::symbol! { $twin of $name $arguments -> $returns => $enter }
    };
}
pub(crate) use shell;

/// Defines one of them; both go by the first.
macro_rules! symbol {
    ($symbol:ident of $name:ident ($($argument:ident: $type:ty),*) -> $returns:ty => $enter:expr) => {
        const _: () = {
            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn $symbol($($argument: $type),*) -> $returns {
                const FUNCTION: &str = stringify!($name);
                #[allow(unused_unsafe, reason = "some bodies are safe")]
                // SAFETY: the caller of a C function keeps what the standard demands of its
                // arguments; what can be checked is checked in the body.
                unsafe { $enter(FUNCTION) }
            }
        };
    };
}
pub(crate) use symbol;

/// A function whose body gives a result: `Ok` or a mistake.
macro_rules! works {
    (fn $name:ident / $twin:ident ($($argument:ident: $type:ty),*) on $origin:expr => $body:expr) => {
        shell! { $name / $twin ($($argument: $type),*) -> c_int =>
            |function| entered(function, $origin, || $body) }
    };
}
pub(crate) use works;

/// A function whose body calls the program back: it gives a walk.
macro_rules! calls_back {
    (fn $name:ident / $twin:ident ($($argument:ident: $type:ty),*) on $origin:expr => $body:expr) => {
        shell! { $name / $twin ($($argument: $type),*) -> c_int =>
            |function| entered_walking(function, $origin, || $body) }
    };
}
pub(crate) use calls_back;

/// A function that gives a value, and has no mistakes.
macro_rules! value {
    (fn $name:ident / $twin:ident ($($argument:ident: $type:ty),*) -> $returns:ty => $body:expr) => {
        shell! { $name / $twin ($($argument: $type),*) -> $returns =>
            |function| entered_for_value(function, || $body) }
    };
}
pub(crate) use value;

/// A function that is not supported.
macro_rules! unsupported {
    (fn $name:ident / $twin:ident ($($argument:ident: $type:ty),*) on $origin:expr) => {
        shell! { $name / $twin ($($argument: $type),*) -> c_int => |function| {
            $(let _ = $argument;)*
            raise(function, $origin, Mistake::unsupported())
        }}
    };
}
pub(crate) use unsupported;

/// How a body ended: one word.
enum Outcome {
    Well,
    Mistaken(Mistake),
    Panicked,
}

/// Runs the body of a function.
#[inline(always)]
pub(crate) fn entered(
    function: &'static str,
    origin: Origin,
    body: impl FnOnce() -> Result<(), Mistake>,
) -> c_int {
    let outcome = guarded(function, Outcome::Panicked, || match body() {
        Ok(()) => Outcome::Well,
        Err(mistake) => Outcome::Mistaken(mistake),
    });
    match outcome {
        Outcome::Well => SUCCESS,
        Outcome::Mistaken(mistake) => raise(function, origin, mistake),
        Outcome::Panicked => give_up(),
    }
}

/// Runs the body of a function, and its steps. The frame owns nothing while the program's functions
/// run.
#[inline(always)]
pub(crate) fn entered_walking(
    function: &'static str,
    origin: Origin,
    body: impl FnOnce() -> Result<Walk, Mistake>,
) -> c_int {
    let mut walk = Walk::Done;
    let code = entered(function, origin, || {
        walk = body()?;
        Ok(())
    });
    match walk {
        Walk::Done => code,
        Walk::Steps(_) => walked(function, origin, walk),
    }
}

#[inline(never)]
fn walked(function: &'static str, origin: Origin, mut walk: Walk) -> c_int {
    let Walk::Steps(steps) = &mut walk else { return SUCCESS };
    loop {
        match guarded(function, None, || Some(steps.advance())) {
            // SAFETY: the steps made this call for its data, which they keep until the next step.
            Some(Next::Call(call)) => unsafe { (call.run)(call.data) },
            Some(Next::Done(None)) => return SUCCESS,
            Some(Next::Done(Some(mistake))) => {
                // SAFETY: the steps have ended, so this is the only time.
                return raise(function, origin, unsafe { mistake.into_mistake() });
            }
            None => give_up(),
        }
    }
}

/// Runs the body of a function that gives a value.
#[inline(always)]
pub(crate) fn entered_for_value<R>(function: &'static str, body: impl FnOnce() -> R) -> R {
    guarded(function, None, || Some(body())).unwrap_or_else(|| give_up())
}

/// Ends the job after a panic, which was reported.
#[cold]
fn give_up() -> ! {
    job::abort(ERR_INTERN, "the library failed; see above")
}
