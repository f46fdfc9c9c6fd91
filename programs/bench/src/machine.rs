//! Where and when it was measured.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The description of the machine below every table and picture.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// Year, month and day, universal time.
    pub(crate) date: String,
    pub(crate) processor: String,
    pub(crate) processors: usize,
    pub(crate) kernel: String,
    /// Processes that wanted to run in the minute before: more than one is a disturbed machine.
    pub(crate) load_before: f64,
}

impl Machine {
    pub(crate) fn here() -> Machine {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Machine {
            date: date_of(since_1970.as_secs() / 86_400),
            processor: processor_name(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            load_before: load
                .split_whitespace()
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or(0.0),
        }
    }
}

fn processor_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The day so many days after 1 January 1970 (the Gregorian calendar repeats every 400 years).
fn date_of(days: u64) -> String {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // Counted from 1 March of the year 0, so that the leap day comes last in its year.
    let days = days + 719_468;
    let day_of_era = days % DAYS_OF_400_YEARS;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * (days / DAYS_OF_400_YEARS) + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(date_of(0), "1970-01-01");
        assert_eq!(date_of(11_016), "2000-02-29");
        assert_eq!(date_of(20_778), "2026-11-21");
    }
}
