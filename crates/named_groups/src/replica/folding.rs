//! Applying accepted entries to the folded state.

use landeck_objects::group_log::Look;
use landeck_protocols::service::{Asking, EntryWord, GroupEntry, Joining, Outcome, Serving, State};

use crate::answer::Answer;
use crate::error::Result;
use crate::origin::{Origin, RequestId};
use crate::replica::{ATTEMPTS, EntryOwner, Home, LocalState, Replica};

impl Replica {
    /// Folds the entries that were accepted since.
    #[inline]
    pub(crate) fn fold(&self, local: &mut LocalState) -> Result<()> {
        match (self.log.look(local.state.position()), &self.home) {
            (Look::Empty, Home::Here(_)) => Ok(()),
            (_, Home::Elsewhere(copy)) => self.take_feeds(local, copy),
            _ => self.fold_all(local),
        }
    }

    /// Folds the entries that were accepted since, and leaves deaths to a later call.
    pub(crate) fn fold_only(&self) -> Result<()> {
        self.fold(&mut *self.local.enter_in_turn()?)
    }

    fn fold_all(&self, local: &mut LocalState) -> Result<()> {
        let mut reloads = 0;
        loop {
            let place = local.state.position();
            match self.log.look(place) {
                Look::Empty => return Ok(()),
                Look::There(word) => match EntryWord::from_word(word) {
                    Some(entry) => self.apply(local, place, entry, EntryOwner::Others).map(drop)?,
                    None => local.state.skip(),
                },
                Look::Overwritten => {
                    reloads += 1;
                    self.reload(local, reloads)?;
                }
            }
        }
    }

    /// Applies the entry at a place of the log.
    pub(crate) fn apply(
        &self,
        local: &mut LocalState,
        place: u64,
        word: EntryWord,
        owner: EntryOwner<'_>,
    ) -> Result<Outcome> {
        let entry = match word {
            EntryWord::Join { cell }
            | EntryWord::Serve { cell }
            | EntryWord::Asked { cell, .. } => {
                let details = self.log.described(cell).map(|described| described.words);
                // A cell of an entry that a snapshot covers may hold another by now. Only the process that has
                // claimed it can be sure.
                if matches!(owner, EntryOwner::Others) && self.log.snapshot_place() > place {
                    self.reload(local, 0)?;
                    return Ok(Outcome::Nothing);
                }
                local.deaths_recorded_at = None;
                match details.and_then(|details| entry_with_details(word, details)) {
                    Some(entry) => entry,
                    None => {
                        local.state.skip();
                        return Ok(Outcome::Nothing);
                    }
                }
            }
            EntryWord::Hold { .. } => {
                local.deaths_recorded_at = None;
                GroupEntry::Plain(word)
            }
            plain => GroupEntry::Plain(plain),
        };
        Ok(self.apply_entry(local, word, entry, owner))
    }

    /// Applies an entry with its details.
    #[inline]
    pub(crate) fn apply_entry(
        &self,
        local: &mut LocalState,
        word: EntryWord,
        entry: GroupEntry,
        owner: EntryOwner<'_>,
    ) -> Outcome {
        let outcome = local.state.apply(entry);
        match (outcome, word, entry) {
            (Outcome::Broadcast(number), EntryWord::Broadcast { cell, .. }, _) => {
                if let EntryOwner::Own(Some(claim)) = owner {
                    claim.set_message(number);
                }
                if self.is_asked {
                    self.answer_broadcast(number, cell);
                }
                self.log.put_broadcast(number, cell);
            }
            // The client repeats the request at the next server.
            (Outcome::Stale, ..) => {}
            (outcome, _, GroupEntry::Asked(asking, _)) => {
                self.answer(RequestId::of(&asking), Answer::of(outcome));
            }
            _ => {}
        }
        outcome
    }

    pub(crate) fn answer(&self, request: RequestId, answer: Answer) {
        let RequestId { slot, incarnation, number } = request;
        self.log.answer(slot, incarnation, number, answer.to_bits());
    }

    /// Answers the request for a broadcast that was accepted. Its cell can hold another message only after the
    /// broadcast was published; the process that published it has answered.
    fn answer_broadcast(&self, number: u64, cell: u32) {
        let described = self.log.described(cell);
        let origin = described.map(|described| Origin::from_words(described.words));
        if let Some(request) = origin.and_then(|origin| origin.request_id())
            && !self.log.has_broadcast(number)
        {
            self.answer(request, Answer::Accepted(number as u32));
        }
    }

    /// Replaces the folded state by the newest snapshot.
    fn reload(&self, local: &mut LocalState, attempt: u32) -> Result<()> {
        let words = self.log.snapshot();
        let state = words.and_then(|words| State::from_words(&words));
        let state = state.filter(|state| {
            state.position() > local.state.position() && state.rules() == local.state.rules()
        });
        match state {
            Some(state) if attempt < ATTEMPTS => {
                local.state = state;
                local.deaths_recorded_at = None;
                Ok(())
            }
            _ => Err(self.broken("its snapshot is none")),
        }
    }
}

/// An entry with the details from its cell; none when they cannot be such.
pub(crate) fn entry_with_details(word: EntryWord, details: [u64; 3]) -> Option<GroupEntry> {
    let [process, context, place] = details;
    let (slot, incarnation, context) = (process as u32, (process >> 32) as u32, context as u32);
    Some(match word {
        EntryWord::Join { .. } => GroupEntry::Join(Joining { slot, incarnation, context, place }),
        EntryWord::Serve { .. } => GroupEntry::Serve(Serving { slot, incarnation, context }),
        EntryWord::Asked { by, .. } => GroupEntry::Asked(Asking::from_words(details)?, by),
        _ => return None,
    })
}
