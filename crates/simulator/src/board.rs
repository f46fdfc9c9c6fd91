//! The board of a host: the members that have come, their deposits, and the time of each step.
//!
//! A deposit takes a word or a copy. A take costs a line or two and a copy, and combining a deposit costs a reduction
//! besides. A line that one member has fetched is near for the others on its processor. A member that tells where its data
//! lie writes a word, and each read of them is a call of the system with one copy.

use landeck_collectives::calibration::FIRST_BYTES;
use landeck_collectives::cost::read_call_ps;
use landeck_collectives::{Calibration, CostParameters, Readers};

use crate::caches::{Rates, Whose};
use crate::compact_plans::SimStep;
use crate::history::{NOTHING, RecordId};
use crate::platform::{Host, bytes_ps};
use crate::time::Time;

/// Bytes of a deposit that stand in its word's line and the next one, which is fetched with it.
const INLINE_BYTES: u64 = 112;
/// One member combines data up to this length for all. Of longer data each member takes a piece of this length.
const PIECE_BYTES: u64 = 32 * 1024;
/// A member that only gives, on a processor of its own, publishes pieces of this length.
const TOLD_BYTES: u64 = 16 * 1024;
/// Only data between these lengths are handed over in a cell.
const CELL_BYTES_MIN: u64 = 2 * 1024;
const CELL_BYTES_MAX: u64 = landeck_memory::message_cells::CELL_BYTES;

/// The state of a board.
#[derive(Debug)]
pub(crate) struct Board {
    figures: CostParameters,
    fetched_reduction_kib_ps: u64,
    /// A combination beside its bytes.
    step_ps: u64,
    /// A look at a line that all members look at.
    line_ps: u64,
    /// A look at a line that this processor has.
    near_ps: u64,
    /// Added to a take where processors are shared.
    take_ps: u64,
    /// A deposit of an inline call where processors are shared.
    around_ps: u64,
    /// Added to the first bytes of another processor's deposit, before the processor prefetches, for each KiB.
    first_kib_ps: u64,
    processors: u32,
    /// Its members, where they are not all of the operation.
    members: Option<Vec<u32>>,
    /// The deposit of each member, by its place on the board.
    deposits: Vec<Option<Laid>>,
    /// By place: the member reads nothing more in others' memory.
    have_read: Vec<bool>,
    results: Vec<Option<Laid>>,
    come: u32,
    last: RecordId,
    /// Bytes of the common result that no member has begun, and bytes that are not finished.
    to_begin: Option<u64>,
    to_do: u64,
    together: RecordId,
    /// The processors that have the common result.
    have_result: Processors,
}

/// A set of processors of a host. With more than 64, some count as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Processors(u64);

impl Processors {
    const fn of(processor: usize) -> Self {
        Self(1 << (processor % 64))
    }

    const fn has(self, processor: usize) -> bool {
        self.0 & Self::of(processor).0 != 0
    }

    /// Adds a processor. Returns whether it was there before.
    const fn add(&mut self, processor: usize) -> bool {
        let had = self.has(processor);
        self.0 |= Self::of(processor).0;
        had
    }
}

/// A deposit.
#[derive(Clone, Copy, Debug)]
struct Laid {
    bytes: u64,
    /// When the whole of it is there.
    until: Time,
    /// The depositor's processor, and the processors that have the data.
    by: usize,
    on: Processors,
    record: RecordId,
    /// The depositor has only told where its data lie.
    is_told: bool,
}

/// A member that looks at the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looking<'a> {
    pub(crate) member: u32,
    pub(crate) processor: usize,
    pub(crate) rates: &'a Rates,
    pub(crate) now: Time,
    /// The place of its last deposit.
    pub(crate) place: Whose,
}

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The member must wait.
    Wait,
    /// The member does its step for this time, after this record.
    Do(u64, RecordId),
    /// The member combines a piece of this many bytes for this time and then looks again.
    Piece(u64, u64, RecordId),
}

impl Board {
    pub(crate) fn new(host: &Host, size: u32) -> Self {
        let Host { figures, details, processors, .. } = *host;
        let nothing = vec![None; size as usize];
        let (sharing, processors) = (size.div_ceil(processors.max(1)), processors.max(1));
        let line_ps = match sharing {
            ..=1 => figures.line_ps,
            _ => {
                let fetched_ps =
                    figures.line_ps * u64::from(processors - 1) / u64::from(processors);
                figures.deposit_ps + fetched_ps / u64::from(sharing)
            }
        };
        let take_ps = match sharing {
            ..=1 => 0,
            _ => Calibration::of_crowd(&details.crowd_finds_ps, sharing.into())
                .saturating_sub(line_ps),
        };
        // Members that share a processor find less in its caches.
        let around_ps = if sharing <= 1 { figures.deposit_ps } else { 2 * figures.deposit_ps };
        Self {
            figures,
            fetched_reduction_kib_ps: figures.reduction_kib_ps
                + figures.one_copy_kib_ps.saturating_sub(figures.local_copy_kib_ps),
            step_ps: details.light_step_ps(),
            line_ps,
            near_ps: figures.deposit_ps,
            take_ps,
            around_ps,
            first_kib_ps: match sharing {
                ..=1 => first_kib_ps(&figures, &details),
                _ => 0, // in what was measured of them
            },
            processors,
            members: None,
            deposits: nothing.clone(),
            have_read: vec![false; size as usize],
            results: nothing,
            come: 0,
            last: NOTHING,
            to_begin: None,
            to_do: 0,
            together: NOTHING,
            have_result: Processors::default(),
        }
    }

    /// The board of these members.
    pub(crate) fn of_members(host: &Host, members: Vec<u32>) -> Self {
        Self { members: Some(members.clone()), ..Self::new(host, members.len() as u32) }
    }

    /// The place of a member; none if it is not at this board.
    fn place(&self, member: u32) -> Option<usize> {
        match &self.members {
            None => Some(member as usize),
            Some(members) => members.binary_search(&member).ok(),
        }
    }

    /// The first so many members.
    pub(crate) fn first_members(&self, count: u32) -> Vec<u32> {
        match &self.members {
            None => (0..count).collect(),
            Some(members) => members.iter().copied().take(count as usize).collect(),
        }
    }

    /// The board of inline calls, whose whole time is in their deposit.
    pub(crate) fn around(mut self) -> Self {
        self.figures.deposit_ps = self.around_ps;
        self
    }

    /// A take of a word in a line that this processor has.
    pub(crate) const fn near_take_ps(&self) -> u64 {
        self.near_ps + self.take_ps
    }

    /// Whether a member can carry out a step now, and at which cost.
    pub(crate) fn look(&mut self, deed: SimStep, by: &Looking<'_>) -> Look {
        let all = (self.come as usize == self.deposits.len()).then_some(self.last);
        match deed {
            SimStep::Deposit { bytes } => Look::Do(self.deposit_ps(bytes, by), NOTHING),
            SimStep::Await => all.map_or(Look::Wait, |all| Look::Do(self.line_ps, all)),
            SimStep::Take { from, bytes, resolved } => self.take(from, bytes, resolved, by),
            SimStep::CombineDeposits { members, bytes } => match self.first(members) {
                Some(record) => {
                    let span_ps = self.step_ps + self.combine_ps(members, bytes, by, true);
                    Look::Do(span_ps, record)
                }
                None => Look::Wait,
            },
            SimStep::Resolve { bytes } => all.map_or(Look::Wait, |all| {
                let members = self.deposits.len() as u32;
                Look::Do(self.step_ps + self.combine_ps(members, bytes, by, false), all)
            }),
            SimStep::Together { bytes } => all.map_or(Look::Wait, |all| self.piece(bytes, by, all)),
            SimStep::TakeResult { bytes } => Look::Do(self.result_ps(bytes, by), self.together),
            SimStep::Tell => Look::Do(self.figures.deposit_ps, NOTHING),
            SimStep::Read { from, bytes, resolved } => self.read(from, bytes, resolved, by),
            SimStep::AwaitReaders { readers } => self.await_readers(readers, by.member),
            SimStep::Send { .. }
            | SimStep::Receive { .. }
            | SimStep::Copy { .. }
            | SimStep::Combine { .. } => Look::Do(0, NOTHING),
        }
    }

    /// Takes the deposit of a member, or the part that it has resolved.
    fn take(&mut self, from: u32, bytes: u64, resolved: bool, by: &Looking<'_>) -> Look {
        let Some(place) = self.place(from) else { return Look::Wait };
        let places = if resolved { &mut self.results } else { &mut self.deposits };
        let Some(laid) = &mut places[place] else { return Look::Wait };
        let is_word_here = laid.on.add(by.processor);
        let Laid { until, record, bytes: whole, .. } = *laid;
        // Of a deposit of which each takes another part, the others here have fetched only the word.
        let is_here = is_word_here && (bytes == whole || laid.by == by.processor);
        let source = if is_here { Whose::Own } else { Whose::Others };
        let of = |bytes| bytes_ps(copied(bytes, whole), by.rates.take_ps(source));
        let first_ps = if is_here { 0 } else { self.first_ps(copied(bytes, whole)) };
        let find_ps = self.find_ps(is_word_here, is_here, whole) + first_ps;
        let span_ps = self.take_ps + find_ps + of(bytes);
        // The last piece is copied when it is there.
        let left_ps = until.since(by.now);
        let last_ps = if left_ps > 0 { left_ps + of(bytes.min(TOLD_BYTES)) } else { 0 };
        Look::Do(span_ps.max(last_ps), record)
    }

    /// Reads in the memory of a member that has told where its data lie, or the part that it has resolved.
    fn read(&self, from: u32, bytes: u64, resolved: bool, by: &Looking<'_>) -> Look {
        let told = self.place(from).and_then(|place| self.places(resolved)[place].as_ref());
        let Some(told) = told else { return Look::Wait };
        Look::Do(self.take_ps + self.line_ps + read_ps(told.on, bytes, by), told.record)
    }

    /// The member has read. It waits until these readers have, too.
    fn await_readers(&mut self, readers: Readers, member: u32) -> Look {
        self.have_read(member);
        let is_awaited = |place: u32| {
            let reader = self.members.as_ref().map_or(place, |members| members[place as usize]);
            readers.contains(reader) && !self.have_read[place as usize]
        };
        match (0..self.have_read.len() as u32).any(is_awaited) {
            true => Look::Wait,
            false => Look::Do(self.line_ps, self.last),
        }
    }

    /// A member reads nothing more in others' memory.
    pub(crate) fn have_read(&mut self, member: u32) {
        if let Some(place) = self.place(member) {
            self.have_read[place] = true;
        }
    }

    /// The time to take the common result.
    fn result_ps(&mut self, bytes: u64, by: &Looking<'_>) -> u64 {
        let is_here = self.have_result.add(by.processor);
        let [own_ps, others_ps] =
            [Whose::Own, Whose::Others].map(|source| by.rates.take_ps(source));
        // Each processor has made an equal share of the result.
        let elsewhere = u64::from(self.processors - 1);
        let elsewhere_ps =
            others_ps.saturating_sub(own_ps) * elsewhere / u64::from(self.processors);
        let kib_ps = if is_here { own_ps } else { own_ps + elsewhere_ps };
        self.find_ps(is_here, is_here, bytes) + bytes_ps(copied(bytes, bytes), kib_ps)
    }

    /// Whether a step waits for this member.
    pub(crate) fn waits_for(&self, deed: SimStep, member: u32) -> bool {
        let Some(at) = self.place(member) else { return false };
        match deed {
            SimStep::Await | SimStep::Resolve { .. } | SimStep::Together { .. } => {
                self.deposits[at].is_none()
            }
            SimStep::Take { from, resolved, .. } => {
                from == member && self.places(resolved)[at].is_none()
            }
            SimStep::Read { from, resolved, .. } => {
                from == member && self.places(resolved)[at].is_none()
            }
            SimStep::AwaitReaders { readers } => readers.contains(member) && !self.have_read[at],
            SimStep::CombineDeposits { members, .. } => {
                at < members as usize && self.deposits[at].is_none()
            }
            _ => false,
        }
    }

    /// When others can begin to take a deposit that takes `span_ps`, if its member only gives and has a processor of
    /// its own: after the first piece.
    pub(crate) fn first_piece_ps(bytes: u64, span_ps: u64) -> Option<u64> {
        let part = u128::from(span_ps) * u128::from(TOLD_BYTES) / u128::from(bytes.max(1));
        (bytes > TOLD_BYTES).then_some(part as u64)
    }

    /// Publishes a deposit, of which the whole is there at some moment.
    pub(crate) fn lay(&mut self, member: u32, bytes: u64, by: (usize, Time), record: RecordId) {
        let (processor, until) = by;
        let on = Processors::of(processor);
        let laid = Laid { bytes, until, by: processor, on, record, is_told: false };
        if let Some(place) = self.place(member) {
            self.deposits[place].get_or_insert(laid);
        }
    }

    /// Notes a finished step. Returns whether others may wait for it.
    pub(crate) fn done(
        &mut self,
        deed: SimStep,
        member: u32,
        by: (usize, Time),
        record: RecordId,
    ) -> bool {
        match deed {
            SimStep::Deposit { bytes } => {
                self.lay(member, bytes, by, record);
                self.come += 1;
                self.last = record;
                true
            }
            SimStep::Tell => {
                self.lay(member, 0, by, record);
                if let Some(laid) = self.place(member).and_then(|at| self.deposits[at].as_mut()) {
                    laid.is_told = true;
                }
                self.come += 1;
                self.last = record;
                true
            }
            SimStep::AwaitReaders { .. } => {
                self.last = record;
                true
            }
            SimStep::Resolve { bytes } => {
                let on = Processors::of(by.0);
                if let Some(place) = self.place(member) {
                    let (until, by, is_told) = (by.1, by.0, false);
                    self.results[place] = Some(Laid { bytes, until, by, on, record, is_told });
                }
                true
            }
            _ => false,
        }
    }

    fn places(&self, resolved: bool) -> &[Option<Laid>] {
        if resolved { &self.results } else { &self.deposits }
    }

    /// Notes a finished piece of the common result. Returns whether it was the last.
    pub(crate) fn piece_done(&mut self, bytes: u64, record: RecordId) -> bool {
        self.to_do -= bytes;
        self.together = record;
        self.to_do == 0
    }

    fn piece(&mut self, bytes: u64, by: &Looking<'_>, all: RecordId) -> Look {
        if self.to_begin.is_none() {
            (self.to_begin, self.to_do) = (Some(bytes), bytes);
            if bytes == 0 {
                return Look::Do(0, all);
            }
        }
        let left = self.to_begin.unwrap_or(0);
        if left == 0 {
            return if self.to_do == 0 { Look::Do(0, self.together) } else { Look::Wait };
        }
        let piece = left.min(PIECE_BYTES);
        self.to_begin = Some(left - piece);
        Look::Piece(piece, self.combine_ps(self.deposits.len() as u32, piece, by, false), all)
    }

    /// The last record of the first members, if all of them have come.
    fn first(&self, members: u32) -> Option<RecordId> {
        let there = self.deposits[..members as usize].iter();
        there.copied().try_fold(0, |last, laid| Some(last.max(laid?.record)))
    }

    fn deposit_ps(&self, bytes: u64, by: &Looking<'_>) -> u64 {
        let is_handed_over = (CELL_BYTES_MIN..=CELL_BYTES_MAX).contains(&bytes);
        let place = match by.place {
            Whose::HandedOver if !is_handed_over => Whose::Others,
            place => place,
        };
        let kib_ps = by.rates.deposit_ps(place, false);
        self.figures.deposit_ps + bytes_ps(copied(bytes, bytes), kib_ps)
    }

    /// Added to the first bytes of another processor's deposit.
    fn first_ps(&self, bytes: u64) -> u64 {
        bytes_ps(bytes.min(FIRST_BYTES), self.first_kib_ps)
    }

    /// The time to find a deposit: beside its word, or at the place that the word names.
    const fn find_ps(&self, is_word_here: bool, is_here: bool, laid_bytes: u64) -> u64 {
        let word_ps = if is_word_here { self.near_ps } else { self.figures.line_ps };
        let data_ps = if is_here { self.near_ps } else { self.figures.line_ps };
        if laid_bytes <= INLINE_BYTES { word_ps } else { word_ps + data_ps }
    }

    /// The time to combine deposits in their places, or data of which members have told, after they were read. After a
    /// combination of whole deposits the other members of the processor find them there.
    fn combine_ps(&mut self, members: u32, bytes: u64, by: &Looking<'_>, is_whole: bool) -> u64 {
        let (mut span_ps, mut last_ps) = (0, 0);
        let more_ps = by.rates.source_more_ps();
        for member in (0..members).filter(|&member| member != by.member) {
            let Some(laid) = &mut self.deposits[member as usize] else { continue };
            if laid.is_told {
                let reduction_ps = bytes_ps(bytes, self.figures.reduction_kib_ps + more_ps);
                span_ps += self.line_ps + read_ps(laid.on, bytes, by) + reduction_ps;
                continue;
            }
            let mut on = laid.on;
            let is_here = on.add(by.processor);
            if is_whole {
                laid.on = on;
            }
            let (until, whole) = (laid.until, laid.bytes);
            let kib_ps = match is_here {
                true => self.figures.reduction_kib_ps,
                false => self.fetched_reduction_kib_ps,
            };
            let of = |bytes| bytes_ps(bytes, kib_ps + more_ps);
            let first_ps = if is_here { 0 } else { self.first_ps(copied(bytes, whole)) };
            span_ps += self.find_ps(is_here, is_here, whole) + first_ps + of(bytes);
            let left_ps = until.since(by.now);
            if left_ps > 0 {
                last_ps = last_ps.max(left_ps + of(bytes.min(TOLD_BYTES)));
            }
        }
        span_ps.max(last_ps)
    }
}

/// The time to read bytes in the memory of a member whose data these processors have.
fn read_ps(on: Processors, bytes: u64, by: &Looking<'_>) -> u64 {
    let source = if on.has(by.processor) { Whose::Own } else { Whose::Others };
    read_call_ps(bytes) + bytes_ps(bytes, by.rates.take_ps(source))
}

/// A message finds its data as a take does, and was measured as a whole.
fn first_kib_ps(figures: &CostParameters, details: &Calibration) -> u64 {
    let copies_ps = details.deposit_kib_ps + figures.one_copy_kib_ps;
    let found_ps = figures.message_ps + figures.line_ps;
    let first_ps = details.message_ps(figures, FIRST_BYTES).saturating_sub(found_ps);
    (first_ps / (FIRST_BYTES / 1024)).saturating_sub(copies_ps)
}

/// The bytes of a deposit that are copied, since they do not stand beside its word.
const fn copied(bytes: u64, laid_bytes: u64) -> u64 {
    if laid_bytes <= INLINE_BYTES { 0 } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact_plans::{CompactPlans, Path};
    use crate::footprint::Footprint;
    use landeck_collectives::{BoardStyle, Group, Operation, Precedence, Task, Way};
    use std::sync::Arc;

    fn host() -> Host {
        let figures = CostParameters::default();
        Host { processors: 2, figures, details: Calibration::of(&figures).with_calls(0, 0) }
    }

    fn board(size: u32) -> Board {
        Board::new(&host(), size)
    }

    fn rates() -> Rates {
        let touched = Footprint::default();
        Rates::of(&host(), &touched, &touched)
    }

    /// A member of this processor looks at this moment.
    fn looking(rates: &Rates, member: u32, processor: usize, now: u64) -> Looking<'_> {
        Looking { member, processor, rates, now: Time::from_ps(now), place: Whose::Own }
    }

    fn look(board: &mut Board, deed: SimStep, by: (u32, usize), now: u64) -> u64 {
        match board.look(deed, &looking(&rates(), by.0, by.1, now)) {
            Look::Do(span_ps, _) => span_ps,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_member_that_has_told_waits_until_its_readers_have_read() {
        let mut board = board(2);
        let rates = rates();
        let mut looks = |deed, member: u32| {
            let look = board.look(deed, &looking(&rates, member, member as usize, 0));
            let is_done = look != Look::Wait;
            if is_done {
                board.done(deed, member, (member as usize, Time::ZERO), NOTHING);
            }
            is_done
        };
        let read = SimStep::Read { from: 0, bytes: 1024, resolved: false };
        let leave = |readers| SimStep::AwaitReaders { readers };
        assert!(!looks(read, 1), "it has told of nothing yet");
        assert!(looks(SimStep::Tell, 0) && looks(SimStep::Tell, 1));
        assert!(!looks(leave(Readers::Others), 0));
        assert!(looks(read, 1) && looks(leave(Readers::Nobody), 1));
        assert!(looks(leave(Readers::Others), 0));
    }

    /// The steps of member 1 of four in an operation of `bytes` bytes.
    fn deeds_of(operation: Operation, bytes: u64) -> Vec<SimStep> {
        let group = Group::whole(4).unwrap();
        let way = Way::Board(BoardStyle::Each);
        let path = Path::new(
            &Arc::new(CompactPlans::of(&Task::new(operation), &way, &group, (bytes, 1))),
            1,
        );
        (0..path.steps()).map(|step| path.deed(step)).collect()
    }

    #[test]
    fn data_fetched_by_one_member_are_near_for_others_on_its_processor() {
        let CostParameters { line_ps, deposit_ps, one_copy_kib_ps, local_copy_kib_ps, .. } =
            CostParameters::default();
        assert_eq!(board(2).line_ps, line_ps);
        assert_eq!(board(8).line_ps, deposit_ps + line_ps / 2 / 4, "one of four fetches the half");
        for (bytes, far_ps, near_ps) in [
            (8, line_ps, deposit_ps),
            (1024, 2 * line_ps + one_copy_kib_ps, 2 * deposit_ps + local_copy_kib_ps),
        ] {
            let mut board = board(8);
            board.lay(0, bytes, (0, Time::ZERO), NOTHING);
            let take = SimStep::Take { from: 0, bytes, resolved: false };
            let mut take = |member| look(&mut board, take, (member, member as usize % 2), 0);
            assert_eq!([1, 3, 2].map(&mut take), [far_ps, near_ps, near_ps], "{bytes}");
        }
    }

    #[test]
    fn of_what_each_takes_another_part_only_the_word_is_near() {
        let CostParameters { line_ps, deposit_ps, one_copy_kib_ps, local_copy_kib_ps, .. } =
            CostParameters::default();
        let mut board = board(8);
        board.lay(0, 8 * 1024, (0, Time::ZERO), NOTHING);
        let take = SimStep::Take { from: 0, bytes: 1024, resolved: false };
        let mut take = |member| look(&mut board, take, (member, member as usize % 2), 0);
        let far_ps = line_ps + one_copy_kib_ps;
        let spans_ps = [line_ps + far_ps, deposit_ps + far_ps, 2 * deposit_ps + local_copy_kib_ps];
        assert_eq!([1, 3, 2].map(&mut take), spans_ps);
    }

    #[test]
    fn a_take_of_those_who_share_a_processor_takes_what_was_measured() {
        let mut host = host();
        host.details.crowd_finds_ps = [0, 90_000, 90_000, 90_000];
        let take_ps = |size| {
            let mut board = Board::new(&host, size);
            board.lay(0, 8, (0, Time::ZERO), NOTHING);
            let take = SimStep::Take { from: 0, bytes: 8, resolved: false };
            look(&mut board, take, (2, 0), 0)
        };
        let (alone, near_ps) = (board(8), host.figures.deposit_ps);
        assert_eq!([take_ps(2), take_ps(8)], [near_ps, near_ps + 90_000 - alone.line_ps]);
    }

    #[test]
    fn data_combined_for_one_member_are_fetched_and_for_all_are_not() {
        let CostParameters { line_ps, deposit_ps, reduction_kib_ps, .. } =
            CostParameters::default();
        let fetched_kib_ps = board(4).fetched_reduction_kib_ps;
        let mut board = board(4);
        (0..4).for_each(|at| board.lay(at, 1024, (at as usize % 2, Time::ZERO), NOTHING));
        board.come = 4;
        let near_ps = 2 * deposit_ps + reduction_kib_ps;
        let first_ps = 2 * (2 * line_ps + fetched_kib_ps) + near_ps;
        let part = SimStep::Resolve { bytes: 1024 };
        assert_eq!([1, 3].map(|at| look(&mut board, part, (at, 1), 0)), [first_ps; 2]);
        let all = SimStep::CombineDeposits { members: 4, bytes: 1024 };
        let each = [1, 3].map(|at| look(&mut board, all, (at, 1), 0));
        assert_eq!(each, [first_ps, 3 * near_ps]);
    }

    #[test]
    fn a_member_that_takes_in_pieces_copies_the_last_one_when_it_is_there() {
        let bytes = 4 * TOLD_BYTES;
        assert_eq!(Board::first_piece_ps(bytes, 1_000), Some(250));
        assert_eq!(Board::first_piece_ps(TOLD_BYTES, 1_000), None, "one piece");
        let CostParameters { line_ps, one_copy_kib_ps, .. } = CostParameters::default();
        let (whole_ps, piece_ps) = (64 * one_copy_kib_ps, 16 * one_copy_kib_ps);
        let take = SimStep::Take { from: 0, bytes, resolved: false };
        for (until, span_ps) in
            [(whole_ps / 2, 2 * line_ps + whole_ps), (2 * whole_ps, 2 * whole_ps + piece_ps)]
        {
            let mut board = board(2);
            board.first_kib_ps = 0;
            board.lay(0, bytes, (0, Time::from_ps(until)), NOTHING);
            assert_eq!(look(&mut board, take, (1, 1), 0), span_ps, "there at {until}");
        }
    }

    #[test]
    fn a_short_block_of_a_long_deposit_is_found_where_that_says() {
        let mut board = board(2);
        board.lay(0, 1024, (0, Time::ZERO), NOTHING);
        let take = SimStep::Take { from: 0, bytes: 8, resolved: false };
        let CostParameters { line_ps, one_copy_kib_ps, .. } = CostParameters::default();
        let kib_ps = one_copy_kib_ps + board.first_kib_ps;
        assert_eq!(look(&mut board, take, (1, 1), 0), 2 * line_ps + kib_ps / 128);
    }

    #[test]
    fn the_first_bytes_take_as_much_longer_as_those_of_a_message() {
        let (Host { figures, details, .. }, mut board) = (host(), self::board(2));
        let message_ps = details.message_ps(&figures, FIRST_BYTES) - figures.message_ps;
        let copies_ps = figures.local_copy_kib_ps + figures.one_copy_kib_ps;
        assert_eq!(2 * board.first_kib_ps, message_ps - figures.line_ps - 2 * copies_ps);
        assert_eq!(self::board(8).first_kib_ps, 0, "it is in what was measured of many");
        board.lay(0, 8 << 10, (0, Time::ZERO), NOTHING);
        let mut taken_ps = |bytes| {
            let take = SimStep::Take { from: 0, bytes, resolved: false };
            look(&mut board, take, (1, 1), 0) - bytes / 1024 * figures.one_copy_kib_ps
        };
        assert_eq!(taken_ps(4 << 10), 2 * figures.line_ps + 2 * board.first_kib_ps);
    }

    #[test]
    fn data_that_all_members_combine_go_in_pieces() {
        let mut board = board(4);
        let mut pieces = Vec::new();
        let rates = rates();
        let by = looking(&rates, 0, 0, 0);
        while let Look::Piece(bytes, ..) = board.piece(100 * 1024, &by, NOTHING) {
            pieces.push(bytes / 1024);
        }
        assert_eq!(pieces, [32, 32, 32, 4]);
        let last = pieces.iter().filter(|&&kib| board.piece_done(kib * 1024, NOTHING)).count();
        assert_eq!(last, 1);
    }

    #[test]
    fn a_scan_waits_for_those_before_alone() {
        let deeds = deeds_of(Operation::Scan, 8);
        let is_it = |deed: &&SimStep| matches!(deed, SimStep::CombineDeposits { .. });
        let deed = *deeds.iter().find(is_it).unwrap();
        assert_eq!([0, 2, 3].map(|of| board(4).waits_for(deed, of)), [true, false, false]);
    }

    #[test]
    fn a_member_that_lays_down_blocks_for_others_keeps_its_own() {
        let deeds = deeds_of(Operation::AllToAll, 1024);
        let deed = *deeds.iter().find(|deed| matches!(deed, SimStep::Deposit { .. })).unwrap();
        let figures = CostParameters::default();
        let three_ps = figures.deposit_ps + 3 * figures.local_copy_kib_ps;
        assert_eq!(look(&mut board(4), deed, (1, 1), 0), three_ps);
    }
}
