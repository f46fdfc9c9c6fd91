//! The algorithms (architectures) of collective operations by name, and the means to write one.
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! # let world = landeck::Job::join()?.world();
//! use landeck::architecture::{Daisy, Flat};
//! world.via(Flat).barrier()?;
//! world.via(Daisy).barrier()?;
//! # Ok(()) }
//! ```

pub use landeck_collectives::architecture::*;
pub use landeck_collectives::{
    BoardStyle, Drawing, Group, GroupError, Operation, Preset, Task, Tree, Way,
};
