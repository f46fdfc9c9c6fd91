//! Classes and codes of errors: those of the standard, which are their own codes, and those that the
//! program adds.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{self, ERR_ARG, ERR_LASTCODE, ERROR_CLASSES, SUCCESS};
use crate::mistake::Mistake;

/// A class or code of the program.
#[derive(Clone, Debug)]
struct Own {
    /// Its class; its own number if it is one.
    class: c_int,
    text: String,
}

/// The program's own, from [`FIRST`] on; none where one was removed.
static OWN: Mutex<Vec<Option<Own>>> = Mutex::new(Vec::new());

const FIRST: c_int = ERR_LASTCODE + 1;

/// A new class.
pub(crate) fn add_class() -> c_int {
    let mut own = lock();
    let number = FIRST + own.len() as c_int;
    own.push(Some(Own { class: number, text: String::new() }));
    number
}

/// A new code of a class.
pub(crate) fn add_code(argument: &str, class: c_int) -> Result<c_int, Mistake> {
    if self::class(argument, class)? != class {
        return Err(refuse(argument, class, "a code, not a class"));
    }
    let mut own = lock();
    own.push(Some(Own { class, text: String::new() }));
    Ok(FIRST + own.len() as c_int - 1)
}

/// Removes a class or a code of the program, of which nothing is left: no codes, no text.
pub(crate) fn remove(argument: &str, number: c_int, is_class: bool) -> Result<(), Mistake> {
    let mut own = lock();
    let place = place_of(&own, number).ok_or_else(|| unknown(argument, number))?;
    let has = own[place].as_ref().is_some_and(|own| (own.class == number) == is_class);
    if !has {
        return Err(refuse(argument, number, if is_class { "a code" } else { "a class" }));
    }
    let is_used = |(other, own): (usize, &Option<Own>)| {
        other != place && own.as_ref().is_some_and(|own| own.class == number)
    };
    if own.iter().enumerate().any(is_used) {
        return Err(refuse(argument, number, "a class that still has codes"));
    }
    if own[place].as_ref().is_some_and(|own| !own.text.is_empty()) {
        return Err(refuse(argument, number, "which still has a text; remove that first"));
    }
    own[place] = None;
    while own.last().is_some_and(Option::is_none) {
        own.pop();
    }
    Ok(())
}

/// Sets the text of a class or code of the program.
pub(crate) fn set_text(argument: &str, number: c_int, text: String) -> Result<(), Mistake> {
    let mut own = lock();
    let place = place_of(&own, number);
    match place.and_then(|place| own[place].as_mut()) {
        Some(own) => {
            own.text = text;
            Ok(())
        }
        None => Err(unknown(argument, number)),
    }
}

/// The class of a code.
pub(crate) fn class(argument: &str, code: c_int) -> Result<c_int, Mistake> {
    class_of(code).ok_or_else(|| unknown(argument, code))
}

/// The text of a code in general.
pub(crate) fn text(argument: &str, code: c_int) -> Result<String, Mistake> {
    if let Some(name) = standard(code) {
        return Ok(format!("{name}: {}", meaning(code)));
    }
    let own = lock();
    let place = place_of(&own, code).ok_or_else(|| unknown(argument, code))?;
    Ok(own[place].as_ref().map_or_else(String::new, |own| own.text.clone()))
}

/// The largest code there is: MPI_LASTUSEDCODE.
pub(crate) fn last_used() -> c_int {
    ERR_LASTCODE + lock().len() as c_int
}

/// The class of a code as messages name it.
pub(crate) fn name(code: c_int) -> String {
    let class = class_of(code).unwrap_or(code);
    standard(class).map_or_else(|| format!("error class {class}"), str::to_owned)
}

fn class_of(code: c_int) -> Option<c_int> {
    if standard(code).is_some() || code == ERR_LASTCODE {
        return Some(code);
    }
    let own = lock();
    own[place_of(&own, code)?].as_ref().map(|own| own.class)
}

/// The name of a class of the standard.
fn standard(code: c_int) -> Option<&'static str> {
    ERROR_CLASSES.iter().find(|(number, _)| *number == code).map(|(_, name)| *name)
}

fn place_of(own: &[Option<Own>], number: c_int) -> Option<usize> {
    let place = usize::try_from(number.checked_sub(FIRST)?).ok()?;
    own.get(place)?.is_some().then_some(place)
}

fn lock() -> MutexGuard<'static, Vec<Option<Own>>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn unknown(argument: &str, number: c_int) -> Mistake {
    Mistake::new(
        ERR_ARG,
        format_args!(
            "{argument} is {number}, which is no error class or code that may be used here"
        ),
    )
}

#[cold]
fn refuse(argument: &str, number: c_int, what: &str) -> Mistake {
    Mistake::new(ERR_ARG, format_args!("{argument} is {number}, {what}"))
}

/// Returns the meaning of an error class of the standard.
fn meaning(class: c_int) -> &'static str {
    MEANINGS
        .iter()
        .find(|(number, _)| *number == class)
        .map_or("an error of this class", |(_, meaning)| meaning)
}

static MEANINGS: [(c_int, &str); 63] = [
    (SUCCESS, "no error"),
    (abi::ERR_BUFFER, "a buffer that cannot be used"),
    (abi::ERR_COUNT, "a count that cannot be"),
    (abi::ERR_TYPE, "a datatype that cannot be used"),
    (abi::ERR_TAG, "a tag that cannot be"),
    (abi::ERR_COMM, "a communicator that cannot be used"),
    (abi::ERR_RANK, "a rank that is not there"),
    (abi::ERR_REQUEST, "a request that cannot be used"),
    (abi::ERR_ROOT, "a root that is not there"),
    (abi::ERR_GROUP, "a group that cannot be used"),
    (abi::ERR_OP, "an operation that cannot be used"),
    (abi::ERR_TOPOLOGY, "a topology that does not fit"),
    (abi::ERR_DIMS, "dimensions that cannot be"),
    (abi::ERR_ARG, "an argument that cannot be used"),
    (abi::ERR_UNKNOWN, "an error of which nothing is known"),
    (abi::ERR_TRUNCATE, "a message that is longer than the room for it"),
    (abi::ERR_OTHER, "an error of no other class"),
    (abi::ERR_INTERN, "a fault of the library"),
    (abi::ERR_PENDING, "an operation that has not ended"),
    (abi::ERR_IN_STATUS, "an error that a status tells of"),
    (abi::ERR_ACCESS, "a file that may not be used so"),
    (abi::ERR_BASE, "memory that was not given out"),
    (abi::ERR_ERRHANDLER, "an error handler that cannot be used"),
    (abi::ERR_INFO, "an info object that cannot be used"),
    (abi::ERR_INFO_KEY, "a key that cannot be"),
    (abi::ERR_INFO_NOKEY, "a key that is not there"),
    (abi::ERR_INFO_VALUE, "a value that cannot be"),
    (abi::ERR_KEYVAL, "a key of attributes that cannot be used"),
    (abi::ERR_NAME, "a name that was not published"),
    (abi::ERR_NO_MEM, "no memory is left"),
    (abi::ERR_PORT, "a port that cannot be used"),
    (abi::ERR_PROC_ABORTED, "a process that is gone"),
    (abi::ERR_SERVICE, "a service that was not published"),
    (abi::ERR_SESSION, "a session that cannot be used"),
    (abi::ERR_SPAWN, "processes that could not be started"),
    (abi::ERR_UNSUPPORTED_OPERATION, "a function that this library does not have"),
    (abi::ERR_WIN, "a window that cannot be used"),
    (abi::ERR_AMODE, "a mode of access that cannot be"),
    (abi::ERR_ASSERT, "an assertion that cannot be"),
    (abi::ERR_BAD_FILE, "a name that no file can have"),
    (abi::ERR_CONVERSION, "a conversion of data that failed"),
    (abi::ERR_DISP, "a displacement that cannot be"),
    (abi::ERR_DUP_DATAREP, "a data representation that is there already"),
    (abi::ERR_FILE_EXISTS, "a file that is there already"),
    (abi::ERR_FILE_IN_USE, "a file that is in use"),
    (abi::ERR_FILE, "a file that cannot be used"),
    (abi::ERR_IO, "input or output that failed"),
    (abi::ERR_LOCKTYPE, "a kind of lock that is not there"),
    (abi::ERR_NOT_SAME, "arguments that differ between processes"),
    (abi::ERR_NO_SPACE, "no room is left for the file"),
    (abi::ERR_NO_SUCH_FILE, "a file that is not there"),
    (abi::ERR_QUOTA, "more than this user may store"),
    (abi::ERR_READ_ONLY, "a file that may only be read"),
    (abi::ERR_RMA_ATTACH, "memory that cannot be attached"),
    (abi::ERR_RMA_CONFLICT, "accesses to a window that conflict"),
    (abi::ERR_RMA_RANGE, "memory outside the window"),
    (abi::ERR_RMA_SHARED, "memory that cannot be shared"),
    (abi::ERR_RMA_SYNC, "synchronisation of a window out of order"),
    (abi::ERR_SIZE, "a size that cannot be"),
    (abi::ERR_UNSUPPORTED_DATAREP, "a data representation that is not there"),
    (abi::ERR_RMA_FLAVOR, "a window of the wrong flavour"),
    (abi::ERR_VALUE_TOO_LARGE, "a value that is too large for its place"),
    (abi::ERR_ABI, "what the binary interface does not allow"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_codes_come_and_go() {
        let class = add_class();
        assert!(class > ERR_LASTCODE);
        let code = add_code("errorclass", class).unwrap();
        assert_eq!(self::class("errorcode", code).unwrap(), class);
        assert_eq!(last_used(), code);
        set_text("errorcode", code, "too late".to_owned()).unwrap();
        assert_eq!(text("errorcode", code).unwrap(), "too late");
        assert!(add_code("errorclass", code).is_err());
        assert!(remove("errorclass", class, true).is_err());
        assert!(remove("errorclass", code, true).is_err());
        assert!(remove("errorcode", code, false).is_err(), "it has a text");
        set_text("errorcode", code, String::new()).unwrap();
        remove("errorcode", code, false).unwrap();
        remove("errorclass", class, true).unwrap();
        assert_eq!(last_used(), ERR_LASTCODE);
        assert!(self::class("errorcode", code).is_err());
        assert!(set_text("errorcode", abi::ERR_RANK, String::new()).is_err());
    }

    #[test]
    fn every_class_means_something() {
        for (class, name) in ERROR_CLASSES {
            assert!(MEANINGS.iter().any(|(own, _)| *own == class), "{name}");
        }
    }

    #[test]
    fn the_standard_has_names() {
        assert_eq!(name(abi::ERR_RANK), "MPI_ERR_RANK");
        assert_eq!(
            text("errorcode", abi::ERR_RANK).unwrap(),
            "MPI_ERR_RANK: a rank that is not there"
        );
        assert!(text("errorcode", -1).is_err());
    }
}
