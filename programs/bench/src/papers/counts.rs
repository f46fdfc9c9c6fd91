//! Messages and steps of a plan: what a time does not say. In a step everybody sends at most one
//! message and receives at most one.

use landeck_collectives::{Group, Operation, Preset, Task, Way, check, plans};
use serde::Serialize;

/// Of all plans of an operation together, counted by the prover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) steps: u32,
}

/// Of an operation from member 0 by this preset in so many groups. None where there are no messages,
/// and for what is no preset.
pub(crate) fn counts(operation: Operation, preset: &str, n: u32, groups: u32) -> Option<Counts> {
    let preset: Preset = preset.parse().ok()?;
    let way = preset.way(operation);
    if matches!(way, Way::Board(_)) {
        return None;
    }
    let group = Group::divided(n, groups).ok()?;
    let order = preset.order(operation);
    let usual = Task::new(operation);
    let task = Task { order: order.unwrap_or(usual.order), ..usual };
    let facts = check::prove(&plans(&task, &way, &group), &task).ok()?;
    Some(Counts { messages: facts.messages, steps: facts.steps })
}

/// Returns the counts of two operations, one after the other.
pub(crate) fn sum(counts: [Option<Counts>; 2]) -> Option<Counts> {
    let [one, other] = counts;
    let (one, other) = (one?, other?);
    Some(Counts { messages: one.messages + other.messages, steps: one.steps + other.steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daisy_of_eight_groups() {
        // m + k - 2 steps, one message for everybody but the root.
        let counted = counts(Operation::Broadcast, "daisy", 24, 8).unwrap();
        assert_eq!(counted, Counts { messages: 23, steps: 9 });
    }

    #[test]
    fn the_board_has_no_messages() {
        assert_eq!(counts(Operation::Broadcast, "board", 24, 1), None);
        assert_eq!(counts(Operation::Broadcast, "landeck", 24, 1), None);
    }
}
