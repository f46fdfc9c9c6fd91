//! What a member brings to its board in one operation, and where its results go.

use landeck_collectives::{Cells, Operation, Store};
use landeck_kernel::Area;

use super::binding::{Placement, Sizes};
use super::board::BlockMemory;
use super::call::Call;

/// The memory of one call, as the board's steps see it.
pub(crate) struct Hands {
    input: Placement,
    output: Placement,
    sizes: Sizes,
    /// How long blocks are, only those who have them know.
    is_varying: bool,
    has_table: bool,
}

impl Hands {
    /// The memory of a call, with its data in so many segments.
    pub(crate) fn of(call: &Call, segments: u32, size: u32, member: u32) -> Self {
        let (operation, sizes) = (call.operation, call.sizes(segments));
        let (input, output) = call.cut(segments);
        let input = Placement::input(operation, input, size, member);
        let output = Placement::output(operation, output, size, member);
        let is_divided = matches!(operation, Operation::Scatter | Operation::AllToAll);
        let is_varying = call.is_varying;
        Self { input, output, sizes, is_varying, has_table: is_varying && is_divided }
    }
}

impl BlockMemory for Hands {
    #[inline]
    fn area(&self, cells: Cells) -> Area {
        match cells.store {
            Store::Input => self.input.area(cells),
            Store::Output => self.output.area(cells),
            Store::Scratch(_) => Area::EMPTY,
        }
    }

    #[inline]
    fn bytes(&self, cells: Cells) -> usize {
        if self.is_varying {
            return self.area(cells).packed_bytes() as usize;
        }
        self.sizes.bytes_of(cells.first, cells.count) as usize
    }

    fn has_table(&self) -> bool {
        self.has_table
    }
}
