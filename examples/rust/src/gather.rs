//! One value of every process, at rank 0.

use landeck::{Plain, Result, Tag, World};

const TAG: Tag = Tag(100);

/// Brings one value of every process to rank 0, where they come out in the order of the ranks.
/// The other processes get nothing.
///
/// The order matters for numbers that are added up afterwards: sums of floating-point numbers
/// depend on the order, so whoever came first must not decide it.
///
/// # Errors
/// As [`World::send`] and [`World::receive`].
pub fn gather<T: Plain>(world: &World, own: T) -> Result<Option<Vec<T>>> {
    if world.rank() != 0 {
        world.send(&[own], 0, TAG)?;
        return Ok(None);
    }
    let mut values = vec![own];
    for rank in 1..world.size() {
        let (value, _status) = world.receive(rank, TAG)?;
        values.push(value);
    }
    Ok(Some(values))
}
