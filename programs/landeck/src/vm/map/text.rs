//! Maps as text: the sites with their hosts, the networks, and the switches with the hosts on them.

use std::fmt::Write as _;

use super::{MachineMap, MapHost};

/// The map as text.
pub(super) fn text(map: &MachineMap) -> String {
    let mut text = format!("{}: {}\n", map.name, map.summary());
    for (number, group) in map.groups.iter().enumerate() {
        let _ = writeln!(text, "\n{}", group.title());
        let rows: Vec<[String; 3]> = map.hosts_in(number).map(|host| host_row(map, host)).collect();
        text += if rows.is_empty() { "  no host yet\n" } else { "" };
        text += &table(&rows);
    }
    if !map.networks.is_empty() {
        text += "\nnetworks\n";
        let row = |network: &super::MapNetwork| {
            let site = network.site.map_or_else(String::new, |site| map.groups[site].title());
            [network.name.clone(), network.addresses.clone(), site]
        };
        text += &table(&map.networks.iter().map(row).collect::<Vec<_>>());
    }
    for (number, switch) in map.switches.iter().enumerate() {
        if switch.uplink.is_none() {
            text += "\n";
            add_switch(&mut text, map, number, 0);
        }
    }
    text
}

/// A host: its name, its networks, and whatever is special about it.
fn host_row(map: &MachineMap, host: &MapHost) -> [String; 3] {
    let networks: Vec<&str> =
        host.networks.iter().map(|network| map.networks[*network].name.as_str()).collect();
    let gateway = host.is_gateway.then_some("gateway");
    let special: Vec<&str> = gateway.into_iter().chain(host.state.as_deref()).collect();
    [host.name.clone(), networks.join(", "), special.join(", ")]
}

/// A switch with its cables, and the switches below it.
fn add_switch(text: &mut String, map: &MachineMap, number: usize, depth: usize) {
    let switch = &map.switches[number];
    let indent = "  ".repeat(depth);
    let _ = write!(text, "{indent}switch {}: {}", switch.name, switch.ports);
    if let Some(uplink) = &switch.uplink {
        let _ = write!(text, ", uplink of {}", uplink.rate);
    }
    text.push('\n');
    let is_below = |other: &usize| {
        map.switches[*other].uplink.as_ref().is_some_and(|uplink| uplink.switch == number)
    };
    for below in (0..map.switches.len()).filter(is_below) {
        add_switch(text, map, below, depth + 1);
    }
    for host in &map.hosts {
        for cable in host.cables.iter().filter(|cable| cable.switch == number) {
            let _ = write!(text, "{indent}  {} {}", host.name, cable.interface);
            let port = cable.port.map(|port| format!("port {port}"));
            let details: Vec<String> = port.into_iter().chain(cable.rate.clone()).collect();
            if !details.is_empty() {
                let _ = write!(text, " ({})", details.join(", "));
            }
            text.push('\n');
        }
    }
}

/// Rows whose columns stand below each other.
fn table(rows: &[[String; 3]]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let mut text = String::new();
    for [name, middle, last] in rows {
        let line = format!("  {name:<first$}  {middle:<second$}  {last}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
