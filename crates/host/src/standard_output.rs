//! The C standard output of a process of a job: its lines go out one by one.
//!
//! C buffers whole blocks of what goes into a pipe or a file, so lines would come late, and those of a
//! killed process not at all. Where standard output is what the launcher gave the process, it is made
//! line-buffered instead, before `main` begins: the C standard allows a change of the buffer only
//! before the first use of a stream, and a program that chooses a buffer itself does so later and keeps
//! its choice. What the program sends elsewhere (`./program | sort`) is left alone.
//!
//! Rust's standard output is line-buffered by itself.

use std::ffi::c_int;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Stat, fstat};

/// The variable in which the launcher says which file it gave a process as its standard output.
pub(crate) const VARIABLE: &str = "LANDECK_STDOUT";
/// Variables of other launchers, which do not say that. A pipe is taken for theirs.
const OF_OTHERS: [&str; 4] = ["PMI_FD", "PMI_PORT", "PMIX_RANK", "PMIX_NAMESPACE"];

unsafe extern "C" {
    #[link_name = "stdout"]
    static C_STDOUT: *mut libc::FILE;
    fn __flbf(stream: *mut libc::FILE) -> c_int;
    #[cfg(target_env = "gnu")]
    fn __fbufsize(stream: *mut libc::FILE) -> libc::size_t;
}

/// The loader calls this before `main`, or when it loads this library into a program that runs.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    let variable = |name: &str| std::env::var(name).ok();
    // SAFETY: descriptor 1 is borrowed for a call that answers EBADF where nothing is open under it.
    let own = unsafe { BorrowedFd::borrow_raw(libc::STDOUT_FILENO) };
    if fstat(own).is_ok_and(|stat| is_the_launchers(&stat, variable)) {
        buffer_by_lines();
    }
}

/// How a file is named to the process that writes into it; `None` if it cannot be looked at.
pub(crate) fn name_of(file: impl AsFd) -> Option<String> {
    fstat(file).ok().map(|stat| name(&stat))
}

fn name(stat: &Stat) -> String {
    format!("{}:{}", stat.st_dev, stat.st_ino)
}

/// Whether a launcher gave this process its standard output, by the environment.
fn is_the_launchers(stat: &Stat, variable: impl Fn(&str) -> Option<String>) -> bool {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_pipe = matches!(kind, FileType::Fifo | FileType::Socket);
    variable(VARIABLE).is_some_and(|named| named == name(stat))
        || is_pipe && OF_OTHERS.iter().any(|name| variable(name).is_some())
}

/// Lets each line of C's standard output go out at its end, unless the stream was used before.
fn buffer_by_lines() {
    // SAFETY: C's standard output is a stream from before the first constructor to the end of the
    // process; these functions take its lock.
    unsafe {
        if __flbf(C_STDOUT) == 0 && is_untouched(C_STDOUT) {
            libc::setvbuf(C_STDOUT, std::ptr::null_mut(), libc::_IOLBF, 0);
        }
    }
}

/// Whether the stream has no buffer yet: glibc makes one for the first output, or when it is asked to.
///
/// # Safety
/// It is a stream of C.
#[cfg(target_env = "gnu")]
unsafe fn is_untouched(stream: *mut libc::FILE) -> bool {
    // SAFETY: as the caller says.
    unsafe { __fbufsize(stream) == 0 }
}

/// Before `main` nobody has used it; musl does not tell, and allows the change at any time.
///
/// # Safety
/// None.
#[cfg(not(target_env = "gnu"))]
unsafe fn is_untouched(_stream: *mut libc::FILE) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn is_the_launchers_with(file: impl AsFd, variables: &[(&str, &str)]) -> bool {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
        is_the_launchers(&fstat(file).unwrap(), variable)
    }

    #[test]
    fn the_launchers_pipe_is_known_by_its_name() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (other, _end) = std::io::pipe().unwrap();
        let named = name_of(&writer).unwrap();
        assert!(is_the_launchers_with(&reader, &[(VARIABLE, &named)]), "both ends are one file");
        assert!(!is_the_launchers_with(&other, &[(VARIABLE, &named)]));
        assert!(!is_the_launchers_with(&writer, &[]));
    }

    #[test]
    fn a_pipe_of_another_launcher_is_its_own() {
        let (pipe, _end) = std::io::pipe().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        for name in OF_OTHERS {
            assert!(is_the_launchers_with(&pipe, &[(name, "1")]), "{name}");
            assert!(!is_the_launchers_with(&file, &[(name, "1")]), "{name}");
        }
    }
}
