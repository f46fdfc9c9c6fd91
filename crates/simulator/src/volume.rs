//! Estimates how large a run is before it begins, from runs of two smaller groups of equal shape, one twice as large
//! as the other.
//!
//! The cost of a run grows as a power of the group's size, for few members as for many. The exponent is a little
//! above 1 where each member has a few messages or a logarithm of them, and 2 where each member has a message for
//! every other. The estimate needs no knowledge of the architecture, so it also holds for those of users.

use landeck_collectives::{Group, Task};

use crate::compact_plans::ROOM_BYTES;
use crate::fault::Faults;
use crate::hosts::Hosts;
use crate::setting::{Calls, Setting, Work};
use crate::stages::Stages;
use crate::world::World;

/// Groups of up to this many members are always simulated.
const SMALL: u32 = 256;
/// The most memory, messages and runs of blocks of a run; the latter two take about an hour.
const BYTES_MAX: f64 = (4u64 << 30) as f64;
const MESSAGES_MAX: f64 = 1e9;
const RUNS_MAX: f64 = 5e8;
/// Memory for each of these, as measured (`docs/simulation.md`).
const MEMBER_BYTES: f64 = 1200.0;
const MESSAGE_BYTES: f64 = 200.0;
const STEP_BYTES: f64 = 120.0;
const RUN_BYTES: f64 = 1.0;

/// A run that is too large to be simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TooMuch {
    /// Messages of the run, about.
    pub(crate) messages: u64,
    /// Memory for the run, about.
    pub(crate) gib: u64,
    /// The largest number of members that could be simulated, about.
    pub(crate) most: u32,
}

/// Returns an estimate if the run is too large.
pub(crate) fn too_much(work: &Work<'_>, setting: &Setting<'_>) -> Option<TooMuch> {
    let size = work.group.size();
    if size <= SMALL {
        return None;
    }
    let sample = size >> (size / SMALL).ilog2().max(1);
    let half = Volume::of(work, setting, sample / 2)?;
    let whole = Volume::of(work, setting, sample)?;
    let grown = |size: u32| half.grown(&whole, f64::from(size) / f64::from(sample));
    let all = grown(size);
    if !all.is_too_much() {
        return None;
    }
    let (mut most, mut above) = (sample, size);
    while above - most > 1 {
        let between = most + (above - most) / 2;
        *(if grown(between).is_too_much() { &mut above } else { &mut most }) = between;
    }
    let gib = rounded(all.bytes() / (1u64 << 30) as f64);
    Some(TooMuch { messages: rounded(all.messages), gib, most: rounded(most.into()) as u32 })
}

/// Rounds down to two digits.
fn rounded(number: f64) -> u64 {
    let unit = 10f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
    ((number / unit).floor() * unit) as u64
}

/// The estimated cost of a run.
#[derive(Clone, Copy, Debug)]
struct Volume {
    members: f64,
    messages: f64,
    /// Messages in flight at one time.
    in_flight: f64,
    /// Steps that are kept.
    steps: f64,
    /// Runs of blocks in all messages, without the first of each.
    more_runs: f64,
}

impl Volume {
    /// Runs the work with fewer members, in proportionally fewer clusters, with one call of each. None if there is no
    /// such run.
    fn of(work: &Work<'_>, setting: &Setting<'_>, size: u32) -> Option<Self> {
        let all = work.group;
        let clusters = all.clusters().len() as u64 * u64::from(size) / u64::from(all.size());
        let group = Group::divided(size, (clusters as u32).max(1)).ok()?;
        let task = Task { root: work.task.root % size, ..*work.task };
        let work = Work { task: &task, group: &group, ..*work };
        let (calls, faults) = (Calls::AtOnce, Faults::default());
        let setting = Setting { calls, faults: &faults, keeps_history: false, ..*setting };
        let hosts = Hosts::of(&work, &setting).ok()?;
        let stages = Stages::new(&work, calls, hosts.sharing(size, setting.platform));
        let (steps, more_runs) = stages.kept();
        let mut world = World::new(&setting, hosts, stages);
        world.run(|_| {});
        let report = world.report();
        let (messages, in_flight) = (report.messages as f64, f64::from(report.most_in_flight));
        let (steps, more_runs) = (steps as f64, more_runs as f64);
        Some(Self { members: size.into(), messages, in_flight, steps, more_runs })
    }

    /// Extrapolates to a group that is `times` as large as the group of `whole`, which is twice as large as this
    /// one's.
    fn grown(&self, whole: &Self, times: f64) -> Self {
        let grown = |of: fn(&Self) -> f64| {
            let power = (of(whole).max(1.0) / of(self).max(1.0)).log2();
            of(whole) * times.powf(power)
        };
        Self {
            members: grown(|volume| volume.members),
            messages: grown(|volume| volume.messages),
            in_flight: grown(|volume| volume.in_flight),
            steps: grown(|volume| volume.steps),
            more_runs: grown(|volume| volume.more_runs),
        }
    }

    fn bytes(&self) -> f64 {
        let Self { members, in_flight, steps, more_runs, .. } = self;
        let parts = [
            (members, MEMBER_BYTES),
            (in_flight, MESSAGE_BYTES),
            (steps, STEP_BYTES),
            (more_runs, RUN_BYTES),
        ];
        ROOM_BYTES as f64 + parts.iter().map(|(count, bytes)| *count * bytes).sum::<f64>()
    }

    fn is_too_much(&self) -> bool {
        let parts =
            [(self.bytes(), BYTES_MAX), (self.messages, MESSAGES_MAX), (self.more_runs, RUNS_MAX)];
        parts.iter().any(|(is, most)| is > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Placement;
    use landeck_collectives::{Operation, Preset, Way};

    fn way(name: &str, operation: Operation) -> Way {
        name.parse::<Preset>().unwrap().way(operation)
    }

    fn found(operation: Operation, name: &str, size: u32) -> Option<TooMuch> {
        let group = Group::divided(size, 1).unwrap();
        let (task, way) = (Task::new(operation), way(name, operation));
        let platform = crate::platform::library::find("infiniband").unwrap();
        let faults = Faults::default();
        let setting =
            Setting { placement: Placement::PerHost(1), ..Setting::new(&platform, &faults) };
        too_much(&Work { task: &task, way: &way, group: &group, bytes: 8 }, &setting)
    }

    #[test]
    fn data_of_all_members_for_all_others_grow_with_the_square() {
        for (operation, name, most) in [
            (Operation::AllToAll, "flat", 3_000..6_000),
            (Operation::AllGather, "ring", 25_000..35_000),
        ] {
            let much = found(operation, name, 65_536).unwrap();
            let messages = 65_536.0 * 65_535.0;
            let error = much.messages as f64 / messages;
            assert!((0.9..1.1).contains(&error), "{operation} {name}: {much:?}");
            assert!(most.contains(&much.most), "{much:?}");
            assert!(found(operation, name, much.most).is_none(), "{much:?}");
            assert!(found(operation, name, much.most * 5 / 4).is_some(), "{much:?}");
        }
        let (all, ring) = (Operation::AllToAll, Operation::AllGather);
        let gib = |operation, name| found(operation, name, 65_536).map(|much| much.gib);
        assert!(gib(all, "flat") > Some(700), "all messages are on their way at once");
        assert_eq!(gib(ring, "ring"), Some(0), "one of each member: it takes but long");
    }

    #[test]
    fn a_logarithmic_number_of_messages_is_not_too_much() {
        for operation in [Operation::AllGather, Operation::ReduceScatter, Operation::Scan] {
            for size in [65_536, 50_000] {
                assert_eq!(found(operation, "butterfly", size), None, "{operation} {size}");
            }
            assert_eq!(found(operation, "knomial", 65_536), None, "{operation}");
        }
    }

    #[test]
    fn numbers_are_rounded_down_to_two_digits() {
        assert_eq!([3.0, 99.9, 2_891.0, 65_536.0].map(rounded), [3, 99, 2_800, 65_000]);
    }
}
