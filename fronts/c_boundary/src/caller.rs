//! Which function of a front the program has called: found on the stack of the thread that asks.
//!
//! Nothing is written down when a function is entered, so a call pays nothing. Who has waited in one for
//! long asks here: the frames are walked from the inside, and the first that belongs to an exported
//! function with one of the front's prefixes is it. That takes some microseconds.

use std::ffi::{CStr, c_int, c_void};

/// Frames that are looked at.
const FRAMES_MAX: u32 = 64;
/// The answers of a visitor of frames: go on to the next frame, or stop.
const GO_ON: c_int = 0;
const STOP: c_int = 4;

#[repr(C)]
struct Context {
    _opaque: [u8; 0],
}

type Visitor = unsafe extern "C" fn(*mut Context, *mut c_void) -> c_int;

// The interface by which the standard library unwinds, which is linked with it.
unsafe extern "C" {
    fn _Unwind_Backtrace(visitor: Visitor, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

struct Search<'a> {
    prefixes: &'a [&'a str],
    frames: u32,
    found: Option<String>,
}

/// The innermost exported function on this thread's stack whose name begins with one of these prefixes.
pub fn innermost(prefixes: &[&str]) -> Option<String> {
    let mut search = Search { prefixes, frames: 0, found: None };
    // SAFETY: the visitor gets the search, which outlives the walk, and does not unwind.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
    search.found
}

/// Looks at a frame.
unsafe extern "C" fn visit(context: *mut Context, data: *mut c_void) -> c_int {
    // SAFETY: `innermost` passes its search, which nobody else uses meanwhile.
    let search = unsafe { &mut *data.cast::<Search<'_>>() };
    // SAFETY: the unwinder passes the context of the frame.
    let place = unsafe { _Unwind_GetIP(context) };
    search.frames += 1;
    // A call is before the place where it returns to.
    let name = symbol_at(place.wrapping_sub(1));
    let is_ours = |name: &String| search.prefixes.iter().any(|prefix| name.starts_with(prefix));
    search.found = name.filter(is_ours);
    if search.found.is_some() || search.frames >= FRAMES_MAX { STOP } else { GO_ON }
}

/// The exported function that an address is in.
fn symbol_at(address: usize) -> Option<String> {
    let mut about = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the place is writable; any address may be asked for.
    let found = unsafe { libc::dladdr(address as *const c_void, about.as_mut_ptr()) };
    // SAFETY: all zeroes is a value, and it was filled in if anything was found.
    let name = unsafe { about.assume_init() }.dli_sname;
    if found == 0 || name.is_null() {
        return None;
    }
    // SAFETY: the linker's name of a symbol, which stays as long as the library is loaded.
    unsafe { CStr::from_ptr(name) }.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_from_no_front_has_called_nothing() {
        assert_eq!(innermost(&["no_function_has_this_prefix_"]), None);
    }

    #[test]
    fn an_exported_function_is_found_by_its_address() {
        let name = symbol_at(libc::getpid as *const () as usize);
        assert!(name.is_some_and(|name| name.contains("getpid")));
    }
}
