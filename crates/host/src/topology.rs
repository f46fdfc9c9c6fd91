//! Finds out which processors share a core, a cache, a memory node or a package.
//!
//! It reads /sys only as far as a placement needs it: a start that binds nothing reads nothing. `LANDECK_TOPOLOGY`
//! names a directory to read instead of `/sys/devices/system`: a copy of another machine's, to see how processes would
//! be placed there.

use std::path::{Path, PathBuf};

use crate::cpu_set::CpuSet;
use crate::file::read_text_within;

/// The variable that names another machine's copy of `/sys/devices/system`.
pub const VARIABLE: &str = "LANDECK_TOPOLOGY";
/// The limit of a file there; the kernel's have a page at most.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// A resource that processors can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuLevel {
    /// A core: its hardware threads.
    Core,
    /// A third-level cache.
    L3,
    /// A memory node.
    Numa,
    /// A package (socket).
    Package,
}

/// The usable processors, grouped by shared resources. A level that was not asked for is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// Cores in the order of their first processor.
    pub cores: Vec<CpuSet>,
    /// Third-level caches.
    pub caches: Vec<CpuSet>,
    /// Memory nodes.
    pub nodes: Vec<CpuSet>,
    /// Packages.
    pub packages: Vec<CpuSet>,
}

impl Topology {
    /// Reads the given levels from this machine's /sys.
    pub fn read(usable: &CpuSet, levels: &[CpuLevel]) -> Topology {
        Topology::read_below(&root(), usable, levels)
    }

    /// Reads the given levels from a tree in the form of `/sys/devices/system`. Values that cannot be read are guessed:
    /// a processor is a core of its own, and everything shares everything else.
    pub fn read_below(root: &Path, usable: &CpuSet, levels: &[CpuLevel]) -> Topology {
        let mut topology = Topology::default();
        let mates = |cpu, files: &[&str]| {
            let directory = root.join(format!("cpu/cpu{cpu}"));
            files.iter().find_map(|file| read_list(directory.join(file)))
        };
        for level in levels {
            match level {
                CpuLevel::Core => {
                    let files = ["topology/core_cpus_list", "topology/thread_siblings_list"];
                    topology.cores = group(usable, |cpu| {
                        mates(cpu, &files).unwrap_or_else(|| [cpu].into_iter().collect())
                    });
                }
                CpuLevel::L3 => {
                    topology.caches = group(usable, |cpu| {
                        read_cache(&root.join(format!("cpu/cpu{cpu}/cache")))
                            .unwrap_or_else(|| usable.clone())
                    });
                }
                CpuLevel::Numa => topology.nodes = read_nodes(&root.join("node"), usable),
                CpuLevel::Package => {
                    let files = ["topology/package_cpus_list", "topology/core_siblings_list"];
                    topology.packages =
                        group(usable, |cpu| mates(cpu, &files).unwrap_or_else(|| usable.clone()));
                }
            }
        }
        topology
    }

    /// The groups of one level.
    pub fn groups(&self, level: CpuLevel) -> &[CpuSet] {
        match level {
            CpuLevel::Core => &self.cores,
            CpuLevel::L3 => &self.caches,
            CpuLevel::Numa => &self.nodes,
            CpuLevel::Package => &self.packages,
        }
    }
}

/// The last-level cache that all of these processors share, as the number of its first processor. `None` if they share
/// none, or the machine does not tell.
pub fn last_cache_of(processors: &CpuSet) -> Option<usize> {
    last_cache_below(&root(), processors)
}

/// The shared last-level cache as the word of [`Segment::cache_of`](landeck_memory::Segment::cache_of): plus one, 0 for
/// none.
pub fn cache_word(processors: &CpuSet) -> u16 {
    let next = last_cache_of(processors).map(|first| first + 1);
    next.and_then(|word| u16::try_from(word).ok()).unwrap_or(0)
}

/// Returns the size of the last-level cache of the first of these processors, in KiB. None if the machine does not say.
pub fn last_cache_kib(processors: &CpuSet) -> Option<u64> {
    last_cache_kib_below(&root(), processors)
}

fn last_cache_kib_below(root: &Path, processors: &CpuSet) -> Option<u64> {
    let first = processors.iter().next()?;
    let index = last_index(&root.join(format!("cpu/cpu{first}/cache")))?;
    read_text(&index.join("size"))?.trim().strip_suffix('K')?.parse().ok()
}

fn last_cache_below(root: &Path, processors: &CpuSet) -> Option<usize> {
    let first = processors.iter().next()?;
    let cache = read_last_cache(&root.join(format!("cpu/cpu{first}/cache")))?;
    let shares_all = cache.intersection(processors) == *processors;
    cache.iter().next().filter(|_| shares_all)
}

fn root() -> PathBuf {
    let other = std::env::var_os(VARIABLE).filter(|directory| !directory.is_empty());
    other.map_or_else(|| "/sys/devices/system".into(), PathBuf::from)
}

/// Divides the usable processors into groups. `mates` returns the processors that share with a given one; it is called
/// once for each group.
fn group(usable: &CpuSet, mut mates: impl FnMut(usize) -> CpuSet) -> Vec<CpuSet> {
    let mut left = usable.clone();
    let mut groups = Vec::new();
    for cpu in usable.iter() {
        if !left.contains(cpu) {
            continue;
        }
        let mut together = mates(cpu).intersection(&left);
        together.insert(cpu); // whatever the kernel's file says
        for member in together.iter() {
            left.remove(member);
        }
        groups.push(together);
    }
    groups
}

/// The processors that share the third-level cache described by this directory of caches.
fn read_cache(directory: &Path) -> Option<CpuSet> {
    let is_third =
        |index: &PathBuf| read_text(&index.join("level")).is_some_and(|level| level.trim() == "3");
    let mut indices = (0..8).rev().map(|number| directory.join(format!("index{number}")));
    read_list(indices.find(is_third)?.join("shared_cpu_list"))
}

/// The processors that share the cache of the highest level that this directory describes.
fn read_last_cache(directory: &Path) -> Option<CpuSet> {
    read_list(last_index(directory)?.join("shared_cpu_list"))
}

/// The directory of the cache of the highest level.
fn last_index(directory: &Path) -> Option<PathBuf> {
    let level =
        |index: &PathBuf| -> Option<u32> { read_text(&index.join("level"))?.trim().parse().ok() };
    let indices = (0..8).map(|number| directory.join(format!("index{number}")));
    indices.filter_map(|index| Some((level(&index)?, index))).max().map(|(_, index)| index)
}

/// The memory nodes that have usable processors; one node if the machine does not tell.
fn read_nodes(directory: &Path, usable: &CpuSet) -> Vec<CpuSet> {
    let online = read_list(directory.join("online")).unwrap_or_default();
    let lists =
        online.iter().filter_map(|node| read_list(directory.join(format!("node{node}/cpulist"))));
    let nodes: Vec<CpuSet> = lists.collect();
    let of = |cpu| nodes.iter().find(|node| node.contains(cpu)).unwrap_or(usable).clone();
    group(usable, of)
}

fn read_list(path: PathBuf) -> Option<CpuSet> {
    read_text(&path)?.parse().ok().filter(|set: &CpuSet| !set.is_empty())
}

/// Reads a file of limited length. The user may name another directory than the kernel's, whose files may be anything.
fn read_text(path: &Path) -> Option<String> {
    read_text_within(path, FILE_BYTES_MAX).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A directory that is removed when the test ends.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Tree {
            let path = std::env::temp_dir().join(format!("landeck-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Tree(path)
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn texts(groups: &[CpuSet]) -> Vec<String> {
        groups.iter().map(CpuSet::to_string).collect()
    }

    /// Two packages of two cores with two threads each, numbered as common servers number them.
    fn two_packages(name: &str) -> Tree {
        let tree = Tree::new(name);
        for cpu in 0..8 {
            let (core, package) = (cpu % 4, cpu % 4 / 2);
            let of_package = ["0-1,4-5", "2-3,6-7"][package];
            let at = |file: &str| format!("cpu/cpu{cpu}/{file}");
            tree.write(&at("topology/core_cpus_list"), &format!("{core},{}", core + 4));
            tree.write(&at("topology/package_cpus_list"), of_package);
            tree.write(&at("cache/index2/level"), "2");
            tree.write(&at("cache/index3/level"), "3");
            tree.write(&at("cache/index3/shared_cpu_list"), of_package);
        }
        tree.write("node/online", "0-1");
        tree.write("node/node0/cpulist", "0-1,4-5");
        tree.write("node/node1/cpulist", "2-3,6-7");
        tree
    }

    #[test]
    fn every_level_is_read() {
        let tree = two_packages("whole-topology");
        let levels = [CpuLevel::Core, CpuLevel::L3, CpuLevel::Numa, CpuLevel::Package];
        let topology = Topology::read_below(&tree.0, &"0-7".parse().unwrap(), &levels);
        assert_eq!(texts(&topology.cores), ["0,4", "1,5", "2,6", "3,7"]);
        for level in [CpuLevel::L3, CpuLevel::Numa, CpuLevel::Package] {
            assert_eq!(texts(topology.groups(level)), ["0-1,4-5", "2-3,6-7"], "{level:?}");
        }
    }

    #[test]
    fn processors_that_may_not_be_used_are_left_out() {
        let tree = two_packages("part-topology");
        let levels = [CpuLevel::Core, CpuLevel::Numa];
        let topology = Topology::read_below(&tree.0, &"1-2,5".parse().unwrap(), &levels);
        assert_eq!(texts(&topology.cores), ["1,5", "2"]);
        assert_eq!(texts(&topology.nodes), ["1,5", "2"]);
        assert!(topology.packages.is_empty(), "nobody asked");
    }

    #[test]
    fn the_size_is_that_of_the_last_cache_if_the_machine_says_it() {
        let tree = two_packages("cache-size");
        let of = |list: &str| last_cache_kib_below(&tree.0, &list.parse().unwrap());
        assert_eq!(of("0"), None);
        tree.write("cpu/cpu0/cache/index2/size", "2048K");
        tree.write("cpu/cpu0/cache/index3/size", "32768K");
        tree.write("cpu/cpu1/cache/index3/size", "much");
        assert_eq!((of("0-1"), of("1"), of("7")), (Some(32 << 10), None, None));
    }

    #[test]
    fn the_last_cache_is_that_of_the_highest_level() {
        let tree = two_packages("last-cache");
        let of = |list: &str| last_cache_below(&tree.0, &list.parse().unwrap());
        assert_eq!((of("1"), of("2-3,6"), of("5")), (Some(0), Some(2), Some(0)));
        assert_eq!((of("1-2"), of("9"), of("")), (None, None, None));
        tree.write("cpu/cpu5/cache/index4/level", "4");
        tree.write("cpu/cpu5/cache/index4/shared_cpu_list", "5");
        assert_eq!(of("5"), Some(5));
    }

    #[test]
    fn an_empty_tree_gives_guesses() {
        let tree = Tree::new("bare-topology");
        let levels = [CpuLevel::Core, CpuLevel::L3, CpuLevel::Numa, CpuLevel::Package];
        let topology = Topology::read_below(&tree.0, &"0-2".parse().unwrap(), &levels);
        assert_eq!(texts(&topology.cores), ["0", "1", "2"]);
        for level in [CpuLevel::L3, CpuLevel::Numa, CpuLevel::Package] {
            assert_eq!(texts(topology.groups(level)), ["0-2"], "{level:?}");
        }
    }

    #[test]
    fn lies_in_the_tree_do_no_harm() {
        let tree = Tree::new("odd-topology");
        tree.write("cpu/cpu0/topology/core_cpus_list", "5-9");
        tree.write("cpu/cpu1/topology/core_cpus_list", "what");
        let topology = Topology::read_below(&tree.0, &"0-1".parse().unwrap(), &[CpuLevel::Core]);
        assert_eq!(texts(&topology.cores), ["0", "1"]);
    }

    #[test]
    fn this_machine_has_a_core() {
        let usable = CpuSet::of_this_thread().unwrap();
        assert!(!Topology::read(&usable, &[CpuLevel::Core]).cores.is_empty());
    }
}
