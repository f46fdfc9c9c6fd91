//! A world of four members on two processors, for tests.

use landeck_collectives::{Calibration, CostParameters, Group, Operation, Preset, Task};

use super::World;
use crate::hosts::{Hosts, Sharing};
use crate::setting::{Calls, Setting, Work};
use crate::stages::Stages;
use crate::{Faults, Platform};

/// The members call the operation once, and have not begun.
pub(super) fn four(operation: Operation, architecture: &str, bytes: u64) -> World {
    let figures = CostParameters { processors: 2, ..CostParameters::default() };
    let platform = Platform::of_host("host", "", figures, Calibration::of(&figures));
    let (faults, group) = (Faults::default(), Group::whole(4).expect("members"));
    let way = architecture.parse::<Preset>().expect("a name").way(operation);
    let work = Work { task: &Task::new(operation), way: &way, group: &group, bytes };
    let setting = Setting::new(&platform, &faults);
    let hosts = Hosts::of(&work, &setting).expect("room");
    World::new(&setting, hosts, Stages::new(&work, Calls::AtOnce, Sharing::of(2)))
}
