//! Lists of hosts, allocations and placements against naive models and the examples of other launchers' manuals.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod allocations;
mod lists;
mod placements;

use landeck_hostfile::HostRequest;

/// A host with so many slots.
fn host(name: &str, slots: u32) -> HostRequest {
    HostRequest::new(name, slots)
}

/// A host with so many slots and a limit.
fn limited(name: &str, slots: u32, most: u32) -> HostRequest {
    HostRequest { max_slots: Some(most), ..HostRequest::new(name, slots) }
}

/// A list in the form `a:2,b:1/4`.
fn text(hosts: &[HostRequest]) -> String {
    let one = |host: &HostRequest| match host.max_slots {
        None => format!("{}:{}", host.name, host.slots),
        Some(most) => format!("{}:{}/{most}", host.name, host.slots),
    };
    hosts.iter().map(one).collect::<Vec<_>>().join(",")
}
