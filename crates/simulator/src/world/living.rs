//! The memory of a run grows with the members, the messages under way, the waiting receives and the longest plan, but
//! not with the length of the run.

use super::*;
use crate::hosts::Sharing;
use crate::setting::{Calls, Placement, Work};
use crate::{Faults, platform::library};
use landeck_collectives::{Group, Operation, Preset, Task};

/// The most of something at one time, for each member and message under way.
struct Shares {
    kept: f64,
    alive: f64,
    posted: f64,
    messages: f64,
}

/// Looks from time to time what a run keeps, and returns the maxima.
fn shares(operation: Operation, name: &str, size: u32, segments: u32) -> Shares {
    let platform = library::find("infiniband").unwrap();
    let (faults, group) = (Faults::default(), Group::whole(size).unwrap());
    let way = name.parse::<Preset>().unwrap().way(operation);
    let task = Task { segments, ..Task::new(operation) };
    let work = Work { task: &task, way: &way, group: &group, bytes: 3200 };
    let setting = Setting { placement: Placement::PerHost(1), ..Setting::new(&platform, &faults) };
    let hosts = Hosts::of(&work, &setting).unwrap();
    let stages = Stages::new(&work, Calls::AtOnce, Sharing::of(1));
    let longest =
        (0..size).filter_map(|member| stages.path(member, 0)).map(|path| path.steps()).max();
    let kept = stages.kept().0 as f64 - 2.0 * f64::from(longest.unwrap_or(0));
    let mut world = World::new(&setting, hosts, stages);
    let (mut alive, mut posted) = (0, 0);
    while let Some((now, event)) = world.events.pop() {
        world.happen(now, event);
        world.happened += 1;
        if world.happened.is_multiple_of(u64::from(size)) {
            (alive, posted) = (alive.max(world.alive()), posted.max(world.posted()));
        }
    }
    let report = world.report();
    assert_eq!(report.left(), []);
    let law = f64::from(size + report.most_in_flight);
    Shares {
        kept: kept / law,
        alive: alive as f64 / law,
        posted: posted as f64 / law,
        messages: report.messages as f64 / law,
    }
}

impl World {
    /// Everything that is temporary, but receives.
    fn alive(&self) -> usize {
        let of_member = |member: &Member| {
            let open = member.execution.as_ref().map_or(0, Execution::open);
            open + member.news.len() + member.matching.waiting()
        };
        let of_members: usize = self.members.iter().map(of_member).sum();
        of_members + self.messages.len() - self.free.len() + self.events.waiting()
    }

    /// Receives that have a place in the matching, or beside it.
    fn posted(&self) -> usize {
        let of_member = |member: &Member| member.matching.posted().count().max(member.behind.len());
        self.members.iter().map(of_member).sum()
    }
}

#[test]
fn memory_goes_with_the_messages_on_their_way() {
    // The receives of a member that may wait at the same time: for a ring one, however many will follow.
    let logarithm = 8.0;
    let cases = [
        (Operation::AllReduce, "butterfly", 1, logarithm),
        (Operation::AllGather, "butterfly", 1, logarithm),
        (Operation::AllReduce, "ring+split", 1, 1.0),
        (Operation::AllGather, "ring", 1, 1.0),
        (Operation::AllReduce, "circulant", 1, logarithm),
        (Operation::AllReduce, "hypercube", 1, logarithm),
        (Operation::Broadcast, "pipeline", 64, 1.0),
        (Operation::Broadcast, "ring", 64, 1.0),
        (Operation::Reduce, "knomial", 8, logarithm),
        (Operation::Gather, "flat", 1, 1.0),
        (Operation::AllToAll, "flat", 1, 1.0),
    ];
    let mut most_messages = 0f64;
    for (operation, name, segments, waiting) in cases {
        for size in [100, 200] {
            let what = format!("{operation} {name} {size}");
            let Shares { kept, alive, posted, messages } = shares(operation, name, size, segments);
            assert!(
                kept < 6.0 && alive < 6.0,
                "{what}: {kept} steps are kept, {alive} things alive"
            );
            assert!(posted <= waiting, "{what}: {posted} receives");
            most_messages = most_messages.max(messages);
        }
    }
    assert!(most_messages > 100.0, "{most_messages}: some send many more messages than that");
}
