//! Finds out which of several requests are over.

use landeck::{World, raw};
use landeck_c_boundary::room;

use super::Several;
use crate::mistake::Mistake;
use crate::objects::request::{self, Found, WaitsFor};

/// The state of several requests.
#[derive(Debug)]
pub(super) enum Known {
    /// None of them was started.
    NoneActive,
    /// None of them is over.
    NoneOver,
    /// This one is, perhaps not only.
    Over(usize),
}

/// So many requests are looked at without asking for memory.
const FEW: usize = 16;

/// Waits until one of the requests is over.
///
/// # Safety
/// The program has requests as it says.
pub(super) unsafe fn wait_any(several: Several) -> Result<Known, Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        with_operations(several, |watched| {
            loop {
                let world = match watched.at_once() {
                    Ok(world) => world,
                    Err(known) => return Ok(known),
                };
                let Some(index) = raw::wait_any(world, watched.operations)? else {
                    return Ok(Known::NoneActive);
                };
                if watched.is_through(index)? {
                    return Ok(Known::Over(index));
                }
            }
        })
    }
}

/// Looks whether one of the requests is over.
///
/// # Safety
/// As [`wait_any`].
pub(super) unsafe fn test_any(several: Several) -> Result<Known, Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        with_operations(several, |watched| {
            loop {
                let world = match watched.at_once() {
                    Ok(world) => world,
                    Err(known) => return Ok(known),
                };
                let Some(index) = raw::find_over(world, watched.operations)? else {
                    return Ok(Known::NoneOver);
                };
                if watched.is_through(index)? {
                    return Ok(Known::Over(index));
                }
                watched.operations[index] = None;
            }
        })
    }
}

/// Looks whether all of the requests are over, or were not started.
///
/// # Safety
/// As [`wait_any`].
pub(super) unsafe fn test_all(several: Several) -> Result<bool, Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        with_operations(several, |watched| {
            let Some(world) = watched.world else { return Ok(true) };
            if !raw::are_over(world, watched.operations)? {
                return Ok(false);
            }
            for index in 0..several.count {
                if watched.operations[index].is_some() && !watched.is_through(index)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// Those of the requests that are over; none if none was started.
///
/// # Safety
/// As [`wait_any`].
pub(super) unsafe fn find_some(several: Several) -> Result<Option<Vec<usize>>, Mistake> {
    // SAFETY: as the caller says.
    unsafe {
        with_operations(several, |watched| {
            let mut found = Vec::new();
            if let Some(world) = watched.world {
                raw::each_over(world, watched.operations, |index| found.push(index))?;
            } else if watched.over.is_empty() {
                return Ok(None);
            }
            let mut over = std::mem::take(&mut watched.over);
            for index in found {
                if watched.is_through(index)? {
                    over.push(index);
                }
            }
            over.sort_unstable();
            Ok(Some(over))
        })
    }
}

/// Requests, and the operations that they wait for.
struct Watched<'a> {
    several: Several,
    operations: &'a mut [Option<raw::Operation>],
    /// Those that are over without having to look.
    over: Vec<usize>,
    /// A world to look in; none if there is nothing to look at.
    world: Option<&'static World>,
}

impl Watched<'_> {
    /// # Safety
    /// As [`wait_any`].
    unsafe fn fill(&mut self) -> Result<(), Mistake> {
        for index in 0..self.several.count {
            // SAFETY: as the caller says.
            let handle = unsafe { self.several.handle(index) };
            match request::find("array_of_requests", handle)? {
                Found::Null => {}
                Found::Immediate(_) => self.over.push(index),
                Found::Kept(entry) => match entry.waits_for()? {
                    WaitsFor::Inactive => {}
                    WaitsFor::Nothing => self.over.push(index),
                    WaitsFor::Operation(operation) => {
                        self.operations[index] = Some(operation);
                        self.world.get_or_insert(entry.world());
                    }
                },
            }
        }
        Ok(())
    }

    /// The world to look in, or what is known without.
    fn at_once(&self) -> Result<&'static World, Known> {
        match (self.over.first(), self.world) {
            (Some(index), _) => Err(Known::Over(*index)),
            (None, None) => Err(Known::NoneActive),
            (None, Some(world)) => Ok(world),
        }
    }

    /// Whether a request whose operation is over waits for no other one.
    fn is_through(&mut self, index: usize) -> Result<bool, Mistake> {
        // SAFETY: `fill` has read it, and the program changes it in no other call.
        let handle = unsafe { self.several.handle(index) };
        let Found::Kept(entry) = request::find("array_of_requests", handle)? else {
            return Ok(true);
        };
        match entry.waits_next()? {
            Some(next) => {
                self.operations[index] = Some(next);
                Ok(false)
            }
            None => Ok(true),
        }
    }
}

/// Memory of a note on a request that is waited for with others, about.
const BYTES_PER_REQUEST: usize = 64;

/// Does something with the operations that requests wait for.
///
/// # Safety
/// As [`wait_any`].
unsafe fn with_operations<R>(
    several: Several,
    work: impl FnOnce(&mut Watched<'_>) -> Result<R, Mistake>,
) -> Result<R, Mistake> {
    let (mut few, mut many);
    let operations = if several.count <= FEW {
        few = [None; FEW];
        &mut few[..several.count]
    } else {
        room::for_many(several.count, BYTES_PER_REQUEST)?;
        many = vec![None; several.count];
        &mut many[..]
    };
    let mut watched = Watched { several, operations, over: Vec::new(), world: None };
    // SAFETY: as the caller says.
    unsafe { watched.fill()? };
    work(&mut watched)
}
