//! Descriptors that one process passes to another over a Unix socket, beside the bytes of a message.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Result;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors of one message.
pub const DESCRIPTORS_MAX: usize = 64;

/// Sends a message with descriptors, which this process keeps as well.
///
/// # Errors
/// The kernel's error; with more than [`DESCRIPTORS_MAX`] descriptors none is passed, and the receiver misses them.
pub fn pass(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags | SendFlags::NOSIGNAL).map(drop)
}

/// Receives a message into `bytes`. Returns its length, 0 at the end of the connection, and its descriptors, which no
/// program inherits. The kernel drops descriptors for which this process has no room.
///
/// # Errors
/// The kernel's error.
pub fn receive(
    socket: impl AsFd,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut places = [IoSliceMut::new(bytes)];
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let count = recvmsg(socket, &mut places, &mut control, flags)?.bytes;
    let mut passed = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            passed.extend(descriptors);
        }
    }
    Ok((count, passed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn descriptors_travel_beside_their_message() {
        let (one, other) = UnixDatagram::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        pass(&one, b"two", &[writer.as_fd(), writer.as_fd()], SendFlags::empty()).unwrap();
        pass(&one, b"none", &[], SendFlags::empty()).unwrap();
        drop(writer);
        let mut bytes = [0; 8];
        let (count, passed) = receive(&other, &mut bytes, RecvFlags::empty()).unwrap();
        assert_eq!((&bytes[..count], passed.len()), (&b"two"[..], 2));
        passed.into_iter().for_each(|end| std::fs::File::from(end).write_all(b"x").unwrap());
        let mut came = String::new();
        reader.read_to_string(&mut came).unwrap();
        assert_eq!(came, "xx");
        let (count, passed) = receive(&other, &mut bytes, RecvFlags::empty()).unwrap();
        assert_eq!((&bytes[..count], passed.len()), (&b"none"[..], 0));
    }
}
