//! A progress bar on a terminal, for whatever takes more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Shorter work needs no bar.
const QUIET: Duration = Duration::from_secs(1);
/// How often the bar is drawn without progress.
const AGAIN: Duration = Duration::from_millis(250);
/// Units of each part on the bar.
const PART: u64 = 1000;

/// The progress of a number of parts.
pub(crate) struct Meter {
    done: u64,
    bar: ProgressBar,
    /// The thread that shows the bar ends when this is dropped.
    _shown: Sender<()>,
}

impl Meter {
    /// Begins with this many parts.
    pub(crate) fn new(name: &str, parts: usize) -> Self {
        let style = ProgressStyle::with_template(&format!(
            "{name} [{{bar:28}}] {{percent:>3}}%  {{elapsed}}  {{msg}}"
        ));
        let bar = ProgressBar::new(parts as u64 * PART)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let (shown, over) = mpsc::channel();
        if io::stderr().is_terminal() {
            let bar = bar.clone();
            thread::spawn(move || {
                if over.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(AGAIN);
                }
            });
        }
        Self { done: 0, bar, _shown: shown }
    }

    /// Notes the progress of the current part.
    pub(crate) fn within(&mut self, done: u64, of: u64, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.set_position(self.done * PART + done * PART / of.max(1));
    }

    /// Ends a part.
    pub(crate) fn next(&mut self) {
        self.done += 1;
    }

    /// Sets the number of finished parts, which may be smaller than before.
    pub(crate) fn at(&mut self, done: usize, what: &str) {
        self.done = done as u64;
        self.within(0, 1, what);
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {}
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
