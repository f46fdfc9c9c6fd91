//! The text in which `landeck tune` keeps the figures of a machine.

use std::fmt;
use std::str::FromStr;

use crate::calibration::{self, Calibration};
use crate::cost_parameters::{
    ADDED_LATER, CostParameters, CostParametersError, FIELDS, TIME_MAX_PS,
};

/// Figures, and the machine that they are of: what a file of them says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The machine, in words that differ where the figures do.
    pub machine: String,
    /// Its figures.
    pub figures: CostParameters,
    /// More about it; what a file does not say is [`Calibration::of`] the figures.
    pub details: Calibration,
}

impl fmt::Display for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "# What this machine can do, measured by `landeck tune`.")?;
        writeln!(formatter, "# Times in picoseconds; delete the file to forget them.")?;
        writeln!(formatter, "machine = {:?}", self.machine)?;
        for (name, about, value) in self.figures.lines().chain(self.details.lines()) {
            writeln!(formatter, "{:<32} # {about}", format!("{name} = {value}"))?;
        }
        Ok(())
    }
}

impl FromStr for Record {
    type Err = CostParametersError;

    fn from_str(text: &str) -> Result<Self, CostParametersError> {
        let mut machine = None;
        let mut values = [None; CostParameters::WORDS];
        let mut details = [None; Calibration::WORDS];
        for (line, whole) in (1..).zip(text.lines()) {
            let stranger =
                || CostParametersError::Line { line, text: whole.chars().take(80).collect() };
            let (name, value) = match whole.trim() {
                text if text.is_empty() || text.starts_with('#') => continue,
                text => text.split_once(" = ").ok_or_else(stranger)?,
            };
            if name == "machine" {
                machine = Some(value.trim_matches('"').to_owned());
                continue;
            }
            if calibration::RETIRED.contains(&name) {
                continue;
            }
            let field = FIELDS.iter().position(|field| field.name == name);
            let detail = calibration::NAMES.iter().position(|(detail, _)| *detail == name);
            let place = match (field, detail) {
                (Some(field), _) => &mut values[field],
                (_, Some(detail)) => &mut details[detail],
                (None, None) => return Err(stranger()),
            };
            let digits = value.split('#').next().unwrap_or_default().trim();
            let number: u64 = digits.parse().map_err(|_| stranger())?;
            if detail.is_some() && number > TIME_MAX_PS {
                return Err(stranger());
            }
            *place = Some(number);
        }
        let mut words = CostParameters::default().to_words();
        for ((word, value), field) in words.iter_mut().zip(values).zip(&FIELDS) {
            match value {
                Some(value) => *word = value,
                None if ADDED_LATER.contains(&field.name) => {}
                None => return Err(CostParametersError::Missing { name: field.name }),
            }
        }
        let machine = machine.ok_or(CostParametersError::Missing { name: "machine" })?;
        let figures = CostParameters::from_words(&words)?;
        let mut known = Calibration::of(&figures).words();
        for (word, value) in known.iter_mut().zip(details) {
            *word = value.unwrap_or(*word);
        }
        Ok(Self { machine, figures, details: Calibration::from_words(known) })
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
    fn a_file_without_details_has_those_that_are_to_be_expected() {
        let text = record().to_string().replace("call_ps = 5", "");
        let read: Record = text.parse().unwrap();
        assert_eq!(read.details, Calibration::of(&record().figures));
        let damaged = record().to_string().replace("call_ps = 5", "call_ps = 99999999999999999");
        assert!(damaged.parse::<Record>().is_err());
    }

    #[test]
    fn what_an_earlier_version_has_measured_is_passed_over() {
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
