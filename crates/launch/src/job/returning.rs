//! A launcher whose daemon was killed: it calls the next one, and the parts tell it what it has missed.

use std::time::{Duration, Instant};

use landeck_wire::HostNumber;

use super::Job;
use crate::messages::PartEvent;

/// How long the next daemon is awaited.
const RETURN_TIME: Duration = Duration::from_secs(5);
/// The time between two calls.
const CALL_AGAIN: Duration = Duration::from_millis(20);

/// The next daemon of a machine is awaited.
pub(super) struct Returning {
    until: Instant,
    next: Instant,
}

impl Returning {
    /// The time of the next call.
    pub(super) const fn due(&self) -> Instant {
        self.next
    }
}

impl Job<'_> {
    /// Whether the job goes on without its daemon, which has ended, and awaits the next one.
    pub(super) fn awaits_daemon(&mut self) -> bool {
        let now = Instant::now();
        let goes_on = self.record.as_ref().is_some_and(|record| !record.is_cut_off());
        if !goes_on || !self.parts.may_return() {
            return false;
        }
        let returning = Returning { until: now + RETURN_TIME, next: now };
        let returning = self.returning.get_or_insert(returning);
        returning.until > now
    }

    /// Calls the next daemon, if that is due.
    pub(super) fn try_return(&mut self, now: Instant) {
        let (Some(returning), Some(job)) = (&mut self.returning, self.job) else { return };
        if now < returning.next || !self.parts.has_ended() || self.is_over {
            return;
        }
        returning.next = now + CALL_AGAIN;
        let there = self.hosts.iter().filter(|host| !host.is_over).map(|host| host.number);
        let hosts: Vec<HostNumber> = there.collect();
        self.parts.unwatch(&mut self.watch);
        if self.parts.try_return(job, hosts.clone(), self.returns + 1) {
            self.returns += 1;
            hosts.iter().for_each(|host| self.heard.restarted(*host));
            self.telling = hosts.into_iter().collect();
            // Output and credit that were on their way are lost with the daemon.
            self.hosts.iter_mut().for_each(|host| host.owed = [0; 2]);
            self.end_waiting_wishes("the daemon (landeckd) of its launcher's host was killed");
        }
    }

    /// Takes an event of a part, if it is new.
    pub(super) fn hear(&mut self, place: usize, event: PartEvent) {
        if self.returning.take().is_some()
            && let Some(record) = &self.record
        {
            record.say_returned(&mut self.output);
        }
        let host = self.hosts[place].number;
        if self.heard.is_new(host, &event) {
            return self.take_event(place, event);
        }
        if let PartEvent::StartAsked { request, .. } = event
            && let Some(answer) = self.heard.answer(host, request)
        {
            self.parts.command(Some(host), answer);
        }
    }

    /// A part has told everything again: to its next daemon, or to that of this host.
    pub(super) fn take_standing(&mut self, place: usize, asked: u64) {
        let host = self.hosts[place].number;
        if asked == 0
            && let Some(record) = &self.record
        {
            record.say_resumed(place, &mut self.output);
        }
        if asked != self.returns || !self.telling.remove(&host) {
            return;
        }
        let (orders, lost) = self.heard.stands(host);
        orders.into_iter().for_each(|order| self.parts.command(Some(host), order));
        lost.into_iter().for_each(|event| self.take_event(place, event));
    }
}
