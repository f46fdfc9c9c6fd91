//! The bytes that all questions and answers at a joining socket have in common.

use landeck_wire::{HostId, Incarnation, ProcessId, Slot};

/// The first bytes of each message: magic and version.
pub(super) const MAGIC: [u8; 4] = *b"LDK\x01";

/// Reads the four bytes at this place as a number.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads the eight bytes at this place as a number.
pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Reads the slot and incarnation at this place as a process of a host.
pub(super) fn process(host: HostId, bytes: &[u8], at: usize) -> ProcessId {
    ProcessId { host, slot: Slot(word(bytes, at)), incarnation: Incarnation(word(bytes, at + 4)) }
}
