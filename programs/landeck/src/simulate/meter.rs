//! How far it is: a bar on a terminal, once it takes more than a second.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Nobody needs a bar for less.
const QUIET: Duration = Duration::from_secs(1);
/// Of each part, on the bar.
const PART: u64 = 1000;

/// A number of parts, and how many of them are done.
pub(crate) struct Meter {
    began: Instant,
    parts: u64,
    done: u64,
    bar: Option<ProgressBar>,
}

impl Meter {
    /// Nothing is done of so many parts.
    pub(crate) fn new(parts: usize) -> Self {
        Self { began: Instant::now(), parts: parts as u64, done: 0, bar: None }
    }

    /// So much of the next part is done.
    pub(crate) fn within(&mut self, done: u64, of: u64, what: &str) {
        if self.bar.is_none() && self.began.elapsed() > QUIET && io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("simulate [{bar:28}] {percent:>3}%  {msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar = Some(ProgressBar::new(self.parts * PART).with_style(style));
        }
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            bar.set_position(self.done * PART + done * PART / of.max(1));
        }
    }

    /// One more part is done.
    pub(crate) fn next(&mut self) {
        self.done += 1;
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
