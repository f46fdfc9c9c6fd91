//! The tables of a part's segment about the whole job.

use landeck_memory::{FarProcess, FarRecord, JobName, Segment, SlotState};
use landeck_wire::{HostNumber, ProcessId};

use crate::spec::JobSpec;

/// Writes who is where: the names of the hosts, the processes elsewhere, the peer of each rank.
pub(super) fn write(segment: &Segment, spec: &JobSpec, place: usize, ranks: &[u32]) {
    segment.set_own_host(spec.hosts[place].number.0, place as u32);
    for link in &spec.links {
        segment.set_link(link.hosts.0.0, link.hosts.1.0, link.words);
    }
    for (place, host) in spec.hosts.iter().enumerate() {
        segment.set_host_name(host.number.0, JobName::new(&host.name));
        segment.set_host_site(host.number.0, spec.site_number(place));
    }
    for (slot, &rank) in (0..).zip(ranks) {
        segment.set_peer_of_rank(rank, slot);
    }
    for (far, rank) in (0..).zip(spec.ranks_elsewhere(place)) {
        let ProcessId { segment: host, slot, incarnation } = spec.process_of(rank);
        let host_place = usize::from(spec.ranks[rank as usize].host);
        let record = FarRecord {
            process: FarProcess { host: host.0, slot: slot.0, incarnation: incarnation.0 },
            host_number: spec.hosts[host_place].number.0,
            rank: Some(rank),
            state: SlotState::Reserved,
            ..FarRecord::default()
        };
        segment.set_far_record(far, record);
        segment.set_peer_of_rank(rank, segment.plan().slots() + far);
    }
    let ranks_elsewhere = spec.processes() - ranks.len() as u32;
    write_guests(segment, ranks_elsewhere, &spec.guests_elsewhere(place));
}

/// Writes the places of guests from a record on. Nobody has them yet.
pub(super) fn write_guests(segment: &Segment, first: u32, guests: &[(HostNumber, ProcessId)]) {
    for (far, (number, guest)) in (first..).zip(guests) {
        let process = FarProcess { host: guest.segment.0, slot: guest.slot.0, incarnation: 0 };
        let host_number = number.0;
        let record = FarRecord { process, host_number, is_guest: true, ..FarRecord::default() };
        segment.set_far_record(far, record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::HostPart;
    use crate::spec::HostLink;
    use crate::spec::tests::spec;

    #[test]
    fn a_segment_knows_the_whole_job() {
        let mut job = spec(&["true", "true", "true", "true"], &[0, 1, 0, 1]);
        job.hosts[1].number = HostNumber(9);
        job.hosts[1].site = "b".to_owned();
        let link = HostLink { hosts: (HostNumber(9), HostNumber(0)), words: [5, 6, 7] };
        job.links.push(link);
        let part = HostPart::prepare(job.clone(), HostNumber(0)).unwrap();
        let segment = part.segment();
        let slots = segment.plan().slots();
        let peers = [0, 1, 2, 3].map(|rank| segment.peer_of_rank(rank));
        assert_eq!(peers, [0, slots, 1, slots + 1]);
        let record = segment.far_record(1);
        assert_eq!((record.process.host, record.process.slot), (101, 1));
        assert_eq!((record.rank, record.state), (Some(3), SlotState::Reserved));
        assert_eq!(segment.host_name(record.host_number).to_string(), "n1");
        assert_eq!((segment.own_host_number(), segment.link(0, 9)), (Some(0), [5, 6, 7]));
        assert_eq!([0, 9].map(|host| segment.host_site(host)), [0, 2]);
        let guests = job.guests_elsewhere(0);
        let far = part.far();
        assert_eq!(far[..2], [1, 3].map(|rank| job.process_of(rank)));
        assert_eq!((far.len(), guests.len() as u32), (2 + guests.len(), segment.plan().guests));
        let record = segment.far_record(2);
        assert_eq!((record.process.host, record.process.slot, record.host_number), (101, 2, 9));
        assert_eq!((record.state, record.rank), (SlotState::Free, None));
        assert_eq!((segment.plan().job, segment.plan().ranks), (7, 4));
    }
}
