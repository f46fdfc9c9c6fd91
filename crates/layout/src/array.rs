//! Parts of arrays: a section, and the share of one process in an array that is distributed.

use thiserror::Error;

use crate::{Bounds, Layout, LayoutError, Member};

/// The index of an array that varies fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayOrder {
    /// The last index, as in C.
    LastFastest,
    /// The first index, as in Fortran.
    FirstFastest,
}

/// The selection along one dimension: `length` of `size` indices, from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The number of indices of the array.
    pub size: u64,
    /// The number of selected indices.
    pub length: u64,
    /// The first selected index, counted from zero.
    pub start: u64,
}

/// How the indices of one dimension are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Not at all: the single process along this dimension has all of them.
    Whole,
    /// In one block for each process: of this length, or of the least that suffices.
    Block(Option<u64>),
    /// In blocks, cyclically: of this length, or of one.
    Cyclic(Option<u64>),
}

/// One dimension of a distributed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The number of indices of the array.
    pub size: u64,
    /// The distribution of these indices.
    pub distribution: Distribution,
    /// The number of processes.
    pub processes: u64,
}

/// The reason why a part of an array cannot be described.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrayError {
    /// The array has no dimensions.
    #[error("an array has at least one dimension")]
    NoDimensions,
    /// The section is not inside the array.
    #[error(
        "dimension {dimension}: {length} indices from {start} on are not {size} or fewer of an \
         array of {size}; take at least one that it has"
    )]
    OutsideArray {
        /// The dimension, counted from zero.
        dimension: usize,
        /// The number of indices of the array.
        size: u64,
        /// The number of selected indices.
        length: u64,
        /// The first selected index.
        start: u64,
    },
    /// A dimension has no indices or no processes.
    #[error(
        "dimension {dimension} has {size} indices and {processes} processes; give at least one"
    )]
    EmptyDimension {
        /// The dimension, counted from zero.
        dimension: usize,
        /// The number of indices of the array.
        size: u64,
        /// The number of processes.
        processes: u64,
    },
    /// Blocks are empty, or do not reach the end of the dimension.
    #[error(
        "dimension {dimension}: {processes} blocks of {block} do not hold {size} indices; \
         take longer blocks"
    )]
    BlockTooShort {
        /// The dimension, counted from zero.
        dimension: usize,
        /// The length of each block.
        block: u64,
        /// The number of indices of the array.
        size: u64,
        /// The number of processes.
        processes: u64,
    },
    /// A dimension that is not distributed has several processes.
    #[error("dimension {dimension} is not dealt out but has {processes} processes; give it one")]
    WholeAmongSeveral {
        /// The dimension, counted from zero.
        dimension: usize,
        /// The number of processes.
        processes: u64,
    },
    /// The grid has another number of processes, or does not have this rank.
    #[error("a grid of {grid} processes is not one of {processes} with rank {rank} among them")]
    OtherGrid {
        /// The product of the numbers of processes of all dimensions.
        grid: u64,
        /// The number of processes.
        processes: u64,
        /// The given rank.
        rank: u64,
    },
    /// The part has no valid layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

impl Layout {
    /// Selects a section of an array of items; the bounds are those of the whole array.
    ///
    /// # Errors
    /// [`ArrayError`] names the fault.
    pub fn subarray(
        sections: &[Section],
        order: ArrayOrder,
        item: &Self,
    ) -> Result<Self, ArrayError> {
        let mut part = ArrayPart::new(item)?;
        for dimension in fastest_first(sections.len(), order)? {
            let Section { size, length, start } = sections[dimension];
            if length == 0 || start.checked_add(length).is_none_or(|end| end > size) {
                return Err(ArrayError::OutsideArray { dimension, size, length, start });
            }
            part.take(size, &[Blocks { start, length, count: 1, period: 0 }])?;
        }
        Ok(part.finish())
    }

    /// Describes the share of process `rank` of `processes` in an array of items that is distributed over a grid of
    /// processes; the bounds are those of the whole array. The last dimension of the grid varies fastest with the rank,
    /// whatever the order of the array.
    ///
    /// # Errors
    /// [`ArrayError`] names the fault.
    pub fn distributed(
        axes: &[Axis],
        order: ArrayOrder,
        (processes, rank): (u64, u64),
        item: &Self,
    ) -> Result<Self, ArrayError> {
        let place = grid_place(axes, processes, rank)?;
        let mut part = ArrayPart::new(item)?;
        for dimension in fastest_first(axes.len(), order)? {
            let axis = &axes[dimension];
            part.take(axis.size, &axis.blocks_of(dimension, place[dimension])?)?;
        }
        Ok(part.finish())
    }
}

/// The selected indices of some dimensions of an array.
struct ArrayPart {
    layout: Layout,
    /// The distance from one index of the next dimension to the next, in bytes.
    stride: i64,
}

/// Blocks of indices.
#[derive(Clone, Copy)]
struct Blocks {
    start: u64,
    length: u64,
    count: u64,
    /// The distance from the start of one block to that of the next.
    period: u64,
}

impl ArrayPart {
    fn new(item: &Layout) -> Result<Self, LayoutError> {
        Ok(Self { layout: item.clone(), stride: item.extent_bytes()? })
    }

    /// Selects blocks of indices along the next dimension, which has `size` of them.
    fn take(&mut self, size: u64, blocks: &[Blocks]) -> Result<(), LayoutError> {
        let members: Result<Vec<_>, LayoutError> = blocks
            .iter()
            .map(|blocks| {
                let offset = self.distance(blocks.start)?;
                let block = self.layout.repeated(blocks.length, self.stride)?;
                let layout = block.repeated(blocks.count, self.distance(blocks.period)?)?;
                Ok(Member { offset, count: 1, layout })
            })
            .collect();
        self.layout = Layout::structure(&members?)?;
        self.stride = self.distance(size)?;
        Ok(())
    }

    fn finish(self) -> Layout {
        self.layout.resized(Bounds { lower: 0, upper: self.stride })
    }

    /// The distance of so many indices, in bytes.
    fn distance(&self, indices: u64) -> Result<i64, LayoutError> {
        let indices = i64::try_from(indices).ok();
        let distance = indices.and_then(|indices| indices.checked_mul(self.stride));
        distance.ok_or(LayoutError::TooLarge { what: "the extent" })
    }
}

impl Axis {
    /// The blocks of the process at this place.
    fn blocks_of(&self, dimension: usize, place: u64) -> Result<Vec<Blocks>, ArrayError> {
        let Self { size, distribution, processes } = *self;
        let too_short = |block| ArrayError::BlockTooShort { dimension, block, size, processes };
        match distribution {
            Distribution::Whole if processes != 1 => {
                Err(ArrayError::WholeAmongSeveral { dimension, processes })
            }
            Distribution::Whole => Ok(vec![Blocks { start: 0, length: size, count: 1, period: 0 }]),
            Distribution::Block(block) => {
                let block = block.unwrap_or(size.div_ceil(processes));
                if block.saturating_mul(processes) < size {
                    return Err(too_short(block));
                }
                let start = block.saturating_mul(place).min(size);
                let length = block.min(size - start);
                Ok(vec![Blocks { start, length, count: 1, period: 0 }])
            }
            Distribution::Cyclic(Some(0)) => Err(too_short(0)),
            Distribution::Cyclic(block) => Ok(self.turns_of(block.unwrap_or(1), place)),
        }
    }

    /// The blocks of a process in a cyclic distribution: the full ones, and the rest in the last one.
    fn turns_of(&self, block: u64, place: u64) -> Vec<Blocks> {
        let full = self.size / block;
        let count = (full + self.processes - 1 - place) / self.processes;
        let mut blocks = Vec::new();
        if count > 0 {
            // A full block lies within the array, but the period of a single one may not fit.
            let period = if count == 1 { 0 } else { block * self.processes };
            blocks.push(Blocks { start: block * place, length: block, count, period });
        }
        let rest = self.size % block;
        if rest > 0 && full % self.processes == place {
            blocks.push(Blocks { start: full * block, length: rest, count: 1, period: 0 });
        }
        blocks
    }
}

/// The dimensions, beginning with the one that varies fastest.
fn fastest_first(
    count: usize,
    order: ArrayOrder,
) -> Result<impl Iterator<Item = usize>, ArrayError> {
    if count == 0 {
        return Err(ArrayError::NoDimensions);
    }
    Ok((0..count).map(move |index| match order {
        ArrayOrder::FirstFastest => index,
        ArrayOrder::LastFastest => count - 1 - index,
    }))
}

/// The place of a process in the grid.
fn grid_place(axes: &[Axis], processes: u64, rank: u64) -> Result<Vec<u64>, ArrayError> {
    for (dimension, &Axis { size, processes, .. }) in axes.iter().enumerate() {
        if size == 0 || processes == 0 {
            return Err(ArrayError::EmptyDimension { dimension, size, processes });
        }
    }
    let grid = axes.iter().fold(1u64, |product, axis| product.saturating_mul(axis.processes));
    if grid != processes || rank >= processes {
        return Err(ArrayError::OtherGrid { grid, processes, rank });
    }
    let mut left = rank;
    let mut place = vec![0; axes.len()];
    for (place, axis) in place.iter_mut().zip(axes).rev() {
        *place = left % axis.processes;
        left /= axis.processes;
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Kind};

    fn integer() -> Layout {
        Layout::element(Kind::new(Family::Signed, 4).unwrap())
    }

    #[test]
    fn a_section_has_the_bounds_of_its_array() {
        let sections =
            [Section { size: 4, length: 2, start: 1 }, Section { size: 6, length: 3, start: 2 }];
        let section = Layout::subarray(&sections, ArrayOrder::LastFastest, &integer()).unwrap();
        assert_eq!(section.bounds(), Bounds { lower: 0, upper: 96 });
        assert_eq!(section.true_bounds(), Bounds { lower: 32, upper: 68 });
        assert_eq!(section.size_bytes(), 24);
        let section = Layout::subarray(&sections, ArrayOrder::FirstFastest, &integer()).unwrap();
        assert_eq!(section.true_bounds(), Bounds { lower: 36, upper: 76 });
    }

    #[test]
    fn an_array_that_does_not_fit_is_named() {
        let axis = |size, distribution, processes| Axis { size, distribution, processes };
        let described = |axes: &[Axis], grid| {
            let result = Layout::distributed(axes, ArrayOrder::LastFastest, grid, &integer());
            result.unwrap_err().to_string()
        };
        let short = described(&[axis(10, Distribution::Block(Some(2)), 4)], (4, 0));
        assert!(short.contains("4 blocks of 2 do not hold 10"), "{short}");
        let grid = described(&[axis(10, Distribution::Block(None), 4)], (5, 0));
        assert!(grid.contains("a grid of 4 processes is not one of 5"), "{grid}");
        let whole = described(&[axis(10, Distribution::Whole, 2)], (2, 0));
        assert!(whole.contains("not dealt out"), "{whole}");
        assert!(described(&[], (1, 0)).contains("at least one dimension"));
        assert!(described(&[axis(0, Distribution::Whole, 1)], (1, 0)).contains("0 indices"));
        let outside = [Section { size: 4, length: 3, start: 2 }];
        assert!(Layout::subarray(&outside, ArrayOrder::LastFastest, &integer()).is_err());
        let huge = [Section { size: 1 << 62, length: 1, start: 0 }];
        assert!(Layout::subarray(&huge, ArrayOrder::LastFastest, &integer()).is_err());
    }
}
