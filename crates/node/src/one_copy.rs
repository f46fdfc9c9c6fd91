//! Long messages in one copy, as the environment of a process says.

use std::env;
use std::ffi::OsStr;

use landeck_collectives::Settings;
use landeck_collectives::cost_parameters::CostParameters;
use landeck_engine::Shared;
use landeck_host::environment::common_ancestor;
use landeck_memory::Segment;
use landeck_memory::process_memory::{allow_readers, name_readers};
use landeck_wire::way::{OneCopy, OneCopyFrom, OneCopySource};

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
    let OneCopyFrom { bytes, source } = from(wish, &shared.segment);
    shared.segment.set_one_copy_source(shared.slot, source as u8);
    name_readers(common_ancestor());
    allow_readers_of(bytes);
    if bytes != OneCopy::NEVER {
        shared.engine.enter()?.set_one_copy_from(bytes);
    }
    Ok(())
}

/// The length from which messages are copied once, and its source.
pub(crate) fn from(wish: OneCopy, segment: &Segment) -> OneCopyFrom {
    wish.settled(measured(Settings::from_words(&segment.plan().settings).figures))
}

/// The length that the figures of a job say. Figures that `landeck tune` has not measured are the usual ones, but for the
/// finding of the probe.
pub(crate) fn measured(figures: CostParameters) -> OneCopyFrom {
    let bytes = figures.one_copy_from_bytes();
    let usual = CostParameters::default();
    let is_tuned =
        CostParameters { one_copy_from_kib: usual.one_copy_from_kib, ..figures } != usual;
    let source = match bytes {
        _ if is_tuned => OneCopySource::Tuned,
        OneCopy::NEVER => OneCopySource::Nothing,
        _ => OneCopySource::Probe,
    };
    OneCopyFrom { bytes, source }
}

/// Lets the processes below the launcher read the memory of this one, if there is a length from which messages are copied once.
pub(crate) fn allow_readers_of(bytes: u64) {
    if bytes != OneCopy::NEVER {
        allow_readers();
    }
}

/// Whether the measured length decides for a process with this value of the variable.
pub(crate) fn is_left_open(asked: &OsStr) -> bool {
    matches!(wish(asked), Ok(OneCopy::Auto))
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

    #[test]
    fn tuned_figures_win_over_the_probe() {
        let usual = CostParameters::default();
        let probed = CostParameters { one_copy_from_kib: 64, ..usual };
        let tuned = CostParameters { line_ps: usual.line_ps + 1, ..usual };
        for (figures, bytes, source) in [
            (usual, OneCopy::NEVER, OneCopySource::Nothing),
            (probed, 65_536, OneCopySource::Probe),
            (tuned, OneCopy::NEVER, OneCopySource::Tuned),
            (CostParameters { one_copy_from_kib: 64, ..tuned }, 65_536, OneCopySource::Tuned),
        ] {
            assert_eq!(measured(figures), OneCopyFrom { bytes, source });
        }
    }
}
