//! Maps as SVG pictures.

use crate::picture::{INK, Look, Picture, width_of};

use super::MachineMap;
use super::layout::{
    Area, BAR_LETTER, HOST_LETTER, Layout, MARGIN, REMARK_LETTER, SITE_LETTER, network_label,
    remarks, switch_label,
};

/// The colours of networks, in their order.
const NETWORK_COLOURS: [&str; 8] =
    ["#0054A6", "#C85A00", "#008250", "#7850B4", "#961E3C", "#00828C", "#C0468A", "#8C6400"];
/// The colour of switches and cables.
const SWITCH_COLOUR: &str = "#646464";
/// The colour of words and wires of hosts that are away.
const AWAY: &str = "#8C8C8C";
const WHITE: &str = "#FFFFFF";
const SITE: Look =
    Look { fill: "#F4F5F7", edge: "#DEDEDE", thickness: 1.5, radius: 10.0, is_dashed: false };
const HOST: Look =
    Look { fill: WHITE, edge: "#787878", thickness: 1.5, radius: 4.0, is_dashed: false };
const GATEWAY: Look = Look { edge: INK, thickness: 3.0, ..HOST };
const AWAY_HOST: Look =
    Look { fill: "#EBEBEB", edge: "#A0A0A0", thickness: 1.5, radius: 4.0, is_dashed: true };
const RATE: Look = Look { fill: WHITE, edge: INK, thickness: 1.0, radius: 11.0, is_dashed: false };
/// The thickness of the wires of hosts, and of uplinks.
const WIRE: f64 = 2.0;
const UPLINK: f64 = 4.0;
/// The height of a line of the legend.
const LEGEND_LINE: f64 = 32.0;
const SAMPLE: f64 = 40.0;

/// A sample in the legend.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sample {
    Host,
    Gateway,
    Away,
    Network,
    Switch,
    Uplink,
}

/// Draws a map.
pub(super) fn svg(map: &MachineMap) -> String {
    let layout = Layout::of(map);
    let legend = legend(map, layout.width);
    let lines = legend.last().map_or(0.0, |(_, _, (_, line))| line + 1.0);
    let height = layout.height + 28.0 + LEGEND_LINE * lines + 12.0;
    let title = format!("The virtual machine {}", map.name);
    let mut picture = Picture::sized((layout.width, height), &title, &map.note);
    for area in &layout.groups {
        frame(&mut picture, area, &SITE);
    }
    draw_wires(&mut picture, &layout);
    draw_bars(&mut picture, map, &layout);
    for (group, title) in map.groups.iter().zip(&layout.titles) {
        frame(&mut picture, title, &Look { edge: SITE.fill, ..SITE });
        let at = (title.x + 4.0, title.middle().1);
        picture.words(&group.title(), at, "start", SITE_LETTER, INK);
    }
    for number in (0..map.groups.len()).filter(|number| map.hosts_in(*number).next().is_none()) {
        let title = &layout.titles[number];
        let at = (title.x + 4.0, title.bottom() + 14.0);
        picture.words("no host yet", at, "start", REMARK_LETTER, AWAY);
    }
    draw_hosts(&mut picture, map, &layout);
    for (sample, words, (x, line)) in legend {
        draw_sample(&mut picture, sample, words, (x, layout.height + 40.0 + LEGEND_LINE * line));
    }
    picture.finish()
}

fn frame(picture: &mut Picture, area: &Area, look: &Look) {
    picture.frame((area.x, area.y), (area.width, area.height), look);
}

fn network_colour(network: usize) -> &'static str {
    NETWORK_COLOURS[network % NETWORK_COLOURS.len()]
}

/// Draws the wires, those of hosts that are away beneath the others.
fn draw_wires(picture: &mut Picture, layout: &Layout) {
    let networks = layout.network_wires.iter().map(|wire| (wire, network_colour(wire.of)));
    let cables = layout.cables.iter().map(|wire| (wire, SWITCH_COLOUR));
    let mut wires: Vec<_> = networks.chain(cables).collect();
    wires.sort_by_key(|(wire, _)| !wire.is_away);
    for (wire, colour) in wires {
        let colour = if wire.is_away { AWAY } else { colour };
        picture.wire(&wire.corners, (colour, WIRE));
        picture.dot(wire.joint, 4.0, colour);
    }
    for uplink in &layout.uplinks {
        picture.wire(&uplink.corners, (SWITCH_COLOUR, UPLINK));
        for end in uplink.corners {
            picture.dot(end, 5.0, SWITCH_COLOUR);
        }
    }
}

/// Draws the bars of networks and switches, and the rates of uplinks.
fn draw_bars(picture: &mut Picture, map: &MachineMap, layout: &Layout) {
    for (number, area) in layout.networks.iter().enumerate() {
        let look = Look { fill: network_colour(number), ..network_look() };
        draw_bar(picture, area, &look, &network_label(map, number));
    }
    for (number, area) in layout.switches.iter().enumerate() {
        draw_bar(picture, area, &switch_look(), &switch_label(map, number));
    }
    for uplink in &layout.uplinks {
        frame(picture, &uplink.rate, &RATE);
        let rate = map.switches[uplink.of].uplink.as_ref().map_or("", |uplink| &uplink.rate);
        picture.words(rate, uplink.rate.middle(), "middle", REMARK_LETTER, INK);
    }
}

fn network_look() -> Look {
    Look { fill: network_colour(0), edge: WHITE, thickness: 0.0, radius: 14.0, is_dashed: false }
}

fn switch_look() -> Look {
    Look { fill: SWITCH_COLOUR, edge: WHITE, thickness: 0.0, radius: 2.0, is_dashed: false }
}

fn draw_bar(picture: &mut Picture, area: &Area, look: &Look, [name, more]: &[String; 2]) {
    frame(picture, area, look);
    let y = area.middle().1;
    picture.words(name, (area.x + 14.0, y), "start", BAR_LETTER, WHITE);
    let x = area.x + 30.0 + width_of(name, BAR_LETTER);
    if !more.is_empty() {
        picture.words(more, (x, y), "start", REMARK_LETTER, WHITE);
    }
}

fn draw_hosts(picture: &mut Picture, map: &MachineMap, layout: &Layout) {
    for (host, area) in map.hosts.iter().zip(&layout.hosts) {
        let (look, colour) = match (host.is_away, host.is_gateway) {
            (true, _) => (AWAY_HOST, AWAY),
            (false, true) => (GATEWAY, INK),
            (false, false) => (HOST, INK),
        };
        frame(picture, area, &look);
        let remarks = remarks(host);
        let (x, middle) = area.middle();
        let y = middle - 9.0 * remarks.len() as f64;
        picture.words(&host.name, (x, y), "middle", HOST_LETTER, colour);
        for (line, words) in (1..).zip(&remarks) {
            let y = y + 2.0 + 18.0 * f64::from(line);
            picture.words(words, (x, y), "middle", REMARK_LETTER, colour);
        }
    }
}

/// The samples that a map needs, with their words, and the place and line of each.
fn legend(map: &MachineMap, width: f64) -> Vec<(Sample, &'static str, (f64, f64))> {
    let has_gateway = map.hosts.iter().any(|host| host.is_gateway && !host.is_away);
    let all = [
        (Sample::Host, "host", map.hosts.iter().any(|host| !host.is_away && !host.is_gateway)),
        (Sample::Gateway, "gateway: passes connections on", has_gateway),
        (Sample::Away, "host that takes no part", map.hosts.iter().any(|host| host.is_away)),
        (Sample::Network, "network, and an interface in it", !map.networks.is_empty()),
        (Sample::Switch, "switch, and a cable to it", !map.switches.is_empty()),
        (
            Sample::Uplink,
            "uplink of a switch, and its rate",
            map.switches.iter().any(|switch| switch.uplink.is_some()),
        ),
    ];
    let needed = all.into_iter().filter(|(_, _, is_needed)| *is_needed);
    let needed: Vec<_> = needed.map(|(sample, words, _)| (sample, words)).collect();
    let room = |words: &str| SAMPLE + 10.0 + width_of(words, REMARK_LETTER) + 12.0;
    let column = needed.iter().map(|(_, words)| room(words)).fold(1.0, f64::max);
    let columns = (((width - 2.0 * MARGIN) / column) as usize).clamp(1, 3);
    let place =
        |number: usize| (MARGIN + column * (number % columns) as f64, (number / columns) as f64);
    needed.iter().enumerate().map(|(at, (sample, words))| (*sample, *words, place(at))).collect()
}

fn draw_sample(picture: &mut Picture, sample: Sample, words: &str, (x, y): (f64, f64)) {
    let boxed = Area { x, y: y - 10.0, width: SAMPLE, height: 20.0 };
    let bar = Area { x, y: y - 11.0, width: SAMPLE, height: 12.0 };
    let middle = x + SAMPLE / 2.0;
    match sample {
        Sample::Host => frame(picture, &boxed, &HOST),
        Sample::Gateway => frame(picture, &boxed, &GATEWAY),
        Sample::Away => frame(picture, &boxed, &AWAY_HOST),
        Sample::Network => {
            let colour = network_colour(0);
            picture.wire(&[(middle, y), (middle, y + 12.0)], (colour, WIRE));
            picture.dot((middle, y + 1.0), 4.0, colour);
            frame(picture, &bar, &Look { radius: 6.0, ..network_look() });
        }
        Sample::Switch => {
            let bar = Area { y, ..bar };
            picture.wire(&[(middle, y - 12.0), (middle, y)], (SWITCH_COLOUR, WIRE));
            picture.dot((middle, y), 4.0, SWITCH_COLOUR);
            frame(picture, &bar, &switch_look());
        }
        Sample::Uplink => {
            picture.wire(&[(x, y), (x + SAMPLE, y)], (SWITCH_COLOUR, UPLINK));
            let rate = Area { x: x + 8.0, y: y - 8.0, width: SAMPLE - 16.0, height: 16.0 };
            frame(picture, &rate, &RATE);
        }
    }
    picture.words(words, (x + SAMPLE + 10.0, y), "start", REMARK_LETTER, INK);
}
