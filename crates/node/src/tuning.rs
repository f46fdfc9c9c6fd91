//! Where a host's figures are kept, and what the user asks for: what all processes of a job compute
//! with.
//!
//! Whoever makes a job's segment calls [`settings`]: `landeck run`, or the first process where
//! another launcher, or none, has started the job. The others take the words from the segment.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landeck_collectives::cost_parameters::{CostParameters, CostParametersError};
use landeck_collectives::record::Record;
use landeck_collectives::{
    Calibration, Nearness, NearnessError, Overrides, OverridesError, Settings,
};
use landeck_host::file::{make_directory, read_within};
use landeck_host::say::{brief, quoted};

/// No figures take more.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The variable that names ways of collective operations.
pub const VARIABLE: &str = "LANDECK_COLLECTIVES";

/// The variable that makes members compare their calls: see [`World::checking`](crate::World::checking).
pub const CHECKING_VARIABLE: &str = "LANDECK_CHECKING";

/// The variable that says what makes members near: see [`Nearness`].
pub const CLUSTERS_VARIABLE: &str = "LANDECK_CLUSTERS";

/// What the user asks for makes no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VariableError {
    /// Not the name of a way.
    #[error("{VARIABLE}: {}", brief(.0))]
    Way(OverridesError),
    /// Nothing that makes members near.
    #[error("{CLUSTERS_VARIABLE}: {}", brief(.0))]
    Clusters(NearnessError),
    /// Neither yes nor no.
    #[error(
        "{CHECKING_VARIABLE}: it is {}; 1 makes members compare their calls, 0 does not",
        quoted(found)
    )]
    Checking {
        /// What it says.
        found: String,
    },
}

/// Why the figures of a host cannot be used or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// There is no place for the file.
    #[error(
        "neither XDG_CACHE_HOME nor HOME says where the figures of this host are kept; set one"
    )]
    NoPlace,
    /// The file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// The file says something else.
    #[error(
        "{}: {error}. The usual figures are used; `landeck tune` measures anew", .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: CostParametersError,
    },
    /// The file is of another machine.
    #[error(
        "{}: these are the figures of another machine ({found:?}; this is {own:?}). The usual \
         figures are used; `landeck tune` measures anew", .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Which machine it is of.
        found: String,
        /// Which this is.
        own: String,
    },
}

/// What all processes of a job that is made here compute with: the figures kept for this host and
/// the ways that `LANDECK_COLLECTIVES` names, whether `LANDECK_CHECKING` makes members compare
/// their calls, and what `LANDECK_CLUSTERS` makes them near by. The usual figures where none are kept; where what is
/// kept cannot be used, the second part says so.
///
/// # Errors
/// [`VariableError`].
pub fn settings() -> Result<(Settings, Option<TuningError>), VariableError> {
    let asked = env::var_os(VARIABLE).unwrap_or_default();
    let overrides: Overrides = asked.to_string_lossy().parse().map_err(VariableError::Way)?;
    let is_checked = is_checked(&env::var_os(CHECKING_VARIABLE).unwrap_or_default())?;
    let nearness = nearness(&env::var_os(CLUSTERS_VARIABLE).unwrap_or_default())?;
    let (figures, trouble) = match read() {
        Ok(figures) => (figures, None),
        Err(TuningError::NoPlace) => (None, None),
        Err(trouble) => (None, Some(trouble)),
    };
    let figures = figures.unwrap_or_default();
    Ok((Settings { figures, overrides, is_checked, nearness }, trouble))
}

fn nearness(asked: &OsString) -> Result<Nearness, VariableError> {
    match &*asked.to_string_lossy() {
        "" => Ok(Nearness::default()),
        word => word.parse().map_err(VariableError::Clusters),
    }
}

fn is_checked(asked: &OsString) -> Result<bool, VariableError> {
    match &*asked.to_string_lossy() {
        "" | "0" => Ok(false),
        "1" => Ok(true),
        other => Err(VariableError::Checking { found: other.to_owned() }),
    }
}

/// The figures kept for this host; none when it was never measured.
///
/// # Errors
/// [`TuningError`].
pub fn read() -> Result<Option<CostParameters>, TuningError> {
    Ok(read_from(&place()?, machine())?.map(|record| record.figures))
}

/// The same with all details.
///
/// # Errors
/// [`TuningError`].
pub fn read_all() -> Result<Option<(CostParameters, Calibration)>, TuningError> {
    let record = read_from(&place()?, machine())?;
    Ok(record.map(|record| (record.figures, record.details)))
}

/// Keeps figures for this host; returns where.
///
/// # Errors
/// [`TuningError::NoPlace`], [`TuningError::File`].
pub fn write(figures: CostParameters, details: Calibration) -> Result<PathBuf, TuningError> {
    let path = place()?;
    write_to(&path, &Record { machine: machine(), figures, details })?;
    Ok(path)
}

/// The file in which the figures of this host are kept.
///
/// # Errors
/// [`TuningError::NoPlace`].
pub fn place() -> Result<PathBuf, TuningError> {
    place_in(|name| env::var_os(name)).ok_or(TuningError::NoPlace)
}

fn place_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("landeck").join("figures"))
}

fn read_from(path: &Path, own: String) -> Result<Option<Record>, TuningError> {
    let text = match read_within(path, FILE_BYTES_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TuningError::File { path: path.into(), source }),
    };
    let record: Record =
        text.parse().map_err(|error| TuningError::Damaged { path: path.into(), error })?;
    match record.machine == own {
        true => Ok(Some(record)),
        false => Err(TuningError::Foreign { path: path.into(), found: record.machine, own }),
    }
}

/// Writes beside it first: who reads meanwhile finds the old file or the new one.
fn write_to(path: &Path, record: &Record) -> Result<(), TuningError> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let written = make_directory(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(&beside, record.to_string()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        // A part of a file is of no use to anybody.
        let _ = fs::remove_file(&beside);
        TuningError::File { path: path.into(), source }
    })
}

/// This machine in words that differ where figures do: one home directory may serve many hosts.
fn machine() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    machine_of(&processors)
}

fn machine_of(processors: &str) -> String {
    let model = ["model name", "CPU part", "cpu model", "uarch"].into_iter().find_map(|name| {
        let line = processors.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    });
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    let model: String = model.unwrap_or("unknown").chars().filter(|&c| c != '"').collect();
    format!("{} {model}, {count} processors", env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(read_from(&path, "own".into()).unwrap(), Some(record));
        let error = read_from(&path, "another".into()).unwrap_err().to_string();
        assert!(error.contains("another machine (\"own\"; this is \"another\")"), "{error}");
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

    #[test]
    fn checking_is_yes_or_no() {
        assert!(is_checked(&"1".into()).unwrap() && !is_checked(&"".into()).unwrap());
        let error = is_checked(&"maybe".into()).unwrap_err().to_string();
        assert!(error.starts_with("LANDECK_CHECKING: it is \"maybe\""), "{error}");
    }

    #[test]
    fn nearness_is_one_of_three() {
        assert_eq!(nearness(&"".into()).unwrap(), Nearness::Caches);
        assert_eq!(nearness(&"none".into()).unwrap(), Nearness::Alike);
        let error = nearness(&"cores".into()).unwrap_err().to_string();
        assert!(error.starts_with("LANDECK_CLUSTERS: \"cores\" makes no clusters"), "{error}");
    }

    #[test]
    fn the_place_is_in_the_cache() {
        let of = |pairs: &[(&str, &str)]| {
            place_in(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, v)| v.into()))
        };
        let home = ("HOME", "/home/ada");
        assert_eq!(of(&[home]), Some("/home/ada/.cache/landeck/figures".into()));
        assert_eq!(of(&[home, ("XDG_CACHE_HOME", "/c")]), Some("/c/landeck/figures".into()));
        assert_eq!(of(&[("XDG_CACHE_HOME", "c")]), None);
    }

    #[test]
    fn a_machine_is_its_processors() {
        let text = "processor : 0\nmodel name : Good \"9\"\nprocessor : 1\nmodel name : Good \"9\"";
        assert!(machine_of(text).ends_with(" Good 9, 2 processors"), "{}", machine_of(text));
        assert!(machine_of("").ends_with(" unknown, 0 processors"));
    }
}
