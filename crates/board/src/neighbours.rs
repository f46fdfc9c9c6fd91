//! The yield policy of a wait at a board: whether giving the core to the members that share it would help.

use landeck_memory::scheduler_order::TurnPosition;

use super::WINDOW;
use super::handle::Board;

/// Members of a group whose cores are looked at.
pub const LOOKED_AT_MAX: u32 = 32;

/// How long a member keeps its core where all on it wait for another core, in nanoseconds: about two switches of
/// processes.
pub const WAITING_KEEP_NS: u64 = 1_500;
/// How long the first in the order of turns keeps it, in nanoseconds: a member that gives its turn away has it again
/// when all others have had theirs.
const FIRST_KEEP_NS: u64 = 4_000;

/// The relation of the processes that share a waiting member's core to its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// One of them is awaited or will be, or nothing is known: the member yields the core at once.
    Awaited,
    /// The data come from another core, and this member is the first on its core that others will await then.
    First,
    /// They also wait for data from another core: yielding helps no member.
    Waiting,
}

impl Neighbours {
    /// For how many nanoseconds polling helps more than giving the core away.
    #[inline]
    pub const fn keep_core_ns(self) -> u64 {
        match self {
            Self::Awaited => 0,
            Self::First => FIRST_KEEP_NS,
            Self::Waiting => WAITING_KEEP_NS,
        }
    }
}

impl Board {
    /// Whether a member's process is on this processor, as it last said. Others than this member.
    #[inline]
    fn is_beside(&self, member: u32, processor: u32) -> bool {
        member != self.own() && self.segment().processor(self.slot(member)) == Some(processor)
    }

    /// Relates the members on this core to this member's wait. This member waits in an operation (or for room, before
    /// it has come) for the members that `is_awaited` names. A member that is behind will be awaited. A large group is
    /// not scanned: some member always has work, and a scan would take longer than a context switch.
    #[inline]
    pub fn neighbours(
        &self,
        (number, has_come): (u32, bool),
        processor: u32,
        is_awaited: impl Fn(u32) -> bool,
    ) -> Neighbours {
        let before = number.wrapping_sub(WINDOW as u32);
        let has_to_go_on = |member| {
            !self.is_past(member, number.wrapping_sub(1))
                || (if has_come { is_awaited(member) } else { !self.is_past(member, before) })
        };
        let mut beside = (0..self.size()).filter(|&member| self.is_beside(member, processor));
        match self.size() > LOOKED_AT_MAX || beside.any(has_to_go_on) {
            true => Neighbours::Awaited,
            false => Neighbours::Waiting,
        }
    }
}

impl Board {
    /// Relates the members on this core to this member's wait for a root's deposit, once it has come. If the roots of
    /// the last operations moved on by equal steps, the next ones will too: of the members on this core, only the one
    /// that becomes root first can be awaited soon.
    #[inline]
    pub fn neighbours_of_root(&self, number: u32, processor: u32, root: u32) -> Neighbours {
        if self.is_beside(root, processor) {
            return Neighbours::Awaited;
        }
        if let Some(stride) = self.history.stride(number, self.size()) {
            let mut next = root;
            for _ in 1..self.size().min(LOOKED_AT_MAX) {
                next = (next + stride) % self.size();
                if next == self.own() {
                    return Neighbours::First;
                }
                if self.is_beside(next, processor) {
                    return Neighbours::Awaited;
                }
            }
        }
        self.neighbours((number, true), processor, |_| false)
    }
}

impl Board {
    /// Whether the roots of the last operations moved on by equal steps, in a group in which members are looked at
    /// and of which more than two share a processor: two have their turns in the same order in any case.
    #[inline]
    pub fn rotates(&self, number: u32) -> bool {
        let looked_at = 2 * self.processors() + 1..=LOOKED_AT_MAX;
        looked_at.contains(&self.size()) && self.history.stride(number, self.size()).is_some()
    }

    /// The position of this member among those on this core, in the order in which they are roots.
    #[cold]
    pub fn turn_position(&self, number: u32, processor: u32) -> TurnPosition {
        let stride = self.history.stride(number, self.size()).unwrap_or(1);
        let (mut member, mut at, mut beside) = (0, 0, 0);
        for _ in 0..self.size() {
            if member == self.own() {
                at = beside;
            }
            beside += u32::from(member == self.own() || self.is_beside(member, processor));
            member = (member + stride) % self.size();
        }
        TurnPosition { at, of: beside }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::boards;
    use super::*;

    #[test]
    fn a_member_keeps_its_core_when_all_on_it_wait_too() {
        let (segment, mut boards) = boards(3);
        segment.set_processor(1, 6);
        segment.set_processor(2, 6);
        for board in &mut boards {
            board.begin(7);
        }
        let of = |boards: &[Board], awaited| {
            boards[0].neighbours((2, true), 6, |member| member == awaited)
        };
        assert_eq!(of(&boards, 0), Neighbours::Awaited, "both are behind");
        boards[1].end(1);
        assert_eq!(of(&boards, 0), Neighbours::Awaited, "one is");
        boards[2].end(1);
        assert_eq!((of(&boards, 2), of(&boards, 0)), (Neighbours::Awaited, Neighbours::Waiting));
    }

    #[test]
    fn of_those_on_a_processor_the_next_root_keeps_it() {
        let (segment, mut boards) = boards(4);
        (0..4).for_each(|member| segment.set_processor(member, member % 2));
        let mut of = |roots: &[u32], member: usize| {
            let board = &mut boards[member];
            let begin = |root: &u32| board.begin(3 << 14 | root).0;
            let (number, root) = (roots.iter().map(begin).last(), roots.last());
            board.neighbours_of_root(number.unwrap(), member as u32 % 2, *root.unwrap())
        };
        assert_eq!(of(&[3, 0, 1], 2), Neighbours::First, "and not member 0");
        assert_eq!(of(&[3, 0, 1], 0), Neighbours::Awaited, "member 2 is first");
        assert_eq!(of(&[3, 0, 1], 3), Neighbours::Awaited, "the root is beside");
        assert_eq!(
            of(&[1, 1, 1], 0),
            Neighbours::Awaited,
            "no order is known, and they are behind"
        );
        assert_eq!(of(&[1, 3, 0], 1), Neighbours::Awaited, "here as well");
    }

    #[test]
    fn places_on_a_processor_follow_the_order_of_roots() {
        let (segment, mut boards) = boards(6);
        (0..6).for_each(|member| segment.set_processor(member, member % 2));
        let mut of = |roots: [u32; 3], member: usize| {
            let board = &mut boards[member];
            let number = roots.map(|root| board.begin(3 << 14 | root).0)[2];
            let TurnPosition { at, of } = board.turn_position(number, member as u32 % 2);
            (board.rotates(number), (at, of))
        };
        assert_eq!(
            [0, 2, 4].map(|member| of([3, 4, 5], member)),
            [0, 1, 2].map(|at| (true, (at, 3)))
        );
        assert_eq!(
            [1, 3, 5].map(|member| of([3, 4, 5], member)),
            [0, 1, 2].map(|at| (true, (at, 3)))
        );
        let backwards = [0, 2, 4].map(|member| of([3, 2, 1], member));
        assert_eq!(backwards, [0, 2, 1].map(|at| (true, (at, 3))), "4 is before 2");
        assert!(!of([3, 3, 3], 1).0 && !of([3, 5, 0], 1).0);
    }
}
