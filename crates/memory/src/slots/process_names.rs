//! The names of processes in messages: `rank 3 (pid 411)`, and in a job on several hosts `rank 3 on n2 (pid 411)`.

use crate::segment::Segment;
use crate::slots::membership::{SlotRecord, SlotState};

impl Segment {
    /// The name of a host, or its number if it has no name.
    pub fn host_in_words(&self, number: u16) -> String {
        match self.host_name(number).to_string() {
            name if name.is_empty() => format!("host {number}"),
            name => name,
        }
    }

    /// The name of the host of this segment: that of its number, or else the only one that has no far process. If that is not
    /// clear, the kernel's name of this computer.
    fn own_host_in_words(&self) -> String {
        let own = self.own_host_number().map(|number| self.host_name(number).to_string());
        if let Some(own) = own.filter(|name| !name.is_empty()) {
            return own;
        }
        let records = (0..self.plan().far).map(|far| self.far_record(far));
        let far = records.filter(|record| record.state != SlotState::Free);
        let far: Vec<u16> = far.map(|record| record.host_number).collect();
        let numbers = 0..u16::try_from(self.plan().hosts).unwrap_or(u16::MAX);
        let names = numbers.filter(|number| !far.contains(number));
        let mut names =
            names.map(|number| self.host_name(number).to_string()).filter(|name| !name.is_empty());
        match (names.next(), names.next()) {
            (Some(own), None) => own,
            _ => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }

    /// The words ` on n2` for a peer; empty if the job has one host.
    pub fn on_host(&self, peer: u32) -> String {
        if !self.knows_other_hosts() {
            return String::new();
        }
        let far = peer.checked_sub(self.plan().slots()).map(|far| self.far_record(far));
        match far.filter(|record| record.state != SlotState::Free) {
            Some(record) => format!(" on {}", self.host_in_words(record.host_number)),
            None => format!(" on {}", self.own_host_in_words()),
        }
    }

    /// The name of a peer's process, by its rank in the group that a message is about, or by its slot.
    pub fn process_in_words(&self, rank: Option<usize>, peer: u32) -> String {
        process_in_words(rank, self.slot_of(peer), &self.on_host(peer), self.peer_record(peer))
    }

    /// The slot of a peer's process on its host.
    pub fn slot_of(&self, peer: u32) -> u32 {
        let far = peer.checked_sub(self.plan().slots()).map(|far| self.far_record(far));
        let far = far.filter(|record| record.state != SlotState::Free);
        far.map_or(peer, |record| record.process.slot)
    }
}

/// The name of a process with the words about its host, as [`Segment::on_host`] says them.
pub fn process_in_words(
    rank: Option<usize>,
    slot: u32,
    on_host: &str,
    record: SlotRecord,
) -> String {
    let name = name_in_words(rank, slot, on_host);
    match record.pid {
        0 => name,
        pid => format!("{name} (pid {pid})"),
    }
}

/// The name of a process as [`process_in_words`] says it, without its process number.
pub fn name_in_words(rank: Option<usize>, slot: u32, on_host: &str) -> String {
    match rank {
        Some(rank) => format!("rank {rank}{on_host}"),
        None => format!("process {slot}{on_host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::other_hosts::far::{FarProcess, FarRecord};
    use crate::plan::{JobName, SegmentPlan};

    #[test]
    fn names_have_hosts_where_there_are_several() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let plan = SegmentPlan { far: 3, hosts: 4, guests: 1, ..plan };
        let record = SlotRecord { state: SlotState::Alive, pid: 40, ..SlotRecord::default() };
        let one = Segment::local(&plan);
        one.set_slot_record(1, record);
        assert_eq!(one.process_in_words(Some(1), 1), "rank 1 (pid 40)");
        assert_eq!(
            (one.process_in_words(None, 0), one.on_host(1)),
            ("process 0".into(), "".into())
        );
        let several = Segment::local(&SegmentPlan { ranks: 4, ..plan });
        several.set_slot_record(1, record);
        for (far, host_number, pid) in [(0, 1, 411), (1, 3, 0)] {
            let process = FarProcess { host: 9, slot: 7, incarnation: 1 };
            let state = SlotState::Alive;
            let record = FarRecord { process, host_number, state, pid, ..FarRecord::default() };
            several.set_far_record(far, record);
        }
        (0..2)
            .for_each(|number| several.set_host_name(number, JobName::new(&format!("n{number}"))));
        assert_eq!(several.process_in_words(Some(1), 1), "rank 1 on n0 (pid 40)");
        assert_eq!(several.process_in_words(Some(3), 3), "rank 3 on n1 (pid 411)");
        assert_eq!(several.process_in_words(None, 4), "process 7 on host 3");
        let kernel = rustix::system::uname().nodename().to_string_lossy().into_owned();
        several.set_host_name(2, JobName::new("n2"));
        assert_eq!(several.on_host(0), format!(" on {kernel}"), "two hosts without far processes");
    }
}
