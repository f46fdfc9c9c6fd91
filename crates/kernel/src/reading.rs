//! Receives that read the sender's memory, and the knowledge about who can read whom.

use std::collections::{HashMap, HashSet};

use landeck_memory::{Buffer, Bytes, ReadRefused};
use landeck_wire::Class;
use landeck_wire::way::{MessageWay, OneCopy, Receiver, choose};

use crate::status::Status;
use crate::told::Told;
use crate::transfer::Target;

/// The most bytes that one look reads.
const BYTES_AT_ONCE: u64 = 1 << 20;
/// The bytes that are read at once for a target without places.
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
    /// A receive of a message whose data its sender has told.
    pub(crate) fn new(
        context: u32,
        target: Target,
        status: Status,
        (send, told): (u64, Told),
        number: u64,
    ) -> Self {
        Self { context, target, status, send, told, position: 0, number }
    }

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
            let left = end - self.position;
            self.position += match self.direct_targets(left) {
                Some(targets) => {
                    self.told.mark.read(self.told.places(), self.position, &targets)?;
                    left
                }
                None => self.read_between(left, between)?,
            };
        }
        Ok(())
    }

    /// The places of the next bytes in the target, if it has any: the kernel copies straight to them.
    fn direct_targets(&self, length: u64) -> Option<Vec<Buffer>> {
        match &self.target {
            Target::Area(area) => area.places(self.position, length, length as usize),
            _ => None,
        }
    }

    /// Reads bytes into memory between and writes them to the target; returns how many.
    fn read_between(&mut self, length: u64, between: &mut Vec<u8>) -> Result<u64, ReadRefused> {
        between.resize(BETWEEN_BYTES, 0);
        let part = &mut between[..BETWEEN_BYTES.min(length as usize)];
        self.told.mark.read_to_slice(self.told.places(), self.position, part)?;
        self.target.write(self.position, Bytes::from(&*part));
        Ok(part.len() as u64)
    }

    pub(crate) fn is_read(&self) -> bool {
        self.position >= self.wanted_bytes()
    }
}

/// Whether a target takes its data in one copy, which their sender has chosen for its own places. If its own are too short
/// for that, two copies are faster. A target without places is filled from a buffer between.
pub(crate) fn takes_one_copy(target: &Target) -> bool {
    let Target::Area(area) = target else { return true };
    let any = Receiver::Near { in_message: 0, one_copy_from: 0 };
    choose(any, Class::User, area.extent()) == MessageWay::OneCopy
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
