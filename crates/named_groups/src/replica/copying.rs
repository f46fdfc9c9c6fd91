//! Folding what a server has told a copy of the log ([`crate::feed`]).

use landeck_objects::group_log::entries::{Details, entry_of};
use landeck_protocols::service::{Outcome, State};

use crate::answer::Answer;
use crate::error::Result;
use crate::feed::{FedMessage, FeedItem, LastRequest, items};
use crate::log_copy::{FromServer, LogCopy};
use crate::replica::{EntryOwner, LocalState, Replica};

impl Replica {
    /// Folds what the server has told since.
    #[cold]
    pub(crate) fn take_feeds(&self, local: &mut LocalState, copy: &LogCopy) -> Result<()> {
        for message in copy.inbox().take_arrived() {
            match message {
                FromServer::Feed(words) => self.take_feed(local, copy, &words)?,
                FromServer::Reply { request, answer, passed } => {
                    if Answer::from_bits(answer) == Answer::NotNow {
                        copy.note_refusal(passed);
                    }
                    self.log.answer(self.shared.slot, self.log.incarnation(), request, answer);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn take_feed(
        &self,
        local: &mut LocalState,
        copy: &LogCopy,
        words: &[u64],
    ) -> Result<()> {
        let mut looked = 0;
        for item in items(words) {
            match item.ok_or_else(|| self.malformed())? {
                FeedItem::Head(head) => {
                    looked = head.looked;
                    self.log.set_sent_on(head.delivered);
                }
                FeedItem::Opened(_) => {}
                FeedItem::Request(last) => self.take_last_request(last),
                FeedItem::State(words) => self.take_state(local, words)?,
                FeedItem::Marks(pairs) => {
                    for pair in pairs.chunks_exact(2) {
                        self.log.set_taken(pair[0] as u32, (pair[0] >> 32) as u32, pair[1]);
                    }
                }
                FeedItem::Entry { word, details } => self.take_entry(local, word, details),
                FeedItem::Accepted { word, message } => {
                    self.take_accepted(local, word, &message)?;
                }
                FeedItem::Waiting { number, message } => self.copy_message(number, &message)?,
            }
        }
        // Last, so that what was asked about is folded.
        copy.note_look(looked);
        Ok(())
    }

    /// The answer to this process's last request, if the entry is none that the copy folds.
    fn take_last_request(&self, LastRequest { number, answer }: LastRequest) {
        let (slot, incarnation) = (self.shared.slot, self.log.incarnation());
        if let Some(answer) = answer {
            self.log.answer(slot, incarnation, number, answer);
        }
    }

    fn take_state(&self, local: &mut LocalState, words: &[u64]) -> Result<()> {
        let state = State::from_words(words).ok_or_else(|| self.malformed())?;
        if state.position() >= local.state.position() {
            local.state = state;
        }
        Ok(())
    }

    fn take_entry(&self, local: &mut LocalState, word: u32, details: Details) {
        match entry_of(word, details, &local.state) {
            Some(entry) => drop(self.apply(local, entry, 0, EntryOwner::Others)),
            None => local.state.skip(),
        }
    }

    /// Folds the entry of a broadcast.
    fn take_accepted(
        &self,
        local: &mut LocalState,
        word: u32,
        message: &FedMessage<'_>,
    ) -> Result<()> {
        let entry = entry_of(word, Details::default(), &local.state);
        match local.state.apply(entry.ok_or_else(|| self.malformed())?) {
            Outcome::Broadcast(number) => self.copy_message(number, message),
            _ => Ok(()),
        }
    }

    /// Puts a message where members of this process read it.
    fn copy_message(&self, number: u64, message: &FedMessage<'_>) -> Result<()> {
        let FedMessage { cell, described, bytes } = *message;
        let Some(bytes) = bytes else { return Ok(()) };
        match self.log.copy_message((number, cell), &described, bytes) {
            true => Ok(()),
            false => Err(self.malformed()),
        }
    }

    fn malformed(&self) -> crate::error::ServiceError {
        self.broken("its server has told what no server tells")
    }
}
