//! Checking of a file that describes a machine.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;

use landeck_host::say::{complain, say};
use landeck_hostfile::host_list::is_this_host;
use landeck_machine::description::{
    DESCRIPTION_BYTES_MAX, DescribedHost, Description, DescriptionError, Switch,
};
use landeck_machine::quantity::Rate;

use super::VmError;

/// A file that describes a machine.
pub(super) struct DescribedMachine {
    /// The name of the file without its ending.
    pub(super) name: String,
    /// Its content.
    pub(super) text: String,
    /// Its meaning.
    pub(super) description: Description,
}

impl DescribedMachine {
    /// The names of its hosts but this one, gateways first.
    pub(super) fn hosts_but(&self, own: &str) -> Vec<String> {
        let is_gateway = |number: usize| {
            self.description.networks.iter().any(|network| network.gateways.contains(&number))
        };
        let hosts = self.description.hosts.iter().enumerate();
        let others = hosts.filter(|(_, host)| !is_this_host(&host.name, own));
        let (first, rest): (Vec<_>, Vec<_>) = others.partition(|(number, _)| is_gateway(*number));
        first.into_iter().chain(rest).map(|(_, host)| host.name.clone()).collect()
    }
}

/// Prints a summary of a description, or its errors.
pub(super) fn run(path: &Path) -> Result<ExitCode, VmError> {
    match read(path)? {
        Ok(DescribedMachine { name, description, .. }) => {
            say(&summary(&name, &description))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(errors) => {
            errors.iter().for_each(complain);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Reads a description. The inner error has the errors of its lines.
///
/// # Errors
/// [`VmError::Unreadable`].
pub(super) fn read(path: &Path) -> Result<Result<DescribedMachine, Vec<String>>, VmError> {
    let content = content_of(path).map_err(|error| VmError::Unreadable {
        path: path.display().to_string(),
        reason: match error.kind() {
            ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        },
    })?;
    let line =
        |error: DescriptionError| format!("{}:{}: {}", path.display(), error.line, error.what);
    let described = Description::parse(&content).map(|description| DescribedMachine {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        text: String::from_utf8_lossy(&content).into_owned(),
        description,
    });
    Ok(described.map_err(|errors| errors.into_iter().map(line).collect()))
}

/// The content of a file, and one byte more than a description may have.
fn content_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(DESCRIPTION_BYTES_MAX as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// The description in some lines.
fn summary(name: &str, description: &Description) -> String {
    let hosts = count(description.hosts.len(), "host");
    let gateways = gateways(description);
    let mut text = format!("{name}: {hosts}, {}, {gateways}\n", sites(description));
    if description.hosts.is_empty() {
        text += "Hosts that join are placed by their addresses.\n";
    }
    let open: Vec<&str> = names(description.hosts.iter().filter(|host| host.interfaces.is_empty()));
    match open.as_slice() {
        [] => {}
        [host] => text += &format!("{host}: its interfaces are found when it joins\n"),
        hosts => {
            text += &format!("{}: their interfaces are found when they join\n", hosts.join(" "));
        }
    }
    for (number, switch) in description.switches.iter().enumerate() {
        let _ = writeln!(text, "{}", switch_line(description, number, switch));
    }
    text
}

/// The sites, each with its hosts.
fn sites(description: &Description) -> String {
    let site_of = |host: &&DescribedHost| description.place(&host.name, &[]).site;
    let mut sites: Vec<&str> = Vec::new();
    for site in description.networks.iter().filter_map(|network| network.site.as_deref()) {
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    if sites.is_empty() {
        return "no sites".to_owned();
    }
    let hosts_of =
        |site: &str| names(description.hosts.iter().filter(|host| site_of(host) == site));
    let mut parts: Vec<String> = sites
        .iter()
        .map(|site| match hosts_of(site).as_slice() {
            [] => format!("{site}: no host yet"),
            hosts => format!("{site}: {}", hosts.join(" ")),
        })
        .collect();
    let elsewhere = description.hosts.iter().filter(|host| !host.interfaces.is_empty());
    let elsewhere = names(elsewhere.filter(|host| site_of(host).is_empty()));
    if !elsewhere.is_empty() {
        parts.push(format!("without a site: {}", elsewhere.join(" ")));
    }
    format!("{} ({})", count(sites.len(), "site"), parts.join("; "))
}

fn gateways(description: &Description) -> String {
    let is_gateway = |(number, _): &(usize, &DescribedHost)| {
        description.networks.iter().any(|network| network.gateways.contains(number))
    };
    let gateways = description.hosts.iter().enumerate().filter(is_gateway);
    match names(gateways.map(|(_, host)| host)).as_slice() {
        [] => "no gateways".to_owned(),
        [one] => format!("gateway {one}"),
        several => format!("gateways {}", several.join(" ")),
    }
}

/// The hosts behind a switch, and its rate upwards.
fn switch_line(description: &Description, number: usize, switch: &Switch) -> String {
    let rate = Rate::from_ns_per_kib;
    let is_behind = |host: &&DescribedHost| {
        let mut first = host.interfaces.iter().filter_map(|interface| interface.switch);
        first.any(|switch| description.switches_from(switch).any(|switch| switch == number))
    };
    let hosts = names(description.hosts.iter().filter(is_behind));
    let (name, all) = (&switch.name, hosts.join(" "));
    let Some(uplink) = switch.uplink else {
        let all = if hosts.is_empty() { "no hosts" } else { &all };
        return format!("switch {name}: {all}; ports of {}, no uplink", rate(switch.ns_per_kib));
    };
    let above = &description.switches[uplink.switch].name;
    let verb = match hosts.len() {
        0 => "no described host uses",
        1 => " has",
        _ => " share",
    };
    format!("switch {name}: {all}{verb} the uplink to {above}, {}", rate(uplink.ns_per_kib))
}

fn names<'a>(hosts: impl Iterator<Item = &'a DescribedHost>) -> Vec<&'a str> {
    hosts.map(|host| host.name.as_str()).collect()
}

fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
