//! A value in memory that outlives its process, whole at each moment: the last one that was written, or the one before.
//!
//! Two files in memory hold a value each. The older one is overwritten, and counts once it is whole.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, pwrite};

/// The bytes before a value: its number and its length.
const HEADER_BYTES: usize = 16;

/// Two copies of a value. Only one process writes them.
#[derive(Debug)]
pub(crate) struct Copies {
    files: [OwnedFd; 2],
    /// The number of the last value.
    number: u64,
}

impl Copies {
    /// Copies of no value yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new() -> io::Result<Self> {
        let file = || memfd_create("landeck-record", MemfdFlags::CLOEXEC);
        Ok(Self { files: [file()?, file()?], number: 0 })
    }

    /// These copies for another process.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn share(&self) -> io::Result<Self> {
        let [one, other] = &self.files;
        Ok(Self { files: [one.try_clone()?, other.try_clone()?], number: self.number })
    }

    /// Writes the next value.
    ///
    /// # Errors
    /// The kernel's error: there is no memory.
    pub(crate) fn write(&mut self, value: &[u8]) -> io::Result<()> {
        self.number += 1;
        let file = self.file(self.number);
        let length = value.len() as u64;
        let header = [self.number.to_le_bytes(), length.to_le_bytes()].concat();
        // The header counts at once or not at all, as it lies in one page.
        write_at(file, value, HEADER_BYTES).and_then(|()| write_at(file, &header, 0))
    }

    /// The file of the value with this number: the other one than that of the value before.
    const fn file(&self, number: u64) -> &OwnedFd {
        let [even, odd] = &self.files;
        if number.is_multiple_of(2) { even } else { odd }
    }

    /// The last value that is whole, if there is one.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let numbered = self.files.iter().filter_map(|file| {
            let header = read_at(file, 0, HEADER_BYTES)?;
            let number = |at: usize| Some(u64::from_le_bytes(*header[at..].first_chunk()?));
            Some((number(0)?, number(8)?, file)).filter(|(number, ..)| *number > 0)
        });
        let (_, length, file) = numbered.max_by_key(|(number, ..)| *number)?;
        read_at(file, HEADER_BYTES, usize::try_from(length).ok()?)
    }
}

fn write_at(file: &OwnedFd, mut bytes: &[u8], mut at: usize) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = pwrite(file, bytes, at as u64)?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[count..];
        at += count;
    }
    Ok(())
}

/// So many bytes from there on; `None` if there are fewer.
fn read_at(file: &OwnedFd, mut at: usize, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut free = &mut bytes[..];
    while !free.is_empty() {
        let count = pread(file, &mut *free, at as u64).ok().filter(|count| *count > 0)?;
        free = &mut free[count..];
        at += count;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_that_is_whole_is_read() {
        let mut copies = Copies::new().unwrap();
        let others = copies.share().unwrap();
        assert_eq!(others.read(), None);
        for value in [&b"one"[..], &[7; 100_000], b"", b"three"] {
            copies.write(value).unwrap();
            assert_eq!(others.read().as_deref(), Some(value));
        }
        // The next one is cut: its header was not written.
        write_at(copies.file(copies.number + 1), b"half of the next", HEADER_BYTES).unwrap();
        assert_eq!(others.read().as_deref(), Some(&b"three"[..]));
    }
}
