//! Calls over memory in one piece: what the operations of the Rust API ask for.

use std::ops::Range;

use landeck_collectives::Operation;
use landeck_kernel::Area;
use landeck_memory::Buffer;

use crate::binding::Blocks;
use crate::call::{Call, Combination, Manner};
use crate::fault::Fault;
use crate::value_type::ValueType;

/// The member that calls, and how it wants its operations done.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The rank of the member.
    pub rank: usize,
    /// How many members there are.
    pub size: usize,
    /// How the operation is to be done.
    pub manner: &'a Manner,
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

impl Caller<'_> {
    /// All members wait for each other.
    pub fn barrier(self) -> Call {
        self.call(Operation::Barrier)
    }

    /// The root sends its data to all.
    pub fn broadcast(self, data: Buffer, root: usize) -> Call {
        let output = whole(data);
        Call { output, ..self.rooted(Operation::Broadcast, root) }
    }

    /// The root collects a block of each member. The output is used at the root.
    pub fn gather(self, input: Buffer, output: Buffer, root: usize) -> Call {
        let output = self.at(root, equal(output, input.len()));
        Call { input: whole(input), output, ..self.rooted(Operation::Gather, root) }
    }

    /// The root gives a block to each member. The input is used at the root.
    pub fn scatter(self, input: Buffer, output: Buffer, root: usize) -> Call {
        let input = self.at(root, equal(input, output.len()));
        Call { input, output: whole(output), ..self.rooted(Operation::Scatter, root) }
    }

    /// All members collect a block of each member.
    pub fn all_gather(self, input: Buffer, output: Buffer) -> Call {
        let (input, output) = (whole(input), equal(output, input.len()));
        Call { input, output, ..self.call(Operation::AllGather) }
    }

    /// All members collect a block of each member, and their own stands in its place.
    pub fn all_gather_in_place(self, data: Buffer) -> Call {
        let output = equal(data, data.len() / self.size.max(1));
        Call { output, in_place: true, ..self.call(Operation::AllGather) }
    }

    /// Each member gives a block to each member.
    pub fn all_to_all(self, input: Buffer, output: Buffer) -> Call {
        let block_bytes = input.len() / self.size.max(1);
        let (input, output) = (equal(input, block_bytes), equal(output, block_bytes));
        Call { input, output, ..self.call(Operation::AllToAll) }
    }

    /// Each member gives a block to each member; those of the others replace its own.
    pub fn all_to_all_in_place(self, data: Buffer) -> Call {
        let output = equal(data, data.len() / self.size.max(1));
        Call { output, in_place: true, ..self.call(Operation::AllToAll) }
    }

    /// Operations whose input and output are one piece of data: reduce (the output is used at the
    /// root), allreduce, the scans.
    pub fn reduction(
        self,
        operation: Operation,
        input: Buffer,
        output: Buffer,
        how: &Combination,
        root: usize,
    ) -> Call {
        let is_everywhere = operation != Operation::Reduce;
        let output = if is_everywhere { whole(output) } else { self.at(root, whole(output)) };
        Call { input: whole(input), output, ..self.combining(operation, how, root) }
    }

    /// An operation with one piece of data that the result replaces.
    pub fn reduction_in_place(self, operation: Operation, data: Buffer, how: &Combination) -> Call {
        let output = whole(data);
        Call { output, in_place: true, ..self.combining(operation, how, 0) }
    }

    /// The members combine their data, and each gets an equal block of the result.
    pub fn reduce_scatter_block(self, input: Buffer, output: Buffer, how: &Combination) -> Call {
        let (input, output) = (equal(input, output.len()), whole(output));
        Call { input, output, ..self.combining(Operation::ReduceScatter, how, 0) }
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
        how: &Combination,
    ) -> Result<Call, Fault> {
        let ranges = consecutive(counts);
        let input = Parts { buffer: input, ranges: &ranges, item_bytes };
        let input = input.blocks(Operation::ReduceScatter, "input")?;
        let output = whole(output);
        Ok(Call { input, output, ..self.combining(Operation::ReduceScatter, how, 0) })
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
    ) -> Result<Call, Fault> {
        let operation = Operation::Gather;
        let output =
            if self.rank == root { output.blocks(operation, "output")? } else { Blocks::Nothing };
        let call = Call { input: whole(input), output, ..self.rooted(operation, root) };
        Ok(Call { is_varying: true, ..call })
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
    ) -> Result<Call, Fault> {
        let operation = Operation::Scatter;
        let input =
            if self.rank == root { input.blocks(operation, "input")? } else { Blocks::Nothing };
        let call = Call { input, output: whole(output), ..self.rooted(operation, root) };
        Ok(Call { is_varying: true, ..call })
    }

    /// All members collect a block of any length of each member.
    ///
    /// # Errors
    /// [`Fault::Buffer`] when a part goes beyond its buffer.
    pub fn all_gather_varying(self, input: Buffer, output: Parts<'_>) -> Result<Call, Fault> {
        let operation = Operation::AllGather;
        let (input, output) = (whole(input), output.blocks(operation, "output")?);
        Ok(Call { input, output, is_varying: true, ..self.call(operation) })
    }

    /// Each member gives a block of any length to each member.
    ///
    /// # Errors
    /// [`Fault::Buffer`] when a part goes beyond its buffer.
    pub fn all_to_all_varying(self, input: Parts<'_>, output: Parts<'_>) -> Result<Call, Fault> {
        let operation = Operation::AllToAll;
        let (input, output) =
            (input.blocks(operation, "input")?, output.blocks(operation, "output")?);
        Ok(Call { input, output, is_varying: true, ..self.call(operation) })
    }

    /// Each member gives a block of any length to each member, and every block lies as its area says.
    pub fn all_to_all_areas(self, input: Vec<Area>, output: Vec<Area>) -> Call {
        let (input, output) = (Blocks::Areas(input), Blocks::Areas(output));
        Call { input, output, is_varying: true, ..self.call(Operation::AllToAll) }
    }

    fn call(self, operation: Operation) -> Call {
        Call { value_type: self.value_type, ..Call::new(operation, self.manner) }
    }

    fn rooted(self, operation: Operation, root: usize) -> Call {
        Call { root: u32::try_from(root).unwrap_or(u32::MAX), ..self.call(operation) }
    }

    fn combining(self, operation: Operation, how: &Combination, root: usize) -> Call {
        let operator = Some(how.operator.clone());
        Call { operator, manner: how.manner(self.manner), ..self.rooted(operation, root) }
    }

    /// These blocks at one member, none at the others.
    fn at(self, rank: usize, blocks: Blocks) -> Blocks {
        if self.rank == rank { blocks } else { Blocks::Nothing }
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

fn whole(buffer: Buffer) -> Blocks {
    Blocks::whole(Area::contiguous(buffer))
}

fn equal(buffer: Buffer, block_bytes: usize) -> Blocks {
    Blocks::Equal { buffer, block_bytes }
}

#[cfg(test)]
mod tests {
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
}
