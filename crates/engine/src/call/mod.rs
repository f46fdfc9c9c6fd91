//! A collective operation as plans take it: its data in blocks.

use landeck_arithmetic::Operator;
use landeck_collectives::board_schedule::DepositCut;
use landeck_collectives::{Operation, Order, Plan, Task, WayRequest};
use landeck_kernel::Area;
use landeck_memory::NoMemory;

use crate::binding::{Blocks, Owned, Sizes};
use crate::call::data::{known_bytes_of_blocks, sets_aside};
use crate::call::facts::CallFacts;
use crate::call::fit::CallFit;
use crate::call::options::CallOptions;
use crate::call::value_type::ValueType;
use crate::fault::Fault;

pub(crate) mod check;
pub(crate) mod data;
pub(crate) mod facts;
pub(crate) mod fit;
pub(crate) mod options;
pub(crate) mod value_type;

/// One call of a collective operation by one member.
#[derive(Clone, Debug)]
pub struct Call {
    /// The kind of operation.
    pub(crate) operation: Operation,
    /// The rank of the root; 0 in operations without one.
    pub(crate) root: u32,
    /// The data that the member brings; nothing where they stand in the output.
    pub(crate) input: Blocks,
    /// The place of the result.
    pub(crate) output: Blocks,
    /// Combines the data, in operations that reduce.
    pub(crate) operator: Option<Operator>,
    /// The member's own contribution stands in its output (at the root of a scatter: its part
    /// stays in the input).
    pub(crate) in_place: bool,
    /// Blocks may differ in length, and not all members know all of them.
    pub(crate) is_varying: bool,
    /// The caller does not wait for it now, and may compute before it does.
    pub(crate) is_started: bool,
    /// Only looked at in checking mode.
    pub(crate) value_type: ValueType,
    /// How the operation is to be done.
    pub(crate) options: CallOptions,
    /// The memory of its output that there is none of: the member takes part with nothing, so that the
    /// others do not wait for it, and its output is only counted.
    pub(crate) missing: Option<NoMemory>,
    /// The block whose place was replaced, as this member disagrees with itself about its length, and the length that
    /// its output says. The others may know that one.
    pub(crate) told: Option<(u32, u64)>,
}

impl Call {
    /// A call without data.
    #[cfg(test)]
    pub(crate) fn new(operation: Operation, options: &CallOptions) -> Self {
        Self {
            operation,
            root: 0,
            input: Blocks::Nothing,
            output: Blocks::Nothing,
            operator: None,
            in_place: false,
            is_varying: false,
            is_started: false,
            value_type: ValueType::default(),
            options: options.clone(),
            missing: None,
            told: None,
        }
    }

    /// Returns the call as one whose caller does not wait now.
    #[must_use]
    pub fn started(self) -> Self {
        Self { is_started: true, ..self }
    }

    /// The task that all members' plans are made for.
    pub(crate) fn task(&self, segments: u32) -> Task {
        let is_free = !self.options.is_reproducible
            && self.operator.as_ref().is_none_or(Operator::is_commutative);
        Task {
            operation: self.operation,
            root: self.root,
            segments,
            order: match is_free {
                true if self.options.is_late => Order::Late,
                true => Order::Free,
                false => Order::Canonical,
            },
            // A call that sets its data aside brings them as if they had stood apart.
            in_place: self.in_place && !self.needs_copy(),
        }
    }

    /// The facts that decide the route of a call which goes on in the table of operations.
    pub(crate) fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            way: self.options.way.as_ref(),
            request: self.request(),
            fits_board_call: false,
        }
    }

    /// The facts that all members know alike, for the choice of the way.
    pub(crate) fn request(&self) -> WayRequest {
        WayRequest {
            operation: self.operation,
            bytes: (!self.is_varying).then(|| self.known_bytes()),
            commutative: self.operator.as_ref().is_none_or(Operator::is_commutative),
            reproducible: self.options.is_reproducible,
        }
    }

    /// Whether what goes out stands where what comes in will, and must be set aside.
    pub(crate) fn needs_copy(&self) -> bool {
        self.in_place && sets_aside(self.operation)
    }

    /// Sets the data aside that the result replaces, where it must be. The memory of the copy is to be kept.
    pub(crate) fn set_aside(&mut self) -> Option<Owned> {
        if !self.needs_copy() {
            return None;
        }
        let is_given = !matches!(self.input, Blocks::Nothing);
        let given = if is_given { &self.input } else { &self.output };
        let (owned, copy) = Owned::copy_of(given);
        (self.input, self.in_place) = (copy, false);
        Some(owned)
    }

    /// Bytes that all members know alike: of all data of one member, or of one block.
    pub(crate) fn known_bytes(&self) -> u64 {
        if self.is_varying {
            return 0;
        }
        known_bytes_of_blocks(self.operation, &self.input, &self.output)
    }

    /// The blocks of all members, where these differ in length and each member knows all of them.
    pub(crate) fn known_blocks(&self) -> Option<&Blocks> {
        match self.operation {
            Operation::ReduceScatter => Some(&self.input),
            Operation::AllGather if self.is_varying => Some(&self.output),
            _ => None,
        }
    }

    /// The length of a member's block, of which all members know it. The members find the same.
    pub(crate) fn known_block_bytes(&self, member: u32) -> u64 {
        match (self.told, self.known_blocks()) {
            (Some((block, bytes)), _) if block == member => bytes,
            (_, Some(blocks)) => blocks.bytes(member),
            _ => self.known_bytes(),
        }
    }

    /// The mean length of blocks that differ in length, where all members know all of them.
    pub(crate) fn mean_bytes(&self, size: u32) -> Option<u64> {
        let knows_all = self.is_varying && self.known_blocks().is_some();
        knows_all.then(|| mean((0..size).map(|member| self.known_block_bytes(member)), size))
    }

    /// Bytes that this member brings or gets, whichever is more.
    pub(crate) fn moved_bytes(&self) -> u64 {
        let bytes = |blocks: &Blocks| blocks.area(0, blocks.count() as u32).packed_bytes();
        bytes(&self.input).max(bytes(&self.output))
    }

    /// Input and output in so many segments, where they are one piece of data.
    pub(crate) fn in_segments(&self, segments: u32) -> (Blocks, Blocks) {
        let (input, output) = (self.input.clone(), self.output.clone());
        if !self.operation.has_segments() {
            return (input, output);
        }
        let unit_bytes = self.unit_bytes();
        (input.in_segments(segments, unit_bytes), output.in_segments(segments, unit_bytes))
    }

    /// Bytes that are never cut in two.
    pub(crate) fn unit_bytes(&self) -> u64 {
        self.operator.as_ref().map_or(1, |operator| operator.element_bytes() as u64)
    }

    /// How long blocks are that pass through this member.
    pub(crate) fn sizes(&self, segments: u32) -> Sizes {
        if let Some(blocks) = self.known_blocks() {
            return Sizes::Blocks(blocks.clone());
        }
        let known_bytes = self.known_bytes();
        if !self.operation.has_segments() {
            return Sizes::Equal(known_bytes);
        }
        Sizes::Cut(self.cut_of(known_bytes, segments))
    }

    /// How long blocks are in a plan that numbers those of members in its own way.
    pub(crate) fn sizes_in(&self, plan: &Plan, cut: DepositCut) -> Sizes {
        match self.known_blocks() {
            Some(blocks) => {
                let bytes = |number| {
                    let total_bytes = blocks.bytes(plan.member_of(number % plan.size));
                    (number, DepositCut { total_bytes, ..cut }.bytes(number / plan.size))
                };
                Sizes::Told((0..plan.size * plan.segments).map(bytes).collect())
            }
            None if cut.segments == 1 => Sizes::Equal(cut.total_bytes),
            None => Sizes::CutBlocks(cut, plan.size),
        }
    }

    /// How so many bytes of one piece of data are cut into segments.
    #[inline]
    pub(crate) fn cut_of(&self, total_bytes: u64, segments: u32) -> DepositCut {
        DepositCut { total_bytes, unit_bytes: self.unit_bytes(), segments }
    }

    /// Whether the data fit the operation, as far as this member can know.
    ///
    /// # Errors
    /// [`Fault::NoSuchRoot`], [`Fault::Buffer`], [`Fault::Counts`], [`Fault::Operator`].
    pub(crate) fn check(&self, size: u32, member: u32) -> Result<(), Fault> {
        let fit = CallFit {
            operation: self.operation,
            root: self.root,
            operator: self.operator.as_ref(),
            input: &self.input,
            output: &self.output,
            in_place: self.in_place,
        };
        fit.check(size, member)
    }

    /// Where blocks differ in length and this member disagrees with itself about its own: what comes of that
    /// goes into other memory, which is to be kept. So the others have of the call what is theirs.
    #[cold]
    pub(crate) fn without_own(&mut self, member: u32) -> Owned {
        let (from, into) = match self.operation {
            Operation::Scatter => (member, 0),
            Operation::AllToAll => (member, member),
            _ => (0, member),
        };
        let owned = Owned::new(self.input.bytes(from) as usize);
        let count = self.output.count() as u32;
        let mut areas: Vec<Area> = (0..count).map(|block| self.output.area(block, 1)).collect();
        if let Some(own) = areas.get_mut(into as usize) {
            self.told = Some((into, own.packed_bytes()));
            *own = Area::contiguous(owned.buffer());
        }
        self.output = Blocks::Areas(areas);
        owned
    }
}

/// The mean of the lengths of so many blocks.
pub(crate) fn mean(lengths: impl Iterator<Item = u64>, count: u32) -> u64 {
    lengths.fold(0u64, u64::saturating_add).div_ceil(u64::from(count.max(1)))
}
