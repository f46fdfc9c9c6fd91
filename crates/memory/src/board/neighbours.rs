//! What the members on one processor are to each other's waits.

use super::WINDOW;
use super::handle::Board;
use crate::waiter::Neighbours;

/// Members of a group whose processors are looked at.
pub const LOOKED_AT_MAX: u32 = 32;

impl Board {
    /// Whether a member's process is on this processor, as it last said. Others than this member.
    #[inline]
    fn is_beside(&self, member: u32, processor: u32) -> bool {
        member != self.own() && self.segment().processor(self.slot(member)) == Some(processor)
    }

    /// What the members whose processes are on this processor are to this member, which waits in an
    /// operation (or for room, before it has come to it) for those that `is_awaited` names. In a large
    /// group somebody always has something to do, and to look at all would take longer than a switch.
    #[inline]
    pub fn neighbours(
        &self,
        (number, has_come): (u32, bool),
        processor: u32,
        is_awaited: impl Fn(u32) -> bool,
    ) -> Neighbours {
        if self.size() > LOOKED_AT_MAX {
            return Neighbours::Awaited;
        }
        let mut neighbours = Neighbours::Waiting;
        let before = number.wrapping_sub(WINDOW as u32);
        for member in (0..self.size()).filter(|&member| self.is_beside(member, processor)) {
            let is_awaited =
                if has_come { is_awaited(member) } else { !self.is_past(member, before) };
            if is_awaited {
                return Neighbours::Awaited;
            }
            if !self.is_past(member, number.wrapping_sub(1)) {
                neighbours = Neighbours::Behind;
            }
        }
        neighbours
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::boards;
    use super::*;

    #[test]
    fn who_is_waited_for_beside_is_told_from_who_is_behind_and_who_waits() {
        let (segment, mut boards) = boards(3);
        segment.set_processor(1, 6);
        segment.set_processor(2, 6);
        for board in &mut boards {
            board.begin(7);
        }
        let of = |boards: &[Board], awaited| {
            boards[0].neighbours((2, true), 6, |member| member == awaited)
        };
        assert_eq!((of(&boards, 2), of(&boards, 0)), (Neighbours::Awaited, Neighbours::Behind));
        boards[1].end(1);
        assert_eq!(of(&boards, 0), Neighbours::Behind);
        boards[2].end(1);
        assert_eq!(of(&boards, 0), Neighbours::Waiting);
    }
}
