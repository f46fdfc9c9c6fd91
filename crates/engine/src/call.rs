//! What any front asks for: an operation, where its data lie, how it is to be done.

use landeck_arithmetic::{Operator, ReductionError};
use landeck_collectives::board_schedule::Cut;
use landeck_collectives::{Operation, Order, Request, Task, Way};
use landeck_kernel::Area;
use landeck_memory::NoMemory;

use crate::binding::{Blocks, Owned, Sizes};
use crate::fault::Fault;
use crate::value_type::ValueType;

/// One call of a collective operation by one member.
#[derive(Clone, Debug)]
pub struct Call {
    /// The kind of operation.
    pub operation: Operation,
    /// The rank of the root; 0 in operations without one.
    pub root: u32,
    /// What the member brings; nothing where it stands in the output.
    pub input: Blocks,
    /// Where its result goes.
    pub output: Blocks,
    /// How data combine, in operations that reduce.
    pub operator: Option<Operator>,
    /// The member's own contribution stands in its output (at the root of a scatter: its part
    /// stays in the input).
    pub in_place: bool,
    /// Blocks may differ in length, and not all members know all of them.
    pub is_varying: bool,
    /// Only looked at in checking mode.
    pub value_type: ValueType,
    /// How the operation is to be done.
    pub manner: Manner,
    /// The memory of its output that there is none of: the member takes part with nothing, so that the
    /// others do not wait for it, and its output is only counted.
    pub missing: Option<NoMemory>,
}

/// How an operation is to be done.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// This way, whatever the table says.
    pub way: Option<Way>,
    /// The same bits whatever the way.
    pub is_reproducible: bool,
    /// Members compare what must agree of it.
    pub is_checked: bool,
    /// Whoever combines does so when all values are there, in one pass.
    pub is_late: bool,
}

impl Manner {
    /// Nothing special is wanted.
    #[inline]
    pub fn is_usual(&self) -> bool {
        self.way.is_none() && !self.is_checked && !self.is_late
    }
}

/// A way to combine values of one type, ready to be used.
#[derive(Clone, Debug)]
pub struct Combination {
    /// Combines two values.
    pub operator: Operator,
    /// The way that the reduction takes; none: as the world says.
    pub way: Option<Way>,
    /// The result has the same bits whatever the way.
    pub is_reproducible: bool,
}

impl Combination {
    /// What an operator comes to when nothing else is asked for.
    pub fn of(operator: Operator) -> Self {
        Self { operator, way: None, is_reproducible: false }
    }

    /// A predefined operation, in no special way.
    pub fn is_usual(&self) -> bool {
        self.way.is_none() && self.operator.reduction().is_some()
    }

    /// How the operation is to be done in a world that wants it done like this.
    pub(crate) fn manner(&self, of_world: &Manner) -> Manner {
        Manner {
            way: self.way.clone().or_else(|| of_world.way.clone()),
            is_reproducible: self.is_reproducible || of_world.is_reproducible,
            is_checked: of_world.is_checked,
            is_late: of_world.is_late,
        }
    }
}

impl Call {
    /// A call without data.
    pub fn new(operation: Operation, manner: &Manner) -> Self {
        Self {
            operation,
            root: 0,
            input: Blocks::Nothing,
            output: Blocks::Nothing,
            operator: None,
            in_place: false,
            is_varying: false,
            value_type: ValueType::default(),
            manner: manner.clone(),
            missing: None,
        }
    }

    /// The task that all members' plans are made for.
    pub(crate) fn task(&self, segments: u32) -> Task {
        let is_free = !self.manner.is_reproducible
            && self.operator.as_ref().is_none_or(Operator::is_commutative);
        Task {
            operation: self.operation,
            root: self.root,
            segments,
            order: match is_free {
                true if self.manner.is_late => Order::Late,
                true => Order::Free,
                false => Order::Canonical,
            },
            // A call that sets its data aside brings them as if they had stood apart.
            in_place: self.in_place && !self.needs_copy(),
        }
    }

    /// What all members know alike of it, for the choice of its way.
    pub(crate) fn request(&self) -> Request {
        Request {
            operation: self.operation,
            bytes: (!self.is_varying).then(|| self.known_bytes()),
            commutative: self.operator.as_ref().is_none_or(Operator::is_commutative),
            reproducible: self.manner.is_reproducible,
        }
    }

    /// Whether what goes out stands where what comes in will, and must be set aside.
    pub(crate) fn needs_copy(&self) -> bool {
        self.in_place && matches!(self.operation, Operation::AllToAll | Operation::ReduceScatter)
    }

    /// Bytes that all members know alike: of all data of one member, or of one block.
    pub(crate) fn known_bytes(&self) -> u64 {
        match self.operation {
            _ if self.is_varying => 0,
            Operation::Barrier => 0,
            Operation::Broadcast => self.output.bytes(0),
            Operation::ReduceScatter => {
                self.input.area(0, self.input.count() as u32).packed_bytes()
            }
            _ if matches!(self.input, Blocks::Nothing) => self.output.bytes(0),
            _ => self.input.bytes(0),
        }
    }

    /// What this member brings or gets, whichever is more.
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

    /// What is never cut in two.
    pub(crate) fn unit_bytes(&self) -> u64 {
        self.operator.as_ref().map_or(1, |operator| operator.element_bytes() as u64)
    }

    /// How long blocks are that pass through this member.
    pub(crate) fn sizes(&self, segments: u32) -> Sizes {
        if self.operation == Operation::ReduceScatter {
            return Sizes::Input(self.input.clone());
        }
        let known_bytes = self.known_bytes();
        if !self.operation.has_segments() {
            return Sizes::Equal(known_bytes);
        }
        Sizes::Cut(self.cut_of(known_bytes, segments))
    }

    /// How so many bytes of one piece of data are cut into segments.
    #[inline]
    pub(crate) fn cut_of(&self, total_bytes: u64, segments: u32) -> Cut {
        Cut { total_bytes, unit_bytes: self.unit_bytes(), segments }
    }

    /// Whether the data fit the operation, as far as this member can know.
    pub(crate) fn check(&self, size: u32, member: u32) -> Result<(), Fault> {
        if self.root >= size {
            return Err(Fault::NoSuchRoot { root: self.root, size });
        }
        let is_root = member == self.root;
        match self.operation {
            Operation::Barrier | Operation::Broadcast => Ok(()),
            Operation::Gather if is_root => self.collects(size, member),
            Operation::Gather => Ok(()),
            Operation::Scatter if is_root => {
                self.are(&self.input, "input", size)?;
                if self.in_place { Ok(()) } else { self.fits(&self.input, member, &self.output, 0) }
            }
            Operation::Scatter => Ok(()),
            Operation::AllGather => self.collects(size, member),
            Operation::AllToAll => {
                self.are(&self.output, "output", size)?;
                if self.in_place {
                    return Ok(());
                }
                self.are(&self.input, "input", size)?;
                self.fits(&self.input, member, &self.output, member)
            }
            Operation::ReduceScatter => {
                self.are(&self.input, "input", size)?;
                self.whole_elements(&self.input)?;
                self.fits(&self.input, member, &self.output, 0)
            }
            Operation::Reduce if !is_root => self.whole_elements(&self.input),
            Operation::Reduce
            | Operation::AllReduce
            | Operation::Scan
            | Operation::ExclusiveScan => {
                self.whole_elements(&self.output)?;
                if self.in_place { Ok(()) } else { self.fits(&self.input, 0, &self.output, 0) }
            }
        }
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
            *own = Area::contiguous(owned.buffer());
        }
        self.output = Blocks::Areas(areas);
        owned
    }

    fn collects(&self, size: u32, member: u32) -> Result<(), Fault> {
        self.are(&self.output, "output", size)?;
        if self.in_place { Ok(()) } else { self.fits(&self.input, 0, &self.output, member) }
    }

    fn are(&self, blocks: &Blocks, which: &'static str, size: u32) -> Result<(), Fault> {
        if let Blocks::Equal { buffer, block_bytes } = blocks {
            let needed_bytes = *block_bytes as u64 * u64::from(size);
            return self.is_long(which, buffer.len() as u64, needed_bytes);
        }
        if blocks.count() == size as usize {
            return Ok(());
        }
        Err(Fault::Counts { operation: self.operation, which, given: blocks.count(), size })
    }

    fn fits(&self, input: &Blocks, from: u32, output: &Blocks, into: u32) -> Result<(), Fault> {
        self.is_long("output", output.bytes(into), input.bytes(from))
    }

    fn is_long(
        &self,
        which: &'static str,
        buffer_bytes: u64,
        needed_bytes: u64,
    ) -> Result<(), Fault> {
        if needed_bytes == buffer_bytes {
            return Ok(());
        }
        Err(Fault::Buffer { operation: self.operation, which, buffer_bytes, needed_bytes })
    }

    fn whole_elements(&self, blocks: &Blocks) -> Result<(), Fault> {
        let Some(operator) = &self.operator else { return Ok(()) };
        let element_bytes = operator.element_bytes();
        for block in 0..blocks.count() as u32 {
            let length_bytes = blocks.bytes(block) as usize;
            if !length_bytes.is_multiple_of(element_bytes) {
                let error = match operator.reduction() {
                    Some(reduction) => {
                        ReductionError::CutElement { length_bytes, element: reduction.element() }
                    }
                    None => ReductionError::CutUserElement { length_bytes, element_bytes },
                };
                return Err(error.into());
            }
        }
        Ok(())
    }
}
