//! The description of a virtual machine, read from a TOML file.
//!
//! ```toml
//! # Physical level: switches, the rate of each port, and the switch above.
//! [switch.edge]
//! ports = 24
//! rate = "1 Gb/s"
//! uplink = "core"
//! uplink-rate = "10 Gb/s"
//! [switch.core]
//! rate = "10 Gb/s"
//!
//! # Network level: addresses, sites, and the hosts that pass connections on to other networks.
//! [network.a]
//! addresses = "10.77.1.0/24"
//! site = "a"
//! [network.middle]
//! addresses = ["10.77.0.0/25", "10.77.0.128/25"]
//! gateway = ["n2"]
//!
//! # Interface level: the network of each interface, and the port that it is plugged into.
//! [host.n1]
//! [host.n2]
//! eth0 = "a"
//! eth1 = { network = "middle", switch = "core", port = 3, rate = "1 Gb/s", address = "10.77.0.2" }
//! ```
//!
//! Only a name is required anywhere. An interface says its network, or an address that lies in one. A host without
//! interfaces is placed by its addresses when it joins, and so is a host that is not described at all.
//!
//! `read` makes drafts of the tables, `resolve` turns names into numbers, `check` compares the parts with each other, and
//! `reach` asks whether each host reaches each other one.

mod check;
mod draft;
mod duplicates;
mod place;
mod reach;
mod read;
mod resolve;
#[cfg(test)]
mod tests;
mod words;

use core::net::IpAddr;

use ipnet::IpNet;

/// The most bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 256 * 1024;

/// The most errors that one reading reports.
pub const DESCRIPTION_ERRORS_MAX: usize = 20;

/// The time for 1 KiB, in nanoseconds, on a link whose rate is not described: 1 Gb/s.
pub const USUAL_NS_PER_KIB: u32 = 8_192;

/// A useful description in one line.
const SMALLEST: &str = "network.a = { addresses = \"10.77.1.0/24\" }";

/// A virtual machine at the three levels. All numbers in it are indices into its lists, which are in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Physical level.
    pub switches: Vec<Switch>,
    /// Network level.
    pub networks: Vec<DescribedNetwork>,
    /// Interface level.
    pub hosts: Vec<DescribedHost>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// The number of its ports, if it is described. Ports are counted from 1.
    pub ports: Option<u32>,
    /// The time that 1 KiB takes through a port, in nanoseconds.
    pub ns_per_kib: u32,
    /// Its link to the switch above.
    pub uplink: Option<Uplink>,
}

/// The link of a switch to the switch above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// The switch above.
    pub switch: usize,
    /// The time that 1 KiB takes on the link, in nanoseconds.
    pub ns_per_kib: u32,
}

/// A network: its hosts reach each other directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedNetwork {
    /// Its name.
    pub name: String,
    /// The addresses in it. Those of two networks do not overlap.
    pub addresses: Vec<IpNet>,
    /// Its site.
    pub site: Option<String>,
    /// The hosts that pass connections on between this network and their other ones.
    pub gateways: Vec<usize>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedHost {
    /// Its name.
    pub name: String,
    /// Its interfaces. If there are none, its networks are found by its addresses when it joins.
    pub interfaces: Vec<Interface>,
}

/// A network interface of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The network that it is in.
    pub network: usize,
    /// Its address. If it is not described, it is found when the host joins.
    pub address: Option<IpAddr>,
    /// The switch that its cable leads to.
    pub switch: Option<usize>,
    /// The port of that switch, counted from 1.
    pub port: Option<u32>,
    /// The time that 1 KiB takes on its cable, in nanoseconds. If it is not described, that of the switch's ports counts.
    pub ns_per_kib: Option<u32>,
}

/// An error in a line of a description.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct DescriptionError {
    /// The line, counted from 1.
    pub line: usize,
    /// The error in that line, and its remedy.
    pub what: String,
}

impl Description {
    /// Reads the content of a file.
    ///
    /// # Errors
    ///
    /// The errors in the order of their lines, at most [`DESCRIPTION_ERRORS_MAX`]. Errors between several lines are looked for
    /// only if each line is right by itself.
    pub fn parse(content: &[u8]) -> Result<Self, Vec<DescriptionError>> {
        let mut errors = Errors::default();
        match Self::parse_into(content, &mut errors) {
            Some(description) if errors.is_empty() => Ok(description),
            _ => Err(errors.sorted()),
        }
    }

    fn parse_into(content: &[u8], errors: &mut Errors) -> Option<Self> {
        let text = text_of(content, errors)?;
        let draft = read::read(text, errors)?;
        let (description, lines) = resolve::resolve(&draft, errors)?;
        check::check(&description, &lines, errors);
        if errors.is_empty() {
            reach::check(&description, &lines, errors);
        }
        Some(description)
    }
}

/// The text of a file.
fn text_of<'a>(content: &'a [u8], errors: &mut Errors) -> Option<&'a str> {
    let line_at = |at: usize| 1 + content[..at].iter().filter(|&&byte| byte == b'\n').count();
    if content.len() > DESCRIPTION_BYTES_MAX {
        let what = "the file is longer than 256 KiB: leave hosts out that the addresses of their networks place";
        errors.add(line_at(DESCRIPTION_BYTES_MAX), what);
        return None;
    }
    match core::str::from_utf8(content) {
        Ok(text) => Some(text),
        Err(error) => {
            let what =
                "this line is no UTF-8 text: save the file as UTF-8, or take foreign letters out";
            errors.add(line_at(error.valid_up_to()), what);
            None
        }
    }
}

/// The errors that were found.
#[derive(Debug, Default)]
struct Errors {
    list: Vec<DescriptionError>,
}

impl Errors {
    fn add(&mut self, line: usize, what: impl Into<String>) {
        self.list.push(DescriptionError { line, what: what.into() });
    }

    fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The first errors of the file, each once.
    fn sorted(mut self) -> Vec<DescriptionError> {
        self.list.sort();
        self.list.dedup();
        self.list.truncate(DESCRIPTION_ERRORS_MAX);
        self.list
    }
}
