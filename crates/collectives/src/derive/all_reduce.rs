//! Allreduce: the data of all members are combined; all members have the result.

use std::ops::Range;

use super::know;
use super::{Paths, Task, all_gather, broadcast, of as run, output, reduce, reduce_scatter};
use crate::blocks::Blocks;
use crate::partial::Partial;
use crate::plan::Store;
use crate::program::Program;
use crate::rounds::Rounds;

/// Split: every member combines a part, and the parts are told around. Whole: in rounds, where the
/// architecture's rounds bring disjoint sets of members together; else up the tree of member 0 and
/// back.
pub(super) fn plan(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    let store = if task.in_place { Store::Output } else { Store::Input };
    of_values(program, task, paths, |_, member, blocks| {
        Partial::own(task.order, member, run(store, &blocks))
    });
}

/// An allreduce of values that members hold at first: those of a member for some blocks, as `own` says it.
pub(super) fn of_values(
    program: &mut Program,
    task: &Task,
    paths: &Paths<'_>,
    mut own: impl FnMut(&mut Program, u32, Range<u32>) -> Partial,
) {
    let size = program.size();
    if paths.split && size > 1 {
        let rounds = paths.rounds();
        let values = (0..size).map(|member| own(program, member, 0..size)).collect();
        let results = reduce_scatter::results(program, &rounds, values);
        reduce_scatter::close(program, results);
        all_gather::tell(program, &rounds, know::own(size));
        return;
    }
    let mut of_segment = |program: &mut Program, segment| -> Vec<Partial> {
        (0..size).map(|member| own(program, member, segment..segment + 1)).collect()
    };
    let rounds = paths.to.rounds(paths.group);
    match rounds.and_then(|rounds| meetings(&rounds, size)) {
        Some(meetings) => {
            for segment in 0..task.segments {
                let values = of_segment(program, segment);
                one_segment(program, &meetings, segment, values);
            }
        }
        None => {
            let there = paths.to.tree(paths.group, 0);
            for segment in 0..task.segments {
                let values = of_segment(program, segment);
                reduce::up(program, &there, segment, values);
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

fn one_segment(
    program: &mut Program,
    meetings: &[Vec<(u32, u32, Meeting)>],
    segment: u32,
    own: Vec<Partial>,
) {
    let mut partials: Vec<Option<Partial>> = own.into_iter().map(Some).collect();
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
