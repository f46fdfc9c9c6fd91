//! Structs of options that begin with their size. A program that was compiled with an older header works with
//! this library; so does one with a newer header, unless it sets an option that this library does not have.

use std::mem::MaybeUninit;

use landeck_c_boundary::pointer;

use crate::errors;
use crate::mistake::Mistake;

/// Largest size that is taken for one: a page.
const BYTES_MAX: usize = 4096;

/// A struct of options, in the form in which C has it. An option that is zero has its usual value.
///
/// # Safety
/// The struct begins with its size, a `usize`. Any bytes are a value of it.
pub(crate) unsafe trait Options: Copy {
    /// Its size in the first header that had it.
    const FIRST_BYTES: usize;
    /// The macro with which a program begins.
    const INITIALISER: &'static str;
}

/// Reads options of the size that the program says they have.
///
/// # Safety
/// Unless null or misaligned, the pointer leads to a readable size, and to as many readable bytes.
pub(crate) unsafe fn read<T: Options>(
    argument: &'static str,
    place: *const T,
) -> Result<T, Mistake> {
    // SAFETY: the caller's promise.
    let size_bytes = unsafe { pointer::read(argument, place.cast::<usize>()) }?;
    if !(T::FIRST_BYTES..=BYTES_MAX).contains(&size_bytes) {
        return Err(no_size::<T>(argument, size_bytes));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { pointer::slice(argument, place.cast::<u8>(), size_bytes) }?;
    let (known, unknown) = bytes.split_at(size_bytes.min(size_of::<T>()));
    if unknown.iter().any(|&byte| byte != 0) {
        return Err(newer::<T>(argument, size_bytes));
    }
    let mut options = MaybeUninit::<T>::zeroed();
    // SAFETY: these bytes are no more than it has, and any bytes are a value of it.
    unsafe {
        let start = options.as_mut_ptr().cast::<u8>();
        start.copy_from_nonoverlapping(known.as_ptr(), known.len());
        Ok(options.assume_init())
    }
}

#[cold]
fn no_size<T: Options>(argument: &str, size_bytes: usize) -> Mistake {
    let (least, initialiser) = (T::FIRST_BYTES, T::INITIALISER);
    let text = format!(
        "{argument}->size is {size_bytes}, which no version of deck.h has; it is {least} or more: begin the \
         options with {initialiser}"
    );
    Mistake::new(errors::OPTIONS, text)
}

#[cold]
fn newer<T: Options>(argument: &str, size_bytes: usize) -> Mistake {
    let (known, version) = (size_of::<T>(), env!("CARGO_PKG_VERSION"));
    let text = format!(
        "{argument} has {size_bytes} bytes and sets an option behind the {known} that this library, version \
         {version}, knows: leave that option 0, or run with the library that the program's deck.h belongs to"
    );
    Mistake::new(errors::OPTIONS, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options to which a number was added after the first version.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        size: usize,
        first: u64,
        added: u64,
    }

    // SAFETY: it begins with its size, and its fields are numbers.
    unsafe impl Options for Grown {
        const FIRST_BYTES: usize = size_of::<usize>() + 8;
        const INITIALISER: &'static str = "GROWN_INIT";
    }

    /// Reads what a program has in its memory.
    fn read_of(words: &[u64; 4]) -> Result<Grown, String> {
        // SAFETY: the words have as many bytes as the tests name, or the size is refused before.
        unsafe { read("options", words.as_ptr().cast::<Grown>()) }.map_err(|mistake| {
            assert_eq!(mistake.code(), errors::OPTIONS);
            mistake.to_string()
        })
    }

    #[test]
    fn options_of_an_older_header_lack_what_was_added() {
        let older = Grown { size: 16, first: 1, added: 0 };
        assert_eq!(read_of(&[16, 1, 2, 3]), Ok(older));
        assert_eq!(read_of(&[24, 1, 2, 3]), Ok(Grown { size: 24, first: 1, added: 2 }));
    }

    #[test]
    fn options_of_a_newer_header_may_set_what_is_known() {
        assert_eq!(read_of(&[32, 1, 2, 0]), Ok(Grown { size: 32, first: 1, added: 2 }));
        let refused = read_of(&[32, 1, 2, 3]).unwrap_err();
        assert!(refused.contains("32 bytes and sets an option behind the 24"), "{refused}");
    }

    #[test]
    fn sizes_that_no_header_has_are_refused() {
        for size in [0, 15, 4097, u64::MAX] {
            let refused = read_of(&[size, 1, 2, 3]).unwrap_err();
            let said = format!("options->size is {size}, which no version of deck.h has");
            assert!(refused.starts_with(&said) && refused.ends_with("GROWN_INIT"), "{refused}");
        }
    }
}
