//! The machines of this user that have a daemon on this host.

use crate::address::Address;

/// The variable that names a machine.
pub const VARIABLE: &str = "LANDECK_MACHINE";

/// The reason why no machine is meant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineChoiceError {
    /// No machine of this user has a daemon on this host.
    #[error("no machine of this user is on this host; landeck vm start makes one")]
    None,
    /// There are several.
    #[error("this host is in several machines ({}): name one with --machine or {VARIABLE}", .0.join(", "))]
    Several(Vec<String>),
    /// None has this name.
    #[error("no machine {name} of this user is on this host{}", there_are(.there))]
    Unknown {
        /// The name.
        name: String,
        /// The names of those that there are.
        there: Vec<String>,
    },
}

fn there_are(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(" (there is {})", names.join(", ")),
    }
}

/// The name of the machine that is meant: the one with this name, or the only one on this host.
///
/// # Errors
/// [`MachineChoiceError`].
pub fn choose(name: Option<&str>) -> Result<String, MachineChoiceError> {
    let mut there = Address::machine_names();
    match (name, there.len()) {
        (Some(name), _) if there.iter().any(|machine| machine == name) => Ok(name.to_owned()),
        (Some(name), _) => Err(MachineChoiceError::Unknown { name: name.to_owned(), there }),
        (None, 0) => Err(MachineChoiceError::None),
        (None, 1) => Ok(there.remove(0)),
        (None, _) => Err(MachineChoiceError::Several(there)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_not_there_is_named() {
        let error = choose(Some("none has this name")).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("no machine none has this name of this user is on this host"),
            "{text}"
        );
    }
}
