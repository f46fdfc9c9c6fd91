//! The result of a check, as a user reads it.

use std::collections::BTreeMap;
use std::fmt;

use super::property::{Property, Violation};

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceReport {
    /// A line for each set of members that delivered the same messages.
    pub members: Vec<String>,
    /// Safe messages that a survivor should have and does not have.
    pub safe_lost: usize,
    /// The properties of which the traces had a case.
    pub judged: Vec<Property>,
    /// The number of violations of each property.
    pub counts: BTreeMap<Property, usize>,
    /// The first violations of each property.
    pub violations: Vec<Violation>,
}

impl TraceReport {
    /// Returns whether all properties hold of which the traces had a case.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }

    /// Returns the properties of which the traces had no case.
    pub fn not_shown(&self) -> impl Iterator<Item = Property> + '_ {
        Property::ALL.into_iter().filter(|property| !self.judged.contains(property))
    }
}

impl fmt::Display for TraceReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.members {
            writeln!(formatter, "{line}")?;
        }
        for violation in &self.violations {
            writeln!(formatter, "VIOLATED {violation}")?;
        }
        for (property, count) in &self.counts {
            let told = self.violations.iter().filter(|it| it.property == *property).count();
            if told < *count {
                writeln!(
                    formatter,
                    "VIOLATED {property}: {} more",
                    with_commas((count - told) as u64)
                )?;
            }
        }
        let (held, broken) = (self.judged.len() - self.counts.len(), self.counts.len());
        let plural = |count: usize| if count == 1 { "property" } else { "properties" };
        let verb = if held == 1 { "holds" } else { "hold" };
        write!(formatter, "safe lost: {}; {held} {} {verb}", self.safe_lost, plural(held))?;
        match broken {
            0 => writeln!(formatter)?,
            1 => writeln!(formatter, ", 1 does not")?,
            _ => writeln!(formatter, ", {broken} do not")?,
        }
        let not_shown: Vec<&str> = self.not_shown().map(Property::name).collect();
        if not_shown.is_empty() {
            return Ok(());
        }
        writeln!(formatter, "not shown by these traces: {}", not_shown.join(", "))
    }
}

/// A number with a comma before each three digits. This crate imports nothing, so it has this itself.
pub(crate) fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_commas() {
        let numbers = [0, 999, 1_000, 40_310, 1_234_567];
        assert_eq!(numbers.map(with_commas), ["0", "999", "1,000", "40,310", "1,234,567"]);
    }
}
