//! Arguments that many functions have, checked.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use landeck::raw::Memory;
use landeck::world::{Source, TagFilter};
use landeck::{Any, Tag};
use landeck_c_boundary::{pointer, string};

use crate::abi::{
    ANY_SOURCE, ANY_TAG, BYTE, DATATYPE_NULL, ERR_BUFFER, ERR_ROOT, Handle, IN_PLACE,
    MAX_OBJECT_NAME, PROC_NULL, Status,
};
use crate::mistake::Mistake;
use crate::objects::datatype::{self, Datatype};

/// Items of the program that a message is made of, or that it fills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items {
    pub(crate) start: *mut u8,
    pub(crate) count: u64,
    pub(crate) datatype: &'static Arc<Datatype>,
}

impl Items {
    /// `count` items of a datatype at a buffer.
    #[inline]
    pub(crate) fn new(
        argument: &'static str,
        buffer: *const c_void,
        (count_argument, count): (&'static str, i64),
        datatype: Handle,
    ) -> Result<Self, Mistake> {
        let count = count_of(count_argument, count)?;
        let datatype = datatype::get_committed("datatype", datatype)?;
        refuse_in_place(argument, buffer, datatype.has_bytes(count))?;
        let start = buffer.cast::<u8>().cast_mut();
        if datatype.is_dense {
            let bytes = (count as usize).saturating_mul(datatype.size_bytes as usize);
            pointer::check(argument, start, bytes)
                .map_err(|error| Mistake::new(ERR_BUFFER, error))?;
        }
        Ok(Self { start, count, datatype })
    }

    /// The items of a message to or from a rank. No items of MPI_PROC_NULL need no datatype.
    #[inline]
    pub(crate) fn of_message(
        argument: &'static str,
        buffer: *const c_void,
        count: (&'static str, i64),
        datatype: Handle,
        partner: c_int,
    ) -> Result<Self, Mistake> {
        let is_nothing = partner == PROC_NULL && count.1 == 0 && datatype == DATATYPE_NULL;
        Self::new(argument, buffer, count, if is_nothing { BYTE } else { datatype })
    }

    /// As messages see them.
    #[inline]
    pub(crate) fn memory(&self) -> Memory<'static> {
        Memory { start: self.start, layout: &self.datatype.layout, count: self.count }
    }

    /// For operations that are started again and again.
    pub(crate) fn keep(&self) -> KeptItems {
        let datatype = Arc::clone(self.datatype);
        KeptItems { start: self.start, count: self.count, datatype }
    }

    /// Their bytes, if they lie one behind the other.
    pub(crate) fn dense_bytes(&self) -> Option<usize> {
        // It fits: `new` checked the end of the buffer.
        self.datatype.is_dense.then(|| self.count as usize * self.datatype.size_bytes as usize)
    }
}

/// Items one behind the other, without gaps, of a datatype of the library's own: all that most calls are
/// about. Who finds none goes the way that knows all datatypes, and says what is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) start: NonNull<u8>,
    pub(crate) bytes: usize,
}

impl Plain {
    /// `count` items of a datatype at a buffer.
    #[inline(always)]
    pub(crate) fn new(buffer: *const c_void, count: i64, datatype: Handle) -> Option<Self> {
        let item_bytes = datatype::plain_bytes(datatype);
        let count = u32::try_from(count).ok()?;
        let bytes = count as usize * item_bytes;
        // Neither null nor MPI_IN_PLACE.
        if buffer.addr() <= IN_PLACE {
            return None;
        }
        let start = NonNull::new(buffer.cast::<u8>().cast_mut())?;
        let fits = start.addr().get() <= isize::MAX as usize - bytes;
        (item_bytes > 0 && fits).then_some(Self { start, bytes })
    }
}

/// Items of an operation that is started again and again. It keeps the datatype, should the program
/// free that before.
#[derive(Debug)]
pub(crate) struct KeptItems {
    start: *mut u8,
    count: u64,
    datatype: Arc<Datatype>,
}

// SAFETY: the address is used when the program has left the items to the library, by whichever
// thread calls.
unsafe impl Send for KeptItems {}
// SAFETY: as above.
unsafe impl Sync for KeptItems {}

impl KeptItems {
    /// As messages see them.
    pub(crate) fn memory(&self) -> Memory<'_> {
        Memory { start: self.start, layout: &self.datatype.layout, count: self.count }
    }
}

/// Refuses MPI_IN_PLACE, which stands for a buffer in some collective operations alone. Where there is
/// nothing to move, the same address is as good as any: an empty array of bytes has it in some languages.
#[inline]
pub(crate) fn refuse_in_place(
    argument: &'static str,
    buffer: *const c_void,
    moves: bool,
) -> Result<(), Mistake> {
    if buffer.addr() != IN_PLACE || !moves {
        return Ok(());
    }
    let text = format!("{argument} is MPI_IN_PLACE, which it may not be here; pass a buffer");
    Err(Mistake::new(ERR_BUFFER, text))
}

/// A number of items.
#[inline]
pub(crate) fn count_of(argument: &str, count: i64) -> Result<u64, Mistake> {
    u64::try_from(count).map_err(|_| Mistake::count(argument, count))
}

/// A number of things in an array of the program.
#[inline]
pub(crate) fn length_of(argument: &str, count: c_int) -> Result<usize, Mistake> {
    usize::try_from(count).map_err(|_| Mistake::count(argument, i64::from(count)))
}

/// A rank to send to; none for MPI_PROC_NULL.
#[inline]
pub(crate) fn destination(value: c_int, size: u32) -> Result<Option<usize>, Mistake> {
    if value == PROC_NULL {
        return Ok(None);
    }
    rank("dest", value, size).map(Some)
}

/// Where a message may come from; none for MPI_PROC_NULL.
#[inline]
pub(crate) fn source(value: c_int, size: u32) -> Result<Option<Source>, Mistake> {
    match value {
        PROC_NULL => Ok(None),
        ANY_SOURCE => Ok(Some(Any.into())),
        value => rank("source", value, size).map(|rank| Some(rank.into())),
    }
}

/// The tag of a message.
#[inline]
pub(crate) fn tag(value: c_int) -> Result<Tag, Mistake> {
    u32::try_from(value).map(Tag).map_err(|_| Mistake::tag(value, false))
}

/// The tag of a message to receive.
#[inline]
pub(crate) fn wanted_tag(value: c_int) -> Result<TagFilter, Mistake> {
    if value == ANY_TAG {
        return Ok(Any.into());
    }
    u32::try_from(value).map(|tag| Tag(tag).into()).map_err(|_| Mistake::tag(value, true))
}

/// The root of a collective operation.
#[inline]
pub(crate) fn root(value: c_int, size: u32) -> Result<usize, Mistake> {
    usize::try_from(value).ok().filter(|rank| *rank < size as usize).ok_or_else(|| {
        let last = size - 1;
        let text = format!("root is {value}, but the communicator has the ranks 0 to {last}");
        Mistake::new(ERR_ROOT, text)
    })
}

/// A rank of a communicator.
#[inline]
pub(crate) fn rank(argument: &'static str, value: c_int, size: u32) -> Result<usize, Mistake> {
    usize::try_from(value)
        .ok()
        .filter(|rank| *rank < size as usize)
        .ok_or_else(|| Mistake::rank(argument, value, size))
}

/// Writes what a function gives where the program wants it.
///
/// # Safety
/// Unless null or misaligned, the place is writable.
#[inline]
pub(crate) unsafe fn give<T>(
    argument: &'static str,
    place: *mut T,
    value: T,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { pointer::write(argument, place, value) }.map_err(Mistake::from)
}

/// Fills the program's status, unless it is MPI_STATUS_IGNORE. Only an empty one says how the call
/// ended: other fields of that name are the program's.
///
/// # Safety
/// Unless null or misaligned, it is writable.
#[inline]
pub(crate) unsafe fn tell(place: *mut Status, status: Status) -> Result<(), Mistake> {
    if place.is_null() {
        return Ok(());
    }
    pointer::check("status", place, 1)?;
    // SAFETY: checked above; the rest is as the caller says.
    unsafe { status.write_to(place) };
    Ok(())
}

/// A text of the program, at most `limit` bytes long.
///
/// # Safety
/// As [`string::read`].
pub(crate) unsafe fn text(
    argument: &'static str,
    place: *const c_char,
    limit: usize,
) -> Result<String, Mistake> {
    // SAFETY: as the caller says.
    let text = unsafe { string::read(argument, place, limit)? };
    Ok(text.to_string_lossy().into_owned())
}

/// A name that the program gives an object. The standard has a long one cut off.
///
/// # Safety
/// As [`string::read_start`].
pub(crate) unsafe fn name(argument: &'static str, place: *const c_char) -> Result<String, Mistake> {
    // SAFETY: as the caller says.
    Ok(unsafe { string::read_start(argument, place, MAX_OBJECT_NAME as usize - 1)? })
}

/// Writes a text where the program has `capacity` bytes, and its length.
///
/// # Safety
/// Unless null, the first has so many writable bytes; the second is writable.
pub(crate) unsafe fn give_text(
    (argument, place): (&'static str, *mut c_char),
    capacity: c_int,
    text: &str,
    (length_argument, length): (&'static str, *mut c_int),
) -> Result<(), Mistake> {
    pointer::check(length_argument, length, 1)?;
    // SAFETY: as the caller says.
    unsafe {
        let written = string::write(argument, place, capacity as usize, text)?;
        give(length_argument, length, written as c_int)
    }
}
