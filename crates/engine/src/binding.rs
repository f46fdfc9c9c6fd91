//! Where the blocks of a plan's stores lie in memory.
//!
//! A plan names blocks by numbers that all members share; here each becomes an area of the
//! caller's memory, or of memory that the operation has for itself. Several blocks become one
//! area: the data are sent from where they lie, and received to where they belong.

use std::collections::HashMap;

use landeck_collectives::board_schedule::DepositCut;
use landeck_collectives::{Cells, Operation, Plan, Store};
use landeck_kernel::Area;
use landeck_memory::{Buffer, NoMemory, room};

/// Blocks in memory, counted from 0.
#[derive(Clone, Debug)]
pub enum Blocks {
    /// None.
    Nothing,
    /// One piece of data; in segments where a cut says so.
    Whole(Area, DepositCut),
    /// Equal blocks, one behind the other.
    Equal {
        /// All of them.
        buffer: Buffer,
        /// The length of each.
        block_bytes: usize,
        /// How many there are, which those without a byte do not show.
        count: u32,
    },
    /// Blocks of one buffer: where each begins, and its bytes.
    Placed(Buffer, Vec<(usize, usize)>),
    /// Blocks anywhere.
    Areas(Vec<Area>),
}

impl Blocks {
    /// One block in one piece.
    pub fn of(buffer: Buffer) -> Self {
        Self::whole(Area::contiguous(buffer))
    }

    /// One block.
    pub fn whole(area: Area) -> Self {
        let cut = DepositCut { total_bytes: area.packed_bytes(), unit_bytes: 1, segments: 1 };
        Self::Whole(area, cut)
    }

    /// One piece of data in segments of whole units; other blocks stay as they are.
    pub(crate) fn in_segments(self, segments: u32, unit_bytes: u64) -> Self {
        match self {
            Self::Whole(area, cut) => Self::Whole(area, DepositCut { segments, unit_bytes, ..cut }),
            other => other,
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Whole(_, cut) => cut.segments as usize,
            Self::Equal { count, .. } => *count as usize,
            Self::Placed(_, places) => places.len(),
            Self::Areas(areas) => areas.len(),
        }
    }

    /// Bytes of one.
    #[inline]
    pub(crate) fn bytes(&self, block: u32) -> u64 {
        match self {
            Self::Whole(area, cut) if cut.segments == 1 && block == 0 => area.packed_bytes(),
            Self::Equal { buffer, block_bytes, count } if block < *count => {
                (*block_bytes).min(buffer.len()) as u64
            }
            _ => self.area(block, 1).packed_bytes(),
        }
    }

    /// Whether any block has so many bytes as is asked for.
    #[inline]
    pub(crate) fn any(&self, is: impl Fn(u64) -> bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Whole(area, _) => is(area.packed_bytes()),
            Self::Equal { block_bytes, .. } => is(*block_bytes as u64),
            Self::Placed(_, places) => places.iter().any(|&(_, length)| is(length as u64)),
            Self::Areas(areas) => areas.iter().any(|area| is(area.packed_bytes())),
        }
    }

    /// Whether every block lies in one piece.
    fn is_contiguous(&self) -> bool {
        match self {
            Self::Nothing | Self::Equal { .. } | Self::Placed(..) => true,
            Self::Whole(area, _) => area.as_buffer().is_some(),
            Self::Areas(areas) => areas.iter().all(|area| area.as_buffer().is_some()),
        }
    }

    /// Consecutive blocks as one buffer, where it is plain that they lie in one piece.
    ///
    /// It comes in registers. An [`Area`] is put together in memory and read back at once in wider
    /// words, which a processor does only after everything written before has arrived, words on the
    /// board that others are polling included: that took as long as copying 16 KiB.
    #[inline]
    pub(crate) fn plain(&self, first: u32, count: u32) -> Option<Buffer> {
        match self {
            Self::Whole(area, cut) if cut.segments == 1 && first == 0 && count > 0 => {
                area.as_buffer()
            }
            Self::Equal { buffer, block_bytes, .. } => {
                let length = block_bytes.saturating_mul(count as usize);
                Some(buffer.part(block_bytes.saturating_mul(first as usize), length))
            }
            _ => None,
        }
    }

    /// Consecutive blocks as one area. What is not there has no bytes.
    #[inline]
    pub(crate) fn area(&self, first: u32, count: u32) -> Area {
        let (from, until) = (first as usize, first as usize + count as usize);
        match self {
            Self::Nothing => Area::EMPTY,
            Self::Whole(area, cut) if cut.segments == 1 => {
                if first == 0 && count > 0 {
                    area.clone()
                } else {
                    Area::EMPTY
                }
            }
            Self::Whole(area, cut) => {
                let start = cut.start(first);
                area.part(start, cut.start(first.saturating_add(count)).saturating_sub(start))
            }
            Self::Equal { .. } => self.plain(first, count).map_or(Area::EMPTY, Area::contiguous),
            Self::Placed(buffer, places) => {
                joined(*buffer, places.get(from..until).unwrap_or_default())
            }
            Self::Areas(areas) => {
                Area::joined(areas.get(from..until).unwrap_or_default().iter().cloned())
            }
        }
    }
}

/// Places of one buffer as one area; those that follow each other become one piece.
fn joined(buffer: Buffer, places: &[(usize, usize)]) -> Area {
    if let [(start, length)] = *places {
        return Area::contiguous(buffer.part(start, length));
    }
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for &(start, length) in places {
        match pieces.last_mut() {
            Some((first, before)) if *first + *before == start => *before += length,
            _ => pieces.push((start, length)),
        }
    }
    let area = |(start, length)| Area::contiguous(buffer.part(start, length));
    Area::joined(pieces.into_iter().map(area))
}

/// How long a block is that only passes through.
#[derive(Clone, Debug)]
pub(crate) enum Sizes {
    /// Each the same.
    Equal(u64),
    /// Segments.
    Cut(DepositCut),
    /// Segments of blocks, of which there are so many.
    CutBlocks(DepositCut, u32),
    /// As these blocks.
    Blocks(Blocks),
    /// As others have said.
    Told(HashMap<u32, u64>),
}

impl Sizes {
    fn bytes(&self, block: u32) -> u64 {
        match self {
            Self::Equal(bytes) => *bytes,
            Self::Cut(cut) => cut.bytes(block),
            Self::CutBlocks(cut, count) => cut.bytes(block / count),
            Self::Blocks(blocks) => blocks.bytes(block),
            Self::Told(told) => told.get(&block).copied().unwrap_or(0),
        }
    }
}

/// Blocks with the numbers that plans give them: every `stride`th from `base` on.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    blocks: Blocks,
    base: u32,
    stride: u32,
    /// Where plans number the blocks of members in another order, or in segments.
    renumbering: Option<Renumbering>,
}

/// The numbers of blocks that stand in the order of members, each in one piece.
#[derive(Clone, Debug)]
struct Renumbering {
    /// The block in each place.
    blocks: Vec<u32>,
    /// The segments of each block.
    cut: DepositCut,
}

impl Placement {
    /// The blocks that a member brings to an operation.
    pub(crate) fn input(operation: Operation, blocks: Blocks, size: u32, member: u32) -> Self {
        let (base, stride) = first_and_stride(operation, false, size, member);
        Self { blocks, base, stride, renumbering: None }
    }

    /// The blocks that a member has of an operation in the end.
    pub(crate) fn output(operation: Operation, blocks: Blocks, size: u32, member: u32) -> Self {
        let (base, stride) = first_and_stride(operation, true, size, member);
        Self { blocks, base, stride, renumbering: None }
    }

    /// The blocks on one side of a member whose plan numbers blocks of members in its own way.
    pub(crate) fn renumbered(
        plan: &Plan,
        blocks: Blocks,
        is_output: bool,
        cut: DepositCut,
    ) -> Self {
        let own = plan.place_among_blocks(plan.member);
        let (base, stride) = first_and_stride(plan.operation, is_output, plan.size, own);
        let places = match (plan.operation, is_output) {
            // One block, whose segments are as far apart as there are members.
            (Operation::Gather | Operation::AllGather, false)
            | (Operation::Scatter | Operation::ReduceScatter, true) => 1,
            _ => plan.size,
        };
        let stride = if places == 1 { plan.size } else { stride };
        let in_order = |place| if places == 1 { place } else { plan.member_of(place) };
        let renumbering = Renumbering { blocks: (0..places).map(in_order).collect(), cut };
        Self { blocks, base, stride, renumbering: Some(renumbering) }
    }

    #[inline]
    pub(crate) fn area(&self, cells: Cells) -> Area {
        let Some(first) = cells.first.checked_sub(self.base) else { return Area::EMPTY };
        let first = first / self.stride;
        let Some(Renumbering { blocks, cut }) = &self.renumbering else {
            return self.blocks.area(first, cells.count);
        };
        let area = |number: u32| {
            let (place, segment) = (number % blocks.len() as u32, number / blocks.len() as u32);
            let block = self.blocks.area(blocks[place as usize], 1);
            let cut = DepositCut { total_bytes: block.packed_bytes(), ..*cut };
            if cut.segments == 1 {
                block
            } else {
                block.part(cut.start(segment), cut.bytes(segment))
            }
        };
        Area::joined((first..first + cells.count).map(area))
    }
}

/// The number that plans give to the first block of a member's input or output, and the distance
/// to the next.
#[inline]
pub(crate) fn first_and_stride(
    operation: Operation,
    is_output: bool,
    size: u32,
    member: u32,
) -> (u32, u32) {
    match (operation, is_output) {
        (Operation::Gather | Operation::AllGather, false)
        | (Operation::Scatter | Operation::ReduceScatter, true) => (member, 1),
        (Operation::AllToAll, false) => (member.saturating_mul(size), 1),
        (Operation::AllToAll, true) => (member, size),
        _ => (0, 1),
    }
}

/// Memory of the operation's own. Where there is none, it has a length and no bytes: a member whose
/// memory is missing takes part with nothing, and only counts them.
#[derive(Debug)]
pub(crate) struct Owned {
    /// Never touched but through the buffer.
    _words: Vec<u64>,
    buffer: Buffer,
    missing: Option<NoMemory>,
}

/// So little memory is always there, or the process ends: in it members tell each other how long
/// their blocks are, which the others need.
const LITTLE_BYTES: usize = 64 << 10;

impl Owned {
    /// So many bytes of zero; [`Owned::missing`] says whether they are there.
    pub(crate) fn new(bytes: usize) -> Self {
        let words = bytes.div_ceil(size_of::<u64>());
        match room::zeroes(words) {
            Ok(words) => Self::of(words, bytes),
            Err(_) if bytes <= LITTLE_BYTES => Self::of(vec![0; words], bytes),
            Err(no_memory) => {
                // SAFETY: its users ask first whether it is missing, and only count the bytes then.
                let buffer = unsafe { Buffer::missing(bytes) };
                Self { _words: Vec::new(), buffer, missing: Some(no_memory) }
            }
        }
    }

    fn of(mut words: Vec<u64>, bytes: usize) -> Self {
        // SAFETY: the words stay where they are as long as this lives, and this lives as long as
        // the operation's requests; nobody looks at the words themselves.
        let buffer = unsafe { Buffer::of_mut(&mut words[..]) }.part(0, bytes);
        Self { _words: words, buffer, missing: None }
    }

    /// The memory that there is none of, if so.
    pub(crate) fn missing(&self) -> Option<NoMemory> {
        self.missing
    }

    /// All of it.
    pub(crate) fn buffer(&self) -> Buffer {
        self.buffer
    }

    /// A packed copy of blocks.
    pub(crate) fn copy_of(blocks: &Blocks) -> (Self, Blocks) {
        let areas: Vec<Area> =
            (0..blocks.count() as u32).map(|block| blocks.area(block, 1)).collect();
        let bytes: u64 = areas.iter().map(Area::packed_bytes).sum();
        let owned = Self::new(usize::try_from(bytes).unwrap_or(usize::MAX));
        let mut places = Vec::with_capacity(areas.len());
        let mut start = 0;
        for area in &areas {
            let length = area.packed_bytes() as usize;
            if owned.missing.is_none() {
                area.copy_to(&Area::contiguous(owned.buffer.part(start, length)));
            }
            places.push((start, length));
            start += length;
        }
        let copies = match blocks {
            Blocks::Whole(_, cut) => Blocks::Whole(Area::contiguous(owned.buffer), *cut),
            _ => Blocks::Placed(owned.buffer, places),
        };
        (owned, copies)
    }
}

/// Scratch stores of a plan: for each its blocks in rising order, with place and length.
#[derive(Debug)]
struct Scratch {
    stores: Vec<Vec<Room>>,
    owned: Owned,
}

#[derive(Clone, Copy, Debug)]
struct Room {
    block: u32,
    start: usize,
    bytes: usize,
}

/// Stores begin at cache lines.
const LINE_BYTES: usize = 64;

impl Scratch {
    fn new(plan: &Plan, sizes: &Sizes) -> Self {
        let mut end = 0usize;
        let mut stores = Vec::with_capacity(plan.scratch.len());
        for store in &plan.scratch {
            end = end.next_multiple_of(LINE_BYTES);
            let mut rooms = Vec::new();
            for block in store.iter().flat_map(|cells| cells.blocks()) {
                let bytes = sizes.bytes(block) as usize;
                rooms.push(Room { block, start: end, bytes });
                end = end.saturating_add(bytes);
            }
            stores.push(rooms);
        }
        Self { stores, owned: Owned::new(end) }
    }

    fn area(&self, store: u32, cells: Cells) -> Area {
        let rooms = self.stores.get(store as usize).map_or(&[][..], Vec::as_slice);
        let from = rooms.partition_point(|room| room.block < cells.first);
        let Some(first) = rooms.get(from) else { return Area::EMPTY };
        let within = rooms[from..].iter().take_while(|room| cells.blocks().contains(&room.block));
        let length = within.map(|room| room.bytes).sum();
        Area::contiguous(self.owned.buffer.part(first.start, length))
    }
}

/// All stores of one member in one operation.
#[derive(Debug)]
pub(crate) struct Binding {
    input: Placement,
    output: Placement,
    scratch: Scratch,
    /// How long each block is, wherever it lies.
    sizes: Sizes,
    /// Memory in the place of the caller's, if any.
    owned: Vec<Owned>,
    /// Where the output of a reduction is to go in the end, when it lies apart there.
    unpack: Option<(Area, Area)>,
}

impl Binding {
    /// Binds the stores of a plan.
    pub(crate) fn new(plan: &Plan, input: Placement, output: Placement, sizes: Sizes) -> Self {
        let scratch = Scratch::new(plan, &sizes);
        Self { input, output, scratch, sizes, owned: Vec::new(), unpack: None }
    }

    /// The memory that there is none of, if any is missing.
    pub(crate) fn missing(&self) -> Option<NoMemory> {
        self.owned.iter().chain([&self.scratch.owned]).find_map(Owned::missing)
    }

    /// Keeps memory that stands in the place of the caller's.
    pub(crate) fn keep(&mut self, owned: Owned) {
        self.owned.push(owned);
    }

    /// Keeps what stood in the place of the caller's memory in another binding of the same call.
    pub(crate) fn keep_all_of(&mut self, other: Self) {
        self.owned.extend(other.owned);
    }

    /// Data that are combined are combined in one piece: where they lie apart, they are packed first.
    pub(crate) fn pack(&mut self) {
        if !self.input.blocks.is_contiguous() {
            let (owned, blocks) = Owned::copy_of(&self.input.blocks);
            self.input.blocks = blocks;
            self.owned.push(owned);
        }
        if !self.output.blocks.is_contiguous() {
            let (owned, blocks) = Owned::copy_of(&self.output.blocks);
            let before = std::mem::replace(&mut self.output.blocks, blocks);
            let all = before.area(0, before.count() as u32);
            self.unpack = Some((Area::contiguous(owned.buffer()), all));
            self.owned.push(owned);
        }
    }

    /// Puts the output where the caller wants it, if it is not there yet.
    pub(crate) fn unpack(&mut self) {
        if let Some((from, to)) = self.unpack.take()
            && self.missing().is_none()
        {
            from.copy_to(&to);
        }
    }

    /// Blocks of one store.
    pub(crate) fn area(&self, cells: Cells) -> Area {
        match cells.store {
            Store::Input => self.input.area(cells),
            Store::Output => self.output.area(cells),
            Store::Scratch(store) => self.scratch.area(store, cells),
        }
    }

    /// Bytes of blocks, which may be another member's and have no place here.
    pub(crate) fn bytes(&self, cells: Cells) -> usize {
        let bytes: u64 = cells.blocks().map(|block| self.sizes.bytes(block)).sum();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Blocks of a message.
    pub(crate) fn message(&self, cells: &[Cells]) -> Area {
        match *cells {
            [only] => self.area(only),
            _ => Area::joined(cells.iter().map(|&cells| self.area(cells))),
        }
    }

    /// The 64-bit number in each block of the scratch stores and the output, by block.
    pub(crate) fn numbers(&self) -> HashMap<u32, u64> {
        let scratch = (0..).zip(&self.scratch.stores).flat_map(|(store, rooms)| {
            rooms.iter().map(move |room| Cells::new(Store::Scratch(store), room.block, 1))
        });
        let (base, stride) = (self.output.base, self.output.stride);
        let output = (0..self.output.blocks.count() as u32)
            .map(|number| Cells::new(Store::Output, base + number * stride, 1));
        let number = |cells: Cells| {
            let mut word = [0; 8];
            self.area(cells).one_piece()?.copy_to_slice(&mut word);
            Some((cells.first, u64::from_ne_bytes(word)))
        };
        scratch.chain(output).filter_map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(bytes: &[u8]) -> Buffer {
        // SAFETY: the tests only read, and keep the bytes.
        unsafe { Buffer::of(bytes) }
    }

    fn packed(area: &Area) -> Vec<u8> {
        let owned = Owned::new(area.packed_bytes() as usize);
        area.copy_to(&Area::contiguous(owned.buffer()));
        owned.buffer().bytes().to_vec()
    }

    #[test]
    fn segments_are_whole_units_and_all_of_it() {
        for (total_bytes, unit_bytes, segments) in [(0, 8, 3), (40, 8, 3), (7, 1, 9), (24, 24, 2)] {
            let cut = DepositCut { total_bytes, unit_bytes, segments };
            assert_eq!((0..segments).map(|segment| cut.bytes(segment)).sum::<u64>(), total_bytes);
            assert!((0..segments).all(|segment| cut.start(segment).is_multiple_of(unit_bytes)));
        }
    }

    #[test]
    fn blocks_become_one_area() {
        let bytes: Vec<u8> = (0..12).collect();
        let whole = Area::contiguous(buffer(&bytes));
        let forms = [
            Blocks::whole(whole.clone()).in_segments(4, 3),
            Blocks::Equal { buffer: buffer(&bytes), block_bytes: 3, count: 4 },
            Blocks::Placed(buffer(&bytes), vec![(0, 3), (3, 3), (6, 3), (9, 3)]),
            Blocks::Areas((0..4).map(|block| whole.part(block * 3, 3)).collect()),
        ];
        for blocks in forms {
            assert_eq!(packed(&blocks.area(1, 2)), bytes[3..9], "{blocks:?}");
            assert_eq!((blocks.count(), blocks.bytes(3)), (4, 3));
            assert_eq!(blocks.area(4, 1).packed_bytes(), 0);
            let (_owned, copy) = Owned::copy_of(&blocks);
            assert_eq!(packed(&copy.area(2, 2)), bytes[6..12]);
        }
    }

    #[test]
    fn equal_blocks_without_a_byte_are_as_many_as_others() {
        let blocks = Blocks::Equal { buffer: Buffer::EMPTY, block_bytes: 0, count: 3 };
        let (_owned, copy) = Owned::copy_of(&blocks);
        assert_eq!([blocks.count(), copy.count()], [3, 3]);
        assert_eq!([blocks.bytes(2), copy.bytes(2)], [0, 0]);
    }

    #[test]
    fn blocks_stand_in_the_order_of_members_whatever_a_plan_calls_them() {
        let bytes: Vec<u8> = (0..12).collect();
        let blocks = || Blocks::Equal { buffer: buffer(&bytes), block_bytes: 4, count: 3 };
        let cut = DepositCut { total_bytes: 4, unit_bytes: 1, segments: 2 };
        let plan = |operation| Plan {
            operation,
            size: 3,
            member: 2,
            root: 2,
            segments: 2,
            steps: Vec::new(),
            scratch: Vec::new(),
            board: Vec::new(),
            order: vec![0, 2, 1],
        };
        let gather = Placement::renumbered(&plan(Operation::Gather), blocks(), true, cut);
        assert_eq!(packed(&gather.area(Cells::new(Store::Output, 0, 3))), [0, 1, 8, 9, 4, 5]);
        assert_eq!(packed(&gather.area(Cells::new(Store::Output, 4, 1))), [10, 11]);
        let own = Blocks::of(buffer(&bytes[..4]));
        let own = Placement::renumbered(&plan(Operation::Gather), own, false, cut);
        assert_eq!(packed(&own.area(Cells::new(Store::Input, 1, 1))), [0, 1]);
        assert_eq!(packed(&own.area(Cells::new(Store::Input, 4, 1))), [2, 3]);
        let whole = DepositCut { segments: 1, ..cut };
        let exchange = Plan { segments: 1, ..plan(Operation::AllToAll) };
        let input = Placement::renumbered(&exchange, blocks(), false, whole);
        assert_eq!(packed(&input.area(Cells::new(Store::Input, 4, 1))), bytes[8..]);
        let output = Placement::renumbered(&exchange, blocks(), true, whole);
        assert_eq!(packed(&output.area(Cells::new(Store::Output, 7, 1))), bytes[4..8]);
    }

    #[test]
    fn an_exchange_numbers_blocks_by_sender_and_receiver() {
        let bytes: Vec<u8> = (0..6).collect();
        let blocks = || Blocks::Equal { buffer: buffer(&bytes), block_bytes: 2, count: 3 };
        let input = Placement::input(Operation::AllToAll, blocks(), 3, 1);
        let output = Placement::output(Operation::AllToAll, blocks(), 3, 1);
        assert_eq!(packed(&input.area(Cells::new(Store::Input, 3, 3))), bytes);
        assert_eq!(packed(&output.area(Cells::new(Store::Output, 7, 1))), bytes[4..]);
    }
}
