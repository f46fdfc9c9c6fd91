//! Reports to a home that has not begun its epoch, and the copy that they choose.

use std::collections::BTreeMap;

use super::feeding::Feeds;
use super::message::CopyReport;
use super::words::HolderId;

/// The state of a home that has not begun its epoch.
#[derive(Clone, Debug, Default)]
pub(super) struct Takeover {
    pub(super) reports: BTreeMap<HolderId, CopyReport>,
    /// The longest complete copy.
    pub(super) chosen: Option<HolderId>,
    pub(super) feeds: Feeds,
    pub(super) is_bringing: bool,
}

impl Takeover {
    pub(super) fn reported(&mut self, holder: HolderId, report: CopyReport) {
        self.reports.entry(holder).or_insert(report);
    }

    pub(super) fn is_source(&self, holder: HolderId) -> bool {
        self.chosen == Some(holder)
    }

    pub(super) fn longest(&self) -> Option<HolderId> {
        let complete = self.reports.iter().filter(|(_, report)| report.is_complete);
        complete.max_by_key(|(_, report)| report.length).map(|(holder, _)| *holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::HostNumber;

    #[test]
    fn the_longest_complete_copy_is_chosen_and_the_first_report_counts() {
        let holder = |word| HolderId { word, host: HostNumber(word as u16) };
        let mut takeover = Takeover::default();
        assert_eq!(takeover.longest(), None);
        for (word, length, is_complete) in [(1, 5, true), (2, 9, false), (3, 7, true)] {
            takeover.reported(holder(word), CopyReport { length, is_complete });
        }
        takeover.reported(holder(1), CopyReport { length: 20, is_complete: true });
        assert_eq!(takeover.longest(), Some(holder(3)));
    }
}
