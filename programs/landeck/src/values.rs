//! Parsers of values on the command line, with messages that describe a valid value.

use clap::ValueEnum;
use landeck::settings;
use landeck_host::report::thousands;
use std::time::Duration;

/// The words before a line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TagWith {
    /// The rank.
    Rank,
    /// The rank and the host.
    Host,
}

/// Parses a whole number from `least` to `most`.
pub(crate) fn whole(
    least: u32,
    most: u32,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ if most == u32::MAX => {
            Err(format!("a whole number is wanted, {least} or more, such as 4"))
        }
        _ => {
            let example = 4.clamp(least, most);
            let most = thousands(most.into());
            Err(format!("a whole number is wanted, from {least} to {most}, such as {example}"))
        }
    }
}

/// Parses a time with or without a unit.
pub(crate) fn time(text: &str) -> Result<Duration, &'static str> {
    const WANTED: &str = "a time is wanted, 0 or more, such as 90, 0.5, 10m or 2h";
    if text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Err(WANTED); // a word is no unit of anything
    }
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit_seconds = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("the unit is not known: use ms, s, m or h"),
    };
    let number: f64 = digits.parse().map_err(|_| WANTED)?;
    Duration::try_from_secs_f64(number * unit_seconds).map_err(|_| WANTED)
}

/// Reads a value of an option that says the same as a variable.
pub(crate) fn setting(
    variable: &'static str,
) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync {
    move |text| settings::check(variable, text).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(whole(1, u32::MAX)("4294967295"), Ok(u32::MAX));
        for text in ["0", "-1", "two", "", "4294967296"] {
            let error = whole(1, u32::MAX)(text).unwrap_err();
            assert_eq!(error, "a whole number is wanted, 1 or more, such as 4", "{text}");
        }
        assert_eq!(
            whole(0, 9)("10").unwrap_err(),
            "a whole number is wanted, from 0 to 9, such as 4"
        );
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(time("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        for text in ["-5", "", "h", "1d", "inf"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
