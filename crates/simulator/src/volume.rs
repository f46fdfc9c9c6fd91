//! How much a run is, before its plans are made: from the plans of two smaller groups of the same
//! shape, one twice as large as the other.
//!
//! Plans grow as a power of the group's size, with few members as with many: by 1 and a little where
//! each member has a few messages or their logarithm, by 2 where everybody has one for everybody. An
//! architecture need not say which, so this holds for those of users too.

use landeck_collectives::{Action, Group, Plan, Task, plans};

use crate::simulation::Work;

/// Groups of up to so many members are not looked at: whatever they do can be simulated.
const SMALL: u32 = 256;
/// Steps of all members together at most: with what they wait for they take 4 GiB.
const STEPS_MAX: f64 = 12e6;

/// Too much to be simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TooMuch {
    /// Messages of the run, about.
    pub(crate) messages: u64,
    /// So many members could be simulated, about.
    pub(crate) most: u32,
}

/// Whether this is too much.
pub(crate) fn too_much(work: &Work<'_>) -> Option<TooMuch> {
    let size = work.group.size();
    if size <= SMALL {
        return None;
    }
    let (mut half, mut whole) = (Volume::default(), Volume::default());
    let sample = size >> (size / SMALL).ilog2().max(1);
    half.add(work, sample / 2);
    whole.add(work, sample);
    let times = f64::from(size) / f64::from(sample);
    let power = |half: f64, whole: f64| (whole.max(1.0) / half.max(1.0)).log2();
    let grown = |half: f64, whole: f64| whole * times.powf(power(half, whole));
    let steps = grown(half.steps, whole.steps);
    if steps <= STEPS_MAX {
        return None;
    }
    let less = (STEPS_MAX / steps).powf(1.0 / power(half.steps, whole.steps).max(1.0));
    let messages = rounded(grown(half.messages, whole.messages));
    Some(TooMuch { messages, most: rounded(f64::from(size) * less) as u32 })
}

/// Down to two digits.
fn rounded(number: f64) -> u64 {
    let unit = 10f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
    ((number / unit).floor() * unit) as u64
}

#[derive(Default)]
struct Volume {
    steps: f64,
    messages: f64,
}

impl Volume {
    /// The same work by fewer members, in as many clusters for each of them.
    fn add(&mut self, work: &Work<'_>, size: u32) {
        let all = work.group;
        let clusters = all.clusters().len() as u64 * u64::from(size) / u64::from(all.size());
        let Ok(group) = Group::divided(size, (clusters as u32).max(1)) else { return };
        let task = Task { root: work.task.root % size, ..*work.task };
        for plan in plans(&task, work.way, &group) {
            self.messages += plan.messages_sent() as f64;
            self.steps += weight(&plan);
        }
    }
}

/// Steps, with the dependencies and places of long ones counted as parts of a step.
fn weight(plan: &Plan) -> f64 {
    const PARTS: f64 = 16.0;
    let parts = |action: &Action| match action {
        Action::Send { cells, .. } | Action::Receive { cells, .. } => cells.len(),
        _ => 0,
    };
    let each = plan.steps.iter().map(|step| parts(&step.action) + step.after.len());
    plan.steps.len() as f64 + each.sum::<usize>() as f64 / PARTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_collectives::{Operation, Preset, Way};

    fn way(name: &str, operation: Operation) -> Way {
        name.parse::<Preset>().unwrap().way(operation)
    }

    fn found(operation: Operation, name: &str, size: u32, clusters: u32) -> Option<TooMuch> {
        let group = Group::divided(size, clusters).unwrap();
        let (task, way) = (Task::new(operation), way(name, operation));
        too_much(&Work { task: &task, way: &way, group: &group, bytes: 8 })
    }

    #[test]
    fn what_everybody_has_for_everybody_grows_with_the_square() {
        for (operation, name) in [(Operation::AllToAll, "flat"), (Operation::AllGather, "ring")] {
            let much = found(operation, name, 65_536, 1).unwrap();
            let messages = 65_536.0 * 65_535.0;
            let error = much.messages as f64 / messages;
            assert!((0.9..1.1).contains(&error), "{operation} {name}: {much:?}");
            assert!(found(operation, name, much.most, 1).is_none(), "{much:?}");
            assert!(found(operation, name, much.most * 5 / 4, 1).is_some(), "{much:?}");
        }
    }

    #[test]
    fn what_takes_a_logarithm_of_messages_is_not_too_much() {
        for operation in [Operation::AllGather, Operation::ReduceScatter, Operation::Scan] {
            for size in [65_536, 50_000] {
                assert_eq!(found(operation, "butterfly", size, 1), None, "{operation} {size}");
            }
            assert_eq!(found(operation, "knomial", 65_536, 1), None, "{operation}");
        }
    }

    #[test]
    fn numbers_are_rounded_down_to_two_digits() {
        assert_eq!([3.0, 99.9, 2_891.0, 65_536.0].map(rounded), [3, 99, 2_800, 65_000]);
    }
}
