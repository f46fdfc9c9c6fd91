//! Messages among processes that make a world together, and have no board for it.
//!
//! Making a world takes several messages. A maker that learns of another maker's death gives up, and sends none of
//! those that it still owes. So a death among the makers ends every wait for any of them, and no maker waits for one
//! that has given up.

use landeck_kernel::{Failure, Peer};
use landeck_memory::room;
use landeck_wire::Tag;

use crate::error::{Error, Result};
use crate::loan::Loaned;
use crate::world::World;
use landeck_engine::{Engine, WaitError};

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
        let mut engine = self.shared.engine.enter()?;
        engine.refresh_from_records();
        let gone = |&peer: &Peer| engine.is_gone(peer).map(|died| (peer, died));
        let mut gone = makers.iter().copied().flatten().filter_map(gone);
        let found = gone.find(|&(_, died)| matters(died));
        drop(engine);
        Ok(found.map(|(peer, died)| {
            self.error(WaitError::Failure(Failure::PeerGone { peer, died }), None)
        }))
    }
}

fn death_among(engine: &mut Engine, context: u32, makers: &[&[Peer]]) -> Option<Failure> {
    engine.refresh();
    makers.iter().find_map(|group| engine.death_among(context, group))
}
