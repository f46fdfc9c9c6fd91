//! Counts of both widths: a function and its twin for large counts have one body, which sees wide
//! numbers.

use std::ffi::c_int;

use landeck_c_boundary::pointer::{self, PointerError};

use crate::abi::UNDEFINED;

/// An array of counts or displacements of the program, of either width. It is read by index and
/// never copied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts {
    Short(*const c_int),
    Wide(*const i64),
}

impl Counts {
    pub(crate) fn short(start: *const c_int) -> Self {
        Self::Short(start)
    }

    pub(crate) fn wide(start: *const i64) -> Self {
        Self::Wide(start)
    }

    /// Whether the function is the one for large counts.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self, Self::Wide(_))
    }

    /// Checks that there can be so many.
    pub(crate) fn check(&self, argument: &'static str, length: usize) -> Result<(), PointerError> {
        match *self {
            Self::Short(start) => pointer::check(argument, start, length),
            Self::Wide(start) => pointer::check(argument, start, length),
        }
    }

    /// One of them.
    ///
    /// # Safety
    /// [`Counts::check`] was told of more than `index`, and the program has so many there.
    #[inline]
    pub(crate) unsafe fn get(&self, index: usize) -> i64 {
        match *self {
            // SAFETY: as the caller says.
            Self::Short(start) => unsafe { i64::from(*start.add(index)) },
            // SAFETY: as the caller says.
            Self::Wide(start) => unsafe { *start.add(index) },
        }
    }
}

/// The place of a count that the program gets, or of a position that it gives and gets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CountPlace {
    Short(*mut c_int),
    Wide(*mut i64),
}

impl CountPlace {
    #[inline(always)]
    pub(crate) fn short(place: *mut c_int) -> Self {
        Self::Short(place)
    }

    #[inline(always)]
    pub(crate) fn wide(place: *mut i64) -> Self {
        Self::Wide(place)
    }

    /// Checks the place.
    pub(crate) fn check(&self, argument: &'static str) -> Result<(), PointerError> {
        match *self {
            Self::Short(place) => pointer::check(argument, place, 1),
            Self::Wide(place) => pointer::check(argument, place, 1),
        }
    }

    /// Reads the number.
    ///
    /// # Safety
    /// Unless null or misaligned, it is readable.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, argument: &'static str) -> Result<i64, PointerError> {
        match *self {
            // SAFETY: as the caller says.
            Self::Short(place) => unsafe { pointer::read(argument, place) }.map(i64::from),
            // SAFETY: as the caller says.
            Self::Wide(place) => unsafe { pointer::read(argument, place) },
        }
    }

    /// Writes a count; MPI_UNDEFINED where it is too large for the place.
    ///
    /// # Safety
    /// Unless null or misaligned, it is writable.
    #[inline(always)]
    pub(crate) unsafe fn write(
        &self,
        argument: &'static str,
        count: i64,
    ) -> Result<(), PointerError> {
        match *self {
            Self::Short(place) => {
                let count = c_int::try_from(count).unwrap_or(UNDEFINED);
                // SAFETY: as the caller says.
                unsafe { pointer::write(argument, place, count) }
            }
            // SAFETY: as the caller says.
            Self::Wide(place) => unsafe { pointer::write(argument, place, count) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths_are_read_by_index() {
        let (short, wide) = ([1, -2, 3], [1, -2, 3i64]);
        let both = [Counts::short(short.as_ptr()), Counts::wide(wide.as_ptr())];
        for counts in both {
            counts.check("counts", 3).unwrap();
            // SAFETY: both arrays have three.
            assert_eq!(unsafe { counts.get(1) }, -2);
        }
        assert!(Counts::short(std::ptr::null()).check("counts", 1).is_err());
    }

    #[test]
    fn a_count_that_is_too_large_for_its_place_is_undefined() {
        let (mut short, mut wide) = (0, 0i64);
        let places = [CountPlace::short(&raw mut short), CountPlace::wide(&raw mut wide)];
        for place in places {
            // SAFETY: both are writable.
            unsafe { place.write("count", 1 << 40) }.unwrap();
        }
        assert_eq!((short, wide), (UNDEFINED, 1 << 40));
    }
}
