//! The nearness of members, derived from where they run unless clusters are given.
//!
//! All members know where each of them runs: at which site, on which host, and to which last-level cache it is bound. When a
//! group is made its clusters follow from that, and stay.
//!
//! | name | clusters |
//! |---|---|
//! | `caches`, the default | at several sites: one for each site; on one host: one for each cache, if all members are bound to one; else one for each host |
//! | `sites` | one for each site |
//! | `hosts` | one for each host |
//! | `none` | one for all members |
//!
//! ```
//! use landeck_collectives::{Nearness, MemberPlace};
//!
//! let places = [(1, 1), (1, 9), (1, 1), (1, 9)].map(|(host, cache)| MemberPlace { site: 0, host, cache });
//! let group = Nearness::Caches.group(&places)?;
//! assert_eq!(group.clusters(), [vec![0, 2], vec![1, 3]]);
//! # Ok::<(), landeck_collectives::GroupError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use crate::group::{Group, GroupError};

/// The place where a member runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberPlace {
    /// The number of its site in the job; 0 if it has none, or this is unknown.
    pub site: u16,
    /// The random number of its host.
    pub host: u64,
    /// The last-level cache that it is bound to: the number of the cache's first processor, plus one. 0 if it is bound
    /// to none or this is unknown.
    pub cache: u16,
}

/// The criterion by which members are near each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nearness {
    /// The site; at one site the host, and on one host the cache.
    #[default]
    Caches,
    /// The site.
    Sites,
    /// The host.
    Hosts,
    /// None: all members are in one cluster.
    Alike,
}

/// A word that says nothing about nearness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} makes no clusters; choose caches, hosts, sites or none")]
pub struct NearnessError {
    /// The word.
    pub word: String,
}

impl Nearness {
    /// The members at these places, with the clusters that follow.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub fn group(self, places: &[MemberPlace]) -> Result<Group, GroupError> {
        let size = places.len() as u32;
        let of = |member: u32| places[member as usize];
        let is_one_host = places.iter().all(|place| place.host == places[0].host);
        let are_bound = places.iter().all(|place| place.cache != 0);
        let is_one_site = places.iter().all(|place| place.site == places[0].site);
        let knows_sites = matches!(self, Self::Caches | Self::Sites);
        let group = match self {
            Self::Alike => Group::whole(size),
            Self::Sites => Group::by(size, |member| of(member).site),
            Self::Caches if !is_one_site => Group::by(size, |member| of(member).site),
            Self::Hosts => Group::by(size, |member| of(member).host),
            Self::Caches if is_one_host && are_bound => Group::by(size, |member| of(member).cache),
            Self::Caches => Group::by(size, |member| of(member).host),
        }?;
        let hosts = Group::by(size, |member| of(member).host)?;
        let caches = Group::by(size, |member| (of(member).host, of(member).cache))?;
        let number = |group: &Group| (0..size).map(|member| group.cluster_of(member)).collect();
        let group = group.with_levels(vec![number(&hosts), number(&caches)]);
        let sites = places.iter().filter(|_| knows_sites).map(|place| place.site.into());
        Ok(group.with_sites(sites.collect()))
    }

    /// Returns the nearness as a number that [`Nearness::from_word`] reads.
    pub const fn to_word(self) -> u64 {
        match self {
            Self::Caches => 0,
            Self::Hosts => 1,
            Self::Alike => 2,
            Self::Sites => 3,
        }
    }

    /// Reads the nearness from an arbitrary number.
    pub const fn from_word(word: u64) -> Self {
        match word {
            1 => Self::Hosts,
            2 => Self::Alike,
            3 => Self::Sites,
            _ => Self::Caches,
        }
    }
}

impl fmt::Display for Nearness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Caches => "caches",
            Self::Hosts => "hosts",
            Self::Sites => "sites",
            Self::Alike => "none",
        })
    }
}

impl FromStr for Nearness {
    type Err = NearnessError;

    fn from_str(word: &str) -> Result<Self, NearnessError> {
        match word {
            "caches" => Ok(Self::Caches),
            "hosts" => Ok(Self::Hosts),
            "sites" => Ok(Self::Sites),
            "none" => Ok(Self::Alike),
            _ => Err(NearnessError { word: word.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::{Architecture, Hierarchy};

    fn places(of: &[(u64, u16)]) -> Vec<MemberPlace> {
        of.iter().map(|&(host, cache)| MemberPlace { site: 0, host, cache }).collect()
    }

    fn clusters(nearness: Nearness, of: &[(u64, u16)]) -> Vec<Vec<u32>> {
        nearness.group(&places(of)).unwrap().clusters().to_vec()
    }

    #[test]
    fn clusters_follow_from_caches_and_hosts() {
        let one_host = [(7, 3), (7, 1), (7, 3), (7, 1)];
        assert_eq!(clusters(Nearness::Caches, &one_host), [[0, 2], [1, 3]]);
        assert_eq!(clusters(Nearness::Hosts, &one_host), [[0, 1, 2, 3]]);
        let two_hosts = [(7, 1), (9, 1), (7, 3), (9, 1)];
        assert_eq!(clusters(Nearness::Caches, &two_hosts), [[0, 2], [1, 3]]);
        assert_eq!(clusters(Nearness::Alike, &two_hosts), [[0, 1, 2, 3]]);
        let some_unbound = [(7, 1), (7, 0), (7, 1)];
        assert_eq!(clusters(Nearness::Caches, &some_unbound), [[0, 1, 2]]);
        assert!(Nearness::Caches.group(&[]).is_err());
    }

    #[test]
    fn clusters_are_sites_where_there_are_several() {
        let of = [(1, 7, 1), (2, 9, 1), (2, 8, 3), (1, 7, 1)];
        let places = of.map(|(site, host, cache)| MemberPlace { site, host, cache });
        for nearness in [Nearness::Caches, Nearness::Sites] {
            let group = nearness.group(&places).unwrap();
            assert_eq!(group.clusters(), [[0, 3], [1, 2]]);
            assert_eq!(group.sites(), [1, 2, 2, 1]);
            assert_eq!(group.hosts(), [vec![0, 3], vec![1], vec![2]]);
            let tree = Hierarchy::DERIVED.tree(&group, 0);
            assert_eq!((tree.children(0), tree.children(1)), (&[1, 3][..], &[2][..]));
        }
        let hosts = Nearness::Hosts.group(&places).unwrap();
        assert_eq!((hosts.clusters().len(), hosts.sites()), (3, &[0; 0][..]));
        let one = places.map(|place| MemberPlace { site: 1, ..place });
        let group = Nearness::Caches.group(&one).unwrap();
        assert_eq!((group.clusters().len(), group.sites()), (3, &[0; 0][..]));
        assert_eq!(Nearness::Sites.group(&one).unwrap().clusters().len(), 1);
    }

    #[test]
    fn a_hierarchy_has_a_level_for_hosts_and_one_for_caches() {
        let of = [(7, 1), (9, 1), (7, 3), (9, 1), (7, 3)];
        let group = Nearness::Alike.group(&places(&of)).unwrap();
        let tree = Hierarchy::DERIVED.tree(&group, 0);
        assert_eq!((tree.children(0), tree.children(1)), (&[1, 2][..], &[3][..]));
        assert_eq!(tree.children(2), [4]);
        let unknown = Hierarchy::DERIVED.tree(&Group::whole(4).unwrap(), 0);
        assert_eq!(unknown.children(0), [1, 2, 3]);
    }

    #[test]
    fn words_lead_back() {
        for nearness in [Nearness::Caches, Nearness::Hosts, Nearness::Sites, Nearness::Alike] {
            assert_eq!(nearness.to_string().parse(), Ok(nearness));
            assert_eq!(Nearness::from_word(nearness.to_word()), nearness);
        }
        let error = "sockets".parse::<Nearness>().unwrap_err().to_string();
        assert!(
            error.contains("\"sockets\" makes no clusters; choose caches, hosts, sites"),
            "{error}"
        );
    }
}
