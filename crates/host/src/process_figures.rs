//! The kernel's figures about a process: its state, and how long it has computed.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The activity of a process, as the kernel shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// It computes, or is ready to.
    Runs,
    /// It waits for something.
    Sleeps,
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// It has ended, and its parent has not reaped it yet.
    Ended,
}

/// The kernel's figures about a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessFigures {
    /// The activity of its first thread.
    pub activity: Activity,
    /// The processor time of all its threads.
    pub computed: Duration,
    /// The number of its threads.
    pub threads: u32,
}

/// The figures of a process; `None` if it does not exist or cannot be seen from here.
pub fn of_process(pid: u32) -> Option<ProcessFigures> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Whether any thread of a process computes.
pub fn has_running_thread(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut stats =
        threads.filter_map(|thread| parse(&fs::read_to_string(thread.path().join("stat")).ok()?));
    stats.any(|figures| figures.activity == Activity::Runs)
}

/// Parses a line of `/proc/PID/stat`. The name in it may contain anything.
fn parse(line: &str) -> Option<ProcessFigures> {
    let behind_name = &line[line.rfind(')')? + 1..];
    let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let activity = match *fields.first()? {
        "R" => Activity::Runs,
        "T" | "t" => Activity::Stopped,
        "Z" | "X" | "x" => Activity::Ended,
        _ => Activity::Sleeps,
    };
    let ticks = number(11)?.saturating_add(number(12)?);
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let computed = Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / per_second));
    Some(ProcessFigures { activity, computed, threads: u32::try_from(number(17)?).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name() {
        let line = "4711 (a) b (c) T 1 4711 4711 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 3 0 100 0";
        let figures = parse(line).unwrap();
        let computed = Duration::from_secs(200) / rustix::param::clock_ticks_per_second() as u32;
        assert_eq!(figures, ProcessFigures { activity: Activity::Stopped, computed, threads: 3 });
        assert_eq!(parse("4711 (cut) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn this_process_runs() {
        let own = of_process(std::process::id()).unwrap();
        assert!(own.threads >= 1 && own.activity != Activity::Stopped);
        assert!(has_running_thread(std::process::id()));
        assert_eq!(of_process(u32::MAX), None);
    }
}
