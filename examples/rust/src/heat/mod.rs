//! The heat equation on a plate, `dT/dt = a (d2T/dx2 + d2T/dy2)`, by the oldest method there is:
//! time goes on in small steps, and in each of them every cell moves a little towards the mean of
//! its four neighbours.
//!
//! ```text
//!                 north
//!           west  here  east         new = here + 0.2 (north + south + west + east - 4 here)
//!                 south
//! ```
//!
//! The plate is divided into blocks, one for each process. A block needs, beside its own cells, one
//! row or column of each neighbour block: its *halo*. In each step the processes exchange halos, and
//! meanwhile compute what needs none.
//!
//! Every cell goes through the same operations in the same order, whoever computes it. So the result
//! is the same, bit for bit, on any number of processes.

pub mod block;
pub mod division;
pub mod halo;
pub mod picture;
pub mod plate;

use landeck::layout::{Family, Kind, Layout, LayoutError};
use landeck::{Tag, World};

use block::Block;
use division::Division;
use plate::Plate;

const TAG_BLOCK: Tag = Tag(10);

/// Brings all blocks to rank 0, which puts them together to the whole plate, row by row. The other
/// processes get nothing.
///
/// # Errors
/// As [`World::send_layout`] and [`World::receive_layout`].
pub fn assemble(
    world: &World,
    division: &Division,
    block: &Block,
) -> landeck::Result<Option<Vec<f64>>> {
    if world.rank() != 0 {
        // The block's cells lie within their halo: a layout says where, nobody has to pack them.
        let rows = rows_of(block.rows(), block.columns(), block.stride());
        world.send_layout(block.from_first_cell(), &rows, 1, 0, TAG_BLOCK)?;
        return Ok(None);
    }
    let Plate { rows, columns } = division.plate();
    let mut whole = vec![0.0; rows * columns];
    for row in 0..block.rows() {
        whole[row * columns..][..block.columns()].copy_from_slice(block.row(row));
    }
    for rank in 1..world.size() {
        // And another one says where they belong in the plate.
        let part = division.part(rank);
        let first = part.rows.start * columns + part.columns.start;
        let rows = rows_of(part.rows.len(), part.columns.len(), columns);
        world.receive_layout(&mut whole[first..], &rows, 1, rank, TAG_BLOCK)?;
    }
    Ok(Some(whole))
}

/// The plate after so many steps, computed by this process alone.
pub fn alone(plate: Plate, steps: u64) -> Vec<f64> {
    let everything = Division::single(plate).part(0);
    let mut now = Block::new(plate, &everything);
    let mut next = now.clone();
    for _ in 0..steps {
        now.step_all(&mut next);
        std::mem::swap(&mut now, &mut next);
    }
    (0..plate.rows).flat_map(|row| now.row(row).iter().copied()).collect()
}

/// A number that changes when any bit of any cell does (FNV-1a over the cells' bytes).
pub fn checksum(cells: &[f64]) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = cells.iter().flat_map(|cell| cell.to_bits().to_le_bytes());
    bytes.fold(START, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// So many rows of cells, each `stride` cells behind the one before.
fn rows_of(rows: usize, columns: usize, stride: usize) -> Layout {
    let describe = || -> Result<Layout, LayoutError> {
        let cell = Layout::element(Kind::new(Family::Float, size_of::<f64>())?);
        let stride_bytes = (stride * size_of::<f64>()) as i64;
        Layout::vector(rows as u64, columns as u64, stride_bytes, &cell)
    };
    describe().expect("a block in memory has fewer bytes than a layout can describe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_sees_every_bit() {
        assert_eq!(checksum(&[]), 0xcbf2_9ce4_8422_2325);
        assert_ne!(checksum(&[0.0, 1.0]), checksum(&[1.0, 0.0]));
        assert_ne!(checksum(&[0.0]), checksum(&[-0.0]));
    }

    #[test]
    fn heat_flows_from_the_warm_edge_to_the_cold_one() {
        let plate = Plate { rows: 9, columns: 7 };
        let cells = alone(plate, 5_000);
        // After a long time the temperature falls evenly from the one edge to the other.
        for row in 0..plate.rows {
            for column in 0..plate.columns {
                let wanted = plate.edge_temperature(row as isize);
                let found = cells[row * plate.columns + column];
                assert!((found - wanted).abs() < 1e-9, "{row} {column}: {found}, not {wanted}");
            }
        }
    }
}
