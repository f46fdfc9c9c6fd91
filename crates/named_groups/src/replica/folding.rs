//! Applying accepted entries to the folded state.

use landeck_objects::group_log::Look;
use landeck_objects::group_log::entries::{Details, details_cell, entry_of, message_cell};
use landeck_protocols::service::{GroupEntry, Outcome, State};

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
                Look::There(word) => self.fold_word(local, place, word)?,
                Look::Overwritten => {
                    reloads += 1;
                    self.reload(local, reloads)?;
                }
            }
        }
    }

    /// Folds the entry of another process at a place of the log.
    fn fold_word(&self, local: &mut LocalState, place: u64, word: u32) -> Result<()> {
        let details = match details_cell(word) {
            None => Some(Details::default()),
            Some(cell) => {
                let described = self.log.described(cell);
                // A cell of an entry that a snapshot covers may hold another by now.
                if self.log.snapshot_place() > place {
                    return self.reload(local, 0);
                }
                described.map(|described| described.words)
            }
        };
        match details.and_then(|details| entry_of(word, details, &local.state)) {
            Some(entry) => {
                let cell = message_cell(word).unwrap_or(0);
                self.apply(local, entry, cell, EntryOwner::Others);
            }
            None => local.state.skip(),
        }
        Ok(())
    }

    /// Applies an accepted entry. A message lies in the cell.
    #[inline]
    pub(crate) fn apply(
        &self,
        local: &mut LocalState,
        entry: GroupEntry,
        cell: u32,
        owner: EntryOwner<'_>,
    ) -> Outcome {
        let outcome = local.state.apply(entry);
        match (outcome, entry) {
            (Outcome::Broadcast(number), GroupEntry::Broadcast { .. }) => {
                if let EntryOwner::Own(Some(claim)) = owner {
                    claim.set_message(number);
                }
                if self.is_asked {
                    self.answer_broadcast(&local.state, number, cell);
                }
                self.log.put_broadcast(number, cell);
            }
            (_, GroupEntry::Broadcast { .. }) => {}
            // The client repeats the request at the next server.
            (Outcome::Stale, _) => {}
            (outcome, GroupEntry::Asked(asking, _)) => {
                // It may name a process that has died since.
                local.deaths_recorded_at = None;
                self.answer(&local.state, RequestId::of(&asking), Answer::of(outcome));
            }
            (
                _,
                GroupEntry::Join(_)
                | GroupEntry::Serve(_)
                | GroupEntry::Hold(_)
                | GroupEntry::Host(_),
            ) => local.deaths_recorded_at = None,
            _ => {}
        }
        outcome
    }

    pub(crate) fn answer(&self, state: &State, request: RequestId, answer: Answer) {
        let RequestId { process, number } = request;
        if let Some(peer) = self.peer(state, process) {
            self.log.answer(peer, process.incarnation, number, answer.to_bits());
        }
    }

    /// Answers the request for a broadcast that was accepted. Its cell can hold another message only after the
    /// broadcast was published; the process that published it has answered.
    fn answer_broadcast(&self, state: &State, number: u64, cell: u32) {
        let described = self.log.described(cell);
        let origin = described.map(|described| Origin::from_words(described.words));
        if let Some(request) = origin.and_then(|origin| origin.request_id())
            && !self.log.has_broadcast(number)
        {
            self.answer(state, request, Answer::Accepted(number as u32));
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
