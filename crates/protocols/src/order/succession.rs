//! A change of a group's home: promises, reports, and how all copies are brought to the longest complete one.
//!
//! The home of a new epoch asks all registered holders, also those that its own copy does not list, until each has
//! reported. A holder that reports has heard the word of the epoch and stores nothing of earlier ones any more, so no
//! report grows. The longest complete copy has everything that was ever stable, and all that any survivor has delivered.
//! The home fetches what it lacks, brings all holders that count to it, and begins the epoch with a view.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fold::OrderEntry;
use super::holder::{Holder, OrderOutput, Role};
use super::homes::HomeReport;
use super::message::OrderContent;
use super::words::HolderId;

impl Holder {
    /// Goes on with the change of home as far as it can. At a look everything unanswered is repeated.
    pub(super) fn take_over(&mut self, now: Duration, is_look: bool) -> Vec<OrderOutput> {
        let own = self.copy_report();
        let registered = self.reporters();
        let Role::TakingOver(takeover) = &mut self.role else { return Vec::new() };
        takeover.reports.retain(|holder, _| registered.contains(holder));
        takeover.feeds.retain(|holder| registered.contains(holder));
        if takeover.chosen.is_none_or(|chosen| !registered.contains(&chosen)) {
            takeover.reports.insert(self.own, own);
            (takeover.chosen, takeover.is_bringing) = (None, false);
            let is_silent = |holder: &&HolderId| !takeover.reports.contains_key(*holder);
            let silent: Vec<HolderId> = registered.iter().filter(is_silent).copied().collect();
            if !silent.is_empty() {
                let asks = silent.into_iter().filter(|_| is_look);
                return asks.map(|holder| self.send(holder, OrderContent::Ask)).collect();
            }
            takeover.chosen = takeover.longest();
        }
        let Some(chosen) = takeover.chosen else {
            return vec![self.report(HomeReport::NoneComplete)];
        };
        let goal = takeover.reports.get(&chosen).map_or(0, |report| report.length);
        if !own.is_complete || own.length < goal {
            return vec![
                self.send(chosen, OrderContent::Fetch(own.is_complete.then_some(own.length))),
            ];
        }
        self.bring_all(now, is_look)
    }

    /// The holders that report: all that are registered, also those that the own copy does not list.
    fn reporters(&self) -> BTreeSet<HolderId> {
        self.standing.registered.clone()
    }

    /// Brings all holders that count to the end of the own copy, and then begins the epoch.
    fn bring_all(&mut self, now: Duration, is_look: bool) -> Vec<OrderOutput> {
        let counted = self.counted();
        let Role::TakingOver(takeover) = &mut self.role else { return Vec::new() };
        let mut messages = Vec::new();
        if !std::mem::replace(&mut takeover.is_bringing, true) {
            for holder in counted.iter().filter(|holder| **holder != self.own) {
                match takeover.reports.get(holder).filter(|report| report.is_complete) {
                    Some(report) => takeover.feeds.go_on(*holder, report.length),
                    None => messages.push((*holder, takeover.feeds.begin(*holder, &self.copy))),
                }
            }
        }
        messages.extend(match is_look {
            true => takeover.feeds.repeat(&self.copy),
            false => takeover.feeds.send(&self.copy, false),
        });
        let mut outputs: Vec<_> =
            messages.into_iter().map(|(to, content)| self.send(to, content)).collect();
        outputs.extend(self.begin_epoch(&counted, now));
        outputs
    }

    fn begin_epoch(&mut self, counted: &BTreeSet<HolderId>, now: Duration) -> Vec<OrderOutput> {
        let (length, may_append) = (self.copy.length(), self.is_view_valid(now));
        let Role::TakingOver(takeover) = &mut self.role else { return Vec::new() };
        let has_all = |holder: &HolderId| {
            *holder == self.own || takeover.feeds.stored_by(*holder) == Some(length)
        };
        if !may_append || !counted.iter().all(has_all) {
            return Vec::new();
        }
        self.role = Role::Open(std::mem::take(&mut takeover.feeds));
        let holders = counted.iter().copied().chain([self.own]).collect::<BTreeSet<_>>();
        let epoch = self.standing.epoch;
        let view = OrderEntry::View { epoch, holders: holders.into_iter().collect() };
        let mut outputs = self.store(view);
        outputs.extend(self.take_own_requests(now));
        outputs.extend(self.serve(now, false));
        outputs
    }
}
