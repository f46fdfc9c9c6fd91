//! Long messages in one copy, as the settings of a job say.

use landeck_collectives::Settings;
use landeck_collectives::cost_parameters::CostParameters;
use landeck_engine::Shared;
use landeck_host::environment::common_ancestor;
use landeck_memory::Segment;
use landeck_memory::process_memory::{allow_readers, name_readers};
use landeck_wire::way::{OneCopy, OneCopyFrom, OneCopySource};

use crate::error::Result;

/// Sets the length for the messages of a process that joins, and lets its neighbours read its memory if there is one.
///
/// # Errors
/// [`crate::ErrorKind::Thread`].
pub(crate) fn begin(shared: &Shared) -> Result<()> {
    let settings = Settings::from_words(&shared.segment.plan().settings);
    let wish = settings.one_copy_from.map_or(OneCopy::Auto, OneCopy::From);
    let OneCopyFrom { bytes, source } = wish.settled(measured(settings.figures));
    shared.segment.set_one_copy_source(shared.slot, source as u8);
    name_readers(common_ancestor());
    allow_readers_of(bytes);
    if bytes != OneCopy::NEVER {
        shared.engine.enter()?.endpoint.set_one_copy_from(bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

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
