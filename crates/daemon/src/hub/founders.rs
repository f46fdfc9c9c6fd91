//! The record of a founder's daemon, and the next run that goes on from it.

use std::borrow::Cow;

use super::*;
use crate::machine::record::Record;

impl Hub {
    /// Everything that the arbiter's daemon has decided; `None` on another host.
    pub(super) fn record<'a>(&'a self, founder: &'a Founder) -> Option<Record<'a>> {
        Some(Record {
            arbiter: Cow::Borrowed(self.members.arbiter()?),
            names: Cow::Borrowed(&self.names),
            detectors: Cow::Borrowed(self.watch.detectors()?),
            links: self.trunks.kept(),
            tokens: Cow::Borrowed(&self.tokens),
            tickets: Cow::Borrowed(&self.tickets),
            facts: Cow::Borrowed(&self.facts_of),
            findings: Cow::Borrowed(&self.links.known),
            founder: Cow::Borrowed(founder),
        })
    }

    /// The state of a founder's daemon that goes on from the record of the run before. To the arbiter, this host is one whose
    /// daemon has started again.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn from_record(
        port: Port,
        station: Station,
        record: Record<'_>,
    ) -> io::Result<(Self, Founder)> {
        let (own, run) = (station.own.host, station.run);
        let members = Members::resumed(own, run, record.arbiter.into_owned());
        let mut hub = Self::with_members(port, station, members)?;
        let now = hub.now();
        hub.names = record.names.into_owned();
        hub.watch.go_on(record.detectors.into_owned(), run, now);
        hub.trunks.go_on(record.links, now);
        hub.trunks.admit_guests(hub.listener.is_open());
        (hub.tokens, hub.tickets) = (record.tokens.into_owned(), record.tickets.into_owned());
        (hub.facts_of, hub.links.known) = (record.facts.into_owned(), record.findings.into_owned());
        hub.restarted(own, run);
        let events = hub.members.renewed(own);
        hub.follow(events);
        Ok((hub, record.founder.into_owned()))
    }
}
