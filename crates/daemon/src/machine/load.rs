//! The look at the load of this host, once a second.

use std::time::Duration;

use landeck_protocols::hosts::HostLoad;

use crate::load;

/// The time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// A look waits up to so long for a turn of the loop that something else has caused, so that it wakes a daemon at rest
/// seldom.
const SLACK: Duration = Duration::from_millis(500);

/// Looks at the load of this host.
#[derive(Debug, Default)]
pub(crate) struct LoadLooks {
    /// When the next look is due.
    due: Duration,
    last: Option<HostLoad>,
}

impl LoadLooks {
    /// When a look is due at the latest.
    pub(crate) fn deadline(&self) -> Duration {
        self.due + SLACK
    }

    /// Looks, if it is time.
    pub(crate) fn look(&mut self, now: Duration) -> Option<HostLoad> {
        if now < self.due {
            return None;
        }
        self.due = now + INTERVAL;
        let load = load::here();
        self.last = Some(self.last.map_or(load, |before| load.smoothed(before)));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_once_a_second() {
        let mut looks = LoadLooks::default();
        let load = looks.look(Duration::from_millis(100)).unwrap();
        assert!(load.memory_kib >= load.available_kib && load.available_kib > 0, "{load:?}");
        assert_eq!(looks.look(Duration::from_millis(1_099)), None);
        assert_eq!(looks.deadline(), Duration::from_millis(1_600));
        assert!(looks.look(Duration::from_millis(1_100)).is_some());
    }
}
