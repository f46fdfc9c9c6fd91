//! Times, rates and sizes with units: `6.5 us`, `240 MB/s`, `16 KiB`.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The time in picoseconds.
    pub ps: u64,
}

/// A rate, as the time that 1 KiB takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The time for 1 KiB in picoseconds.
    pub kib_ps: u64,
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number of bytes.
    pub bytes: u64,
}

/// Units of time in picoseconds.
const TIMES: [(&str, f64); 5] = [("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];
/// Units of rates in bytes for each second.
const RATES: [(&str, f64); 6] = [
    ("Mb/s", 125e3),
    ("Gb/s", 125e6),
    ("Tb/s", 125e9),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("TB/s", 1e12),
];
/// Units of sizes in bytes.
const SIZES: [(&str, f64); 7] = [
    ("B", 1.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// The longest time: ten seconds.
const SPAN_MAX_PS: f64 = 1e13;
const PS_PER_S: f64 = 1e12;
const PS_PER_NS: u64 = 1_000;
/// The most significant digits of a rate that is shown.
const DIGITS_MAX: i32 = 4;

impl Span {
    /// Parses a time of at most 10 s, such as `6.5 us`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let value = number(text, &TIMES)?;
        (0.0..=SPAN_MAX_PS).contains(&value).then_some(Self { ps: value.round() as u64 })
    }
}

impl Rate {
    /// Parses a rate above 0 at which 1 KiB takes at most 10 s, such as `10 Gb/s`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let value = number(text, &RATES)?;
        let kib_ps = (1024.0 * PS_PER_S / value).round();
        (1.0..=SPAN_MAX_PS).contains(&kib_ps).then_some(Self { kib_ps: kib_ps as u64 })
    }

    /// The rate at which 1 KiB takes this time, in nanoseconds.
    #[must_use]
    pub const fn from_ns_per_kib(ns: u32) -> Self {
        Self { kib_ps: ns as u64 * PS_PER_NS }
    }

    /// The time for 1 KiB in whole nanoseconds, at least 1. `None` if it is 2 to the 32 or more.
    #[must_use]
    pub fn ns_per_kib(self) -> Option<u32> {
        let ns = (self.kib_ps + PS_PER_NS / 2) / PS_PER_NS;
        u32::try_from(ns.max(1)).ok()
    }
}

/// The roundest number of gigabits or megabits for each second that takes as many nanoseconds for 1 KiB.
impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 8.0 * 1024.0 * PS_PER_S / self.kib_ps.max(1) as f64;
        let (value, unit) =
            if bits < 0.9995e9 { (bits / 1e6, "Mb/s") } else { (bits / 1e9, "Gb/s") };
        let tens = value.log10().floor();
        let rounded = |digits: i32| {
            let step = 10f64.powf(tens - f64::from(digits - 1));
            (value / step).round() * step
        };
        let fits = |text: &String| {
            Self::read(text).is_some_and(|rate| rate.ns_per_kib() == self.ns_per_kib())
        };
        let text = |digits: i32| {
            let places = (digits - 1 - tens as i32).max(0) as usize;
            format!("{:.places$} {unit}", rounded(digits))
        };
        let text = (1..DIGITS_MAX).map(text).find(fits).unwrap_or_else(|| text(DIGITS_MAX));
        formatter.write_str(&text)
    }
}

impl Size {
    /// Parses a number of bytes, such as `16 KiB`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let value = number(text, &SIZES)?;
        (0.0..=1e15).contains(&value).then_some(Self { bytes: value.round() as u64 })
    }
}

fn number(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let value = number.trim().parse::<f64>().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * factor)
}

/// Parses a text by one of the functions above.
struct Text<T> {
    what: &'static str,
    read: fn(&str) -> Option<T>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.what)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let what = "a time of at most 10 s with its unit: \"6.5 us\" (ps, ns, us, ms, s)";
        from.deserialize_str(Text { what, read: Self::read })
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let what = "a rate with its unit: \"10 Gb/s\" or \"240 MB/s\" (Mb, Gb, Tb, MB, GB, TB)";
        from.deserialize_str(Text { what, read: Self::read })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let what = "a size with its unit: \"16 KiB\" (B, KB, MB, GB, KiB, MiB, GiB)";
        from.deserialize_str(Text { what, read: Self::read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_count() {
        let span = |ps| Some(Span { ps });
        assert_eq!(Span::read("6.5 us"), span(6_500_000));
        assert_eq!((Span::read("0s"), Span::read("45ns")), (span(0), span(45_000)));
        assert_eq!(Rate::read("8 Gb/s"), Some(Rate { kib_ps: 1_024_000 }));
        assert_eq!(Rate::read("1 GB/s"), Rate::read("8 Gb/s"));
        assert_eq!(Size::read("16 KiB"), Some(Size { bytes: 16_384 }));
    }

    #[test]
    fn a_text_that_is_no_quantity_is_refused() {
        for text in ["", "6.5", "us", "-1 us", "11 s", "1 hour", "1e400 us", "nan us"] {
            assert_eq!(Span::read(text), None, "{text}");
        }
        assert_eq!((Rate::read("0 Gb/s"), Rate::read("3 Gb")), (None, None));
        assert_eq!(Size::read("3 KiB/s"), None);
    }

    #[test]
    fn a_rate_is_shown_as_it_was_written() {
        for text in [
            "1 Gb/s", "2.5 Gb/s", "5 Gb/s", "10 Gb/s", "25 Gb/s", "40 Gb/s", "56 Gb/s", "100 Gb/s",
            "200 Gb/s", "400 Gb/s", "100 Mb/s", "10 Mb/s", "54 Mb/s", "999 Mb/s",
        ] {
            let ns = Rate::read(text).unwrap().ns_per_kib().unwrap();
            assert_eq!(Rate::from_ns_per_kib(ns).to_string(), text);
        }
        assert_eq!(Rate::from_ns_per_kib(8_192).to_string(), "1 Gb/s");
        for ns in [0, 1, 2, 3, 5, 4_097, 8_191, 8_193, 8_200, 1 << 30, u32::MAX] {
            assert!(Rate::from_ns_per_kib(ns).to_string().len() < 24);
        }
    }

    #[test]
    fn a_rate_in_nanoseconds_is_above_zero_and_has_32_bits() {
        assert_eq!(Rate::read("1 Gb/s").and_then(Rate::ns_per_kib), Some(8_192));
        assert_eq!(Rate::read("100 Tb/s").and_then(Rate::ns_per_kib), Some(1));
        assert_eq!(Rate::read("0.001 Mb/s").map(Rate::ns_per_kib), Some(None));
    }
}
