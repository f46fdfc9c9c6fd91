//! Opening memory of this host by its name: semaphores and shared segments.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use landeck_joining::objects::{self, Name, Object, ObjectError, ObjectKind};
use landeck_memory::Segment;

use crate::job::Job;

/// Hosts that an error names.
const NAMED_MAX: usize = 4;

impl Job {
    /// Opens memory of this host. In a job on several hosts the error names the others: the memory may be there.
    pub(crate) fn open_memory(
        &self,
        kind: ObjectKind,
        name: &Name,
    ) -> std::result::Result<(Object, OwnedFd), ObjectError> {
        let segment = &self.shared.segment;
        match objects::open(self.process(), kind, name) {
            Err(ObjectError::Unknown { kind, name }) if segment.knows_other_hosts() => {
                Err(ObjectError::UnknownHere { kind, name, hosts: other_hosts(segment) })
            }
            opened => opened,
        }
    }
}

/// The names of the job's other hosts.
fn other_hosts(segment: &Segment) -> String {
    let records = (0..segment.plan().far).map(|far| segment.far_record(far));
    let of_job = records.filter(|record| record.process.host != 0);
    let hosts: BTreeSet<String> =
        of_job.map(|record| segment.host_in_words(record.host_number)).collect();
    let named: Vec<&str> = hosts.iter().take(NAMED_MAX).map(String::as_str).collect();
    match hosts.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
