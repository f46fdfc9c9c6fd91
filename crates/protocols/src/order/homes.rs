//! The arbiter's part of groups over hosts: homes, epochs and registered holders.
//!
//! A holder is registered before it is fed. When the home is lost, the first registered holder becomes the home of a new
//! epoch. Each call gets the number of the arbiter's next word and returns the words that follow, numbered from there.

use std::collections::BTreeMap;

use landeck_wire::HostNumber;

use super::words::{GroupChange, GroupStanding, GroupWord, HolderId, OutCause};

/// A report of a group's home to the arbiter. It is repeated until a word answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeReport {
    /// The home and a holder have not reached each other for the host timeout.
    NoPath(HolderId),
    /// No holder has a complete copy.
    NoneComplete,
    /// The log is sealed on all holders; this one is to be the next home.
    Sealed(HolderId),
}

#[derive(Clone, Debug)]
struct NamedGroup {
    number: u32,
    standing: GroupStanding,
}

/// All groups over hosts of a machine, at the arbiter.
#[derive(Clone, Debug, Default)]
pub struct Homes {
    groups: BTreeMap<String, NamedGroup>,
    names: BTreeMap<u32, String>,
}

impl Homes {
    /// Makes a host a holder of the group with this name. The first one creates the group and is its home. A host that is a
    /// holder already, and a group that is lost, give no word. The host must be living by the words before.
    pub fn register(&mut self, name: &str, host: HostNumber, next: u64) -> Vec<GroupWord> {
        let holder = HolderId { word: next, host };
        let Some(known) = self.groups.get(name) else {
            let number = self.groups.len() as u32 + 1;
            self.names.insert(number, name.to_owned());
            let group = NamedGroup { number, standing: GroupStanding::default() };
            self.groups.insert(name.to_owned(), group);
            return self.give(number, next, &[GroupChange::Created(holder)]);
        };
        let standing = &known.standing;
        if standing.is_lost || standing.holder_on(host).is_some() {
            return Vec::new();
        }
        self.give(known.number, next, &[GroupChange::Registered(holder)])
    }

    /// Puts the holders of a lost host out of all their groups.
    pub fn host_lost(&mut self, host: HostNumber, next: u64) -> Vec<GroupWord> {
        let groups: Vec<u32> = self.names.keys().copied().collect();
        let mut words = Vec::new();
        for group in groups {
            let next = next + words.len() as u64;
            words.extend(self.put_out_host(group, host, OutCause::HostLost, next));
        }
        words
    }

    /// Puts a holder out whose host has no process of the job any more.
    pub fn no_process(&mut self, group: u32, host: HostNumber, next: u64) -> Vec<GroupWord> {
        self.put_out_host(group, host, OutCause::NoProcess, next)
    }

    /// Takes the report of a group's home. One of another epoch, and one of a host that is not the home, changes
    /// nothing. `reaches` says whether a host reaches the arbiter.
    pub fn report(
        &mut self,
        (group, epoch): (u32, u64),
        from: HostNumber,
        report: HomeReport,
        reaches: impl Fn(HostNumber) -> bool,
        next: u64,
    ) -> Vec<GroupWord> {
        let Some(standing) = self.standing(group) else { return Vec::new() };
        let is_home = standing.home.is_some_and(|home| home.host == from);
        if standing.epoch != epoch || !is_home {
            return Vec::new();
        }
        let is_registered = |holder: HolderId| standing.registered.contains(&holder);
        match report {
            HomeReport::NoPath(holder) if is_registered(holder) && holder.host != from => {
                match reaches(from) && reaches(holder.host) {
                    true => self.put_out(group, holder, OutCause::NoPath, next),
                    false => Vec::new(),
                }
            }
            HomeReport::NoneComplete => self.give(group, next, &[GroupChange::Lost]),
            HomeReport::Sealed(to) => {
                let others = || standing.registered.iter().find(|it| it.host != from).copied();
                let to = Some(to).filter(|to| is_registered(*to)).or_else(others);
                let home = to.or(standing.home);
                let change = home.map(GroupChange::Home);
                self.give(group, next, change.as_slice())
            }
            HomeReport::NoPath(_) => Vec::new(),
        }
    }

    /// The state of a group.
    #[must_use]
    pub fn standing(&self, group: u32) -> Option<&GroupStanding> {
        self.groups.get(self.names.get(&group)?).map(|known| &known.standing)
    }

    /// The number of the group with this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        self.groups.get(name).map(|known| known.number)
    }

    fn put_out_host(
        &mut self,
        group: u32,
        host: HostNumber,
        cause: OutCause,
        next: u64,
    ) -> Vec<GroupWord> {
        let holder = self.standing(group).and_then(|standing| standing.holder_on(host));
        holder.map_or(Vec::new(), |holder| self.put_out(group, holder, cause, next))
    }

    /// Puts a holder out. If it is the home, the first one that stays takes its place.
    fn put_out(
        &mut self,
        group: u32,
        holder: HolderId,
        cause: OutCause,
        next: u64,
    ) -> Vec<GroupWord> {
        let Some(standing) = self.standing(group) else { return Vec::new() };
        let mut changes = vec![GroupChange::Out(holder, cause)];
        if standing.home == Some(holder) {
            let heir = standing.registered.iter().find(|other| **other != holder);
            changes.push(heir.map_or(GroupChange::Lost, |heir| GroupChange::Home(*heir)));
        }
        self.give(group, next, &changes)
    }

    fn give(&mut self, group: u32, next: u64, changes: &[GroupChange]) -> Vec<GroupWord> {
        let name = self.names.get(&group);
        let Some(known) = name.and_then(|name| self.groups.get_mut(name)) else {
            return Vec::new();
        };
        let word =
            |(number, change): (u64, &GroupChange)| GroupWord { number, group, change: *change };
        let words: Vec<GroupWord> = (next..).zip(changes).map(word).collect();
        words.iter().for_each(|word| known.standing.apply(word));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: [HostNumber; 3] = [HostNumber(1), HostNumber(2), HostNumber(3)];

    fn holder(word: u64, host: u16) -> HolderId {
        HolderId { word, host: HostNumber(host) }
    }

    fn three() -> Homes {
        let mut homes = Homes::default();
        (1..).zip(HOSTS).for_each(|(next, host)| {
            assert_eq!(homes.register("a", host, next).len(), 1);
        });
        homes
    }

    fn changes(words: Vec<GroupWord>) -> Vec<GroupChange> {
        words.into_iter().map(|word| word.change).collect()
    }

    #[test]
    fn the_first_holder_that_stays_becomes_home_with_the_words_number_as_epoch() {
        let mut homes = three();
        assert!(homes.register("a", HOSTS[1], 4).is_empty(), "it is registered");
        let words = homes.host_lost(HOSTS[0], 7);
        let expected =
            [GroupChange::Out(holder(1, 1), OutCause::HostLost), GroupChange::Home(holder(2, 2))];
        assert_eq!(changes(words), expected);
        assert_eq!(homes.standing(1).map(|it| it.epoch), Some(8));
        homes.no_process(1, HOSTS[1], 9);
        let last = homes.host_lost(HOSTS[2], 11);
        assert_eq!(changes(last)[1], GroupChange::Lost);
        assert!(homes.register("a", HOSTS[0], 13).is_empty(), "a lost group stays lost");
    }

    #[test]
    fn only_the_home_of_the_epoch_is_believed() {
        let mut homes = three();
        let report = HomeReport::NoPath(holder(3, 3));
        let all = |_| true;
        assert!(homes.report((1, 1), HOSTS[1], report, all, 4).is_empty(), "not the home");
        assert!(homes.report((1, 2), HOSTS[0], report, all, 4).is_empty(), "not the epoch");
        let silent = |host| host != HOSTS[2];
        assert!(homes.report((1, 1), HOSTS[0], report, silent, 4).is_empty(), "it may be lost");
        let words = homes.report((1, 1), HOSTS[0], report, all, 4);
        assert_eq!(changes(words), [GroupChange::Out(holder(3, 3), OutCause::NoPath)]);
        let sealed = HomeReport::Sealed(holder(3, 3));
        let words = homes.report((1, 1), HOSTS[0], sealed, all, 5);
        assert_eq!(changes(words), [GroupChange::Home(holder(2, 2))], "the wanted one is out");
        let words = homes.report((1, 5), HOSTS[1], HomeReport::NoneComplete, all, 6);
        assert_eq!(changes(words), [GroupChange::Lost]);
    }
}
