//! The properties of groups over hosts that are checked on the machines' state, while a run goes on.

use std::collections::BTreeMap;

use landeck_protocols::order::feeding::WINDOW_ENTRIES;
use landeck_protocols::order::{HolderId, OrderEntry, OrderParty};

use super::held::{CopyLog, Held, Request};
use crate::machines::host_checks::{Check, ensure};

/// The entries that a home appends beyond its window: views, holders, deaths.
const WINDOW_BEYOND: u64 = 32;

/// The homes and stable entries that were seen so far.
#[derive(Debug, Default)]
pub(super) struct OrderChecks {
    /// The home of each epoch of each group.
    homes: BTreeMap<(u32, u64), HolderId>,
    /// The longest stable beginning of each group, and its number.
    stable: BTreeMap<u32, (u64, u64)>,
    pub(super) views: u32,
    pub(super) messages: u32,
    pub(super) answers: u32,
    pub(super) losses: u32,
    pub(super) takeovers: u32,
}

fn has(held: &Held, length: u64, prefix: u64) -> bool {
    held.log.len() >= length && held.log.prefix(length) == prefix
}

/// Whether the entries before a position have to be stored by a holder: a copy that is not complete counts from its entry
/// on.
fn counts(held: &Held, by: &Held, length: u64) -> bool {
    let own = OrderEntry::Holder(held.machine.id());
    let is_before = |entries: &[OrderEntry]| entries.contains(&own);
    held.machine.is_complete() || is_before(&by.log.entries[..length as usize])
}

impl OrderChecks {
    /// A home begins an epoch with the entry at this position. One that was put out and has not heard of it may do so too,
    /// but nobody follows it.
    pub(super) fn view(
        &mut self,
        (group, epoch): (u32, u64),
        (home, position): (&Held, u64),
        holders: &[&Held],
        is_followed: bool,
    ) -> Check {
        self.views += 1;
        let id = home.machine.id();
        let first = *self.homes.entry((group, epoch)).or_insert(id);
        ensure(first == id, "one home per epoch", || format!("{first:?} and {id:?} in {epoch}"))?;
        let earlier =
            home.log.entries.iter().take(position as usize).rev().find_map(|it| match it {
                OrderEntry::View { epoch, .. } => Some(*epoch),
                _ => None,
            });
        ensure(earlier < Some(epoch), "epochs grow", || format!("{earlier:?}, then {epoch}"))?;
        self.takeovers += u32::from(earlier.is_some());
        let (stable, prefix) = self.stable.get(&group).copied().unwrap_or_default();
        ensure(!is_followed || has(home, stable, prefix), "a home is complete", || {
            format!("{id:?} begins epoch {epoch} at {position} without the stable {stable}")
        })?;
        let prefix = home.log.prefix(position);
        for held in holders {
            ensure(has(held, position, prefix), "holders begin an epoch alike", || {
                format!("{:?} has not the {position} entries of {id:?}", held.machine.id())
            })?;
        }
        Ok(())
    }

    /// A home says that everything before a position is stable. These count.
    pub(super) fn stable(&mut self, group: u32, home: &Held, counted: &[&Held]) -> Check {
        let stable = home.machine.stable();
        let prefix = home.log.prefix(stable);
        for held in counted.iter().filter(|held| counts(held, home, stable)) {
            ensure(has(held, stable, prefix), "stable is stored", || {
                format!("{:?} has not the stable {stable} entries", held.machine.id())
            })?;
        }
        let longest = self.stable.entry(group).or_default();
        if stable > longest.0 {
            *longest = (stable, prefix);
        }
        let lag = home.machine.length() - stable;
        ensure(lag <= WINDOW_ENTRIES + WINDOW_BEYOND, "what waits is bounded", || {
            format!("{lag} entries are not stable")
        })
    }

    /// A party on a host is given a safe message. These hosts count.
    pub(super) fn safe(&self, held: &Held, position: u64, counted: &[&Held]) -> Check {
        let prefix = held.log.prefix(position + 1);
        let counted = counted.iter().filter(|other| counts(other, held, position + 1));
        counted.into_iter().try_for_each(|other| {
            ensure(has(other, position + 1, prefix), "a safe message is stored by all", || {
                format!("{:?} lacks entry {position}", other.machine.id())
            })
        })
    }

    /// A group is lost, though these holders live.
    pub(super) fn lost(&mut self, living: &[&Held]) -> Check {
        self.losses += 1;
        let complete = living.iter().find(|held| held.machine.is_complete());
        ensure(complete.is_none(), "a group is lost with its last complete copy", || {
            format!("{:?} has one", complete.map(|held| held.machine.id()))
        })
    }
}

/// Checks the log of a group at the end.
pub(super) fn log_holds(
    group: u32,
    log: &CopyLog,
    requests: &BTreeMap<(u32, OrderParty, u64), Request>,
) -> Check {
    let mut last: BTreeMap<OrderParty, u64> = BTreeMap::new();
    let (mut dead, mut gone): (Vec<OrderParty>, Vec<HolderId>) = (Vec::new(), Vec::new());
    for (position, entry) in (0..).zip(&log.entries) {
        match entry {
            OrderEntry::Request { party, number, .. } => {
                let before = last.insert(*party, *number).unwrap_or(0);
                ensure(*number > before, "a request takes effect once", || {
                    format!("{party:?} {number} stands again at {position}")
                })?;
                ensure(*number == before + 1, "no gap in a sender's messages", || {
                    format!("{party:?} {number} follows {before}")
                })?;
                ensure(!dead.contains(party), "a death stands behind the data", || {
                    format!("{party:?} is dead before its request {number} at {position}")
                })?;
                ensure(!gone.contains(&party.holder), "a lost host accepts nothing", || {
                    format!("{party:?} is gone before its request at {position}")
                })?;
                let seen = requests.get(&(group, *party, *number)).map_or(u64::MAX, |it| it.seen);
                ensure(seen <= position, "a message follows its cause", || {
                    format!("{party:?} {number} at {position} was sent after {seen}")
                })?;
            }
            OrderEntry::Died(party) => dead.push(*party),
            OrderEntry::Sealed => {
                let next = log.entries.get(position as usize + 1);
                let is_last = next.is_none_or(|next| matches!(next, OrderEntry::View { .. }));
                ensure(is_last, "nothing is accepted by a sealed log", || {
                    format!("{next:?} stands behind the seal at {position}")
                })?;
            }
            OrderEntry::HostGone(holder) => {
                ensure(!gone.contains(holder), "one view per lost host", || {
                    format!("{holder:?} is gone again at {position}")
                })?;
                gone.push(*holder);
            }
            _ => {}
        }
    }
    Ok(())
}
