//! The paths of messages to other hosts, as the environment of a process says.

use std::env;
use std::ffi::OsStr;

use landeck_channel::incast::Incast;
use landeck_wire::way::PathWish;
use rustix::process::{Resource, getrlimit};

use crate::error::{ErrorKind, Result};

/// The environment variable that says over which path messages go to other hosts.
const PATH_VARIABLE: &str = "LANDECK_PATH";
/// The environment variable with the most lanes of a process.
const LANES_VARIABLE: &str = "LANDECK_LANES";
/// The environment variable that says how many senders of other hosts answer one receiver.
const INCAST_VARIABLE: &str = "LANDECK_INCAST";
/// The most lanes of a process if nothing says otherwise.
const LANES_MAX: u64 = 1024;

/// The paths of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paths {
    pub(crate) wish: PathWish,
    pub(crate) lanes_max: u32,
    pub(crate) incast: Incast,
}

impl Paths {
    /// Reads the environment, and the limit of open files.
    ///
    /// # Errors
    /// [`ErrorKind::Path`].
    pub(crate) fn from_environment() -> Result<Self> {
        let value = |name| env::var_os(name).unwrap_or_default();
        let descriptors = getrlimit(Resource::Nofile).current;
        Ok(Self {
            wish: wish(&value(PATH_VARIABLE))?,
            lanes_max: lanes_max(&value(LANES_VARIABLE), descriptors)?,
            incast: incast(&value(INCAST_VARIABLE))?,
        })
    }
}

fn wish(asked: &OsStr) -> Result<PathWish> {
    let asked = asked.to_string_lossy();
    if asked.is_empty() {
        return Ok(PathWish::default());
    }
    PathWish::from_name(&asked)
        .ok_or_else(|| wrong(PATH_VARIABLE, &asked, "auto, lane or relay is wanted"))
}

fn incast(asked: &OsStr) -> Result<Incast> {
    let asked = asked.to_string_lossy();
    if asked.is_empty() {
        return Ok(Incast::default());
    }
    Incast::from_words(&asked).ok_or_else(|| wrong(INCAST_VARIABLE, &asked, Incast::WORDS))
}

/// Half of the open files, so that the program has the other half.
fn lanes_max(asked: &OsStr, descriptors: Option<u64>) -> Result<u32> {
    let asked = asked.to_string_lossy();
    let usual = descriptors.map_or(LANES_MAX, |most| (most / 2).clamp(1, LANES_MAX));
    if asked.is_empty() {
        return Ok(usual as u32);
    }
    let number = asked.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| wrong(LANES_VARIABLE, &asked, "a number from 1 on is wanted"))
}

pub(crate) fn wrong(
    variable: &'static str,
    found: &str,
    wanted: &'static str,
) -> crate::error::Error {
    ErrorKind::Path { variable, found: found.to_owned(), wanted }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_open_files_may_be_lanes() {
        let usual = |descriptors| lanes_max(OsStr::new(""), descriptors).unwrap();
        assert_eq!([Some(256), Some(1), Some(1 << 20), None].map(usual), [128, 1, 1_024, 1_024]);
        assert_eq!(lanes_max(OsStr::new("2"), Some(256)).unwrap(), 2);
        for word in ["0", "many", "-1"] {
            let error = lanes_max(OsStr::new(word), None).unwrap_err();
            let text = format!("LANDECK_LANES: it is {word:?}; a number from 1 on is wanted");
            assert_eq!(error.kind.to_string(), text);
        }
    }

    #[test]
    fn ways_of_many_senders_have_names() {
        assert_eq!(incast(OsStr::new("")).unwrap(), Incast::default());
        assert_eq!(incast(OsStr::new("fixed:4")).unwrap(), Incast::Fixed(4));
        let error = incast(OsStr::new("fixed")).unwrap_err();
        let text = "LANDECK_INCAST: it is \"fixed\"; none, fixed:K, calibrated, credit, \
                    credit:BYTES (32K at least) or tokens is wanted";
        assert_eq!(error.kind.to_string(), text);
    }

    #[test]
    fn paths_have_names() {
        assert_eq!(wish(OsStr::new("")).unwrap(), PathWish::Auto);
        assert_eq!(wish(OsStr::new("relay")).unwrap(), PathWish::Relay);
        let error = wish(OsStr::new("tcp")).unwrap_err();
        let text = "LANDECK_PATH: it is \"tcp\"; auto, lane or relay is wanted";
        assert_eq!(error.kind.to_string(), text);
    }
}
