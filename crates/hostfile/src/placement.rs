//! The host and the slot of each rank.
//!
//! Ranks are placed in rounds. In each round a host takes as many ranks as it has slots, or as many as were asked for
//! on each host. When a round is over and ranks are left, the next one begins at the first host: the hosts are
//! oversubscribed. Only `max_slots` refuses that.

use crate::host_list::{HostRequest, slots_of};
use std::fmt::Write;

/// The largest number of ranks of a job over several hosts.
pub const RANKS_MAX: u32 = 1 << 20;
/// The number of hosts that a note lists.
const LISTED_MAX: usize = 4;

/// The order in which the hosts of a round take ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RanksBy {
    /// Host after host: neighbouring ranks share a host.
    #[default]
    Slot,
    /// Round robin: neighbouring ranks are on different hosts.
    Node,
}

/// The place of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPlace {
    /// The index of its host in the list.
    pub host: usize,
    /// Its number among the ranks of that host, counted from 0.
    pub slot: u32,
}

/// The places of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlacement {
    places: Vec<RankPlace>,
    /// The number of ranks on each host.
    counts: Vec<u32>,
    /// The number of ranks up to which each host is not oversubscribed.
    room: Vec<u32>,
}

/// The reason why ranks cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPlacementError {
    /// There is no host.
    #[error("the list names no host; name at least one")]
    NoHost,
    /// A job cannot have so many ranks.
    #[error("a job has at most 1,048,576 processes, not {wanted}; give the number with -n")]
    Ranks {
        /// The number wanted.
        wanted: u64,
    },
    /// All hosts have reached their limits.
    #[error(
        "{wanted} processes do not fit: max_slots permits {most} in all; start fewer, or raise it"
    )]
    Full {
        /// The number wanted.
        wanted: u32,
        /// The number that fits.
        most: u64,
    },
    /// The number for each host exceeds the limit of one.
    #[error(
        "{wanted} processes on each host do not fit: host {name} has max_slots={most}; ask for fewer, or raise it"
    )]
    PerHost {
        /// The number wanted.
        wanted: u32,
        /// The host.
        name: String,
        /// Its limit.
        most: u32,
    },
}

/// The number of processes of each program. Without a number a single program gets all slots, or as many for each host
/// as were asked for; one of several programs gets one process.
///
/// # Errors
/// [`HostPlacementError::Ranks`].
pub fn processes_of(
    programs: &[Option<u32>],
    hosts: &[HostRequest],
    per_host: Option<u32>,
) -> Result<Vec<u32>, HostPlacementError> {
    let numbers: Vec<u64> = match programs {
        [None] => vec![match per_host {
            Some(each) => u64::from(each) * hosts.len() as u64,
            None => slots_of(hosts),
        }],
        several => several.iter().map(|number| u64::from(number.unwrap_or(1))).collect(),
    };
    let wanted = numbers.iter().sum();
    if wanted > u64::from(RANKS_MAX) {
        return Err(HostPlacementError::Ranks { wanted });
    }
    Ok(numbers.into_iter().map(|number| number as u32).collect())
}

impl HostPlacement {
    /// Places so many ranks on hosts, `per_host` of them in each round if that is given.
    ///
    /// # Errors
    /// [`HostPlacementError`].
    pub fn new(
        hosts: &[HostRequest],
        by: RanksBy,
        per_host: Option<u32>,
        ranks: u32,
    ) -> Result<HostPlacement, HostPlacementError> {
        check(hosts, per_host, ranks)?;
        let quota = |host: &HostRequest| per_host.unwrap_or(host.slots).max(1);
        let mut filling = Filling {
            ranks: ranks as usize,
            places: Vec::with_capacity(ranks as usize),
            counts: vec![0; hosts.len()],
        };
        let mut open: Vec<usize> = (0..hosts.len()).collect();
        while filling.places.len() < filling.ranks {
            let left = |host: usize| {
                hosts[host].max_slots.map_or(u32::MAX, |most| most - filling.counts[host])
            };
            open.retain(|host| left(*host) > 0);
            // The number of ranks that each host takes in this round.
            let share = |host: &usize| (*host, quota(&hosts[*host]).min(left(*host)));
            let shares: Vec<(usize, u32)> = open.iter().map(share).collect();
            match by {
                RanksBy::Slot => filling.host_after_host(&shares),
                RanksBy::Node => filling.round_robin(shares),
            }
        }
        let room = hosts.iter().map(|host| host.slots.max(quota(host))).collect();
        Ok(HostPlacement { places: filling.places, counts: filling.counts, room })
    }

    /// Leaves out the hosts without a rank. Returns the others as well, whose indices the places have then.
    #[must_use]
    pub fn without_idle(mut self, hosts: &[HostRequest]) -> (HostPlacement, Vec<HostRequest>) {
        let is_used: Vec<bool> = self.counts.iter().map(|&count| count > 0).collect();
        for place in &mut self.places {
            place.host = is_used[..place.host].iter().filter(|used| **used).count();
        }
        let kept = |each: &[u32]| {
            let each = each.iter().zip(&is_used).filter(|(_, used)| **used);
            each.map(|(&number, _)| number).collect()
        };
        let (counts, room) = (kept(&self.counts), kept(&self.room));
        let hosts = hosts.iter().zip(&is_used).filter(|(_, used)| **used);
        let hosts = hosts.map(|(host, _)| host.clone()).collect();
        (HostPlacement { counts, room, ..self }, hosts)
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.places.len() as u32
    }

    /// The place of a rank; `None` if there is no such rank.
    pub fn place_of(&self, rank: u32) -> Option<RankPlace> {
        self.places.get(rank as usize).copied()
    }

    /// The places in the order of ranks.
    pub fn places(&self) -> &[RankPlace] {
        &self.places
    }

    /// The number of ranks on each host, by its index.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// The ranks on a host, in the order of their slots.
    pub fn ranks_on(&self, host: usize) -> impl Iterator<Item = u32> {
        (0..).zip(&self.places).filter(move |(_, place)| place.host == host).map(|(rank, _)| rank)
    }

    /// The hosts with more ranks than slots, by index.
    pub fn oversubscribed(&self) -> impl Iterator<Item = usize> {
        let over = self.counts.iter().zip(&self.room).enumerate();
        over.filter(|(_, (count, room))| count > room).map(|(host, _)| host)
    }

    /// A note that names the oversubscribed hosts of the list; `None` if there are none.
    pub fn note(&self, hosts: &[HostRequest]) -> Option<String> {
        let over: Vec<usize> = self.oversubscribed().collect();
        let mut text = String::from("oversubscribed: ");
        for (number, &host) in over.iter().take(LISTED_MAX).enumerate() {
            let between = if number > 0 { ", " } else { "" };
            let (name, count, room) = (&hosts.get(host)?.name, self.counts[host], self.room[host]);
            let plural = if room == 1 { "" } else { "s" };
            let _ = write!(text, "{between}{name} ({count} processes, {room} slot{plural})");
        }
        if over.len() > LISTED_MAX {
            let _ = write!(text, " and {} more", over.len() - LISTED_MAX);
        }
        (!over.is_empty()).then_some(text)
    }
}

/// Fails unless all ranks fit.
fn check(
    hosts: &[HostRequest],
    per_host: Option<u32>,
    ranks: u32,
) -> Result<(), HostPlacementError> {
    if hosts.is_empty() {
        return Err(HostPlacementError::NoHost);
    }
    if ranks > RANKS_MAX {
        return Err(HostPlacementError::Ranks { wanted: ranks.into() });
    }
    if let Some(wanted) = per_host {
        for HostRequest { name, max_slots, .. } in hosts {
            if let Some(most) = max_slots.filter(|most| *most < wanted) {
                return Err(HostPlacementError::PerHost { wanted, name: name.clone(), most });
            }
        }
    }
    let limits: Option<u64> = hosts.iter().map(|host| host.max_slots.map(u64::from)).sum();
    match limits.filter(|most| *most < u64::from(ranks)) {
        Some(most) => Err(HostPlacementError::Full { wanted: ranks, most }),
        None => Ok(()),
    }
}

/// Ranks that are being placed.
struct Filling {
    ranks: usize,
    places: Vec<RankPlace>,
    counts: Vec<u32>,
}

impl Filling {
    /// Gives the next rank to a host, if any is left.
    fn give(&mut self, host: usize) {
        if self.places.len() < self.ranks {
            self.places.push(RankPlace { host, slot: self.counts[host] });
            self.counts[host] += 1;
        }
    }

    fn host_after_host(&mut self, shares: &[(usize, u32)]) {
        for &(host, share) in shares {
            let left = self.ranks - self.places.len();
            (0..left.min(share as usize)).for_each(|_| self.give(host));
        }
    }

    fn round_robin(&mut self, mut shares: Vec<(usize, u32)>) {
        while !shares.is_empty() && self.places.len() < self.ranks {
            for (host, share) in &mut shares {
                self.give(*host);
                *share -= 1;
            }
            shares.retain(|(_, share)| *share > 0);
        }
    }
}
