//! Beginning and end, the versions, the clock, and memory.

use std::ffi::{CStr, c_char, c_int, c_void};

use landeck::unstable::memory::fork;
use landeck_c_boundary::pointer;

use crate::abi::{
    ERR_ARG, ERR_BASE, ERR_NO_MEM, Handle, MAX_LIBRARY_VERSION_STRING, MAX_PROCESSOR_NAME,
    SUBVERSION, THREAD_FUNNELED, THREAD_MULTIPLE, THREAD_SERIALIZED, THREAD_SINGLE, VERSION,
};
use crate::arguments::{give, give_text};
use crate::mistake::Mistake;
use crate::objects::info::Info;
use crate::objects::{attributes, communicator, info};
use crate::walk::Walk;
use crate::{hardware, job, memory};

/// Joins the job, for one thread.
pub(crate) unsafe fn init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> Result<(), Mistake> {
    job::start(THREAD_SINGLE).map(|_| ())
}

/// Joins the job, for as many threads as are required.
pub(crate) unsafe fn init_thread(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> Result<(), Mistake> {
    check_thread_level(required)?;
    pointer::check("provided", provided, 1)?;
    let level = job::start(required)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("provided", provided, level) }
}

/// Refuses what is no thread level.
pub(crate) fn check_thread_level(required: c_int) -> Result<(), Mistake> {
    let levels = [THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE];
    if levels.contains(&required) {
        return Ok(());
    }
    Err(Mistake::new(
        ERR_ARG,
        format_args!(
            "required is {required}, which is no thread level; use one of the MPI_THREAD_ constants"
        ),
    ))
}

/// Leaves the job, after the attributes of MPI_COMM_SELF are gone.
pub(crate) unsafe fn finalize() -> Result<Walk, Mistake> {
    let myself = &job::current()?.myself;
    let put_back = |list| myself.attributes.replace(list);
    attributes::delete(myself.handle(), myself.attributes.take_all(), put_back, job::finish)
}

/// Whether MPI_Init was called.
pub(crate) unsafe fn initialized(flag: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program says that it is writable.
    unsafe { give("flag", flag, c_int::from(job::is_initialized())) }
}

/// Whether MPI_Finalize was called.
pub(crate) unsafe fn finalized(flag: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program says that it is writable.
    unsafe { give("flag", flag, c_int::from(job::is_finalized())) }
}

/// The thread level there is.
pub(crate) unsafe fn query_thread(provided: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program says that it is writable.
    unsafe { give("provided", provided, job::thread_level()?) }
}

/// Whether this thread called MPI_Init.
pub(crate) unsafe fn is_thread_main(flag: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program says that it is writable.
    unsafe { give("flag", flag, c_int::from(job::is_main_thread()?)) }
}

/// Ends the whole job; a child made by fork ends alone.
pub(crate) unsafe fn abort(comm: Handle, errorcode: c_int) -> Result<(), Mistake> {
    if !fork::is_child() {
        communicator::get("comm", comm)?;
    }
    let call = format!("called MPI_Abort with code {errorcode}");
    let text = format!("{} {call}", job::own_name());
    job::say_why(&text, "", &call, false);
    job::abort(errorcode, &text)
}

/// The version of the standard.
pub(crate) unsafe fn get_version(
    version: *mut c_int,
    subversion: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program says that both are writable.
    unsafe {
        give("version", version, VERSION)?;
        give("subversion", subversion, SUBVERSION)
    }
}

/// The name and version of this library.
pub(crate) unsafe fn get_library_version(
    version: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Mistake> {
    let text = concat!("Landeck ", env!("CARGO_PKG_VERSION"));
    // SAFETY: the program has so much room.
    unsafe {
        give_text(("version", version), MAX_LIBRARY_VERSION_STRING, text, ("resultlen", resultlen))
    }
}

/// The name of this host.
pub(crate) unsafe fn get_processor_name(
    name: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Mistake> {
    let host = host_name();
    // SAFETY: the program has so much room.
    unsafe { give_text(("name", name), MAX_PROCESSOR_NAME, &host, ("resultlen", resultlen)) }
}

/// The name of this host as the kernel has it, with or without a /proc.
fn host_name() -> String {
    /// The kernel allows 64 bytes.
    const HOST_NAME_BYTES: usize = 256;
    let mut bytes = [0; HOST_NAME_BYTES];
    // SAFETY: the kernel writes at most so many bytes, and the last one stays zero.
    unsafe { libc::gethostname(bytes.as_mut_ptr().cast(), bytes.len() - 1) };
    CStr::from_bytes_until_nul(&bytes).unwrap_or_default().to_string_lossy().into_owned()
}

/// The kinds of hardware that there are, and whether this process is bound to a single one of each.
pub(crate) unsafe fn get_hw_resource_info(hw_info: *mut Handle) -> Result<(), Mistake> {
    pointer::check("hw_info", hw_info, 1)?;
    let mut kinds = Info::default();
    for (name, is_single) in hardware::kinds() {
        kinds.set(name, if is_single { "true" } else { "false" });
    }
    // SAFETY: the program says that it is writable.
    unsafe { give("hw_info", hw_info, info::keep(kinds)?) }
}

/// Memory for messages.
pub(crate) unsafe fn alloc_mem(
    size: i64,
    info: Handle,
    baseptr: *mut c_void,
) -> Result<(), Mistake> {
    let info = info::snapshot_or_empty("info", info)?;
    let baseptr = baseptr.cast::<*mut c_void>();
    pointer::check("baseptr", baseptr, 1)?;
    let bytes = usize::try_from(size)
        .map_err(|_| Mistake::new(ERR_ARG, format_args!("size is {size}; it must be 0 or more")))?;
    let start = memory::allocate(bytes, alignment_of(&info))?.ok_or_else(|| {
        Mistake::new(ERR_NO_MEM, format_args!("there is no memory for {bytes} bytes"))
    })?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("baseptr", baseptr, start.cast()) }
}

/// The requested alignment of the memory. A hint that cannot be followed is ignored.
fn alignment_of(info: &Info) -> usize {
    let hint = info.get("mpi_minimum_memory_alignment").and_then(|text| text.trim().parse().ok());
    hint.filter(|bytes: &usize| bytes.is_power_of_two()).unwrap_or(1)
}

/// Frees it.
pub(crate) unsafe fn free_mem(base: *mut c_void) -> Result<(), Mistake> {
    if memory::free(base.addr()) {
        return Ok(());
    }
    Err(Mistake::new(
        ERR_BASE,
        format_args!(
            "base is {base:p}, where no memory begins; pass what MPI_Alloc_mem gave, once"
        ),
    ))
}

/// Seconds since some moment in the past, of the clock that all processes of a host share.
pub(crate) fn wtime() -> f64 {
    landeck::unstable::memory::system::now_ns() as f64 * 1e-9
}

/// Seconds between two values of the clock.
pub(crate) fn wtick() -> f64 {
    1e-9
}

/// For tools that take its place; here it does nothing.
pub(crate) unsafe fn pcontrol(_level: c_int) -> Result<(), Mistake> {
    Ok(())
}
