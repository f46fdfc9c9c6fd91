//! Cuts: who takes part in the collective operations of a group from a number on.

use landeck_groups::service::{Cut, EntryWord, Seat, State};

use super::live::{Live, Mirror, nobody};
use crate::error::{GroupError, Result};

impl Live {
    /// The cut of an operation, made by whoever comes there first.
    pub(crate) fn cut(&self, number: u64, seat: Seat) -> Result<Cut> {
        self.with(|mirror| {
            self.check_member(&mirror.state, seat)?;
            self.make_cut(mirror, number)?;
            let left_behind = || GroupError::LeftBehind { group: self.name.clone(), number };
            mirror.state.cut(number).cloned().ok_or_else(|| left_behind().into())
        })
    }

    /// The first cut that this member is in.
    pub(crate) fn first_cut(&self, seat: Seat) -> Result<Cut> {
        self.wait(None, nobody, |mirror| {
            self.check_goes_on(&mirror.state)?;
            self.check_member(&mirror.state, seat)?;
            let last = mirror.state.cuts_made();
            // If nobody of those who would make the next one is left, it is for whoever comes.
            let is_forlorn = mirror
                .state
                .cut(last)
                .is_none_or(|cut| !seats_of(cut).any(|seat| mirror.state.member(seat).is_some()));
            if is_forlorn {
                self.make_cut(mirror, last + 1)?;
            }
            let newest = mirror.state.cut(mirror.state.cuts_made());
            Ok(newest.filter(|cut| seats_of(cut).any(|it| it == seat)).cloned())
        })
    }

    fn make_cut(&self, mirror: &mut Mirror, number: u64) -> Result<()> {
        if mirror.state.cuts_made() < number {
            let number = EntryWord::low_bits(number);
            self.append(mirror, EntryWord::Cut { number }, |mirror| {
                self.check_open(&mirror.state)
            })?;
        }
        Ok(())
    }

    fn check_member(&self, state: &State, seat: Seat) -> Result<()> {
        self.check_open(state)?;
        state.member(seat).map(drop).ok_or_else(|| self.no_member(seat.id))
    }
}

/// The members of a cut, in the order of their ranks.
pub(crate) fn seats_of(cut: &Cut) -> impl Iterator<Item = Seat> + '_ {
    cut.members.iter().map(|&[id, _, _, joined_at]| Seat::new(id as u32, joined_at))
}
