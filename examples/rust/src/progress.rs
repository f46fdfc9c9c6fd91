//! How far a program is: a bar on a terminal, a plain line now and then anywhere else.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

/// How long it is quiet between two plain lines.
const QUIET: Duration = Duration::from_secs(2);

/// How far the steps of a program are.
pub struct Progress {
    title: String,
    steps: u64,
    kind: Kind,
}

enum Kind {
    /// A terminal.
    Bar(ProgressBar),
    /// A file or a pipe: when the last line was written.
    Lines(Instant),
}

impl Progress {
    /// A program that wants to make so many steps.
    pub fn new(title: &str, steps: u64, processes: usize) -> Self {
        let kind = if std::io::stderr().is_terminal() {
            Kind::Bar(bar(title, steps, processes))
        } else {
            Kind::Lines(Instant::now())
        };
        Self { title: title.to_owned(), steps, kind }
    }

    /// So many steps are made.
    pub fn reached(&mut self, steps: u64) {
        match &mut self.kind {
            Kind::Bar(bar) => bar.set_position(steps),
            Kind::Lines(last) if last.elapsed() >= QUIET => {
                *last = Instant::now();
                let percent = 100 * steps / self.steps.max(1);
                let (done, all) = (HumanCount(steps), HumanCount(self.steps));
                eprintln!("{} {percent}%  {done} of {all} steps", self.title);
            }
            Kind::Lines(_) => {}
        }
    }

    /// All steps are made.
    pub fn finish(self) {
        if let Kind::Bar(bar) = self.kind {
            bar.finish();
            eprintln!(); // what comes next begins a line of its own
        }
    }
}

/// `heat 512x512  [=================>          ] 63%  1,260 of 2,000 steps  4 processes`
fn bar(title: &str, steps: u64, processes: usize) -> ProgressBar {
    let template = "{prefix}  [{wide_bar}] {percent}%  {human_pos} of {human_len} steps  {msg}";
    let style = ProgressStyle::with_template(template)
        .expect("the template is constant and well formed")
        .progress_chars("=> ");
    let processes =
        if processes == 1 { "1 process".into() } else { format!("{processes} processes") };
    ProgressBar::new(steps).with_style(style).with_prefix(title.to_owned()).with_message(processes)
}
