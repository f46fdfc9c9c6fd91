//! The clusters of processes that are started on this machine, from their placement and the caches that `landeck run`
//! would bind them to.

use landeck_collectives::{Group, GroupError, MemberPlace, Nearness};
use landeck_host::placement::{BindTo, MapBy, PlacementError};
use landeck_launch::plan::{caches_of, placement_here};

/// The processes cannot be placed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClustersError {
    #[error(transparent)]
    CpuPlacement(#[from] PlacementError),
    #[error(transparent)]
    Group(#[from] GroupError),
}

/// The group of this many processes of this machine, mapped and bound like this.
pub(crate) fn here(
    processes: u32,
    map_by: MapBy,
    bind_to: Option<BindTo>,
    nearness: Nearness,
) -> Result<Group, ClustersError> {
    let placement = placement_here(&[], processes, map_by, bind_to, None)?;
    let places =
        caches_of(&placement).into_iter().map(|cache| MemberPlace { site: 0, host: 0, cache });
    Ok(nearness.group(&places.collect::<Vec<_>>())?)
}

/// Says which members are near each other, and why.
pub(crate) fn line(group: &Group, nearness: Nearness) -> String {
    let lists = group.clusters().iter().map(|cluster| {
        let members: Vec<String> = cluster.iter().map(u32::to_string).collect();
        members.join(",")
    });
    let lists: Vec<String> = lists.collect();
    match group.clusters().len() {
        1 => format!("All members are near each other ({nearness})."),
        count => format!("{count} clusters ({nearness}): {}", lists.join("  ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_named_by_their_members() {
        let group = Group::of_lengths(&[2, 1]).unwrap();
        assert_eq!(line(&group, Nearness::Caches), "2 clusters (caches): 0,1  2");
        let whole = Group::whole(3).unwrap();
        assert_eq!(line(&whole, Nearness::Alike), "All members are near each other (none).");
    }

    #[test]
    fn processes_of_this_machine_are_on_one_host() {
        let group = here(3, MapBy::default(), None, Nearness::Hosts).unwrap();
        assert_eq!(group.clusters(), [[0, 1, 2]]);
        assert!(group.is_on_one_host());
    }
}
