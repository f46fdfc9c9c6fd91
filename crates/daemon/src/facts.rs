//! The facts about a host that must agree in a machine, or that others need to know.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

use landeck_launch::plan::usable_cores;
use landeck_wire::preamble::PROTOCOL_VERSION;
use serde::{Deserialize, Serialize};

use crate::figures::boot_identity;

/// The release of this program.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The order of the bytes of a number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ByteOrder {
    /// The lowest byte comes first.
    Little,
    /// The highest byte comes first.
    Big,
}

/// The format of C's `long double`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LongDouble {
    /// The extended format of Intel's x87, 80 bits.
    X87,
    /// IEEE's binary128.
    Quad,
    /// The format of `double`.
    Double,
}

/// The facts of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// The byte order.
    pub byte_order: ByteOrder,
    /// The sizes of a pointer, of C's `long` and of `long double`, in bytes.
    pub sizes: [u8; 3],
    /// The format of `long double`.
    pub long_double: LongDouble,
    /// Whether the processor has instructions for AES.
    pub has_aes: bool,
    /// The version of the protocol between daemons.
    pub protocol: u16,
    /// The release of the program.
    pub release: String,
    /// The number of cores that this user's processes may use.
    pub cores: u16,
    /// The model of the processor.
    pub processor: String,
    /// The path of the program.
    pub path: String,
    /// The network stack of the host: one boot of a kernel, and a network namespace there. Daemons that have the same one are
    /// on one host, whatever its names and addresses. Zero if the kernel does not tell.
    pub network: u128,
}

/// The reason why a host does not fit the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// Its release is another one.
    #[error(
        "host {host}: {path} is release {theirs}, and this host has release {ours}: install one release on all \
         hosts"
    )]
    Release {
        /// The host's name.
        host: String,
        /// The path of its program.
        path: String,
        /// Its release.
        theirs: String,
        /// The release here.
        ours: String,
    },
    /// It speaks another version of the protocol.
    #[error(
        "host {host}: {path} speaks version {theirs} of the protocol between daemons, and this host version \
         {ours}: install one release on all hosts"
    )]
    Protocol {
        /// The host's name.
        host: String,
        /// The path of its program.
        path: String,
        /// Its version.
        theirs: u16,
        /// The version here.
        ours: u16,
    },
    /// Its numbers have another form in memory.
    #[error(
        "host {host} ({processor}) has another {what} than this host, and jobs over both are not possible yet: \
         leave it out"
    )]
    Form {
        /// The host's name.
        host: String,
        /// The model of its processor.
        processor: String,
        /// The form that differs.
        what: &'static str,
    },
}

/// The reason why a text does not contain facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the facts of a host have an unknown form")]
pub struct FactsFormError;

impl HostFacts {
    /// The facts of this host.
    pub fn here() -> Self {
        let long_double = match () {
            () if cfg!(any(target_arch = "x86_64", target_arch = "x86")) => LongDouble::X87,
            () if cfg!(target_arch = "arm") => LongDouble::Double,
            () => LongDouble::Quad,
        };
        let pointer = size_of::<usize>() as u8;
        let long_double_bytes = match long_double {
            LongDouble::X87 if pointer == 4 => 12,
            LongDouble::Double => 8,
            LongDouble::X87 | LongDouble::Quad => 16,
        };
        let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let path = std::env::current_exe().unwrap_or_default();
        Self {
            byte_order: match cfg!(target_endian = "little") {
                true => ByteOrder::Little,
                false => ByteOrder::Big,
            },
            sizes: [pointer, size_of::<std::ffi::c_long>() as u8, long_double_bytes],
            long_double,
            has_aes: has_aes(&information),
            protocol: PROTOCOL_VERSION,
            release: RELEASE.to_owned(),
            cores: u16::try_from(usable_cores()).unwrap_or(u16::MAX),
            processor: processor_model(&information),
            path: path.display().to_string(),
            network: network_stack().unwrap_or(0),
        }
    }

    /// Whether a daemon with these facts is on the same host.
    pub fn is_same_host(&self, other: &Self) -> bool {
        self.network != 0 && self.network == other.network
    }

    /// Whether a host with other facts may belong to a machine of this host.
    ///
    /// # Errors
    /// [`FactsError`]: it may not.
    pub fn admits(&self, host: &str, theirs: &Self) -> Result<(), FactsError> {
        let (host, path) = (host.to_owned(), theirs.path.clone());
        if theirs.release != self.release {
            let (theirs, ours) = (theirs.release.clone(), self.release.clone());
            return Err(FactsError::Release { host, path, theirs, ours });
        }
        if theirs.protocol != self.protocol {
            let (theirs, ours) = (theirs.protocol, self.protocol);
            return Err(FactsError::Protocol { host, path, theirs, ours });
        }
        let differs = [
            (theirs.byte_order != self.byte_order, "byte order"),
            (theirs.sizes != self.sizes, "size of a pointer, long or long double"),
            (theirs.long_double != self.long_double, "format of long double"),
        ];
        match differs.into_iter().find(|(differs, _)| *differs) {
            Some((_, what)) => {
                Err(FactsError::Form { host, processor: theirs.processor.clone(), what })
            }
            None => Ok(()),
        }
    }
}

/// The facts as one word of the line of a daemon that was started.
impl fmt::Display for HostFacts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.byte_order {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        };
        let long_double = match self.long_double {
            LongDouble::X87 => "x87",
            LongDouble::Quad => "quad",
            LongDouble::Double => "double",
        };
        let [pointer, long, other] = self.sizes;
        let aes = if self.has_aes { "aes" } else { "no-aes" };
        let [release, processor, path] =
            [&self.release, &self.processor, &self.path].map(|text| escaped(text));
        write!(
            formatter,
            "{order};{pointer}.{long}.{other};{long_double};{aes};{};{release};{};{processor};{path};{:x}",
            self.protocol, self.cores, self.network
        )
    }
}

impl FromStr for HostFacts {
    type Err = FactsFormError;

    fn from_str(text: &str) -> Result<Self, FactsFormError> {
        let parts: Vec<&str> = text.split(';').collect();
        let &[order, sizes, long_double, aes, protocol, release, cores, processor, path, network] =
            &parts[..]
        else {
            return Err(FactsFormError);
        };
        let sizes: Option<Vec<u8>> = sizes.split('.').map(|size| size.parse().ok()).collect();
        let sizes = sizes.and_then(|sizes| <[u8; 3]>::try_from(sizes).ok());
        let text = |text: &str| unescaped(text).ok_or(FactsFormError);
        Ok(Self {
            byte_order: match order {
                "little" => ByteOrder::Little,
                "big" => ByteOrder::Big,
                _ => return Err(FactsFormError),
            },
            sizes: sizes.ok_or(FactsFormError)?,
            long_double: match long_double {
                "x87" => LongDouble::X87,
                "quad" => LongDouble::Quad,
                "double" => LongDouble::Double,
                _ => return Err(FactsFormError),
            },
            has_aes: match aes {
                "aes" => true,
                "no-aes" => false,
                _ => return Err(FactsFormError),
            },
            protocol: protocol.parse().map_err(|_| FactsFormError)?,
            release: text(release)?,
            cores: cores.parse().map_err(|_| FactsFormError)?,
            processor: text(processor)?,
            path: text(path)?,
            network: u128::from_str_radix(network, 16).map_err(|_| FactsFormError)?,
        })
    }
}

/// The boot of the kernel and the network namespace, as one number.
fn network_stack() -> Option<u128> {
    let namespace = std::fs::metadata("/proc/self/ns/net").ok()?;
    let boot = Some(boot_identity()).filter(|boot| *boot != 0)?;
    Some(boot.wrapping_add(u128::from(namespace.ino())))
}

/// The text without blanks, line ends and the separators of lines.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@+()[]".contains(&byte);
    let each = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    each.collect()
}

/// The text that [`escaped`] was given.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        rest = others;
        if first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The value of the first line of `/proc/cpuinfo` with this name.
fn value<'a>(information: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = information.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

fn processor_model(information: &str) -> String {
    let names = ["model name", "Model", "cpu model", "CPU part"];
    let model = names.iter().find_map(|name| value(information, name));
    model.unwrap_or("an unknown processor").to_owned()
}

fn has_aes(information: &str) -> bool {
    let flags = value(information, "flags").or_else(|| value(information, "Features"));
    flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "aes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_survive_their_form() {
        let here = HostFacts::here();
        assert_eq!(here.to_string().parse(), Ok(here.clone()));
        assert!(!here.to_string().contains([' ', '\n']));
        let odd = HostFacts { processor: "a; b% ü\n".into(), has_aes: !here.has_aes, ..here };
        assert_eq!(odd.to_string().parse(), Ok(odd));
        for wrong in ["", "little", "little;8.8;x87;aes;1;a;b;c", "a;8.8.16;x87;aes;1;a;b;c"] {
            assert_eq!(wrong.parse::<HostFacts>(), Err(FactsFormError));
        }
        assert_eq!(unescaped("%4"), None);
        assert_eq!(unescaped("%zz"), None);
    }

    #[test]
    fn another_release_is_refused_with_host_path_and_both_releases() {
        let here = HostFacts { release: "1.2.0".into(), ..HostFacts::here() };
        assert_eq!(here.admits("b", &here), Ok(()));
        let other =
            HostFacts { release: "1.3.0".into(), path: "/opt/landeckd".into(), ..here.clone() };
        let error = here.admits("b", &other).unwrap_err().to_string();
        for part in ["host b", "/opt/landeckd", "1.3.0", "1.2.0"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_difference_between_hosts_is_named() {
        let here = HostFacts::here();
        let refused = |theirs: HostFacts| here.admits("b", &theirs).unwrap_err().to_string();
        let order = match here.byte_order {
            ByteOrder::Little => ByteOrder::Big,
            ByteOrder::Big => ByteOrder::Little,
        };
        assert!(refused(HostFacts { byte_order: order, ..here.clone() }).contains("byte order"));
        let format = LongDouble::Double;
        let format = HostFacts { long_double: format, ..here.clone() };
        assert!(refused(format).contains("format of long double"));
        assert!(refused(HostFacts { protocol: 9, ..here.clone() }).contains("version 9"));
        let faster =
            HostFacts { processor: "faster".into(), has_aes: !here.has_aes, ..here.clone() };
        assert_eq!(here.admits("b", &faster), Ok(()));
    }

    #[test]
    fn a_host_is_told_by_its_network_stack() {
        let here = HostFacts::here();
        assert!(here.is_same_host(&HostFacts { path: "/opt/landeckd".into(), ..here.clone() }));
        assert!(!here.is_same_host(&HostFacts { network: here.network + 1, ..here.clone() }));
        let unknown = HostFacts { network: 0, ..here };
        assert!(!unknown.is_same_host(&unknown));
    }

    #[test]
    fn the_processor_is_found() {
        let information =
            "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu aes sse\n";
        assert_eq!(processor_model(information), "Some CPU @ 2 GHz");
        assert!(has_aes(information) && !has_aes("flags : aesni"));
        assert_eq!(processor_model(""), "an unknown processor");
    }
}
