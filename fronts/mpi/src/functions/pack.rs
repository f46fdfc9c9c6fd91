//! Packing and unpacking by the program's own hand, for messages of this machine and in the portable
//! format.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;

use landeck::layout::ConversionError;
use landeck::raw::Moves;
use landeck::unstable::memory::room;
use landeck_c_boundary::{pointer, string};

use crate::abi::{
    ERR_ARG, ERR_CONVERSION, ERR_TRUNCATE, ERR_UNSUPPORTED_DATAREP, Handle, IN_PLACE,
    MAX_DATAREP_STRING, UNDEFINED,
};
use crate::arguments::{Items, count_of, give, refuse_in_place};
use crate::counts::CountPlace;
use crate::mistake::Mistake;
use crate::objects::datatype::Datatype;
use crate::objects::{communicator, datatype};

/// Packs items behind what was packed before.
///
/// To pack some hundred bytes takes a dozen nanoseconds, so the call takes few: see [`Short`].
#[inline(always)]
pub(crate) unsafe fn pack(
    inbuf: *const c_void,
    incount: i64,
    datatype: Handle,
    outbuf: *mut c_void,
    outsize: i64,
    position: CountPlace,
    comm: Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program says that the position can be read and written, that the items are readable,
    // and that it has so much room, which is no part of them.
    unsafe {
        let items = (inbuf, incount, datatype);
        if let Some(short) = Short::find(items, outbuf, outsize, position, comm) {
            short.moves.pack(inbuf.cast(), short.count, short.packed);
            let _ = position.write("position", short.end);
            return Ok(());
        }
        pack_any(inbuf, incount, datatype, outbuf, outsize, position, comm)
    }
}

/// The short way: what the call says of items of a committed datatype whose moves are known, between two
/// buffers that there can be. Nothing is said of mistakes here: what is not so goes the way that does.
struct Short {
    moves: &'static Moves,
    count: u64,
    /// Where the packed bytes begin.
    packed: *mut u8,
    /// The position behind them.
    end: i64,
}

impl Short {
    /// # Safety
    /// Unless null or misaligned, the position is readable.
    #[inline(always)]
    unsafe fn find(
        (items, count, datatype): (*const c_void, i64, Handle),
        packed: *const c_void,
        size: i64,
        position: CountPlace,
        comm: Handle,
    ) -> Option<Self> {
        communicator::find(comm)?;
        let moves = datatype::find_committed(datatype)?.moves();
        let count = count as u64;
        let needed = moves.packed_bytes(count)?;
        // SAFETY: the caller's promise.
        let start = unsafe { position.read("position") }.ok()?;
        // Both buffers must be somewhere; of those that reach very far the other way knows more.
        let fits = start >= 0 && size.checked_sub(start)? >= needed as i64;
        let end = packed.addr().checked_add(size as usize)?;
        let are_there = items.addr() > IN_PLACE && packed.addr() > IN_PLACE;
        let is_there = are_there && end <= isize::MAX as usize;
        if !fits || !is_there || (items.addr() | needed) > ADDRESS_MAX {
            return None;
        }
        let packed = packed.cast::<u8>().cast_mut().wrapping_add(start as usize);
        Some(Self { moves, count, packed, end: start + needed as i64 })
    }
}

/// No sum of two that are not above can be beyond the addresses that there are.
const ADDRESS_MAX: usize = isize::MAX as usize / 2;

#[inline(never)]
unsafe fn pack_any(
    inbuf: *const c_void,
    incount: i64,
    datatype: Handle,
    outbuf: *mut c_void,
    outsize: i64,
    position: CountPlace,
    comm: Handle,
) -> Result<(), Mistake> {
    communicator::get("comm", comm)?;
    let items = Items::new("inbuf", inbuf, ("incount", incount), datatype)?;
    // SAFETY: the program says that it is readable.
    let start = unsafe { position.read("position")? };
    let needed = items.datatype.layout.packed_bytes(items.count)?;
    let range = room_of(("outsize", outsize), start, needed)?;
    refuse_in_place("outbuf", outbuf, range.end > 0)?;
    // SAFETY: the program has so much room, which is no part of the items.
    unsafe {
        let room = pointer::slice_mut("outbuf", outbuf.cast::<MaybeUninit<u8>>(), range.end)?;
        items.memory().pack(0, &mut room[range.clone()])?;
        position.write("position", range.end as i64)?;
    }
    Ok(())
}

/// Unpacks items from where the last ones ended.
#[inline(always)]
pub(crate) unsafe fn unpack(
    inbuf: *const c_void,
    insize: i64,
    position: CountPlace,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: Handle,
    comm: Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program says that the position can be read and written, that it has so many bytes
    // there, and that the items are writable and elsewhere.
    unsafe {
        let items = (outbuf.cast_const(), outcount, datatype);
        if let Some(short) = Short::find(items, inbuf, insize, position, comm) {
            short.moves.unpack(short.packed, outbuf.cast(), short.count);
            let _ = position.write("position", short.end);
            return Ok(());
        }
        unpack_any(inbuf, insize, position, outbuf, outcount, datatype, comm)
    }
}

#[inline(never)]
unsafe fn unpack_any(
    inbuf: *const c_void,
    insize: i64,
    position: CountPlace,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: Handle,
    comm: Handle,
) -> Result<(), Mistake> {
    communicator::get("comm", comm)?;
    let items = Items::new("outbuf", outbuf, ("outcount", outcount), datatype)?;
    // SAFETY: the program says that it is readable.
    let start = unsafe { position.read("position")? };
    let needed = items.datatype.layout.packed_bytes(items.count)?;
    let range = room_of(("insize", insize), start, needed)?;
    refuse_in_place("inbuf", inbuf, range.end > 0)?;
    // SAFETY: the program has so many bytes there, and says that the items are writable and elsewhere.
    unsafe {
        let bytes = pointer::slice("inbuf", inbuf.cast::<u8>(), range.end)?;
        items.memory().unpack(0, &bytes[range.clone()])?;
        position.write("position", range.end as i64)?;
    }
    Ok(())
}

/// How much room items need, packed.
pub(crate) unsafe fn pack_size(
    incount: i64,
    datatype: Handle,
    comm: Handle,
    size: CountPlace,
) -> Result<(), Mistake> {
    communicator::get("comm", comm)?;
    let count = count_of("incount", incount)?;
    let bytes = datatype::get("datatype", datatype)?.layout.packed_bytes(count)?;
    // SAFETY: the program says that it is writable.
    unsafe { size.write("size", wide(bytes)) }.map_err(Mistake::from)
}

/// Packs items in the portable format behind what was packed before.
pub(crate) unsafe fn pack_external(
    datarep: *const c_char,
    inbuf: *const c_void,
    incount: i64,
    datatype: Handle,
    outbuf: *mut c_void,
    outsize: i64,
    position: *mut i64,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a text, or it is refused.
    unsafe { check_format(datarep)? };
    let items = Items::new("inbuf", inbuf, ("incount", incount), datatype)?;
    // SAFETY: the program says that it is readable.
    let start = unsafe { pointer::read("position", position)? };
    let needed = items.datatype.layout.external_bytes(items.count)?;
    let range = room_of(("outsize", outsize), start, needed)?;
    refuse_in_place("outbuf", outbuf, range.end > 0)?;
    pointer::check("outbuf", outbuf.cast::<u8>(), range.end)?;
    let mut at = range.start;
    for part in Parts::new(&items)? {
        let mut external = room::zeroes(part.external_bytes)?;
        // SAFETY: the program says that the items are readable, and has room for what they become.
        unsafe {
            let native = part.packed(&items)?;
            part.datatype.layout.to_external(part.count, &native, &mut external)?;
            let target = outbuf.cast::<u8>().add(at);
            std::ptr::copy_nonoverlapping(external.as_ptr(), target, external.len());
        }
        at += external.len();
    }
    // SAFETY: read above; the program says that it is writable too.
    unsafe { give("position", position, range.end as i64) }
}

/// Unpacks items in the portable format from where the last ones ended.
pub(crate) unsafe fn unpack_external(
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: i64,
    position: *mut i64,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a text, or it is refused.
    unsafe { check_format(datarep)? };
    let items = Items::new("outbuf", outbuf, ("outcount", outcount), datatype)?;
    // SAFETY: the program says that it is readable.
    let start = unsafe { pointer::read("position", position)? };
    let needed = items.datatype.layout.external_bytes(items.count)?;
    let range = room_of(("insize", insize), start, needed)?;
    refuse_in_place("inbuf", inbuf, range.end > 0)?;
    // SAFETY: the program has so many bytes there.
    let bytes = unsafe { pointer::slice("inbuf", inbuf.cast::<u8>(), range.end)? };
    let mut at = range.start;
    for part in Parts::new(&items)? {
        let mut native = room::zeroes(part.native_bytes)?;
        let given = &bytes[at..at + part.external_bytes];
        part.datatype.layout.from_external(part.count, given, &mut native)?;
        // SAFETY: the program says that the items are writable.
        unsafe { items.memory().unpack(part.first, &native)? };
        at += part.external_bytes;
    }
    // SAFETY: read above; the program says that it is writable too.
    unsafe { give("position", position, range.end as i64) }
}

/// How much room items need in the portable format.
pub(crate) unsafe fn pack_external_size(
    datarep: *const c_char,
    incount: i64,
    datatype: Handle,
    size: *mut i64,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a text, or it is refused.
    unsafe { check_format(datarep)? };
    let count = count_of("incount", incount)?;
    let bytes = datatype::get("datatype", datatype)?.layout.external_bytes(count)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("size", size, wide(bytes)) }
}

/// Where packed bytes go that begin at `start` of so many bytes.
fn room_of(
    (argument, size): (&'static str, i64),
    start: i64,
    needed: u64,
) -> Result<Range<usize>, Mistake> {
    let size = usize::try_from(size).map_err(|_| {
        Mistake::new(ERR_ARG, format_args!("{argument} is {size}; it must be 0 or more"))
    })?;
    let start = usize::try_from(start).ok().filter(|start| *start <= size).ok_or_else(|| {
        let text =
            format!("position is {start}; it must be 0 or more and {size} ({argument}) or less");
        Mistake::new(ERR_ARG, text)
    })?;
    let end = usize::try_from(needed).ok().and_then(|needed| start.checked_add(needed));
    match end.filter(|end| *end <= size) {
        Some(end) => Ok(start..end),
        None => Err(Mistake::new(
            ERR_TRUNCATE,
            format_args!(
                "{argument} is {size} and position {start}, but the items have {needed} bytes more"
            ),
        )),
    }
}

/// Checks that the format is the one there is.
///
/// # Safety
/// As [`string::read`].
unsafe fn check_format(datarep: *const c_char) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    let format = unsafe { string::read("datarep", datarep, MAX_DATAREP_STRING as usize)? };
    if format == c"external32" {
        return Ok(());
    }
    Err(Mistake::new(
        ERR_UNSUPPORTED_DATAREP,
        format_args!("datarep is \"{}\"; pass \"external32\"", format.to_string_lossy()),
    ))
}

/// The most packed bytes that are converted at once, unless a single item has more.
const CONVERTED_BYTES: u64 = 64 * 1024;

/// Items in parts that are converted one after the other.
struct Parts {
    datatype: &'static Datatype,
    left: u64,
    /// Items in a part.
    step: u64,
    /// The first packed byte of the next part.
    first: u64,
}

/// Some whole items.
struct PackPart {
    datatype: &'static Datatype,
    count: u64,
    first: u64,
    native_bytes: usize,
    external_bytes: usize,
}

impl Parts {
    fn new(items: &Items) -> Result<Self, Mistake> {
        let size = items.datatype.size_bytes;
        // No part is beyond 63 bits, as all together are not.
        items.datatype.layout.packed_bytes(items.count)?;
        let left = if size == 0 { 0 } else { items.count };
        let step = (CONVERTED_BYTES / size.max(1)).max(1);
        Ok(Self { datatype: items.datatype, left, step, first: 0 })
    }
}

impl Iterator for Parts {
    type Item = PackPart;

    fn next(&mut self) -> Option<PackPart> {
        let count = self.step.min(self.left);
        if count == 0 {
            return None;
        }
        let native_bytes = count * self.datatype.size_bytes;
        let external_bytes = self.datatype.layout.external_bytes(count).ok()? as usize;
        let first = self.first;
        (self.left, self.first) = (self.left - count, first + native_bytes);
        let native_bytes = native_bytes as usize;
        Some(PackPart { datatype: self.datatype, count, first, native_bytes, external_bytes })
    }
}

impl PackPart {
    /// Its bytes, one behind the other.
    ///
    /// # Safety
    /// The items are readable.
    unsafe fn packed(&self, items: &Items) -> Result<Vec<u8>, Mistake> {
        let mut packed = room::list(self.native_bytes)?;
        let room = &mut packed.spare_capacity_mut()[..self.native_bytes];
        // SAFETY: as the caller says; the room is new. So many bytes are there afterwards.
        unsafe {
            let length = items.memory().pack(self.first, room)?;
            packed.set_len(length);
        }
        Ok(packed)
    }
}

/// A size, which has 63 bits, as the program gets it.
fn wide(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(UNDEFINED.into())
}

impl From<ConversionError> for Mistake {
    #[cold]
    fn from(error: ConversionError) -> Self {
        Self::new(ERR_CONVERSION, error)
    }
}
