//! The hardware that this process is bound to, by names that programs can ask and split by.

use std::fs;

use landeck::unstable::host::cpu_set::CpuSet;
use landeck::unstable::host::topology::{CpuLevel, Topology};

/// The standard's "hardware resource types" of this host, in the form that it recommends.
const KINDS: [(&str, CpuLevel); 4] = [
    ("hwloc://Core", CpuLevel::Core),
    ("hwloc://L3Cache", CpuLevel::L3),
    ("hwloc://NUMANode", CpuLevel::Numa),
    ("hwloc://Package", CpuLevel::Package),
];
/// The prefix of their names. MPI 4.0 showed them without it.
const SCHEME: &str = "hwloc://";

/// The names of all kinds, and whether this thread runs on a single one of it, at this moment.
pub(crate) fn kinds() -> impl Iterator<Item = (&'static str, bool)> {
    KINDS.into_iter().map(|(name, level)| (name, single(level).is_some()))
}

/// The number of the single one of a kind that this thread runs on; the same for all processes of
/// this host that run there.
pub(crate) fn single_of(name: &str) -> Option<u32> {
    let bare = name.strip_prefix(SCHEME).unwrap_or(name);
    let (_, level) = KINDS.into_iter().find(|(own, _)| own.strip_prefix(SCHEME) == Some(bare))?;
    single(level)
}

fn single(level: CpuLevel) -> Option<u32> {
    let bound = CpuSet::of_this_thread().ok()?;
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok()?.parse().ok()?;
    let topology = Topology::read(&online, &[level]);
    common(topology.groups(level), &bound)
}

/// The first processor of the group that has all of these.
fn common(groups: &[CpuSet], bound: &CpuSet) -> Option<u32> {
    let first = bound.iter().next()?;
    let group = groups.iter().find(|group| group.contains(first))?;
    let whole = group.intersection(bound) == *bound;
    group.iter().next().filter(|_| whole).and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_one_has_all_processors() {
        let set = |list: &str| list.parse::<CpuSet>().unwrap();
        let groups = [set("0-1,4"), set("2-3")];
        for (bound, expected) in [
            ("4", Some(0)),
            ("0-1", Some(0)),
            ("3", Some(2)),
            ("1-2", None),
            ("7", None),
            ("", None),
        ] {
            assert_eq!(common(&groups, &set(bound)), expected, "{bound}");
        }
    }

    #[test]
    fn other_names_are_none_of_ours() {
        assert_eq!(single_of("hwloc://Moon"), None);
        assert_eq!(single_of("other://Package"), None);
        assert_eq!(single_of("hwloc://hwloc://Package"), None);
    }

    #[test]
    fn names_are_those_of_either_standard() {
        for (name, _) in KINDS {
            assert_eq!(name.strip_prefix(SCHEME).map(single_of), Some(single_of(name)));
        }
    }
}
