//! Tuning: the figures measured for a host, which all processes of a job compute with as part of its
//! [settings](crate::settings).

use std::io;
use std::path::{Path, PathBuf};

use landeck_collectives::cost_parameters::{CostParameters, CostParametersError};
use landeck_collectives::record::Record;
use landeck_collectives::{Calibration, Settings};
use landeck_host::figures;
use landeck_host::probed::{self, Finding};
use landeck_wire::way::OneCopyFrom;

use crate::settings::{one_copy, one_copy_probe};

/// The reason why the figures of a host cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// No environment variable names a directory for the file.
    #[error(
        "neither XDG_CACHE_HOME nor HOME says where the figures of this host are kept; set one"
    )]
    NoPlace,
    /// The file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The content of the file is damaged.
    #[error(
        "{}: {error}. The usual figures are used; `landeck tune` measures anew", .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault in the file.
        error: CostParametersError,
    },
    /// The file belongs to another machine.
    #[error(
        "{}: these are the figures of another machine ({found:?}; this is {own:?}). The usual \
         figures are used; `landeck tune` measures anew", .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The machine that the file belongs to.
        found: String,
        /// This machine.
        own: String,
    },
}

/// Returns these settings with the figures kept for this host. Without kept figures, the default figures apply. If the
/// kept figures cannot be used, the second part of the result says why.
pub fn with_figures(settings: Settings) -> (Settings, Option<TuningError>) {
    let (figures, trouble) = match read() {
        Ok(figures) => (figures, None),
        Err(TuningError::NoPlace) => (None, None),
        Err(trouble) => (None, Some(trouble)),
    };
    (Settings { figures: figures.unwrap_or_else(probed), ..settings }, trouble)
}

/// The usual figures, with the finding of the launcher's probe.
fn probed() -> CostParameters {
    let usual = CostParameters::default();
    match finding() {
        Some(Finding::FromKib(one_copy_from_kib)) => CostParameters { one_copy_from_kib, ..usual },
        _ => usual,
    }
}

/// Returns what the launcher's probe has found on this host since it was booted: from which length
/// on messages are copied once where nothing was measured. `None` if there was no probe.
pub fn finding() -> Option<Finding> {
    probed::read(&probed::place()?, &probed::boot()?)
}

/// Returns the length from which messages on one host are copied once, as these figures say, and its
/// source.
pub fn one_copy(figures: CostParameters) -> OneCopyFrom {
    one_copy::measured(figures)
}

/// Has this host probed, for at most 5 ms, if nothing says from which length on messages are copied
/// once: neither these settings, nor figures of `landeck tune`, nor an earlier probe of this boot. Keeps
/// the finding beside the figures. The calling process forks; it must have one thread.
pub fn probe(asked: &Settings) {
    let (Some(path), Some(boot)) = (probed::place(), probed::boot()) else { return };
    let before = probed::read(&path, &boot);
    let is_known = before.is_some_and(|finding| !finding.is_open());
    if is_known || asked.one_copy_from.is_some() || matches!(read(), Ok(Some(_))) {
        return;
    }
    let finding = match (one_copy_probe::measure(), before) {
        (Finding::Disturbed(_), Some(Finding::Disturbed(times))) => Finding::Disturbed(times + 1),
        (finding, _) => finding,
    };
    // Without a place for it, the next job probes again.
    let _ = probed::write(&path, &boot, finding);
}

/// Returns the figures kept for this host; `None` if it was never measured.
///
/// # Errors
/// [`TuningError`].
pub fn read() -> Result<Option<CostParameters>, TuningError> {
    Ok(read_from(&place()?, figures::machine())?.map(|record| record.figures))
}

/// Returns the figures kept for this host and the calibration they come from; `None` if it was
/// never measured.
///
/// # Errors
/// [`TuningError`].
pub fn read_all() -> Result<Option<(CostParameters, Calibration)>, TuningError> {
    let record = read_from(&place()?, figures::machine())?;
    Ok(record.map(|record| (record.figures, record.details)))
}

/// Writes the figures of this host and their calibration to their file, and returns its path.
///
/// # Errors
/// [`TuningError::NoPlace`], [`TuningError::File`].
pub fn write(figures: CostParameters, details: Calibration) -> Result<PathBuf, TuningError> {
    let path = place()?;
    write_to(&path, &Record { machine: figures::machine(), figures, details })?;
    Ok(path)
}

/// Returns the path of the file with the figures of this host.
///
/// # Errors
/// [`TuningError::NoPlace`].
pub fn place() -> Result<PathBuf, TuningError> {
    figures::place().ok_or(TuningError::NoPlace)
}

fn read_from(path: &Path, own: String) -> Result<Option<Record>, TuningError> {
    let text =
        figures::text_of(path).map_err(|source| TuningError::File { path: path.into(), source })?;
    let Some(text) = text else { return Ok(None) };
    let record = Record::of_machine(&text, &own)
        .map_err(|error| TuningError::Damaged { path: path.into(), error })?;
    match record.machine == own {
        true => Ok(Some(record)),
        false => Err(TuningError::Foreign { path: path.into(), found: record.machine, own }),
    }
}

fn write_to(path: &Path, record: &Record) -> Result<(), TuningError> {
    // The figures of other machines that share the home directory stay. What cannot be read is replaced.
    let before = figures::text_of(path).ok().flatten().unwrap_or_default();
    figures::replace(path, &record.written_into(&before))
        .map_err(|source| TuningError::File { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs};

    fn directory(name: &str) -> PathBuf {
        let path = env::temp_dir().join(format!("landeck-tuning-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn figures_are_kept_for_their_machine_alone() {
        let directory = directory("kept");
        let path = directory.join("landeck/figures");
        assert_eq!(read_from(&path, "own".into()).unwrap(), None);
        let figures = CostParameters { line_ps: 31_000, ..CostParameters::default() };
        let details = Calibration { call_ps: 7, ..Calibration::of(&figures) };
        let record = Record { machine: "own".into(), figures, details };
        write_to(&path, &record).unwrap();
        assert_eq!(read_from(&path, "own".into()).unwrap(), Some(record.clone()));
        let error = read_from(&path, "another".into()).unwrap_err().to_string();
        assert!(error.contains("another machine (\"own\"; this is \"another\")"), "{error}");
        let another = Record { machine: "another".into(), ..record.clone() };
        write_to(&path, &another).unwrap();
        let read = |own: &str| read_from(&path, own.into()).unwrap();
        assert_eq!((read("own"), read("another")), (Some(record), Some(another)), "both are kept");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_damaged_file_is_named() {
        let directory = directory("damaged");
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("figures");
        fs::write(&path, b"\xff\x00 nonsense").unwrap();
        let error = read_from(&path, "own".into()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: line 1 is", path.display())), "{error}");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn figures_that_cannot_be_kept_leave_nothing() {
        let directory = directory("not-kept");
        let path = directory.join("figures");
        fs::create_dir_all(&path).unwrap();
        let figures = CostParameters::default();
        let record = Record { machine: "own".into(), figures, details: Calibration::of(&figures) };
        assert!(write_to(&path, &record).is_err(), "a directory has the name");
        let left = fs::read_dir(&directory).unwrap().count();
        fs::remove_dir_all(directory).unwrap();
        assert_eq!(left, 1);
    }

    #[test]
    fn figures_without_an_end_are_refused() {
        let error = read_from(Path::new("/dev/zero"), "own".into()).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: it has more than 1.0 MiB, the most that is read");
    }
}
