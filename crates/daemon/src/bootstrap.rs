//! The two lines by which a daemon is started on another host: it says what it is, and learns what it is for.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use landeck_launch::hosts_options::PortRange;
use landeck_launch::machine::MachineName;
use landeck_trust::KeyHash;
use landeck_wire::word::HostEntry;
use landeck_wire::{ControlMessage, MachineId};
use serde::{Deserialize, Serialize};

use crate::facts::{HostFacts, RELEASE, escaped, unescaped};

/// The first words of both lines.
const BEGINS: &str = "landeckd 1 ";
/// The longest line.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;

/// The options that all daemons of a machine have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonOptions {
    /// T: the time after which a host that does not answer is lost, in milliseconds.
    pub host_timeout_ms: u64,
    /// Whether frames of lanes are sent in clear.
    pub is_plain: bool,
}

impl Default for DaemonOptions {
    fn default() -> Self {
        Self { host_timeout_ms: 3_000, is_plain: false }
    }
}

impl DaemonOptions {
    /// T.
    pub const fn host_timeout(self) -> Duration {
        Duration::from_millis(self.host_timeout_ms)
    }
}

/// The machine of a daemon, and the options that it was started with: it comes back with them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The machine.
    pub(crate) machine: MachineName,
    /// The ports that the daemon may use.
    pub(crate) ports: Option<PortRange>,
    /// The networks that it prefers.
    pub(crate) networks: Vec<IpNet>,
}

/// The line that a daemon writes when it was started:
/// `landeckd 1 KEYHASH RELEASE PORT ADDRESS,ADDRESS,... FACTS NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The hash of its public key.
    pub key: KeyHash,
    /// The port that it listens on.
    pub port: u16,
    /// The addresses of its host.
    pub addresses: Vec<IpAddr>,
    /// The facts of its host, with its release.
    pub facts: HostFacts,
    /// The name of its host, as that knows it.
    pub name: String,
}

/// Everything that a host learns when it is admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    /// The machine.
    pub machine: MachineId,
    /// The options of the machine.
    pub options: DaemonOptions,
    /// The entry of the host.
    pub own: HostEntry,
    /// The entry of the arbiter.
    pub arbiter: HostEntry,
    /// The gateways of the machine: the way to the arbiter may lead over some of them.
    pub gateways: Vec<HostEntry>,
}

impl ControlMessage for Enrolment {
    const NAME: &'static str = "an enrolment";
    const BYTES_MAX: usize = LINE_BYTES_MAX / 2;
}

/// The line that it reads then. Where several daemons read the same input, each takes the line with its own key:
/// `landeckd 1 KEYHASH ENROLMENT`, the enrolment in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The hash of the public key of the daemon that it is for.
    pub key: KeyHash,
    /// The place of its host.
    pub enrolment: Enrolment,
}

/// The reason why a line is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It does not begin as such a line does.
    #[error(
        "{0:?} is no line of landeckd: the program on that host is another one, or its shell writes something"
    )]
    Begin(String),
    /// The program is another release, whose lines have another form.
    #[error(
        "landeckd on that host is release {theirs}, and release {RELEASE} is wanted: install one release on all hosts"
    )]
    Release {
        /// The other release.
        theirs: String,
    },
    /// A part has an unknown form.
    #[error("a line of landeckd has no valid {0}")]
    Part(&'static str),
}

impl Announcement {
    /// The addresses with the port.
    pub fn socket_addresses(&self) -> Vec<SocketAddr> {
        self.addresses.iter().map(|address| SocketAddr::new(*address, self.port)).collect()
    }
}

impl fmt::Display for Announcement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, port, addresses, facts, name } = self;
        let (release, name) = (escaped(&facts.release), escaped(name));
        write!(formatter, "{BEGINS}{key} {release} {port} {} {facts} {name}", listed(addresses))
    }
}

impl FromStr for Announcement {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        let parts = parts_of(line)?;
        // The release stands where every version of the line has it.
        let release =
            parts.get(1).copied().and_then(unescaped).ok_or(LineError::Part("release"))?;
        let &[key, _, port, addresses, facts, name] = &parts[..] else {
            return Err(LineError::Release { theirs: release });
        };
        let facts: HostFacts = match facts.parse() {
            Ok(facts) => facts,
            Err(_) if release != RELEASE => return Err(LineError::Release { theirs: release }),
            Err(_) => return Err(LineError::Part("facts")),
        };
        Ok(Self {
            key: key.parse().map_err(|_| LineError::Part("key"))?,
            port: port.parse().map_err(|_| LineError::Part("port"))?,
            addresses: list(addresses).ok_or(LineError::Part("addresses"))?,
            facts,
            name: unescaped(name).ok_or(LineError::Part("name"))?,
        })
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{BEGINS}{} ", self.key)?;
        self.enrolment.encode().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Assignment {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        let parts = parts_of(line)?;
        let &[key, enrolment] = &parts[..] else {
            return Err(LineError::Part("number of parts"));
        };
        let bytes = bytes_of(enrolment).ok_or(LineError::Part("enrolment"))?;
        Ok(Self {
            key: key.parse().map_err(|_| LineError::Part("key"))?,
            enrolment: Enrolment::decode(&bytes).map_err(|_| LineError::Part("enrolment"))?,
        })
    }
}

/// The bytes in hexadecimal digits.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(|pair| byte(pair).filter(|_| pair.len() == 2)).collect()
}

fn parts_of(line: &str) -> Result<Vec<&str>, LineError> {
    let begin = || LineError::Begin(line.chars().take(80).collect());
    let rest = line.trim_end_matches(['\n', '\r']).strip_prefix(BEGINS).ok_or_else(begin)?;
    Ok(rest.split(' ').collect())
}

/// The values with commas between them; a dash for none.
fn listed<T: fmt::Display>(values: &[T]) -> String {
    match values {
        [] => "-".to_owned(),
        _ => values.iter().map(T::to_string).collect::<Vec<_>>().join(","),
    }
}

fn list<T: FromStr>(text: &str) -> Option<Vec<T>> {
    match text {
        "-" => Some(Vec::new()),
        _ => text.split(',').map(|value| value.parse().ok()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::word::HostPlace;
    use landeck_wire::{HostIncarnation, HostNumber};

    fn announcement() -> Announcement {
        Announcement {
            key: KeyHash([7; 32]),
            port: 40_001,
            addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::2".parse().unwrap()],
            facts: HostFacts::here(),
            name: "node 7".into(),
        }
    }

    fn assignment() -> Assignment {
        let entry = |host: u16, name: &str| HostEntry {
            host: HostNumber(host),
            incarnation: HostIncarnation(u64::MAX),
            name: name.into(),
            key: [9; 32],
            addresses: vec!["10.0.0.9:4000".parse().unwrap(), "[fd00::9]:4000".parse().unwrap()],
            cores: 2,
            place: HostPlace { site: "a".into(), ..HostPlace::default() },
        };
        let enrolment = Enrolment {
            machine: MachineId(0xabc),
            options: DaemonOptions { host_timeout_ms: 500, is_plain: true },
            own: entry(3, "a strange name"),
            arbiter: entry(0, "b"),
            gateways: vec![entry(2, "c")],
        };
        Assignment { key: KeyHash([7; 32]), enrolment }
    }

    #[test]
    fn both_lines_survive_their_form() {
        assert_eq!(format!("{}\n", announcement()).parse(), Ok(announcement()));
        let none = Announcement { addresses: Vec::new(), ..announcement() };
        assert_eq!(none.to_string().parse(), Ok(none));
        assert_eq!(assignment().to_string().parse(), Ok(assignment()));
    }

    #[test]
    fn another_release_is_named_whatever_its_line_looks_like() {
        let line = format!("landeckd 1 {} 9.9.9 1 2 3 4 5", KeyHash([0; 32]));
        let release = LineError::Release { theirs: "9.9.9".into() };
        assert_eq!(line.parse::<Announcement>(), Err(release.clone()));
        let line = format!("landeckd 1 {} 9.9.9 1 - unknown b", KeyHash([0; 32]));
        assert_eq!(line.parse::<Announcement>(), Err(release));
    }

    #[test]
    fn other_lines_are_refused_by_their_part() {
        assert!(matches!("Welcome to b".parse::<Announcement>(), Err(LineError::Begin(_))));
        for broken in [assignment().to_string() + "0", assignment().to_string() + "00"] {
            assert_eq!(broken.parse::<Assignment>(), Err(LineError::Part("enrolment")));
        }
        let broken = announcement().to_string().replace("40001", "70001");
        assert_eq!(broken.parse::<Announcement>(), Err(LineError::Part("port")));
    }
}
