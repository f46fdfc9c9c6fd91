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
