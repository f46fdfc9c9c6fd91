//! The cells of one process, with a ring of one cell around them: the halo, where there is a
//! neighbour, and the edge of the plate, where there is none.
//!
//! ```text
//!     . n n n n .        n s w e   ring
//!     w c c c c e        c         own cells
//!     w c c c c e        .         never used
//!     . s s s s .
//! ```

use std::ops::Range;

use super::division::{PlatePart, Side};
use super::plate::Plate;

/// How far a cell moves towards its neighbours in one step: `a dt / dx2`. Above 0.25 the method
/// overshoots and the numbers grow without end.
const PACE: f64 = 0.2;

/// The cells of one process and the ring around them, row by row in one piece of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    rows: usize,
    columns: usize,
    cells: Vec<f64>,
}

impl Block {
    /// A part of the plate as it is at the start.
    pub fn new(plate: Plate, part: &PlatePart) -> Self {
        let (rows, columns) = (part.rows.len(), part.columns.len());
        let cells = vec![0.0; (rows + 2) * (columns + 2)];
        let mut block = Self { rows, columns, cells };
        block.fill_ring(plate, part);
        for row in 0..rows {
            for column in 0..columns {
                let at = block.place(row, column);
                block.cells[at] =
                    plate.start_temperature(part.rows.start + row, part.columns.start + column);
            }
        }
        block
    }

    /// The ring takes the temperatures of the plate's edge. Where it is no edge but a halo, the
    /// neighbours fill it before it is used.
    fn fill_ring(&mut self, plate: Plate, part: &PlatePart) {
        for side in Side::ALL {
            let temperatures: Vec<f64> = match side {
                Side::North => vec![plate.edge_temperature(-1); self.columns],
                Side::South => vec![plate.edge_temperature(plate.rows as isize); self.columns],
                Side::West | Side::East => {
                    part.rows.clone().map(|row| plate.edge_temperature(row as isize)).collect()
                }
            };
            self.set_halo(side, &temperatures);
        }
    }

    /// Own cells from north to south.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Own cells from west to east.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// From one row to the next, in cells of memory.
    pub fn stride(&self) -> usize {
        self.columns + 2
    }

    /// The own cells of a row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.cells[self.place(row, 0)..][..self.columns]
    }

    /// The memory from the first own cell on: row `r`, column `c` is at `r * stride() + c`.
    pub fn from_first_cell(&self) -> &[f64] {
        &self.cells[self.place(0, 0)..]
    }

    /// How many cells a side has.
    pub fn length(&self, side: Side) -> usize {
        match side {
            Side::North | Side::South => self.columns,
            Side::West | Side::East => self.rows,
        }
    }

    /// Copies the outermost own cells of a side: what the neighbour there needs.
    pub fn copy_rim(&self, side: Side, into: &mut [f64]) {
        let first = match side {
            Side::North | Side::West => self.place(0, 0),
            Side::South => self.place(self.rows - 1, 0),
            Side::East => self.place(0, self.columns - 1),
        };
        let cells = self.cells[first..].iter().step_by(self.step_along(side));
        into.iter_mut().zip(cells).for_each(|(into, cell)| *into = *cell);
    }

    /// Sets the ring on a side: what the neighbour there has sent.
    pub fn set_halo(&mut self, side: Side, from: &[f64]) {
        let first_own = self.place(0, 0);
        let first = match side {
            Side::North => first_own - self.stride(),
            Side::South => first_own + self.rows * self.stride(),
            Side::West => first_own - 1,
            Side::East => first_own + self.columns,
        };
        let step = self.step_along(side);
        let cells = self.cells[first..].iter_mut().step_by(step);
        cells.zip(from).for_each(|(cell, from)| *cell = *from);
    }

    /// One step for the cells that need no halo: all but the outermost.
    pub fn step_inside(&self, next: &mut Self) {
        self.step(1..self.rows.saturating_sub(1), 1..self.columns.saturating_sub(1), next);
    }

    /// One step for the outermost cells.
    pub fn step_rim(&self, next: &mut Self) {
        let (last_row, last_column) = (self.rows - 1, self.columns - 1);
        self.step(0..1, 0..self.columns, next);
        if last_row > 0 {
            self.step(last_row..self.rows, 0..self.columns, next);
        }
        self.step(1..last_row, 0..1, next);
        if last_column > 0 {
            self.step(1..last_row, last_column..self.columns, next);
        }
    }

    /// One step for all cells.
    pub fn step_all(&self, next: &mut Self) {
        self.step(0..self.rows, 0..self.columns, next);
    }

    /// One step for some of the cells. This is where the time goes: the compiler makes vector
    /// instructions of the inner loop, as it works on slices of known length.
    fn step(&self, rows: Range<usize>, columns: Range<usize>, next: &mut Self) {
        let (count, stride) = (columns.len(), self.stride());
        for row in rows {
            let at = self.place(row, columns.start);
            let north = &self.cells[at - stride..][..count];
            let south = &self.cells[at + stride..][..count];
            let west = &self.cells[at - 1..][..count];
            let east = &self.cells[at + 1..][..count];
            let here = &self.cells[at..][..count];
            let new = &mut next.cells[at..][..count];
            for i in 0..count {
                let around = (north[i] + south[i]) + (west[i] + east[i]);
                new[i] = here[i] + PACE * (around - 4.0 * here[i]);
            }
        }
    }

    /// The largest difference between the same own cell of two blocks.
    pub fn largest_difference(&self, other: &Self) -> f64 {
        let rows = (0..self.rows).flat_map(|row| self.row(row).iter().zip(other.row(row)));
        rows.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    fn place(&self, row: usize, column: usize) -> usize {
        (row + 1) * self.stride() + column + 1
    }

    /// From one cell to the next along a side, in cells of memory.
    fn step_along(&self, side: Side) -> usize {
        match side {
            Side::North | Side::South => 1,
            Side::West | Side::East => self.stride(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLATE: Plate = Plate { rows: 20, columns: 30 };

    fn block(rows: usize, columns: usize) -> Block {
        Block::new(PLATE, &PlatePart { rows: 3..3 + rows, columns: 5..5 + columns })
    }

    #[test]
    fn inside_and_rim_make_the_whole() {
        for (rows, columns) in [(1, 1), (1, 4), (4, 1), (2, 2), (3, 3), (2, 7), (9, 8)] {
            let now = block(rows, columns);
            let (mut in_two_parts, mut at_once) = (now.clone(), now.clone());
            now.step_inside(&mut in_two_parts);
            now.step_rim(&mut in_two_parts);
            now.step_all(&mut at_once);
            assert_eq!(in_two_parts, at_once, "{rows}x{columns}");
        }
    }

    #[test]
    fn one_step_moves_a_cell_towards_its_neighbours() {
        let mut now = block(1, 1);
        now.set_halo(Side::North, &[1.0]);
        now.set_halo(Side::South, &[2.0]);
        now.set_halo(Side::West, &[3.0]);
        now.set_halo(Side::East, &[4.0]);
        let (mut next, here) = (now.clone(), now.row(0)[0]);
        now.step_all(&mut next);
        assert_eq!(next.row(0)[0], here + PACE * (10.0 - 4.0 * here));
        assert_eq!(now.largest_difference(&next), (next.row(0)[0] - here).abs());
    }

    #[test]
    fn the_rim_of_a_block_is_the_halo_of_its_neighbour() {
        let whole = block(6, 8);
        let mut west = Block::new(PLATE, &PlatePart { rows: 3..9, columns: 5..9 });
        let east = Block::new(PLATE, &PlatePart { rows: 3..9, columns: 9..13 });
        let mut travelling = vec![0.0; 6];
        east.copy_rim(Side::West, &mut travelling);
        west.set_halo(Side::East, &travelling);
        let mut next_whole = whole.clone();
        let mut next_west = west.clone();
        whole.step_all(&mut next_whole);
        west.step_all(&mut next_west);
        for row in 1..5 {
            assert_eq!(next_west.row(row)[1..], next_whole.row(row)[1..4]);
        }
    }
}
