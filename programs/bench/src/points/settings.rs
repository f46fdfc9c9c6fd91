//! The command line: a figure, and settings as NAME=VALUE.

use std::path::PathBuf;
use std::str::FromStr;

/// The settings of bench/points.c, with the same names and values, and those of Landeck's own figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) figure: String,
    pub(crate) bytes: Vec<usize>,
    pub(crate) pending: Vec<usize>,
    pub(crate) batches: usize,
    pub(crate) batch_ms: f64,
    pub(crate) limit_s: f64,
    pub(crate) wait_ms: u64,
    pub(crate) flag: PathBuf,
    /// The job that is joined.
    pub(crate) job: String,
    /// Ways of a broadcast.
    pub(crate) ways: Vec<String>,
    /// Operations in a batch, where their number is given.
    pub(crate) iterations: usize,
    /// Data are written anew before each operation, in the time that counts.
    pub(crate) is_new: bool,
    /// Data begin so many bytes behind the begin of a page: large ones from `malloc` 16, those of C 0.
    pub(crate) offset: usize,
}

impl Settings {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Settings, String> {
        let figure = arguments
            .next()
            .ok_or("which figure? usage: landeck-points FIGURE [setting=value ...]")?;
        let mut settings = Settings {
            figure,
            bytes: vec![8],
            pending: vec![256, 10_000],
            batches: 20,
            batch_ms: 5.0,
            limit_s: 20.0,
            wait_ms: 1_500,
            flag: PathBuf::new(),
            job: String::new(),
            ways: vec!["landeck".to_owned()],
            iterations: 20,
            is_new: false,
            offset: 0,
        };
        arguments.try_for_each(|argument| settings.set(&argument))?;
        Ok(settings)
    }

    /// The largest message.
    pub(crate) fn largest(&self) -> usize {
        self.bytes.iter().copied().max().unwrap_or(0).max(8)
    }

    fn set(&mut self, argument: &str) -> Result<(), String> {
        let Some((name, value)) = argument.split_once('=') else {
            return Err(format!("'{argument}' is no setting; settings are written NAME=VALUE"));
        };
        match name {
            "bytes" => {
                self.bytes =
                    value.split(',').map(|value| parse(name, value)).collect::<Result<_, _>>()?;
            }
            "pending" => {
                self.pending =
                    value.split(',').map(|value| parse(name, value)).collect::<Result<_, _>>()?;
            }
            "batches" => self.batches = parse(name, value)?,
            "batch_ms" => self.batch_ms = parse(name, value)?,
            "limit_s" => self.limit_s = parse(name, value)?,
            "wait_ms" => self.wait_ms = parse(name, value)?,
            "flag" => self.flag = value.into(),
            "job" => self.job = value.to_owned(),
            "ways" => self.ways = value.split(',').map(str::to_owned).collect(),
            "offset" => self.offset = parse(name, value)?,
            "new" => self.is_new = parse::<u8>(name, value)? != 0,
            "iterations" => self.iterations = parse::<usize>(name, value)?.max(1),
            _ => return Err(format!("there is no setting '{name}'")),
        }
        Ok(())
    }
}

fn parse<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}={value}: that is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Settings, String> {
        Settings::parse(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn reads_lists_and_numbers() {
        let settings = parsed(&["round", "bytes=8,1024", "batch_ms=2.5", "new=1"]).unwrap();
        assert_eq!(
            (settings.bytes.as_slice(), settings.batch_ms, settings.batches),
            (&[8, 1024][..], 2.5, 20)
        );
        assert_eq!((settings.largest(), settings.is_new), (1024, true));
    }

    #[test]
    fn names_what_it_does_not_understand() {
        assert!(parsed(&[]).unwrap_err().starts_with("which figure?"));
        assert!(parsed(&["round", "bytes=many"]).unwrap_err().contains("no number"));
        assert!(parsed(&["round", "colour=red"]).unwrap_err().contains("'colour'"));
    }
}
