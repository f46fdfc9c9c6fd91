//! One value of every process, at rank 0.

use landeck::{Plain, Result, World};

/// Brings one value of every process to rank 0, where they come out in the order of the ranks.
/// The other processes get nothing.
///
/// # Errors
/// As [`World::gather`].
pub fn gather<T: Plain>(world: &World, own: T) -> Result<Option<Vec<T>>> {
    let is_first = world.rank() == 0;
    let mut values = vec![own; if is_first { world.size() } else { 0 }];
    world.gather(&[own], &mut values, 0)?;
    Ok(is_first.then_some(values))
}
