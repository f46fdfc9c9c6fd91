//! Where a host keeps the figures that `landeck tune` has measured, and for which machine they hold.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::file::{make_directory, read_within};

/// The largest size of a file of figures, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The file with figures of this user; `None` if neither `XDG_CACHE_HOME` nor `HOME` says where it is.
pub fn place() -> Option<PathBuf> {
    place_in(|name| env::var_os(name))
}

fn place_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("landeck").join("figures"))
}

/// The text of a file of figures; `None` if there is no file.
///
/// # Errors
/// The kernel's error, or that the file is too long.
pub fn text_of(path: &Path) -> io::Result<Option<String>> {
    match read_within(path, FILE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a file of figures and makes its directory where there is none. A reader meanwhile finds the old text or the
/// new one.
///
/// # Errors
/// The kernel's error.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    make_directory(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(&beside, text))
        .and_then(|()| fs::rename(&beside, path))
        .inspect_err(|_| {
            // A part of a file is of no use.
            let _ = fs::remove_file(&beside);
        })
}

/// Describes this machine by what its figures depend on: one home directory may serve many hosts.
pub fn machine() -> String {
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

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = text_of(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "it has more than 1.0 MiB, the most that is read");
        assert_eq!(text_of(Path::new("/there/is/none")).unwrap(), None);
    }
}
