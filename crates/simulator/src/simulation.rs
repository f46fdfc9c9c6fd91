//! A run: all members of a group do an operation, each by its own plan, walked by the product's
//! executor; what arrives is matched by the kernel's matching.
//!
//! | what | by |
//! |---|---|
//! | plans | [`landeck_collectives::plans`], as for a real group |
//! | which step may begin | [`landeck_collectives::Execution`] |
//! | which message goes to which receive | `landeck_kernel::matching` |
//! | when | [`crate::time`], `network`, `processors`, `board` |
//!
//! All members call at once, or as [`crate::Calls`] says. The run is over when none has anything left to do.

use crate::error::SimulationError;
use crate::hosts::Hosts;
use crate::report::{Progress, Report};
use crate::setting::{Setting, Work};
use crate::stages::Stages;
use crate::volume::{self, TooMuch};
use crate::world::World;

/// Simulates an operation. `tell` is told from time to time how far it is.
///
/// # Errors
/// [`SimulationError`].
pub fn run(
    work: &Work<'_>,
    setting: &Setting<'_>,
    tell: &mut dyn FnMut(Progress),
) -> Result<Report, SimulationError> {
    let hosts = Hosts::of(work, setting)?;
    if let Some(TooMuch { messages, gib, most }) = volume::too_much(work, setting) {
        let (operation, way) = (work.task.operation, work.way.to_string());
        let members = work.group.size();
        return Err(SimulationError::TooMany { operation, way, members, messages, gib, most });
    }
    let sharing = hosts.sharing(work.group.size(), setting.platform);
    let stages = Stages::planned(work, setting.calls, sharing, tell);
    let mut world = World::new(setting, hosts, stages);
    world.run(tell);
    Ok(world.report())
}
