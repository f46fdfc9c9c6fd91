//! A measured value and what it is a value of, as the measuring programs print them.

use serde::{Deserialize, Serialize};

use crate::statistics::short;

/// A measured point: one row of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) figure: String,
    /// The variant of the figure, or nothing.
    pub(crate) form: String,
    /// Processes in the job.
    pub(crate) n: u32,
    /// Bytes in each message.
    pub(crate) bytes: u64,
    /// Other messages or receives that are pending.
    pub(crate) pending: u64,
}

/// One line of a measuring program: the value of one batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    #[serde(flatten)]
    pub(crate) point: Point,
    pub(crate) unit: String,
    pub(crate) value: f64,
}

impl Sample {
    /// Reads a line; launchers and libraries may print others, which are none.
    pub(crate) fn parse(line: &str) -> Option<Sample> {
        let start = line.find("{\"figure\"")?;
        serde_json::from_str(line[start..].trim_end()).ok()
    }
}

impl Point {
    /// The point in words, without the figure's name.
    pub(crate) fn label(&self) -> String {
        let rest = self.label_without_processes();
        let processes = format!("n = {}", short(f64::from(self.n)));
        if rest.is_empty() { processes } else { format!("{processes}, {rest}") }
    }

    /// The rest of the point in words.
    pub(crate) fn label_without_processes(&self) -> String {
        let mut words = Vec::new();
        if self.bytes > 0 {
            words.push(size_label(self.bytes));
        }
        if self.pending > 0 {
            words.push(format!("{} pending", short(self.pending as f64)));
        }
        if !self.form.is_empty() {
            words.push(self.form.clone());
        }
        words.join(", ")
    }
}

/// A number of bytes as people say it: 8 B, 16 KiB, 4 MiB.
pub(crate) fn size_label(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_behind_a_launcher_tag() {
        let line = r#"[1,0]<stdout>: {"figure":"round","form":"","n":2,"bytes":8,"pending":0,"unit":"ns","value":99.5}"#;
        let sample = Sample::parse(line).unwrap();
        assert_eq!((sample.point.n, sample.point.bytes, sample.value), (2, 8, 99.5));
        assert_eq!(sample.point.label(), "n = 2, 8 B");
    }

    #[test]
    fn other_lines_are_no_samples() {
        assert_eq!(Sample::parse("MPI startup(): warning"), None);
        assert_eq!(Sample::parse(r#"{"figure":"round""#), None);
    }

    #[test]
    fn sizes_in_words() {
        assert_eq!(size_label(8), "8 B");
        assert_eq!(size_label(1500), "1500 B");
        assert_eq!(size_label(16 << 10), "16 KiB");
        assert_eq!(size_label(4 << 20), "4 MiB");
    }
}
