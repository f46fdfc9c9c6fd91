//! Passes the launcher's standard input on to the processes.
//!
//! If one process reads it and it is no terminal, that process gets it directly and no byte is touched. A terminal is
//! read here and passed on, as the processes are not in its foreground group. Input for several processes is read once
//! and written to each. No more than one block is held: the slowest reader sets the pace.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::output::pipe;

/// Which processes get the launcher's standard input; the others read nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum InputTo {
    /// Every process.
    All,
    /// No process.
    None,
    /// The process with this rank.
    Rank(u32),
}

/// The launcher's standard input.
#[derive(Debug)]
pub(crate) struct Origin {
    source: OwnedFd,
    is_terminal: bool,
    has_ended: bool,
}

/// The pipes to the processes that read one input, and the block that they are getting.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    block: Vec<u8>,
    /// One reader for each process; `None` if it no longer reads.
    readers: Vec<Option<Reader>>,
    /// Pipes that are not written to any more, with their numbers, so that the event loop can forget them.
    ended: Vec<(usize, OwnedFd)>,
}

/// A pipe to one process.
#[derive(Debug)]
struct Reader {
    pipe: OwnedFd,
    /// How much of the block it has received.
    taken: usize,
}

/// The number of bytes read at once: the size of a pipe.
const BLOCK_BYTES: usize = 64 * 1024;

impl Origin {
    /// The input in this descriptor.
    ///
    /// # Errors
    /// The kernel's error, usually that there are too many descriptors.
    pub(crate) fn new(source: BorrowedFd<'_>) -> io::Result<Origin> {
        let is_terminal = rustix::termios::isatty(source);
        Ok(Origin { source: source.try_clone_to_owned()?, is_terminal, has_ended: false })
    }

    /// The descriptor, if it may be read now.
    pub(crate) fn wanted(&self) -> Option<BorrowedFd<'_>> {
        let may_read = !self.has_ended && (!self.is_terminal || self.in_foreground());
        may_read.then(|| self.source.as_fd())
    }

    /// The descriptor.
    pub(crate) fn source(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }

    /// Whether the input has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Reads a block from the source, which is ready; `None` if there is none, or the input has ended.
    pub(crate) fn read(&mut self) -> Option<Vec<u8>> {
        let mut block = vec![0; BLOCK_BYTES];
        match rustix::io::read(&self.source, &mut block) {
            Err(Errno::INTR | Errno::AGAIN) => None,
            // EIO: the terminal has been closed, or the process came to the background meanwhile.
            Ok(0) | Err(_) => {
                self.has_ended = true;
                None
            }
            Ok(count) => {
                block.truncate(count);
                Some(block)
            }
        }
    }

    fn in_foreground(&self) -> bool {
        let foreground = rustix::termios::tcgetpgrp(&self.source);
        foreground.is_ok_and(|group| group == rustix::process::getpgrp())
    }
}

impl Readers {
    /// Adds a process; returns its number, and its end of the pipe.
    ///
    /// # Errors
    /// The kernel's error, usually that there are too many descriptors.
    pub(crate) fn add(&mut self) -> io::Result<(usize, OwnedFd)> {
        let (reader, writer) = pipe()?;
        rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK)?;
        self.readers.push(Some(Reader { pipe: writer, taken: 0 }));
        Ok((self.readers.len() - 1, reader))
    }

    /// Gives a process the pipe that it had in another daemon; `None` if it reads no longer.
    pub(crate) fn take_pipe(&mut self, number: usize, pipe: Option<OwnedFd>) {
        let count = self.readers.len().max(number + 1);
        self.readers.resize_with(count, || None);
        self.readers[number] = pipe.map(|pipe| Reader { pipe, taken: 0 });
    }

    /// The pipe of a process, if it reads.
    pub(crate) fn pipe(&self, number: usize) -> Option<BorrowedFd<'_>> {
        self.readers.get(number)?.as_ref().map(|reader| reader.pipe.as_fd())
    }

    /// Passes a block on. The last one must have been taken.
    pub(crate) fn give(&mut self, block: Vec<u8>) {
        self.block = block;
        self.write();
    }

    /// Writes as much as the pipes accept.
    pub(crate) fn write(&mut self) {
        for (number, slot) in self.readers.iter_mut().enumerate() {
            if slot.as_mut().is_some_and(|reader| !reader.write(&self.block)) {
                self.ended.extend(slot.take().map(|reader| (number, reader.pipe)));
            }
        }
        let length = self.block.len();
        if self.readers.iter().flatten().all(|reader| reader.taken == length) {
            self.block.clear();
            self.readers.iter_mut().flatten().for_each(|reader| reader.taken = 0);
        }
    }

    /// Ends the input, so that the readers see its end.
    pub(crate) fn end(&mut self) {
        let open = self.readers.drain(..).enumerate();
        self.ended.extend(open.filter_map(|(number, reader)| Some((number, reader?.pipe))));
    }

    /// Whether every process has taken the whole block, or reads no more.
    pub(crate) fn is_idle(&self) -> bool {
        self.block.is_empty()
    }

    /// Whether no process reads any more.
    pub(crate) fn is_unread(&self) -> bool {
        self.readers.iter().all(Option::is_none)
    }

    /// The pipes with their numbers, and whether each must accept more.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>, bool)> {
        let readers = self.readers.iter().enumerate();
        readers.filter_map(|(number, reader)| {
            let reader = reader.as_ref()?;
            Some((number, reader.pipe.as_fd(), reader.taken < self.block.len()))
        })
    }

    /// Takes the pipes that have ended since the last call, with their numbers.
    pub(crate) fn take_ended(&mut self) -> Vec<(usize, OwnedFd)> {
        std::mem::take(&mut self.ended)
    }
}

impl Reader {
    /// Writes more of the block; returns false if the process no longer reads.
    fn write(&mut self, block: &[u8]) -> bool {
        while self.taken < block.len() {
            match rustix::io::write(&self.pipe, &block[self.taken..]) {
                Ok(count) => self.taken += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    fn text_of(descriptor: OwnedFd) -> String {
        let mut text = String::new();
        File::from(descriptor).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn all_get_the_same_at_the_pace_of_the_slowest() {
        let (source, writer) = pipe().unwrap();
        let (mut origin, mut writer) = (Origin::new(source.as_fd()).unwrap(), File::from(writer));
        let mut readers = Readers::default();
        let [(_, fast), (_, slow)] = [(); 2].map(|()| readers.add().unwrap());
        writer.write_all(&[b'x'; BLOCK_BYTES]).unwrap();
        readers.give(origin.read().unwrap());
        assert!(readers.is_idle(), "both pipes took the first block");
        writer.write_all(&[b'y'; BLOCK_BYTES]).unwrap();
        readers.give(origin.read().unwrap());
        // Both pipes are full with the first block and hold nothing of the second.
        let waiting = |readers: &Readers| {
            let pipes = readers.pipes().filter(|(_, _, is_waiting)| *is_waiting);
            pipes.map(|(number, _, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(waiting(&readers), [0, 1]);
        let mut fast = File::from(fast);
        fast.read_exact(&mut [0; BLOCK_BYTES]).unwrap();
        readers.write();
        assert_eq!((waiting(&readers), readers.is_idle()), (vec![1], false));
        drop(slow);
        readers.write();
        assert!(readers.is_idle() && !readers.is_unread(), "the slow one is gone");
        drop(writer);
        assert!(origin.read().is_none() && origin.has_ended());
        readers.end();
        assert_eq!(readers.take_ended().len(), 2);
        assert_eq!(text_of(fast.into()), "y".repeat(BLOCK_BYTES));
    }

    #[test]
    fn gone_readers_are_noticed() {
        let mut readers = Readers::default();
        for _ in 0..2 {
            drop(readers.add().unwrap());
        }
        readers.give(b"text".to_vec());
        assert!(readers.is_unread() && readers.is_idle());
    }
}
