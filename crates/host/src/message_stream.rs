//! A stream of messages over a socket, read and written without waiting.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message of the stream: far above an environment and a block of output.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// One end of a stream of messages over a socket. `In` comes, `Out` goes.
#[derive(Debug)]
pub struct MessageStream<In, Out> {
    socket: OwnedFd,
    came: Vec<u8>,
    unsent: VecDeque<u8>,
    has_ended: bool,
    kinds: PhantomData<(In, Out)>,
}

impl<In: DeserializeOwned, Out: Serialize> MessageStream<In, Out> {
    /// The stream over this socket.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let (came, unsent) = (Vec::new(), VecDeque::new());
        Ok(Self { socket, came, unsent, has_ended: false, kinds: PhantomData })
    }

    /// The socket.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether messages wait for room in the socket.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether the other end is closed.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Sends a message, or keeps it until there is room.
    pub fn send(&mut self, message: &Out) {
        // A message of plain values can always be encoded.
        let bytes = postcard::to_stdvec(message).unwrap_or_default();
        self.unsent.extend((bytes.len() as u32).to_le_bytes());
        self.unsent.extend(bytes);
        self.flush();
    }

    /// Sends as much as there is room for.
    pub fn flush(&mut self) {
        while !self.unsent.is_empty() && !self.has_ended {
            let (first, _) = self.unsent.as_slices();
            match send(&self.socket, first, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.has_ended = true,
            }
        }
    }

    /// Reads what has come, without waiting.
    pub fn read(&mut self) {
        let mut block = vec![0; 64 * 1024];
        // Bounded, so that other descriptors get their turn.
        for _ in 0..16 {
            match recv(&self.socket, &mut block[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.has_ended = true,
                Ok((count, _)) => {
                    self.came.extend_from_slice(&block[..count]);
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(_) => self.has_ended = true,
            }
            return;
        }
    }

    /// Waits for the next message, and sends what waits for room meanwhile. `None`: the other end is closed, or the time is
    /// over.
    pub fn wait_next(&mut self, until: Option<Instant>) -> Option<In> {
        loop {
            self.flush();
            self.read();
            if let Some(message) = self.take_next() {
                return Some(message);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if self.has_ended || left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let room = if self.has_unsent() { PollFlags::OUT } else { PollFlags::empty() };
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            // Interrupted or not, the next look tells.
            let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN | room)], left.as_ref());
        }
    }

    /// The next whole message that has come. After a message that cannot be understood, the stream counts as ended.
    pub fn take_next(&mut self) -> Option<In> {
        let head: [u8; 4] = self.came.get(..4)?.try_into().ok()?;
        let length = u32::from_le_bytes(head) as usize;
        if length > MESSAGE_BYTES_MAX {
            self.has_ended = true;
            return None;
        }
        let message = postcard::from_bytes(self.came.get(4..4 + length)?);
        self.came.drain(..4 + length);
        self.has_ended |= message.is_err();
        message.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    type Stream = MessageStream<(u8, Vec<u8>), (u8, Vec<u8>)>;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn messages_come_whole_and_in_order() {
        let (one, other) = pair();
        let (mut sender, mut receiver) = (Stream::new(one).unwrap(), Stream::new(other).unwrap());
        let message = |byte: u8| (byte, vec![byte; 100_000]);
        (0..20).for_each(|byte| sender.send(&message(byte)));
        assert!(sender.has_unsent(), "more than a socket takes");
        let mut came = Vec::new();
        while came.len() < 20 {
            receiver.read();
            came.extend(std::iter::from_fn(|| receiver.take_next()));
            sender.flush();
        }
        assert!((0..).zip(&came).all(|(byte, came)| *came == message(byte)));
        drop(sender);
        receiver.read();
        assert!(receiver.has_ended() && receiver.take_next().is_none());
    }

    #[test]
    fn rubbish_ends_the_stream() {
        let (one, other) = pair();
        let mut stream = Stream::new(one).unwrap();
        for rubbish in [[255; 8], [4, 0, 0, 0, 255, 255, 255, 255]] {
            send(&other, &rubbish, SendFlags::NOSIGNAL).unwrap();
            stream.read();
            stream.has_ended = false;
            assert!(stream.take_next().is_none() && stream.has_ended());
            stream.came.clear();
        }
    }
}
