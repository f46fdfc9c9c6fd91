//! Where the processes of a job run, as far as all members of a group know it alike.

use landeck_channel::Peer;
use landeck_collectives::MemberPlace;
use landeck_memory::Segment;

/// The places of the peers of a process: read once, so that they cannot change.
#[derive(Default)]
pub(crate) struct Places {
    /// By slots.
    near: Vec<MemberPlace>,
    /// The number of slots that the job began with.
    processes: u32,
    /// By places in the far table; `None` for a process that the job did not begin with.
    far: Vec<Option<MemberPlace>>,
}

impl Places {
    /// The places of the peers in a segment.
    pub(crate) fn in_segment(segment: &Segment) -> Self {
        let plan = segment.plan();
        let own_site = segment.own_host_number().map_or(0, |number| segment.host_site(number));
        let near =
            |slot| MemberPlace { site: own_site, host: plan.host, cache: segment.cache_of(slot) };
        let far = |far| {
            let record = segment.far_record(far);
            let (site, host) = (segment.host_site(record.host_number), record.process.host);
            segment.rank_of_peer(plan.slots() + far).map(|_| MemberPlace { site, host, cache: 0 })
        };
        let far_records = if plan.world_spans_hosts() { plan.far } else { 0 };
        Self {
            near: (0..plan.slots()).map(near).collect(),
            processes: plan.processes,
            far: (0..far_records).map(far).collect(),
        }
    }

    /// The place of the process of a slot.
    pub(crate) fn of_slot(&self, slot: u32) -> MemberPlace {
        self.near.get(slot as usize).copied().unwrap_or_default()
    }

    /// The places of members, if all of them know them alike. The caches are known on their own host alone, so members
    /// on several hosts leave them out.
    pub(crate) fn of(&self, members: &[Peer]) -> Option<Vec<MemberPlace>> {
        let place = |peer: &Peer| match peer.0.checked_sub(self.near.len() as u32) {
            _ if peer.0 < self.processes => Some(self.of_slot(peer.0)),
            Some(far) => self.far.get(far as usize).copied().flatten(),
            None => None,
        };
        let places: Option<Vec<MemberPlace>> = members.iter().map(place).collect();
        let mut places = places?;
        if places.iter().any(|place| place.host != places[0].host) {
            places.iter_mut().for_each(|place| place.cache = 0);
        }
        Some(places)
    }
}
