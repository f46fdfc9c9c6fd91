//! What the control groups of this process allow: processor time and memory, in version 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};

/// The directories whose limits hold for this process, innermost first, for each of the two
/// resources that matter to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroups {
    processor: Vec<Directory>,
    memory: Vec<Directory>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Directory {
    path: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl ControlGroups {
    /// Finds the control groups of this process. Without any, nothing is limited.
    pub fn of_this_process() -> ControlGroups {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        ControlGroups::from_texts(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
    }

    /// Finds them in the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
    pub fn from_texts(memberships: &str, mounts: &str) -> ControlGroups {
        let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
        ControlGroups {
            processor: directories("cpu", memberships, &mounts),
            memory: directories("memory", memberships, &mounts),
        }
    }

    /// How many processors' worth of time the job may use; `None` if that is not limited.
    pub fn processors(&self) -> Option<f64> {
        self.processor.iter().filter_map(Directory::processors).reduce(f64::min)
    }

    /// How much memory the job may use; `None` if that is not limited.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory.iter().filter_map(Directory::memory_bytes).min()
    }

    /// How many processes of the innermost group the kernel has killed because memory ran out.
    pub fn out_of_memory_kills(&self) -> u64 {
        self.memory.first().map_or(0, Directory::out_of_memory_kills)
    }
}

impl Directory {
    fn processors(&self) -> Option<f64> {
        match self.version {
            Version::One => {
                processors_of_quota(&self.read("cpu.cfs_quota_us"), &self.read("cpu.cfs_period_us"))
            }
            Version::Two => {
                let line = self.read("cpu.max");
                let (quota, period) = line.split_once(' ')?;
                processors_of_quota(quota, period)
            }
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        memory_limit(&match self.version {
            Version::One => self.read("memory.limit_in_bytes"),
            Version::Two => self.read("memory.max"),
        })
    }

    fn out_of_memory_kills(&self) -> u64 {
        out_of_memory_kills(&match self.version {
            Version::One => self.read("memory.oom_control"),
            Version::Two => self.read("memory.events"),
        })
    }

    /// A file that is not there (a controller that is off, the root group) limits nothing.
    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path.join(file)).unwrap_or_default()
    }
}

/// One mounted hierarchy.
struct Mount {
    /// The directory of the hierarchy that is seen at `point`.
    root: String,
    point: PathBuf,
    /// The controllers of a version 1 hierarchy; `None` in version 2.
    controllers: Option<Vec<String>>,
}

impl Mount {
    /// Reads one line of mountinfo; `None` if it is no control group.
    fn parse(line: &str) -> Option<Mount> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let controllers = match kind.next()? {
            "cgroup2" => None,
            "cgroup" => Some(kind.nth(1)?.split(',').map(str::to_owned).collect()),
            _ => return None,
        };
        let mut fields = mount.split(' ').skip(3);
        let root = unescape(fields.next()?);
        let point = PathBuf::from(unescape(fields.next()?));
        Some(Mount { root, point, controllers })
    }

    /// The group's directory and all above it that this mount shows. A group outside of what it
    /// shows (a container without a namespace of its own) is taken for the mount's root.
    fn directories(&self, group: &str, version: Version) -> Vec<Directory> {
        let root = Path::new(&self.root);
        let below = Path::new(group).strip_prefix(root).unwrap_or(Path::new(""));
        let inside = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let below = if inside { below } else { Path::new("") };
        let paths = below.ancestors().map(|part| self.point.join(part));
        paths.map(|path| Directory { path, version }).collect()
    }
}

/// Where a controller's limits for the process stand: in its version 1 hierarchy if there is one,
/// else in the version 2 tree.
fn directories(controller: &str, memberships: &str, mounts: &[Mount]) -> Vec<Directory> {
    let memberships = || {
        memberships.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, fields.next()?))
        })
    };
    let has = |list: &str| list.split(',').any(|name| name == controller);
    if let Some((_, group)) = memberships().find(|(list, _)| has(list)) {
        let held = |mount: &&Mount| {
            mount
                .controllers
                .as_ref()
                .is_some_and(|names| names.iter().any(|name| name == controller))
        };
        let mount = mounts.iter().find(held);
        return mount.map(|mount| mount.directories(group, Version::One)).unwrap_or_default();
    }
    let Some((_, group)) = memberships().find(|(list, _)| list.is_empty()) else {
        return Vec::new();
    };
    let mount = mounts.iter().find(|mount| mount.controllers.is_none());
    mount.map(|mount| mount.directories(group, Version::Two)).unwrap_or_default()
}

fn processors_of_quota(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Version 1 writes "no limit" as a number near the largest one, version 2 as `max`.
fn memory_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&bytes| bytes < 1 << 60)
}

fn out_of_memory_kills(text: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    value.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// mountinfo writes blanks in paths as `\040`.
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

    fn paths(directories: &[Directory]) -> Vec<&str> {
        directories.iter().map(|directory| directory.path.to_str().unwrap()).collect()
    }

    #[test]
    fn version_1_hierarchies_are_found() {
        let memberships = "4:memory:/job/7\n1:cpu,cpuacct:/\n0::/\n";
        let groups = ControlGroups::from_texts(memberships, MIXED_MOUNTS);
        assert_eq!(paths(&groups.processor), ["/sys/fs/cgroup/cpu,cpuacct/"]);
        assert_eq!(
            paths(&groups.memory),
            ["/sys/fs/cgroup/memory/job/7", "/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory/"]
        );
        assert_eq!(groups.memory[0].version, Version::One);
    }

    #[test]
    fn the_version_2_tree_is_found() {
        let groups = ControlGroups::from_texts("0::/user.slice/a b\n", TWO_MOUNTS);
        let expected =
            ["/sys/fs/cgroup/user.slice/a b", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/"];
        assert_eq!(paths(&groups.memory), expected);
        assert_eq!(paths(&groups.processor), expected);
        assert_eq!(groups.memory[0].version, Version::Two);
    }

    #[test]
    fn a_group_outside_of_the_mount_is_its_root() {
        let mount = "29 24 0:26 /docker/4 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        let of = |group: &str| {
            let groups = ControlGroups::from_texts(&format!("0::{group}\n"), mount);
            paths(&groups.memory).join(" ")
        };
        assert_eq!(of("/docker/4/job"), "/sys/fs/cgroup/job /sys/fs/cgroup/");
        assert_eq!(of("/elsewhere"), "/sys/fs/cgroup/");
        assert_eq!(of("/../.."), "/sys/fs/cgroup/");
    }

    #[test]
    fn no_control_groups_limit_nothing() {
        let groups = ControlGroups::from_texts("", "garbage\n1 2 3\n - cgroup\n");
        assert_eq!((groups.processors(), groups.memory_bytes()), (None, None));
        assert_eq!(groups.out_of_memory_kills(), 0);
    }

    #[test]
    fn limits_are_read() {
        assert_eq!(processors_of_quota("150000", "100000\n"), Some(1.5));
        assert_eq!(processors_of_quota("max", "100000\n"), None);
        assert_eq!(processors_of_quota("-1\n", "100000\n"), None);
        assert_eq!(memory_limit("67108864\n"), Some(64 << 20));
        assert_eq!(memory_limit("max\n"), None);
        assert_eq!(memory_limit("9223372036854771712\n"), None);
        assert_eq!(out_of_memory_kills("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"), 2);
        assert_eq!(out_of_memory_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), 1);
        assert_eq!(out_of_memory_kills(""), 0);
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_holds() {
        let root = std::env::temp_dir().join(format!("landeck-groups-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/cpu.max"), "50000 100000\n").unwrap();
        fs::write(root.join("a/b/cpu.max"), "max 100000\n").unwrap();
        fs::write(root.join("a/memory.max"), "1000\n").unwrap();
        fs::write(root.join("a/b/memory.max"), "2000\n").unwrap();
        fs::write(root.join("a/b/memory.events"), "oom_kill 4\n").unwrap();
        let mount = format!("29 24 0:26 / {} rw - cgroup2 cgroup2 rw\n", root.display());
        let groups = ControlGroups::from_texts("0::/a/b\n", &mount);
        let seen = (groups.processors(), groups.memory_bytes(), groups.out_of_memory_kills());
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(seen, (Some(0.5), Some(1000), 4));
    }
}
