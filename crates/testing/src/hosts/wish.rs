//! The wish for a cluster, and the reasons why it cannot be made.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

/// The greatest number of hosts: one byte of an address numbers them.
const HOSTS_MAX: usize = 250;
/// The greatest number of further cables of a host.
const CABLES_MAX: usize = 4;
/// The least that IPv6 wants; IPv4 works with less, but nobody tests that.
const MTU_MIN: u32 = 1_280;
const MTU_MAX: u32 = 65_535;

/// A description of the hosts that are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// The number of hosts, 1 to 250.
    pub hosts: usize,
    /// The number of sites. Each has a network of its own, and a router joins them unless they are apart.
    pub sites: usize,
    /// Further cables of hosts, which are `eth1`, `eth2` and so on of their host in this order. With any of them, the
    /// sites are apart.
    pub cables: Vec<Cable>,
    /// Whether no router joins the sites, so that they meet only in hosts with further cables. Such a host reaches its
    /// networks, and passes nothing on from one to the other.
    pub apart: bool,
    /// An sshd on each host, and a key with which `ssh n2` asks nothing. It needs root.
    pub ssh: bool,
    /// A Slurm cluster of all hosts. It needs root.
    pub slurm: bool,
    /// Programs that landeck-rsh starts stay in the maker's session. The kernel's scheduler divides the processors among
    /// sessions first, and a yield gives the processor to none of another session. Hosts that are measured must not
    /// differ in that from processes of one computer.
    pub one_session: bool,
    /// The rate of each cable in both directions, as tc writes it: `100mbit`.
    pub rate: Option<String>,
    /// The bytes that wait for a host at most, in the port that its cable ends in; else those of 50 ms. It needs a rate.
    pub port_bytes: Option<u32>,
    /// The greatest size of a packet in bytes.
    pub mtu: Option<u32>,
    /// The kinds of addresses that the hosts have.
    pub families: Families,
    /// The percentage of packets that each host loses as it receives.
    pub drop_percent: f64,
    /// Whether a test makes routers that translate addresses.
    pub routers: bool,
    /// Files and folders that hosts see wherever they lie. The checkout, the build folder, the working directory and the
    /// programs of the search path need not be named.
    pub visible: Vec<PathBuf>,
}

/// A further cable of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cable {
    /// The host, from 0.
    pub host: usize,
    /// The network that the cable leads to: 0 is the middle, which belongs to no site; 1 is the network of the first
    /// site. Host 1 has the address 10.77.2.2 in network 2.
    pub network: usize,
}

/// The kinds of addresses of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Families {
    /// IPv4 alone.
    #[default]
    V4,
    /// IPv4 and IPv6.
    Both,
    /// IPv6 alone.
    V6,
}

impl Wish {
    /// A wish for so many hosts at one site, and nothing else.
    #[must_use]
    pub fn hosts(hosts: usize) -> Wish {
        Wish {
            hosts,
            sites: 1,
            cables: Vec::new(),
            apart: false,
            ssh: false,
            slurm: false,
            one_session: false,
            rate: None,
            port_bytes: None,
            mtu: None,
            families: Families::V4,
            drop_percent: 0.0,
            routers: false,
            visible: Vec::new(),
        }
    }

    /// The site of a host, from 0.
    pub(super) fn site(&self, host: usize) -> usize {
        host * self.sites / self.hosts
    }

    /// Whether no router joins the sites.
    pub(super) fn is_apart(&self) -> bool {
        self.apart || !self.cables.is_empty()
    }

    /// The further cables of a host, `eth1` first.
    pub(super) fn further_cables(&self, host: usize) -> impl Iterator<Item = &Cable> {
        self.cables.iter().filter(move |cable| cable.host == host)
    }

    /// Whether the numbers make sense.
    pub(super) fn check(&self) -> Result<(), WhyNot> {
        let wrong = |text: String| Err(WhyNot::Wish(text));
        if !(1..=HOSTS_MAX).contains(&self.hosts) {
            return wrong(format!("{} hosts: 1 to {HOSTS_MAX} are possible.", self.hosts));
        }
        if !(1..=self.hosts).contains(&self.sites) {
            let (sites, hosts) = (self.sites, self.hosts);
            return wrong(format!(
                "{sites} sites of {hosts} hosts: each site has a host at least."
            ));
        }
        for cable in &self.cables {
            self.check_cable(cable)?;
        }
        if self.port_bytes.is_some() && self.rate.is_none() {
            return wrong(
                "a port that holds few bytes needs a rate at which it empties.".to_owned(),
            );
        }
        if !(0.0..100.0).contains(&self.drop_percent) {
            return wrong(format!(
                "{} percent of packets lost: 0 to 99 are possible.",
                self.drop_percent
            ));
        }
        if let Some(mtu) = self.mtu.filter(|mtu| !(MTU_MIN..=MTU_MAX).contains(mtu)) {
            return wrong(format!("an MTU of {mtu} bytes: {MTU_MIN} to {MTU_MAX} are possible."));
        }
        Ok(())
    }

    /// Whether a further cable can be laid beside the others.
    fn check_cable(&self, cable: &Cable) -> Result<(), WhyNot> {
        let Wish { hosts, sites, .. } = *self;
        let Cable { host, network } = *cable;
        let wrong = |text: String| Err(WhyNot::Wish(text));
        if host >= hosts {
            return wrong(format!("a cable of n{}: the hosts are n1 to n{hosts}.", host + 1));
        }
        let name = format!("n{}", host + 1);
        if network > sites {
            return wrong(format!(
                "a cable of {name} to network {network}: 0, the middle, to {sites} are possible."
            ));
        }
        if network == self.site(host) + 1 {
            return wrong(format!(
                "a cable of {name} to network {network}: {name} is at that site, so its first cable leads there."
            ));
        }
        if self.cables.iter().filter(|other| *other == cable).count() > 1 {
            return wrong(format!("two cables of {name} to network {network}: one is possible."));
        }
        let count = self.further_cables(host).count();
        if count > CABLES_MAX {
            return wrong(format!(
                "{count} further cables of {name}: at most {CABLES_MAX} are possible."
            ));
        }
        Ok(())
    }
}

/// The reason why there are no hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyNot {
    /// The wish makes no sense.
    Wish(String),
    /// A program is not installed.
    Missing {
        /// The program.
        program: &'static str,
        /// Debian's package of it.
        package: &'static str,
    },
    /// The kernel, or the rights of this user, do not allow it.
    Refused(String),
    /// It was begun and went wrong.
    Failed(String),
}

impl WhyNot {
    /// Whether the computer is the reason, so that a test is skipped instead of failed.
    #[must_use]
    pub fn is_of_this_computer(&self) -> bool {
        matches!(self, WhyNot::Missing { .. } | WhyNot::Refused(_))
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::Wish(text) => write!(f, "{text}"),
            WhyNot::Missing { program, package } => write!(
                f,
                "there is no program \"{program}\" here. Install {package} (apt-get install {package})."
            ),
            WhyNot::Refused(text) => write!(f, "hosts cannot be made here: {text}"),
            WhyNot::Failed(text) => write!(f, "the hosts did not start: {text}"),
        }
    }
}

impl Error for WhyNot {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_that_makes_no_sense_is_refused() {
        let refused = |wish: Wish| wish.check().map_err(|why| why.to_string());
        assert_eq!(refused(Wish::hosts(8)), Ok(()));
        assert_eq!(refused(Wish::hosts(0)), Err("0 hosts: 1 to 250 are possible.".into()));
        let sites = refused(Wish { sites: 3, ..Wish::hosts(2) });
        assert!(sites.is_err_and(|text| text.contains("3 sites of 2 hosts")));
        assert!(refused(Wish { port_bytes: Some(65_536), ..Wish::hosts(2) }).is_err());
        assert!(refused(Wish { drop_percent: 100.0, ..Wish::hosts(2) }).is_err());
        assert!(refused(Wish { mtu: Some(100), ..Wish::hosts(2) }).is_err());
    }

    #[test]
    fn a_cable_that_cannot_be_laid_is_refused() {
        let refused = |cables: &[(usize, usize)]| {
            let cables = cables.iter().map(|&(host, network)| Cable { host, network }).collect();
            let wish = Wish { sites: 6, cables, ..Wish::hosts(6) };
            wish.check().map_err(|why| why.to_string())
        };
        assert_eq!(refused(&[(0, 0), (0, 2), (0, 3), (0, 6), (5, 0), (5, 1)]), Ok(()));
        for (cables, words) in [
            (&[(6, 0)][..], "n7: the hosts are n1 to n6"),
            (&[(0, 7)], "network 7: 0, the middle, to 6 are possible"),
            (&[(1, 2)], "n2 to network 2: n2 is at that site"),
            (&[(1, 0), (2, 0), (1, 0)], "two cables of n2 to network 0"),
            (&[(0, 0), (0, 2), (0, 3), (0, 4), (0, 5)], "5 further cables of n1"),
        ] {
            let text = refused(cables).unwrap_err();
            assert!(text.contains(words), "{cables:?}: {text}");
        }
    }
}
