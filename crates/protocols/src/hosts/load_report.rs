//! The load of a host as a line of text, which the helper of the host broadcasts to a group of its machine once a second.
//!
//! ```text
//! landeck-load 1 host=n1 number=0 cores=4 running=2.50 average=1.04 memory_kib=16777216 available_kib=1572864 pressure=50.40,0.00,1.49
//! ```
//!
//! The words stand in this order. A program in any language splits the line at blanks. Where the kernel measures no pressure,
//! the last word is `pressure=-`.

use core::fmt;
use core::str::FromStr;

use landeck_wire::HostNumber;

use super::load::{HostLoad, HostPressure, hundredths};

/// The name of the group to which the loads are broadcast, in the own job of a machine.
pub const LOAD_GROUP: &str = "landeck.load";
/// The first words of a report: the number is that of this form.
const FORM: [&str; 2] = ["landeck-load", "1"];
/// A share of the time cannot be larger, in hundredths of a percent.
const WHOLE: u32 = 10_000;

/// The load of a host, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// The name of the host.
    pub host: String,
    /// Its number in the machine.
    pub number: HostNumber,
    /// Its cores that jobs may use.
    pub cores: u16,
    /// Its load.
    pub load: HostLoad,
}

/// The reason why a text is no report of a load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadReportError {
    /// It is a text of another kind, or of a newer form.
    #[error(
        "a text in the group {LOAD_GROUP} begins with {0:?}, and a load with \"landeck-load 1\": skip it"
    )]
    Form(String),
    /// A word is missing, or has no sensible value.
    #[error("a load in the group {LOAD_GROUP} has {found:?} where {name}=VALUE belongs: skip it")]
    Word {
        /// The name of the value.
        name: &'static str,
        /// The word in its place.
        found: String,
    },
    /// Something stands behind the last word.
    #[error("a load in the group {LOAD_GROUP} goes on with {0:?} behind its last word: skip it")]
    Rest(String),
}

impl fmt::Display for LoadReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, number, cores, load } = self;
        let hundredths = |value: u32| format!("{}.{:02}", value / 100, value % 100);
        let pressure = load.pressure.map_or_else(
            || "-".to_owned(),
            |HostPressure { processor, memory, disk }| {
                [processor, memory, disk].map(hundredths).join(",")
            },
        );
        let [name, form] = FORM;
        write!(
            formatter,
            "{name} {form} host={host} number={} cores={cores} running={} average={} memory_kib={} available_kib={} pressure={pressure}",
            number.0,
            hundredths(load.running_hundredths),
            hundredths(load.average_hundredths),
            load.memory_kib,
            load.available_kib,
        )
    }
}

impl FromStr for LoadReport {
    type Err = LoadReportError;

    /// Reads a report. Whoever has sent it, its values are sensible then.
    ///
    /// ```
    /// use landeck_protocols::hosts::LoadReport;
    ///
    /// let line = "landeck-load 1 host=n1 number=0 cores=4 running=2.50 average=1.04 memory_kib=64 available_kib=16 pressure=-";
    /// let report: LoadReport = line.parse().unwrap();
    /// assert_eq!((report.host.as_str(), report.load.running_hundredths), ("n1", 250));
    /// assert!("landeck-load 2 host=n1".parse::<LoadReport>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, LoadReportError> {
        let mut words = Words(text.split_ascii_whitespace());
        words.form()?;
        let report = Self {
            host: words.value("host", |word| (!word.is_empty()).then(|| word.to_owned()))?,
            number: HostNumber(words.value("number", |word| word.parse().ok())?),
            cores: words.value("cores", |word| word.parse().ok())?,
            load: words.load()?,
        };
        match words.0.next() {
            None => Ok(report),
            Some(rest) => Err(LoadReportError::Rest(rest.to_owned())),
        }
    }
}

/// The words of a report.
struct Words<'a>(core::str::SplitAsciiWhitespace<'a>);

impl Words<'_> {
    fn form(&mut self) -> Result<(), LoadReportError> {
        let found = FORM.map(|_| self.0.next().unwrap_or_default());
        match found == FORM {
            true => Ok(()),
            false => Err(LoadReportError::Form(found.join(" ").trim_end().to_owned())),
        }
    }

    /// The value of the next word, which has this name.
    fn value<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, LoadReportError> {
        let word = self.0.next().unwrap_or_default();
        let value = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
        value.and_then(read).ok_or_else(|| LoadReportError::Word { name, found: word.to_owned() })
    }

    fn load(&mut self) -> Result<HostLoad, LoadReportError> {
        let running_hundredths = self.value("running", hundredths)?;
        let average_hundredths = self.value("average", hundredths)?;
        let memory_kib = self.value("memory_kib", |word| word.parse().ok())?;
        let available = |word: &str| word.parse().ok().filter(|available| *available <= memory_kib);
        let available_kib = self.value("available_kib", available)?;
        let pressure = self.value("pressure", |word| match word {
            "-" => Some(None),
            shares => pressure(shares).map(Some),
        })?;
        Ok(HostLoad { running_hundredths, average_hundredths, memory_kib, available_kib, pressure })
    }
}

/// Three shares, divided by commas.
fn pressure(shares: &str) -> Option<HostPressure> {
    let mut shares = shares.split(',');
    let mut next = || hundredths(shares.next()?).filter(|share| *share <= WHOLE);
    let pressure = HostPressure { processor: next()?, memory: next()?, disk: next()? };
    shares.next().is_none().then_some(pressure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> LoadReport {
        let load = HostLoad {
            running_hundredths: 250,
            average_hundredths: 104,
            memory_kib: 16 << 20,
            available_kib: 3 << 19,
            pressure: Some(HostPressure { processor: 5_040, memory: 0, disk: 149 }),
        };
        LoadReport { host: "n1".to_owned(), number: HostNumber(0), cores: 4, load }
    }

    #[test]
    fn a_load_is_a_line_that_is_read_as_it_was_written() {
        let line = "landeck-load 1 host=n1 number=0 cores=4 running=2.50 average=1.04 \
                    memory_kib=16777216 available_kib=1572864 pressure=50.40,0.00,1.49";
        assert_eq!(report().to_string(), line);
        assert_eq!(line.parse(), Ok(report()));
        let load = HostLoad { pressure: None, ..report().load };
        let unmeasured = LoadReport { load, ..report() };
        assert_eq!(unmeasured.to_string().parse(), Ok(unmeasured));
    }

    #[test]
    fn what_is_no_load_is_named() {
        let good = report().to_string();
        for (from, to, wrong) in [
            ("landeck-load 1", "hello", "begins with \"hello host=n1\""),
            ("load 1", "load 2", "begins with \"landeck-load 2\""),
            ("host=n1", "host=", "has \"host=\" where host=VALUE belongs"),
            ("number=0", "number=65536", "\"number=65536\""),
            ("cores=4 ", "", "has \"running=2.50\" where cores=VALUE belongs"),
            ("2.50", "-2.50", "\"running=-2.50\""),
            ("1.04", "nan", "\"average=nan\""),
            ("available_kib=1572864", "available_kib=16777217", "available_kib=VALUE"),
            ("1.49", "100.01", "pressure=VALUE"),
            ("1.49", "1.49,2.00", "pressure=VALUE"),
            (",1.49", "", "pressure=VALUE"),
            ("1.49", "1.49 more=1", "goes on with \"more=1\""),
        ] {
            let error = good.replace(from, to).parse::<LoadReport>().unwrap_err().to_string();
            assert!(error.contains(wrong), "{from} {to}: {error}");
        }
        assert!("".parse::<LoadReport>().is_err());
    }
}
