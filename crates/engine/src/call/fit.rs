//! Whether the data of a call fit its operation, as far as one member can know.

use landeck_arithmetic::{Operator, ReductionError};
use landeck_collectives::Operation;

use crate::binding::Blocks;
use crate::fault::Fault;

/// A call, as far as its data must fit its operation.
pub(crate) struct CallFit<'c> {
    pub(crate) operation: Operation,
    pub(crate) root: u32,
    pub(crate) operator: Option<&'c Operator>,
    pub(crate) input: &'c Blocks,
    pub(crate) output: &'c Blocks,
    pub(crate) in_place: bool,
}

impl CallFit<'_> {
    /// Whether the data fit the operation of a group of `size`, in which this is member `member`.
    ///
    /// # Errors
    /// [`Fault::NoSuchRoot`], [`Fault::Buffer`], [`Fault::Counts`], [`Fault::Operator`].
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
                self.are(self.input, "input", size)?;
                if self.in_place { Ok(()) } else { self.fits(self.input, member, self.output, 0) }
            }
            Operation::Scatter => Ok(()),
            Operation::AllGather => self.collects(size, member),
            Operation::AllToAll => {
                self.are(self.output, "output", size)?;
                if self.in_place {
                    return Ok(());
                }
                self.are(self.input, "input", size)?;
                self.fits(self.input, member, self.output, member)
            }
            Operation::ReduceScatter => {
                self.are(self.input, "input", size)?;
                self.whole_elements(self.input)?;
                self.fits(self.input, member, self.output, 0)
            }
            Operation::Reduce if !is_root => self.whole_elements(self.input),
            Operation::Reduce
            | Operation::AllReduce
            | Operation::Scan
            | Operation::ExclusiveScan => {
                self.whole_elements(self.output)?;
                if self.in_place { Ok(()) } else { self.fits(self.input, 0, self.output, 0) }
            }
        }
    }

    fn collects(&self, size: u32, member: u32) -> Result<(), Fault> {
        self.are(self.output, "output", size)?;
        if self.in_place { Ok(()) } else { self.fits(self.input, 0, self.output, member) }
    }

    fn are(&self, blocks: &Blocks, which: &'static str, size: u32) -> Result<(), Fault> {
        if let Blocks::Equal { buffer, block_bytes, .. } = blocks {
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
        let Some(operator) = self.operator else { return Ok(()) };
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
