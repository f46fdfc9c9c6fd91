//! The load of a host: the tasks that run or want to, its memory, and how long tasks wait for what is scarce.
//!
//! Each daemon of a machine that stays reads these figures once a second from its kernel and tells the founder. They are shown
//! to people, and [`Booking`](super::Booking) places jobs by them.

use serde::{Deserialize, Serialize};

/// The memory pressure at which no further process goes to a host while another one may take it, in hundredths of a percent.
const SHORT_OF_MEMORY: u32 = 1_000;
/// The weight of the run queue until now, in quarters. The rest is that of the newest look: with one look a second the mean
/// covers about four seconds.
const KEPT_QUARTERS: u32 = 3;

/// The load of a host, as its kernel tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLoad {
    /// The tasks that run or wait for a processor, in hundredths: a mean over the last seconds.
    pub running_hundredths: u32,
    /// The kernel's load average over one minute, in hundredths.
    pub average_hundredths: u32,
    /// The memory, in KiB.
    pub memory_kib: u64,
    /// The memory that programs can still get, in KiB.
    pub available_kib: u64,
    /// How long tasks wait; `None` if the kernel does not measure it.
    pub pressure: Option<HostPressure>,
}

/// The shares of the last ten seconds in which at least one task waited, in hundredths of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPressure {
    /// For a processor.
    pub processor: u32,
    /// For memory.
    pub memory: u32,
    /// For a disk.
    pub disk: u32,
}

impl HostLoad {
    /// The load that these texts tell: those of `/proc/loadavg` and `/proc/meminfo`, and of `cpu`, `memory` and `io` in
    /// `/proc/pressure`. The task that reads them is not counted. A text that is not understood counts as zeros, and one of
    /// the pressures as none.
    ///
    /// ```
    /// use landeck_protocols::hosts::HostLoad;
    ///
    /// let load = HostLoad::read("1.50 1.00 0.50 3/128 4711", "MemTotal: 2048 kB\n", [""; 3]);
    /// assert_eq!((load.running_hundredths, load.average_hundredths), (200, 150));
    /// assert_eq!((load.memory_kib, load.pressure), (2048, None));
    /// ```
    #[must_use]
    pub fn read(averages: &str, memory: &str, pressures: [&str; 3]) -> Self {
        let mut words = averages.split_whitespace();
        let average_hundredths = words.next().and_then(hundredths).unwrap_or(0);
        let running = words.nth(2).and_then(|word| word.split('/').next()?.parse::<u32>().ok());
        let [processor, of_memory, disk] = pressures.map(some_of_ten_seconds);
        let pressure =
            || Some(HostPressure { processor: processor?, memory: of_memory?, disk: disk? });
        Self {
            running_hundredths: running.unwrap_or(0).saturating_sub(1).saturating_mul(100),
            average_hundredths,
            memory_kib: kib_of(memory, "MemTotal:"),
            available_kib: kib_of(memory, "MemAvailable:"),
            pressure: pressure(),
        }
    }

    /// This load, its run queue averaged with the one before.
    #[must_use]
    pub fn smoothed(self, before: Self) -> Self {
        let sum = u64::from(before.running_hundredths) * u64::from(KEPT_QUARTERS)
            + u64::from(self.running_hundredths) * u64::from(4 - KEPT_QUARTERS);
        Self { running_hundredths: u32::try_from(sum / 4).unwrap_or(u32::MAX), ..self }
    }

    /// Whether tasks wait for memory so long that the host should get no further process.
    #[must_use]
    pub fn is_short_of_memory(&self) -> bool {
        self.pressure.is_some_and(|pressure| pressure.memory >= SHORT_OF_MEMORY)
    }
}

/// A number with a decimal point, in hundredths.
pub(super) fn hundredths(word: &str) -> Option<u32> {
    let value: f64 = word.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some((value * 100.0).round() as u32)
}

/// The value of a line of `/proc/meminfo`.
fn kib_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The share of the last ten seconds in which some task waited, of a file in `/proc/pressure`.
fn some_of_ten_seconds(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    hundredths(line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVERAGES: &str = "4.23 4.00 6.16 5/128 7521\n";
    const MEMORY: &str = "MemTotal:       16384000 kB\nMemFree: 1 kB\nMemAvailable:   8192000 kB\n";
    const PRESSURE: &str = "some avg10=50.47 avg60=77.29 avg300=51.69 total=8178607586\n\
                            full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

    #[test]
    fn the_load_is_what_the_kernel_tells_without_its_reader() {
        let none = PRESSURE.replace("50.47", "0.00");
        let load = HostLoad::read(AVERAGES, MEMORY, [PRESSURE, &none, &none]);
        let pressure = Some(HostPressure { processor: 5_047, memory: 0, disk: 0 });
        let expected = HostLoad {
            running_hundredths: 400,
            average_hundredths: 423,
            memory_kib: 16_384_000,
            available_kib: 8_192_000,
            pressure,
        };
        assert_eq!(load, expected);
        assert!(!load.is_short_of_memory());
        let short = HostLoad::read(AVERAGES, MEMORY, [&none, PRESSURE, &none]);
        assert!(short.is_short_of_memory());
    }

    #[test]
    fn texts_of_another_form_count_as_nothing() {
        for text in ["", "x y z", "nan 1 1 /", "-"] {
            assert_eq!(HostLoad::read(text, text, [text; 3]), HostLoad::default(), "{text:?}");
        }
        assert_eq!(HostLoad::read("", "", [PRESSURE, PRESSURE, ""]).pressure, None);
    }

    #[test]
    fn a_short_burst_counts_as_a_quarter() {
        let of = |running_hundredths| HostLoad { running_hundredths, ..HostLoad::default() };
        assert_eq!(of(400).smoothed(of(0)), of(100));
        assert_eq!(of(0).smoothed(of(400)), of(300));
        assert_eq!(of(u32::MAX).smoothed(of(u32::MAX)), of(u32::MAX));
    }
}
