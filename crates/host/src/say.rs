//! Prints messages to the user: answers on standard output, complaints on standard error.
//!
//! A reader that has closed the pipe has seen enough, which is no error. A full disk is an error: the answer is lost,
//! and the user must learn that.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

/// The longest complaint, whatever it repeats.
const COMPLAINT_BYTES_MAX: usize = 16 * 1024;
/// The longest line of a complaint.
const LINE_BYTES_MAX: usize = 1024;
/// The longest part of a user's value that a complaint repeats.
const VALUE_BYTES_MAX: usize = 128;

/// The reason why an answer is incomplete.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write to standard output: {0}. The answer is incomplete: make room, or send it \
     elsewhere"
)]
pub struct SayError(io::Error);

/// Writes an answer to standard output.
///
/// # Errors
/// [`SayError`]: the answer is lost. A reader that has gone is no error.
pub fn say(text: &str) -> Result<(), SayError> {
    let mut out = io::stdout().lock();
    heard(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Interprets an attempt to write to standard output.
///
/// # Errors
/// The error of [`say`].
pub fn heard(written: io::Result<()>) -> Result<(), SayError> {
    match written {
        Err(error) if !reader_is_gone(&error) => Err(SayError(error)),
        _ => Ok(()),
    }
}

/// Writes a complaint to standard error, as lines of its own. If standard error accepts nothing, only the exit code
/// tells.
pub fn complain(text: impl Display) {
    let _ = io::stderr().write_all((brief(text) + "\n").as_bytes());
}

/// A message without the middle of too long lines, or of a too long whole.
pub fn brief(text: impl Display) -> String {
    let text = text.to_string();
    let lines: Vec<_> =
        text.trim_end().lines().map(|line| shortened(line, LINE_BYTES_MAX)).collect();
    shortened(&lines.join("\n"), COMPLAINT_BYTES_MAX).into_owned()
}

/// Whether a write failed because nobody reads any more; a full disk is another error.
pub fn reader_is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// A user's value in the form that a complaint repeats: in quotes, and shortened.
pub fn quoted(value: &str) -> String {
    format!("{:?}", shortened(value, VALUE_BYTES_MAX))
}

/// The text without its middle if it is longer than `bytes_max`.
fn shortened(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return text.into();
    }
    let half = bytes_max / 2;
    let head = (0..=half).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let tail = (text.len() - half..text.len()).find(|&at| text.is_char_boundary(at));
    let (head, tail) = (&text[..head], tail.map_or("", |at| &text[at..]));
    let left_out = text.len() - head.len() - tail.len();
    format!("{head} [{left_out} bytes left out] {tail}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gone_reader_and_a_full_disk_are_told_apart() {
        let written = |errno| heard(Err(io::Error::from_raw_os_error(errno)));
        assert!(heard(Ok(())).is_ok() && written(libc::EPIPE).is_ok());
        for errno in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG, libc::EIO, libc::EBADF] {
            assert!(written(errno).is_err(), "{errno}");
        }
        let error = written(libc::ENOSPC).unwrap_err().to_string();
        assert!(error.starts_with("cannot write to standard output: No space left"), "{error}");
    }

    #[test]
    fn a_text_that_is_too_long_loses_its_middle() {
        assert_eq!(shortened("whole", 5), "whole");
        assert_eq!(shortened("0123456789", 4), "01 [6 bytes left out] 89");
        // No character is cut in two.
        assert_eq!(shortened(&"ä".repeat(9), 6), "ä [14 bytes left out] ä");
        let quoted = quoted(&"x".repeat(50_000));
        assert!(quoted.len() < 200 && quoted.contains("[49872 bytes left out]"), "{quoted}");
    }
}
