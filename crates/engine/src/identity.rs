//! The identity of a group: its contexts, its members, and which of them this process is.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use landeck_channel::Peer;
use landeck_collectives::Signature;

/// A group, as a handle of one of its members names it.
#[derive(Clone, Copy)]
pub struct GroupRef<'a> {
    /// The context of the group's own messages.
    pub context: u32,
    /// The processes, in the order of ranks.
    pub members: &'a Arc<[Peer]>,
    /// The rank of this process.
    pub rank: usize,
}

impl GroupRef<'_> {
    /// How many members there are.
    #[inline(always)]
    pub(crate) fn size(&self) -> u32 {
        self.members.len() as u32
    }
}

/// A group, as the engine keeps it.
#[derive(Debug)]
pub(crate) struct GroupIdentity {
    /// The context of the group's own messages.
    pub(crate) context: u32,
    /// The context of its collective operations.
    pub(crate) collective_context: u32,
    /// The processes, in the order of ranks.
    pub(crate) members: Arc<[Peer]>,
    /// The rank of this process.
    pub(crate) member: u32,
    /// The spans that this member has told the others.
    pub(crate) told: ToldSpans,
}

/// The span of the last message to each other member. All begin with the first span, of which none is told.
///
/// The gate admits one thread at a time, so the words need no order.
#[derive(Debug, Default)]
pub(crate) struct ToldSpans(OnceLock<Box<[AtomicU32]>>);

/// No span.
const UNKNOWN: u32 = u32::MAX;

impl ToldSpans {
    /// The span to tell a member of `size` before the message of a call, unless that member knows it. It counts as told.
    #[inline]
    pub(crate) fn to_tell(&self, to: u32, size: usize, call: Signature) -> Option<u32> {
        let span = call.span();
        if span == 0 && self.0.get().is_none() {
            return None;
        }
        self.note(to, size, span)
    }

    /// A member may not have been told after all.
    #[cold]
    pub(crate) fn forget(&self, to: u32) {
        if let Some(told) = self.0.get().and_then(|told| told.get(to as usize)) {
            told.store(UNKNOWN, Ordering::Relaxed);
        }
    }

    fn note(&self, to: u32, size: usize, span: u32) -> Option<u32> {
        let told = self.0.get_or_init(|| (0..size).map(|_| AtomicU32::new(0)).collect());
        let told = told.get(to as usize)?;
        let is_known = told.load(Ordering::Relaxed) == span;
        told.store(span, Ordering::Relaxed);
        (!is_known).then_some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_collectives::Operation;

    #[test]
    fn a_span_is_told_to_each_member_when_it_changes() {
        let told = ToldSpans::default();
        let to_tell =
            |to, number| told.to_tell(to, 3, Signature::new(number, Operation::Broadcast, 0));
        assert_eq!((to_tell(1, 0), to_tell(1, 8_191)), (None, None));
        assert_eq!((to_tell(1, 8_192), to_tell(1, 8_193)), (Some(1), None));
        assert_eq!(to_tell(2, 3 * 8_192), Some(3), "another member");
        // A call that began long ago may send late.
        assert_eq!((to_tell(1, 8_191), to_tell(1, 8_192)), (Some(0), Some(1)));
        told.forget(1);
        assert_eq!((to_tell(1, 8_192), to_tell(1, 8_192)), (Some(1), None));
    }
}
