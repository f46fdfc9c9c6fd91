//! The plate: its size, its edges, and how warm it is at the start.

use std::fmt;
use std::str::FromStr;

/// The coldest that any part of the plate ever is, in degrees Celsius.
pub const COLDEST: f64 = 0.0;
/// The warmest that any part of the plate ever is, in degrees Celsius.
pub const WARMEST: f64 = 100.0;

/// How many rows or columns a plate may have.
const LENGTH_MAX: usize = 20_000;

/// A plate of so many cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plate {
    /// Cells from north to south.
    pub rows: usize,
    /// Cells from west to east.
    pub columns: usize,
}

/// A disc that is warmer or colder than the rest at the start: its middle and its radius as shares
/// of the plate, and its temperature.
struct Disc {
    row: f64,
    column: f64,
    radius: f64,
    temperature: f64,
}

const DISCS: [Disc; 5] = [
    Disc { row: 0.36, column: 0.31, radius: 0.19, temperature: WARMEST },
    Disc { row: 0.36, column: 0.31, radius: 0.09, temperature: COLDEST },
    Disc { row: 0.66, column: 0.66, radius: 0.21, temperature: COLDEST },
    Disc { row: 0.60, column: 0.72, radius: 0.08, temperature: WARMEST },
    Disc { row: 0.24, column: 0.76, radius: 0.08, temperature: WARMEST },
];

impl Plate {
    /// The temperature outside the plate, beside this row. It stays as it is: warm north of the
    /// first row (-1), cold south of the last one, and falling evenly along the sides.
    pub fn edge_temperature(&self, row: isize) -> f64 {
        let share_from_north = (row + 1) as f64 / (self.rows + 1) as f64;
        WARMEST + (COLDEST - WARMEST) * share_from_north
    }

    /// The temperature of a cell at the start: lukewarm, with a few discs in it.
    pub fn start_temperature(&self, row: usize, column: usize) -> f64 {
        let row = (row as f64 + 0.5) / self.rows as f64;
        let column = (column as f64 + 0.5) / self.columns as f64;
        let is_in = |disc: &&Disc| {
            let (down, right) = (row - disc.row, column - disc.column);
            down * down + right * right < disc.radius * disc.radius
        };
        let last = DISCS.iter().rfind(is_in);
        last.map_or((COLDEST + WARMEST) / 2.0, |disc| disc.temperature)
    }
}

/// `512`, or `512x256`: rows, then columns.
impl FromStr for Plate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rows, columns) = text.split_once('x').unwrap_or((text, text));
        let length = |text: &str| text.parse().ok().filter(|n| (1..=LENGTH_MAX).contains(n));
        match (length(rows), length(columns)) {
            (Some(rows), Some(columns)) => Ok(Self { rows, columns }),
            _ => Err(format!(
                "a number of cells from 1 to {LENGTH_MAX} is wanted, or two such as 512x256"
            )),
        }
    }
}

impl fmt::Display for Plate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.rows, self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_one_number_or_two() {
        assert_eq!("512".parse(), Ok(Plate { rows: 512, columns: 512 }));
        assert_eq!("3x40".parse(), Ok(Plate { rows: 3, columns: 40 }));
        for wrong in ["", "0", "4x", "x4", "1x2x3", "-1", "20001", "many"] {
            assert!(wrong.parse::<Plate>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_edges_meet_in_the_corners() {
        let plate = Plate { rows: 99, columns: 5 };
        assert_eq!(plate.edge_temperature(-1), WARMEST);
        assert_eq!(plate.edge_temperature(49), 50.0);
        assert_eq!(plate.edge_temperature(99), COLDEST);
    }

    #[test]
    fn the_plate_starts_with_all_temperatures() {
        let plate = Plate { rows: 100, columns: 100 };
        assert_eq!(plate.start_temperature(0, 0), 50.0);
        assert_eq!(plate.start_temperature(24, 76), WARMEST);
        assert_eq!(plate.start_temperature(36, 31), COLDEST);
    }
}
