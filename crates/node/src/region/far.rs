//! Regions of processes on other hosts, which the relay of the owner's host accesses.

use landeck_engine::Shared;
use landeck_kernel::Peer;
use landeck_memory::shared_area::OutsideArea;
use landeck_objects::region::AccessError;
use landeck_wire::relay::{RELAY_PART_BYTES, RelayOperation, RelayOutcome, RelayRequest};
use rustix::io::Errno;

use super::RegionAddress;
use crate::error::{Error, ErrorKind, Result};
use crate::peers::{far_failure, far_owner};
use crate::region::relay::{self, RelayError};

const WORD_BYTES: usize = size_of::<u64>();

/// A region of a process on another host.
pub(super) struct FarRegion {
    owner: Peer,
    address: RegionAddress,
    bytes: usize,
}

impl FarRegion {
    /// Opens the region with this address.
    pub(super) fn open(shared: &Shared, address: RegionAddress) -> Result<Self> {
        let owner = far_owner(&shared.segment, address.process)?;
        if let Some(gone) = far_failure(&shared.segment, owner) {
            return Err(gone.into());
        }
        let mut far = Self { owner, address, bytes: 0 };
        far.bytes = far.ask_word(shared, 0, RelayOperation::Look)? as usize;
        Ok(far)
    }

    /// Bytes of data.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies bytes in, in parts, and notifies the owner behind the last one if that is wanted.
    pub(super) fn put(
        &self,
        shared: &Shared,
        offset: usize,
        bytes: &[u8],
        notifies: bool,
    ) -> Result<()> {
        self.check(shared, offset, bytes.len())?;
        let count = bytes.len().div_ceil(RELAY_PART_BYTES).max(usize::from(notifies));
        let request = |part: usize| {
            let range = part_of(part, bytes.len());
            let operation = RelayOperation::Put { notifies: notifies && part + 1 == count };
            (self.request(offset + range.start, operation), &bytes[range])
        };
        let asked = relay::ask(shared, self.owner, count, request, |_, data| data.is_empty());
        asked.map_err(|error| self.error(shared, offset, bytes.len(), error))
    }

    /// Copies bytes out, in parts.
    pub(super) fn get(&self, shared: &Shared, offset: usize, into: &mut [u8]) -> Result<()> {
        let length = into.len();
        self.check(shared, offset, length)?;
        let request = |part: usize| {
            let range = part_of(part, length);
            let operation = RelayOperation::Get { bytes: range.len() as u64 };
            (self.request(offset + range.start, operation), &[][..])
        };
        let take = |part: usize, data: &[u8]| {
            let place = &mut into[part_of(part, length)];
            let is_right = place.len() == data.len();
            if is_right {
                place.copy_from_slice(data);
            }
            is_right
        };
        let count = length.div_ceil(RELAY_PART_BYTES);
        let asked = relay::ask(shared, self.owner, count, request, take);
        asked.map_err(|error| self.error(shared, offset, length, error))
    }

    /// Changes a word; returns its previous value.
    pub(super) fn change(
        &self,
        shared: &Shared,
        offset: usize,
        operation: RelayOperation,
    ) -> Result<u64> {
        if !offset.is_multiple_of(WORD_BYTES) {
            return Err(AccessError::Unaligned { offset }.into());
        }
        self.check(shared, offset, WORD_BYTES)?;
        self.ask_word(shared, offset, operation)
    }

    fn ask_word(&self, shared: &Shared, offset: usize, operation: RelayOperation) -> Result<u64> {
        let mut word = 0;
        let request = |_| (self.request(offset, operation), &[][..]);
        let take = |_, data: &[u8]| match <[u8; WORD_BYTES]>::try_from(data) {
            Ok(bytes) => {
                word = u64::from_le_bytes(bytes);
                true
            }
            Err(_) => false,
        };
        let asked = relay::ask(shared, self.owner, 1, request, take);
        asked.map_err(|error| self.error(shared, offset, WORD_BYTES, error))?;
        Ok(word)
    }

    fn request(&self, offset: usize, operation: RelayOperation) -> RelayRequest {
        let RegionAddress { process, place, number } = self.address;
        let (slot, incarnation) = (process.slot.0, process.incarnation.0);
        let offset = offset as u64;
        RelayRequest { slot, incarnation, place, number, offset, operation }
    }

    /// Refuses what this host can refuse by itself.
    fn check(&self, shared: &Shared, offset: usize, length: usize) -> Result<()> {
        if let Some(gone) = far_failure(&shared.segment, self.owner) {
            return Err(gone.into());
        }
        let end = offset.saturating_add(length);
        match end > self.bytes {
            true => Err(outside(offset, length, self.bytes).into()),
            false => Ok(()),
        }
    }

    #[cold]
    fn error(&self, shared: &Shared, offset: usize, length: usize, error: RelayError) -> Error {
        match error {
            RelayError::Failed(error) => error,
            RelayError::Refused(RelayOutcome::OwnerGone, _) => {
                relay::explain(shared, self.owner, "it says that the owner has ended")
            }
            RelayError::Refused(RelayOutcome::Outside, bytes) => {
                outside(offset, length, bytes as usize).into()
            }
            RelayError::Refused(RelayOutcome::Unaligned, _) => {
                AccessError::Unaligned { offset }.into()
            }
            RelayError::Refused(RelayOutcome::Unmapped, errno) => {
                AccessError::Unmapped(Errno::from_raw_os_error(errno as i32)).into()
            }
            // None stores anything here.
            RelayError::Refused(RelayOutcome::Senseless | RelayOutcome::NoRoom, _) => {
                relay::unreachable(shared, self.owner, "it does not understand this process")
            }
            RelayError::Refused(RelayOutcome::Unknown, _) => {
                ErrorKind::MaybeDone { host: relay::host_of(shared, self.owner) }.into()
            }
            RelayError::Refused(RelayOutcome::Done | RelayOutcome::Gone, _) => {
                far_failure(&shared.segment, self.owner)
                    .unwrap_or(ErrorKind::Access(AccessError::Gone))
                    .into()
            }
        }
    }
}

/// The bytes of a part of so many.
fn part_of(part: usize, bytes: usize) -> std::ops::Range<usize> {
    let start = (part * RELAY_PART_BYTES).min(bytes);
    start..(start + RELAY_PART_BYTES).min(bytes)
}

fn outside(offset: usize, length: usize, bytes: usize) -> AccessError {
    OutsideArea { range: offset..offset.saturating_add(length), bytes }.into()
}
