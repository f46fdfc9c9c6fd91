//! Names of objects and of published processes: short texts that people can read.

use serde::{Deserialize, Serialize};

/// The largest length of a name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The reason why bytes cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    #[error("a name cannot be empty: choose one of 1 to {NAME_BYTES_MAX} bytes")]
    Empty,
    /// The name is too long.
    #[error(
        "the name \"{}\" has {} bytes, at most {NAME_BYTES_MAX} are possible: choose a shorter one", .0.escape_debug(), .0.len()
    )]
    TooLong(String),
    /// The name is not UTF-8.
    #[error("the name \"{0}\" is no UTF-8: names are texts")]
    NotUtf8(String),
    /// The name contains a control character.
    #[error("the name \"{}\" has a control character in it: choose one that can be read", .0.escape_debug())]
    Control(String),
}

/// A name of an object, or one under which a process is published.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(String);

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl Name {
    /// Creates the name with these bytes.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let bytes = name.as_ref();
        let text = || String::from_utf8_lossy(bytes).into_owned();
        match std::str::from_utf8(bytes) {
            _ if bytes.is_empty() => Err(NameError::Empty),
            _ if bytes.len() > NAME_BYTES_MAX => Err(NameError::TooLong(text())),
            Err(_) => Err(NameError::NotUtf8(text())),
            Ok(name) if name.contains(char::is_control) => Err(NameError::Control(text())),
            Ok(name) => Ok(Self(name.to_owned())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bad_name_has_its_own_error() {
        assert_eq!(Name::new("").unwrap_err(), NameError::Empty);
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        assert!(matches!(Name::new(&long), Err(NameError::TooLong(_))));
        assert!(matches!(Name::new([b'a', 0xff]), Err(NameError::NotUtf8(_))));
        assert!(matches!(Name::new("a\nb"), Err(NameError::Control(_))));
        assert_eq!(Name::new("Größe 1").unwrap().as_str(), "Größe 1");
    }
}
