//! A user's own function that combines two elements.

use std::fmt;
use std::slice;
use std::sync::Arc;

use crate::association::{self, HELD_MAX, Operand, Target};
use crate::scratch::Areas;
use crate::{ReductionError, Scratch};

/// The length of the parts of each input that are combined at a time, if an element is not longer.
const CHUNK_BYTES: usize = 4096;

/// A function from `left` and `right` to `left op right`, which it writes over `right`, for whole elements of one
/// width. It must be associative, and need not be commutative.
///
/// It is called with parts of the inputs, at most 4,096 bytes or one element at a time, and sees private copies only,
/// aligned to 64 bytes: whatever others write meanwhile, the two slices do not change. It may unwind; only the result
/// is lost then.
#[derive(Clone)]
pub struct UserFunction {
    function: Arc<Function>,
    element_bytes: usize,
    is_commutative: bool,
}

type Function = dyn Fn(&[u8], &mut [u8]) + Send + Sync;

impl UserFunction {
    /// Creates a function for which `left op right` is `right op left`.
    ///
    /// # Errors
    /// [`ReductionError::EmptyElement`] if an element has no bytes.
    pub fn commutative(
        element_bytes: usize,
        function: impl Fn(&[u8], &mut [u8]) + Send + Sync + 'static,
    ) -> Result<Self, ReductionError> {
        Self::new(element_bytes, true, Arc::new(function))
    }

    /// Creates a function whose operands stay in rank order.
    ///
    /// # Errors
    /// [`ReductionError::EmptyElement`] if an element has no bytes.
    pub fn ordered(
        element_bytes: usize,
        function: impl Fn(&[u8], &mut [u8]) + Send + Sync + 'static,
    ) -> Result<Self, ReductionError> {
        Self::new(element_bytes, false, Arc::new(function))
    }

    fn new(
        element_bytes: usize,
        is_commutative: bool,
        function: Arc<Function>,
    ) -> Result<Self, ReductionError> {
        if element_bytes == 0 {
            return Err(ReductionError::EmptyElement);
        }
        Ok(Self { function, element_bytes, is_commutative })
    }

    /// Whether operands may be swapped.
    pub fn is_commutative(&self) -> bool {
        self.is_commutative
    }

    /// The width of one element in bytes.
    pub fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    /// Combines all inputs, given in rank order, in the canonical association, as
    /// [`Reduction::combine_in_order`](crate::Reduction::combine_in_order) does. While the function
    /// runs, no frame of this call owns anything.
    ///
    /// # Safety
    /// The requirements of [`Reduction::combine_in_order`](crate::Reduction::combine_in_order).
    ///
    /// # Errors
    /// [`ReductionError::CutUserElement`] or [`ReductionError::NoInputs`]; nothing is written in these cases.
    pub unsafe fn combine_in_order(
        &self,
        inputs: &[*const u8],
        into: *mut u8,
        length_bytes: usize,
        scratch: &mut Scratch,
    ) -> Result<(), ReductionError> {
        let element_bytes = self.element_bytes;
        if !length_bytes.is_multiple_of(element_bytes) {
            return Err(ReductionError::CutUserElement { length_bytes, element_bytes });
        }
        match *inputs {
            [] => return Err(ReductionError::NoInputs),
            // SAFETY: the caller guarantees both places; they may be the same.
            [only] => unsafe { std::ptr::copy(only, into, length_bytes) },
            // SAFETY: the caller's guarantees are passed on unchanged.
            _ => unsafe { self.combine_in_chunks(inputs, into, length_bytes, scratch) },
        }
        Ok(())
    }

    /// Combines part by part.
    ///
    /// # Safety
    /// The requirements of [`UserFunction::combine_in_order`].
    unsafe fn combine_in_chunks(
        &self,
        inputs: &[*const u8],
        into: *mut u8,
        length_bytes: usize,
        scratch: &mut Scratch,
    ) {
        let chunk_max_bytes = (CHUNK_BYTES / self.element_bytes).max(1) * self.element_bytes;
        let held = association::held_max(inputs.len());
        let areas = scratch.areas(held + 2, chunk_max_bytes.min(length_bytes));
        for offset in (0..length_bytes).step_by(chunk_max_bytes) {
            let bytes = chunk_max_bytes.min(length_bytes - offset);
            let mut desk = Desk::new(areas, held, bytes);
            association::walk(inputs.len(), |left, right, target| {
                // SAFETY: the chunk lies within every input and the result, as the caller guarantees, and within every
                // area. The result may lie on an input: all have been copied when the last step writes it.
                unsafe {
                    let left = desk.left(left, inputs, offset);
                    let right = desk.right(right, inputs, offset);
                    desk.call(&*self.function, left, right);
                    match target {
                        Target::Held(index) => desk.slots.swap(index, right),
                        Target::Result => desk.copy_out(right, into.wrapping_add(offset)),
                    }
                }
            });
        }
    }
}

/// The private memory in which one part is combined. The function writes its result over its right operand, so places
/// for held values exchange their areas instead of moving the content.
struct Desk {
    areas: Areas,
    bytes: usize,
    /// The present area of each place for a held value, then that of a right input.
    slots: [u8; HELD_MAX + 1],
    /// The number of places in use, which is also the slot for a right input.
    held: usize,
}

impl Desk {
    fn new(areas: Areas, held: usize, bytes: usize) -> Self {
        Self { areas, bytes, slots: std::array::from_fn(|index| index as u8), held }
    }

    /// The place of the left operand, after an input was copied.
    ///
    /// # Safety
    /// Every input is readable for a part from the offset.
    unsafe fn left(&self, operand: Operand, inputs: &[*const u8], offset: usize) -> *const u8 {
        match operand {
            Operand::Held(index) => self.place(index),
            Operand::Input(rank) => {
                let copy = self.areas.at(self.held + 1);
                // SAFETY: the caller guarantees the input; an area is private and holds a part.
                unsafe { self.copy(inputs[rank].wrapping_add(offset), copy) };
                copy
            }
        }
    }

    /// The slot of the right operand, after an input was copied.
    ///
    /// # Safety
    /// The requirements of [`Desk::left`].
    unsafe fn right(&self, operand: Operand, inputs: &[*const u8], offset: usize) -> usize {
        match operand {
            Operand::Held(index) => index,
            Operand::Input(rank) => {
                // SAFETY: the caller guarantees the input, and this area is private and holds a part.
                unsafe { self.copy(inputs[rank].wrapping_add(offset), self.place(self.held)) };
                self.held
            }
        }
    }

    /// Calls the function; its result is in the right operand's slot.
    ///
    /// # Safety
    /// The left operand lies in another area than this slot's, and both were filled.
    unsafe fn call(&self, function: &Function, left: *const u8, right: usize) {
        // SAFETY: the caller guarantees two different, filled areas; areas are private, do not overlap and hold a part.
        let (left, right) = unsafe {
            (
                slice::from_raw_parts(left, self.bytes),
                slice::from_raw_parts_mut(self.place(right), self.bytes),
            )
        };
        function(left, right);
    }

    /// Copies a slot's value to the result.
    ///
    /// # Safety
    /// The result is writable for a part.
    unsafe fn copy_out(&self, slot: usize, into: *mut u8) {
        // SAFETY: the caller guarantees the result, and a slot has a part.
        unsafe { self.copy(self.place(slot), into) };
    }

    /// Copies a part between an area and an outside place.
    ///
    /// # Safety
    /// `from` is readable and `into` writable for a part.
    unsafe fn copy(&self, from: *const u8, into: *mut u8) {
        // SAFETY: the caller guarantees both; an area is private, so they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, into, self.bytes) };
    }

    fn place(&self, slot: usize) -> *mut u8 {
        self.areas.at(usize::from(self.slots[slot]))
    }
}

impl fmt::Debug for UserFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.is_commutative { "commutative" } else { "ordered" };
        write!(formatter, "UserFunction({order}, elements of {} bytes)", self.element_bytes)
    }
}
