//! The record of a founder: everything that its daemon has decided and promised, and the next run that goes on from it.
//!
//! A founder's daemon decides in a turn of its loop, then writes the record, and only then says anything to anybody: to other
//! hosts, and to itself as one of the hosts. So the next run has decided everything that anybody may have heard of, and has
//! heard everything that it has confirmed.

use std::borrow::Cow;

use landeck_protocols::hosts::{Arbiter, Detector};
use serde::{Deserialize, Serialize};

use super::*;
use crate::figures::LinkFindings;
use crate::trunks::link::KeptLink;

/// The record of a founder, borrowed from its daemon or read by the next run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record<'a> {
    /// The words.
    pub(crate) arbiter: Cow<'a, Arbiter>,
    /// The names of the jobs.
    names: Cow<'a, NameTable>,
    /// The judges of the other hosts' silence.
    detectors: Cow<'a, BTreeMap<HostNumber, Detector>>,
    /// The links to the other hosts, with everything on its way.
    links: Vec<KeptLink<'a>>,
    /// The tokens by which hosts join.
    tokens: Cow<'a, JoinTokens>,
    /// The return tickets of the hosts.
    tickets: Cow<'a, ReturnTickets>,
    /// The description of the machine.
    description: Cow<'a, str>,
    /// The facts of the hosts.
    facts: Cow<'a, BTreeMap<HostNumber, HostFacts>>,
    /// The links that were measured.
    findings: Cow<'a, LinkFindings>,
    /// Everything that the founder knows of hosts and jobs, in a form of its own.
    pub(crate) founder: Vec<u8>,
}

impl ControlMessage for Record<'_> {
    const NAME: &'static str = "the record of a founder";
    const BYTES_MAX: usize = 1 << 30;
}

impl Hub {
    /// Writes the record, if this is the arbiter's daemon and something is to leave. `founder` tells what the founder knows, if
    /// the machine stays.
    pub(super) fn record_before(&mut self, founder: impl FnOnce() -> Option<Vec<u8>>) {
        let has_something = self.trunks.has_unwritten() || !self.for_own.is_empty();
        if has_something
            && self.journal.has_record()
            && let Some(founder) = founder()
            && let Some(record) = self.record(founder)
        {
            let record = record.encode();
            self.journal.write_record(&record);
        }
    }

    fn record(&self, founder: Vec<u8>) -> Option<Record<'_>> {
        Some(Record {
            arbiter: Cow::Borrowed(self.members.arbiter()?),
            names: Cow::Borrowed(&self.names),
            detectors: Cow::Borrowed(self.watch.detectors()?),
            links: self.trunks.kept(),
            tokens: Cow::Borrowed(&self.tokens),
            tickets: Cow::Borrowed(&self.tickets),
            description: Cow::Borrowed(self.described.text()),
            facts: Cow::Borrowed(&self.facts_of),
            findings: Cow::Borrowed(&self.links.known),
            founder,
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
    ) -> io::Result<Self> {
        let (own, run) = (station.own.host, station.run);
        let members = Members::resumed(own, run, record.arbiter.into_owned());
        let mut hub = Self::with_members(port, station, members)?;
        let now = hub.now();
        hub.names = record.names.into_owned();
        // It was read before.
        hub.described = Described::read(record.description.into_owned()).unwrap_or_default();
        hub.watch.go_on(record.detectors.into_owned(), run, now);
        hub.trunks.go_on(record.links, now);
        hub.trunks.admit_guests(hub.listener.is_open());
        (hub.tokens, hub.tickets) = (record.tokens.into_owned(), record.tickets.into_owned());
        (hub.facts_of, hub.links.known) = (record.facts.into_owned(), record.findings.into_owned());
        hub.restarted(own, run);
        let events = hub.members.renewed(own);
        hub.follow(events);
        Ok(hub)
    }
}
