//! Maps of machines: of a running one, or of one that a file describes.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use landeck_host::report::duration;
use landeck_host::say::{complain, say};
use landeck_launch::machine::{HostState, HostStatus, MachineStatus, RouteStatus};
use landeck_launch::machine_call::MachineCall;
use landeck_machine::description::{Description, Interface, Switch};
use landeck_machine::quantity::Rate;

use super::status::name_of;
use super::{VmError, check};

mod drawing;
mod layout;
#[cfg(test)]
mod tests;
mod text;

/// The heading of hosts in networks without a site.
const NO_SITE: &str = "without a site";
/// The heading of hosts in no network.
const NO_NETWORK: &str = "in no described network";
/// The heading of all hosts where no site is described.
const HOSTS: &str = "hosts";

/// A machine as it is drawn. All numbers in it are indices into its lists.
#[derive(Debug, Default)]
struct MachineMap {
    /// Its name.
    name: String,
    /// Its parts and the source of the map, in a sentence.
    note: String,
    groups: Vec<HostGroup>,
    networks: Vec<MapNetwork>,
    switches: Vec<MapSwitch>,
    hosts: Vec<MapHost>,
}

/// Hosts that are drawn in one box: those of a site, or those without one.
#[derive(Debug)]
struct HostGroup {
    heading: String,
    is_site: bool,
}

#[derive(Debug)]
struct MapNetwork {
    name: String,
    /// Its addresses, for people.
    addresses: String,
    /// The group of its site.
    site: Option<usize>,
    /// Whether it has gateways by its description.
    has_gateways: bool,
}

#[derive(Debug)]
struct MapSwitch {
    name: String,
    /// Its ports and their rate, for people.
    ports: String,
    uplink: Option<MapUplink>,
}

#[derive(Debug)]
struct MapUplink {
    /// The switch above.
    switch: usize,
    /// The rate, for people.
    rate: String,
}

#[derive(Debug)]
struct MapHost {
    name: String,
    group: usize,
    networks: Vec<usize>,
    cables: Vec<Cable>,
    is_gateway: bool,
    /// Its state, unless it takes part and takes jobs.
    state: Option<String>,
    /// Whether it takes no part.
    is_away: bool,
}

/// The cable from an interface to a switch.
#[derive(Debug)]
struct Cable {
    interface: String,
    switch: usize,
    port: Option<u32>,
    /// The rate, for people, if it is not that of the switch's ports.
    rate: Option<String>,
}

/// The facts of a host that are not described.
struct Standing<'a> {
    site: &'a str,
    is_gateway: bool,
    networks: Vec<usize>,
    state: Option<String>,
    is_away: bool,
}

/// Shows the map of a description, or its errors.
pub(super) fn show_described(file: &Path, svg: Option<&Path>) -> Result<ExitCode, VmError> {
    match check::read(file)? {
        Ok(described) => {
            let source = file.file_name().unwrap_or_default().to_string_lossy();
            let source = format!("as {source} describes them.");
            let mut map = MachineMap::new(&described.name, &described.description);
            map.add_described(&described.description, |_| true, None);
            map.note = format!("{}, {source}", map.summary());
            show(&map, svg)
        }
        Err(errors) => {
            errors.iter().for_each(complain);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Shows the map of a running machine.
pub(super) fn show_running(mut call: MachineCall, svg: Option<&Path>) -> Result<ExitCode, VmError> {
    let text = call.description()?;
    let description = match text.is_empty() {
        true => Description::default(),
        false => Description::parse(text.as_bytes()).map_err(|_| call.confused())?,
    };
    let status = call.status()?;
    let routes = call.routes(None)?.unwrap_or_default();
    show(&MachineMap::of_running(&status, &description, &routes), svg)
}

/// Prints a map, or draws it into a file.
fn show(map: &MachineMap, svg: Option<&Path>) -> Result<ExitCode, VmError> {
    let Some(path) = svg else {
        say(&text::text(map))?;
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::write(path, drawing::svg(map)).map_err(|error| VmError::Unwritable {
        path: path.display().to_string(),
        reason: error.to_string(),
    })?;
    say(&format!("{}: {}\n", path.display(), map.summary()))?;
    Ok(ExitCode::SUCCESS)
}

impl HostGroup {
    /// The heading, for people.
    fn title(&self) -> String {
        if self.is_site { format!("site {}", self.heading) } else { self.heading.clone() }
    }
}

impl MachineMap {
    /// A map without hosts.
    fn new(name: &str, description: &Description) -> Self {
        let mut map = Self { name: name.to_owned(), ..Self::default() };
        for network in &description.networks {
            let addresses: Vec<String> =
                network.addresses.iter().map(ToString::to_string).collect();
            let site = network.site.as_deref().map(|site| map.group(site, true));
            map.networks.push(MapNetwork {
                name: network.name.clone(),
                addresses: addresses.join(", "),
                site,
                has_gateways: !network.gateways.is_empty(),
            });
        }
        map.switches = description.switches.iter().map(map_switch).collect();
        map
    }

    /// Adds the described hosts of some names. With a state, they take no part.
    fn add_described(
        &mut self,
        description: &Description,
        is_wanted: impl Fn(&str) -> bool,
        state: Option<&str>,
    ) {
        for host in description.hosts.iter().filter(|host| is_wanted(&host.name)) {
            let place = description.place(&host.name, &[]);
            let networks = place.networks.iter().map(|place| usize::from(place.network));
            self.add_host(
                description,
                &host.name,
                Standing {
                    site: &place.site,
                    is_gateway: place.is_gateway,
                    networks: networks.collect(),
                    is_away: state.is_some(),
                    state: state.map(str::to_owned),
                },
            );
        }
    }

    /// The map of a running machine. A broken step of the routes is noted.
    fn of_running(
        status: &MachineStatus,
        description: &Description,
        routes: &[RouteStatus],
    ) -> Self {
        let mut broken: Vec<String> = routes
            .iter()
            .filter_map(|route| route.broken)
            .map(|(from, to)| {
                let (from, to) = (name_of(status, from), name_of(status, to));
                format!(" {from} did not reach {to} a moment ago.")
            })
            .collect();
        broken.sort();
        broken.dedup();
        let mut map = Self::new(&status.name.to_string(), description);
        for host in &status.hosts {
            // The place of a host that has left is that of its description.
            let described = description.place(&host.name, &[]);
            let site = if host.site.is_empty() { &described.site } else { &host.site };
            let mut networks = host.networks.clone();
            if networks.is_empty() {
                networks.extend(described.networks.iter().map(|place| place.network));
            }
            map.add_host(
                description,
                &host.name,
                Standing {
                    site,
                    is_gateway: host.is_gateway || described.is_gateway,
                    networks: networks.into_iter().map(usize::from).collect(),
                    state: state_of(host),
                    is_away: !host.state.is_up(),
                },
            );
        }
        let is_there = |name: &str| status.hosts.iter().any(|host| host.name == name);
        map.add_described(description, |name| !is_there(name), Some("not in the machine"));
        map.note = format!("{}, as they are now.{}", map.summary(), broken.concat());
        map
    }

    fn add_host(&mut self, description: &Description, name: &str, standing: Standing<'_>) {
        let Standing { site, is_gateway, mut networks, state, is_away } = standing;
        networks.retain(|network| *network < self.networks.len());
        let group = match (site, networks.is_empty()) {
            ("", true) if self.networks.is_empty() => self.group(HOSTS, false),
            ("", true) => self.group(NO_NETWORK, false),
            ("", false) if !self.groups.iter().any(|group| group.is_site) => {
                self.group(HOSTS, false)
            }
            ("", false) => self.group(NO_SITE, false),
            (site, _) => self.group(site, true),
        };
        let described = description.hosts.iter().find(|host| host.name == name);
        let interfaces = described.map_or(&[][..], |host| &host.interfaces);
        let cables = interfaces.iter().filter_map(|interface| cable(interface, description));
        self.hosts.push(MapHost {
            name: name.to_owned(),
            group,
            networks,
            cables: cables.collect(),
            is_gateway,
            state,
            is_away,
        });
    }

    /// The number of the group with this heading.
    fn group(&mut self, heading: &str, is_site: bool) -> usize {
        let is_it = |group: &HostGroup| group.heading == heading && group.is_site == is_site;
        self.groups.iter().position(is_it).unwrap_or_else(|| {
            self.groups.push(HostGroup { heading: heading.to_owned(), is_site });
            self.groups.len() - 1
        })
    }

    /// The hosts in a group.
    fn hosts_in(&self, group: usize) -> impl Iterator<Item = &MapHost> {
        self.hosts.iter().filter(move |host| host.group == group)
    }

    /// The machine in a line.
    fn summary(&self) -> String {
        let sites = self.groups.iter().filter(|group| group.is_site).count();
        let gateways = self.hosts.iter().filter(|host| host.is_gateway).count();
        let away = self.hosts.iter().filter(|host| host.is_away).count();
        let parts = [
            (sites, "site"),
            (self.networks.len(), "network"),
            (gateways, "gateway"),
            (self.switches.len(), "switch"),
        ];
        let mut text = counted(self.hosts.len(), "host");
        if away > 0 {
            text += &format!(" ({away} away)");
        }
        for (number, thing) in parts.into_iter().filter(|(number, _)| *number > 0) {
            text += &format!(", {}", counted(number, thing));
        }
        text
    }

    /// The number of switches from one up to its root.
    fn steps_to_root(&self, switch: usize) -> usize {
        let above = |switch: &usize| Some(self.switches[*switch].uplink.as_ref()?.switch);
        core::iter::successors(Some(switch), above).take(self.switches.len()).count()
    }
}

fn map_switch(switch: &Switch) -> MapSwitch {
    let rate = Rate::from_ns_per_kib(switch.ns_per_kib);
    let ports = match switch.ports {
        Some(1) => format!("1 port of {rate}"),
        Some(ports) => format!("{ports} ports of {rate}"),
        None => format!("ports of {rate}"),
    };
    let uplink = switch.uplink.map(|uplink| MapUplink {
        switch: uplink.switch,
        rate: Rate::from_ns_per_kib(uplink.ns_per_kib).to_string(),
    });
    MapSwitch { name: switch.name.clone(), ports, uplink }
}

fn cable(interface: &Interface, description: &Description) -> Option<Cable> {
    let switch = interface.switch?;
    let usual = description.switches.get(switch)?.ns_per_kib;
    let own = interface.ns_per_kib.filter(|own| *own != usual);
    Some(Cable {
        interface: interface.name.clone(),
        switch,
        port: interface.port,
        rate: own.map(|own| Rate::from_ns_per_kib(own).to_string()),
    })
}

/// The state of a host, unless it takes part and takes jobs.
fn state_of(host: &HostStatus) -> Option<String> {
    let since = duration(Duration::from_millis(host.since_ms));
    (host.state != HostState::Up).then(|| format!("{} for {since}", host.state.as_str()))
}

fn counted(number: usize, thing: &str) -> String {
    let ending = match (number, thing.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        _ => "s",
    };
    format!("{number} {thing}{ending}")
}
