//! Regions: memory of a process's heap for one-sided access by others of the host. They offer puts, gets, atomic
//! words, and a count by which a writer notifies the owner that its data are complete.
//!
//! ```text
//! line 0   mark (8): the region's number while it is there | bytes of data (8) | threads of the owner that wait (8)
//! line 1   notifications (8) | data, of which 56 bytes share the line
//! ```
//!
//! A region can be withdrawn while a process writes to it. So an accessor first names the region in a word of its
//! own page, the *hazard*, and then looks at the mark; the owner first removes the mark and then looks at the
//! hazards. At least one of the two looks sees the other side (Dekker). Memory that a process accesses is not
//! reused before the access ends or the accessor has died. Where the kernel offers `membarrier`, only the owner
//! has a fence, as for sleep words.
//!
//! For processes on other hosts the relay of this host accesses regions. Each of these processes has a hazard in its
//! record in the table of far processes.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};

use rustix::io::Errno;

use landeck_memory::bytes::{Bytes, copy};
use landeck_memory::hardening::Opened;
use landeck_memory::heap::Block;
use landeck_memory::plain::{Plain, bytes_of, bytes_of_mut};
use landeck_memory::plan::{LINE_BYTES, PAGE_BYTES};
use landeck_memory::segment::Segment;
use landeck_memory::shared_area::OutsideArea;
use landeck_memory::system;
use landeck_memory::waiter;

/// Bytes of a region in front of its data.
pub const REGION_HEAD_BYTES: usize = 72;

const PAGE: usize = PAGE_BYTES as usize;
const BYTES_WORD: usize = 8;
const WAITING_WORD: usize = 16;
const NOTIFICATIONS: usize = 64;

/// Where a region is: plain values that travel in a message. Nothing of them is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionPlace {
    /// The slot whose heap it is in.
    pub slot: u32,
    /// Where it begins there, in bytes.
    pub place: u64,
    /// Its number, never zero and never given out again by its process.
    pub number: u64,
}

/// Why an access did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The region is not there (any more).
    #[error("the memory is gone: its owner has withdrawn it; ask for the place of another")]
    Gone,
    /// The access leaves the region.
    #[error(transparent)]
    Outside(#[from] OutsideArea),
    /// The kernel does not map its pages for writing, in a hardened job.
    #[error(
        "the kernel does not let this process write to the memory ({0}): raise vm.max_map_count, or open fewer regions at a time"
    )]
    Unmapped(Errno),
    /// The word is no whole word of the region.
    #[error("byte {offset} is not the first of a word: words begin at multiples of 8")]
    Unaligned {
        /// The byte.
        offset: usize,
    },
}

/// The owner's hold on a region.
#[derive(Debug)]
pub struct Region {
    memory: Memory,
    place: RegionPlace,
    block: Block,
}

/// A region whose owner has withdrawn it while a process accesses it.
#[derive(Debug)]
pub struct Withdrawn {
    number: u64,
    _block: Block,
}

/// A region of some process, as another one sees it.
pub struct RegionView {
    memory: Memory,
    place: RegionPlace,
    /// Where this process says what it accesses.
    hazard: NonNull<AtomicU64>,
    is_fenced: bool,
    segment: Segment,
    /// Keeps the region's pages writable, in a hardened job.
    _opened: Option<Opened>,
}

// SAFETY: the words are atomics that stay mapped while the segment handle lives.
unsafe impl Send for RegionView {}
// SAFETY: as above.
unsafe impl Sync for RegionView {}

/// The words and bytes of a region, in a mapping that outlives this.
#[derive(Clone, Copy, Debug)]
struct Memory {
    start: NonNull<u8>,
    /// Bytes of data.
    bytes: usize,
}

// SAFETY: the memory is used through atomics and raw copies only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the maker of this checked the head; its words are aligned and used atomically only.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    fn check(&self, offset: usize, length: usize) -> Result<(), OutsideArea> {
        let end = offset.saturating_add(length);
        if end > self.bytes {
            return Err(OutsideArea { range: offset..end, bytes: self.bytes });
        }
        Ok(())
    }

    fn data_word(&self, offset: usize) -> Result<&AtomicU64, AccessError> {
        if !offset.is_multiple_of(size_of::<u64>()) {
            return Err(AccessError::Unaligned { offset });
        }
        self.check(offset, size_of::<u64>())?;
        Ok(self.word(REGION_HEAD_BYTES + offset))
    }

    fn read<T: Plain>(&self, offset: usize, into: &mut [T]) -> Result<(), OutsideArea> {
        self.check(offset, size_of_val(into))?;
        // SAFETY: the range was just checked; it stays mapped during the call.
        let bytes = unsafe { Bytes::from_raw(self.data(offset), size_of_val(into)) };
        bytes.copy_to_slice(bytes_of_mut(into));
        Ok(())
    }

    fn write<T: Plain>(&self, offset: usize, values: &[T]) -> Result<(), OutsideArea> {
        let bytes = bytes_of(values);
        self.check(offset, bytes.len())?;
        if let (&[value], true) = (bytes.as_chunks::<8>().0, offset.is_multiple_of(8))
            && bytes.len() == 8
        {
            self.word(REGION_HEAD_BYTES + offset)
                .store(u64::from_ne_bytes(value), Ordering::Relaxed);
            return Ok(());
        }
        // SAFETY: the range was just checked; nobody has a reference to it but as atomics and
        // places to copy from.
        unsafe { copy(bytes.as_ptr(), self.data(offset).as_ptr(), bytes.len()) };
        Ok(())
    }

    fn data(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: callers have checked the offset against the bytes of data behind the head.
        unsafe { self.start.add(REGION_HEAD_BYTES + offset) }
    }
}

impl Region {
    /// How long a block must be for a region with so many bytes of data: in a hardened job the region
    /// has pages of its own, because others map them for writing.
    pub fn block_bytes(segment: &Segment, bytes: usize) -> usize {
        let needed = bytes.saturating_add(REGION_HEAD_BYTES);
        match segment.plan().is_hardened {
            true => needed.div_ceil(PAGE).saturating_add(1).saturating_mul(PAGE),
            false => needed,
        }
    }

    /// Makes a region with so many bytes of data, all zero, of a block of the heap of `slot`. None when
    /// the block is too short ([`Region::block_bytes`]) or the number zero.
    pub fn new(
        segment: &Segment,
        slot: u32,
        mut block: Block,
        bytes: usize,
        number: u64,
    ) -> Option<Self> {
        let is_possible = number != 0 && block.len() >= Self::block_bytes(segment, bytes);
        let begins =
            block.offset().checked_sub(segment.plan().heap(slot)).filter(|_| is_possible)?;
        let place = match segment.plan().is_hardened {
            true => begins.next_multiple_of(PAGE_BYTES),
            false => begins,
        };
        block.fill(0);
        let start = NonNull::from(block.get_mut((place - begins) as usize..)?).cast();
        let memory = Memory { start, bytes };
        memory.word(BYTES_WORD).store(bytes as u64, Ordering::Relaxed);
        memory.word(0).store(number, Ordering::Release);
        Some(Self { memory, place: RegionPlace { slot, place, number }, block })
    }

    /// Where others find it.
    pub fn place(&self) -> RegionPlace {
        self.place
    }

    /// Bytes of data.
    pub fn bytes(&self) -> usize {
        self.memory.bytes
    }

    /// Copies values out, from byte `offset` on.
    ///
    /// # Errors
    /// [`OutsideArea`].
    pub fn read<T: Plain>(&self, offset: usize, into: &mut [T]) -> Result<(), OutsideArea> {
        self.memory.read(offset, into)
    }

    /// Copies values in, from byte `offset` on.
    ///
    /// # Errors
    /// [`OutsideArea`].
    pub fn write<T: Plain>(&self, offset: usize, values: &[T]) -> Result<(), OutsideArea> {
        self.memory.write(offset, values)
    }

    /// The word at byte `offset`.
    ///
    /// # Errors
    /// [`AccessError::Unaligned`], [`AccessError::Outside`].
    pub fn word(&self, offset: usize) -> Result<&AtomicU64, AccessError> {
        self.memory.data_word(offset)
    }

    /// How many notifications have come. What was put before one is there.
    #[inline]
    pub fn notifications(&self) -> u64 {
        self.memory.word(NOTIFICATIONS).load(Ordering::Acquire)
    }

    /// Records that a thread of the owner begins to wait for a notification, or ends: a notifier wakes it meanwhile.
    pub fn waits(&self, begins: bool) {
        let word = self.memory.word(WAITING_WORD);
        match begins {
            true => word.fetch_add(1, Ordering::SeqCst),
            false => word.fetch_sub(1, Ordering::SeqCst),
        };
        fence(Ordering::SeqCst);
    }

    /// Withdraws the region: no access begins from now on. None when none is going on, else what
    /// is to be kept until [`Withdrawn::is_free`].
    pub fn withdraw(self, segment: &Segment) -> Option<Withdrawn> {
        self.memory.word(0).store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        system::barrier_everywhere();
        let withdrawn = Withdrawn { number: self.place.number, _block: self.block };
        (!withdrawn.is_free(segment)).then_some(withdrawn)
    }
}

impl Withdrawn {
    /// Whether no process accesses it any more.
    pub fn is_free(&self, segment: &Segment) -> bool {
        let plan = segment.plan();
        let far = if plan.has_host_tables() { plan.far } else { 0 };
        (0..plan.slots()).all(|slot| {
            segment.hazard(slot).load(Ordering::Acquire) != self.number
                || segment.slot_record(slot).state.has_ended()
        }) && (0..far).all(|far| segment.far_hazard(far).load(Ordering::Acquire) != self.number)
    }
}

impl RegionView {
    /// A view of the region at a place, for the process of `own_slot`.
    ///
    /// # Errors
    /// [`AccessError::Gone`] when there can be no region, or is none; [`AccessError::Unmapped`].
    pub fn open(segment: &Segment, own_slot: u32, place: RegionPlace) -> Result<Self, AccessError> {
        if own_slot >= segment.plan().slots() {
            return Err(AccessError::Gone);
        }
        let is_fenced = segment.plan().is_oversubscribed() || !waiter::is_registered();
        let is_own = place.slot == own_slot;
        Self::open_with(segment, segment.hazard(own_slot), is_fenced, is_own, place)
    }

    /// A view of the region at a place, for the relay, which accesses it for a process on another host.
    ///
    /// # Errors
    /// As [`RegionView::open`].
    pub fn open_for_far(
        segment: &Segment,
        far: u32,
        place: RegionPlace,
    ) -> Result<Self, AccessError> {
        if far >= segment.plan().far {
            return Err(AccessError::Gone);
        }
        Self::open_with(segment, segment.far_hazard(far), true, false, place)
    }

    fn open_with(
        segment: &Segment,
        hazard: &AtomicU64,
        is_fenced: bool,
        is_own: bool,
        place: RegionPlace,
    ) -> Result<Self, AccessError> {
        let plan = segment.plan();
        let head_end = place.place.saturating_add(REGION_HEAD_BYTES as u64);
        let is_possible = place.slot < plan.slots()
            && place.number != 0
            && place.place.is_multiple_of(LINE_BYTES)
            && head_end <= plan.heap_bytes_per_process;
        if !is_possible {
            return Err(AccessError::Gone);
        }
        let begins = plan.heap(place.slot) + place.place;
        let start = segment.place(begins, REGION_HEAD_BYTES as u64);
        let mut memory = Memory { start, bytes: 0 };
        if memory.word(0).load(Ordering::Acquire) != place.number {
            return Err(AccessError::Gone);
        }
        // Loaded once, and never more than lies within the heap.
        let claimed = memory.word(BYTES_WORD).load(Ordering::Relaxed);
        memory.bytes = claimed.min(plan.heap_bytes_per_process - head_end) as usize;
        let hazard = NonNull::from(hazard);
        let pages = begins..begins + (REGION_HEAD_BYTES + memory.bytes) as u64;
        let opened = (!is_own).then(|| segment.open_for_writing(pages)).transpose();
        let _opened = opened.map_err(|error| {
            AccessError::Unmapped(Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))
        })?;
        segment.hold(place.slot);
        Ok(Self { memory, place, hazard, is_fenced, segment: segment.clone(), _opened })
    }

    /// Bytes of data.
    pub fn bytes(&self) -> usize {
        self.memory.bytes
    }

    /// Whether it is there.
    pub fn is_there(&self) -> bool {
        self.memory.word(0).load(Ordering::Acquire) == self.place.number
    }

    /// Copies values in, from byte `offset` on. One thread of the process at a time accesses
    /// regions.
    ///
    /// # Errors
    /// [`AccessError::Gone`], [`AccessError::Outside`].
    #[inline]
    pub fn put<T: Plain>(&self, offset: usize, values: &[T]) -> Result<(), AccessError> {
        self.access(|memory| Ok(memory.write(offset, values)?))
    }

    /// Copies values in like [`RegionView::put`], and notifies the owner once they are there.
    ///
    /// # Errors
    /// As [`RegionView::put`].
    #[inline]
    pub fn put_and_notify<T: Plain>(&self, offset: usize, values: &[T]) -> Result<(), AccessError> {
        let is_awaited = self.access(|memory| {
            memory.write(offset, values)?;
            // A full fence as well: a thread that begins to wait sees the count, or is seen.
            memory.word(NOTIFICATIONS).fetch_add(1, Ordering::SeqCst);
            Ok(memory.word(WAITING_WORD).load(Ordering::SeqCst) != 0)
        })?;
        if is_awaited {
            self.segment.tell_news(self.place.slot);
        }
        Ok(())
    }

    /// Copies values out, from byte `offset` on.
    ///
    /// # Errors
    /// As [`RegionView::put`].
    #[inline]
    pub fn get<T: Plain>(&self, offset: usize, into: &mut [T]) -> Result<(), AccessError> {
        self.access(|memory| Ok(memory.read(offset, into)?))
    }

    /// Does something atomic with the word at byte `offset`.
    ///
    /// # Errors
    /// As [`RegionView::put`], and [`AccessError::Unaligned`].
    #[inline]
    pub fn with_word<R>(
        &self,
        offset: usize,
        change: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, AccessError> {
        self.access(|memory| Ok(change(memory.data_word(offset)?)))
    }

    #[inline]
    fn access<R>(
        &self,
        body: impl FnOnce(&Memory) -> Result<R, AccessError>,
    ) -> Result<R, AccessError> {
        // SAFETY: the word stays mapped while `segment` lives, and is only used atomically.
        let hazard = unsafe { self.hazard.as_ref() };
        hazard.store(self.place.number, Ordering::Relaxed);
        if self.is_fenced {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        let result = if self.is_there() { body(&self.memory) } else { Err(AccessError::Gone) };
        hazard.store(0, Ordering::Release);
        result
    }
}

impl Drop for RegionView {
    fn drop(&mut self) {
        self.segment.release(self.place.slot);
    }
}

impl std::fmt::Debug for RegionView {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RegionView").field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::heap::Heap;
    use landeck_memory::membership::{SlotRecord, SlotState};
    use landeck_memory::plan::SegmentPlan;

    fn segment() -> Segment {
        let plan =
            SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..SegmentPlan::new(1, 2) };
        Segment::local(&plan)
    }

    fn region(segment: &Segment, heap: &mut Heap, bytes: usize, number: u64) -> Region {
        let block = heap.allocate(Region::block_bytes(segment, bytes)).unwrap();
        Region::new(segment, 1, block, bytes, number).unwrap()
    }

    #[test]
    fn data_put_into_a_region_are_there_and_notified() {
        let segment = segment();
        let mut heap = Heap::of(&segment, 1).unwrap();
        let region = region(&segment, &mut heap, 1000, 5);
        let view = RegionView::open(&segment, 0, region.place()).unwrap();
        view.put(1, &[7u8]).unwrap();
        view.put_and_notify(8, &[9u64]).unwrap();
        view.put_and_notify(100, &[1u16; 450]).unwrap();
        let mut back = [0u16; 450];
        region.read(100, &mut back).unwrap();
        assert_eq!((back, region.notifications()), ([1; 450], 2));
        assert_eq!(region.word(8).unwrap().load(Ordering::Acquire), 9);
        region.write(0, &[3u64]).unwrap();
        let mut first = [0u64];
        view.get(0, &mut first).unwrap();
        assert_eq!(first, [3]);
        let before = view.with_word(0, |word| word.fetch_add(4, Ordering::AcqRel)).unwrap();
        assert_eq!((before, region.word(0).unwrap().load(Ordering::Acquire)), (3, 7));
    }

    #[test]
    fn accesses_outside_are_refused() {
        let segment = segment();
        let mut heap = Heap::of(&segment, 1).unwrap();
        let region = region(&segment, &mut heap, 20, 5);
        let view = RegionView::open(&segment, 0, region.place()).unwrap();
        assert_eq!(view.bytes(), 20);
        for (offset, length) in [(0, 21), (20, 1), (usize::MAX, 1)] {
            let refused = view.put(offset, &vec![0u8; length]).unwrap_err();
            assert!(matches!(refused, AccessError::Outside(_)), "{refused}");
        }
        assert!(matches!(view.with_word(4, |_| ()), Err(AccessError::Unaligned { offset: 4 })));
        assert!(matches!(view.with_word(16, |_| ()), Err(AccessError::Outside(_))));
        let place = region.place();
        for bad in [
            RegionPlace { slot: 2, ..place },
            RegionPlace { place: place.place + 1, ..place },
            RegionPlace { place: u64::MAX, ..place },
            RegionPlace { number: 6, ..place },
            RegionPlace { number: 0, ..place },
        ] {
            assert_eq!(
                RegionView::open(&segment, 0, bad).err(),
                Some(AccessError::Gone),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_withdrawn_region_is_gone_and_kept_while_it_is_accessed() {
        let segment = segment();
        let alive = SlotRecord { state: SlotState::Alive, ..SlotRecord::default() };
        segment.set_slot_record(0, alive);
        let mut heap = Heap::of(&segment, 1).unwrap();
        let unused = region(&segment, &mut heap, 100, 5);
        let view = RegionView::open(&segment, 0, unused.place()).unwrap();
        assert!(unused.withdraw(&segment).is_none());
        assert_eq!(view.put(0, &[1u8]).unwrap_err(), AccessError::Gone);
        let used = region(&segment, &mut heap, 100, 6);
        segment.hazard(0).store(6, Ordering::Release);
        let withdrawn = used.withdraw(&segment).unwrap();
        assert!(!withdrawn.is_free(&segment));
        segment.set_slot_record(0, SlotRecord { state: SlotState::Dead, ..alive });
        assert!(withdrawn.is_free(&segment));
    }

    #[test]
    fn a_claimed_length_never_leaves_the_heap() {
        let segment = segment();
        let mut heap = Heap::of(&segment, 1).unwrap();
        let region = region(&segment, &mut heap, 100, 5);
        region.memory.word(BYTES_WORD).store(u64::MAX, Ordering::Relaxed);
        let view = RegionView::open(&segment, 0, region.place()).unwrap();
        let room = (1 << 20) - region.place().place as usize - REGION_HEAD_BYTES;
        assert_eq!(view.bytes(), room);
        assert!(view.put(room, &[0u8]).is_err());
    }
}
