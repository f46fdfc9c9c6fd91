//! The layers below the API. They change without notice, in any version.
//!
//! They are for fronts (MPI, DECK) and for tests that inspect a job's memory or bring a network of
//! their own. A program that needs any of it depends
//! on one exact version.

use landeck_channel::{Channel, Peer, Traffic};
use landeck_joining::job_names;
use landeck_memory::Segment;
use landeck_memory::process_names::name_in_words;
use landeck_wire::ProcessId;

use crate::error::Result;
use crate::job::Job;
use crate::peers::peer_of;
use crate::world::World;

pub use crate::helper::Helper;

pub use landeck_arithmetic as arithmetic;
pub use landeck_board as board;
pub use landeck_collectives as collectives;
pub use landeck_host as host;
pub use landeck_joining as joining;
pub use landeck_memory as memory;
pub use landeck_objects as objects;

/// The internals of a job: its memory, its networks, and worlds that are created without an
/// agreement.
pub trait JobInternals: sealed::Sealed {
    /// Returns the job's memory on this host.
    fn segment(&self) -> &Segment;

    /// Sets the network over which this process reaches all far peers from now on
    /// ([`JobInternals::first_far_peer`]).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    fn set_network(&self, channel: Box<dyn Channel>) -> Result<()>;

    /// Returns the peer that the first record of the far table stands for. The others follow.
    fn first_far_peer(&self) -> Peer;

    /// Returns the number of this process in the networks of this job.
    fn own_peer(&self) -> Peer;

    /// Returns a world of these peers, this process among them, in a context that all of them
    /// number alike. A peer means the process that has its slot now, or the next one if the slot is
    /// free. If that process dies, it stays dead in this world, even if another process gets its
    /// slot: use another context to meet its successor. Contexts of generation 256 to 2,047 belong
    /// to worlds derived from others.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    fn world_of(&self, context: u32, members: &[Peer]) -> Result<World>;

    /// Returns the traffic of this process on its connections to other hosts, since it joined. What relays carry is no
    /// part of it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Thread`].
    fn traffic(&self) -> Result<Traffic>;

    /// Returns the name of a process for people: `rank 3`, or `process 5` if it has no rank or is gone, and in a job on
    /// several hosts its host.
    fn process_in_words(&self, process: ProcessId) -> String;

    /// Returns the ways that collective operations take in a world, by size, for people.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotAMember`], [`crate::ErrorKind::Thread`].
    fn ways(&self, world: &World) -> Result<String>;
}

impl JobInternals for Job {
    fn segment(&self) -> &Segment {
        &self.shared.segment
    }

    fn set_network(&self, channel: Box<dyn Channel>) -> Result<()> {
        self.shared.engine.enter()?.endpoint.set_network(channel);
        self.shared.forget_wake_thread();
        Ok(())
    }

    fn first_far_peer(&self) -> Peer {
        Peer(self.shared.segment.plan().slots())
    }

    fn own_peer(&self) -> Peer {
        Peer(self.shared.slot)
    }

    fn world_of(&self, context: u32, members: &[Peer]) -> Result<World> {
        let mut engine = self.shared.engine.enter()?;
        engine.endpoint.await_members(context, members.to_vec());
        engine.watch_over(context, &members.into(), self.own_peer());
        drop(engine);
        Ok(World::new(self.shared.clone(), context, members.into()))
    }

    fn traffic(&self) -> Result<Traffic> {
        let engine = self.shared.engine.enter()?;
        Ok(engine.endpoint.network().map_or_else(Traffic::default, Channel::traffic))
    }

    fn process_in_words(&self, process: ProcessId) -> String {
        let segment = &self.shared.segment;
        let (peer, slot) = (peer_of(segment, process), process.slot.0);
        let rank = peer.and_then(|peer| segment.rank_of(peer.0)).map(|rank| rank as usize);
        let near = (process.segment.0 == segment.plan().host).then_some(Peer(slot));
        let on_host = peer.or(near).map(|peer| segment.on_host(peer.0));
        let known = || job_names::host_name(segment, process).map(|host| format!(" on {host}"));
        name_in_words(rank, slot, &on_host.or_else(known).unwrap_or_default())
    }

    fn ways(&self, world: &World) -> Result<String> {
        world.ways()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Job {}
}
