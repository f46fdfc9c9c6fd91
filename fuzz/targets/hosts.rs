//! Any text in place of a list of hosts: each parser answers within its bounds, and an error is short enough for a
//! person.

#![no_main]

use landeck_hostfile::allocation::{from_names, from_sge, from_slurm};
use landeck_hostfile::host_list::{from_file, from_words, slots_of};
use landeck_hostfile::{HOSTS_MAX, HostPlacement, RanksBy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (nodes, tasks) = text.split_once('\n').unwrap_or((text, ""));
    let lists = [
        from_words(text),
        from_file(text),
        from_names(text),
        from_sge(text),
        from_slurm(text, None),
        from_slurm(nodes, Some(tasks)),
    ];
    for list in lists {
        match list {
            Ok(hosts) => {
                assert!(!hosts.is_empty() && hosts.len() <= HOSTS_MAX);
                assert!(hosts.iter().all(|host| !host.name.starts_with('-')));
                assert!(
                    hosts.iter().all(|host| host.max_slots.is_none_or(|most| most >= host.slots))
                );
                let ranks = slots_of(&hosts).min(1_000) as u32;
                let placement = HostPlacement::new(&hosts, RanksBy::Node, None, ranks);
                assert_eq!(placement.expect("they are slots").ranks(), ranks);
            }
            Err(error) => assert!(error.to_string().len() < 1_000, "{error}"),
        }
    }
});
