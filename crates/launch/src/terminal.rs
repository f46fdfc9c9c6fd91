//! Gives a process a terminal if a person will see its output.
//!
//! Programs behave differently on a terminal: they write line by line, draw progress bars, use colour. A process that
//! wrote into a pipe would not, so if the launcher's stream is a terminal the process gets one too. The terminal
//! changes nothing on the way, and has the size of the real one.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

/// Opens a terminal of the same size as `like`; returns the end to read and the end for the process.
///
/// # Errors
/// The kernel's error; without `/dev/ptmx` the caller uses a pipe.
pub(crate) fn open(like: BorrowedFd<'_>) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    let mut settings = tcgetattr(&theirs)?;
    settings.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&theirs, OptionalActions::Now, &settings)?;
    resize(&ours, like);
    Ok((ours, theirs))
}

/// Gives a terminal the size of another. If that has no size, nothing changes.
pub(crate) fn resize(terminal: &OwnedFd, like: BorrowedFd<'_>) {
    if let Ok(size) = tcgetwinsize(like) {
        let _ = tcsetwinsize(terminal, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn text_written_to_a_terminal_comes_out_unchanged() {
        let Ok((real, _other_end)) = open(io::stdin().as_fd()) else { return };
        let (ours, theirs) = open(real.as_fd()).unwrap();
        assert!(rustix::termios::isatty(&theirs));
        let (mut ours, mut theirs) = (File::from(ours), File::from(theirs));
        theirs.write_all(b"one\ntwo\r\xff").unwrap();
        let mut seen = [0; 64];
        assert_eq!(ours.read(&mut seen).unwrap(), 9);
        assert_eq!(&seen[..9], b"one\ntwo\r\xff");
        drop(theirs);
        assert!(ours.read(&mut seen).is_err(), "the end is an error here");
    }

    #[test]
    fn it_has_the_size_of_the_real_one() {
        let Ok((real, _other_end)) = open(io::stdin().as_fd()) else { return };
        let mut size = tcgetwinsize(&real).unwrap();
        (size.ws_row, size.ws_col) = (33, 77);
        tcsetwinsize(&real, size).unwrap();
        let (ours, theirs) = open(real.as_fd()).unwrap();
        assert_eq!(tcgetwinsize(&theirs).unwrap().ws_col, 77);
        size.ws_col = 99;
        tcsetwinsize(&real, size).unwrap();
        resize(&ours, real.as_fd());
        assert_eq!(tcgetwinsize(&theirs).unwrap().ws_col, 99);
    }
}
