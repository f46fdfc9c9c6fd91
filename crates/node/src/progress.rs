//! The progress thread, which advances pending operations between calls, for programs that ask for
//! it.

pub use landeck_engine::Progress;
