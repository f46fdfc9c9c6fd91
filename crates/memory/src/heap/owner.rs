//! The owner's end of a heap: allocating, lending, taking back.

use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::{Block, Given, Handle, Lent, Tie};
use super::control::{CONTROL_BYTES, Control, OWNER, READERS_MAX, control_of};
use super::returns;
use super::space::{CLASSES, GRAIN, Spans, class_above, class_below, class_bytes};
use crate::plan::PAGE_BYTES;
use crate::segment::Segment;
use crate::sync;

/// Blocks given away that are checked for each block needed.
const GIVEN_LOOKS: usize = 4;

/// Data of blocks from this size on begin in the middle of a page.
const MIDDLE_BYTES_MIN: u64 = 8 << 10;

/// The heap of one process. One per slot and process.
pub struct Heap {
    segment: Segment,
    slot: u32,
    /// Where the heap begins in the segment.
    start: u64,
    /// Where the reserve begins in the heap.
    reserve_start: u64,
    /// The part for all blocks.
    common: HeapPart,
    /// The part for deposits, used if the common part has no room.
    reserve: HeapPart,
    records: Vec<Record>,
    /// Blocks of each class that were given away, and may have come back.
    given: Box<[VecDeque<u32>]>,
    /// Numbers of records without a block.
    vacant: Vec<u32>,
    /// The generation that was given out last.
    generation: u32,
}

/// A part of a heap, whose blocks stay in it.
struct HeapPart {
    spans: Spans,
    /// Free blocks of each class, the last one back on top: its pages are warm.
    free: Box<[Vec<u32>]>,
    bytes_in_use: u64,
}

/// One of the two parts of a heap.
#[derive(Clone, Copy)]
enum Which {
    Common,
    Reserve,
}

/// The owner's private record of one block.
struct Record {
    state: State,
    /// Where it begins, in bytes from the start of the heap.
    offset: u64,
    /// Bytes of data that it can hold.
    capacity: u64,
    generation: u32,
    /// The slots of its readers; their place here is their bit among the holders.
    readers: Vec<u32>,
    /// It was given to its one reader, which has the owner's bit.
    is_given: bool,
    /// A process may yet write its link word, so it stays a block at this offset for ever.
    pinned: bool,
    tie: Arc<Tie>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No block: its room was joined with its neighbours'.
    Vacant,
    /// A block without holders.
    Free,
    /// A block with holders.
    Out,
}

/// There is no room in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the shared heap has no room for {wanted} bytes ({in_use} of {limit} are in use): free blocks, wait until readers return theirs, or raise the heap's limit"
)]
pub struct HeapFull {
    /// Bytes asked for.
    pub wanted: u64,
    /// Bytes in blocks with holders.
    pub in_use: u64,
    /// Bytes that there may be.
    pub limit: u64,
}

/// Why a block cannot be lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LendError {
    /// More than [`READERS_MAX`].
    #[error(
        "a block can be lent to {READERS_MAX} readers at a time, not to {0}: copy it for the others"
    )]
    TooManyReaders(usize),
    /// The block was allocated in another job's heap.
    #[error("the block belongs to the heap of another job: copy it into a block of this one")]
    AnotherHeap,
}

impl Heap {
    /// The heap of `slot`, whose process this is. None when there is no such slot, or when this
    /// handle's memory has given out that heap before: two owners would give out the same room.
    pub fn of(segment: &Segment, slot: u32) -> Option<Self> {
        if slot >= segment.plan().slots() || !segment.take_heap(slot) {
            return None;
        }
        let (reserve, end) = (segment.plan().reserve(), segment.plan().heap_bytes_per_process);
        Some(Self {
            common: HeapPart::new(0..reserve),
            reserve: HeapPart::new(reserve..end),
            start: segment.plan().heap(slot),
            reserve_start: reserve,
            segment: segment.clone(),
            slot,
            records: Vec::new(),
            given: vec![VecDeque::new(); CLASSES].into_boxed_slice(),
            vacant: Vec::new(),
            // Not where the slot's last process began: its references must not fit ours.
            generation: crate::system::now_ns() as u32,
        })
    }

    /// A block of so many bytes. Its content is anything.
    ///
    /// # Errors
    /// [`HeapFull`].
    #[inline]
    pub fn allocate(&mut self, bytes: usize) -> Result<Block, HeapFull> {
        match self.find(bytes as u64) {
            Some(number) => Ok(self.hand_out(number, bytes as u64)),
            None => Err(self.full(bytes as u64)),
        }
    }

    /// Allocates a block for a deposit, from the reserve too if need be: messages that fill the heap otherwise may be
    /// received only after the operation.
    ///
    /// # Errors
    /// [`HeapFull`].
    #[inline]
    pub fn allocate_deposit(&mut self, bytes: usize) -> Result<Block, HeapFull> {
        match self.find(bytes as u64) {
            Some(number) => Ok(self.hand_out(number, bytes as u64)),
            None => self.allocate_reserved(bytes as u64),
        }
    }

    #[cold]
    fn allocate_reserved(&mut self, bytes: u64) -> Result<Block, HeapFull> {
        if let Some(number) = self.find_reserved(bytes) {
            return Ok(self.hand_out(number, bytes));
        }
        let limit = self.limit() + self.segment.plan().heap_bytes_per_process - self.reserve_start;
        Err(HeapFull { wanted: bytes, in_use: self.bytes_in_use(), limit })
    }

    /// Lends a block to the processes of these slots; `filled` of its bytes are what they are to
    /// see at once. Reader number n, in this order, is to get [`Lent::place`] of n. No slot may be
    /// one that [`Heap::reclaim_from`] was already called for.
    ///
    /// # Errors
    /// [`LendError`]; the block is freed.
    #[inline]
    pub fn lend(&mut self, block: Block, readers: &[u32], filled: u64) -> Result<Lent, LendError> {
        if readers.len() > READERS_MAX {
            return Err(LendError::TooManyReaders(readers.len()));
        }
        let Block(handle) = block;
        self.note_readers(&handle, readers)?;
        let filled = filled.min(handle.window);
        let control = handle.control();
        control.filled.0.store(filled, Ordering::Relaxed);
        control.drained.0.store(0, Ordering::Relaxed);
        control.holders.hand_out(handle.generation, OWNER | bits(readers.len()));
        Ok(Lent::new(handle, filled))
    }

    /// Gives a block, all of whose bytes it is to see, to the process of one slot: what lending does
    /// with less said, since the owner keeps no hold on the block. As for [`Heap::lend`], no slot that
    /// [`Heap::reclaim_from`] was already called for.
    ///
    /// # Errors
    /// [`LendError::AnotherHeap`]; the block is freed.
    #[inline]
    pub fn give(&mut self, block: Block, reader: u32) -> Result<Given, LendError> {
        let Block(handle) = block;
        self.note_readers(&handle, &[reader])?;
        let control = handle.control();
        // What stands there already is not written again: its line need not travel.
        if control.filled.0.load(Ordering::Relaxed) != handle.window {
            control.filled.0.store(handle.window, Ordering::Relaxed);
        }
        let record = &mut self.records[handle.number as usize];
        record.is_given = true;
        self.given[class_below(record.capacity)].push_back(handle.number);
        Ok(Given::new(handle))
    }

    /// Takes a block back from its reader, for a place that never reached it.
    pub fn withdraw(&mut self, given: Given) -> Block {
        let handle = given.taken_back();
        if let Some(record) = self.records.get_mut(handle.number as usize) {
            record.is_given = false;
            let given = &mut self.given[class_below(record.capacity)];
            // Most often it was the last one given.
            if let Some(at) = given.iter().rposition(|&number| number == handle.number) {
                given.remove(at);
            }
        }
        Block(handle)
    }

    /// Finds a block of this size for the next [`Heap::allocate`], if there is room for one. It helps after a block was
    /// given away, while no process waits for this one: finding blocks that readers gave back takes two line transfers.
    pub fn prepare(&mut self, bytes: usize) {
        if bytes as u64 > self.segment.plan().heap_bytes_per_process {
            return;
        }
        let class = class_above(bytes as u64);
        if self.common.free[class].is_empty()
            && !self.take_back_given(class)
            && let Some(number) = self.carve(Which::Common, class_bytes(class))
        {
            self.common.free[class].push(number);
        }
        if let Some(&number) = self.common.free[class].last() {
            let begin = self.begin(self.records[number as usize].offset);
            let data = begin.as_ptr().wrapping_add(CONTROL_BYTES as usize);
            sync::prefetch_to_write_at(data.cast());
        }
    }

    /// Records the slots that may read a block from now on.
    #[inline]
    fn note_readers(&mut self, handle: &Handle, readers: &[u32]) -> Result<(), LendError> {
        let record = self.records.get_mut(handle.number as usize);
        let record = record.filter(|record| Arc::ptr_eq(&record.tie, &handle.tie));
        let record = record.ok_or(LendError::AnotherHeap)?;
        record.readers.clear();
        record.readers.extend_from_slice(readers);
        readers.iter().for_each(|&reader| self.segment.reference_slot(self.slot, reader));
        Ok(())
    }

    /// Takes back the blocks that were returned since the last time.
    pub fn collect(&mut self) {
        self.collect_stack();
        for class in 0..CLASSES {
            for _ in 0..self.given[class].len() {
                self.take_next_given(class);
            }
        }
    }

    /// Takes back one block of a class that was given away and has come back, if there is one among the
    /// few that are looked at now.
    #[inline]
    fn take_back_given(&mut self, class: usize) -> bool {
        (0..GIVEN_LOOKS.min(self.given[class].len())).any(|_| self.take_next_given(class))
    }

    /// Looks at the one that was given away first, or not looked at for longest; true if it is free now.
    #[inline]
    fn take_next_given(&mut self, class: usize) -> bool {
        let Some(number) = self.given[class].pop_front() else { return false };
        let record = &self.records[number as usize];
        if record.state != State::Out || !record.is_given {
            return false; // it came back another way
        }
        // It will be handed out again before long.
        sync::prefetch_to_write(&self.control(record.offset).holders);
        let is_back = self.take_back(number);
        if !is_back {
            self.given[class].push_back(number);
        }
        is_back
    }

    fn collect_stack(&mut self) {
        let mut next = returns::take(self.segment.return_word(self.slot));
        // Whatever the links say, no more entries than blocks.
        for _ in 0..self.records.len() {
            let Some(number) = next else { return };
            let Some(record) = self.records.get(number as usize) else { return };
            if record.state == State::Vacant {
                return;
            }
            next = returns::below(&self.control(record.offset).link);
            if !record.is_given {
                self.take_back(number);
            }
        }
    }

    /// Counts everything lent to the process of a slot as returned; to be called when it is dead.
    pub fn reclaim_from(&mut self, dead_slot: u32) {
        for number in 0..self.records.len() as u32 {
            let record = &self.records[number as usize];
            if record.state == State::Out && record.readers.contains(&dead_slot) {
                self.reclaim_block(number, dead_slot);
            }
        }
        self.forget_returned();
    }

    /// Bytes in blocks with holders, control lines included.
    pub fn bytes_in_use(&self) -> u64 {
        self.common.bytes_in_use + self.reserve.bytes_in_use
    }

    /// The most memory that the heap will use but for deposits, free blocks included.
    pub fn limit(&self) -> u64 {
        self.common.spans.limit()
    }

    /// Sets the limit, at most to the address space that there is for it. What was used before
    /// stays usable.
    pub fn set_limit(&mut self, bytes: u64) {
        self.common.spans.set_limit(bytes.min(self.reserve_start));
    }

    /// A free block of at least so many bytes, the easiest way that works.
    #[inline]
    fn find(&mut self, bytes: u64) -> Option<u32> {
        if bytes > self.segment.plan().heap_bytes_per_process {
            return None;
        }
        let class = class_above(bytes);
        if let Some(number) = self.common.free[class].pop() {
            return Some(number);
        }
        self.collect_stack();
        self.take_back_given(class);
        if let Some(number) = self.common.free[class].pop() {
            return Some(number);
        }
        self.carve(Which::Common, class_bytes(class)).or_else(|| self.find_harder(bytes, class))
    }

    /// A free block of the reserve of at least `bytes` bytes. The caller has collected the returned blocks before.
    fn find_reserved(&mut self, bytes: u64) -> Option<u32> {
        if bytes > self.segment.plan().heap_bytes_per_process {
            return None;
        }
        let class = class_above(bytes);
        if let Some(number) = self.reserve.free[class].pop() {
            return Some(number);
        }
        self.join_free_blocks(Which::Reserve);
        self.divide(Which::Reserve, bytes, class)
    }

    #[cold]
    fn find_harder(&mut self, bytes: u64, class: usize) -> Option<u32> {
        self.sweep();
        if let Some(number) = self.common.free[class].pop() {
            return Some(number);
        }
        self.join_free_blocks(Which::Common);
        self.divide(Which::Common, bytes, class)
    }

    /// A block of a part whose free room was joined.
    fn divide(&mut self, which: Which, bytes: u64, class: usize) -> Option<u32> {
        let exact = bytes.max(1).next_multiple_of(GRAIN);
        let new = self.carve(which, class_bytes(class)).or_else(|| self.carve(which, exact));
        new.or_else(|| self.any(which, class))
    }

    /// A free block of a larger class: only pinned ones are left by now.
    fn any(&mut self, which: Which, class: usize) -> Option<u32> {
        self.part(which).free[class..].iter_mut().find_map(Vec::pop)
    }

    #[inline]
    fn part(&mut self, which: Which) -> &mut HeapPart {
        match which {
            Which::Common => &mut self.common,
            Which::Reserve => &mut self.reserve,
        }
    }

    /// The part in which a block begins.
    #[inline]
    fn part_at(&mut self, offset: u64) -> &mut HeapPart {
        let is_common = offset < self.reserve_start;
        self.part(if is_common { Which::Common } else { Which::Reserve })
    }

    /// Makes a new block.
    #[cold]
    fn carve(&mut self, which: Which, capacity: u64) -> Option<u32> {
        let offset = self.part(which).place(capacity)?;
        if let Some(number) = self.vacant.pop() {
            let record = &mut self.records[number as usize];
            (record.offset, record.capacity, record.state) = (offset, capacity, State::Free);
            return Some(number);
        }
        let number = u32::try_from(self.records.len()).ok().filter(|&number| number < u32::MAX);
        let Some(number) = number else {
            self.part(which).spans.give(offset, CONTROL_BYTES + capacity);
            return None;
        };
        let (segment, slot) = (self.segment.clone(), self.slot);
        self.records.push(Record {
            state: State::Free,
            offset,
            capacity,
            generation: 0,
            readers: Vec::new(),
            is_given: false,
            pinned: false,
            tie: Arc::new(Tie { segment, slot, held: AtomicBool::new(false) }),
        });
        Some(number)
    }

    /// Gives a free block its next use.
    #[inline]
    fn hand_out(&mut self, number: u32, bytes: u64) -> Block {
        self.generation = self.generation.wrapping_add(1);
        let record = &mut self.records[number as usize];
        record.state = State::Out;
        record.generation = self.generation;
        record.readers.clear();
        record.is_given = false;
        record.tie.held.store(true, Ordering::Relaxed);
        let (offset, tie) = (record.offset, record.tie.clone());
        let capacity = record.capacity;
        self.part_at(offset).bytes_in_use += CONTROL_BYTES + capacity;
        let begin = self.begin(offset);
        self.control(offset).number.store(number, Ordering::Relaxed);
        if self.segment.plan().is_hardened {
            self.control(offset).offset.store(offset, Ordering::Relaxed);
        }
        self.control(offset).holders.hand_out(self.generation, OWNER);
        let generation = self.generation;
        Block(Handle { tie, begin, number, generation, offset, window: bytes, is_given: false })
    }

    /// Takes a block back if it has no holders. True if so.
    #[inline]
    fn take_back(&mut self, number: u32) -> bool {
        let record = &self.records[number as usize];
        let holders = &self.control(record.offset).holders;
        let returned = record.state == State::Out
            && holders.who(record.generation, u32::MAX) == 0
            && !record.tie.held.load(Ordering::Acquire);
        if returned {
            let (offset, capacity) = (record.offset, record.capacity);
            let part = self.part_at(offset);
            part.bytes_in_use -= CONTROL_BYTES + capacity;
            part.free[class_below(capacity)].push(number);
            self.records[number as usize].state = State::Free;
        }
        returned
    }

    /// Clears the bits of a dead reader of a block.
    fn reclaim_block(&mut self, number: u32, dead_slot: u32) {
        let record = &self.records[number as usize];
        let holders = &self.control(record.offset).holders;
        let dead = record.readers.iter().zip(0..).filter(|&(&slot, _)| slot == dead_slot);
        let last = dead.fold(false, |last, (_, reader)| {
            let bit = if record.is_given { OWNER } else { 1 << reader };
            last | holders.give_back(record.generation, bit)
        });
        // When the last bit was not cleared here, the holder that cleared it may be about to push.
        if self.take_back(number) && !last {
            self.pin(number);
        }
    }

    /// Looks at every block that is out: an entry of the return stack may have been lost.
    pub(super) fn sweep(&mut self) {
        for number in 0..self.records.len() as u32 {
            if self.take_back(number) {
                self.pin(number);
            }
        }
        self.forget_returned();
    }

    /// Looks no more for blocks that came back by another way: a block is looked for once.
    fn forget_returned(&mut self) {
        let Self { given, records, .. } = self;
        for numbers in given {
            numbers.retain(|&number| {
                let record = &records[number as usize];
                record.state == State::Out && record.is_given
            });
        }
    }

    /// Pins a block that its last reader may yet put on the return stack; a block that was given away never gets there.
    fn pin(&mut self, number: u32) {
        let record = &mut self.records[number as usize];
        record.pinned |= !record.is_given;
    }

    /// Gives the room of the free blocks of a part back to its spans, where it can become larger ones.
    fn join_free_blocks(&mut self, which: Which) {
        let Self { common, reserve, records, vacant, .. } = self;
        let HeapPart { free, spans, .. } = match which {
            Which::Common => common,
            Which::Reserve => reserve,
        };
        for class in free.iter_mut() {
            class.retain(|&number| {
                let record = &mut records[number as usize];
                if !record.pinned {
                    spans.give(record.offset, CONTROL_BYTES + record.capacity);
                    record.state = State::Vacant;
                    vacant.push(number);
                }
                record.pinned
            });
        }
    }

    #[inline]
    fn control(&self, offset: u64) -> &Control {
        // SAFETY: `control_of` finds lines that are mapped (`place` checks it) and begin with a line, as
        // blocks and heaps do; they are only used atomically.
        unsafe { control_of(&self.segment, self.slot, self.begin(offset)).as_ref() }
    }

    /// Where the block at an offset begins.
    #[inline]
    fn begin(&self, offset: u64) -> NonNull<u8> {
        self.segment.place(self.start + offset, CONTROL_BYTES)
    }

    #[cold]
    fn full(&self, wanted: u64) -> HeapFull {
        HeapFull { wanted, in_use: self.common.bytes_in_use, limit: self.limit() }
    }
}

impl HeapPart {
    /// One between these offsets, of which nothing was given out.
    fn new(places: Range<u64>) -> Self {
        let free = vec![Vec::new(); CLASSES].into_boxed_slice();
        Self { spans: Spans::new(places), free, bytes_in_use: 0 }
    }

    /// Takes the room of a new block. The data of long ones begin in the middle of a page: the
    /// processor copies slowly to places that lie, within their pages, a few bytes behind the
    /// source, and long buffers of programs begin near the start of a page.
    fn place(&mut self, capacity: u64) -> Option<u64> {
        let bytes = CONTROL_BYTES + capacity;
        let wide = (capacity >= MIDDLE_BYTES_MIN).then(|| self.spans.take(bytes + PAGE_BYTES));
        let Some(start) = wide.flatten() else { return self.spans.take(bytes) };
        let middle = start + CONTROL_BYTES + PAGE_BYTES / 2;
        let before = middle.next_multiple_of(PAGE_BYTES) - middle;
        let offset = start + before;
        if before > 0 {
            self.spans.give(start, before);
        }
        self.spans.give(offset + bytes, PAGE_BYTES - before);
        Some(offset)
    }
}

/// The bits of so many readers.
#[inline]
fn bits(readers: usize) -> u32 {
    (1 << readers) - 1
}
