//! A table of ways in words, by the sizes of the data.

use std::fmt;

use super::class::OCTAVE_MAX;
use super::{Choice, Table, WayRequest, is_same};
use crate::operation::Operation;

impl fmt::Display for Table {
    /// Writes the ways of each operation by size.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for operation in Operation::ALL {
            for (from, to, choice) in self.ranges(operation) {
                let segments = match choice.segments {
                    1 => String::new(),
                    some => format!(", {some} segments"),
                };
                let sizes = match (from, to) {
                    (0, None) => "any size".to_owned(),
                    (_, None) => format!("from {}", bytes_in_words(from)),
                    (0, Some(to)) => format!("below {}", bytes_in_words(to)),
                    (_, Some(to)) => {
                        format!("{} to {}", bytes_in_words(from), bytes_in_words(to))
                    }
                };
                writeln!(
                    formatter,
                    "{:<17} {sizes:<20} {}{segments}",
                    operation.as_str(),
                    choice.way
                )?;
            }
        }
        Ok(())
    }
}

impl Table {
    /// Sizes from the first number up to below the second, and the way they take.
    fn ranges(&self, operation: Operation) -> Vec<(u64, Option<u64>, Choice)> {
        let mut ranges: Vec<(u64, Option<u64>, Choice)> = Vec::new();
        let octaves = if operation == Operation::Barrier { 0..=0 } else { 0..=OCTAVE_MAX };
        for octave in octaves {
            let bytes = if octave == 0 { 0 } else { 1 << (octave - 1) };
            let choice = self.look_up(&WayRequest::new(operation, bytes));
            if let Some((_, to, last)) = ranges.last_mut() {
                if is_same(last, &choice) {
                    continue;
                }
                *to = Some(bytes);
            }
            ranges.push((bytes, None, choice));
        }
        ranges
    }
}

fn bytes_in_words(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let steps = (bytes.max(1).ilog2() / 10).min(4);
    format!("{} {}", bytes >> (10 * steps), UNITS[steps as usize])
}
