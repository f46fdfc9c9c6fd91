//! How a plate is divided into blocks, one for each process.
//!
//! ```text
//!     6 processes:   0 | 1
//!                   ---+---
//!                    2 | 3
//!                   ---+---
//!                    4 | 5
//! ```

use std::ops::Range;

use super::plate::Plate;

/// A side of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first row.
    North,
    /// The last row.
    South,
    /// The first column.
    West,
    /// The last column.
    East,
}

impl Side {
    /// All four.
    pub const ALL: [Self; 4] = [Self::North, Self::South, Self::West, Self::East];

    /// The side that meets this one.
    pub fn opposite(self) -> Self {
        match self {
            Self::North => Self::South,
            Self::South => Self::North,
            Self::West => Self::East,
            Self::East => Self::West,
        }
    }
}

/// Which cells of the plate one process has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatePart {
    /// Its rows.
    pub rows: Range<usize>,
    /// Its columns.
    pub columns: Range<usize>,
}

/// A plate in rows and columns of blocks; ranks count them row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    plate: Plate,
    down: usize,
    across: usize,
}

impl Division {
    /// The whole plate for one process.
    pub fn single(plate: Plate) -> Self {
        Self { plate, down: 1, across: 1 }
    }

    /// Divides a plate among so many processes, with the shortest borders there are: as near to
    /// squares as the number of processes allows. None when some process would get no cell.
    pub fn new(plate: Plate, processes: usize) -> Option<Self> {
        let divisors = (1..=processes).filter(|&down| processes.is_multiple_of(down));
        let divisions = divisors.map(|down| Self { plate, down, across: processes / down });
        let possible = divisions.filter(|it| it.down <= plate.rows && it.across <= plate.columns);
        // Of two that are equal the later one is taken, which cuts more rows apart: a row is one
        // piece of memory, a column is not.
        possible.min_by_key(|it| (it.border_cells(), it.across))
    }

    /// Divides a plate into so many blocks. None when some would get no cell, or there are none.
    pub fn of_shape(plate: Plate, down: usize, across: usize) -> Option<Self> {
        let is_possible = |blocks, cells| blocks > 0 && blocks <= cells;
        let possible = is_possible(down, plate.rows) && is_possible(across, plate.columns);
        possible.then_some(Self { plate, down, across })
    }

    /// The plate that is divided.
    pub fn plate(&self) -> Plate {
        self.plate
    }

    /// Blocks from north to south, and from west to east.
    pub fn shape(&self) -> (usize, usize) {
        (self.down, self.across)
    }

    /// The cells of one process.
    pub fn part(&self, rank: usize) -> PlatePart {
        let (row, column) = (rank / self.across, rank % self.across);
        PlatePart {
            rows: share(self.plate.rows, self.down, row),
            columns: share(self.plate.columns, self.across, column),
        }
    }

    /// The process beyond a side; none where the plate ends.
    pub fn neighbour(&self, rank: usize, side: Side) -> Option<usize> {
        let (row, column) = (rank / self.across, rank % self.across);
        match side {
            Side::North => (row > 0).then(|| rank - self.across),
            Side::South => (row + 1 < self.down).then(|| rank + self.across),
            Side::West => (column > 0).then(|| rank - 1),
            Side::East => (column + 1 < self.across).then(|| rank + 1),
        }
    }

    fn border_cells(&self) -> usize {
        (self.down - 1) * self.plate.columns + (self.across - 1) * self.plate.rows
    }
}

/// The part of `0..length` that belongs to the `index`th of so many: lengths differ by one at most.
fn share(length: usize, parts: usize, index: usize) -> Range<usize> {
    length * index / parts..length * (index + 1) / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: Plate = Plate { rows: 512, columns: 512 };

    #[test]
    fn blocks_are_as_square_as_they_can_be() {
        let shape = |plate, processes| Division::new(plate, processes).map(|it| it.shape());
        assert_eq!(shape(SQUARE, 1), Some((1, 1)));
        assert_eq!(shape(SQUARE, 4), Some((2, 2)));
        assert_eq!(shape(SQUARE, 6), Some((3, 2)));
        assert_eq!(shape(SQUARE, 7), Some((7, 1)));
        assert_eq!(shape(SQUARE, 12), Some((4, 3)));
        assert_eq!(shape(Plate { rows: 8, columns: 800 }, 6), Some((1, 6)));
        assert_eq!(shape(Plate { rows: 2, columns: 3 }, 5), None);
    }

    #[test]
    fn every_cell_belongs_to_one_process() {
        let plate = Plate { rows: 13, columns: 11 };
        for processes in 1..=11 {
            let division = Division::new(plate, processes).unwrap();
            let mut owners = vec![0; plate.rows * plate.columns];
            for rank in 0..processes {
                let part = division.part(rank);
                assert!(!part.rows.is_empty() && !part.columns.is_empty());
                for row in part.rows {
                    part.columns.clone().for_each(|at| owners[row * plate.columns + at] += 1);
                }
            }
            assert!(owners.iter().all(|&owners| owners == 1), "{processes} processes");
        }
    }

    #[test]
    fn neighbours_share_a_border() {
        for processes in 1..=12 {
            let division = Division::new(SQUARE, processes).unwrap();
            for (rank, side) in (0..processes).flat_map(|r| Side::ALL.map(|side| (r, side))) {
                let Some(other) = division.neighbour(rank, side) else { continue };
                assert_eq!(division.neighbour(other, side.opposite()), Some(rank));
                let (own, theirs) = (division.part(rank), division.part(other));
                match side {
                    Side::North => assert_eq!(theirs.rows.end, own.rows.start),
                    Side::South => assert_eq!(theirs.rows.start, own.rows.end),
                    Side::West => assert_eq!(theirs.columns.end, own.columns.start),
                    Side::East => assert_eq!(theirs.columns.start, own.columns.end),
                }
            }
        }
    }
}
