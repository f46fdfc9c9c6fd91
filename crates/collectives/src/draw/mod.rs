//! Plans as text and as pictures.
//!
//! The plans of all members are executed step by step ([`timeline`]), and the events are listed or drawn.

mod svg;
mod text;
pub mod timeline;

use crate::derive::{self, Task, Way};
use crate::group::Group;
use crate::plan::Plan;

pub use timeline::Timeline;

/// A drawing: the plans of all members and their timeline.
#[derive(Debug)]
pub struct Drawing<'a> {
    task: &'a Task,
    way: &'a Way,
    group: &'a Group,
    plans: Vec<Plan>,
    timeline: Timeline,
}

impl<'a> Drawing<'a> {
    /// The plans of a task done in some way by a group.
    pub fn new(task: &'a Task, way: &'a Way, group: &'a Group) -> Self {
        let plans = derive::plans(task, way, group);
        let timeline = Timeline::of(&plans);
        Self { task, way, group, plans, timeline }
    }

    /// The timeline of the plans.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The heading: the operation, its way, and its numbers of messages and steps.
    pub fn heading(&self) -> String {
        let steps = counted(self.timeline.steps as usize, "step");
        let operation = self.task.operation;
        match self.timeline.messages.len() {
            _ if self.plans.iter().any(Plan::uses_board) => {
                format!("{operation} over the {}: {steps}", self.way)
            }
            messages => {
                format!("{operation} by {}: {} in {steps}", self.way, counted(messages, "message"))
            }
        }
    }

    /// Returns the plans as text: step by step, and then the plan of each member; or only those of one member.
    pub fn text(&self, member: Option<u32>) -> String {
        text::of(self, member)
    }

    /// Returns a picture that a browser shows: members from top to bottom, steps from left to right.
    pub fn svg(&self) -> String {
        svg::of(self)
    }

    /// The members, clusters, root and segments, in words.
    fn members(&self) -> String {
        let size = counted(self.group.size() as usize, "member");
        let root = match self.task.operation.has_root() {
            true => format!(", root {}", self.task.root),
            false => String::new(),
        };
        let segments = match self.task.segments {
            segments if segments > 1 && self.task.operation.has_segments() => {
                format!(", {segments} segments")
            }
            _ => String::new(),
        };
        let clusters = match self.has_clusters() {
            true => format!(" in {}", counted(self.group.clusters().len(), "cluster")),
            false => String::new(),
        };
        format!("{size}{clusters}{root}{segments}")
    }

    /// Whether the group is divided: neither one cluster nor a cluster for each member is a division.
    fn has_clusters(&self) -> bool {
        let clusters = self.group.clusters().len();
        clusters > 1 && clusters < self.group.size() as usize
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;
    use crate::preset::Preset;

    /// Calls `see` with the drawing of an operation done by an architecture.
    pub(super) fn with_drawing<T>(
        operation: Operation,
        architecture: &str,
        group: &Group,
        see: impl FnOnce(&Drawing<'_>) -> T,
    ) -> T {
        let preset: Preset = architecture.parse().unwrap();
        see(&Drawing::new(&Task::new(operation), &preset.way(operation), group))
    }

    #[test]
    fn headings_count() {
        let group = Group::divided(24, 5).unwrap();
        with_drawing(Operation::Broadcast, "daisy", &group, |drawing| {
            assert_eq!(drawing.heading(), "broadcast by daisy: 23 messages in 8 steps");
            assert_eq!(drawing.members(), "24 members in 5 clusters, root 0");
        });
        with_drawing(Operation::Barrier, "board", &Group::whole(1).unwrap(), |drawing| {
            assert_eq!(drawing.heading(), "barrier over the board (each): 2 steps");
            assert_eq!(drawing.members(), "1 member");
        });
    }
}
