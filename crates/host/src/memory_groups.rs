//! The memory limits of this process's control groups, in version 1 and 2. (Their quota of processor time is read by
//! `landeck_memory::processors`.)

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The directories whose memory limits apply to this process, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryGroups {
    directories: Vec<PathBuf>,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl MemoryGroups {
    /// Finds the control groups of this process. Without any, nothing is limited.
    pub fn of_this_process() -> MemoryGroups {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        MemoryGroups::from_texts(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
    }

    /// Finds the groups in the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`: in the version 1 hierarchy of
    /// the memory controller if there is one, else in the version 2 tree.
    pub fn from_texts(memberships: &str, mounts: &str) -> MemoryGroups {
        let first = membership(memberships, |list| list.split(',').any(|name| name == "memory"));
        let (group, version) = match first {
            Some(group) => (Some(group), Version::One),
            None => (membership(memberships, str::is_empty), Version::Two),
        };
        let mut mounts = mounts.lines().filter_map(Mount::parse);
        let mount = mounts.find(|mount| mount.version == version);
        let directories = mount.zip(group).map(|(mount, group)| mount.directories(group));
        MemoryGroups { directories: directories.unwrap_or_default(), version }
    }

    /// The memory limit of the job; `None` if there is none.
    pub fn limit_bytes(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        self.directories.iter().filter_map(|group| limit_bytes(&read(group, file))).min()
    }

    /// The number of processes of the innermost group that the kernel has killed because memory ran out.
    pub fn out_of_memory_kills(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        self.directories.first().map_or(0, |group| out_of_memory_kills(&read(group, file)))
    }
}

/// One mounted hierarchy that may hold memory limits.
struct Mount {
    /// The directory of the hierarchy that is visible at `point`.
    root: String,
    point: PathBuf,
    version: Version,
}

impl Mount {
    /// Parses one line of mountinfo; `None` if it does not concern memory.
    fn parse(line: &str) -> Option<Mount> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let version = match kind.next()? {
            "cgroup2" => Version::Two,
            "cgroup" if kind.nth(1)?.split(',').any(|name| name == "memory") => Version::One,
            _ => return None,
        };
        let mut fields = mount.split(' ').skip(3);
        let root = unescape(fields.next()?);
        let point = PathBuf::from(unescape(fields.next()?));
        Some(Mount { root, point, version })
    }

    /// The group's directory and all directories above it that this mount shows. A group outside of the mount (in a
    /// container without a namespace of its own) is taken for the mount's root.
    fn directories(&self, group: &str) -> Vec<PathBuf> {
        let below = Path::new(group).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let inside = below.components().all(|part| matches!(part, Component::Normal(_)));
        let below = if inside { below } else { Path::new("") };
        below.ancestors().map(|part| self.point.join(part)).collect()
    }
}

/// The group of this process in the first hierarchy with such a list of controllers.
fn membership(memberships: &str, wanted: impl Fn(&str) -> bool) -> Option<&str> {
    memberships.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        wanted(controllers).then_some(group)
    })
}

/// Reads a file of a group. A missing file (a controller that is off, the root group) limits nothing.
fn read(group: &Path, file: &str) -> String {
    fs::read_to_string(group.join(file)).unwrap_or_default()
}

/// Parses a limit. Version 1 writes "no limit" as a number near the largest one, version 2 as `max`.
fn limit_bytes(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&bytes| bytes < 1 << 60)
}

fn out_of_memory_kills(text: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    value.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Undoes the escapes of mountinfo, which writes blanks in paths as `\040`.
fn unescape(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const TWO_MOUNTS: &str =
        "29 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    fn paths(groups: &MemoryGroups) -> Vec<&str> {
        groups.directories.iter().map(|path| path.to_str().unwrap()).collect()
    }

    #[test]
    fn the_version_1_hierarchy_is_found() {
        let memberships = "4:memory:/job/7\n1:cpu,cpuacct:/\n0::/\n";
        let groups = MemoryGroups::from_texts(memberships, MIXED_MOUNTS);
        let root = "/sys/fs/cgroup/memory";
        let expected = [format!("{root}/job/7"), format!("{root}/job"), format!("{root}/")];
        assert_eq!(paths(&groups), expected);
        assert_eq!(groups.version, Version::One);
    }

    #[test]
    fn the_version_2_tree_is_found() {
        let groups = MemoryGroups::from_texts("0::/user.slice/a b\n", TWO_MOUNTS);
        let root = "/sys/fs/cgroup";
        let expected =
            [format!("{root}/user.slice/a b"), format!("{root}/user.slice"), format!("{root}/")];
        assert_eq!(paths(&groups), expected);
        assert_eq!(groups.version, Version::Two);
    }

    #[test]
    fn a_group_outside_of_the_mount_is_its_root() {
        let mount = "29 24 0:26 /docker/4 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        let of = |group: &str| {
            paths(&MemoryGroups::from_texts(&format!("0::{group}\n"), mount)).join(" ")
        };
        assert_eq!(of("/docker/4/job"), "/sys/fs/cgroup/job /sys/fs/cgroup/");
        assert_eq!(of("/elsewhere"), "/sys/fs/cgroup/");
        assert_eq!(of("/../.."), "/sys/fs/cgroup/");
    }

    #[test]
    fn no_control_groups_limit_nothing() {
        let groups = MemoryGroups::from_texts("", "garbage\n1 2 3\n - cgroup\n");
        assert_eq!((groups.limit_bytes(), groups.out_of_memory_kills()), (None, 0));
    }

    #[test]
    fn limits_are_read() {
        assert_eq!(limit_bytes("67108864\n"), Some(64 << 20));
        assert_eq!(limit_bytes("max\n"), None);
        assert_eq!(limit_bytes("9223372036854771712\n"), None);
        assert_eq!(out_of_memory_kills("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"), 2);
        assert_eq!(out_of_memory_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), 1);
        assert_eq!(out_of_memory_kills(""), 0);
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_holds() {
        let root = std::env::temp_dir().join(format!("landeck-groups-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/memory.max"), "1000\n").unwrap();
        fs::write(root.join("a/b/memory.max"), "2000\n").unwrap();
        fs::write(root.join("a/b/memory.events"), "oom_kill 4\n").unwrap();
        let mount = format!("29 24 0:26 / {} rw - cgroup2 cgroup2 rw\n", root.display());
        let groups = MemoryGroups::from_texts("0::/a/b\n", &mount);
        let seen = (groups.limit_bytes(), groups.out_of_memory_kills());
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(seen, (Some(1000), 4));
    }
}
