//! The process's side of PMIx: `prterun` and `mpirun` of Open MPI, `srun --mpi=pmix`.
//!
//! The protocol on the wire is implemented by a library of the launcher, `libpmix.so.2`. It is loaded only in a process
//! that such a launcher has started, and never unloaded, since it has threads. The few functions, types and numbers
//! here are those of the PMIx standard, which keeps them stable.

use std::env;
use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::pmi::JobPlace;

/// The library, by the name that the loader knows.
const LIBRARY: &str = "libpmix.so.2";
/// The variable with the launcher's installation directory; the library is below it, at one of these places.
const PREFIX: &str = "PMIX_PREFIX";
const BELOW_PREFIX: [&str; 3] =
    ["lib/libpmix.so.2", "lib64/libpmix.so.2", "lib/openmpi/libpmix.so.2"];

/// The key of the number of processes in the job.
const JOB_SIZE: &CStr = c"pmix.job.size";
/// The rank that stands for all processes of a job.
const ANY_RANK: u32 = u32::MAX - 1;
/// The scope of a value for all processes of the job.
const FOR_ALL: u8 = 3;
/// The types of values.
const STRING: u16 = 3;
const UINT32: u16 = 14;
/// The event that the launcher has ended.
const LOST_CONNECTION: c_int = -61;
/// The longest key and the longest name of a job, with their terminating zeros.
const KEY_BYTES: usize = 512;
const NAME_BYTES: usize = 256;
/// The longest value that is accepted.
const VALUE_BYTES: usize = 4096;

/// A conversation with the launcher, whose state is in the library.
#[derive(Debug)]
pub struct Client {
    library: Library,
    own: Process,
    place: JobPlace,
}

/// The error of a conversation over PMIx.
#[derive(Debug, thiserror::Error)]
pub enum PmixError {
    /// A variable is missing or has no usable value.
    #[error("the launcher set {present}, but {name} is {}: start the program again with mpirun or landeck run, or \
             unset {present} to run it alone",
        value.as_ref().map_or_else(|| "not set".to_owned(), |value| format!("{value:?}")))]
    Variable {
        /// The variable that is set.
        present: &'static str,
        /// The variable that is wrong.
        name: &'static str,
        /// Its value.
        value: Option<String>,
    },
    /// The library cannot be loaded.
    #[error(
        "this process was started by a launcher that speaks PMIx ({variable} is set), and {LIBRARY}, which \
         is needed to talk to it, cannot be loaded ({reason}): name its folder in LD_LIBRARY_PATH, start the \
         program with `landeck run`, or unset {variable} to run it alone"
    )]
    NoLibrary {
        /// The variable that tells that the launcher speaks PMIx.
        variable: &'static str,
        /// The loader's error.
        reason: String,
    },
    /// The library lacks a function.
    #[error("{LIBRARY} has no function {function}: another version of it is needed")]
    NoFunction {
        /// The missing function.
        function: &'static str,
    },
    /// A request failed.
    #[error(
        "the launcher, which speaks PMIx, failed to {request} (status {status}): see its own messages"
    )]
    Failed {
        /// The request.
        request: &'static str,
        /// The library's error; the numbers are those of the PMIx standard.
        status: c_int,
    },
    /// An answer makes no sense.
    #[error(
        "the launcher, which speaks PMIx, gave a value of type {kind} for {what}, which makes no sense"
    )]
    Senseless {
        /// The request.
        what: String,
        /// The number of the type.
        kind: u16,
    },
}

/// The variables that every PMIx launcher sets.
const RANK: &str = "PMIX_RANK";
const NAMESPACE: &str = "PMIX_NAMESPACE";

/// The variable by which a PMIx launcher claims this process.
///
/// # Errors
/// [`PmixError::Variable`]; the library would only report that it failed.
pub fn claiming_variable(
    variable: impl Fn(&'static str) -> Option<String>,
) -> Result<Option<&'static str>, PmixError> {
    let wrong = |present, name| PmixError::Variable { present, name, value: variable(name) };
    match (variable(RANK), variable(NAMESPACE)) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(wrong(NAMESPACE, RANK)),
        (Some(rank), _) if rank.parse::<u32>().is_err() => Err(wrong(RANK, RANK)),
        (Some(_), Some(namespace)) if !namespace.is_empty() => Ok(Some(RANK)),
        (Some(_), _) => Err(wrong(RANK, NAMESPACE)),
    }
}

impl Client {
    /// Connects to the launcher that has set this variable.
    ///
    /// # Errors
    /// [`PmixError`].
    pub fn connect(variable: &'static str) -> Result<Self, PmixError> {
        let library = Library::open(variable)?;
        let mut own = Process { name: [0; NAME_BYTES], rank: 0 };
        // SAFETY: the pointer leads to a writable process; no further information is given.
        let status = unsafe { (library.init)(&raw mut own, ptr::null(), 0) };
        succeed("take this process in", status)?;
        let everybody = Process { rank: ANY_RANK, ..own };
        let size = match library.get(&everybody, JOB_SIZE)? {
            Value::Number(size) if own.rank < size => size,
            Value::Number(_) => return Err(senseless(JOB_SIZE, UINT32)),
            Value::Text(_) => return Err(senseless(JOB_SIZE, STRING)),
        };
        Ok(Self { library, own, place: JobPlace { rank: own.rank, size } })
    }

    /// A descriptor whose other end closes when the launcher ends; `None` if the library cannot tell.
    ///
    /// # Errors
    /// If no pipe can be created.
    pub fn connection(&self) -> io::Result<Option<OwnedFd>> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        close_kept(theirs.into_raw_fd());
        let codes = [LOST_CONNECTION];
        // SAFETY: the codes are readable during the call, which returns once the function is registered; the function
        // belongs to this program.
        let status = unsafe {
            (self.library.register)(
                codes.as_ptr(),
                1,
                ptr::null(),
                0,
                on_event,
                None,
                ptr::null_mut(),
            )
        };
        Ok((status >= 0).then_some(ours))
    }

    /// The rank of this process and the size of its job.
    pub fn place(&self) -> JobPlace {
        self.place
    }

    /// Publishes a value, which the others can read after the next fence.
    ///
    /// # Errors
    /// [`PmixError::Failed`].
    pub fn put(&mut self, key: &str, value: &str) -> Result<(), PmixError> {
        let text = text_of(value)?;
        let mut value = RawValue { kind: STRING, data: [0; 7] };
        value.data[0] = text.as_ptr().expose_provenance();
        // SAFETY: key and value are readable, and the library copies them.
        let status = unsafe { (self.library.put)(FOR_ALL, key_of(key).as_ptr(), &raw mut value) };
        succeed("take a value", status)?;
        // SAFETY: the function takes no arguments.
        succeed("pass a value on", unsafe { (self.library.commit)() })
    }

    /// Returns when all processes of the job have reached this fence.
    ///
    /// # Errors
    /// [`PmixError::Failed`].
    pub fn fence(&mut self) -> Result<(), PmixError> {
        // SAFETY: null pointers with length zero mean all processes and no further information.
        let status = unsafe { (self.library.fence)(ptr::null(), 0, ptr::null(), 0) };
        succeed("let all processes wait for each other", status)
    }

    /// Reads the value that the process of a rank has put.
    ///
    /// # Errors
    /// [`PmixError::Failed`], also if there is no such value; [`PmixError::Senseless`].
    pub fn get(&mut self, rank: u32, key: &str) -> Result<String, PmixError> {
        let key = text_of(key)?;
        match self.library.get(&Process { rank, ..self.own }, &key)? {
            Value::Text(text) => Ok(text),
            Value::Number(_) => Err(senseless(&key, UINT32)),
        }
    }

    /// Tells the launcher to end the job.
    ///
    /// # Errors
    /// [`PmixError::Failed`].
    pub fn abort(&mut self, exit_code: i32, message: &str) -> Result<(), PmixError> {
        let message = text_of(message)?;
        // SAFETY: the text is readable; a null pointer with length zero means all processes.
        let status =
            unsafe { (self.library.abort)(exit_code, message.as_ptr(), ptr::null_mut(), 0) };
        succeed("end the job", status)
    }

    /// Says goodbye to the launcher.
    ///
    /// # Errors
    /// [`PmixError::Failed`].
    pub fn finalize(self) -> Result<(), PmixError> {
        // SAFETY: no further information is given.
        let status = unsafe { (self.library.finalize)(ptr::null(), 0) };
        succeed("let this process go", status)
    }
}

/// The function that the library calls in a thread of its own when the launcher has ended.
unsafe extern "C" fn on_event(
    _registration: usize,
    _status: c_int,
    _source: *const Process,
    _information: *mut c_void,
    _informations: usize,
    _results: *mut c_void,
    _result_count: usize,
    done: Option<Done>,
    data: *mut c_void,
) {
    close_kept(-1);
    if let Some(done) = done {
        // SAFETY: the library gave this function and its data.
        unsafe { done(0, ptr::null_mut(), 0, None, ptr::null_mut(), data) };
    }
}

/// Closes the pipe end that was kept open while the launcher lived, and keeps `next` instead.
fn close_kept(next: c_int) {
    static KEPT: AtomicI32 = AtomicI32::new(-1);
    let before = KEPT.swap(next, Ordering::AcqRel);
    if before >= 0 {
        // SAFETY: it was stored as a descriptor without another owner, and is taken once.
        drop(unsafe { OwnedFd::from_raw_fd(before) });
    }
}

/// A process in the library's form.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Process {
    /// The name of its job.
    name: [u8; NAME_BYTES],
    rank: u32,
}

/// A value in the library's form: its type, then a union of fewer words than this.
#[repr(C)]
struct RawValue {
    kind: u16,
    data: [usize; 7],
}

/// A decoded value.
enum Value {
    Text(String),
    Number(u32),
}

type Init = unsafe extern "C" fn(*mut Process, *const c_void, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut RawValue) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const c_void, usize) -> c_int;
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const c_void,
    usize,
    *mut *mut RawValue,
) -> c_int;
type Done = unsafe extern "C" fn(
    c_int,
    *mut c_void,
    usize,
    Option<unsafe extern "C" fn(c_int, *mut c_void)>,
    *mut c_void,
    *mut c_void,
);
type OnEvent = unsafe extern "C" fn(
    usize,
    c_int,
    *const Process,
    *mut c_void,
    usize,
    *mut c_void,
    usize,
    Option<Done>,
    *mut c_void,
);
type Register = unsafe extern "C" fn(
    *const c_int,
    usize,
    *const c_void,
    usize,
    OnEvent,
    Option<unsafe extern "C" fn(c_int, usize, *mut c_void)>,
    *mut c_void,
) -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *mut Process, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;

/// The functions of the library that are used.
#[derive(Clone, Copy, Debug)]
struct Library {
    init: Init,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    register: Register,
    abort: Abort,
    finalize: Finalize,
}

/// Finds a function of the library.
///
/// # Safety
/// The function of this name has this type.
unsafe fn function<T: Copy>(library: &Loaded, name: &'static str) -> Result<T, PmixError> {
    // SAFETY: the caller promises that the function has this type.
    let found = unsafe { library.get::<T>(name) };
    found.map(|found| *found).map_err(|_| PmixError::NoFunction { function: name })
}

impl Library {
    fn open(variable: &'static str) -> Result<Self, PmixError> {
        let prefix = env::var_os(PREFIX).map(PathBuf::from).unwrap_or_default();
        let below = BELOW_PREFIX.map(|name| prefix.join(name)).into_iter();
        let below = below.filter(|path| path.is_absolute() && path.is_file());
        let mut reason = String::new();
        for path in std::iter::once(PathBuf::from(LIBRARY)).chain(below) {
            match load(&path) {
                Ok(library) => return Self::functions_of(library),
                // The first reason helps a user whose launcher set no prefix.
                Err(why) if reason.is_empty() => reason = why,
                Err(_) => {}
            }
        }
        Err(PmixError::NoLibrary { variable, reason })
    }

    fn functions_of(library: Loaded) -> Result<Self, PmixError> {
        // SAFETY: the PMIx standard says that the functions of these names have the types of these fields.
        let functions = unsafe {
            Self {
                init: function(&library, "PMIx_Init")?,
                put: function(&library, "PMIx_Put")?,
                commit: function(&library, "PMIx_Commit")?,
                fence: function(&library, "PMIx_Fence")?,
                get: function(&library, "PMIx_Get")?,
                register: function(&library, "PMIx_Register_event_handler")?,
                abort: function(&library, "PMIx_Abort")?,
                finalize: function(&library, "PMIx_Finalize")?,
            }
        };
        std::mem::forget(library); // it has threads, so it stays
        Ok(functions)
    }

    fn get(&self, of: &Process, key: &CStr) -> Result<Value, PmixError> {
        let mut value: *mut RawValue = ptr::null_mut();
        // SAFETY: process and key are readable, and the place of the value is writable.
        let status = unsafe { (self.get)(of, key.as_ptr(), ptr::null(), 0, &raw mut value) };
        succeed("give a value", status)?;
        if value.is_null() {
            return Err(senseless(key, 0));
        }
        // SAFETY: the library allocated the value with C's allocator and left it to the caller.
        let read = unsafe { understand(value) };
        read.map_err(|kind| senseless(key, kind))
    }
}

/// Decodes a value and frees it; otherwise returns its type.
///
/// # Safety
/// The library allocated the value for the caller.
unsafe fn understand(value: *mut RawValue) -> Result<Value, u16> {
    // SAFETY: the caller guarantees a valid value. Only its type and the first word of the data are read, which every
    // value has.
    let (kind, data) =
        unsafe { ((*value).kind, (&raw const (*value).data).cast::<usize>().read()) };
    let text = ptr::with_exposed_provenance_mut::<c_char>(data);
    let read = match kind {
        UINT32 => Ok(Value::Number(data as u32)),
        STRING if !text.is_null() => {
            // SAFETY: the type says that this is a text of C, which ends with zero.
            let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(VALUE_BYTES)]);
            Ok(Value::Text(text.into_owned()))
        }
        other => Err(other),
    };
    // SAFETY: both were allocated by C's allocator and have no other owner.
    unsafe {
        if kind == STRING {
            libc::free(text.cast());
        }
        libc::free(value.cast());
    }
    read
}

fn load(path: &Path) -> Result<Loaded, String> {
    // SAFETY: the library's initialisers are trusted: the launcher's variables led to it.
    let library = unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    // The text of the loader is the source of the error.
    library.map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

fn succeed(request: &'static str, status: c_int) -> Result<(), PmixError> {
    if status == 0 { Ok(()) } else { Err(PmixError::Failed { request, status }) }
}

#[cold]
fn senseless(key: &CStr, kind: u16) -> PmixError {
    PmixError::Senseless { what: key.to_string_lossy().into_owned(), kind }
}

/// Converts a text into one of C; fails if it contains a zero.
fn text_of(text: &str) -> Result<CString, PmixError> {
    let status = libc::EINVAL;
    CString::new(text).map_err(|_| PmixError::Failed { request: "take a text with a zero", status })
}

/// A key, padded to the size of the library's type for keys.
fn key_of(key: &str) -> [c_char; KEY_BYTES] {
    let mut room = [0; KEY_BYTES];
    for (place, byte) in room[..KEY_BYTES - 1].iter_mut().zip(key.bytes()) {
        *place = byte as c_char;
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_the_standard() {
        assert_eq!((size_of::<Process>(), align_of::<Process>()), (260, 4));
        assert_eq!(std::mem::offset_of!(Process, rank), 256);
        assert_eq!(std::mem::offset_of!(RawValue, data), 8);
    }

    #[test]
    fn values_are_understood_by_their_type() {
        let value = |kind, data| {
            // SAFETY: this is C's memory for one value, written before it is read.
            unsafe {
                let value: *mut RawValue = libc::calloc(1, size_of::<RawValue>()).cast();
                value.write(RawValue { kind, data: [data, 0, 0, 0, 0, 0, 0] });
                understand(value)
            }
        };
        assert!(matches!(value(UINT32, 7), Ok(Value::Number(7))));
        // SAFETY: a text of C is copied into C's memory.
        let text = unsafe { libc::strdup(c"hello".as_ptr()) };
        let read = value(STRING, text.expose_provenance());
        assert!(matches!(read, Ok(Value::Text(text)) if text == "hello"));
        assert!(matches!(value(STRING, 0), Err(STRING)));
        assert!(matches!(value(27, 1), Err(27)));
    }

    #[test]
    fn a_launcher_claims_by_its_variables() {
        let claims = |rank: Option<&str>, namespace: Option<&str>| {
            let value = |name| if name == RANK { rank } else { namespace };
            claiming_variable(|name| value(name).map(str::to_owned))
                .map_err(|error| error.to_string())
        };
        assert_eq!(claims(Some("0"), Some("prterun-1@1")), Ok(Some("PMIX_RANK")));
        assert_eq!(claims(None, None), Ok(None));
        for (rank, namespace, words) in [
            (Some("0"), None, "set PMIX_RANK, but PMIX_NAMESPACE is not set"),
            (Some("0"), Some(""), "set PMIX_RANK, but PMIX_NAMESPACE is \"\""),
            (Some("-1"), Some("job"), "PMIX_RANK is \"-1\""),
            (None, Some("job"), "set PMIX_NAMESPACE, but PMIX_RANK is not set"),
        ] {
            let error = claims(rank, namespace).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let why = load(Path::new("/nowhere/libpmix.so.2")).unwrap_err();
        assert!(why.contains("/nowhere/libpmix.so.2"), "{why}");
    }

    #[test]
    fn keys_are_cut_to_their_room() {
        let key = key_of(&"k".repeat(2 * KEY_BYTES));
        assert_eq!((key[KEY_BYTES - 2], key[KEY_BYTES - 1]), (b'k' as c_char, 0));
        assert_eq!(key_of("ab")[..3], [b'a' as c_char, b'b' as c_char, 0]);
    }
}
