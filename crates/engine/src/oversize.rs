//! Blocks that are too long for the board, in operations whose blocks differ in length: they go as
//! messages beside it.
//!
//! The deposit of a member is bounded, and of such an operation nobody knows all lengths. But the giver and the taker
//! of a block both know its length, and all members find the same limit; so each
//! block is looked at by itself: up to the limit it goes over the board, beyond it from member to
//! member. Nothing is agreed upon, no room is waited for, and a member without a long block notices nothing.
//!
//! On the board a placeholder stands for a long block: a short one of a length that no other block has there, since
//! blocks of that length go beside the board, too. So members that disagree find that there, and a member that expects
//! something else knows that a message comes, which has to be taken.

use landeck_collectives::Operation;
use landeck_kernel::{Area, Wanted};
use landeck_memory::NoMemory;

use crate::binding::{Blocks, Owned};
use crate::board::call::RefusedBlock;
use crate::call::Call;
use crate::call::data::CallBlocks;
use crate::fault::Fault;
use crate::group::GroupState;

/// How long what stands on the board for a block beside it is. No block of numbers is so long; other blocks
/// that are go beside the board.
pub(super) const PLACEHOLDER_BYTES: usize = 251;

/// A long block: the other member, and where the block lies here.
pub(super) struct LongBlock {
    pub(super) member: u32,
    pub(super) area: Area,
}

/// The long blocks of one call.
#[derive(Default)]
pub(super) struct OversizeBlocks {
    /// The blocks that this member gives.
    given: Vec<LongBlock>,
    /// The blocks that it gets.
    taken: Vec<LongBlock>,
    /// The memory of what stands for blocks: only kept.
    owned: Vec<Owned>,
}

impl OversizeBlocks {
    /// Takes the blocks that are too long for the board out of a call of this member, and puts in what
    /// stands for them. None where there are none.
    pub(super) fn out_of(
        call: &mut Call,
        longest: u64,
        (size, member): (u32, u32),
    ) -> Option<Box<Self>> {
        let is_long = any_long(&call.input, longest) || any_long(&call.output, longest);
        if !call.is_varying || !is_long {
            return None;
        }
        let mut beside = Box::<Self>::default();
        let (operation, root) = (call.operation, call.root);
        // In place, one's own block stands where it belongs.
        let goes_to = |to: &u32| !call.in_place || *to != member;
        let to_all = |area: &Area| {
            let block = |member| LongBlock { member, area: area.clone() };
            (0..size).filter(goes_to).map(block).collect::<Vec<_>>()
        };
        let (input, given) = beside.replaced(&call.input, longest);
        for (block, area) in given {
            match operation {
                Operation::AllGather => beside.given.extend(to_all(&area)),
                Operation::Gather => beside.given.push(LongBlock { member: root, area }),
                _ if goes_to(&block) => beside.given.push(LongBlock { member: block, area }),
                _ => {}
            }
        }
        let (output, taken) = beside.replaced(&call.output, longest);
        for (block, area) in taken {
            let from = if operation == Operation::Scatter { root } else { block };
            if goes_to(&from) {
                beside.taken.push(LongBlock { member: from, area });
            } else if operation == Operation::AllGather {
                beside.given.extend(to_all(&area));
            }
        }
        (call.input, call.output) = (input, output);
        Some(beside)
    }

    /// The blocks with what stands for the long ones, and these: number and place.
    fn replaced(&mut self, blocks: &Blocks, longest: u64) -> (Blocks, Vec<(u32, Area)>) {
        if !blocks.any(|bytes| goes_beside(bytes, longest)) {
            return (blocks.clone(), Vec::new());
        }
        let mut areas: Vec<Area> =
            (0..blocks.count() as u32).map(|block| blocks.area(block, 1)).collect();
        let long = |area: &&mut Area| goes_beside(area.packed_bytes(), longest);
        let owned = Owned::new(PLACEHOLDER_BYTES * areas.iter_mut().filter(long).count());
        let mut replaced = Vec::new();
        for (block, place) in (0..).zip(&mut areas).filter(|(_, area)| long(area)) {
            let start = PLACEHOLDER_BYTES * replaced.len();
            let stand_in = Area::contiguous(owned.buffer().part(start, PLACEHOLDER_BYTES));
            replaced.push((block, std::mem::replace(place, stand_in)));
        }
        self.owned.push(owned);
        (Blocks::Areas(areas), replaced)
    }

    /// The memory for what stands for blocks, if there is none.
    pub(super) fn missing(&self) -> Option<NoMemory> {
        self.owned.iter().find_map(Owned::missing)
    }

    /// The blocks to send and to receive, the first time that it is asked.
    pub(super) fn begin(&mut self) -> (Vec<LongBlock>, Vec<LongBlock>) {
        (std::mem::take(&mut self.given), std::mem::take(&mut self.taken))
    }
}

/// Where members have brought long blocks and this one expects short ones: the messages that come with them.
/// If the fault is about such a block, it gets the least length that this has.
#[cold]
pub(super) fn long_instead(
    group: &GroupState,
    tag: u32,
    refused: &[RefusedBlock],
    fault: &mut Fault,
) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for block in refused.iter().filter(|block| block.bytes == PLACEHOLDER_BYTES) {
        if let Fault::Length { member, operation, message_bytes, .. } = fault
            && *member == block.member
        {
            *message_bytes = group.longest_on_board(*operation) + 1;
        }
        let source = group.place.members.get(block.member as usize).map(|peer| peer.0);
        wanted.push(Wanted { context: group.place.collective_context, source, tag: Some(tag) });
    }
    wanted
}

/// Whether any of these blocks, which differ in length, goes beside the board.
#[inline]
pub(crate) fn has_long_blocks(blocks: &CallBlocks, longest: u64) -> bool {
    any_long(&blocks.input, longest) || any_long(&blocks.output, longest)
}

#[inline]
fn any_long(blocks: &Blocks, longest: u64) -> bool {
    blocks.any(|bytes| goes_beside(bytes, longest))
}

#[inline]
fn goes_beside(bytes: u64, longest: u64) -> bool {
    bytes > longest || bytes == PLACEHOLDER_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::options::CallOptions;
    use landeck_memory::Buffer;

    const SIZE: u32 = 3;
    const ROOT: u32 = 1;
    const LONGEST: u64 = 300;

    /// Bytes of the block from one member for another.
    fn length(operation: Operation, from: u32, to: u32) -> usize {
        let to = if operation == Operation::AllGather { 0 } else { to };
        180 * from as usize + 210 * to as usize
    }

    /// The call of a member whose memory is this.
    fn call(operation: Operation, member: u32, in_place: bool, memory: &[u8]) -> Call {
        // SAFETY: nobody reads or writes but for what stands for blocks, which is memory of the call's.
        let buffer = unsafe { Buffer::of(memory) };
        let row = |length: &dyn Fn(u32) -> usize| {
            let places = (0..SIZE).map(|other| (0, length(other)));
            Blocks::Placed(buffer, places.collect())
        };
        let one = |bytes| Blocks::whole(Area::contiguous(buffer.part(0, bytes)));
        let bytes = |from, to| length(operation, from, to);
        let (is_root, is_own) = (member == ROOT, in_place && member == ROOT);
        let (input, output) = match operation {
            Operation::Gather if is_own => (Blocks::Nothing, row(&|from| bytes(from, ROOT))),
            Operation::Gather if is_root => {
                (one(bytes(ROOT, ROOT)), row(&|from| bytes(from, ROOT)))
            }
            Operation::Gather => (one(bytes(member, ROOT)), Blocks::Nothing),
            Operation::Scatter if is_own => (row(&|to| bytes(ROOT, to)), Blocks::Nothing),
            Operation::Scatter if is_root => (row(&|to| bytes(ROOT, to)), one(bytes(ROOT, ROOT))),
            Operation::Scatter => (Blocks::Nothing, one(bytes(ROOT, member))),
            Operation::AllGather if in_place => (Blocks::Nothing, row(&|from| bytes(from, 0))),
            Operation::AllGather => (one(bytes(member, 0)), row(&|from| bytes(from, 0))),
            _ => (row(&|to| bytes(member, to)), row(&|from| bytes(from, member))),
        };
        let in_place = in_place && (is_root || operation == Operation::AllGather);
        let call = Call::new(operation, &CallOptions::default());
        Call { root: ROOT, input, output, in_place, is_varying: true, ..call }
    }

    #[test]
    fn blocks_given_beside_the_board_are_the_blocks_taken_there() {
        use Operation::{AllGather, AllToAll, Gather, Scatter};
        let memory = vec![0u8; 1000];
        for (operation, in_place) in [
            (Gather, false),
            (Gather, true),
            (Scatter, false),
            (Scatter, true),
            (AllGather, false),
            (AllGather, true),
            (AllToAll, false),
        ] {
            let (mut given, mut taken) = (Vec::new(), Vec::new());
            for member in 0..SIZE {
                let mut call = call(operation, member, in_place, &memory);
                let Some(mut beside) = OversizeBlocks::out_of(&mut call, LONGEST, (SIZE, member))
                else {
                    continue;
                };
                let (gives, takes) = beside.begin();
                let bytes = |block: &LongBlock| block.area.packed_bytes();
                given.extend(gives.iter().map(|block| (member, block.member, bytes(block))));
                taken.extend(takes.iter().map(|block| (block.member, member, bytes(block))));
                let is_long = |bytes| bytes > LONGEST;
                let stays = call.input.any(is_long) || call.output.any(is_long);
                assert!(!stays, "{operation:?}: something stays");
            }
            let takes_part = |from: u32, to: u32| match operation {
                Gather => to == ROOT,
                Scatter => from == ROOT,
                _ => true,
            };
            let mut expected = Vec::new();
            for (from, to) in (0..SIZE).flat_map(|from| (0..SIZE).map(move |to| (from, to))) {
                let bytes = length(operation, from, to) as u64;
                if takes_part(from, to) && bytes > LONGEST && !(in_place && from == to) {
                    expected.push((from, to, bytes));
                }
            }
            given.sort_unstable();
            taken.sort_unstable();
            assert_eq!((&given, &taken), (&expected, &expected), "{operation:?} {in_place}");
        }
    }

    #[test]
    fn only_what_stands_for_a_block_beside_the_board_has_its_length_there() {
        let memory = vec![0u8; 1000];
        // SAFETY: nobody reads or writes.
        let buffer = unsafe { Buffer::of(&memory) };
        let places =
            [10, PLACEHOLDER_BYTES, PLACEHOLDER_BYTES - 1].map(|length| (0, length)).to_vec();
        let output = Blocks::Placed(buffer, places);
        let own = Blocks::whole(Area::contiguous(buffer.part(0, 10)));
        let call = Call::new(Operation::Gather, &CallOptions::default());
        let mut call = Call { input: own, output, is_varying: true, ..call };
        let (_, taken) = OversizeBlocks::out_of(&mut call, 500, (SIZE, 0)).unwrap().begin();
        assert_eq!(taken.iter().map(|block| block.member).collect::<Vec<_>>(), [1]);
        assert_eq!(call.output.bytes(1), PLACEHOLDER_BYTES as u64);
    }
}
