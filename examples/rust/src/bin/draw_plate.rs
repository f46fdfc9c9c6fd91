//! Draws a plate that a program in another language has computed:
//!
//! ```sh
//! draw_plate out/heat.plate out/heat.png "Waves on a plate, 3,000 steps later"
//! ```
//!
//! The file begins with a line `plate ROWS COLUMNS DOWN ACROSS`, the last two being blocks of the
//! processes, and goes on with the temperatures row by row, as doubles of this machine.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use landeck_examples::heat::division::Division;
use landeck_examples::heat::picture::Picture;
use landeck_examples::heat::plate::Plate;

/// Draws a plate that another program has computed.
#[derive(Debug, Parser)]
#[command(name = "draw_plate")]
struct Options {
    /// The file with the plate.
    plate: PathBuf,
    /// Where the picture goes (PNG).
    picture: PathBuf,
    /// A sentence that says what the picture shows.
    heading: String,
    /// Smaller, below the heading.
    #[arg(long, default_value = "")]
    below: String,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match draw(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("draw_plate: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn draw(options: &Options) -> Result<(), String> {
    let path = options.plate.display();
    let bytes = fs::read(&options.plate).map_err(|error| format!("cannot read {path}: {error}"))?;
    let (division, cells) = read(&bytes).ok_or_else(|| {
        format!("{path} is no plate: it begins with a line like \"plate 512 512 2 2\" and has that many doubles")
    })?;
    let (heading, below) = (options.heading.clone(), options.below.clone());
    let picture = Picture { division, cells: &cells, heading, below };
    let path = options.picture.display();
    picture.draw(&options.picture).map_err(|error| format!("cannot write {path}: {error}"))
}

/// The plate in these bytes, if there is one.
fn read(bytes: &[u8]) -> Option<(Division, Vec<f64>)> {
    let end = bytes.iter().take(100).position(|byte| *byte == b'\n')?;
    let mut words = std::str::from_utf8(&bytes[..end]).ok()?.split(' ');
    if words.next() != Some("plate") {
        return None;
    }
    let numbers: Vec<usize> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [rows, columns, down, across] = numbers[..] else { return None };
    let division = Division::of_shape(Plate { rows, columns }, down, across)?;
    let (cells, rest) = bytes[end + 1..].as_chunks::<8>();
    let is_whole = rest.is_empty() && Some(cells.len()) == rows.checked_mul(columns);
    is_whole.then(|| (division, cells.iter().map(|cell| f64::from_ne_bytes(*cell)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(line: &str, cells: usize) -> Vec<u8> {
        let mut bytes = line.as_bytes().to_vec();
        bytes.extend((0..cells).flat_map(|cell| (cell as f64).to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_plate_is_read() {
        let (division, cells) = read(&file("plate 2 3 2 1\n", 6)).unwrap();
        assert_eq!((division.plate(), division.shape()), (Plate { rows: 2, columns: 3 }, (2, 1)));
        assert_eq!(cells, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn a_file_that_is_no_plate_is_none() {
        for (line, cells) in [
            ("plate 2 3 2 1\n", 5),
            ("plate 2 3 2 1\n", 7),
            ("plate 2 3 3 1\n", 6),
            ("plate 2 3 0 1\n", 6),
            ("plate 0 3 1 1\n", 0),
            ("plate 2 3\n", 6),
            ("plates 2 3 2 1\n", 6),
            ("plate 2 -3 2 1\n", 6),
            ("plate 2 3 2 1", 6),
            ("", 0),
        ] {
            assert!(read(&file(line, cells)).is_none(), "{line:?}");
        }
    }
}
