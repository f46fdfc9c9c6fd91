//! Allreduce: the data of all members are combined; all members have the result.

use super::know;
use super::{Order, Paths, Task, all_gather, broadcast, input, output, reduce, reduce_scatter};
use crate::blocks::Blocks;
use crate::partial::Partial;
use crate::plan::Cells;
use crate::program::Program;
use crate::rounds::Rounds;

/// Split: every member combines a part, and the parts are told around. Whole: in rounds, where the
/// architecture's rounds bring disjoint sets of members together; else up the tree of member 0 and
/// back.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    let own = |block| if task.in_place { output(block) } else { input(block) };
    if paths.split && program.size() > 1 {
        let rounds = paths.rounds();
        let store = own(0).store;
        let results = reduce_scatter::results(program, task.order, &rounds, |_| store);
        reduce_scatter::close(program, results);
        all_gather::tell(program, &rounds, know::own(program.size()));
        return;
    }
    let rounds = paths.to.rounds(paths.group);
    match rounds.and_then(|rounds| meetings(&rounds, program.size())) {
        Some(meetings) => in_rounds(program, task, &meetings, own),
        None => {
            let there = paths.to.tree(paths.group, 0);
            for segment in 0..task.segments {
                reduce::up(program, task.order, &there, segment, |_| own(segment));
            }
            broadcast::segments(program, &paths.back.tree(paths.group, 0), task.segments);
        }
    }
}

/// Whether these rounds bring disjoint sets of members together, so that values add up in them.
pub(crate) fn adds_up(rounds: &Rounds, size: u32) -> bool {
    meetings(rounds, size).is_some()
}

/// The effect of one message of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    /// The other adds what it does not have.
    Add,
    /// The other takes the finished result.
    Finish,
}

/// Returns the effect of each message of these rounds; none if a receiver's own value would already contain some of the
/// data, which cannot be taken out again.
fn meetings(rounds: &Rounds, size: u32) -> Option<Vec<Vec<(u32, u32, Meeting)>>> {
    let mut known = know::own(size);
    let everybody = Blocks::run(0..size);
    let (mut meetings, mut before) = (Vec::new(), Vec::new());
    for round in rounds.iter() {
        know::remember(&mut before, &known, round);
        let mut meets = Vec::with_capacity(round.len());
        for (&(from, to), from_set) in round.iter().zip(&before) {
            let to_set = &known[to as usize];
            if from_set.is_apart_from(to_set) {
                known[to as usize].unite(from_set);
                meets.push((from, to, Meeting::Add));
            } else if from_set == &everybody && from_set.covers(to_set) {
                known[to as usize] = everybody.clone();
                meets.push((from, to, Meeting::Finish));
            } else {
                return None;
            }
        }
        meetings.push(meets);
    }
    known.iter().all(|set| *set == everybody).then_some(meetings)
}

fn in_rounds(
    program: &mut Program,
    task: &Task,
    meetings: &[Vec<(u32, u32, Meeting)>],
    own: impl Fn(u32) -> Cells,
) {
    for segment in 0..task.segments {
        one_segment(program, task.order, meetings, segment, own(segment));
    }
}

fn one_segment(
    program: &mut Program,
    order: Order,
    meetings: &[Vec<(u32, u32, Meeting)>],
    segment: u32,
    own: Cells,
) {
    let mut partials: Vec<Option<Partial>> =
        (0..program.size()).map(|member| Some(Partial::own(order, member, own))).collect();
    for round in meetings {
        let mut joins = Vec::new();
        for &(from, to, meeting) in round {
            if meeting == Meeting::Finish {
                close(program, &mut partials, from, segment);
                partials[to as usize] = None;
                program.message(from, to, vec![output(segment)], vec![output(segment)]);
            } else if let Some(partial) = &partials[from as usize] {
                let received = partial.received(program, to);
                if program.concerns(from, to) {
                    program.message(from, to, partial.cells(), received.cells());
                }
                joins.push((to, received));
            }
        }
        for (to, received) in joins {
            if let Some(partial) = &mut partials[to as usize] {
                partial.join(program, to, received);
            }
        }
    }
    for member in 0..program.size() {
        close(program, &mut partials, member, segment);
    }
}

fn close(program: &mut Program, partials: &mut [Option<Partial>], member: u32, segment: u32) {
    if let Some(partial) = partials[member as usize].take() {
        partial.close(program, member, output(segment));
    }
}
