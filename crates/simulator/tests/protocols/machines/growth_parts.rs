//! The part of a job on a host, as far as hosts that are added to the job concern it, and the properties, a checker each.

use std::collections::{BTreeMap, BTreeSet};

use landeck_protocols::hosts::NewHost;
use landeck_wire::{HostNumber, JobId, ProcessId, SegmentId};

use super::host_checks::{Check, ensure};

/// The part of a job on a host.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The host whose daemon conducts the job.
    pub(super) conductor: HostNumber,
    pub(super) state: PartState,
    /// The hosts of the job as this one knows them. Their order decides the places of their guests.
    pub(super) hosts: Vec<NewHost>,
    /// It lasts without a process until it is released.
    pub(super) is_held: bool,
    /// The guests that have come here.
    pub(super) here: BTreeSet<ProcessId>,
    /// The guests of other hosts that have places here and are known to have come.
    pub(super) known: BTreeSet<ProcessId>,
    /// The guests that had come to other hosts before those gave the guests of this one their places.
    pub(super) before: Vec<(ProcessId, HostNumber)>,
    pub(super) segment: SegmentId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartState {
    Checked,
    Made,
    /// Its guardian lets processes join.
    Begun,
    /// Its guardian has ended.
    Ended,
}

impl Part {
    /// The part of a host that is the last one of this list.
    pub(super) fn checked(hosts: Vec<NewHost>, own: SegmentId, conductor: HostNumber) -> Self {
        Self {
            conductor,
            state: PartState::Checked,
            hosts,
            is_held: true,
            here: BTreeSet::new(),
            known: BTreeSet::new(),
            before: Vec::new(),
            segment: own,
        }
    }

    pub(super) const fn has_begun(&self) -> bool {
        matches!(self.state, PartState::Begun)
    }

    /// Takes a guest of another host. One without a place stays unknown.
    pub(super) fn meet(&mut self, guest: ProcessId) {
        if self.state != PartState::Checked && self.has_places_of(guest.segment) {
            self.known.insert(guest);
        }
    }

    fn has_places_of(&self, segment: SegmentId) -> bool {
        self.hosts.iter().any(|host| host.segment == segment)
    }
}

/// The parts of a job on the hosts that live.
pub(super) type PartsOfJob<'a> = BTreeMap<HostNumber, &'a Part>;

/// A guest has come to a host.
pub(super) fn guest_can_come(parts: &PartsOfJob<'_>, to: HostNumber, guest: ProcessId) -> Check {
    let mut others = parts.iter().filter(|(host, part)| **host != to && part.has_begun());
    let without = others.find(|(_, part)| !part.has_places_of(guest.segment));
    ensure(without.is_none(), "a guest comes when all hosts know its places", || {
        format!("{guest} comes to host {}, and {without:?} has no place for it", to.0)
    })
}

/// The guardian of a host begins.
pub(super) fn knows_earlier_guests(parts: &PartsOfJob<'_>, host: HostNumber) -> Check {
    let part = parts[&host];
    let is_there = |(guest, host): &&(ProcessId, HostNumber)| {
        parts.get(host).is_some_and(|part| part.segment == guest.segment)
    };
    let mut before = part.before.iter().filter(is_there);
    let unknown = before.find(|(guest, _)| !part.known.contains(guest));
    ensure(unknown.is_none(), "an added host knows the guests that came before", || {
        format!("host {} begins without {unknown:?}", host.0)
    })
}

/// The lists of all hosts and of the conductor, if it lives, have one order.
pub(super) fn places_agree(parts: &PartsOfJob<'_>, conductor: Option<&[NewHost]>) -> Check {
    let begun = parts.iter().filter(|(_, part)| part.has_begun());
    let lists: Vec<(HostNumber, &[NewHost])> = begun
        .map(|(host, part)| (*host, part.hosts.as_slice()))
        .chain(conductor.map(|list| (HostNumber::NONE, list)))
        .collect();
    let longest = lists.iter().max_by_key(|(_, list)| list.len());
    let other = |(_, list): &&(HostNumber, &[NewHost])| {
        longest.is_some_and(|(_, longest)| !longest.starts_with(list))
    };
    let different = lists.iter().find(other);
    ensure(different.is_none(), "places are the same on all hosts", || {
        format!("{different:?} is no beginning of {longest:?}")
    })
}

/// After the time of rest each host of a job knows all guests of all others.
pub(super) fn all_guests_are_known(job: JobId, parts: &PartsOfJob<'_>) -> Check {
    for (host, part) in parts.iter().filter(|(_, part)| part.has_begun()) {
        let others = parts.iter().filter(|(other, part)| *other != host && part.has_begun());
        let unknown = others.flat_map(|(_, other)| &other.here).find(|it| !part.known.contains(it));
        ensure(unknown.is_none(), "an added host knows the guests that came before", || {
            format!("host {} does not know {unknown:?} of job {job}", host.0)
        })?;
    }
    Ok(())
}
