//! A member's part in the agreements on its board.

use landeck_memory::heap::{Block, HeapFull};
use landeck_memory::membership::SlotState;
use landeck_memory::sync::{AtomicU64, Ordering, fence};
use landeck_protocols::agreement::{Agreed, MemberStanding};

use super::{Board, BoardBroken};
use crate::agreement::{Ballot, Offer, Part, all_are_in, decide, proposal_words, propose, read};
use crate::words::{Line, Vote};

/// The state of a member between its agreements.
#[derive(Default)]
pub(crate) struct OwnPart {
    /// Of the last agreement; 0 before the first.
    number: u32,
    is_under_way: bool,
    seen: u32,
    /// Where its proposals go.
    room: Option<Block>,
}

impl Board {
    /// Brings this member's part to the next agreement. All members call it equally often;
    /// while one is under way it changes nothing. The first time takes a little of the heap.
    ///
    /// # Errors
    /// [`HeapFull`]; nothing was brought then.
    pub fn bring(
        &mut self,
        part: &Part,
        allocate: impl FnOnce(usize) -> Result<Block, HeapFull>,
    ) -> Result<(), HeapFull> {
        if self.part.is_under_way {
            return Ok(());
        }
        if self.part.room.is_none() {
            let block = allocate(proposal_words(self.size()) as usize * 8)?;
            self.lines(self.own()).proposal.store(block.offset(), Ordering::Relaxed);
            self.part.room = Some(block);
        }
        let number = next_after(self.part.number);
        (self.part.number, self.part.is_under_way, self.part.seen) = (number, true, 0);
        self.lines(self.own()).votes[turn(number)].bring(number, part);
        // Of two that bring at once, one sees the other's part.
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Whether this member has brought a part and not yet seen the outcome.
    pub fn is_agreeing(&self) -> bool {
        self.part.is_under_way
    }

    /// The value that was agreed; none while others are missing.
    ///
    /// # Errors
    /// [`BoardBroken`].
    pub fn agreed(&mut self) -> Result<Option<Agreed>, BoardBroken> {
        let number = self.part.number;
        let mut seen = self.part.seen;
        let decider = match self.outcome_word().published(number) {
            Some(decider) => decider,
            None if !all_are_in(self, number, &mut seen) => {
                self.part.seen = seen;
                return Ok(None);
            }
            None => {
                propose(self, number).ok_or(BoardBroken { member: self.own() })?;
                let decider = decide(self, number);
                self.wake_all();
                decider
            }
        };
        let agreed = read(self, decider).map_err(|member| BoardBroken { member })?;
        self.part.is_under_way = false;
        Ok(Some(agreed))
    }

    /// The offer of a living member in the last agreement.
    pub fn offer(&self, member: u32) -> Offer {
        let number = self.part.number;
        let part = self.vote(member, number).and_then(|vote| vote.brought(number));
        part.unwrap_or_default().offer
    }
}

/// No agreement has the number 0, and two that follow each other take turns.
fn next_after(number: u32) -> u32 {
    match number.wrapping_add(1) {
        0 => 2,
        next => next,
    }
}

fn turn(number: u32) -> usize {
    number as usize % 2
}

impl Ballot for Board {
    fn size(&self) -> u32 {
        Board::size(self)
    }

    fn own(&self) -> u32 {
        Board::own(self)
    }

    fn vote(&self, member: u32, number: u32) -> Option<&Vote> {
        (member < Board::size(self)).then(|| &self.lines(member).votes[turn(number)])
    }

    fn life(&self, member: u32) -> MemberStanding {
        match self.state(member) {
            SlotState::Left | SlotState::Departed => MemberStanding::Left,
            SlotState::Dead => MemberStanding::Died,
            SlotState::Free | SlotState::Reserved | SlotState::Alive => MemberStanding::Lives,
        }
    }

    fn outcome_word(&self) -> &Line {
        self.outcome_of_agreement()
    }

    fn proposal(&self, member: u32, at: u32) -> Option<&AtomicU64> {
        if member >= Board::size(self) {
            return None;
        }
        let offset = self.lines(member).proposal.load(Ordering::Relaxed);
        let length = u64::from(proposal_words(Board::size(self))) * 8;
        let is_there = self.heap_bytes(member, offset, length).is_some();
        is_there.then(|| self.segment().long(offset + u64::from(at) * 8))
    }
}
