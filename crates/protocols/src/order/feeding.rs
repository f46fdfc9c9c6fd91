//! Feeds of a group's home: how far each holder has been sent the log, and how far it has stored it.

use std::collections::BTreeMap;

use super::copy::OrderCopy;
use super::message::OrderContent;
use super::words::HolderId;

/// The entries that the home accepts beyond those of the slowest holder that counts.
pub const WINDOW_ENTRIES: u64 = 256;
/// The bytes of these. A longer entry is accepted alone.
pub const WINDOW_BYTES: u64 = 4 << 20;
/// The entries of one message, and their bytes.
pub(super) const BATCH: (u64, u64) = (32, 256 << 10);

#[derive(Clone, Copy, Debug, Default)]
struct Feed {
    /// The position up to which entries were sent.
    sent: u64,
    /// The position up to which the holder has stored everything.
    stored: u64,
    /// That position at the last look.
    stored_before: u64,
    /// The position of the state that the copy begins with, until the holder has stored it.
    begins_at: Option<u64>,
    /// The position from which the holder counts.
    counts_from: u64,
}

/// A feed of so many entries. It calls none stable that comes later.
pub(super) fn feed_of(copy: &OrderCopy, from: u64, count: u64) -> OrderContent {
    let stable = copy.stable().min(from + count);
    OrderContent::Feed { from, count: count as u32, stable }
}

/// The feeds of a home, one for each other holder.
#[derive(Clone, Debug, Default)]
pub(super) struct Feeds {
    feeds: BTreeMap<HolderId, Feed>,
}

impl Feeds {
    pub(super) fn knows(&self, holder: HolderId) -> bool {
        self.feeds.contains_key(&holder)
    }

    /// Feeds a holder that has reported a copy of this length.
    pub(super) fn go_on(&mut self, holder: HolderId, length: u64) {
        let feed = Feed { sent: length, stored: length, stored_before: length, ..Feed::default() };
        self.feeds.insert(holder, feed);
    }

    /// Feeds a holder without a copy, beginning with the state at the end of this one.
    pub(super) fn begin(&mut self, holder: HolderId, copy: &OrderCopy) -> OrderContent {
        let at = copy.length();
        self.feeds.insert(holder, Feed { sent: at, begins_at: Some(at), ..Feed::default() });
        OrderContent::Begin { at, stable: copy.stable(), fold: copy.fold().clone() }
    }

    pub(super) fn retain(&mut self, stays: impl Fn(&HolderId) -> bool) {
        self.feeds.retain(|holder, _| stays(holder));
    }

    /// A holder has stored everything before a position. False if that cannot be.
    pub(super) fn stored(&mut self, holder: HolderId, length: u64, copy: &OrderCopy) -> bool {
        if length > copy.length() {
            return false;
        }
        let Some(feed) = self.feeds.get_mut(&holder) else { return true };
        if feed.begins_at.is_some_and(|at| length >= at) {
            feed.begins_at = None;
        }
        if feed.begins_at.is_none() {
            feed.stored = feed.stored.max(length);
            feed.sent = feed.sent.max(feed.stored);
        }
        true
    }

    /// The position up to which a holder has stored everything; `None` if its copy has not begun.
    pub(super) fn stored_by(&self, holder: HolderId) -> Option<u64> {
        let feed = self.feeds.get(&holder)?;
        feed.begins_at.is_none().then_some(feed.stored)
    }

    /// A holder counts from a position on.
    pub(super) fn counts_from(&mut self, holder: HolderId, position: u64) {
        if let Some(feed) = self.feeds.get_mut(&holder) {
            feed.counts_from = position;
        }
    }

    /// The position up to which nothing waits for this holder: it has stored it, or counts from there on.
    pub(super) fn passes(&self, holder: HolderId) -> u64 {
        self.feeds.get(&holder).map_or(0, |feed| feed.stored.max(feed.counts_from))
    }

    /// The messages that each holder can be sent now. `tell` sends one message to each at least.
    pub(super) fn send(&mut self, copy: &OrderCopy, tell: bool) -> Vec<(HolderId, OrderContent)> {
        let mut messages = Vec::new();
        for (holder, feed) in &mut self.feeds {
            let mut is_told = !tell;
            while feed.begins_at.is_none() && (feed.sent < copy.length() || !is_told) {
                let count = copy.batch(feed.sent, BATCH.0, BATCH.1);
                messages.push((*holder, feed_of(copy, feed.sent, count)));
                feed.sent += count;
                is_told = true;
            }
        }
        messages
    }

    /// Repeats what the holders have not stored since the last look. A copy that has not begun, and one that lacks entries
    /// which this one has forgotten, begin anew.
    pub(super) fn repeat(&mut self, copy: &OrderCopy) -> Vec<(HolderId, OrderContent)> {
        let begins = |feed: &Feed| feed.begins_at.is_some() || feed.stored < copy.kept_from();
        let anew: Vec<HolderId> =
            self.feeds.iter().filter(|(_, feed)| begins(feed)).map(|(holder, _)| *holder).collect();
        let mut messages: Vec<_> =
            anew.into_iter().map(|holder| (holder, self.begin(holder, copy))).collect();
        for feed in self.feeds.values_mut() {
            if feed.begins_at.is_none() && feed.stored == feed.stored_before {
                feed.sent = feed.stored;
            }
            feed.stored_before = feed.stored;
        }
        messages.extend(self.send(copy, true));
        messages
    }

    /// The position from which entries are kept for these holders, and for others that are not far behind.
    pub(super) fn kept_from(&self, copy: &OrderCopy, counts: impl Fn(&HolderId) -> bool) -> u64 {
        let is_near = |feed: &Feed| copy.length().saturating_sub(feed.stored) <= WINDOW_ENTRIES;
        let needs = self
            .feeds
            .iter()
            .filter(|(holder, feed)| feed.begins_at.is_none() && (counts(holder) || is_near(feed)));
        let needed = needs.map(|(_, feed)| feed.stored);
        let begun = self.feeds.values().filter_map(|feed| feed.begins_at);
        needed.chain(begun).min().unwrap_or(copy.length())
    }
}
