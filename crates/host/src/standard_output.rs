//! Makes the C standard output of a job's process line-buffered.
//!
//! C buffers whole blocks of output into a pipe or a file, so lines would come late, and those of a killed process
//! would be lost. If standard output is the file that the launcher gave the process, it is made line-buffered before
//! `main` begins: the C standard allows a change of the buffer only before the first use of a stream. A program that
//! chooses a buffer itself does so later and keeps its choice. Output that the program sends elsewhere (`./program |
//! sort`) is left alone.
//!
//! Rust's standard output is line-buffered by itself.

use std::ffi::c_int;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Stat, fstat};

/// The variable that names the file which the launcher gave a process as its standard output.
pub(crate) const VARIABLE: &str = "LANDECK_STDOUT";
/// Variables of other launchers, which do not name that file. Under them, any pipe is taken for it.
const OF_OTHERS: [&str; 4] = ["PMI_FD", "PMI_PORT", "PMIX_RANK", "PMIX_NAMESPACE"];

unsafe extern "C" {
    #[link_name = "stdout"]
    static C_STDOUT: *mut libc::FILE;
    fn __flbf(stream: *mut libc::FILE) -> c_int;
    #[cfg(target_env = "gnu")]
    fn __fbufsize(stream: *mut libc::FILE) -> libc::size_t;
}

/// The loader calls this before `main`, or when it loads this library into a running program.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    let variable = |name: &str| std::env::var(name).ok();
    // SAFETY: descriptor 1 is borrowed for a call that answers EBADF if nothing is open under it.
    let own = unsafe { BorrowedFd::borrow_raw(libc::STDOUT_FILENO) };
    if fstat(own).is_ok_and(|stat| is_the_launchers(&stat, variable)) {
        buffer_by_lines();
    }
}

/// The name of a file for the process that writes into it; `None` if it cannot be examined.
pub fn name_of(file: impl AsFd) -> Option<String> {
    fstat(file).ok().map(|stat| name(&stat))
}

fn name(stat: &Stat) -> String {
    format!("{}:{}", stat.st_dev, stat.st_ino)
}

/// Whether a launcher gave this process its standard output, according to the environment.
fn is_the_launchers(stat: &Stat, variable: impl Fn(&str) -> Option<String>) -> bool {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_pipe = matches!(kind, FileType::Fifo | FileType::Socket);
    variable(VARIABLE).is_some_and(|named| named == name(stat))
        || is_pipe && OF_OTHERS.iter().any(|name| variable(name).is_some())
}

/// Makes C's standard output line-buffered, unless the stream was used before.
fn buffer_by_lines() {
    // SAFETY: C's standard output is a stream from before the first constructor to the end of the
    // process; these functions take its lock.
    unsafe {
        if __flbf(C_STDOUT) == 0 && is_untouched(C_STDOUT) {
            libc::setvbuf(C_STDOUT, std::ptr::null_mut(), libc::_IOLBF, 0);
        }
    }
}

/// Whether the stream has no buffer yet: glibc creates it for the first output, or when it is asked to.
///
/// # Safety
/// The pointer leads to a stream of C.
#[cfg(target_env = "gnu")]
unsafe fn is_untouched(stream: *mut libc::FILE) -> bool {
    // SAFETY: the caller guarantees a stream of C.
    unsafe { __fbufsize(stream) == 0 }
}

/// Whether the stream is unused. Before `main` it is; musl does not tell, and allows the change at any time.
///
/// # Safety
/// There is no requirement.
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
