//! Lists and ranges of numbers on the command line: `24,48,96`, `4..40K`.

use landeck_host::report::thousands;
use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;

/// Numbers in rising order, each once, and at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<u64>);

/// A text that is not a list of numbers.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NumbersError {
    #[error("{0:?} is no number; write 40, 40K (thousands), 16Ki, 4M, 1Mi")]
    Number(String),
    #[error("{0:?} is too large; write {max} or less", max = u64::MAX)]
    Large(String),
    #[error("{0:?} goes backwards; write the smaller number first, as in 4..40K")]
    Backwards(String),
    #[error("there is nothing in it; write 4,400,40K or 4..40K")]
    Nothing,
}

impl FromStr for Numbers {
    type Err = NumbersError;

    /// Parses numbers and ranges between commas. A range doubles from its first number and ends with its last.
    fn from_str(text: &str) -> Result<Self, NumbersError> {
        let mut numbers = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once("..") {
                None => numbers.push(number(part)?),
                Some((first, last)) => numbers.extend(range(part, number(first)?, number(last)?)?),
            }
        }
        if numbers.is_empty() {
            return Err(NumbersError::Nothing);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Self(numbers))
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(u64::to_string).collect();
        formatter.write_str(&texts.join(","))
    }
}

impl Numbers {
    /// The largest number.
    pub(crate) fn largest(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }
}

/// A parser of numbers within bounds.
pub(crate) fn numbers(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<Numbers, String> + Clone + Send + Sync + 'static {
    move |text| {
        let numbers: Numbers = text.parse().map_err(|error: NumbersError| error.to_string())?;
        match numbers.0.iter().find(|number| !(least..=most).contains(number)) {
            None => Ok(numbers),
            Some(number) => {
                let most = thousands(most);
                Err(format!("numbers from {least} to {most} are wanted, and {number} is none"))
            }
        }
    }
}

fn range(part: &str, first: u64, last: u64) -> Result<Vec<u64>, NumbersError> {
    if first > last {
        return Err(NumbersError::Backwards(part.into()));
    }
    let doubled = |&before: &u64| before.max(1).checked_mul(if before == 0 { 1 } else { 2 });
    let steps = std::iter::successors(Some(first), doubled).take_while(|&step| step < last);
    Ok(steps.chain([last]).collect())
}

fn number(text: &str) -> Result<u64, NumbersError> {
    let wrong = || NumbersError::Number(text.into());
    let large = || NumbersError::Large(text.into());
    let text = text.trim().trim_end_matches('B');
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" | "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number = digits.parse::<u64>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => large(),
        _ => wrong(),
    })?;
    number.checked_mul(factor).ok_or_else(large)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Result<Vec<u64>, String> {
        text.parse::<Numbers>().map(|numbers| numbers.0).map_err(|error| error.to_string())
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(numbers("96,24,24"), Ok(vec![24, 96]));
        assert_eq!(numbers("4..40"), Ok(vec![4, 8, 16, 32, 40]));
        assert_eq!(numbers("0..4"), Ok(vec![0, 1, 2, 4]));
        assert_eq!(numbers("40KB, 1KiB,2M"), Ok(vec![1024, 40_000, 2_000_000]));
        assert_eq!(numbers("7..7"), Ok(vec![7]));
        assert_eq!("8..32".parse::<Numbers>().unwrap().to_string(), "8,16,32");
    }

    #[test]
    fn a_malformed_list_of_numbers_is_explained() {
        for (text, words) in [
            ("", "there is nothing in it"),
            ("many", "\"many\" is no number; write 40, 40K"),
            ("4Q", "\"4Q\" is no number"),
            ("-1", "is no number"),
            ("40..4", "\"40..4\" goes backwards"),
            ("99999999999999G", "\"99999999999999G\" is too large"),
            ("99999999999999999999", "is too large"),
        ] {
            assert!(numbers(text).unwrap_err().contains(words), "{text}");
        }
    }
}
