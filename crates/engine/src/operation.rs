//! The description of a collective operation as one member asks for it.
//!
//! Every front describes its call here, once: the kind of operation, its root, the data on both sides, the operator
//! and the options. [`crate::route`] reads the description. The route that it decides for makes an
//! [`InlineCollective`] or a [`Call`] of it, so short data need no blocks and no allocation.

use std::borrow::Cow;
use std::ops::Range;

use landeck_arithmetic::Operator;
use landeck_collectives::{Operation, WayRequest};
use landeck_kernel::Area;
use landeck_memory::{Buffer, NoMemory};

use crate::binding::Blocks;
use crate::call::data::{
    CallBlocks, CallData, blocks_in_place, blocks_of_pieces, known_bytes_of_blocks,
    known_bytes_of_pieces, sets_aside,
};
use crate::call::facts::CallFacts;
use crate::call::fit::CallFit;
use crate::call::options::{CallOptions, Combination};
use crate::call::value_type::ValueType;
use crate::call::{Call, mean};
use crate::fault::Fault;
use crate::identity::GroupRef;
use crate::inline::{HEAD_BYTES, InlineCollective};
use crate::oversize::has_long_blocks;

/// A collective operation as one member asks for it.
pub struct CallDescription<'a> {
    /// The kind of operation.
    pub operation: Operation,
    /// The rank of the root; 0 in operations without one.
    pub root: u32,
    /// The memory on both sides.
    pub data: CallData<'a>,
    /// Combines the data, in operations that reduce.
    pub operator: Option<&'a Operator>,
    /// How the operation is to be done.
    pub options: Cow<'a, CallOptions>,
    /// The type of the values; only read in checking mode.
    pub value_type: ValueType,
    /// The memory of the output that there is none of. The member takes part with nothing then, so that the others
    /// do not wait for it, and its output is only counted.
    pub missing: Option<NoMemory>,
}

/// Describes the calls of one member whose memory lies in pieces.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The rank of the member.
    pub rank: usize,
    /// How the operation is to be done.
    pub options: &'a CallOptions,
    /// The type of the values.
    pub value_type: ValueType,
}

/// Parts of a buffer, one for each member, in items of so many bytes.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// All of the memory.
    pub buffer: Buffer,
    /// The items of each part.
    pub ranges: &'a [Range<usize>],
    /// Bytes of an item.
    pub item_bytes: usize,
}

impl<'a> CallDescription<'a> {
    /// An operation on these data, without a root or an operator.
    #[inline(always)]
    pub fn new(operation: Operation, data: CallData<'a>, options: &'a CallOptions) -> Self {
        Self {
            operation,
            root: 0,
            data,
            operator: None,
            options: Cow::Borrowed(options),
            value_type: ValueType::default(),
            missing: None,
        }
    }

    /// The operation with this root.
    #[inline(always)]
    #[must_use]
    pub fn rooted(self, root: usize) -> Self {
        Self { root: u32::try_from(root).unwrap_or(u32::MAX), ..self }
    }

    /// The form that the inline route polls. None where the data are too long or do not fit each other, and for
    /// calls that ask for something special.
    #[inline(always)]
    pub(crate) fn inline(&self, group: GroupRef<'_>) -> Option<InlineCollective<'a>> {
        let is_predefined = |operator: &Operator| operator.reduction().is_some();
        let is_usual = self.options.is_usual() && self.missing.is_none();
        if !is_usual || self.root >= group.size() || !self.operator.is_none_or(is_predefined) {
            return None;
        }
        let (operation, root) = (self.operation, self.root);
        match &self.data {
            CallData::Pieces { input, output } => {
                InlineCollective::new(operation, root, *input, *output, self.operator, group)
            }
            CallData::InPlace(data)
                if matches!(operation, Operation::Reduce | Operation::AllReduce) =>
            {
                InlineCollective::new(operation, root, *data, *data, self.operator, group)
            }
            CallData::Message(message) => {
                InlineCollective::of_message(operation, root, message, group)
            }
            CallData::InPlace(_) | CallData::Blocks(_) => None,
        }
    }

    /// The facts that decide the route of the call. Members may find different ones, but those that the table is
    /// asked with are the same at all.
    #[inline(always)]
    pub(crate) fn facts(
        &self,
        group: GroupRef<'_>,
        longest_on_board: impl FnOnce() -> u64,
    ) -> CallFacts<'_> {
        let is_varying = matches!(&self.data, CallData::Blocks(blocks) if blocks.is_varying);
        let fits_board_call = match &self.data {
            _ if self.missing.is_some() => false,
            CallData::InPlace(_) => !sets_aside(self.operation),
            CallData::Blocks(blocks) if blocks.in_place && sets_aside(self.operation) => false,
            CallData::Blocks(blocks) if blocks.is_varying => {
                !has_long_blocks(blocks, longest_on_board()) && !self.contradicts(blocks, group)
            }
            _ => true,
        };
        CallFacts {
            way: self.options.way.as_ref(),
            request: WayRequest {
                operation: self.operation,
                bytes: if is_varying { None } else { Some(self.known_bytes(group)) },
                commutative: self.operator.is_none_or(Operator::is_commutative),
                reproducible: self.options.is_reproducible,
            },
            fits_board_call,
        }
    }

    /// Bytes that all members know alike: of all data of one member, or of one block.
    #[inline(always)]
    fn known_bytes(&self, group: GroupRef<'_>) -> u64 {
        let size = group.size() as usize;
        let bytes = match &self.data {
            CallData::Pieces { input, output } => {
                known_bytes_of_pieces(self.operation, (input.len(), output.len()), size)
            }
            CallData::InPlace(data) => match self.operation {
                Operation::AllGather | Operation::AllToAll => data.len() / size.max(1),
                _ => data.len(),
            },
            CallData::Message(message) => HEAD_BYTES + message.room_bytes,
            CallData::Blocks(blocks) => {
                return known_bytes_of_blocks(self.operation, &blocks.input, &blocks.output);
            }
        };
        bytes as u64
    }

    /// The mean length of blocks that differ in length, where all members know all of them: [`Call::mean_bytes`].
    #[cold]
    pub(crate) fn mean_bytes(&self, size: u32) -> Option<u64> {
        let CallData::Blocks(blocks) = &self.data else { return None };
        let knows_all = blocks.is_varying && self.operation == Operation::AllGather;
        knows_all.then(|| mean((0..size).map(|member| blocks.output.bytes(member)), size))
    }

    /// Whether this member disagrees with itself about the length of its own block, which others do not know.
    fn contradicts(&self, blocks: &CallBlocks, group: GroupRef<'_>) -> bool {
        let fit = CallFit {
            operation: self.operation,
            root: self.root,
            operator: self.operator,
            input: &blocks.input,
            output: &blocks.output,
            in_place: blocks.in_place,
        };
        matches!(fit.check(group.size(), group.rank as u32), Err(Fault::Buffer { .. }))
    }

    /// The call as plans take it.
    ///
    /// # Errors
    /// [`Fault::NoMemory`] when there is no memory for the blocks of a message.
    pub fn into_call(self, group: GroupRef<'_>) -> Result<Call, Fault> {
        let blocks = match self.data {
            CallData::Blocks(blocks) => blocks,
            CallData::Message(message) => (message.in_blocks)()?,
            CallData::Pieces { input, output } => {
                blocks_of_pieces(self.operation, self.root, (input, output), group)
            }
            CallData::InPlace(data) => blocks_in_place(self.operation, data, group),
        };
        let CallBlocks { input, output, in_place, is_varying } = blocks;
        Ok(Call {
            operation: self.operation,
            root: self.root,
            input,
            output,
            operator: self.operator.cloned(),
            in_place,
            is_varying,
            is_started: false,
            value_type: self.value_type,
            options: self.options.into_owned(),
            missing: self.missing,
            told: None,
        })
    }
}

impl<'a> Caller<'a> {
    /// All members wait for each other.
    #[inline]
    pub fn barrier(self) -> CallDescription<'a> {
        self.on_pieces(Operation::Barrier, Buffer::EMPTY, Buffer::EMPTY)
    }

    /// The root sends its data to all.
    #[inline]
    pub fn broadcast(self, data: Buffer, root: usize) -> CallDescription<'a> {
        self.on_pieces(Operation::Broadcast, data, data).rooted(root)
    }

    /// The root collects a block of each member. The output is used at the root.
    #[inline]
    pub fn gather(self, input: Buffer, output: Buffer, root: usize) -> CallDescription<'a> {
        self.on_pieces(Operation::Gather, input, output).rooted(root)
    }

    /// The root gives a block to each member. The input is used at the root.
    #[inline]
    pub fn scatter(self, input: Buffer, output: Buffer, root: usize) -> CallDescription<'a> {
        self.on_pieces(Operation::Scatter, input, output).rooted(root)
    }

    /// All members collect a block of each member.
    #[inline]
    pub fn all_gather(self, input: Buffer, output: Buffer) -> CallDescription<'a> {
        self.on_pieces(Operation::AllGather, input, output)
    }

    /// All members collect a block of each member, and their own stands in its place.
    #[inline]
    pub fn all_gather_in_place(self, data: Buffer) -> CallDescription<'a> {
        self.call(Operation::AllGather, CallData::InPlace(data))
    }

    /// Each member gives a block to each member.
    #[inline]
    pub fn all_to_all(self, input: Buffer, output: Buffer) -> CallDescription<'a> {
        self.on_pieces(Operation::AllToAll, input, output)
    }

    /// Each member gives a block to each member; those of the others replace its own.
    #[inline]
    pub fn all_to_all_in_place(self, data: Buffer) -> CallDescription<'a> {
        self.call(Operation::AllToAll, CallData::InPlace(data))
    }

    /// An operation whose input and output are one piece of data: reduce (the output is used at the root), allreduce,
    /// the scans.
    #[inline]
    pub fn reduction(
        self,
        operation: Operation,
        input: Buffer,
        output: Buffer,
        how: &'a Combination,
        root: usize,
    ) -> CallDescription<'a> {
        self.on_pieces(operation, input, output).combining(how).rooted(root)
    }

    /// An operation with one piece of data that the result replaces.
    #[inline]
    pub fn reduction_in_place(
        self,
        operation: Operation,
        data: Buffer,
        how: &'a Combination,
    ) -> CallDescription<'a> {
        self.call(operation, CallData::InPlace(data)).combining(how)
    }

    /// The members combine their data, and each gets an equal block of the result.
    #[inline]
    pub fn reduce_scatter_block(
        self,
        input: Buffer,
        output: Buffer,
        how: &'a Combination,
    ) -> CallDescription<'a> {
        self.on_pieces(Operation::ReduceScatter, input, output).combining(how)
    }

    /// The members combine their data, and each gets a block of the result: of so many items as `counts` says.
    ///
    /// # Errors
    /// [`Fault::Buffer`] when the counts go beyond the input.
    pub fn reduce_scatter(
        self,
        input: Buffer,
        output: Buffer,
        counts: &[usize],
        item_bytes: usize,
        how: &'a Combination,
    ) -> Result<CallDescription<'a>, Fault> {
        let ranges = consecutive(counts);
        let input = Parts { buffer: input, ranges: &ranges, item_bytes };
        let input = input.blocks(Operation::ReduceScatter, "input")?;
        let blocks = CallBlocks::apart(input, Blocks::of(output));
        Ok(self.call(Operation::ReduceScatter, CallData::Blocks(blocks)).combining(how))
    }

    /// The root collects a block of any length of each member. The output is used at the root.
    ///
    /// # Errors
    /// [`Fault::Buffer`] when a part goes beyond its buffer.
    pub fn gather_varying(
        self,
        input: Buffer,
        output: Parts<'_>,
        root: usize,
    ) -> Result<CallDescription<'a>, Fault> {
        let output = self.at(root, output, Operation::Gather, "output")?;
        Ok(self.on_varying(Operation::Gather, Blocks::of(input), output).rooted(root))
    }

    /// The root gives a block of any length to each member. The input is used at the root.
    ///
    /// # Errors
    /// [`Fault::Buffer`] when a part goes beyond its buffer.
    pub fn scatter_varying(
        self,
        input: Parts<'_>,
        output: Buffer,
        root: usize,
    ) -> Result<CallDescription<'a>, Fault> {
        let input = self.at(root, input, Operation::Scatter, "input")?;
        Ok(self.on_varying(Operation::Scatter, input, Blocks::of(output)).rooted(root))
    }

    /// All members collect a block of any length of each member.
    ///
    /// # Errors
    /// [`Fault::Buffer`] when a part goes beyond its buffer.
    pub fn all_gather_varying(
        self,
        input: Buffer,
        output: Parts<'_>,
    ) -> Result<CallDescription<'a>, Fault> {
        let output = output.blocks(Operation::AllGather, "output")?;
        Ok(self.on_varying(Operation::AllGather, Blocks::of(input), output))
    }

    /// Each member gives a block of any length to each member.
    ///
    /// # Errors
    /// [`Fault::Buffer`] when a part goes beyond its buffer.
    pub fn all_to_all_varying(
        self,
        input: Parts<'_>,
        output: Parts<'_>,
    ) -> Result<CallDescription<'a>, Fault> {
        let input = input.blocks(Operation::AllToAll, "input")?;
        let output = output.blocks(Operation::AllToAll, "output")?;
        Ok(self.on_varying(Operation::AllToAll, input, output))
    }

    /// Each member gives a block of any length to each member, and every block lies as its area says.
    pub fn all_to_all_areas(self, input: Vec<Area>, output: Vec<Area>) -> CallDescription<'a> {
        self.on_varying(Operation::AllToAll, Blocks::Areas(input), Blocks::Areas(output))
    }

    #[inline(always)]
    fn on_pieces(self, operation: Operation, input: Buffer, output: Buffer) -> CallDescription<'a> {
        self.call(operation, CallData::Pieces { input, output })
    }

    fn on_varying(
        self,
        operation: Operation,
        input: Blocks,
        output: Blocks,
    ) -> CallDescription<'a> {
        self.call(operation, CallData::Blocks(CallBlocks::varying(input, output)))
    }

    #[inline(always)]
    fn call(self, operation: Operation, data: CallData<'a>) -> CallDescription<'a> {
        let described = CallDescription::new(operation, data, self.options);
        CallDescription { value_type: self.value_type, ..described }
    }

    /// These blocks at one member, none at the others.
    fn at(
        self,
        rank: usize,
        parts: Parts<'_>,
        operation: Operation,
        which: &'static str,
    ) -> Result<Blocks, Fault> {
        if self.rank == rank { parts.blocks(operation, which) } else { Ok(Blocks::Nothing) }
    }
}

impl<'a> CallDescription<'a> {
    /// The operation with this way to combine.
    #[inline(always)]
    fn combining(mut self, how: &'a Combination) -> Self {
        self.operator = Some(&how.operator);
        if let Cow::Borrowed(of_world) = self.options {
            self.options = how.options(of_world);
        }
        self
    }
}

impl Parts<'_> {
    /// The parts as the blocks of an operation.
    ///
    /// # Errors
    /// [`Fault::Buffer`] when a part goes beyond its buffer.
    pub fn blocks(self, operation: Operation, which: &'static str) -> Result<Blocks, Fault> {
        let buffer_bytes = self.buffer.len() as u64;
        let place = |range: &Range<usize>| {
            let start = range.start.saturating_mul(self.item_bytes);
            let end = range.end.saturating_mul(self.item_bytes);
            let needed_bytes = end as u64;
            if end > self.buffer.len() {
                return Err(Fault::Buffer { operation, which, buffer_bytes, needed_bytes });
            }
            Ok((start.min(end), end.saturating_sub(start)))
        };
        let places: Result<Vec<_>, Fault> = self.ranges.iter().map(place).collect();
        Ok(Blocks::Placed(self.buffer, places?))
    }
}

/// Ranges of so many items each, one behind the other.
pub(crate) fn consecutive(counts: &[usize]) -> Vec<Range<usize>> {
    let mut start = 0usize;
    let range = |&count: &usize| {
        let end = start.saturating_add(count);
        std::mem::replace(&mut start, end)..end
    };
    counts.iter().map(range).collect()
}
#[cfg(test)]
mod tests {
    use landeck_channel::Peer;
    use landeck_collectives::{BoardStyle, Way};

    use super::*;

    #[test]
    fn a_part_beyond_its_buffer_is_named() {
        let ranges = [0..2, 2..9];
        let parts = Parts { buffer: Buffer::EMPTY, ranges: &ranges[..], item_bytes: 4 };
        let fault = parts.blocks(Operation::Gather, "output").unwrap_err();
        assert!(matches!(fault, Fault::Buffer { buffer_bytes: 0, needed_bytes: 8, .. }));
    }

    #[test]
    fn counts_become_ranges() {
        assert_eq!(consecutive(&[2, 0, 3]), [0..2, 2..2, 2..5]);
    }

    const KINDS: [Operation; 10] = [
        Operation::Barrier,
        Operation::Broadcast,
        Operation::Gather,
        Operation::Scatter,
        Operation::AllGather,
        Operation::AllToAll,
        Operation::Reduce,
        Operation::AllReduce,
        Operation::Scan,
        Operation::ExclusiveScan,
    ];

    /// The lengths of input and output of a member, of so many bytes in each block.
    fn lengths(operation: Operation, size: usize, block_bytes: usize) -> (usize, usize) {
        let all = size * block_bytes;
        match operation {
            Operation::Barrier => (0, 0),
            Operation::Gather | Operation::AllGather => (block_bytes, all),
            Operation::Scatter => (all, block_bytes),
            Operation::AllToAll => (all, all),
            _ => (block_bytes, block_bytes),
        }
    }

    #[test]
    fn a_call_asks_the_table_as_its_description_does() {
        let members = (0..3).map(Peer).collect();
        let options = CallOptions::default();
        let memory = [0u8; 24];
        // SAFETY: nobody reads or writes the data: no operation begins.
        let buffer = unsafe { Buffer::of(&memory) };
        for (operation, rank) in
            KINDS.into_iter().flat_map(|kind| (0..3).map(move |rank| (kind, rank)))
        {
            let group = GroupRef { context: 0, members: &members, rank };
            let (input, output) = lengths(operation, 3, 8);
            let data =
                CallData::Pieces { input: buffer.part(0, input), output: buffer.part(0, output) };
            let asked = CallDescription::new(operation, data, &options).rooted(1);
            let inline = asked.inline(group).map(|inline| inline.block_bytes as u64);
            let described = asked.facts(group, || 0).request.bytes;
            let call = asked.into_call(group).unwrap();
            assert_eq!(described, call.request().bytes, "{operation:?}");
            assert!(inline.is_none_or(|bytes| Some(bytes) == described), "{operation:?}");
            assert!(call.check(3, rank as u32).is_ok(), "{operation:?}");
        }
    }

    #[test]
    fn a_description_with_wishes_has_no_inline_form() {
        let members = (0..2).map(Peer).collect();
        let group = GroupRef { context: 0, members: &members, rank: 0 };
        let usual = CallOptions::default();
        let has_inline = |options: &CallOptions, root, missing| {
            let data = CallData::Pieces { input: Buffer::EMPTY, output: Buffer::EMPTY };
            let asked = CallDescription::new(Operation::Broadcast, data, options).rooted(root);
            CallDescription { missing, ..asked }.inline(group).is_some()
        };
        assert!(has_inline(&usual, 1, None));
        assert!(!has_inline(&usual, 2, None), "the root is no member");
        assert!(!has_inline(&usual, 1, Some(NoMemory { bytes: 8 })));
        let board = Some(Way::Board(BoardStyle::Each));
        let wishes = [
            CallOptions { way: board, ..usual.clone() },
            CallOptions { is_checked: true, ..usual.clone() },
            CallOptions { is_late: true, ..usual.clone() },
        ];
        assert!(wishes.iter().all(|options| !has_inline(options, 1, None)));
        assert!(has_inline(&CallOptions { is_reproducible: true, ..usual.clone() }, 1, None));
    }

    #[test]
    fn a_member_that_contradicts_itself_about_its_own_block_makes_no_board_call() {
        let members = (0..2).map(Peer).collect();
        let group = GroupRef { context: 0, members: &members, rank: 0 };
        let options = CallOptions::default();
        let memory = [0u8; 64];
        // SAFETY: nobody reads or writes the data: no operation begins.
        let buffer = unsafe { Buffer::of(&memory) };
        let fits = |own_bytes, longest| {
            let output = Blocks::Placed(buffer, vec![(0, own_bytes), (16, 8)]);
            let blocks = CallBlocks::varying(Blocks::of(buffer.part(0, 16)), output);
            let data = CallData::Blocks(blocks);
            let asked = CallDescription::new(Operation::AllGather, data, &options);
            let facts = asked.facts(group, || longest);
            assert_eq!(facts.request.bytes, None, "not all members know the lengths");
            facts.fits_board_call
        };
        assert!(fits(16, 100));
        assert!(!fits(12, 100), "its own block has two lengths");
        assert!(!fits(16, 15), "it goes beside the board");
    }
}
