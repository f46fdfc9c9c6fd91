//! Descriptions, and the places of hosts.

mod errors;
mod random;

use core::net::IpAddr;

use super::*;
use landeck_wire::word::{HostPlace, NetworkPlace, PhysicalLink};

/// Four hosts at two sites, which two gateways join.
const LAB: &str = r#"[switch.edge]
ports = 24
uplink = "core"
uplink-rate = "2 Gb/s"
[switch.core]
rate = "10 Gb/s"

[network.a]
addresses = "10.77.1.0/24"
site = "a"
[network.middle]
addresses = ["10.77.0.0/24"]
gateway = ["n2", "n3"]
[network.b]
addresses = ["10.77.2.0/24", "fd00::/64"]
site = "b"

[host.n1]
eth0 = { network = "a", switch = "edge", port = 1 }
[host.n2]
eth0 = { network = "a", switch = "edge", port = 2, rate = "100 Mb/s" }
eth1 = { switch = "core", port = 3, address = "10.77.0.2" }
[host.n3]
eth0 = { network = "b", address = "10.77.2.3" }
eth1 = "middle"
[host.n4]
eth0 = "b"
"#;

fn description(text: &str) -> Description {
    match Description::parse(text.as_bytes()) {
        Ok(description) => description,
        Err(errors) => panic!("{errors:?} in {text}"),
    }
}

/// The lab with another text in one place.
fn lab_with(from: &str, to: &str) -> String {
    assert_eq!(LAB.matches(from).count(), 1, "{from}");
    LAB.replacen(from, to, 1)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn place(description: &Description, host: &str, addresses: &[&str]) -> HostPlace {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| ip(text)).collect();
    description.place(host, &addresses)
}

fn attachment(network: u16, addresses: &[&str], links: &[(Option<u16>, u32)]) -> NetworkPlace {
    let links = links.iter().map(|&(switch, ns_per_kib)| PhysicalLink { switch, ns_per_kib });
    let addresses = addresses.iter().map(|text| ip(text)).collect();
    NetworkPlace { network, addresses, links: links.collect() }
}

#[test]
fn a_file_is_read_in_its_order() {
    let lab = description(LAB);
    let uplink = Some(Uplink { switch: 1, ns_per_kib: 4_096 });
    let edge = Switch { name: "edge".into(), ports: Some(24), ns_per_kib: 8_192, uplink };
    let core = Switch { name: "core".into(), ports: None, ns_per_kib: 819, uplink: None };
    assert_eq!(lab.switches, [edge, core]);
    let names: Vec<_> = lab.networks.iter().map(|network| network.name.as_str()).collect();
    assert_eq!(names, ["a", "middle", "b"]);
    assert_eq!(
        (lab.networks[2].site.as_deref(), lab.networks[1].site.as_deref()),
        (Some("b"), None)
    );
    assert_eq!(
        (lab.networks[1].gateways.as_slice(), lab.networks[2].addresses.len()),
        (&[1, 2][..], 2)
    );
    let eth1 = Interface {
        name: "eth1".into(),
        network: 1,
        address: Some(ip("10.77.0.2")),
        switch: Some(1),
        port: Some(3),
        ns_per_kib: None,
    };
    assert_eq!(lab.hosts[1].interfaces[1], eth1);
    assert_eq!(lab.hosts[1].interfaces[0].ns_per_kib, Some(81_920));
}

#[test]
fn other_forms_of_a_file_say_the_same() {
    assert_eq!(description(&LAB.replace('\n', "\r\n")), description(LAB));
    assert_eq!(description(&format!("\u{feff}{LAB}")), description(LAB));
    let long = lab_with("eth1 = \"middle\"\n", "[host.n3.eth1]\nnetwork = \"middle\"\n");
    assert_eq!(description(&long), description(LAB));
    let dotted = "host.n1.eth0 = \"a\"\nnetwork.a.addresses = \"10.0.0.0/8\"\n";
    assert_eq!(description(dotted).hosts[0].interfaces[0].network, 0);
    let quoted = "[network.a]\nsite = \"x\"\n[host.\"n1.lab\"]\neth0 = \"a\"\n";
    assert_eq!(place(&description(quoted), "n1.lab", &["1.1.1.1"]).site, "x");
    assert_eq!(description(SMALLEST).networks.len(), 1);
}

#[test]
fn a_host_is_placed_by_its_interfaces_and_addresses() {
    let lab = description(LAB);
    let n1 = place(&lab, "n1", &["10.77.1.1", "192.168.3.3"]);
    let up = (Some(1), 4_096);
    let in_a = attachment(0, &["10.77.1.1"], &[(Some(0), 8_192), up]);
    assert_eq!(n1, HostPlace { site: "a".into(), is_gateway: false, networks: vec![in_a] });
    let n2 = place(&lab, "n2", &["10.77.1.2"]);
    assert!(n2.is_gateway);
    let in_a = attachment(0, &["10.77.1.2"], &[(Some(0), 81_920), up]);
    let in_middle = attachment(1, &["10.77.0.2"], &[(Some(1), 819)]);
    assert_eq!(n2.networks, [in_a, in_middle]);
    let n3 = place(&lab, "n3", &["fd00::3", "::ffff:10.77.0.3", "10.77.2.3"]);
    let in_b = attachment(2, &["10.77.2.3", "fd00::3"], &[(None, 8_192)]);
    let in_middle = attachment(1, &["10.77.0.3"], &[(None, 8_192)]);
    assert_eq!(n3.networks, [in_b, in_middle]);
    assert_eq!(n3.site, "b");
}

#[test]
fn a_host_that_is_not_described_is_placed_by_its_addresses() {
    let lab = description(LAB);
    let n9 = place(&lab, "n9", &["10.77.2.9", "10.77.0.9"]);
    let own = &[(None, 8_192)];
    let networks = vec![attachment(1, &["10.77.0.9"], own), attachment(2, &["10.77.2.9"], own)];
    assert_eq!(n9, HostPlace { site: "b".into(), is_gateway: false, networks });
    assert_eq!(place(&lab, "n9", &["192.168.3.3"]), HostPlace::default());
    assert_eq!(place(&Description::default(), "n1", &["10.77.1.1"]), HostPlace::default());
    let more = place(&lab, "n1", &["10.77.1.1", "10.77.2.1"]);
    assert_eq!((more.site.as_str(), more.networks.len()), ("a", 2));
}

#[test]
fn a_network_without_addresses_has_those_that_no_other_network_has() {
    let text = "[network.a]\n[network.b]\naddresses = \"10.0.0.0/8\"\n[host.n1]\neth0 = \"a\"\n\
                eth1 = { network = \"a\", address = \"9.9.9.9\" }\n";
    let n1 = place(&description(text), "n1", &["10.1.1.1", "9.9.9.8", "9.9.9.9"]);
    let own = &[(None, 8_192)];
    let [in_a, in_b] = [("9.9.9.9", 0), ("10.1.1.1", 1)].map(|(it, at)| attachment(at, &[it], own));
    let in_a = NetworkPlace { addresses: vec![ip("9.9.9.9"), ip("9.9.9.8")], ..in_a };
    assert_eq!(n1.networks, [in_a, in_b]);
}

#[test]
fn a_line_of_the_physical_level_changes_the_links() {
    let cable = |text: &str, host| place(&description(text), host, &[]).networks[0].links.clone();
    let rates =
        |text: &str, host| cable(text, host).iter().map(|link| link.ns_per_kib).collect::<Vec<_>>();
    assert_eq!(rates(LAB, "n1"), [8_192, 4_096]);
    assert_eq!(
        rates(&lab_with("uplink-rate = \"2 Gb/s\"", "uplink-rate = \"4 Gb/s\""), "n1"),
        [8_192, 2_048]
    );
    assert_eq!(rates(&lab_with("uplink-rate = \"2 Gb/s\"\n", ""), "n1"), [8_192, 8_192]);
    assert_eq!(rates(&lab_with("ports = 24", "rate = \"8 Gb/s\""), "n1"), [1_024, 4_096]);
    assert_eq!(rates(&lab_with("ports = 24", "rate = \"8 Gb/s\""), "n2"), [81_920, 4_096]);
    assert_eq!(rates(&lab_with("port = 2, rate = \"100 Mb/s\"", "port = 2"), "n2"), [8_192, 4_096]);
}

#[test]
fn a_line_of_the_interface_level_changes_the_addresses() {
    let n3 = |text: &str| place(&description(text), "n3", &["10.77.2.3", "10.77.0.3"]).networks;
    let own = &[(None, 8_192)];
    let in_b = attachment(2, &["10.77.2.3"], own);
    assert_eq!(n3(LAB), [in_b.clone(), attachment(1, &["10.77.0.3"], own)]);
    let other = lab_with("eth1 = \"middle\"", "eth1 = { address = \"10.77.0.33\" }");
    assert_eq!(n3(&other), [in_b, attachment(1, &["10.77.0.33", "10.77.0.3"], own)]);
}

#[test]
fn a_line_of_the_network_level_changes_sites_and_reach() {
    let n4 = |text: &str| place(&description(text), "n4", &[]).site;
    assert_eq!(
        (n4(LAB), n4(&lab_with("site = \"b\"", "site = \"far\""))),
        ("b".into(), "far".into())
    );
    let apart = lab_with("gateway = [\"n2\", \"n3\"]", "gateway = \"n2\"");
    let errors = Description::parse(apart.as_bytes()).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "line 26: host n4 and host n1 do not reach each other: no gateway leads from network b to it; write \
         `gateway = \"n3\"` in [network.b] to let that host join its networks"
    );
}
