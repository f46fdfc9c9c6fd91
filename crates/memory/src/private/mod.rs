//! Memory of one process: places to read from and to write to, and room for what others have said.

pub mod blocks;
pub mod bytes;
pub mod plain;
pub mod room;
