//! Whole numbers of platform files.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A number of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count(pub(super) i64);

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
