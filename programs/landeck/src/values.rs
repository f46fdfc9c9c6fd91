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

/// The words of a command, quoted as in a shell; `None` if a quote or a backslash stands open at the end.
pub(crate) fn shell_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => {
                let next = letters.next()?;
                let word = word.get_or_insert_default();
                if quote.is_some() && !"\"\\$`".contains(next) {
                    word.push('\\');
                }
                word.push(next);
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
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
    fn commands_are_quoted_as_in_a_shell() {
        for (text, words) in [
            ("ssh  -p 2222 ", &["ssh", "-p", "2222"][..]),
            ("ssh -o 'LogLevel ERROR'", &["ssh", "-o", "LogLevel ERROR"]),
            (r#"ssh -o "LogLevel ERROR" x"y z"'"'"#, &["ssh", "-o", "LogLevel ERROR", "xy z\""]),
            (r#"a\ b "\"\n" '' '\'"#, &["a b", r#""\n"#, "", r"\"]),
            ("", &[]),
        ] {
            assert_eq!(shell_words(text).unwrap(), words, "{text}");
        }
        for text in ["ssh 'x", "\"", "x\\"] {
            assert_eq!(shell_words(text), None, "{text}");
        }
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
