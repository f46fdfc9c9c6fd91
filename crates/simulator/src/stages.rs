//! The stages of a run, which all members pass one after the other: an operation, once or often, or a whole
//! measurement of it.

use std::sync::Arc;

use landeck_collectives::architecture::Butterfly;
use landeck_collectives::{BoardStyle, Group, Operation, Task, Way};

use crate::compact_plans::{CompactPlans, Path, ROOM_BYTES};
use crate::footprint::Footprint;
use crate::hosts::Sharing;
use crate::near::Ways;
use crate::report::SimulationProgress;
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

/// The calls that a measurement makes besides.
#[derive(Debug)]
enum Around {
    /// A barrier before the operation's calls, and after them two reductions to member 0 that combine the times of all
    /// members.
    Batch { barrier: Arc<CompactPlans>, reduce: Arc<CompactPlans> },
    /// A barrier behind each call.
    Calls { barrier: Arc<CompactPlans> },
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
        tell: &mut dyn FnMut(SimulationProgress),
    ) -> Self {
        let Work { task, way, group, bytes } = *work;
        let (around, rounds, calls) = match calls {
            Calls::AtOnce => (None, 1, 1),
            Calls::Repeated(calls) => (None, 1, calls),
            Calls::BeforeBarriers(calls) => (Some(Around::calls(group)), 1, calls),
            Calls::Measured { rounds, calls } => (Some(Around::batch(group)), rounds, calls),
        };
        let (rounds, calls) = (rounds.max(1), calls.max(1));
        let walks = u64::from(group.size()) * (1 + u64::from(rounds) * u64::from(calls));
        let mut tell = |plans| tell(SimulationProgress { done: plans, all: walks });
        let operation =
            CompactPlans::made_in(ROOM_BYTES, task, way, group, (bytes, sharing), &mut tell);
        Self { operation: Arc::new(operation), around, calls, rounds }
    }

    /// The progress of a run after this many steps.
    pub(crate) fn progress(&self, steps: u64) -> SimulationProgress {
        let plans = self.operation.steps();
        SimulationProgress { done: plans + steps, all: plans + self.steps() }
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
        let around = match &self.around {
            None => 0,
            Some(Around::Batch { barrier, reduce }) => barrier.steps() + 2 * reduce.steps(),
            Some(Around::Calls { barrier }) => barrier.steps() * u64::from(self.calls),
        };
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
            (Kind::Barrier, Some(Around::Batch { barrier, .. } | Around::Calls { barrier })) => {
                barrier
            }
            (Kind::Reduce, Some(Around::Batch { reduce, .. })) => reduce,
            _ => &self.operation,
        };
        Some(Path::new(walks, member))
    }

    /// The spans of all rounds, before anything has been done.
    pub(crate) fn spans(&self) -> Spans {
        let begin = if self.is_batch() { Time::from_ps(u64::MAX) } else { Time::ZERO };
        Spans(vec![(begin, Time::ZERO); self.rounds as usize])
    }

    /// Notes that a member has finished a stage.
    pub(crate) fn note(&self, spans: &mut Spans, stage: u32, now: Time) {
        let Some(span) = spans.0.get_mut((stage / self.length()) as usize) else { return };
        let place = stage % self.length();
        let last = if self.is_batch() { self.calls } else { self.length() - 1 };
        if self.is_batch() && place == 0 {
            span.0 = span.0.min(now);
        } else if place == last {
            span.1 = span.1.max(now);
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
        match self.around {
            None => self.calls,
            Some(Around::Batch { .. }) => self.calls + 3,
            Some(Around::Calls { .. }) => 2 * self.calls,
        }
    }

    /// Whether a round begins with a barrier and ends with reductions.
    fn is_batch(&self) -> bool {
        matches!(self.around, Some(Around::Batch { .. }))
    }

    fn kind(&self, stage: u32) -> Kind {
        match (&self.around, stage % self.length()) {
            (None, _) => Kind::Operation,
            (Some(Around::Calls { .. }), place) if place % 2 == 0 => Kind::Operation,
            (Some(Around::Calls { .. }), _) | (Some(Around::Batch { .. }), 0) => Kind::Barrier,
            (Some(Around::Batch { .. }), place) if place <= self.calls => Kind::Operation,
            (Some(Around::Batch { .. }), _) => Kind::Reduce,
        }
    }
}

impl Around {
    /// Those around a batch, over the board of one host.
    fn batch(group: &Group) -> Self {
        let way = Way::Board(BoardStyle::Each);
        let of = |operation| Arc::new(CompactPlans::of(&Task::new(operation), &way, group, (8, 1)));
        Self::Batch { barrier: of(Operation::Barrier), reduce: of(Operation::Reduce) }
    }

    /// Those behind each call.
    fn calls(group: &Group) -> Self {
        let (task, way) = (Task::new(Operation::Barrier), Way::by(Butterfly));
        Self::Calls { barrier: Arc::new(CompactPlans::of(&task, &way, group, (8, 1))) }
    }
}

/// For each round, when the first member began and when the last one finished.
#[derive(Clone, Debug)]
pub(crate) struct Spans(Vec<(Time, Time)>);

impl Spans {
    /// The lengths of the finished rounds.
    pub(crate) fn lengths_ps(&self) -> Vec<u64> {
        let over = self.0.iter().filter(|(begin, end)| end >= begin);
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
            assert_eq!(
                told.last(),
                Some(&SimulationProgress { done: 8, all: 8 * parts }),
                "all have theirs"
            );
            let SimulationProgress { done, all } = stages.progress(0);
            assert_eq!(done * parts, all, "it goes on from there");
            let SimulationProgress { done, all } = stages.progress(stages.steps());
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
    fn a_barrier_stands_behind_each_call() {
        let (task, group) = (Task::new(Operation::Broadcast), Group::whole(2).unwrap());
        let way = Way::by(Butterfly);
        let work = Work { task: &task, way: &way, group: &group, bytes: 8 };
        let stages = Stages::new(&work, Calls::BeforeBarriers(2), Sharing::of(1));
        assert_eq!((stages.count(), stages.calls()), (4, 2));
        assert_eq!([0, 1, 2, 3].map(|stage| stages.is_around(stage)), [false, true, false, true]);
        let mut spans = stages.spans();
        for (stage, at) in [(0, 50), (1, 90), (2, 120), (3, 200), (3, 180)] {
            stages.note(&mut spans, stage, Time::from_ps(at));
        }
        assert_eq!(spans.lengths_ps(), [200], "with the barriers");
    }

    #[test]
    fn a_round_lasts_from_the_first_to_begin_to_the_last_to_be_through() {
        let (task, group) = (Task::new(Operation::Barrier), Group::whole(2).unwrap());
        let way = Way::Board(BoardStyle::Each);
        let work = Work { task: &task, way: &way, group: &group, bytes: 0 };
        let stages = Stages::new(&work, Calls::Measured { rounds: 1, calls: 1 }, Sharing::of(1));
        let mut spans = stages.spans();
        for (stage, at) in [(0, 50), (0, 70), (1, 200), (1, 150), (2, 900)] {
            stages.note(&mut spans, stage, Time::from_ps(at));
        }
        assert_eq!(spans.lengths_ps(), [150]);
    }
}
