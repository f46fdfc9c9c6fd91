//! Runs an operation: each member walks its own plan with the product's executor, and the kernel's matching matches
//! the messages.
//!
//! | what | by |
//! |---|---|
//! | plans | [`landeck_collectives::plans`], as for a real group |
//! | order of steps | [`landeck_collectives::Execution`] |
//! | receive for a message | `landeck_kernel::matching` |
//! | time | [`crate::time`], `network`, `processors`, `board` |
//!
//! All members call at once, or as [`crate::Calls`] says. The run ends when no event is left.

use crate::error::SimulationError;
use crate::hosts::Hosts;
use crate::report::{SimulationProgress, SimulationReport};
use crate::setting::{Setting, Work};
use crate::stages::Stages;
use crate::volume::{self, TooMuch};
use crate::world::World;

/// Simulates an operation and reports the progress to `tell`.
///
/// # Errors
/// [`SimulationError`].
pub fn run(
    work: &Work<'_>,
    setting: &Setting<'_>,
    tell: &mut dyn FnMut(SimulationProgress),
) -> Result<SimulationReport, SimulationError> {
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
