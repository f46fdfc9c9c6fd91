//! The places of all parts of a map.
//!
//! Networks that join sites are bars above, each site is a box below them, and switches that join sites are bars at the
//! bottom. In a box, gateways come first, then the bars of the site's own networks, the other hosts in a grid, and the bars
//! of the site's own switches. A host is wired to its networks on its left, and to its switches on its right. So the wires
//! of networks run beside the hosts, and none crosses a host. A gateway has its networks above and below it.

use std::collections::BTreeSet;

use crate::picture::{bottom_of_note, width_of};

use super::{MachineMap, MapHost};

/// The letters of the names of sites, of hosts, of bars, and of remarks.
pub(super) const SITE_LETTER: u32 = 20;
pub(super) const HOST_LETTER: u32 = 18;
pub(super) const BAR_LETTER: u32 = 16;
pub(super) const REMARK_LETTER: u32 = 14;

/// The distance of the contents from the edge of the page.
pub(super) const MARGIN: f64 = 24.0;
/// The gap between the note and the map.
const HEAD_GAP: f64 = 18.0;
const WIDTH_MIN: f64 = 760.0;
/// The width that the boxes share, if the hosts fit by more rows.
const WIDTH_WANTED: f64 = 1180.0;
const ROWS_MAX: usize = 12;

const BAR_HEIGHT: f64 = 28.0;
const BAR_GAP: f64 = 14.0;
/// The length of a bar beyond its outermost wires.
const BAR_END: f64 = 30.0;
/// The gap below a bar whose uplink has its rate there.
const RATE_GAP: f64 = 40.0;
const RATE_HEIGHT: f64 = 22.0;
const SITE_GAP: f64 = 28.0;
const SITE_PAD: f64 = 12.0;
const TITLE_HEIGHT: f64 = 46.0;
const HOST_GAP: f64 = 16.0;
const HOST_WIDTH_MIN: f64 = 96.0;
/// The most width that a host gets for a title beside its wires.
const HOST_WIDTH_STRETCHED: f64 = 400.0;
/// The most of a gateway's width that a title above it takes.
const TITLE_SHARE: f64 = 0.8;
/// The gap between the wires in a gutter.
const LANE: f64 = 9.0;
/// The gap between a gutter's wires and the hosts.
const GUTTER: f64 = 12.0;
/// The room of an uplink with its rate.
const UPLINK_ROOM: f64 = 100.0;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub(super) fn middle(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    /// A place at this share of the width and of the height.
    fn at(&self, across: f64, down: f64) -> (f64, f64) {
        (self.x + self.width * across, self.y + self.height * down)
    }
}

/// A wire from a bar to a host, or to another bar.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    /// Its network, or its switch.
    pub(super) of: usize,
    pub(super) corners: Vec<(f64, f64)>,
    /// The place where it meets its bar.
    pub(super) joint: (f64, f64),
    /// Whether it is that of a host that takes no part.
    pub(super) is_away: bool,
}

/// An uplink, with the place of its rate.
#[derive(Clone, Debug)]
pub(super) struct UplinkWire {
    pub(super) of: usize,
    pub(super) corners: [(f64, f64); 2],
    pub(super) rate: Area,
}

/// The places of the parts of a map, each by its number.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    /// The height without the legend.
    pub(super) height: f64,
    pub(super) groups: Vec<Area>,
    pub(super) titles: Vec<Area>,
    pub(super) hosts: Vec<Area>,
    pub(super) networks: Vec<Area>,
    pub(super) switches: Vec<Area>,
    pub(super) network_wires: Vec<Wire>,
    pub(super) cables: Vec<Wire>,
    pub(super) uplinks: Vec<UplinkWire>,
}

/// The contents of a box.
#[derive(Debug, Default)]
struct GroupPlan {
    gateways: Vec<usize>,
    /// The hosts in the grid.
    others: Vec<usize>,
    /// The networks and switches whose bars are in the box, from top to bottom.
    networks: Vec<usize>,
    switches: Vec<usize>,
    /// The networks and switches that have a wire in the gutters.
    network_lanes: Vec<usize>,
    switch_lanes: Vec<usize>,
    columns: usize,
    host_width: f64,
    title_width: f64,
    /// The widest words in its bars.
    bars_width: f64,
    x: f64,
    width: f64,
}

impl GroupPlan {
    fn left_gutter(&self) -> f64 {
        GUTTER + LANE * self.network_lanes.len() as f64
    }

    fn right_gutter(&self) -> f64 {
        GUTTER + LANE * self.switch_lanes.len() as f64
    }

    fn pitch(&self) -> f64 {
        self.left_gutter() + self.host_width + self.right_gutter()
    }

    /// The left edge of the hosts in a column.
    fn host_x(&self, column: usize) -> f64 {
        self.x + SITE_PAD + column as f64 * self.pitch() + self.left_gutter()
    }

    /// The place of the wire of a network, left of the hosts of a column.
    fn network_lane(&self, column: usize, network: usize) -> f64 {
        let lane = self.network_lanes.iter().position(|lane| *lane == network).unwrap_or(0);
        self.host_x(column) - GUTTER - LANE * lane as f64
    }

    /// The place of the cables to a switch, right of the hosts of a column.
    fn switch_lane(&self, column: usize, switch: usize) -> f64 {
        let lane = self.switch_lanes.iter().position(|lane| *lane == switch).unwrap_or(0);
        self.host_x(column) + self.host_width + GUTTER + LANE * lane as f64
    }

    /// The column of the first gateway: the last ones have them, as the title is in the first.
    fn gateway_column(&self) -> usize {
        self.columns - self.gateways.len()
    }

    /// Gives it so many rows of hosts at most.
    fn fold(&mut self, rows: usize) {
        self.columns = self.others.len().div_ceil(rows).max(self.gateways.len()).max(1);
        if !self.gateways.is_empty() && self.gateway_column() == 0 {
            let beside_wires = (self.title_width / TITLE_SHARE).min(HOST_WIDTH_STRETCHED);
            self.host_width = self.host_width.max(beside_wires);
        }
        let inner = self.bars_width.max(self.left_gutter() + self.title_width);
        let own = self.columns as f64 * self.pitch();
        if own < inner {
            self.host_width += ((inner - own) / self.columns as f64).min(self.host_width / 2.0);
        }
        self.width = inner.max(self.columns as f64 * self.pitch()) + 2.0 * SITE_PAD;
    }
}

/// The words in the bar of a network.
pub(super) fn network_label(map: &MachineMap, network: usize) -> [String; 2] {
    let network = &map.networks[network];
    [network.name.clone(), network.addresses.clone()]
}

/// The words in the bar of a switch.
pub(super) fn switch_label(map: &MachineMap, switch: usize) -> [String; 2] {
    let switch = &map.switches[switch];
    [switch.name.clone(), switch.ports.clone()]
}

/// The words in the box of a host below its name.
pub(super) fn remarks(host: &MapHost) -> Vec<String> {
    let gateway = host.is_gateway.then(|| "gateway".to_owned());
    let slow = host
        .cables
        .iter()
        .filter_map(|cable| cable.rate.as_ref().map(|rate| format!("{}: {rate}", cable.interface)));
    gateway.into_iter().chain(host.state.clone()).chain(slow).collect()
}

/// The room for two words in a bar, with that between and beside them.
fn bar_width([name, more]: &[String; 2]) -> f64 {
    width_of(name, BAR_LETTER) + width_of(more, REMARK_LETTER) + 44.0
}

fn host_height<'a>(hosts: impl Iterator<Item = &'a MapHost>) -> f64 {
    let lines = hosts.map(|host| remarks(host).len()).max();
    lines.map_or(0.0, |lines| 36.0 + 18.0 * lines as f64)
}

fn host_width(host: &MapHost) -> f64 {
    let remarks =
        remarks(host).iter().map(|words| width_of(words, REMARK_LETTER)).fold(0.0, f64::max);
    (width_of(&host.name, HOST_LETTER).max(remarks) + 20.0).max(HOST_WIDTH_MIN)
}

/// The group in whose box a network is drawn; `None` for one that joins groups.
fn home_of_network(map: &MachineMap, number: usize) -> Option<usize> {
    let network = &map.networks[number];
    let hosts = map.hosts.iter().filter(|host| host.networks.contains(&number));
    let mut groups: BTreeSet<usize> = hosts.map(|host| host.group).collect();
    groups.extend(network.site);
    let is_between = network.site.is_none() && network.has_gateways;
    (groups.len() == 1 && !is_between).then(|| groups.first().copied()).flatten()
}

/// The groups of the hosts behind a switch.
fn groups_behind(map: &MachineMap, switch: usize) -> BTreeSet<usize> {
    let reaches = |mut from: usize| {
        for _ in 0..map.switches.len() {
            match &map.switches[from].uplink {
                _ if from == switch => return true,
                Some(uplink) => from = uplink.switch,
                None => return false,
            }
        }
        false
    };
    let is_behind = |host: &&MapHost| host.cables.iter().any(|cable| reaches(cable.switch));
    map.hosts.iter().filter(is_behind).map(|host| host.group).collect()
}

/// The columns and wires of each box.
fn plans(map: &MachineMap) -> Vec<GroupPlan> {
    let mut plans: Vec<GroupPlan> = map.groups.iter().map(|_| GroupPlan::default()).collect();
    for (number, host) in map.hosts.iter().enumerate() {
        let plan = &mut plans[host.group];
        if host.is_gateway {
            plan.gateways.push(number);
        } else {
            plan.others.push(number);
            plan.network_lanes.extend(&host.networks);
        }
        plan.switch_lanes.extend(host.cables.iter().map(|cable| cable.switch));
        plan.host_width = plan.host_width.max(host_width(host));
    }
    for number in 0..map.networks.len() {
        if let Some(home) = home_of_network(map, number) {
            plans[home].networks.push(number);
        }
    }
    for number in 0..map.switches.len() {
        let groups = groups_behind(map, number);
        if let (Some(&home), 1) = (groups.first(), groups.len()) {
            plans[home].switches.push(number);
        }
    }
    for plan in &mut plans {
        for lanes in [&mut plan.network_lanes, &mut plan.switch_lanes] {
            lanes.sort_unstable();
            lanes.dedup();
        }
        order_upwards(map, &mut plan.switches);
        plan.host_width = plan.host_width.max(HOST_WIDTH_MIN);
        let networks = plan.networks.iter().map(|network| network_label(map, *network));
        let labels = networks.chain(plan.switches.iter().map(|switch| switch_label(map, *switch)));
        plan.bars_width = labels.map(|label| bar_width(&label)).fold(0.0, f64::max);
    }
    for (plan, group) in plans.iter_mut().zip(&map.groups) {
        plan.title_width = width_of(&group.title(), SITE_LETTER) + 8.0;
    }
    plans
}

/// Orders switches so that each comes before that above it.
fn order_upwards(map: &MachineMap, switches: &mut [usize]) {
    switches.sort_by_key(|switch| core::cmp::Reverse(map.steps_to_root(*switch)));
}

/// Gives each box its columns and its place from left to right. Returns the rows of hosts, and the right edge.
fn fold(plans: &mut [GroupPlan]) -> (usize, f64) {
    let hosts: usize = plans.iter().map(|plan| plan.others.len()).sum();
    let most = plans.iter().map(|plan| plan.others.len()).max().unwrap_or(0);
    let widths: Vec<f64> = plans.iter().map(|plan| plan.host_width).collect();
    let mut rows = ((hosts as f64).sqrt() / 1.5).ceil().max(1.0) as usize;
    let width = loop {
        for (plan, width) in plans.iter_mut().zip(&widths) {
            plan.host_width = *width;
            plan.fold(rows);
        }
        let gaps = SITE_GAP * plans.len().saturating_sub(1) as f64;
        let width = gaps + plans.iter().map(|plan| plan.width).sum::<f64>();
        if width <= WIDTH_WANTED || rows >= most.min(ROWS_MAX) {
            break width;
        }
        rows += 1;
    };
    let mut x = MARGIN.max((WIDTH_MIN - width) / 2.0);
    for plan in &mut *plans {
        plan.x = x;
        x += plan.width + SITE_GAP;
    }
    let rows = plans.iter().map(|plan| plan.others.len().div_ceil(plan.columns)).max();
    (rows.unwrap_or(0), x - SITE_GAP)
}

impl Layout {
    /// Lays a map out.
    pub(super) fn of(map: &MachineMap) -> Self {
        let mut plans = plans(map);
        let (rows, right) = fold(&mut plans);
        let mut layout = Self {
            hosts: vec![Area::default(); map.hosts.len()],
            networks: vec![Area::default(); map.networks.len()],
            switches: vec![Area::default(); map.switches.len()],
            ..Self::default()
        };
        let within: BTreeSet<usize> = plans.iter().flat_map(|plan| plan.networks.clone()).collect();
        let between: Vec<usize> =
            (0..map.networks.len()).filter(|it| !within.contains(it)).collect();
        let mut y = bottom_of_note(&map.note, WIDTH_MIN.max(right + MARGIN)) + HEAD_GAP;
        for &network in &between {
            layout.networks[network] = Area { x: MARGIN, y, width: 0.0, height: BAR_HEIGHT };
            y += BAR_HEIGHT + BAR_GAP;
        }
        y += if between.is_empty() { 0.0 } else { SITE_GAP - BAR_GAP };
        let bottom = layout.place_boxes(map, &plans, y, rows);
        let within: BTreeSet<usize> = plans.iter().flat_map(|plan| plan.switches.clone()).collect();
        let mut below: Vec<usize> =
            (0..map.switches.len()).filter(|it| !within.contains(it)).collect();
        order_upwards(map, &mut below);
        let mut y = bottom + SITE_GAP;
        for &switch in &below {
            layout.switches[switch] = Area { x: MARGIN, y, width: 0.0, height: BAR_HEIGHT };
            y += BAR_HEIGHT + gap_below(map, switch);
        }
        for plan in &plans {
            layout.wire_networks(map, plan);
            layout.wire_switches(map, plan);
        }
        for &switch in &below {
            let x = layout.free_for_uplink(switch);
            layout.wire_uplink(map, switch, x);
        }
        layout.stretch_bars(map, &between, &below);
        let all = layout.networks.iter().chain(&layout.switches).chain(&layout.groups);
        let right = all.map(Area::right).fold(WIDTH_MIN - MARGIN, f64::max);
        layout.width = right + MARGIN;
        layout.height = if below.is_empty() { bottom } else { y - BAR_GAP };
        layout
    }

    /// Places the boxes with all that is in them. Returns their lower edge.
    fn place_boxes(&mut self, map: &MachineMap, plans: &[GroupPlan], top: f64, rows: usize) -> f64 {
        let height = |list: fn(&GroupPlan) -> &Vec<usize>| {
            host_height(plans.iter().flat_map(list).map(|host| &map.hosts[*host]))
        };
        let (gateway, other) = (height(|plan| &plan.gateways), height(|plan| &plan.others));
        let bars = plans.iter().map(|plan| plan.networks.len()).max().unwrap_or(0);
        let gateways_y = top + TITLE_HEIGHT;
        let bars_y = gateways_y + if gateway > 0.0 { gateway + SITE_GAP } else { 0.0 };
        let grid_y =
            bars_y + bars as f64 * (BAR_HEIGHT + BAR_GAP) + if bars > 0 { 6.0 } else { 0.0 };
        let other = other.max(36.0);
        let switches_y = grid_y + rows.max(1) as f64 * (other + HOST_GAP) + 8.0;
        let mut bottom = switches_y;
        for plan in plans {
            for (place, &host) in plan.gateways.iter().enumerate() {
                let x = plan.host_x(plan.gateway_column() + place);
                self.hosts[host] =
                    Area { x, y: gateways_y, width: plan.host_width, height: gateway };
            }
            let inner = Area {
                x: plan.x + SITE_PAD,
                width: plan.width - 2.0 * SITE_PAD,
                height: BAR_HEIGHT,
                y: 0.0,
            };
            for (row, &network) in plan.networks.iter().enumerate() {
                let y = bars_y + row as f64 * (BAR_HEIGHT + BAR_GAP);
                self.networks[network] = Area { y, ..inner };
            }
            let is_bare = plan.networks.is_empty() && plan.gateways.is_empty();
            let first_y = if is_bare { gateways_y } else { grid_y };
            for (place, &host) in plan.others.iter().enumerate() {
                let y = first_y + (place / plan.columns) as f64 * (other + HOST_GAP);
                let x = plan.host_x(place % plan.columns);
                self.hosts[host] = Area { x, y, width: plan.host_width, height: other };
            }
            let mut y = switches_y;
            for &switch in &plan.switches {
                self.switches[switch] = Area { y, ..inner };
                y += BAR_HEIGHT + gap_below(map, switch);
            }
            bottom = bottom.max(y);
        }
        for plan in plans {
            let is_bare = plan.networks.is_empty() && plan.gateways.is_empty();
            let last = plan.others.last().map(|host| self.hosts[*host].bottom() + HOST_GAP);
            let last = last.filter(|_| is_bare && plan.switches.is_empty());
            let height = last.unwrap_or(bottom) - top;
            self.groups.push(Area { x: plan.x, y: top, width: plan.width, height });
            let title = Area {
                x: plan.host_x(0) - 4.0,
                y: top + 10.0,
                width: plan.title_width,
                height: 28.0,
            };
            self.titles.push(title);
        }
        bottom
    }

    /// Wires the hosts of a box to their networks.
    fn wire_networks(&mut self, map: &MachineMap, plan: &GroupPlan) {
        for &host in &plan.gateways {
            let area = self.hosts[host];
            let is_above = |network: &usize| self.networks[*network].y < area.y;
            let networks = map.hosts[host].networks.iter();
            let (above, below): (Vec<usize>, Vec<usize>) = networks.partition(|it| is_above(it));
            let title = self.titles[map.hosts[host].group].right() - area.x;
            let up = (title / area.width).clamp(0.2, TITLE_SHARE);
            for (networks, edge, from) in [(above, 0.0, up), (below, 1.0, 0.2)] {
                for (place, &network) in networks.iter().enumerate() {
                    let share = (place as f64 + 0.5) / networks.len() as f64;
                    let to = f64::max(0.8, from + 0.15);
                    let begin = area.at(from + (to - from) * share, edge);
                    let bar = self.networks[network];
                    let end = if edge == 0.0 { bar.bottom() } else { bar.y };
                    let joint = (begin.0, end);
                    let is_away = map.hosts[host].is_away;
                    let corners = vec![begin, joint];
                    self.network_wires.push(Wire { of: network, corners, joint, is_away });
                }
            }
        }
        for (place, &host) in plan.others.iter().enumerate() {
            let MapHost { networks, is_away, .. } = &map.hosts[host];
            let area = self.hosts[host];
            for (number, &network) in networks.iter().enumerate() {
                let share = (number + 1) as f64 / (networks.len() + 1) as f64;
                let begin = area.at(0.0, share);
                let x = plan.network_lane(place % plan.columns, network);
                let joint = (x, self.networks[network].bottom());
                let corners = vec![begin, (x, begin.1), joint];
                self.network_wires.push(Wire { of: network, corners, joint, is_away: *is_away });
            }
        }
    }

    /// Wires the hosts of a box to their switches, and its switches to those above.
    fn wire_switches(&mut self, map: &MachineMap, plan: &GroupPlan) {
        let gateways = (plan.gateway_column()..).zip(&plan.gateways);
        let others = plan.others.iter().enumerate();
        let others = others.map(|(place, host)| (place % plan.columns, host));
        for (column, &host) in gateways.chain(others) {
            let MapHost { cables, is_away, .. } = &map.hosts[host];
            let area = self.hosts[host];
            for (number, cable) in cables.iter().enumerate() {
                let share = (number + 1) as f64 / (cables.len() + 1) as f64;
                let begin = area.at(1.0, share);
                let x = plan.switch_lane(column, cable.switch);
                let joint = (x, self.switches[cable.switch].y);
                let corners = vec![begin, (x, begin.1), joint];
                self.cables.push(Wire { of: cable.switch, corners, joint, is_away: *is_away });
            }
        }
        // Below the hosts, nothing else is in the middle of a column.
        for (number, &switch) in plan.switches.iter().enumerate() {
            let column = plan.columns - 1 - number % plan.columns;
            let x = plan.host_x(column) + plan.host_width / 2.0;
            self.wire_uplink(map, switch, x + 12.0 * (number / plan.columns) as f64);
        }
    }

    /// The place of the uplink of a switch below the boxes: right of all that is plugged into it, where no wire passes.
    fn free_for_uplink(&self, switch: usize) -> f64 {
        let cables = self.cables.iter().map(|wire| (wire.joint, wire.of == switch));
        let uplinks = self.uplinks.iter().map(|uplink| uplink.corners[1]);
        let own_y = self.switches[switch].y;
        let uplinks = uplinks.map(|end| (end, end.1 == own_y));
        let wires: Vec<((f64, f64), bool)> = cables.chain(uplinks).collect();
        let own = wires.iter().filter(|(_, is_own)| *is_own).map(|((x, _), _)| *x);
        let mut x = own.fold(MARGIN, f64::max) + UPLINK_ROOM / 2.0;
        let mut passing: Vec<f64> =
            wires.iter().filter(|((_, y), _)| *y > own_y).map(|((x, _), _)| *x).collect();
        passing.sort_by(f64::total_cmp);
        for other in passing {
            if (other - x).abs() < UPLINK_ROOM / 2.0 {
                x = other + UPLINK_ROOM / 2.0;
            }
        }
        x
    }

    /// Wires a switch to the one above it.
    fn wire_uplink(&mut self, map: &MachineMap, switch: usize, x: f64) {
        let Some(uplink) = &map.switches[switch].uplink else { return };
        let (own, above) = (self.switches[switch], self.switches[uplink.switch]);
        let corners = [(x, own.bottom()), (x, above.y)];
        let width = width_of(&uplink.rate, REMARK_LETTER) + 12.0;
        let y = own.bottom() + (RATE_GAP - RATE_HEIGHT) / 2.0;
        let rate = Area { x: x - width / 2.0, y, width, height: RATE_HEIGHT };
        self.uplinks.push(UplinkWire { of: switch, corners, rate });
    }

    /// Makes bars outside the boxes as long as their wires and words need.
    fn stretch_bars(&mut self, map: &MachineMap, networks: &[usize], switches: &[usize]) {
        let stretched = |bar: Area, wires: Vec<f64>, words: f64| {
            let first = wires.iter().copied().reduce(f64::min);
            let last = wires.iter().copied().reduce(f64::max);
            let x = first.map_or(bar.x, |first| (first - BAR_END).max(MARGIN));
            let width = last.map_or(0.0, |last| last + BAR_END - x);
            Area { x, width: width.max(words), ..bar }
        };
        for &network in networks {
            let wires = self.network_wires.iter().filter(|wire| wire.of == network);
            let wires = wires.map(|wire| wire.joint.0).collect();
            let words = bar_width(&network_label(map, network));
            self.networks[network] = stretched(self.networks[network], wires, words);
        }
        for &switch in switches {
            let cables = self.cables.iter().filter(|wire| wire.of == switch);
            let is_at = |of: usize| {
                let uplink = map.switches[of].uplink.as_ref();
                of == switch || uplink.is_some_and(|uplink| uplink.switch == switch)
            };
            let uplinks = self.uplinks.iter().filter(|wire| is_at(wire.of));
            let uplinks = uplinks.map(|wire| wire.corners[0].0);
            let wires = cables.map(|wire| wire.joint.0).chain(uplinks).collect();
            let words = bar_width(&switch_label(map, switch));
            self.switches[switch] = stretched(self.switches[switch], wires, words);
        }
    }
}

/// The gap below the bar of a switch.
fn gap_below(map: &MachineMap, switch: usize) -> f64 {
    if map.switches[switch].uplink.is_some() { RATE_GAP } else { BAR_GAP }
}
