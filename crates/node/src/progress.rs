//! A thread that advances operations which go on while nobody calls, for programs that ask for it.

pub use landeck_engine::Progress;
