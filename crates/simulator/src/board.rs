//! The board of a host: who has come, what is there, and what a step on it takes.
//!
//! A word or a copy to deposit, a line or two and a copy to take, the same and a reduction for each
//! deposit that is combined. Where members share processors, a line that one of them has fetched is
//! near for the others, and those of their own processor always are.

use landeck_collectives::{Details, Figures};

use crate::caches::Rates;
use crate::history::{NOTHING, RecordId};
use crate::platform::{Host, bytes_ps};
use crate::walks::Deed;

/// Bytes of a deposit that stand in its word's line and the one behind it, which is asked for with it.
const INLINE_BYTES: u64 = 112;
/// Data up to this are combined by one member for all; of longer data each takes such a piece.
const PIECE_BYTES: u64 = 32 * 1024;

/// What lies on the board.
#[derive(Debug)]
pub(crate) struct Board {
    figures: Figures,
    /// What a combination takes beside its bytes.
    step_ps: u64,
    /// To look at a line that somebody has written.
    line_ps: u64,
    /// What a short call takes that lays something down, where processors are shared.
    around_ps: u64,
    /// By member: its deposit is there, by this record.
    deposits: Vec<Option<RecordId>>,
    results: Vec<Option<RecordId>>,
    come: u32,
    last: RecordId,
    /// Of what all combine together: bytes that nobody has begun with, and that are not done yet.
    to_begin: Option<u64>,
    to_do: u64,
    together: RecordId,
}

/// What a member that looks at the board can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Not what it needs.
    Wait,
    /// It can do its step, which takes so long; this came before.
    Do(u64, RecordId),
    /// It combines a piece of so many bytes for all, in so long; then it looks again.
    Piece(u64, u64, RecordId),
}

impl Board {
    pub(crate) fn new(host: &Host, size: u32) -> Self {
        let Host { figures, details, processors, step_ps, .. } = *host;
        let nothing = vec![None; size as usize];
        let (sharing, processors) =
            (size.div_ceil(processors.max(1)), u64::from(processors.max(1)));
        let line_ps = match sharing {
            ..=1 => figures.line_ps,
            _ => {
                let fetched_ps = figures.line_ps * (processors - 1) / processors;
                figures.deposit_ps + fetched_ps / u64::from(sharing)
            }
        };
        let around_ps = match sharing {
            ..=1 => figures.deposit_ps,
            _ => Details::of_crowd(&details.crowd_deposits_ps, sharing.into()),
        };
        Self {
            figures,
            step_ps,
            line_ps,
            around_ps,
            deposits: nothing.clone(),
            results: nothing,
            come: 0,
            last: NOTHING,
            to_begin: None,
            to_do: 0,
            together: NOTHING,
        }
    }

    /// The same for calls that go the short way: what the call takes is in its deposit.
    pub(crate) fn around(mut self) -> Self {
        self.figures.deposit_ps = self.around_ps;
        self
    }

    /// To look at a line that somebody has written.
    pub(crate) const fn line_ps(&self) -> u64 {
        self.line_ps
    }

    /// What a member can do about a step, on a processor with these rates.
    pub(crate) fn look(&mut self, deed: Deed, rates: &Rates) -> Look {
        let have_all = self.come as usize == self.deposits.len();
        let all = if have_all { Some(self.last) } else { None };
        let (there, span_ps) = match deed {
            Deed::Deposit { bytes } => (Some(NOTHING), self.deposit_ps(bytes, rates)),
            Deed::Await => (all, self.line_ps),
            Deed::Take { from, bytes, resolved } => {
                (self.places(resolved)[from as usize], self.take_ps(bytes, rates))
            }
            Deed::CombineDeposits { members, bytes } => {
                (self.first(members), self.step_ps + self.combine_ps(members, bytes, rates))
            }
            Deed::Resolve { bytes } => {
                let members = self.deposits.len() as u32;
                (all, self.step_ps + self.combine_ps(members, bytes, rates))
            }
            Deed::Together { bytes } => {
                return all.map_or(Look::Wait, |all| self.piece(bytes, rates, all));
            }
            Deed::TakeResult { bytes } => (Some(self.together), self.take_ps(bytes, rates)),
            Deed::Send { .. } | Deed::Receive { .. } | Deed::Copy { .. } | Deed::Combine { .. } => {
                (Some(NOTHING), 0)
            }
        };
        there.map_or(Look::Wait, |cause| Look::Do(span_ps, cause))
    }

    /// Whether a step waits for this member.
    pub(crate) fn waits_for(&self, deed: Deed, member: u32) -> bool {
        let at = member as usize;
        match deed {
            Deed::Await | Deed::Resolve { .. } | Deed::Together { .. } => {
                self.deposits[at].is_none()
            }
            Deed::Take { from, resolved, .. } => {
                from == member && self.places(resolved)[at].is_none()
            }
            Deed::CombineDeposits { members, .. } => {
                member < members && self.deposits[at].is_none()
            }
            _ => false,
        }
    }

    /// A member has done a step. Whether others may wait for that.
    pub(crate) fn done(&mut self, deed: Deed, member: u32, record: RecordId) -> bool {
        match deed {
            Deed::Deposit { .. } => {
                self.deposits[member as usize] = Some(record);
                self.come += 1;
                self.last = record;
                true
            }
            Deed::Resolve { .. } => {
                self.results[member as usize] = Some(record);
                true
            }
            _ => false,
        }
    }

    fn places(&self, resolved: bool) -> &[Option<RecordId>] {
        if resolved { &self.results } else { &self.deposits }
    }

    /// A member has combined a piece for all. Whether that was the last.
    pub(crate) fn piece_done(&mut self, bytes: u64, record: RecordId) -> bool {
        self.to_do -= bytes;
        self.together = record;
        self.to_do == 0
    }

    fn piece(&mut self, bytes: u64, rates: &Rates, all: RecordId) -> Look {
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
        Look::Piece(piece, self.combine_ps(self.deposits.len() as u32, piece, rates), all)
    }

    /// The last of the first members to come, once they are there.
    fn first(&self, members: u32) -> Option<RecordId> {
        let there = self.deposits[..members as usize].iter();
        there.copied().try_fold(0, |last, record| Some(last.max(record?)))
    }

    fn deposit_ps(&self, bytes: u64, rates: &Rates) -> u64 {
        let copied = if bytes <= INLINE_BYTES { 0 } else { bytes };
        self.figures.deposit_ps + bytes_ps(copied, rates.deposit_kib_ps)
    }

    fn take_ps(&self, bytes: u64, rates: &Rates) -> u64 {
        let copied = if bytes <= INLINE_BYTES { 0 } else { bytes };
        self.find_ps(bytes) + bytes_ps(copied, rates.take_kib_ps)
    }

    /// To find what a member has laid down: beside its word, or where that says.
    const fn find_ps(&self, bytes: u64) -> u64 {
        if bytes <= INLINE_BYTES { self.line_ps } else { 2 * self.line_ps }
    }

    /// Each deposit is read where it lies: by so much longer than in the processor's own caches as a copy out of
    /// it takes longer than one in place.
    fn combine_ps(&self, members: u32, bytes: u64, rates: &Rates) -> u64 {
        let Figures { reduction_kib_ps, local_copy_kib_ps, .. } = self.figures;
        let kib_ps = reduction_kib_ps + rates.fetch_kib_ps.saturating_sub(local_copy_kib_ps);
        let each_ps = self.find_ps(bytes) + bytes_ps(bytes, kib_ps);
        u64::from(members.saturating_sub(1)) * each_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::Touched;
    use crate::walks::{Path, Walks};
    use landeck_collectives::{BoardStyle, Group, Operation, Precedence, Task, Way};
    use std::sync::Arc;

    fn board(size: u32) -> Board {
        let figures = Figures::default();
        let details = Details::of(&figures);
        Board::new(&Host { processors: 2, figures, details, call_ps: 0, step_ps: 0 }, size)
    }

    fn rates() -> Rates {
        let touched = Touched::default();
        Rates::of(&Details::of(&Figures::default()), &touched, &touched)
    }

    /// What member 1 of four does, step by step, with so many bytes.
    fn deeds_of(operation: Operation, bytes: u64) -> Vec<Deed> {
        let group = Group::whole(4).unwrap();
        let way = Way::Board(BoardStyle::Each);
        let path = Path::new(&Arc::new(Walks::of(&Task::new(operation), &way, &group, bytes)), 1);
        (0..path.steps()).map(|step| path.deed(step)).collect()
    }

    #[test]
    fn a_line_that_others_on_the_processor_have_fetched_is_near() {
        let Figures { line_ps, deposit_ps, one_copy_kib_ps, .. } = Figures::default();
        assert_eq!(board(2).line_ps, line_ps);
        assert_eq!(board(8).line_ps, deposit_ps + line_ps / 2 / 4, "one of four fetches the half");
        assert_eq!(board(2).take_ps(8, &rates()), line_ps);
        assert_eq!(board(2).take_ps(1024, &rates()), 2 * line_ps + one_copy_kib_ps);
    }

    #[test]
    fn what_all_combine_goes_in_pieces() {
        let mut board = board(4);
        let mut pieces = Vec::new();
        while let Look::Piece(bytes, ..) = board.piece(100 * 1024, &rates(), NOTHING) {
            pieces.push(bytes / 1024);
        }
        assert_eq!(pieces, [32, 32, 32, 4]);
        let last = pieces.iter().filter(|&&kib| board.piece_done(kib * 1024, NOTHING)).count();
        assert_eq!(last, 1);
    }

    #[test]
    fn a_scan_waits_for_those_before_alone() {
        let deeds = deeds_of(Operation::Scan, 8);
        let is_it = |deed: &&Deed| matches!(deed, Deed::CombineDeposits { .. });
        let deed = *deeds.iter().find(is_it).unwrap();
        assert_eq!([0, 2, 3].map(|of| board(4).waits_for(deed, of)), [true, false, false]);
    }

    #[test]
    fn who_lays_down_blocks_for_others_keeps_its_own() {
        let deeds = deeds_of(Operation::AllToAll, 1024);
        let deed = *deeds.iter().find(|deed| matches!(deed, Deed::Deposit { .. })).unwrap();
        let figures = Figures::default();
        let three_ps = figures.deposit_ps + 3 * figures.local_copy_kib_ps;
        assert_eq!(board(4).look(deed, &rates()), Look::Do(three_ps, NOTHING));
    }
}
