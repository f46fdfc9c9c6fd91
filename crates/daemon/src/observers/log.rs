//! The log of this daemon: the last transitions of its trunks, lanes, words and hosts. It is kept in memory alone, and
//! `landeck why --log` shows it.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use landeck_diagnosis::far::LogLine;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The number of lines that are kept.
const LINES_MAX: usize = 1_000;
/// The number of bytes that are kept of a line.
const LINE_BYTES_MAX: usize = 240;

/// The lines of all threads of this daemon, the oldest first.
static LINES: Mutex<VecDeque<LogLine>> = Mutex::new(VecDeque::new());

/// Keeps the log from now on.
pub(crate) fn begin() {
    // It can be refused only if it was begun before.
    let _ = tracing::subscriber::set_global_default(Log);
}

/// The lines that are kept, the oldest first.
pub(crate) fn lines() -> Vec<LogLine> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// Returns the lines as commands get them, each with its time.
pub(crate) fn for_callers() -> Vec<(u64, String)> {
    lines().into_iter().map(|line| (line.at_ns, line.text)).collect()
}

/// Takes the events of this program, and no spans.
struct Log;

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::INFO
            && metadata.target().starts_with("landeck")
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        while text.0.len() > LINE_BYTES_MAX {
            text.0.pop();
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(LogLine { at_ns, text: text.0 });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message of an event.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Writing into a text does not fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        begin();
        for number in 0..LINES_MAX + 5 {
            tracing::info!("event {number} of this test {}", "x".repeat(LINE_BYTES_MAX));
        }
        tracing::debug!("a detail");
        let lines = lines();
        assert_eq!(lines.len(), LINES_MAX);
        let own: Vec<&LogLine> =
            lines.iter().filter(|line| line.text.contains("of this test")).collect();
        let last = own.last().unwrap();
        assert!(last.text.starts_with("event 1004 ") && last.text.len() == LINE_BYTES_MAX);
        assert!(!own.iter().any(|line| line.text.starts_with("event 0 ")), "the oldest go");
        assert!(own.is_sorted_by_key(|line| line.at_ns));
        assert!(!lines.iter().any(|line| line.text == "a detail"));
    }
}
