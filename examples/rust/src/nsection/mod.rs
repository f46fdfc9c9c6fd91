//! Root finding by N-section.
//!
//! A function that is below zero at one end of an interval and above it at the other has a root in
//! between. N processes cut the interval into N parts and each looks at its own: does the sign
//! change in it? They tell each other, all take the part with the change as the new interval, and
//! begin again. Two processes halve the interval in each round, ten make it ten times shorter.
//!
//! ```text
//!     +---------+---------+---------+---------+
//!     |   rank 0|   rank 1|   rank 2|   rank 3|      sign changes in the part of rank 2
//!     +---------+---------+---------+---------+
//!                          +-+-+-+-+
//!                          |0|1|2|3|                 and there in the part of rank 0 ...
//!                          +-+-+-+-+
//! ```
//!
//! The program is known as a test for broadcasts: in *Network-Specific Performance Enhancements for
//! PVM* (G. Davies, N. Matloff, 1997) a master collects what the others have found, and broadcasts the
//! next interval. Here is no master: everybody learns what everybody has found, and comes to the same
//! conclusion.

pub mod function;
pub mod interval;

use landeck::{Plain, Result, World};

/// Tells every process a value, and returns those of all, in the order of the ranks.
///
/// # Errors
/// As [`World::all_gather`].
pub fn exchange<T: Plain>(world: &World, own: T) -> Result<Vec<T>> {
    let mut all = vec![own; world.size()];
    world.all_gather(&[own], &mut all)?;
    Ok(all)
}
