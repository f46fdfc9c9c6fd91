//! How a datatype was made.

use std::ffi::c_int;

use landeck_c_boundary::{pointer, room};

use crate::abi::{COMBINER_NAMED, ERR_ARG, ERR_TYPE, Handle};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::contents::Contents;
use crate::objects::datatype::{self, Datatype};

/// Its constructor, and how many arguments of each kind that had.
pub(crate) unsafe fn type_get_envelope(
    datatype: Handle,
    num_integers: *mut c_int,
    num_addresses: *mut c_int,
    num_datatypes: *mut c_int,
    combiner: *mut c_int,
) -> Result<(), Mistake> {
    let contents = &datatype::get("datatype", datatype)?.contents;
    check_small(contents)?;
    // SAFETY: the program says that all are writable.
    unsafe {
        give("num_integers", num_integers, count_of(contents.integers.len())?)?;
        give("num_addresses", num_addresses, count_of(contents.addresses.len())?)?;
        give("num_datatypes", num_datatypes, count_of(contents.parts.len())?)?;
        give("combiner", combiner, contents.combiner)
    }
}

/// Its constructor, and how many arguments of each kind that had.
pub(crate) unsafe fn type_get_envelope_c(
    datatype: Handle,
    num_integers: *mut i64,
    num_addresses: *mut i64,
    num_large_counts: *mut i64,
    num_datatypes: *mut i64,
    combiner: *mut c_int,
) -> Result<(), Mistake> {
    let contents = &datatype::get("datatype", datatype)?.contents;
    // SAFETY: the program says that all are writable.
    unsafe {
        give("num_integers", num_integers, contents.integers.len() as i64)?;
        give("num_addresses", num_addresses, contents.addresses.len() as i64)?;
        give("num_large_counts", num_large_counts, contents.counts.len() as i64)?;
        give("num_datatypes", num_datatypes, contents.parts.len() as i64)?;
        give("combiner", combiner, contents.combiner)
    }
}

/// The arguments of its constructor.
pub(crate) unsafe fn type_get_contents(
    datatype: Handle,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_datatypes: *mut Handle,
) -> Result<(), Mistake> {
    let contents = contents_of(datatype)?;
    check_small(contents)?;
    let integers = ("array_of_integers", array_of_integers, "max_integers", max_integers.into());
    let addresses =
        ("array_of_addresses", array_of_addresses, "max_addresses", max_addresses.into());
    let datatypes =
        ("array_of_datatypes", array_of_datatypes, "max_datatypes", max_datatypes.into());
    // SAFETY: the program has so much room.
    unsafe {
        check(&contents.parts, datatypes)?;
        fill(&contents.integers, integers)?;
        fill(&contents.addresses, addresses)?;
        fill(&handles_of(contents)?, datatypes)
    }
}

/// The arguments of its constructor.
#[allow(clippy::too_many_arguments)] // the standard has them
pub(crate) unsafe fn type_get_contents_c(
    datatype: Handle,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut i64,
    array_of_large_counts: *mut i64,
    array_of_datatypes: *mut Handle,
) -> Result<(), Mistake> {
    let contents = contents_of(datatype)?;
    let integers = ("array_of_integers", array_of_integers, "max_integers", max_integers);
    let addresses = ("array_of_addresses", array_of_addresses, "max_addresses", max_addresses);
    let counts =
        ("array_of_large_counts", array_of_large_counts, "max_large_counts", max_large_counts);
    let datatypes = ("array_of_datatypes", array_of_datatypes, "max_datatypes", max_datatypes);
    // SAFETY: the program has so much room.
    unsafe {
        check(&contents.parts, datatypes)?;
        fill(&contents.integers, integers)?;
        fill(&contents.addresses, addresses)?;
        fill(&contents.counts, counts)?;
        fill(&handles_of(contents)?, datatypes)
    }
}

/// An array of the program: its name, where it is, the name of its length, that.
type Room<T> = (&'static str, *mut T, &'static str, i64);

/// Checks that the program has room for so many values.
fn check<S, T>(
    values: &[S],
    (argument, place, length_argument, length): Room<T>,
) -> Result<(), Mistake> {
    if length < values.len() as i64 {
        return Err(Mistake::new(
            ERR_ARG,
            format_args!(
                "{length_argument} is {length}, but there are {}; ask MPI_Type_get_envelope first",
                values.len()
            ),
        ));
    }
    Ok(pointer::check(argument, place, values.len())?)
}

/// Writes values where the program has room for them.
///
/// # Safety
/// Unless null or misaligned, the array has so much room as the program says.
unsafe fn fill<T: Copy>(values: &[T], room: Room<T>) -> Result<(), Mistake> {
    check(values, room)?;
    for (index, value) in values.iter().enumerate() {
        // SAFETY: checked above; the program says that it is writable.
        unsafe { room.1.add(index).write(*value) };
    }
    Ok(())
}

fn contents_of(handle: Handle) -> Result<&'static Contents, Mistake> {
    let contents = &datatype::get("datatype", handle)?.contents;
    if contents.combiner == COMBINER_NAMED {
        return Err(Mistake::new(
            ERR_TYPE,
            format_args!("datatype is {handle:#x}, which has a name and was made of nothing"),
        ));
    }
    Ok(contents)
}

/// Functions for small counts cannot tell of large ones.
fn check_small(contents: &Contents) -> Result<(), Mistake> {
    if contents.counts.is_empty() {
        return Ok(());
    }
    Err(Mistake::new(
        ERR_TYPE,
        "datatype was made by a function for large counts; ask the function whose name ends in _c",
    ))
}

/// Memory of a handle and of what it leads to, about.
const BYTES_PER_PART: usize = 1 << 10;

/// Handles of what it was made of: those that stay for ever, and new ones that the program frees.
fn handles_of(contents: &Contents) -> Result<Vec<Handle>, Mistake> {
    room::for_many(contents.parts.len(), BYTES_PER_PART)?;
    let mut handles = Vec::with_capacity(contents.parts.len());
    for part in &contents.parts {
        match part.permanent.map_or_else(|| datatype::keep(Datatype::of_part(part)), Ok) {
            Ok(handle) => handles.push(handle),
            Err(mistake) => {
                for handle in handles {
                    // Those that stay for ever refuse.
                    let _ = datatype::free("array_of_datatypes", handle);
                }
                return Err(mistake);
            }
        }
    }
    Ok(handles)
}

fn count_of(length: usize) -> Result<c_int, Mistake> {
    c_int::try_from(length).map_err(|_| {
        Mistake::new(
            ERR_TYPE,
            format_args!(
                "datatype has {length} arguments; ask the function \
            whose name ends in _c"
            ),
        )
    })
}
