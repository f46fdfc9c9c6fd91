//! Where a host keeps the finding of the launcher's probe: from which length on one copy of a message is faster.
//!
//! A finding holds for one machine, one release of the kernel and one boot. The file lies beside the figures of `landeck
//! tune`, one line for each host that shares it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::figures;

/// The most lines of the file; the one that was written first goes.
const LINES_MAX: usize = 64;
/// Disturbed probes after which a boot has no further ones.
const DISTURBED_MAX: u32 = 3;

/// The finding of the probes of a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// One copy is faster from so many KiB on.
    FromKib(u64),
    /// One copy is faster for no length.
    Never,
    /// So many probes were disturbed, and none was not.
    Disturbed(u32),
}

impl Finding {
    /// Whether a further probe is of use.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Disturbed(..DISTURBED_MAX))
    }

    fn to_words(self) -> String {
        match self {
            Self::FromKib(kib) => format!("from {kib}"),
            Self::Never => "never".to_owned(),
            Self::Disturbed(times) => format!("disturbed {times}"),
        }
    }

    fn from_words(words: &str) -> Option<Self> {
        match words.split_once(' ') {
            None if words == "never" => Some(Self::Never),
            Some(("from", kib)) => kib.parse().ok().filter(|&kib| kib > 0).map(Self::FromKib),
            Some(("disturbed", times)) => times.parse().ok().map(Self::Disturbed),
            _ => None,
        }
    }
}

/// The file with the findings of this user; `None` if nothing says where it is.
pub fn place() -> Option<PathBuf> {
    figures::place().map(|figures| figures.with_file_name("one-copy"))
}

/// The boot for which a finding holds: machine, release of the kernel, and the identity of the boot. `None` if the kernel
/// does not say that.
pub fn boot() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let kernel = rustix::system::uname();
    let kernel = kernel.release().to_string_lossy();
    Some(format!("{}; {kernel}; {}", figures::machine(), boot.trim()))
}

/// The finding in a file for a boot; `None` if there is none. Lines that mean nothing are passed over.
pub fn read(path: &Path, boot: &str) -> Option<Finding> {
    let text = figures::text_of(path).ok()??;
    let line = text.lines().rev().find_map(|line| line.strip_prefix(boot)?.strip_prefix(" = "));
    Finding::from_words(line?)
}

/// Writes the finding for a boot into a file, instead of an earlier one.
///
/// # Errors
/// The kernel's error.
pub fn write(path: &Path, boot: &str, finding: Finding) -> io::Result<()> {
    // A file that cannot be read is replaced.
    let before = figures::text_of(path).ok().flatten().unwrap_or_default();
    let is_other = |line: &&str| line.strip_prefix(boot).is_none_or(|rest| !rest.starts_with(" ="));
    let others: Vec<&str> = before.lines().filter(is_other).collect();
    let kept = &others[others.len().saturating_sub(LINES_MAX - 1)..];
    let lines = kept.iter().map(|line| format!("{line}\n"));
    let text: String = lines.chain([format!("{boot} = {}\n", finding.to_words())]).collect();
    figures::replace(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_boot_has_its_finding() {
        let directory = std::env::temp_dir().join(format!("landeck-probed-{}", std::process::id()));
        let path = directory.join("landeck/one-copy");
        assert_eq!(read(&path, "a; 6.1; x"), None);
        for (boot, finding) in [
            ("a; 6.1; x", Finding::Disturbed(1)),
            ("a; 6.1; y", Finding::Never),
            ("a; 6.1; x", Finding::FromKib(1_024)),
        ] {
            write(&path, boot, finding).unwrap();
            assert_eq!(read(&path, boot), Some(finding));
        }
        assert_eq!(read(&path, "a; 6.1; y"), Some(Finding::Never), "others stay");
        assert_eq!(read(&path, "a; 6.1; z"), None);
        for number in 0..200 {
            write(&path, &format!("b; 6.1; {number}"), Finding::Never).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), LINES_MAX);
        fs::write(&path, b"a; 6.1; x = from 0\n\xff\na; 6.1; y = fast\n").unwrap();
        assert_eq!((read(&path, "a; 6.1; x"), read(&path, "a; 6.1; y")), (None, None));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_boot_gives_up_after_some_disturbed_probes() {
        let is_open = |times| Finding::Disturbed(times).is_open();
        assert_eq!([0, 1, 2, 3, 4].map(is_open), [true, true, true, false, false]);
        assert!(!Finding::Never.is_open() && !Finding::FromKib(64).is_open());
        assert!(boot().is_some_and(|boot| boot.contains("processors; ")));
    }
}
