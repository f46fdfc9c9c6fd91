//! Counts refused connections, and says so once a minute.

use std::collections::BTreeMap;
use std::time::Duration;

/// The time between two lines.
const BETWEEN: Duration = Duration::from_secs(60);

/// The refusals since the last line.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// The number of refusals by reason, with the last address.
    counts: BTreeMap<&'static str, (u64, String)>,
    said_at: Option<Duration>,
}

impl Refusals {
    /// Counts a refusal.
    pub(crate) fn count(&mut self, why: &'static str, from: impl std::fmt::Display) {
        let entry = self.counts.entry(why).or_default();
        entry.0 += 1;
        entry.1 = from.to_string();
    }

    /// The line that is due now.
    pub(crate) fn line(&mut self, now: Duration) -> Option<String> {
        let is_due = self.said_at.is_none_or(|at| now >= at + BETWEEN);
        if self.counts.is_empty() || !is_due {
            return None;
        }
        self.said_at = Some(now);
        let each = std::mem::take(&mut self.counts).into_iter();
        let each = each.map(|(why, (count, from))| match count {
            1 => format!("1 connection from {from}: {why}"),
            _ => format!("{count} connections, the last from {from}: {why}"),
        });
        Some(format!("landeckd refused {}", each.collect::<Vec<_>>().join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_said_once_a_minute() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.line(Duration::ZERO), None);
        refusals.count("wrong code", "a:1");
        assert_eq!(
            refusals.line(Duration::ZERO).unwrap(),
            "landeckd refused 1 connection from a:1: wrong code"
        );
        for port in 0..3 {
            refusals.count("wrong code", format!("b:{port}"));
        }
        assert_eq!(refusals.line(Duration::from_secs(59)), None);
        let line = refusals.line(Duration::from_secs(60)).unwrap();
        assert_eq!(line, "landeckd refused 3 connections, the last from b:2: wrong code");
    }
}
