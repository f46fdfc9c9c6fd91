//! Receives that read the sender's memory, and the knowledge about who can read whom.

use std::collections::{HashMap, HashSet};

use landeck_memory::{Bytes, ReadRefused};
use landeck_wire::way::OneCopy;

use crate::status::Status;
use crate::told::Told;
use crate::transfer::Target;

/// The most bytes that one look reads.
const BYTES_AT_ONCE: u64 = 1 << 20;
/// The bytes that are read at once for a target whose parts lie apart.
const BETWEEN_BYTES: usize = 64 << 10;

/// A receive that reads its data out of the sender's memory.
pub(crate) struct Reading {
    pub(crate) context: u32,
    pub(crate) target: Target,
    pub(crate) status: Status,
    pub(crate) send: u64,
    pub(crate) told: Told,
    /// The bytes that were read.
    pub(crate) position: u64,
    /// The position of the message among the unexpected ones.
    pub(crate) number: u64,
}

impl Reading {
    /// The bytes that the target takes.
    fn wanted_bytes(&self) -> u64 {
        match &self.target {
            Target::Area(area) => area.packed_bytes().min(self.status.bytes),
            Target::Own(_) | Target::Through(_) => self.status.bytes,
            Target::Nowhere | Target::Missing(_) => 0,
        }
    }

    /// Reads the next bytes.
    pub(crate) fn advance(&mut self, between: &mut Vec<u8>) -> Result<(), ReadRefused> {
        let end = self.wanted_bytes().min(self.position + BYTES_AT_ONCE);
        while self.position < end {
            let left = (end - self.position) as usize;
            let places = self.told.places();
            let buffer = match &self.target {
                Target::Area(area) => area.as_buffer(),
                _ => None,
            };
            let bytes = match buffer {
                Some(buffer) => {
                    let part = buffer.part(self.position as usize, left);
                    self.told.mark.read(places, self.position, &part)?;
                    left
                }
                None => {
                    between.resize(BETWEEN_BYTES, 0);
                    let part = &mut between[..left.min(BETWEEN_BYTES)];
                    self.told.mark.read_to_slice(places, self.position, part)?;
                    self.target.write(self.position, Bytes::from(&*part));
                    part.len()
                }
            };
            self.position += bytes as u64;
        }
        Ok(())
    }

    pub(crate) fn is_read(&self) -> bool {
        self.position >= self.wanted_bytes()
    }
}

/// An endpoint's knowledge of reading and being read.
pub(crate) struct OneCopies {
    /// The length from which messages are read, in groups that have no length of their own.
    pub(crate) usual_from: u64,
    /// That of groups, by their contexts.
    pub(crate) from: HashMap<u32, u64>,
    /// Whether any message may be read: so one comparison decides for all others.
    pub(crate) is_on: bool,
    /// The processes that cannot read our memory.
    pub(crate) refused: HashSet<u32>,
    /// The processes whose memory we cannot read.
    pub(crate) unreadable: HashSet<u32>,
    /// Memory between the sender's places and ours.
    pub(crate) between: Vec<u8>,
}

impl Default for OneCopies {
    fn default() -> Self {
        Self {
            usual_from: OneCopy::NEVER,
            from: HashMap::new(),
            is_on: false,
            refused: HashSet::new(),
            unreadable: HashSet::new(),
            between: Vec::new(),
        }
    }
}

impl OneCopies {
    /// Sets the length for a context, or that of all contexts without one.
    pub(crate) fn set(&mut self, context: Option<u32>, from: Option<u64>) {
        match (context, from) {
            (Some(context), Some(from)) => _ = self.from.insert(context, from),
            (Some(context), None) => _ = self.from.remove(&context),
            (None, from) => self.usual_from = from.unwrap_or(OneCopy::NEVER),
        }
        let mut all = self.from.values().chain([&self.usual_from]);
        self.is_on = all.any(|&from| from != OneCopy::NEVER);
    }

    /// Forgets a context.
    pub(crate) fn forget(&mut self, context: u32) {
        if !self.from.is_empty() {
            self.set(Some(context), None);
        }
    }

    /// Forgets what was found out about a slot's former process.
    pub(crate) fn renew(&mut self, slot: u32) {
        self.refused.remove(&slot);
        self.unreadable.remove(&slot);
    }
}
