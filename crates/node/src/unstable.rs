//! What lies below the API: it changes without notice, in any version.
//!
//! It is for fronts (MPI, DECK), for the command `landeck`, for benchmarks, and for tests that look into a job's
//! memory or bring a network of their own. A program that needs something of it depends on one exact version.

use landeck_channel::{Channel, Peer};
use landeck_memory::Segment;

use crate::error::Result;
use crate::job::Job;
use crate::world::World;

pub use landeck_arithmetic as arithmetic;
pub use landeck_board as board;
pub use landeck_collectives as collectives;
pub use landeck_diagnosis as diagnosis;
pub use landeck_host as host;
pub use landeck_memory as memory;
pub use landeck_objects as objects;
pub use landeck_transports::tcp;

/// What a job is made of: its memory, its networks, and worlds that nobody has agreed on.
pub trait JobInternals: sealed::Sealed {
    /// The job's memory on this host.
    fn segment(&self) -> &Segment;

    /// Adds a network: from now on the peers that `peers` names are reached over it.
    /// Numbers start above all slots ([`JobInternals::first_far_peer`]).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    fn add_network(&self, channel: Box<dyn Channel>, peers: &[Peer]) -> Result<()>;

    /// The first number for a peer that has no slot in this job's segment.
    fn first_far_peer(&self) -> Peer;

    /// This process as the networks of this job number it.
    fn own_peer(&self) -> Peer;

    /// A world of these peers, this process among them, in a context that all of them name alike. A
    /// peer means the process that has its slot now; its next one if it has none. Should that die, it
    /// stays dead in this world, whoever gets its slot: name another context to meet who came after.
    /// Contexts of generation 256 to 2,047 belong to worlds that are made of others.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    fn world_of(&self, context: u32, members: &[Peer]) -> Result<World>;
}

impl JobInternals for Job {
    fn segment(&self) -> &Segment {
        &self.shared.segment
    }

    fn add_network(&self, channel: Box<dyn Channel>, peers: &[Peer]) -> Result<()> {
        let mut kernel = self.shared.kernel.enter()?;
        let number = kernel.add_channel(channel);
        for &peer in peers {
            kernel.route(peer, number);
        }
        self.shared.forget_wake_thread();
        Ok(())
    }

    fn first_far_peer(&self) -> Peer {
        Peer(self.shared.segment.plan().slots() + landeck_transports::shared_memory::PROVISIONAL)
    }

    fn own_peer(&self) -> Peer {
        Peer(self.shared.slot)
    }

    fn world_of(&self, context: u32, members: &[Peer]) -> Result<World> {
        let mut kernel = self.shared.kernel.enter()?;
        kernel.await_members(context, members.to_vec());
        kernel.watch_over(context, &members.into(), self.own_peer());
        drop(kernel);
        Ok(World::new(self.shared.clone(), context, members.into()))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Job {}
}
