//! Times, rates and sizes with units: `6.5 us`, `240 MB/s`, `16 KiB`.

use std::fmt;

use crate::time::Time;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A length of time, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span(pub(super) u64);

/// The time for 1 KiB at some rate, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate(pub(super) u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

/// A number of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count(pub(super) i64);

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

/// Parses a moment.
pub(crate) fn time(text: &str) -> Option<Time> {
    Span::read(text).map(|span| Time::from_ps(span.0))
}

impl Span {
    fn read(text: &str) -> Option<Self> {
        let value = number(text, &TIMES)?;
        (0.0..=SPAN_MAX_PS).contains(&value).then_some(Self(value.round() as u64))
    }
}

impl Rate {
    fn read(text: &str) -> Option<Self> {
        let value = number(text, &RATES)?;
        let kib_ps = (1024.0 * PS_PER_S / value).round();
        (1.0..=SPAN_MAX_PS).contains(&kib_ps).then_some(Self(kib_ps as u64))
    }
}

impl Size {
    fn read(text: &str) -> Option<Self> {
        let value = number(text, &SIZES)?;
        (0.0..=1e15).contains(&value).then_some(Self(value.round() as u64))
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

/// Parses a number of things.
struct Whole;

impl Visitor<'_> for Whole {
    type Value = Count;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number, without quotes")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
        Ok(Count(number))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_i64(Whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_count() {
        assert_eq!(Span::read("6.5 us"), Some(Span(6_500_000)));
        assert_eq!((Span::read("0s"), Span::read("45ns")), (Some(Span(0)), Some(Span(45_000))));
        assert_eq!(Rate::read("8 Gb/s"), Some(Rate(1_024_000)));
        assert_eq!(Rate::read("1 GB/s"), Rate::read("8 Gb/s"));
        assert_eq!(Size::read("16 KiB"), Some(Size(16_384)));
    }

    #[test]
    fn a_text_that_is_no_quantity_is_refused() {
        for text in ["", "6.5", "us", "-1 us", "11 s", "1 hour", "1e400 us", "nan us"] {
            assert_eq!(Span::read(text), None, "{text}");
        }
        assert_eq!((Rate::read("0 Gb/s"), Rate::read("3 Gb")), (None, None));
        assert_eq!(Size::read("3 KiB/s"), None);
    }
}
