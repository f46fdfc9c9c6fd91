//! A caller's memory: so many items of a layout from an address on.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use landeck_kernel::{Area, Failure, area};
use landeck_layout::{Layout, LayoutError, Strip};
use landeck_memory::{Buffer, Bytes, Spread};

/// Items up to this length are packed at once rather than described to a message.
pub(crate) const SHORT_BYTES: usize = 4096;

/// So many items of a layout. The address is that of the first item's base, which need not be its
/// first byte.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// The first item.
    pub start: *const u8,
    /// What an item looks like.
    pub layout: &'a Layout,
    /// How many.
    pub count: u64,
}

impl Memory<'_> {
    /// Packs the bytes of the items from packed byte `first` on into `room`, as far as there are any;
    /// says how many that were.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] for items that are too large to be anywhere.
    ///
    /// # Safety
    /// The items are readable, and `room` is no part of them.
    pub unsafe fn pack(
        &self,
        first: u64,
        room: &mut [MaybeUninit<u8>],
    ) -> Result<usize, LayoutError> {
        // SAFETY: the caller's promise; the area is gone before this returns.
        let area = unsafe { self.area() }.map_err(|_| TOO_LARGE)?;
        Ok(area.pack(first, room))
    }

    /// Puts packed bytes into the items, from packed byte `first` on, as far as they have room.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] for items that are too large to be anywhere.
    ///
    /// # Safety
    /// The items are writable, and `packed` is no part of them.
    pub unsafe fn unpack(&self, first: u64, packed: &[u8]) -> Result<(), LayoutError> {
        // SAFETY: the caller's promise; the area is gone before this returns.
        let area = unsafe { self.area() }.map_err(|_| TOO_LARGE)?;
        area.write(first, Bytes::from(packed));
        Ok(())
    }

    /// Whether the items are short.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.layout.size_bytes().saturating_mul(self.count) <= SHORT_BYTES as u64
    }

    /// Short items, packed, as a message sees them; none if they are not anywhere.
    ///
    /// # Safety
    /// The items are readable, and `room` is there as long as the area is used.
    #[inline(never)]
    pub(crate) unsafe fn packed_area(
        &self,
        room: &mut [MaybeUninit<u8>; SHORT_BYTES],
    ) -> Option<Area> {
        let bytes = self.layout.packed_bytes(self.count).ok()?;
        let span = self.layout.span(self.count).ok()?;
        let length = usize::try_from(span.extent()?).ok()?;
        // SAFETY: the items lie there, and only their own bytes are read.
        let items = unsafe { Bytes::from_raw(self.at(span.lower), length) };
        let each = |strip: Strip| {
            let from = Spread { start: strip.offset - span.lower, stride: strip.stride };
            let to = Spread { start: strip.packed as i64, stride: strip.packed_stride as i64 };
            items.copy_blocks(from, room, to, area::out_of(&strip));
        };
        self.layout.strips(self.count, 0..bytes, each).ok()?;
        // SAFETY: the caller keeps the room, of which the strips have filled these bytes.
        let packed = unsafe { Buffer::new(NonNull::from(room).cast(), bytes as usize) };
        Some(Area::contiguous(packed))
    }

    /// The items as a message sees them.
    ///
    /// # Errors
    /// [`Failure::OutsideBuffer`] for items that are too large to be anywhere.
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

    /// The items, if they are a plain run of bytes, which most memory is.
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

const TOO_LARGE: LayoutError = LayoutError::TooLarge { what: "the extent" };

pub(crate) fn too_large() -> Failure {
    Failure::OutsideBuffer { buffer_bytes: usize::MAX }
}
