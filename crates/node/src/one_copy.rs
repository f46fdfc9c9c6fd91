//! Long messages in one copy, as the environment of a process says.

use std::env;
use std::ffi::OsStr;

use landeck_engine::Shared;
use landeck_memory::Segment;
use landeck_memory::process_memory::allow_readers;
use landeck_wire::way::OneCopy;

use crate::error::Result;
use crate::paths::wrong;

/// The environment variable that says from which length on messages are copied once.
pub(crate) const VARIABLE: &str = "LANDECK_ONE_COPY";

/// Sets the length for the messages of a process that joins, and lets its neighbours read its memory if there is one.
///
/// # Errors
/// [`crate::ErrorKind::Path`].
pub(crate) fn begin(shared: &Shared) -> Result<()> {
    let wish = wish(&env::var_os(VARIABLE).unwrap_or_default())?;
    let bytes = from_bytes(wish, &shared.segment);
    allow_readers_of(bytes);
    if bytes != OneCopy::NEVER {
        shared.engine.enter()?.set_one_copy_from(bytes);
    }
    Ok(())
}

/// The length from which messages are copied once.
pub(crate) fn from_bytes(wish: OneCopy, segment: &Segment) -> u64 {
    let figures = landeck_collectives::Settings::from_words(&segment.plan().settings).figures;
    wish.from_bytes(figures.one_copy_from_bytes())
}

/// Lets others read the memory of this process, if there is a length from which messages are copied once.
pub(crate) fn allow_readers_of(bytes: u64) {
    if bytes != OneCopy::NEVER {
        allow_readers();
    }
}

fn wish(asked: &OsStr) -> Result<OneCopy> {
    let asked = asked.to_string_lossy();
    wish_of(&asked).ok_or_else(|| wrong(VARIABLE, &asked, OneCopy::WORDS))
}

/// The wish that a value of the variable says; none if it says nothing.
pub(crate) fn wish_of(asked: &str) -> Option<OneCopy> {
    if asked.is_empty() { Some(OneCopy::default()) } else { OneCopy::from_words(asked) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_copy_is_a_length_or_a_word() {
        assert_eq!(wish(OsStr::new("")).unwrap(), OneCopy::Auto);
        assert_eq!(wish(OsStr::new("64K")).unwrap(), OneCopy::From(65_536));
        let error = wish(OsStr::new("always")).unwrap_err();
        let text = "LANDECK_ONE_COPY: it is \"always\"; auto, never or a number of bytes (4K at least) is wanted";
        assert_eq!(error.kind.to_string(), text);
    }
}
