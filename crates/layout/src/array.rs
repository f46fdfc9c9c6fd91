//! Parts of arrays: a section, and what one process has of an array that is dealt out.

use thiserror::Error;

use crate::{Bounds, Layout, LayoutError, Member};

/// Which index of an array varies fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last, as in C.
    LastFastest,
    /// The first, as in Fortran.
    FirstFastest,
}

/// What is taken along one dimension: `length` of `size` indices, from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// How many indices the array has.
    pub size: u64,
    /// How many of them are taken.
    pub length: u64,
    /// The first of these, counted from zero.
    pub start: u64,
}

/// How the indices of one dimension are dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Not at all: the one process along this dimension has them all.
    Whole,
    /// One block each: of this length, or of the least that suffices.
    Block(Option<u64>),
    /// Blocks in turn: of this length, or of one.
    Cyclic(Option<u64>),
}

/// One dimension of an array that is dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// How many indices the array has.
    pub size: u64,
    /// How they are dealt out.
    pub distribution: Distribution,
    /// Over how many processes.
    pub processes: u64,
}

/// Why a part of an array cannot be described.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrayError {
    /// An array without dimensions.
    #[error("an array has at least one dimension")]
    NoDimensions,
    /// A section that the array does not have.
    #[error(
        "dimension {dimension}: {length} indices from {start} on are not {size} or fewer of an \
         array of {size}; take at least one that it has"
    )]
    OutsideArray {
        /// Which dimension, from zero.
        dimension: usize,
        /// How many indices the array has.
        size: u64,
        /// How many of them were asked for.
        length: u64,
        /// From which on.
        start: u64,
    },
    /// A dimension without indices or processes.
    #[error(
        "dimension {dimension} has {size} indices and {processes} processes; give at least one"
    )]
    EmptyDimension {
        /// Which dimension, from zero.
        dimension: usize,
        /// How many indices the array has.
        size: u64,
        /// How many processes.
        processes: u64,
    },
    /// Blocks that are empty, or that do not reach the end of the dimension.
    #[error(
        "dimension {dimension}: {processes} blocks of {block} do not hold {size} indices; \
         take longer blocks"
    )]
    BlockTooShort {
        /// Which dimension, from zero.
        dimension: usize,
        /// How long each block is.
        block: u64,
        /// How many indices the array has.
        size: u64,
        /// How many processes.
        processes: u64,
    },
    /// A dimension that is not dealt out has several processes.
    #[error("dimension {dimension} is not dealt out but has {processes} processes; give it one")]
    WholeAmongSeveral {
        /// Which dimension, from zero.
        dimension: usize,
        /// How many processes.
        processes: u64,
    },
    /// The grid has another number of processes than there are, or not this one.
    #[error("a grid of {grid} processes is not one of {processes} with rank {rank} among them")]
    OtherGrid {
        /// The product of the numbers of processes of all dimensions.
        grid: u64,
        /// How many processes there are.
        processes: u64,
        /// The rank asked for.
        rank: u64,
    },
    /// It cannot be laid out.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

impl Layout {
    /// A section of an array of items; the bounds are those of the whole array.
    ///
    /// # Errors
    /// [`ArrayError`] by name.
    pub fn subarray(sections: &[Section], order: Order, item: &Self) -> Result<Self, ArrayError> {
        let mut part = Part::new(item)?;
        for dimension in fastest_first(sections.len(), order)? {
            let Section { size, length, start } = sections[dimension];
            if length == 0 || start.checked_add(length).is_none_or(|end| end > size) {
                return Err(ArrayError::OutsideArray { dimension, size, length, start });
            }
            part.take(size, &[Blocks { start, length, count: 1, period: 0 }])?;
        }
        Ok(part.finish())
    }

    /// What process `rank` of `processes` has of an array of items that is dealt out over a grid of
    /// processes; the bounds are those of the whole array. The last dimension of the grid varies
    /// fastest with the rank, whatever the order of the array.
    ///
    /// # Errors
    /// [`ArrayError`] by name.
    pub fn distributed(
        axes: &[Axis],
        order: Order,
        (processes, rank): (u64, u64),
        item: &Self,
    ) -> Result<Self, ArrayError> {
        let place = grid_place(axes, processes, rank)?;
        let mut part = Part::new(item)?;
        for dimension in fastest_first(axes.len(), order)? {
            let axis = &axes[dimension];
            part.take(axis.size, &axis.blocks_of(dimension, place[dimension])?)?;
        }
        Ok(part.finish())
    }
}

/// The indices of some dimensions of an array.
struct Part {
    layout: Layout,
    /// From one index of the next dimension to the next, in bytes.
    stride: i64,
}

/// Blocks of indices.
#[derive(Clone, Copy)]
struct Blocks {
    start: u64,
    length: u64,
    count: u64,
    /// From the start of one block to that of the next.
    period: u64,
}

impl Part {
    fn new(item: &Layout) -> Result<Self, LayoutError> {
        Ok(Self { layout: item.clone(), stride: item.extent_bytes()? })
    }

    /// Takes blocks of indices along the next dimension, which has `size` of them.
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

    /// How far so many indices are.
    fn distance(&self, indices: u64) -> Result<i64, LayoutError> {
        let indices = i64::try_from(indices).ok();
        let distance = indices.and_then(|indices| indices.checked_mul(self.stride));
        distance.ok_or(LayoutError::TooLarge { what: "the extent" })
    }
}

impl Axis {
    /// The blocks that the process at this place has.
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

    /// The blocks of a process that has every so-manieth: the full ones, and what is left of the
    /// last.
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

/// The dimensions, the one that varies fastest first.
fn fastest_first(count: usize, order: Order) -> Result<impl Iterator<Item = usize>, ArrayError> {
    if count == 0 {
        return Err(ArrayError::NoDimensions);
    }
    Ok((0..count).map(move |index| match order {
        Order::FirstFastest => index,
        Order::LastFastest => count - 1 - index,
    }))
}

/// Where a process stands in the grid.
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
        let section = Layout::subarray(&sections, Order::LastFastest, &integer()).unwrap();
        assert_eq!(section.bounds(), Bounds { lower: 0, upper: 96 });
        assert_eq!(section.true_bounds(), Bounds { lower: 32, upper: 68 });
        assert_eq!(section.size_bytes(), 24);
        let section = Layout::subarray(&sections, Order::FirstFastest, &integer()).unwrap();
        assert_eq!(section.true_bounds(), Bounds { lower: 36, upper: 76 });
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let axis = |size, distribution, processes| Axis { size, distribution, processes };
        let described = |axes: &[Axis], grid| {
            let result = Layout::distributed(axes, Order::LastFastest, grid, &integer());
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
        assert!(Layout::subarray(&outside, Order::LastFastest, &integer()).is_err());
        let huge = [Section { size: 1 << 62, length: 1, start: 0 }];
        assert!(Layout::subarray(&huge, Order::LastFastest, &integer()).is_err());
    }
}
