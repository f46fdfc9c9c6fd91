//! Programs that go on when the command that has started them ends: the daemons of a machine, and launchers of detached
//! jobs.
//!
//! The process that was started forks the program and waits until that is ready or has failed. Meanwhile it passes on the
//! program's complaints, and the program ends if this process does. A program that is ready has no terminal and no session
//! of a login.

use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal, setsid};

use crate::fork::fork_child;
use crate::process;
use crate::say::{complain, say};

/// The byte around the answer of a program that is ready. It stands in no complaint.
const MARK: u8 = 0;

/// The two sides of a fork.
#[derive(Debug)]
pub enum Side {
    /// The program, without a terminal. Its standard error goes to the process that was started.
    Detached,
    /// The process that was started. Its program is ready, and the exit code is 0; or it has ended with this code.
    Starter(u8),
}

/// Forks the program. In the process that was started, this returns when the program is ready or has ended. Both need
/// one thread.
///
/// # Errors
/// The kernel's error; this process has several threads.
pub fn fork() -> io::Result<Side> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let starter = getpid();
    let mask = process::block_all_signals()?;
    let forked = fork_child();
    process::restore_signals(&mask);
    match forked.map_err(io::Error::other)? {
        None => {
            drop(reader);
            setsid()?;
            rustix::stdio::dup2_stderr(&writer)?;
            set_parent_process_death_signal(Some(Signal::TERM))?;
            match getppid() == Some(starter) {
                true => Ok(Side::Detached),
                false => Err(io::Error::other("the command has ended")),
            }
        }
        Some(pid) => {
            drop(writer);
            let mut answer = Vec::new();
            if !pass_on(&reader, &mut io::stderr(), &mut answer) {
                return Ok(Side::Starter(exit_code(process::wait_for_end(pid)?)));
            }
            // The program is ready all the same.
            if let Err(error) = say(&String::from_utf8_lossy(&answer)) {
                complain(error);
            }
            Ok(Side::Starter(0))
        }
    }
}

/// Says that the program is ready, with an answer for the standard output of the process that was started. Leaves the
/// standard streams: there is no input, and output goes to this file, or nowhere.
///
/// # Errors
/// The kernel's error.
pub fn is_ready(answer: &str, output: Option<BorrowedFd<'_>>) -> io::Result<()> {
    set_parent_process_death_signal(None)?;
    // Nobody reads it if the command was ended.
    let _ = io::stderr().write_all(&[&[MARK], answer.as_bytes(), &[MARK]].concat());
    leave_input_and_output()?;
    if let Some(output) = output {
        rustix::stdio::dup2_stdout(output)?;
    }
    Ok(rustix::stdio::dup2_stderr(io::stdout())?)
}

/// Leaves the standard input and output before the program is ready. The processes that it starts hold neither then.
///
/// # Errors
/// The kernel's error.
pub fn leave_input_and_output() -> io::Result<()> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(rustix::stdio::dup2_stdout(&nothing)?)
}

/// Passes complaints of the program on until it is ready, or has ended. Returns whether it is ready, with its answer.
fn pass_on(reader: &OwnedFd, complaints: &mut impl Write, answer: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    let mut has_answer = false;
    loop {
        let count = match rustix::io::read(reader, &mut bytes[..]) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(_) => return false,
        };
        for (at, part) in bytes[..count].split(|&byte| byte == MARK).enumerate() {
            if at > 0 && std::mem::replace(&mut has_answer, true) {
                return true;
            }
            match has_answer {
                true => answer.extend_from_slice(part),
                // There is no other place for it.
                false => drop(complaints.write_all(part)),
            }
        }
    }
}

/// The exit code that a shell gives for this raw wait status.
const fn exit_code(status: i32) -> u8 {
    match status & 0x7f {
        0 => (status >> 8) as u8,
        signal => 128 + signal as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!([0, 7 << 8, 127 << 8, 15, 9 | 0x80].map(exit_code), [0, 7, 127, 143, 137]);
    }

    #[test]
    fn words_are_passed_on_until_the_program_is_ready_or_has_ended() {
        for (text, wanted) in [
            (&b"\0\0"[..], (true, "", "")),
            (b"a line\n\0an answer\n\0later", (true, "a line\n", "an answer\n")),
            (b"a line\n", (false, "a line\n", "")),
            (b"", (false, "", "")),
        ] {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            rustix::io::write(&writer, text).unwrap();
            drop(writer);
            let (mut complaints, mut answer) = (Vec::new(), Vec::new());
            let is_ready = pass_on(&reader, &mut complaints, &mut answer);
            let [complaints, answers] =
                [complaints, answer].map(|text| String::from_utf8(text).unwrap());
            assert_eq!((is_ready, complaints.as_str(), answers.as_str()), wanted);
        }
    }
}
