//! Threads of the program: threads of the system, whose bodies may leave in any way.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

use landeck::thread::THREAD_NAME_BYTES_MAX;
use landeck::unstable::memory::processors;
use landeck_c_boundary::{HandleError, Table};

use crate::errors;
use crate::handle::Handle;
use crate::mistake::Mistake;

/// The function that a thread runs.
pub(crate) type Body = Option<unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void>;

/// The number by which the system knows each thread; 0 for one that was not made here. They are used under
/// the lock alone: a thread may be joined while it is being made, and by several at once.
static THREADS: Mutex<Table<Cell<libc::pthread_t>>> = Mutex::new(Table::new(0x21));

/// The start values of a thread. They are plain, so its first frame owns nothing while the body runs.
#[derive(Clone, Copy)]
struct Start {
    body: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    handle: Handle,
    /// As a string of C; empty for the name of who made it.
    name: [u8; THREAD_NAME_BYTES_MAX + 1],
}

thread_local! {
    static OWN: Cell<Option<Handle>> = const { Cell::new(None) };
}

unsafe extern "C-unwind" {
    /// The C library's, whose thread may end by unwinding.
    fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        body: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
}

/// Starts a thread; a name has at most [`THREAD_NAME_BYTES_MAX`] bytes.
pub(crate) fn start(
    body: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    name: Option<&CStr>,
    stack_bytes: usize,
) -> Result<Handle, Mistake> {
    let threads = threads();
    threads.make_room()?;
    let handle = Handle(threads.insert(Cell::new(0)));
    let mut start = Start { body, argument, handle, name: [0; THREAD_NAME_BYTES_MAX + 1] };
    let bytes = name.map_or(&[][..], CStr::to_bytes);
    start.name[..bytes.len()].copy_from_slice(bytes);
    let start = Box::into_raw(Box::new(start));
    match create(start, stack_bytes) {
        Ok(number) => {
            number_of(&threads, handle)?.set(number);
            Ok(handle)
        }
        Err(errno) => {
            // SAFETY: it was made of a box, and no thread has begun with it.
            drop(unsafe { Box::from_raw(start) });
            let _ = threads.remove(handle.0);
            let why = std::io::Error::from_raw_os_error(errno);
            let text = format!("the system gives no thread: {why}; allow more, or smaller stacks");
            Err(Mistake::new(errors::NOTHREAD, text))
        }
    }
}

/// Waits until a thread has ended, and returns what it returned.
pub(crate) fn join(handle: Handle) -> Result<*mut c_void, Mistake> {
    let not_joinable = |text| Mistake::known(errors::NOTJOINABLE, text);
    if OWN.get() == Some(handle) {
        return Err(not_joinable("a thread cannot wait for its own end"));
    }
    let threads = threads();
    let number = number_of(&threads, handle)?.get();
    if number == 0 {
        return Err(not_joinable("the thread was not made by deck_thread_create"));
    }
    // Of several that join it, one gets it.
    threads.remove(handle.0)?;
    drop(threads);
    let mut result = std::ptr::null_mut();
    // SAFETY: the number is that of a thread that was made here, and nobody else joins it.
    match unsafe { libc::pthread_join(number, &mut result) } {
        0 => Ok(result),
        errno => {
            let why = std::io::Error::from_raw_os_error(errno);
            Err(Mistake::new(errors::NOTJOINABLE, format!("the thread cannot be joined: {why}")))
        }
    }
}

/// The calling thread.
pub(crate) fn this() -> Handle {
    OWN.get().unwrap_or_else(|| {
        let handle = Handle(threads().insert(Cell::new(0)));
        OWN.set(Some(handle));
        handle
    })
}

fn threads() -> MutexGuard<'static, Table<Cell<libc::pthread_t>>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number_of(
    threads: &Table<Cell<libc::pthread_t>>,
    handle: Handle,
) -> Result<&Cell<libc::pthread_t>, HandleError> {
    // SAFETY: only who has the lock removes anything, and the caller has it.
    unsafe { threads.get(handle.0) }
}

/// Starts a thread of the system; else its reason why not.
fn create(start: *mut Start, stack_bytes: usize) -> Result<libc::pthread_t, c_int> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are initialised before they are used and destroyed afterwards; the thread
    // takes the box over.
    unsafe {
        let attributes = attributes.as_mut_ptr();
        libc::pthread_attr_init(attributes);
        let mut errno = match stack_bytes {
            0 => 0,
            bytes => libc::pthread_attr_setstacksize(attributes, whole_pages(bytes)),
        };
        let mut number = 0;
        if errno == 0 {
            errno = pthread_create(&mut number, attributes, run, start.cast());
        }
        libc::pthread_attr_destroy(attributes);
        if errno == 0 { Ok(number) } else { Err(errno) }
    }
}

fn whole_pages(bytes: usize) -> usize {
    const PAGE_BYTES: usize = 4096;
    bytes.max(libc::PTHREAD_STACK_MIN).checked_next_multiple_of(PAGE_BYTES).unwrap_or(bytes)
}

/// The first frame of a thread.
extern "C-unwind" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: `start` made it of a box and gave it to this thread.
    let Start { body, argument, handle, name } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    OWN.set(Some(handle));
    // SAFETY: it is this thread's own number, and the name ends with a zero.
    unsafe {
        if name[0] != 0 {
            libc::pthread_setname_np(libc::pthread_self(), name.as_ptr().cast());
        }
    }
    processors::follow_parent();
    // SAFETY: the program gave a function that takes this argument; this frame owns nothing.
    unsafe { body(argument) }
}
