//! The numbers by which programs hold objects.

/// An object as the program holds it: a number in memory of its own, which may be copied.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) u64);
