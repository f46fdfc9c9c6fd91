//! A group as architectures see it: its members and their division into clusters.

/// Members 0 to `size` - 1, divided into clusters. The first member of a cluster leads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    clusters: Vec<Vec<u32>>,
    cluster_of: Vec<u32>,
    levels: Vec<Vec<u32>>,
    sites: Vec<u32>,
}

/// An invalid division into clusters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// A group without members.
    #[error("a group needs at least one member")]
    Empty,
    /// A cluster without members has no leader.
    #[error("cluster {cluster} has no members; leave it out")]
    EmptyCluster {
        /// Its number.
        cluster: usize,
    },
    /// Every member is in one cluster.
    #[error(
        "member {member} stands in {times} clusters of a group of {size}; every member stands in one"
    )]
    NotOnce {
        /// The member.
        member: u32,
        /// The number of clusters that contain it.
        times: usize,
        /// Members of all clusters together.
        size: usize,
    },
}

impl Group {
    /// One cluster with all members.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub fn whole(size: u32) -> Result<Self, GroupError> {
        Self::divided(size, 1)
    }

    /// Consecutive members in `clusters` clusters of the same size, the first ones larger by one
    /// where that does not come out even. Never more clusters than members.
    ///
    /// # Errors
    /// [`GroupError::Empty`] for no members or no clusters.
    pub fn divided(size: u32, clusters: u32) -> Result<Self, GroupError> {
        let clusters = clusters.min(size);
        if clusters == 0 {
            return Err(GroupError::Empty);
        }
        let larger = size % clusters;
        let lengths: Vec<u32> =
            (0..clusters).map(|number| size / clusters + u32::from(number < larger)).collect();
        Self::of_lengths(&lengths)
    }

    /// Consecutive members in clusters of these lengths.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn of_lengths(lengths: &[u32]) -> Result<Self, GroupError> {
        let mut first = 0;
        let clusters = lengths.iter().map(|length| {
            let cluster = (first..first + length).collect();
            first += length;
            cluster
        });
        Self::of(clusters.collect())
    }

    /// The rows of a matrix of `columns` columns that the members fill row by row.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub fn rows(size: u32, columns: u32) -> Result<Self, GroupError> {
        Self::by(size, |member| member / columns.max(1))
    }

    /// The columns of that matrix.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub fn columns(size: u32, columns: u32) -> Result<Self, GroupError> {
        Self::by(size, |member| member % columns.max(1))
    }

    /// A cluster for each value of `key`, in the order in which the members first have them.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub fn by<K: PartialEq>(size: u32, key: impl Fn(u32) -> K) -> Result<Self, GroupError> {
        let mut clusters: Vec<(K, Vec<u32>)> = Vec::new();
        for member in 0..size {
            let of = key(member);
            match clusters.iter_mut().find(|(key, _)| *key == of) {
                Some((_, cluster)) => cluster.push(member),
                None => clusters.push((of, vec![member])),
            }
        }
        Self::of(clusters.into_iter().map(|(_, cluster)| cluster).collect())
    }

    /// Returns a group with any clusters; the order within a cluster is kept.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn of(clusters: Vec<Vec<u32>>) -> Result<Self, GroupError> {
        let size: usize = clusters.iter().map(Vec::len).sum();
        if size == 0 {
            return Err(GroupError::Empty);
        }
        if let Some(cluster) = clusters.iter().position(Vec::is_empty) {
            return Err(GroupError::EmptyCluster { cluster });
        }
        let (mut cluster_of, mut times) = (vec![u32::MAX; size], vec![0usize; size]);
        for (number, cluster) in (0..).zip(&clusters) {
            for &member in cluster {
                if let Some(of) = cluster_of.get_mut(member as usize) {
                    *of = number;
                    times[member as usize] += 1;
                }
            }
        }
        for (member, times) in (0..).zip(times) {
            if times != 1 {
                return Err(GroupError::NotOnce { member, times, size });
            }
        }
        Ok(Self { clusters, cluster_of, levels: Vec::new(), sites: Vec::new() })
    }

    /// Returns the group with the placement of its members: for each level, the outermost first (hosts, then caches),
    /// the number of each member's group there.
    #[must_use]
    pub fn with_levels(mut self, levels: Vec<Vec<u32>>) -> Self {
        self.levels = levels;
        self
    }

    /// The placement of its members, as given to [`Group::with_levels`]; no levels if it is unknown.
    pub fn levels(&self) -> &[Vec<u32>] {
        &self.levels
    }

    /// Returns the group with the number of each member's site. Members at one site are not told apart by it.
    #[must_use]
    pub fn with_sites(mut self, sites: Vec<u32>) -> Self {
        let are_several = sites.iter().any(|site| *site != sites[0]);
        let is_known = sites.len() == self.cluster_of.len();
        self.sites = if are_several && is_known { sites } else { Vec::new() };
        self
    }

    /// The number of each member's site; empty if all are at one, or if this is unknown.
    pub fn sites(&self) -> &[u32] {
        &self.sites
    }

    /// The group of one member of each host, whose clusters are the sites, in the order of [`Group::hosts`]; `None` if the
    /// members are not known to be at several sites.
    pub(crate) fn hosts_at_sites(&self) -> Option<Self> {
        let hosts = self.hosts();
        let sites: Vec<u32> = hosts
            .iter()
            .map(|host| self.sites.get(host[0] as usize).copied())
            .collect::<Option<_>>()?;
        let (count, numbers) = (hosts.len() as u32, (0..hosts.len() as u32).collect());
        let group = Self::by(count, |host| sites[host as usize]).ok()?;
        let group = group.with_levels(vec![numbers]).with_sites(sites);
        (!group.sites.is_empty()).then_some(group)
    }

    /// Whether all members are known to be on one host.
    pub fn is_on_one_host(&self) -> bool {
        self.levels.first().is_some_and(|hosts| hosts.iter().all(|&host| host == hosts[0]))
    }

    /// The members of each host in rising order, hosts in the order of their first members. Where the placement is
    /// unknown, clusters count as hosts.
    pub fn hosts(&self) -> Vec<Vec<u32>> {
        let known = self.levels.first().filter(|hosts| hosts.len() == self.cluster_of.len());
        let of = known.unwrap_or(&self.cluster_of);
        let mut hosts: Vec<(u32, Vec<u32>)> = Vec::new();
        for (member, &host) in (0..).zip(of) {
            match hosts.iter_mut().find(|(number, _)| *number == host) {
                Some((_, members)) => members.push(member),
                None => hosts.push((host, vec![member])),
            }
        }
        hosts.into_iter().map(|(_, members)| members).collect()
    }

    /// Returns these members, in this order, as a group that keeps their clusters, levels and sites.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub fn among(&self, members: &[u32]) -> Result<Self, GroupError> {
        let place_of = |member: u32| members.iter().position(|&other| other == member);
        let places = |cluster: &Vec<u32>| -> Vec<u32> {
            let known = cluster.iter().filter_map(|&member| place_of(member));
            known.map(|place| place as u32).collect()
        };
        let clusters = self.clusters.iter().map(places).filter(|cluster| !cluster.is_empty());
        let of_members = |level: &Vec<u32>| {
            members.iter().filter_map(|&member| level.get(member as usize).copied()).collect()
        };
        let levels = self.levels.iter().map(of_members).collect();
        let sites = of_members(&self.sites);
        Ok(Self::of(clusters.collect())?.with_levels(levels).with_sites(sites))
    }

    /// The number of members.
    pub fn size(&self) -> u32 {
        self.cluster_of.len() as u32
    }

    /// The clusters.
    pub fn clusters(&self) -> &[Vec<u32>] {
        &self.clusters
    }

    /// The cluster of a member.
    pub fn cluster_of(&self, member: u32) -> u32 {
        self.cluster_of[member as usize]
    }

    /// The leader of a cluster.
    pub fn leader(&self, cluster: u32) -> u32 {
        self.clusters[cluster as usize][0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_are_as_even_as_can_be() {
        let group = Group::divided(7, 3).unwrap();
        assert_eq!(group.clusters(), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
        assert_eq!((group.cluster_of(4), group.leader(2), group.size()), (1, 5, 7));
        assert_eq!(Group::divided(2, 9).unwrap().clusters(), [vec![0], vec![1]]);
    }

    #[test]
    fn rows_and_columns() {
        let rows = Group::rows(5, 2).unwrap();
        assert_eq!(rows.clusters(), [vec![0, 1], vec![2, 3], vec![4]]);
        let columns = Group::columns(5, 2).unwrap();
        assert_eq!(columns.clusters(), [vec![0, 2, 4], vec![1, 3]]);
    }

    #[test]
    fn members_left_in_a_smaller_group_keep_their_clusters_and_levels() {
        let levels = vec![vec![0, 0, 1, 1, 1]];
        let group = Group::of_lengths(&[2, 2, 1]).unwrap().with_levels(levels);
        let left = group.among(&[1, 3, 4]).unwrap();
        assert_eq!(
            (left.clusters(), left.levels()),
            (&[vec![0], vec![1], vec![2]][..], &[vec![0, 1, 1]][..])
        );
        assert_eq!(group.among(&[]), Err(GroupError::Empty));
    }

    #[test]
    fn hosts_are_divided_by_their_sites() {
        let levels = vec![vec![0, 1, 0, 2, 3, 1]];
        let group = Group::whole(6).unwrap().with_levels(levels);
        assert_eq!(group.hosts_at_sites(), None);
        let group = group.with_sites(vec![7, 7, 7, 0, 7, 7]);
        let hosts = group.hosts_at_sites().unwrap();
        assert_eq!(hosts.clusters(), [vec![0, 1, 3], vec![2]]);
        assert_eq!((hosts.sites(), hosts.hosts().len()), (&[7, 7, 0, 7][..], 4));
        assert_eq!(group.among(&[3, 1]).unwrap().sites(), [0, 7]);
        assert_eq!(group.among(&[0, 1, 4]).unwrap().sites(), [0; 0], "one site is none");
        assert_eq!(group.with_sites(vec![1, 2]).sites(), [0; 0], "not of all members");
    }

    #[test]
    fn an_impossible_division_of_a_group_is_named() {
        assert_eq!(Group::whole(0), Err(GroupError::Empty));
        assert_eq!(Group::divided(3, 0), Err(GroupError::Empty));
        assert_eq!(Group::of(vec![vec![0], vec![]]), Err(GroupError::EmptyCluster { cluster: 1 }));
        let twice = Group::of(vec![vec![0, 1], vec![1]]);
        assert_eq!(twice, Err(GroupError::NotOnce { member: 1, times: 2, size: 3 }));
        let outside = Group::of(vec![vec![0, 9]]);
        assert_eq!(outside, Err(GroupError::NotOnce { member: 1, times: 0, size: 2 }));
    }
}
