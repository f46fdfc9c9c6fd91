//! The names of processes in errors: `rank 3 on n2 (rank 1 of this world, pid 411)`.
//!
//! A program started so many ranks, and knows each process by its rank in the job's first world. The rank in the world
//! of the call is another number in a world that was derived, so it is said as well.

use landeck_channel::Peer;
use landeck_memory::process_names::name_in_words;
use landeck_memory::{Segment, SlotState};

use super::end;

/// The members of the world of a call, as errors name them.
#[derive(Clone, Copy)]
pub(crate) struct Members<'a> {
    /// None for a call without a world.
    peers: Option<&'a [Peer]>,
    numbering: Numbering,
}

/// The meaning of a world's ranks to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// They number its members.
    Own,
    /// They number the members of both groups of a bridge, and are nothing that the program has asked for.
    Joint,
    /// They number the members of the other group of a bridge.
    OtherGroup,
}

impl<'a> Members<'a> {
    /// For a call without a world: the ranks are those of the first world.
    pub(crate) const OF_JOB: Members<'static> = Members { peers: None, numbering: Numbering::Own };

    pub(crate) fn new(peers: &'a [Peer], numbering: Numbering) -> Self {
        Self { peers: Some(peers), numbering }
    }

    /// The rank of a process in the world of the call.
    pub(crate) fn rank(&self, peer: Peer, segment: &Segment) -> Option<usize> {
        match self.peers {
            Some(peers) => peers.iter().position(|&member| member == peer),
            None => rank_in_job(peer, segment),
        }
    }

    /// The name of a member by its rank in the world of the call.
    pub(crate) fn member(&self, rank: usize, segment: &Segment) -> String {
        match self.peers.and_then(|peers| peers.get(rank)) {
            Some(&peer) => self.name(peer, segment, None),
            None => format!("rank {rank}"),
        }
    }

    /// The name of the sender of a message.
    pub(crate) fn sender(&self, peer: Peer, segment: &Segment) -> String {
        self.name(peer, segment, None)
    }

    /// The name of a process, with its process number.
    pub(crate) fn process(&self, peer: Peer, segment: &Segment) -> String {
        let pid = segment.peer_record(peer.0).pid;
        self.name(peer, segment, (pid != 0).then_some(pid))
    }

    fn name(&self, peer: Peer, segment: &Segment, pid: Option<u32>) -> String {
        let (here, in_job) = (self.rank(peer, segment), rank_in_job(peer, segment));
        let here_too = here.filter(|_| in_job.is_some() && here != in_job);
        let rank_here = here_too.and_then(|rank| match self.numbering {
            Numbering::Own => Some(format!("rank {rank} of this world")),
            Numbering::Joint => None,
            Numbering::OtherGroup => Some(format!("rank {rank} of the other group")),
        });
        let details = rank_here.into_iter().chain(pid.map(|pid| format!("pid {pid}")));
        let details = details.collect::<Vec<_>>().join(", ");
        let name =
            name_in_words(in_job.or(here), segment.slot_of(peer.0), &segment.on_host(peer.0));
        if details.is_empty() { name } else { format!("{name} ({details})") }
    }

    /// The words about members that have died, to be put behind "its members"; empty if none has.
    pub(crate) fn dead(&self, segment: &Segment) -> String {
        let peers = self.peers.unwrap_or_default().iter();
        let mut dead = peers.filter(|peer| segment.peer_record(peer.0).state == SlotState::Dead);
        let Some(&first) = dead.next() else { return String::new() };
        let named = format!("{} {}", self.process(first, segment), end(true, first, segment));
        match dead.count() {
            0 => format!(", of which {named}"),
            more => format!(", of which {named}, and {more} more died"),
        }
    }
}

fn rank_in_job(peer: Peer, segment: &Segment) -> Option<usize> {
    segment.rank_of(peer.0).map(|rank| rank as usize)
}
