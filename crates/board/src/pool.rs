//! The shared words of boards that a process leads.

use landeck_memory::plan::BOARDS;
use landeck_memory::segment::Segment;

/// The places for the shared words of boards in one process's pool. One per process.
pub struct BoardPool {
    segment: Segment,
    slot: u32,
    /// Places that were given out before, the last one back on top.
    free: Vec<u64>,
    fresh: u64,
}

impl BoardPool {
    /// The pool of a slot. The first place of slot 0 is the first world's and not given out.
    pub fn new(segment: &Segment, slot: u32) -> Self {
        Self { segment: segment.clone(), slot, free: Vec::new(), fresh: u64::from(slot == 0) }
    }

    /// A place, all zero; none when all are in use.
    pub fn take(&mut self) -> Option<u64> {
        if let Some(place) = self.free.pop() {
            for word in (place..place + super::SHARED_BYTES).step_by(8) {
                self.segment.long(word).store(0, std::sync::atomic::Ordering::Relaxed);
            }
            return Some(place);
        }
        (self.fresh < BOARDS).then(|| {
            self.fresh += 1;
            self.segment.plan().board(self.slot, self.fresh - 1)
        })
    }

    /// Gives a place back that no group uses any more.
    pub fn give_back(&mut self, place: u64) {
        self.free.push(place);
    }
}
