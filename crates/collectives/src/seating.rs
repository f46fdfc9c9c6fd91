//! The order of hosts by their links: which host stands in which place of an architecture.
//!
//! A slow link should be passed seldom: its host should be a leaf of a tree, not its centre, and two hosts with a slow link
//! should be no neighbours. The model of costs decides. The links are the same for all members, and so is the order.

use std::sync::Arc;

use crate::architecture::{Architecture, Seated};
use crate::cost::{Load, Scene};
use crate::derive::Way;
use crate::links::Link;
use crate::operation::Operation;

/// Links are even if the slowest takes less than so many times as long as the quickest.
const UNEVEN: u64 = 2;
/// Up to so many hosts, all exchanges of two of them are tried.
const SWAPPED_HOSTS_MAX: usize = 8;

/// Returns this way with its hosts in the order that costs the least; `None` if the order of the numbers does, if all links are
/// alike, or if the operation has an order of its own.
pub(crate) fn seated(scene: &Scene<'_>, load: &Load, way: &Way) -> Option<Way> {
    let hosts = scene.group.hosts();
    let architecture = match way {
        Way::Hosts { architecture, .. } => architecture,
        Way::Messages { architecture, release: None, .. }
            if hosts.len() == scene.group.size() as usize =>
        {
            architecture
        }
        _ => return None,
    };
    let goes_by_rank =
        matches!(load.operation, Operation::Scan | Operation::ExclusiveScan | Operation::AllToAll);
    if goes_by_rank || hosts.len() < 3 {
        return None;
    }
    let link = |one, other| {
        scene.links.between(one, other).unwrap_or_else(|| Link::assumed(scene.figures))
    };
    if scene.links.is_empty() || are_even(hosts.len(), &link) {
        return None;
    }
    let has_root = load.operation.has_root();
    let of = |seats: &[u32]| with_seats(way, architecture, seats, has_root);
    let cost_of = |seats: &[u32]| of(seats).map_or(f64::MAX, |way| scene.cost_ns(load, &way));
    let plain: Vec<u32> = (0..hosts.len() as u32).collect();
    let mut best = (cost_of(&plain), plain.clone());
    let consider = |best: &mut (f64, Vec<u32>), seats: Vec<u32>| {
        let cost = cost_of(&seats);
        if cost < best.0 {
            *best = (cost, seats);
        }
    };
    // The first host stands for the root, which has the first place.
    let first = usize::from(has_root);
    consider(&mut best, by_sum(hosts.len(), first, &link));
    consider(&mut best, as_chain(hosts.len(), has_root, &link));
    if hosts.len() <= SWAPPED_HOSTS_MAX {
        for one in first..hosts.len() {
            for other in one + 1..hosts.len() {
                let mut seats = best.1.clone();
                seats.swap(one, other);
                consider(&mut best, seats);
            }
        }
    }
    if best.1 == plain { None } else { of(&best.1) }
}

fn with_seats(
    way: &Way,
    architecture: &Arc<dyn Architecture>,
    seats: &[u32],
    has_root: bool,
) -> Option<Way> {
    let seated: Arc<dyn Architecture> =
        Arc::new(Seated::new(architecture.clone(), seats.to_vec(), has_root)?);
    Some(match way {
        Way::Hosts { split, .. } => Way::Hosts { architecture: seated, split: *split },
        Way::Messages { split, .. } => {
            Way::Messages { architecture: seated, release: None, split: *split }
        }
        Way::Board(_) => return None,
    })
}

/// The time of a message that is neither short nor long.
const fn time_ps(link: Link) -> u64 {
    const KIB: u64 = 16;
    link.latency_ps.saturating_add(link.kib_ps.saturating_mul(KIB))
}

fn are_even(hosts: usize, link: &impl Fn(usize, usize) -> Link) -> bool {
    let pairs = || (0..hosts).flat_map(|high| (0..high).map(move |low| (low, high)));
    let differ = |figure: fn(Link) -> u64| {
        let all = || pairs().map(|(low, high)| figure(link(low, high)));
        let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        most >= UNEVEN.saturating_mul(least)
    };
    !differ(|link| link.latency_ps) && !differ(|link| link.kib_ps)
}

/// All hosts, those with the quickest links first. The first `kept` ones keep their places.
fn by_sum(hosts: usize, kept: usize, link: &impl Fn(usize, usize) -> Link) -> Vec<u32> {
    let sum = |host: u32| -> u64 {
        let others = (0..hosts).filter(|&other| other != host as usize);
        others.map(|other| time_ps(link(host as usize, other))).fold(0, u64::saturating_add)
    };
    let mut seats: Vec<u32> = (0..hosts as u32).collect();
    seats[kept.min(hosts)..].sort_by_key(|&host| (sum(host), host));
    seats
}

/// A chain in which each host is followed by the one with the quickest link to it. It begins with the first host, or with the
/// one whose links are the slowest.
fn as_chain(hosts: usize, has_root: bool, link: &impl Fn(usize, usize) -> Link) -> Vec<u32> {
    let begin = if has_root { Some(0) } else { by_sum(hosts, 0, link).last().copied() };
    let mut chain: Vec<u32> = begin.into_iter().collect();
    let mut left: Vec<u32> = (0..hosts as u32).filter(|host| !chain.contains(host)).collect();
    while let Some(&last) = chain.last() {
        let time =
            |&place: &usize| (time_ps(link(last as usize, left[place] as usize)), left[place]);
        let Some(next) = (0..left.len()).min_by_key(time) else { break };
        chain.push(left.remove(next));
    }
    chain
}
