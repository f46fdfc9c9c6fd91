//! The home of a group: it accepts requests, notes holders that come and go, feeds the copies, and says what is stable.

use std::time::Duration;

use super::feeding::{WINDOW_BYTES, WINDOW_ENTRIES};
use super::fold::{OrderEntry, OrderParty, RequestShape};
use super::holder::{Holder, OrderOutput, Role};
use super::homes::HomeReport;
use super::message::OrderContent;
use super::words::HolderId;

impl Holder {
    pub(super) fn is_view_valid(&self, now: Duration) -> bool {
        now < self.valid_until
    }

    /// Whether this is the home, its host's view is valid, and the log is not sealed.
    pub(super) fn may_accept(&self, now: Duration) -> bool {
        self.is_open() && self.is_view_valid(now) && !self.copy.fold().is_sealed()
    }

    pub(super) fn go_on(&mut self, now: Duration, is_look: bool) -> Vec<OrderOutput> {
        match self.role {
            Role::TakingOver(_) => self.take_over(now, is_look),
            Role::Open(_) => {
                let mut outputs = match is_look {
                    true => self.take_own_requests(now),
                    false => Vec::new(),
                };
                outputs.extend(self.serve(now, is_look));
                outputs
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn take_stored(
        &mut self,
        from: HolderId,
        length: u64,
        now: Duration,
    ) -> Vec<OrderOutput> {
        let feeds = match &mut self.role {
            Role::TakingOver(takeover) => &mut takeover.feeds,
            Role::Open(feeds) => feeds,
            _ => return Vec::new(),
        };
        if !feeds.stored(from, length, &self.copy) {
            self.dropped.garbled += 1;
        }
        self.go_on(now, false)
    }

    /// Does everything that a home has to do after a change: entries about holders, what is stable, feeds, deliveries.
    pub(super) fn serve(&mut self, now: Duration, is_look: bool) -> Vec<OrderOutput> {
        let mut outputs = self.begin_feeds();
        outputs.extend(self.note_holders(now));
        let (stable, before) = (self.stored_by_all(), self.copy.stable());
        let counted = self.counted();
        let Role::Open(feeds) = &self.role else { return outputs };
        let needed = feeds.kept_from(&self.copy, |holder| counted.contains(holder));
        outputs.extend(self.settle(stable, needed));
        let is_news = self.copy.stable() > before;
        let Role::Open(feeds) = &mut self.role else { return outputs };
        let messages = match is_look {
            true => feeds.repeat(&self.copy),
            false => feeds.send(&self.copy, is_news),
        };
        outputs.extend(messages.into_iter().map(|(to, content)| self.send(to, content)));
        let is_closed = self.copy.fold().is_sealed() && self.copy.stable() == self.copy.length();
        if is_closed && let Some(to) = self.next_home {
            outputs.push(self.report(HomeReport::Sealed(to)));
        }
        outputs
    }

    /// Begins the feeds of holders that were registered, and ends those of holders that were put out.
    fn begin_feeds(&mut self) -> Vec<OrderOutput> {
        let registered = &self.standing.registered;
        let Role::Open(feeds) = &mut self.role else { return Vec::new() };
        feeds.retain(|holder| registered.contains(holder));
        let is_new = |holder: &&HolderId| **holder != self.own && !feeds.knows(**holder);
        let new: Vec<HolderId> = registered.iter().filter(is_new).copied().collect();
        let begun: Vec<_> =
            new.into_iter().map(|holder| (holder, feeds.begin(holder, &self.copy))).collect();
        begun.into_iter().map(|(to, content)| self.send(to, content)).collect()
    }

    /// Appends the entries that follow from words: holders that were put out, and those that count from now on, since they
    /// lack no more than a window.
    fn note_holders(&mut self, now: Duration) -> Vec<OrderOutput> {
        let mut outputs = Vec::new();
        if !self.may_accept(now) {
            return outputs;
        }
        let present = self.copy.fold().present().clone();
        let registered = self.standing.registered.clone();
        for holder in present.difference(&registered) {
            outputs.extend(self.store(OrderEntry::HostGone(*holder)));
        }
        for holder in registered.difference(&present) {
            let length = self.copy.length();
            if self.lags(*holder) {
                continue;
            }
            if let Role::Open(feeds) = &mut self.role {
                feeds.counts_from(*holder, length);
            }
            outputs.extend(self.store(OrderEntry::Holder(*holder)));
        }
        outputs
    }

    /// The position before which all holders that count have stored everything.
    fn stored_by_all(&self) -> u64 {
        let Role::Open(feeds) = &self.role else { return 0 };
        let others = self.counted().into_iter().filter(|holder| *holder != self.own);
        others.map(|holder| feeds.passes(holder)).min().unwrap_or(self.copy.length())
    }

    /// Whether a holder lacks a window.
    fn lags(&self, holder: HolderId) -> bool {
        let Role::Open(feeds) = &self.role else { return true };
        feeds.stored_by(holder).is_none_or(|stored| {
            let lag = self.copy.length().saturating_sub(stored);
            lag >= WINDOW_ENTRIES || self.copy.bytes_from(stored) >= WINDOW_BYTES
        })
    }

    /// The holder that counts and lags so far that nothing more is accepted.
    fn lagging(&self) -> Option<HolderId> {
        self.counted().into_iter().find(|holder| *holder != self.own && self.lags(*holder))
    }

    pub(super) fn take_own_requests(&mut self, now: Duration) -> Vec<OrderOutput> {
        let untold = self.requests.untold(self.copy.fold());
        untold.into_iter().flat_map(|content| self.take_own(content, now)).collect()
    }

    pub(super) fn take_own(&mut self, content: OrderContent, now: Duration) -> Vec<OrderOutput> {
        match content {
            OrderContent::Requests { party, first, oldest, asked, died_after } => {
                self.take_requests((party, first, oldest, asked, died_after), now)
            }
            _ => Vec::new(),
        }
    }

    /// Accepts the requests of a party that are its next ones, and its death behind them.
    pub(super) fn take_requests(
        &mut self,
        (party, first, oldest, asked, died_after): (
            OrderParty,
            u64,
            u64,
            Vec<RequestShape>,
            Option<u64>,
        ),
        now: Duration,
    ) -> Vec<OrderOutput> {
        let mut outputs = Vec::new();
        for (number, asked) in (first..).zip(asked) {
            if !self.may_accept(now) || !self.copy.fold().is_next(party, number) {
                continue;
            }
            if let Some(slow) = self.lagging() {
                self.slow = Some(slow);
                let is_far = party.holder != self.own;
                outputs.extend(is_far.then(|| self.send(party.holder, OrderContent::Full(slow))));
                break;
            }
            outputs.extend(self.store(OrderEntry::Request { party, number, oldest, asked }));
        }
        let fold = self.copy.fold();
        let is_behind_all = died_after == Some(fold.last_of(party)) && !fold.is_dead(party);
        if is_behind_all && fold.present().contains(&party.holder) && self.may_accept(now) {
            outputs.extend(self.store(OrderEntry::Died(party)));
        }
        outputs
    }

    /// The holders that have not answered for the host timeout.
    pub(super) fn missed(&mut self, now: Duration) -> Vec<OrderOutput> {
        let may_judge = self.looks.may_judge(self.timing);
        let registered = &self.standing.registered;
        self.heard.retain(|holder, _| registered.contains(holder));
        let mut missed = Vec::new();
        for holder in registered.iter().filter(|holder| **holder != self.own) {
            let heard = self.heard.entry(*holder).or_insert(now);
            if !may_judge {
                *heard = now;
            }
            if now.saturating_sub(*heard) >= self.timing.timeout() {
                missed.push(*holder);
            }
        }
        missed.into_iter().map(|holder| self.report(HomeReport::NoPath(holder))).collect()
    }
}
