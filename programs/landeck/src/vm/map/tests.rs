//! Tests of maps: nothing covers anything else, and nothing is missing.

use landeck_wire::HostNumber;

use super::super::status::tests::machine;
use super::layout::{Area, HOST_LETTER, Layout};
use super::*;
use crate::picture::width_of;

/// The map of a description.
fn described(text: &str) -> MachineMap {
    let description = Description::parse(text.as_bytes()).unwrap();
    let mut map = MachineMap::new("lab", &description);
    map.add_described(&description, |_| true, None);
    map.note = map.summary();
    map
}

const TWO: &str = "network.home = { addresses = \"192.168.1.0/24\" }\n\
                   host.ada = { eth0 = \"home\" }\nhost.bob = { wlan0 = \"home\" }\n";

/// Two sites, a network between them that all hosts are in, and a host of which nothing is known.
const EIGHT: &str = r#"
switch.s1 = { ports = 8, uplink = "top", uplink-rate = "10 Gb/s" }
switch.s2 = { ports = 8, uplink = "top", uplink-rate = "10 Gb/s" }
switch.top = { rate = "10 Gb/s" }
network.left = { addresses = "10.1.0.0/16", site = "lyon" }
network.storage = { addresses = ["10.3.0.0/16", "fd00:1::/64"] }
network.right = { addresses = "10.2.0.0/16", site = "graz", gateway = "gate" }
host.gate = { eth0 = { network = "left", switch = "s1" }, eth1 = "right" }
host.lyon1 = { eth0 = { network = "left", switch = "s1" }, eth1 = "storage" }
host.lyon2 = { eth0 = { network = "left", switch = "s1" }, eth1 = "storage" }
host.lyon3 = { eth0 = { network = "left", switch = "s1", rate = "100 Mb/s" }, eth1 = "storage" }
host.graz1 = { eth0 = { network = "right", switch = "s2" }, eth1 = "storage" }
host.graz2 = { eth0 = { network = "right", switch = "s2" }, eth1 = "storage" }
host.graz3 = { eth0 = { network = "right", switch = "s2" }, eth1 = "storage" }
host.laptop = {}
"#;

/// Long names, several gateways with several networks, a site without hosts, and three levels of switches.
const DEEP: &str = r#"
switch.e1 = { ports = 8, uplink = "m1" }
switch.e2 = { ports = 1, uplink = "m1", uplink-rate = "2.5 Gb/s" }
switch.e3 = { ports = 8, uplink = "m2" }
switch.m1 = { ports = 12, uplink = "root", uplink-rate = "10 Gb/s" }
switch.m2 = { ports = 12, uplink = "root", uplink-rate = "10 Gb/s" }
switch.root = { rate = "10 Gb/s" }
switch.spare = {}
network.berlin = { addresses = "2001:db8:aaaa:bbbb::/64", site = "berlin-adlershof" }
network.paris = { addresses = "10.2.0.0/16", site = "paris" }
network.rome = { addresses = "10.4.0.0/16", site = "rome" }
network.oslo = { addresses = "10.5.0.0/16", site = "oslo" }
network.wide = { addresses = "10.3.0.0/16", gateway = ["gb", "gp", "gr"] }
network.backup = { addresses = "10.9.0.0/16", gateway = ["gb", "gp"] }
network.unused = { addresses = "10.8.0.0/16" }
host.gb = { eth0 = { network = "berlin", switch = "e1" }, eth1 = { network = "wide", switch = "m1" }, eth2 = "backup" }
host.gp = { eth0 = { network = "paris" }, eth1 = { network = "wide", switch = "m1", rate = "100 Mb/s" }, eth2 = "backup" }
host.gr = { eth0 = { network = "rome", switch = "e3" }, eth1 = { network = "wide", switch = "m2" } }
host.with-a-rather-long-name-01 = { eth0 = { network = "berlin", switch = "e1" } }
host.p1 = { eth0 = { network = "paris", switch = "e2" } }
host.r1 = { eth0 = { network = "rome", switch = "e3" } }
"#;

/// Forty hosts in two sites, in racks, some with a second network.
fn forty() -> String {
    let mut text = "switch.core = { rate = \"100 Gb/s\" }\n\
                    network.campus = { addresses = \"10.0.0.0/16\", gateway = [\"gate-a\", \"gate-b\"] }\n"
        .to_owned();
    for (site, net) in [("a", 1), ("b", 2)] {
        text += &format!(
            "switch.spine-{site} = {{ ports = 32, uplink = \"core\", uplink-rate = \"100 Gb/s\" }}\n\
             switch.rack-{site}0 = {{ ports = 48, uplink = \"spine-{site}\" }}\n\
             switch.rack-{site}1 = {{ ports = 48, uplink = \"spine-{site}\" }}\n\
             network.nodes-{site} = {{ addresses = \"10.{net}.0.0/16\", site = \"{site}\" }}\n\
             network.fast-{site} = {{ addresses = \"10.1{net}.0.0/16\", site = \"{site}\" }}\n\
             host.gate-{site} = {{ eth0 = {{ network = \"nodes-{site}\", switch = \"rack-{site}0\" }}, \
             eth1 = {{ network = \"campus\", switch = \"core\" }} }}\n"
        );
        for number in 1..20 {
            let rack = number % 2;
            let fast = match number % 3 {
                0 => String::new(),
                _ => format!(", ib0 = \"fast-{site}\""),
            };
            text += &format!(
                "host.node-{site}{number} = {{ eth0 = {{ network = \"nodes-{site}\", \
                 switch = \"rack-{site}{rack}\" }}{fast} }}\n"
            );
        }
    }
    text
}

fn maps() -> [MachineMap; 4] {
    [described(TWO), described(EIGHT), described(DEEP), described(&forty())]
}

fn overlap(one: &Area, other: &Area) -> bool {
    one.x < other.right()
        && other.x < one.right()
        && one.y < other.bottom()
        && other.y < one.bottom()
}

fn holds(outer: &Area, inner: &Area) -> bool {
    inner.x >= outer.x
        && inner.y >= outer.y
        && inner.right() <= outer.right()
        && inner.bottom() <= outer.bottom()
}

/// The areas of all words, each with its name.
fn areas_of_words(map: &MachineMap, layout: &Layout) -> Vec<(String, Area)> {
    let named = |names: Vec<String>, areas: &[Area]| {
        assert_eq!(names.len(), areas.len());
        names.into_iter().zip(areas.to_vec())
    };
    let rates: Vec<Area> = layout.uplinks.iter().map(|uplink| uplink.rate).collect();
    let of_uplink = layout.uplinks.iter().map(|uplink| format!("rate {}", uplink.of)).collect();
    named(map.groups.iter().map(HostGroup::title).collect(), &layout.titles)
        .chain(named(map.hosts.iter().map(|it| it.name.clone()).collect(), &layout.hosts))
        .chain(named(map.networks.iter().map(|it| it.name.clone()).collect(), &layout.networks))
        .chain(named(map.switches.iter().map(|it| it.name.clone()).collect(), &layout.switches))
        .chain(named(of_uplink, &rates))
        .collect()
}

#[test]
fn no_words_cover_others_or_leave_their_box() {
    for map in maps() {
        let layout = Layout::of(&map);
        let page = Area { x: 0.0, y: 80.0, width: layout.width, height: layout.height - 80.0 };
        let areas = areas_of_words(&map, &layout);
        for (place, (name, area)) in areas.iter().enumerate() {
            assert!(holds(&page, area), "{name} at {area:?}");
            for (other_name, other) in &areas[..place] {
                assert!(!overlap(area, other), "{name} covers {other_name}");
            }
        }
        for (host, area) in map.hosts.iter().zip(&layout.hosts) {
            assert!(holds(&layout.groups[host.group], area), "{}", host.name);
            assert!(width_of(&host.name, HOST_LETTER) <= area.width, "{}", host.name);
        }
        for (place, area) in layout.groups.iter().enumerate() {
            assert!(holds(area, &layout.titles[place]));
            assert!(layout.groups[..place].iter().all(|other| !overlap(area, other)));
        }
    }
}

#[test]
fn no_wire_passes_over_a_host_or_a_title() {
    for map in maps() {
        let layout = Layout::of(&map);
        let wires = layout.network_wires.iter().chain(&layout.cables);
        let wires = wires.map(|wire| wire.corners.clone());
        let uplinks = layout.uplinks.iter().map(|uplink| uplink.corners.to_vec());
        for corners in wires.chain(uplinks) {
            for ends in corners.windows(2) {
                let ((x, y), (to_x, to_y)) = (ends[0], ends[1]);
                assert!(x == to_x || y == to_y, "wires are upright or level: {ends:?}");
                // A wire touches the edge of its own host.
                let line = Area {
                    x: x.min(to_x) + 0.5,
                    y: y.min(to_y) + 0.5,
                    width: (x - to_x).abs() - 1.0,
                    height: (y - to_y).abs() - 1.0,
                };
                for area in layout.hosts.iter().chain(&layout.titles) {
                    assert!(!overlap(&line, area), "{ends:?} over {area:?}");
                }
            }
        }
    }
}

#[test]
fn each_part_is_drawn_once_and_wired() {
    for map in maps() {
        let svg = drawing::svg(&map);
        let count = |words: &str| svg.matches(&format!(">{words}</text>")).count();
        for host in &map.hosts {
            assert_eq!(count(&host.name), 1, "{}", host.name);
        }
        for name in map.networks.iter().map(|network| &network.name) {
            assert_eq!(count(name), 1, "{name}");
        }
        for switch in &map.switches {
            assert_eq!(count(&switch.name), 1, "{}", switch.name);
        }
        for group in &map.groups {
            assert_eq!(count(&group.title()), 1, "{}", group.heading);
        }
        let gateways = map.hosts.iter().filter(|host| host.is_gateway).count();
        assert_eq!(count("gateway"), gateways);
        let layout = Layout::of(&map);
        let interfaces: usize = map.hosts.iter().map(|host| host.networks.len()).sum();
        let cables: usize = map.hosts.iter().map(|host| host.cables.len()).sum();
        let uplinks = map.switches.iter().filter(|switch| switch.uplink.is_some()).count();
        let drawn = (layout.network_wires.len(), layout.cables.len(), layout.uplinks.len());
        assert_eq!(drawn, (interfaces, cables, uplinks));
    }
}

#[test]
fn gateways_stand_between_their_networks() {
    let map = described(EIGHT);
    let layout = Layout::of(&map);
    let number = |name: &str| map.networks.iter().position(|network| network.name == name).unwrap();
    let (left, right) = (layout.networks[number("left")], layout.networks[number("right")]);
    let gate = layout.hosts[0];
    assert!(right.bottom() < gate.y && gate.bottom() < left.y);
}

#[test]
fn a_running_machine_has_hosts_that_are_lost_or_missing() {
    let text = r#"
        network.a = { addresses = "10.0.0.0/8", site = "x" }
        network.b = { addresses = "11.0.0.0/8", gateway = "adalovelace" }
        host.adalovelace = { eth0 = "a", eth1 = "b" }
        host.carol = { eth0 = "a" }
        host.bob = { eth0 = "a" }
    "#;
    let description = Description::parse(text.as_bytes()).unwrap();
    let mut status = machine();
    status.hosts[0].networks = vec![0, 1];
    status.hosts[0].site = "x".to_owned();
    let route = RouteStatus {
        from: HostNumber(0),
        to: HostNumber(1),
        gateways: Vec::new(),
        mib_ns: 1,
        broken: Some((HostNumber(0), HostNumber(1))),
    };
    let map = MachineMap::of_running(&status, &description, &[route]);
    let expected = "\
lab: 3 hosts (2 away), 1 site, 2 networks, 1 gateway

site x
  adalovelace  a, b  gateway
  bob          a     lost for 90.0 s
  carol        a     not in the machine

networks
  a  10.0.0.0/8  site x
  b  11.0.0.0/8
";
    assert_eq!(text::text(&map), expected);
    let note = "3 hosts (2 away), 1 site, 2 networks, 1 gateway, as they are now. adalovelace did not reach bob a moment ago.";
    assert_eq!(map.note, note);
    let svg = drawing::svg(&map);
    for words in ["lost for 90.0 s", "not in the machine", "host that takes no part"] {
        assert!(svg.contains(&format!(">{words}</text>")), "{words}");
    }
    let bare = MachineMap::of_running(&status, &Description::default(), &[]);
    let headings: Vec<&str> = bare.groups.iter().map(|group| group.heading.as_str()).collect();
    assert_eq!(headings, ["x", "hosts"], "nothing is described");
}
