//! The record of a founder: everything that it has decided and promised.
//!
//! A founder's daemon decides in a turn of its loop, then writes the record, and only then says anything to anybody: to other
//! hosts, and to itself as one of the hosts. So the next run, which goes on from the record, has decided everything that
//! anybody may have heard of, and has heard everything that it has confirmed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use landeck_protocols::hosts::{Arbiter, Detector, NameTable};
use landeck_trust::{JoinTokens, ReturnTickets};
use landeck_wire::{ControlMessage, HostNumber};
use serde::{Deserialize, Serialize};

use crate::facts::HostFacts;
use crate::figures::LinkFindings;
use crate::machine::founder::Founder;
use crate::trunks::link::KeptLink;

/// The record of a founder, borrowed from its daemon or read by the next run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record<'a> {
    /// The words.
    pub(crate) arbiter: Cow<'a, Arbiter>,
    /// The names of the jobs.
    pub(crate) names: Cow<'a, NameTable>,
    /// The judges of the other hosts' silence.
    pub(crate) detectors: Cow<'a, BTreeMap<HostNumber, Detector>>,
    /// The links to the other hosts, with everything on its way.
    pub(crate) links: Vec<KeptLink<'a>>,
    /// The tokens by which hosts join.
    pub(crate) tokens: Cow<'a, JoinTokens>,
    /// The return tickets of the hosts.
    pub(crate) tickets: Cow<'a, ReturnTickets>,
    /// The facts of the hosts.
    pub(crate) facts: Cow<'a, BTreeMap<HostNumber, HostFacts>>,
    /// The links that were measured.
    pub(crate) findings: Cow<'a, LinkFindings>,
    /// The hosts, the jobs and their processors.
    pub(crate) founder: Cow<'a, Founder>,
}

impl ControlMessage for Record<'_> {
    const NAME: &'static str = "the record of a founder";
    const BYTES_MAX: usize = 1 << 30;
}
