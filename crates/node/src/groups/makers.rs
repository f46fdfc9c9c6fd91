//! Messages among processes that make a world together, and have no board for it.
//!
//! Making a world takes several messages. A maker that learns of another maker's death gives up, and sends none of
//! those that it still owes. So a death among the makers ends every wait for any of them, and no maker waits for one
//! that has given up.

use std::time::Duration;

use landeck_kernel::{Failure, Peer};
use landeck_memory::{Operation, WaitRecord, room};
use landeck_wire::Tag;

use crate::error::{Error, ErrorKind, Result};
use crate::loan::Loaned;
use crate::peers::{PROCESS_WORDS, from_words, peer_of, process_of, to_words};
use crate::world::World;
use landeck_engine::{Engine, WaitError, deadline_ns};

/// How long a maker that another one has told of a process's end waits until its own host knows of that.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

impl World {
    /// Returns an error if the members can no longer create a world by collective operations of
    /// this one. The other members then learn that this one does not take part in the next of
    /// these.
    ///
    /// # Errors
    /// [`crate::ErrorKind::PeerFailed`], [`crate::ErrorKind::Revoked`],
    /// [`crate::ErrorKind::Mismatch`], [`crate::ErrorKind::NotAMember`],
    /// [`crate::ErrorKind::Thread`].
    pub(crate) fn is_ready_to_make(&self) -> Result<()> {
        let mut engine = self.shared.engine.enter()?;
        let ready = engine.is_ready(self.group());
        drop(engine);
        ready.map_err(|fault| self.error(WaitError::Collective(fault), None))
    }

    /// Returns an error if a maker has died.
    ///
    /// # Errors
    /// [`crate::ErrorKind::PeerFailed`], [`crate::ErrorKind::PeerBroken`], [`crate::ErrorKind::Thread`].
    pub(crate) fn are_alive(&self, makers: &[&[Peer]]) -> Result<()> {
        let mut engine = self.shared.engine.enter()?;
        let death = death_among(&mut engine, self.context, makers);
        drop(engine);
        match death {
            Some(death) => Err(self.error(WaitError::Failure(death), None)),
            None => Ok(()),
        }
    }

    /// Receives the message of another maker. Each list of makers is a group that takes part.
    ///
    /// # Errors
    /// As [`World::receive_vec`], and [`crate::ErrorKind::PeerFailed`] when any of the makers has
    /// died; messages sent before its death count.
    pub(crate) fn receive_from_maker(
        &self,
        from: usize,
        tag: Tag,
        makers: &[&[Peer]],
    ) -> Result<Vec<u64>> {
        let wanted = self.wanted(from.into(), tag.into())?;
        let received = self
            .shared
            .receive_own_unless(wanted, |engine| death_among(engine, self.context, makers));
        let completion = received.map_err(|error| self.error(error, None))?;
        let loaned = Loaned::<u64>::new(completion.data)?;
        Ok(room::copy(loaned.bytes())?)
    }

    /// Sends a record to the first maker and receives its answer. The first maker may have left before it comes to this
    /// creation, and return for it; then its memory of the record is gone, or the record is for a process that is no
    /// more. So a record names the incarnation that it is for, and each one that comes gets its own.
    ///
    /// # Errors
    /// As [`World::receive_from_maker`].
    pub(crate) fn ask_first_maker(
        &self,
        record: &[u64],
        (tag, answer): (Tag, Tag),
        makers: &[&[Peer]],
    ) -> Result<Vec<u64>> {
        let (first, wanted) = (self.peer(0)?, self.wanted(0.into(), answer.into())?);
        loop {
            let mut engine = self.shared.engine.enter()?;
            engine.endpoint.refresh();
            let incarnation = engine.endpoint.known_incarnation(first);
            drop(engine);
            self.send(&[record, &[u64::from(incarnation)]].concat(), 0, tag)?;
            let mut is_another = false;
            let received = self.shared.receive_own_unless(wanted, |engine| {
                let death = death_among(engine, self.context, makers);
                is_another = engine.endpoint.known_incarnation(first) != incarnation;
                if is_another {
                    engine.progress_thoroughly();
                }
                let left = Failure::PeerGone { peer: first, died: false };
                death.or(is_another.then_some(left))
            });
            match received {
                Ok(completion) => {
                    return Ok(room::copy(Loaned::<u64>::new(completion.data)?.bytes())?);
                }
                Err(WaitError::Failure(failure)) if is_another && failure.is_departure() => {}
                Err(error) => return Err(self.error(error, None)),
            }
        }
    }

    /// Receives the record of another maker for this process: those for earlier incarnations are dropped.
    ///
    /// # Errors
    /// As [`World::receive_from_maker`].
    pub(crate) fn receive_record(
        &self,
        from: usize,
        tag: Tag,
        makers: &[&[Peer]],
    ) -> Result<Vec<u64>> {
        let own = u64::from(self.shared.segment.incarnation(self.shared.slot));
        loop {
            let mut record = self.receive_from_maker(from, tag, makers)?;
            if record.pop() == Some(own) {
                return Ok(record);
            }
        }
    }

    /// Returns why creating the world failed at another maker that gave no reason: the error for a
    /// maker that has died, or is gone in another way that matters.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    pub(crate) fn gone_among(
        &self,
        makers: &[&[Peer]],
        matters: impl Fn(bool) -> bool,
    ) -> Result<Option<Error>> {
        let found = self.first_gone(makers, matters)?;
        Ok(found.map(|(peer, died)| self.gone(peer, died)))
    }

    /// The words by which a maker that gives up tells the others which process is gone; none if it has another reason.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    pub(crate) fn words_of_gone(&self, makers: &[&[Peer]]) -> Result<Vec<u64>> {
        let gone = self.first_gone(makers, |_| true)?;
        let words = gone.map(|(peer, _)| to_words(process_of(&self.shared.segment, peer)));
        Ok(words.into_iter().flatten().collect())
    }

    /// Returns why creating the world failed at another maker, which has told these words. The host of this process may
    /// hear of the end that they tell of a moment later: until then it does not know the cause. `None` if they
    /// name no process.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub(crate) fn told_gone(&self, words: &[u64]) -> Result<Option<Error>> {
        let process = words.first_chunk::<PROCESS_WORDS>().map(|&words| from_words(words));
        let peer = process.and_then(|process| peer_of(&self.shared.segment, process));
        let Some(peer) = peer else { return Ok(None) };
        self.shared.engine.enter()?.endpoint.refresh_from_records();
        let record = WaitRecord { operation: Operation::Wait, ..WaitRecord::default() };
        let until = deadline_ns(Some(KNOWN_WITHIN));
        let known = self.shared.wait_until(&record, until, |engine| {
            engine.endpoint.refresh();
            engine.endpoint.is_gone(peer)
        });
        match known {
            Ok(died) => Ok(Some(self.gone(peer, died))),
            Err(WaitError::TimedOut) => Ok(None),
            Err(error) => Err(self.error(error, None)),
        }
    }

    /// The error if another maker has given up, which has told these words.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub(crate) fn given_up(&self, rank: usize, words: &[u64]) -> Result<Error> {
        let host = self.shared.segment.on_host(self.peer(rank)?.0);
        let given_up = ErrorKind::GivenUp { rank, host };
        Ok(self.told_gone(words)?.unwrap_or(given_up.into()))
    }

    fn first_gone(
        &self,
        makers: &[&[Peer]],
        matters: impl Fn(bool) -> bool,
    ) -> Result<Option<(Peer, bool)>> {
        let mut engine = self.shared.engine.enter()?;
        engine.endpoint.refresh_from_records();
        let gone = |&peer: &Peer| engine.endpoint.is_gone(peer).map(|died| (peer, died));
        let mut gone = makers.iter().copied().flatten().filter_map(gone);
        Ok(gone.find(|&(_, died)| matters(died)))
    }

    fn gone(&self, peer: Peer, died: bool) -> Error {
        self.error(WaitError::Failure(Failure::PeerGone { peer, died }), None)
    }
}

fn death_among(engine: &mut Engine, context: u32, makers: &[&[Peer]]) -> Option<Failure> {
    engine.endpoint.refresh();
    makers.iter().find_map(|group| engine.endpoint.death_among(context, group))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use landeck_engine::Shared;
    use landeck_engine::context::WORLD_CONTEXT;
    use landeck_memory::{Segment, SegmentPlan, SlotRecord, SlotState, ThreadMode};

    use super::*;
    use crate::progress::Progress;

    fn set_state(segment: &Segment, slot: u32, state: SlotState) {
        let record = SlotRecord { state, status: 9, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(slot, record);
        segment.announce_membership();
    }

    #[test]
    fn a_maker_that_is_told_of_an_end_knows_its_cause_as_soon_as_its_host_does() {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 3) });
        (0..3).for_each(|slot| set_state(&segment, slot, SlotState::Alive));
        let shared = Shared::new(&segment, 1, ThreadMode::Single, Progress::Callers);
        let members = (0..3).map(Peer).collect();
        let world = World::new(Arc::new(shared.unwrap()), WORLD_CONTEXT, members);
        let other_reason = world.given_up(0, &[]).unwrap();
        assert!(matches!(other_reason.kind, ErrorKind::GivenUp { rank: 0, .. }));
        let told = to_words(process_of(&segment, Peer(2)));
        assert!(world.words_of_gone(&[&world.members]).unwrap().is_empty());
        let host = thread::spawn({
            let segment = segment.clone();
            move || {
                thread::sleep(Duration::from_millis(20));
                set_state(&segment, 2, SlotState::Dead);
            }
        });
        let end = world.given_up(0, &told).unwrap();
        assert!(matches!(end.kind, ErrorKind::PeerFailed { rank: Some(2), .. }));
        assert!(end.to_string().contains("was killed by signal 9"), "{end}");
        assert_eq!(world.words_of_gone(&[&world.members]).unwrap(), told);
        host.join().unwrap();
    }
}
