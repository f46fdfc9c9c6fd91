//! How a datatype was made: what MPI_Type_get_envelope and MPI_Type_get_contents tell.

use std::ffi::c_int;
use std::sync::Arc;

use landeck::layout::Layout;
use landeck::unstable::arithmetic::Element;

use crate::abi::{COMBINER_NAMED, Handle};

/// The constructor of a datatype and its arguments, in the order of the standard's tables.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) combiner: c_int,
    pub(crate) integers: Vec<c_int>,
    pub(crate) addresses: Vec<i64>,
    /// The counts and offsets of a constructor for large counts.
    pub(crate) counts: Vec<i64>,
    pub(crate) parts: Vec<ContentsPart>,
    is_large: bool,
}

/// A datatype that another one was made of.
#[derive(Clone, Debug)]
pub(crate) struct ContentsPart {
    /// Its handle, if that stays for ever.
    pub(crate) permanent: Option<Handle>,
    pub(crate) layout: Layout,
    pub(crate) element: Option<Element>,
    pub(crate) contents: Arc<Contents>,
}

impl Contents {
    /// Those of a datatype with a name.
    pub(crate) fn named() -> Self {
        Self::of(COMBINER_NAMED, false)
    }

    /// Those of a constructor, without arguments yet; whether it is one for large counts.
    pub(crate) fn of(combiner: c_int, is_large: bool) -> Self {
        Self {
            combiner,
            integers: Vec::new(),
            addresses: Vec::new(),
            counts: Vec::new(),
            parts: Vec::new(),
            is_large,
        }
    }

    /// Arguments that are integers in both forms of the constructor.
    pub(crate) fn integers(mut self, integers: &[c_int]) -> Self {
        self.integers.extend_from_slice(integers);
        self
    }

    /// Arguments that are counts, or offsets in items.
    pub(crate) fn numbers(mut self, numbers: &[i64]) -> Self {
        if self.is_large {
            self.counts.extend_from_slice(numbers);
        } else {
            // They came as integers.
            self.integers.extend(numbers.iter().map(|number| *number as c_int));
        }
        self
    }

    /// Arguments that are offsets in bytes.
    pub(crate) fn offsets(mut self, offsets: &[i64]) -> Self {
        let list = if self.is_large { &mut self.counts } else { &mut self.addresses };
        list.extend_from_slice(offsets);
        self
    }

    /// Arguments that are datatypes.
    pub(crate) fn parts(mut self, parts: impl IntoIterator<Item = ContentsPart>) -> Self {
        self.parts.extend(parts);
        self
    }
}
