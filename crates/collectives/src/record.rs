//! The text in which `landeck tune` keeps the cost parameters and the calibration of a machine.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::calibration::{self, Calibration};
use crate::cost_parameters::{
    CostParameters, CostParametersError, FIELDS, Figure, TIME_MAX_PS, Unit, is_added_later,
};

/// A record: a machine, its cost parameters and its calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The machine, in words that differ where the figures do.
    pub machine: String,
    /// Its cost parameters.
    pub figures: CostParameters,
    /// Its calibration; values missing in a file are those of [`Calibration::of`] its cost parameters.
    pub details: Calibration,
}

/// The most machines in one file; the one that was written first goes.
const MACHINES_MAX: usize = 64;
/// The beginning of the line that names a machine.
const MACHINE_LINE: &str = "machine = ";

impl Record {
    /// The record of a machine in a file that several machines may share; that of the first one if it has none.
    ///
    /// # Errors
    /// [`CostParametersError`].
    pub fn of_machine(text: &str, machine: &str) -> Result<Self, CostParametersError> {
        let parts = parts_of(text);
        let part = parts.iter().find(|part| part.machine == Some(machine)).or(parts.first());
        // Errors name lines of the file.
        let part = part.map(|part| "\n".repeat(part.first_line) + &part.lines.join("\n"));
        part.unwrap_or_default().parse()
    }

    /// A file with this record instead of an earlier one of its machine; those of other machines stay.
    pub fn written_into(&self, text: &str) -> String {
        let parts = parts_of(text);
        let is_other =
            |part: &&RecordPart<'_>| part.machine.is_some_and(|other| other != self.machine);
        let others: Vec<&RecordPart<'_>> = parts.iter().filter(is_other).collect();
        let kept = &others[others.len().saturating_sub(MACHINES_MAX - 1)..];
        let texts = kept.iter().map(|part| part.lines.join("\n") + "\n");
        texts.chain([self.to_string()]).collect()
    }
}

/// The part of a file that belongs to one machine, with the comments above it.
struct RecordPart<'a> {
    machine: Option<&'a str>,
    first_line: usize,
    lines: Vec<&'a str>,
}

fn parts_of(text: &str) -> Vec<RecordPart<'_>> {
    let mut parts = vec![RecordPart { machine: None, first_line: 0, lines: Vec::new() }];
    for (number, line) in text.lines().enumerate() {
        let machine = line.strip_prefix(MACHINE_LINE).map(|name| name.trim_matches('"'));
        let is_next = machine.is_some() && parts.last().is_some_and(|part| part.machine.is_some());
        if let Some(last) = parts.last_mut().filter(|_| is_next) {
            let is_above = |line: &&&str| line.starts_with('#');
            let above = last.lines.iter().rev().take_while(is_above).count();
            let lines = last.lines.split_off(last.lines.len() - above);
            parts.push(RecordPart { machine: None, first_line: number - above, lines });
        }
        if let Some(last) = parts.last_mut() {
            last.machine = last.machine.or(machine);
            last.lines.push(line);
        }
    }
    parts
}

impl fmt::Display for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "# What this machine can do, measured by `landeck tune`.")?;
        writeln!(formatter, "# Times in picoseconds; delete the file to forget them.")?;
        writeln!(formatter, "machine = {:?}", self.machine)?;
        let figures = self.figures.lines();
        let figures = figures.map(|one| (one.name.to_owned(), about(&one), one.value));
        for (name, about, value) in figures.chain(self.details.lines()) {
            writeln!(formatter, "{:<32} # {about}", format!("{name} = {value}"))?;
        }
        Ok(())
    }
}

/// The meaning of a figure, and that of the number that stands for none.
fn about(figure: &Figure) -> String {
    match figure.unit {
        Unit::FromKib => format!("{}; {} for none", figure.about, CostParameters::NO_LENGTH_KIB),
        Unit::Processors | Unit::Picoseconds | Unit::Kib => figure.about.to_owned(),
    }
}

impl FromStr for Record {
    type Err = CostParametersError;

    fn from_str(text: &str) -> Result<Self, CostParametersError> {
        let stranger = |line, text: &str| CostParametersError::Line {
            line,
            text: text.chars().take(80).collect(),
        };
        let (mut machine, mut numbers) = (None, BTreeMap::new());
        for (line, whole) in (1..).zip(text.lines()) {
            let text = whole.trim_start();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (name, value) = whole.split_once(" = ").ok_or_else(|| stranger(line, whole))?;
            if name == "machine" {
                machine = Some(value.trim_matches('"').to_owned());
                continue;
            }
            let digits = value.split('#').next().unwrap_or_default().trim();
            let number: u64 = digits.parse().map_err(|_| stranger(line, whole))?;
            numbers.insert(name, (number, line, whole));
        }
        let mut words = CostParameters::default().to_words();
        for (word, field) in words.iter_mut().zip(&FIELDS) {
            match numbers.remove(field.name) {
                Some((value, ..)) => *word = value,
                None if is_added_later(field) => {}
                None => return Err(CostParametersError::Missing { name: field.name }),
            }
        }
        let machine = machine.ok_or(CostParametersError::Missing { name: "machine" })?;
        let figures = CostParameters::from_words(&words)?;
        let mut details = Calibration::of(&figures);
        for (name, (number, line, whole)) in numbers {
            let is_known = details.set(name, number) || calibration::is_retired(name);
            if number > TIME_MAX_PS || !is_known {
                return Err(stranger(line, whole));
            }
        }
        Ok(Self { machine, figures, details })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let figures =
            CostParameters { line_ps: 31_000, processors: 16, ..CostParameters::default() };
        let details = Calibration { call_ps: 5, ..Calibration::of(&figures) };
        Record { machine: "Some Processor 9, 16 processors".into(), figures, details }
    }

    #[test]
    fn text_and_words_lead_back() {
        let text = record().to_string();
        assert_eq!(text.parse(), Ok(record()), "{text}");
        assert_eq!(CostParameters::from_words(&record().figures.to_words()), Ok(record().figures));
    }

    #[test]
    fn several_machines_share_a_file() {
        let other = |number: usize| Record { machine: format!("other {number}"), ..record() };
        let mut file = record().written_into("");
        assert_eq!(file, record().to_string());
        file = other(1).written_into(&file);
        let figures = CostParameters { line_ps: 77_000, ..record().figures };
        let again = Record { figures, ..record() };
        file = again.written_into(&file);
        assert_eq!(file.matches("machine = ").count(), 2, "{file}");
        assert_eq!(Record::of_machine(&file, &again.machine), Ok(again.clone()));
        assert_eq!(Record::of_machine(&file, "other 1"), Ok(other(1)));
        assert_eq!(Record::of_machine(&file, "unknown"), Ok(other(1)), "the first one");
        let damaged = file.replace("line_ps = 77000", "line_ps = fast");
        let error = Record::of_machine(&damaged, &again.machine).unwrap_err();
        let line = damaged.lines().position(|line| line.starts_with("line_ps = fast")).unwrap() + 1;
        assert!(error.to_string().starts_with(&format!("line {line} is ")), "{error}");
        assert_eq!(Record::of_machine(&damaged, "other 1"), Ok(other(1)));
        assert_eq!(again.written_into("nonsense\n"), again.to_string());
        for number in 2..200 {
            file = other(number).written_into(&file);
        }
        assert_eq!(file.matches("machine = ").count(), MACHINES_MAX);
        assert_eq!(Record::of_machine(&file, "other 199"), Ok(other(199)));
        assert!(file.len() < 1 << 20);
    }

    #[test]
    fn a_file_without_details_has_those_that_are_to_be_expected() {
        let text = record().to_string().replace("call_ps = 5", "");
        let read: Record = text.parse().unwrap();
        assert_eq!(read.details, Calibration::of(&record().figures));
        let damaged = record().to_string().replace("call_ps = 5", "call_ps = 99999999999999999");
        assert!(damaged.parse::<Record>().is_err());
    }

    #[test]
    fn figures_of_an_earlier_version_are_passed_over() {
        let text = record().to_string() + "crowd_switch_ps = 1900000\nturn_ps = 1400000 # two\n";
        assert_eq!(text.parse(), Ok(record()));
    }

    #[test]
    fn a_file_of_an_earlier_version_has_the_usual_cache() {
        let text = record().to_string().replace("\ncache_kib", "\n# cache_kib");
        assert_eq!(text.parse(), Ok(record()));
    }

    #[test]
    fn a_damaged_text_is_named_by_its_line() {
        let text = record().to_string();
        let missing = text.replace("\nswitch_ps", "\n# switch_ps");
        assert_eq!(
            missing.parse::<Record>(),
            Err(CostParametersError::Missing { name: "switch_ps" })
        );
        let damaged = text.replace("line_ps = 31000", "line_ps = fast");
        let error = damaged.parse::<Record>().unwrap_err();
        assert!(error.to_string().starts_with("line 5 is \"line_ps = fast"), "{error}");
        assert!("{}".parse::<Record>().is_err() && "".parse::<Record>().is_err());
    }
}
