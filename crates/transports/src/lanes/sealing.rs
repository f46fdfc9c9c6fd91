//! Sealing: frames that only the other end of a lane can have sent.

use landeck_channel::BrokenPeer;
use landeck_trust::lane::{Opener, Sealer};
use landeck_wire::HEADER_BYTES;
use landeck_wire::handover::{Cipher, LaneKeys};

/// The length of the tag behind the data of a sealed frame.
const TAG_BYTES: usize = 16;

/// The library refused a key or a frame, which it never does with a lane's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the keys of a lane cannot be used")]
pub struct CannotSeal;

/// The protection of outgoing frames.
pub enum Sealing {
    /// Frames are in clear.
    Plain,
    /// Frames are encrypted.
    Sealed(Box<Sealer>),
}

/// The protection of incoming frames.
pub enum Opening {
    /// Frames are in clear.
    Plain,
    /// Frames are encrypted.
    Sealed(Box<Opener>),
}

impl Sealing {
    /// Creates the protection of the frames that the end with these keys sends.
    ///
    /// # Errors
    /// [`CannotSeal`].
    pub fn new(keys: &LaneKeys) -> Result<Self, CannotSeal> {
        Ok(match keys.cipher {
            Cipher::Plain => Self::Plain,
            cipher => {
                let sealer = Sealer::new(&keys.send, cipher).map_err(|_| CannotSeal)?;
                Self::Sealed(Box::new(sealer))
            }
        })
    }

    /// Seals the frame at the end of `bytes`, which has so many bytes of data, and appends its tag.
    ///
    /// # Errors
    /// [`CannotSeal`]: the lane must end.
    pub fn seal_last(&mut self, bytes: &mut Vec<u8>, data_bytes: usize) -> Result<(), CannotSeal> {
        let Self::Sealed(sealer) = self else { return Ok(()) };
        let first = bytes.len() - data_bytes - HEADER_BYTES;
        let (head, data) = bytes[first..].split_at_mut(HEADER_BYTES);
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(head);
        let tag = sealer.seal(&header, data).map_err(|_| CannotSeal)?;
        bytes.extend_from_slice(&tag);
        Ok(())
    }
}

impl Opening {
    /// Creates the protection of the frames that the end with these keys receives.
    ///
    /// # Errors
    /// [`CannotSeal`].
    pub fn new(keys: &LaneKeys) -> Result<Self, CannotSeal> {
        Ok(match keys.cipher {
            Cipher::Plain => Self::Plain,
            cipher => {
                let opener = Opener::new(&keys.receive, cipher).map_err(|_| CannotSeal)?;
                Self::Sealed(Box::new(opener))
            }
        })
    }

    /// The number of bytes behind the data of a frame.
    #[inline]
    pub(super) fn tag_bytes(&self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Sealed(_) => TAG_BYTES,
        }
    }

    /// Opens a whole frame in place. Its header is not encrypted.
    #[inline]
    pub(super) fn open(&mut self, frame: &mut [u8], data_bytes: usize) -> Result<(), BrokenPeer> {
        let Self::Sealed(opener) = self else { return Ok(()) };
        let (head, rest) = frame.split_at_mut(HEADER_BYTES);
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(head);
        match opener.open(&header, rest) {
            Ok(length) if length == data_bytes => Ok(()),
            _ => Err(BrokenPeer::Seal),
        }
    }
}
