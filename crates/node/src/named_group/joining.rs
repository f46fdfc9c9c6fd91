//! Having a mailbox become a member, without a server.

use landeck_groups::service::{EntryWord, Outcome, Seat};

use super::answer::Answer;
use super::live::Live;
use crate::error::{Error, GroupError, Result};

impl Live {
    /// Has a mailbox become a member; the first broadcast that it gets.
    pub(crate) fn join(&self, words: [u64; 3]) -> Result<(Seat, u64)> {
        self.with(|mirror| {
            self.check_open(&mirror.state)?;
            let claim = self.claim_details(mirror, words)?;
            let entry = EntryWord::Join { cell: claim.cell() };
            let (place, outcome) =
                self.append(mirror, entry, |mirror| self.check_open(&mirror.state))?;
            claim.becomes_entry(place);
            match outcome {
                Outcome::Joined(id) => {
                    let (seat, all) = (Seat::new(id, place), mirror.state.broadcasts());
                    // More may have been accepted since.
                    Ok((seat, mirror.state.member(seat).map_or(all, |member| member.first)))
                }
                other => Err(self.not_joined(Answer::of(other))),
            }
        })
    }

    pub(crate) fn not_joined(&self, answer: Answer) -> Error {
        let group = self.name.clone();
        match answer {
            Answer::AlreadyMember(member) => GroupError::AlreadyMember { group, member },
            Answer::Full => GroupError::TooManyMembers { group },
            _ => GroupError::GroupDestroyed { group },
        }
        .into()
    }
}
