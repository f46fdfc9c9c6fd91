//! Data for a guardian that are longer than a message: they lie in a file in memory, whose descriptor is passed.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A file in memory with an order, or with an image. Streams travel beside it.
pub(super) fn data_of(order: &impl Serialize) -> io::Result<OwnedFd> {
    let bytes = postcard::to_stdvec(order).map_err(io::Error::other)?;
    let mut file = File::from(rustix::fs::memfd_create("landeck-order", MemfdFlags::CLOEXEC)?);
    file.write_all(&bytes)?;
    Ok(file.into())
}

/// Reads what [`data_of`] has written.
pub(super) fn read_data<T: DeserializeOwned>(data: OwnedFd) -> io::Result<T> {
    let (mut file, mut bytes) = (File::from(data), Vec::new());
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}
