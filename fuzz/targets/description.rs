//! Any bytes in place of the description of a machine: reading ends with a description or with few short errors, and
//! each host has a place.

#![no_main]

use core::net::{IpAddr, Ipv4Addr};

use landeck_machine::description::{DESCRIPTION_ERRORS_MAX, Description};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    let description = match Description::parse(content) {
        Ok(description) => description,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.len() <= DESCRIPTION_ERRORS_MAX);
            assert!(errors.is_sorted() && errors.iter().all(|error| error.line > 0));
            assert!(errors.iter().all(|error| error.what.len() < 4_000));
            return;
        }
    };
    let addresses = [IpAddr::V4(Ipv4Addr::new(10, 77, 1, 1)), IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let hosts = description.hosts.iter().map(|host| host.name.as_str());
    for host in hosts.chain(["nobody"]) {
        for attachment in description.place(host, &addresses).networks {
            assert!(usize::from(attachment.network) < description.networks.len());
            assert!((1..=1 + description.switches.len()).contains(&attachment.links.len()));
        }
    }
});
