//! The stages of a run, which all members pass one after the other: an operation, once or often, or a whole
//! measurement of it.

use std::sync::Arc;

use landeck_collectives::architecture::{Butterfly, Flat};
use landeck_collectives::{BoardStyle, Group, Operation, Task, Way};

use crate::compact_plans::{CompactPlans, Path, ROOM_BYTES};
use crate::footprint::Footprint;
use crate::hosts::Sharing;
use crate::near::Ways;
use crate::report::Progress;
use crate::setting::{Calls, Work};
use crate::time::Time;

/// The stages of a run, equal for all members.
#[derive(Debug)]
pub(crate) struct Stages {
    operation: Arc<CompactPlans>,
    around: Option<Around>,
    calls: u32,
    rounds: u32,
}

/// The calls that a measurement makes besides: a barrier before the operation's calls, and after them reductions to member 0
/// that combine the times of all members.
#[derive(Debug)]
struct Around {
    barrier: Arc<CompactPlans>,
    reduce: Arc<CompactPlans>,
    /// One of the longest time, or on one host one of the first beginning and one of the last end.
    reductions: u32,
}

/// The kind of a stage.
enum Kind {
    Barrier,
    Operation,
    Reduce,
}

impl Stages {
    /// Plans a run. `sharing` says how members share the processors of a host with a board.
    pub(crate) fn new(work: &Work<'_>, calls: Calls, sharing: Sharing) -> Self {
        Self::planned(work, calls, sharing, &mut |_| {})
    }

    /// Plans a run and tells `tell` the progress. Making a member's plan counts as much as walking it once.
    pub(crate) fn planned(
        work: &Work<'_>,
        calls: Calls,
        sharing: Sharing,
        tell: &mut dyn FnMut(Progress),
    ) -> Self {
        let Work { task, way, group, bytes } = *work;
        let (around, rounds, calls) = match calls {
            Calls::AtOnce => (None, 1, 1),
            Calls::Repeated(calls) => (None, 1, calls),
            Calls::Measured { rounds, calls } => (Some(Around::at_board(group)), rounds, calls),
            Calls::OverHosts { rounds, calls } => (Some(Around::over_hosts(group)), rounds, calls),
        };
        let (rounds, calls) = (rounds.max(1), calls.max(1));
        let walks = u64::from(group.size()) * (1 + u64::from(rounds) * u64::from(calls));
        let mut tell = |plans| tell(Progress { done: plans, all: walks });
        let operation =
            CompactPlans::made_in(ROOM_BYTES, task, way, group, (bytes, sharing), &mut tell);
        Self { operation: Arc::new(operation), around, calls, rounds }
    }

    /// The progress of a run after this many steps.
    pub(crate) fn progress(&self, steps: u64) -> Progress {
        let plans = self.operation.steps();
        Progress { done: plans + steps, all: plans + self.steps() }
    }

    /// The number of members.
    pub(crate) fn members(&self) -> u32 {
        self.operation.members()
    }

    /// The most rounds in which an operation crosses the board.
    pub(crate) fn rounds_at_board(&self) -> u32 {
        self.operation.rounds().max(1)
    }

    /// The members of each board of the operation; empty where all share one.
    pub(crate) fn boards(&self) -> &[Vec<u32>] {
        self.operation.boards()
    }

    /// The number of the board that a member uses.
    pub(crate) fn board_of(&self, member: u32) -> u32 {
        self.operation.board_of(member)
    }

    /// Whether the operation uses messages.
    pub(crate) fn is_over_messages(&self) -> bool {
        !self.operation.use_board()
    }

    /// The pairs of members between which the operation's messages go.
    pub(crate) fn ways(&self) -> Ways {
        self.operation.ways()
    }

    /// The memory that a member touches in the operation.
    pub(crate) fn touched(&self, member: u32) -> Footprint {
        self.operation.touched(member).in_every(self.calls, self.length())
    }

    /// Steps of all members and stages.
    pub(crate) fn steps(&self) -> u64 {
        let around = self
            .around
            .as_ref()
            .map_or(0, |of| of.barrier.steps() + u64::from(of.reductions) * of.reduce.steps());
        (self.operation.steps() * u64::from(self.calls) + around) * u64::from(self.rounds)
    }

    /// Steps that are kept for the stages, and runs of blocks in all messages without the first of each.
    pub(crate) fn kept(&self) -> (u64, u64) {
        (self.operation.kept(), self.operation.more_runs())
    }

    /// The number of stages of each member.
    pub(crate) fn count(&self) -> u32 {
        self.rounds * self.length()
    }

    /// Calls of each member in a round.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// A member's walk in a stage; none after the last stage.
    pub(crate) fn path(&self, member: u32, stage: u32) -> Option<Path> {
        if stage >= self.count() {
            return None;
        }
        let walks = match (self.kind(stage), &self.around) {
            (Kind::Barrier, Some(around)) => &around.barrier,
            (Kind::Reduce, Some(around)) => &around.reduce,
            _ => &self.operation,
        };
        Some(Path::new(walks, member))
    }

    /// The spans of all rounds, before anything has been done.
    pub(crate) fn spans(&self) -> Spans {
        let is_of_all = self.around.as_ref().is_some_and(|around| around.reductions == 2);
        let begin = if is_of_all { Time::from_ps(u64::MAX) } else { Time::ZERO };
        let begun = if is_of_all { 0 } else { self.members() };
        Spans {
            of_rounds: vec![(begin, Time::ZERO); self.rounds as usize],
            begun: vec![Time::ZERO; begun as usize],
        }
    }

    /// Notes that a member has finished a stage.
    pub(crate) fn note(&self, spans: &mut Spans, (member, stage): (u32, u32), now: Time) {
        let Some(span) = spans.of_rounds.get_mut((stage / self.length()) as usize) else { return };
        let own = spans.begun.get_mut(member as usize);
        let place = stage % self.length();
        let first = u32::from(self.around.is_some());
        if place + 1 == first {
            match own {
                Some(begun) => *begun = now,
                None => span.0 = span.0.min(now),
            }
        } else if place + 1 == first + self.calls {
            let end = own.map_or(now, |begun| Time::ZERO + now.since(*begun));
            span.1 = span.1.max(end);
        }
    }

    /// Whether a stage is a call that the measurement makes besides.
    pub(crate) fn is_around(&self, stage: u32) -> bool {
        !matches!(self.kind(stage), Kind::Operation)
    }

    /// Whether a stage calls the operation directly after another call of it.
    pub(crate) fn follows_the_same(&self, stage: u32) -> bool {
        let is_call = |stage| matches!(self.kind(stage), Kind::Operation);
        stage > 0 && is_call(stage) && is_call(stage - 1)
    }

    /// Whether a stage combines the times of all members.
    pub(crate) fn is_reduction(&self, stage: u32) -> bool {
        matches!(self.kind(stage), Kind::Reduce)
    }

    fn length(&self) -> u32 {
        self.calls + self.around.as_ref().map_or(0, |around| 1 + around.reductions)
    }

    fn kind(&self, stage: u32) -> Kind {
        match stage % self.length() {
            _ if self.around.is_none() => Kind::Operation,
            0 => Kind::Barrier,
            place if place <= self.calls => Kind::Operation,
            _ => Kind::Reduce,
        }
    }
}

impl Around {
    fn at_board(group: &Group) -> Self {
        let way = Way::Board(BoardStyle::Each);
        Self { reductions: 2, ..Self::by(&way, &way, group) }
    }

    fn over_hosts(group: &Group) -> Self {
        Self::by(&Way::by(Butterfly), &Way::by(Flat), group)
    }

    fn by(barrier: &Way, reduce: &Way, group: &Group) -> Self {
        let of =
            |operation, way| Arc::new(CompactPlans::of(&Task::new(operation), way, group, (8, 1)));
        let barrier = of(Operation::Barrier, barrier);
        Self { barrier, reduce: of(Operation::Reduce, reduce), reductions: 1 }
    }
}

/// For each round, when the first member began and when the last one finished. Over hosts, and where nothing is measured
/// besides, it begins with zero, and ends with the longest time of a member.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    of_rounds: Vec<(Time, Time)>,
    /// When each member began the round that it is in; empty where all members have one clock.
    begun: Vec<Time>,
}

impl Spans {
    /// The lengths of the finished rounds.
    pub(crate) fn lengths_ps(&self) -> Vec<u64> {
        let over = self.of_rounds.iter().filter(|(begin, end)| end >= begin);
        over.map(|(begin, end)| end.since(*begin)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_a_part_of_what_is_to_be_done() {
        let (task, group) = (Task::new(Operation::AllGather), Group::whole(8).unwrap());
        let way = "butterfly".parse::<landeck_collectives::Preset>().unwrap();
        let way = way.way(Operation::AllGather);
        let work = Work { task: &task, way: &way, group: &group, bytes: 8 };
        for (calls, parts) in [(Calls::AtOnce, 2), (Calls::Repeated(3), 4)] {
            let mut told = Vec::new();
            let stages =
                Stages::planned(&work, calls, Sharing::of(1), &mut |progress| told.push(progress));
            assert_eq!(told.last(), Some(&Progress { done: 8, all: 8 * parts }), "all have theirs");
            let Progress { done, all } = stages.progress(0);
            assert_eq!(done * parts, all, "it goes on from there");
            let Progress { done, all } = stages.progress(stages.steps());
            assert_eq!(done, all);
        }
    }

    #[test]
    fn a_call_follows_another_within_a_batch_alone() {
        let (task, group) = (Task::new(Operation::AllReduce), Group::whole(2).unwrap());
        let way = Way::Board(BoardStyle::Each);
        let work = Work { task: &task, way: &way, group: &group, bytes: 8 };
        let stages = Stages::new(&work, Calls::Measured { rounds: 2, calls: 3 }, Sharing::of(1));
        let follow = (0..stages.count()).filter(|&stage| stages.follows_the_same(stage));
        assert_eq!(follow.collect::<Vec<_>>(), [2, 3, 8, 9]);
        let stages = Stages::new(&work, Calls::Repeated(2), Sharing::of(1));
        assert_eq!([0, 1].map(|stage| stages.follows_the_same(stage)), [false, true]);
    }

    #[test]
    fn a_round_lasts_from_the_first_to_begin_to_the_last_to_be_through() {
        let (task, group) = (Task::new(Operation::Barrier), Group::whole(2).unwrap());
        let way = Way::Board(BoardStyle::Each);
        let work = Work { task: &task, way: &way, group: &group, bytes: 0 };
        let stages = Stages::new(&work, Calls::Measured { rounds: 1, calls: 1 }, Sharing::of(1));
        let mut spans = stages.spans();
        let noted = [(0, 0, 50), (1, 0, 70), (0, 1, 200), (1, 1, 150), (0, 2, 900)];
        for (member, stage, at) in noted {
            stages.note(&mut spans, (member, stage), Time::from_ps(at));
        }
        assert_eq!(spans.lengths_ps(), [150]);
    }

    #[test]
    fn over_hosts_a_round_lasts_as_long_as_for_the_member_that_needs_longest() {
        let (task, group) = (Task::new(Operation::Broadcast), Group::whole(2).unwrap());
        let way = Way::by(Flat);
        let work = Work { task: &task, way: &way, group: &group, bytes: 8 };
        let stages = Stages::new(&work, Calls::OverHosts { rounds: 2, calls: 2 }, Sharing::of(1));
        assert_eq!(stages.count(), 2 * 4, "a barrier, two calls, a reduction");
        let mut spans = stages.spans();
        let noted = [
            (0, 0, 50),
            (1, 0, 70),
            (0, 2, 60),
            (1, 2, 190),
            (0, 4, 1_000),
            (1, 4, 900),
            (0, 6, 1_040),
            (1, 6, 930),
        ];
        for (member, stage, at) in noted {
            stages.note(&mut spans, (member, stage), Time::from_ps(at));
        }
        assert_eq!(spans.lengths_ps(), [120, 40]);
    }
}
