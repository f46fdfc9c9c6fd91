//! The platforms that come with the product.

use std::cmp::Reverse;

use super::{Platform, PlatformError};

/// The names of the platforms and their descriptions.
pub const NAMES: [(&str, &str); 7] = [
    ("ethernet1", "1 Gb Ethernet, TCP"),
    ("ethernet10", "10 Gb Ethernet, TCP"),
    ("ethernet100", "100 Gb Ethernet, TCP"),
    ("infiniband", "InfiniBand HDR, 200 Gb/s, in a tree of switches"),
    ("myrinet2000", "Myrinet 2000, the cluster of the paper of 2005"),
    ("sites", "four sites of 10 Gb Ethernet, 5 ms apart"),
    ("host", "this host, with the figures of `landeck tune`"),
];

/// The name of the platform that stands for this host. Its figures are known to the caller, which makes it with
/// [`Platform::of_host`].
pub const HOST: &str = "host";

/// Finds a platform by its name.
///
/// # Errors
///
/// [`PlatformError::Unknown`], and for [`HOST`] too.
pub fn find(name: &str) -> Result<Platform, PlatformError> {
    let text = match name {
        "ethernet1" => include_str!("../../platforms/ethernet1.toml"),
        "ethernet10" => include_str!("../../platforms/ethernet10.toml"),
        "ethernet100" => include_str!("../../platforms/ethernet100.toml"),
        "infiniband" => include_str!("../../platforms/infiniband.toml"),
        "myrinet2000" => include_str!("../../platforms/myrinet2000.toml"),
        "sites" => include_str!("../../platforms/sites.toml"),
        _ => {
            let known = NAMES.map(|(name, _)| name).to_vec();
            return Err(PlatformError::Unknown { name: name.into(), near: near(name), known });
        }
    };
    Platform::parse(name, text)
}

/// A known name with an equal beginning, of about equal length.
fn near(name: &str) -> Option<&'static str> {
    let common = |other: &str| name.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let likeness = |other: &str| (common(other), Reverse(other.len().abs_diff(name.len())));
    let other = NAMES.map(|(other, _)| other).into_iter().max_by_key(|other| likeness(other))?;
    (common(other) >= 3).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_be_read() {
        for (name, _) in NAMES.iter().filter(|(name, _)| *name != HOST) {
            let platform = find(name).unwrap();
            assert!(platform.network.is_some() && !platform.about.is_empty(), "{name}");
        }
    }

    #[test]
    fn an_unknown_platform_is_named() {
        let error = find("myrinet").unwrap_err().to_string();
        assert!(error.contains("\"myrinet\" (did you mean \"myrinet2000\"?)"), "{error}");
        let error = find("etherent10").unwrap_err().to_string();
        assert!(error.contains("(did you mean \"ethernet10\"?)"), "{error}");
        assert!(find("host").is_err());
        assert!(find("x").unwrap_err().to_string().contains("there are ethernet1, ethernet10"));
    }
}
