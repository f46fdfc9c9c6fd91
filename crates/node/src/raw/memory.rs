//! The memory of a caller: items of a layout, starting at an address.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use landeck_kernel::{Area, Failure, area};
use landeck_layout::{Layout, LayoutError, Strip};
use landeck_memory::{Buffer, Bytes, Spread};

/// Bytes up to which items are packed at once instead of being described to a message.
pub(crate) const SHORT_BYTES: usize = 4096;

/// Items of a layout in memory. The address is that of the first item's base, which need not be its
/// first byte.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// The base of the first item.
    pub start: *const u8,
    /// The layout of one item.
    pub layout: &'a Layout,
    /// The number of items.
    pub count: u64,
}

impl Memory<'_> {
    /// Packs the bytes of the items, starting at packed byte `first`, to `room`. Returns how many
    /// bytes were packed: as many as fit and exist.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] for items that exceed the address space.
    ///
    /// # Safety
    /// The items are readable, and `room` is no part of them.
    pub unsafe fn pack(
        &self,
        first: u64,
        room: &mut [MaybeUninit<u8>],
    ) -> Result<usize, LayoutError> {
        // SAFETY: the caller's promise.
        unsafe {
            self.each_strip(first, room.len(), |items, lower, strip| {
                let (from, to) = spreads(&strip, lower);
                items.bytes().copy_blocks(from, room, to, area::out_of(&strip));
            })
        }
    }

    /// Unpacks bytes into the items, starting at packed byte `first`, as far as the items have
    /// room.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] for items that exceed the address space.
    ///
    /// # Safety
    /// The items are writable, and `packed` is no part of them.
    pub unsafe fn unpack(&self, first: u64, packed: &[u8]) -> Result<(), LayoutError> {
        // SAFETY: the caller's promise.
        unsafe {
            self.each_strip(first, packed.len(), |items, lower, strip| {
                let (to, from) = spreads(&strip, lower);
                items.write_blocks(to, Bytes::from(packed), from, area::into(&strip));
            })
        }
        .map(drop)
    }

    /// Calls `each` with the memory between the outermost bytes of the items, its start, and the
    /// strips of the packed bytes from `first` on, at most `most` bytes. Returns the number of
    /// these bytes.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] for items that exceed the address space.
    ///
    /// # Safety
    /// As [`Buffer::new`], for the bytes of the items.
    #[inline]
    unsafe fn each_strip(
        &self,
        first: u64,
        most: usize,
        mut each: impl FnMut(&Buffer, i64, Strip),
    ) -> Result<usize, LayoutError> {
        let length = self.layout.packed_bytes(self.count)?.saturating_sub(first).min(most as u64);
        if length == 0 {
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        if let Some(items) = unsafe { self.one_piece() } {
            each(&items, 0, area::block(first as i64, 0, length as usize));
            return Ok(length as usize);
        }
        let span = self.layout.span(self.count)?;
        let bytes = span.extent().and_then(|bytes| usize::try_from(bytes).ok()).ok_or(TOO_LARGE)?;
        // SAFETY: the caller's promise: the items lie there, and only their own bytes are touched.
        let items = unsafe { Buffer::new(self.at(span.lower), bytes) };
        self.layout.strips(self.count, first..first + length, |strip| {
            each(&items, span.lower, strip);
        })?;
        Ok(length as usize)
    }

    /// Returns whether the items are short.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.layout.size_bytes().saturating_mul(self.count) <= SHORT_BYTES as u64
    }

    /// Returns short items in packed form as an area; `None` if their addresses overflow.
    ///
    /// # Safety
    /// The items are readable, and `room` is there as long as the area is used.
    #[inline(never)]
    pub(crate) unsafe fn packed_area(
        &self,
        room: &mut [MaybeUninit<u8>; SHORT_BYTES],
    ) -> Option<Area> {
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.pack(0, room) }.ok()?;
        // SAFETY: the caller keeps the room, of which the strips have filled these bytes.
        let packed = unsafe { Buffer::new(NonNull::from(room).cast(), bytes) };
        Some(Area::contiguous(packed))
    }

    /// Returns the items as an area.
    ///
    /// # Errors
    /// [`Failure::OutsideBuffer`] for items that exceed the address space.
    ///
    /// # Safety
    /// As [`Buffer::new`], for the bytes of the items.
    #[inline]
    pub(crate) unsafe fn area(&self) -> Result<Area, Failure> {
        // SAFETY: the caller's promise.
        unsafe {
            match self.one_piece() {
                Some(buffer) => Ok(Area::contiguous(buffer)),
                None => self.area_of_parts(),
            }
        }
    }

    /// Returns the items as a buffer, if they are contiguous, as most memory is.
    ///
    /// # Safety
    /// As [`Memory::area`].
    #[inline]
    pub(crate) unsafe fn one_piece(&self) -> Option<Buffer> {
        let piece = self.layout.single_piece(self.count)?;
        if piece.length == 0 {
            return Some(Buffer::EMPTY);
        }
        // SAFETY: the caller's promise: these are exactly the bytes of the items.
        Some(unsafe { Buffer::new(self.at(piece.offset), piece.length) })
    }

    /// # Safety
    /// As [`Memory::area`].
    #[cold]
    #[inline(never)]
    unsafe fn area_of_parts(&self) -> Result<Area, Failure> {
        if self.layout.packed_bytes(self.count).map_err(|_| too_large())? == 0 {
            return Ok(Area::EMPTY);
        }
        let span = self.layout.span(self.count).map_err(|_| too_large())?;
        let bytes = span.extent().and_then(|bytes| usize::try_from(bytes).ok());
        // SAFETY: the caller's promise: the items lie between these bounds, and only their own
        // bytes are touched.
        let buffer = unsafe { Buffer::new(self.at(span.lower), bytes.ok_or_else(too_large)?) };
        Area::with_layout(buffer, -span.lower, self.layout, self.count)
    }

    fn at(&self, offset: i64) -> NonNull<u8> {
        let start = self.start.wrapping_offset(offset as isize);
        NonNull::new(start.cast_mut()).unwrap_or(NonNull::dangling())
    }
}

/// Returns the positions of a strip's blocks in memory that begins at `lower`, and among the packed
/// bytes.
fn spreads(strip: &Strip, lower: i64) -> (Spread, Spread) {
    let packed = Spread { start: strip.packed as i64, stride: strip.packed_stride as i64 };
    (Spread { start: strip.offset - lower, stride: strip.stride }, packed)
}

const TOO_LARGE: LayoutError = LayoutError::TooLarge { what: "the extent" };

pub(crate) fn too_large() -> Failure {
    Failure::OutsideBuffer { buffer_bytes: usize::MAX }
}
