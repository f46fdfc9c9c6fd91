//! Values that travel with descriptors over a socket of datagrams between processes of one host.
//!
//! A value may be longer than a datagram, so it lies in a file in memory, whose descriptor travels in front of the others.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landeck_memory::passing;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The first datagram of a value has so many bytes: the number of all its descriptors. The others have one byte.
const HEAD_BYTES: usize = size_of::<u64>();

/// A file in memory with a value. [`value_in`] reads it.
///
/// # Errors
/// The kernel's error.
pub(crate) fn file_of(value: &impl Serialize) -> io::Result<OwnedFd> {
    let bytes = postcard::to_stdvec(value).map_err(io::Error::other)?;
    let mut file = File::from(rustix::fs::memfd_create("landeck-value", MemfdFlags::CLOEXEC)?);
    file.write_all(&bytes)?;
    Ok(file.into())
}

/// The value in a file that [`file_of`] has made.
///
/// # Errors
/// The kernel's error; the file has no such value.
pub(crate) fn value_in<T: DeserializeOwned>(file: OwnedFd) -> io::Result<T> {
    let (mut file, mut bytes) = (File::from(file), Vec::new());
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

/// Sends a value with descriptors, which this process keeps as well.
///
/// # Errors
/// The kernel's error; [`io::ErrorKind::BrokenPipe`] if nobody is at the other end.
pub fn send(
    socket: &OwnedFd,
    value: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let file = file_of(value)?;
    let all: Vec<BorrowedFd<'_>> =
        std::iter::once(file.as_fd()).chain(descriptors.iter().copied()).collect();
    let head = (all.len() as u64).to_le_bytes();
    for (number, some) in all.chunks(passing::DESCRIPTORS_MAX).enumerate() {
        pass(socket, if number == 0 { &head } else { &[0] }, some)?;
    }
    Ok(())
}

/// Receives a value with its descriptors, waiting for it. `None` if the other end was closed. A value that was sent in part is
/// passed over: its sender has ended, and another one has its place.
///
/// # Errors
/// The kernel's error; descriptors were lost because this process has no room for them, or there is no such value.
pub fn receive<T: DeserializeOwned>(socket: &OwnedFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut all: Vec<OwnedFd> = Vec::new();
    let mut wanted = None;
    while wanted.is_none_or(|wanted| (all.len() as u64) < wanted) {
        let mut head = [0; HEAD_BYTES];
        let (count, some) = receive_datagram(socket, &mut head)?;
        match count {
            0 => return Ok(None),
            HEAD_BYTES => {
                all.clear();
                wanted = Some(u64::from_le_bytes(head));
            }
            _ if wanted.is_none() => continue,
            _ => {}
        }
        if some.is_empty() {
            return Err(io::Error::other("descriptors were lost: too many files are open"));
        }
        all.extend(some);
    }
    let file = all.remove(0);
    Ok(Some((value_in(file)?, all)))
}

fn pass(socket: &OwnedFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    loop {
        match passing::pass(socket, bytes, descriptors, SendFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn receive_datagram(socket: &OwnedFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    loop {
        match passing::receive(socket, bytes, RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok((0, Vec::new())),
            received => return Ok(received?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn files(texts: &[&str]) -> Vec<OwnedFd> {
        texts.iter().map(|text| file_of(text).unwrap()).collect()
    }

    #[test]
    fn values_of_any_length_come_with_all_their_descriptors() {
        let (ours, theirs) = pair();
        let texts: Vec<String> = (0..150).map(|number| number.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let beside = files(&texts);
        let beside: Vec<BorrowedFd<'_>> = beside.iter().map(AsFd::as_fd).collect();
        let long = vec![7_u8; 1 << 20];
        send(&ours, &long, &beside).unwrap();
        send(&ours, &String::from("short"), &[]).unwrap();
        drop(ours);
        let (value, came) = receive::<Vec<u8>>(&theirs).unwrap().unwrap();
        assert_eq!(value, long);
        let came: Vec<String> = came.into_iter().map(|file| value_in(file).unwrap()).collect();
        assert_eq!(came, texts);
        assert_eq!(receive::<String>(&theirs).unwrap().unwrap().0, "short");
        assert!(receive::<String>(&theirs).unwrap().is_none());
    }

    #[test]
    fn a_value_whose_sender_ended_amid_it_is_passed_over() {
        let (ours, theirs) = pair();
        let first = files(&["never read"]);
        // Of three descriptors one has come.
        pass(&ours, &3_u64.to_le_bytes(), &[first[0].as_fd()]).unwrap();
        send(&ours, &String::from("next"), &[]).unwrap();
        // A rest without its beginning.
        pass(&ours, &[0], &[first[0].as_fd()]).unwrap();
        send(&ours, &String::from("last"), &[]).unwrap();
        for wanted in ["next", "last"] {
            assert_eq!(receive::<String>(&theirs).unwrap().unwrap().0, wanted);
        }
    }
}
