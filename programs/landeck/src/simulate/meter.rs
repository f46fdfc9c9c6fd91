//! How far it is: a bar on a terminal, once it takes more than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Nobody needs a bar for less.
const QUIET: Duration = Duration::from_secs(1);
/// While nothing new is known, it is drawn again so often.
const AGAIN: Duration = Duration::from_millis(250);
/// Of each part, on the bar.
const PART: u64 = 1000;

/// A number of parts, and how many of them are done.
pub(crate) struct Meter {
    done: u64,
    bar: ProgressBar,
    /// Whoever waits to show the bar goes when this does.
    _shown: Sender<()>,
}

impl Meter {
    /// Nothing is done of so many parts of what is called so.
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

    /// So much of the next part is done.
    pub(crate) fn within(&mut self, done: u64, of: u64, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.set_position(self.done * PART + done * PART / of.max(1));
    }

    /// One more part is done.
    pub(crate) fn next(&mut self) {
        self.done += 1;
    }

    /// So many parts are done, perhaps fewer than it seemed.
    pub(crate) fn at(&mut self, done: usize, what: &str) {
        self.done = done as u64;
        self.within(0, 1, what);
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {}
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
