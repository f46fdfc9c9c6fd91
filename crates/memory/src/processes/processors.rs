//! How many processors there are for this process: its affinity, cut by its cgroup's quota.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::getppid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};

/// Processors that this process may use, at least one: the smaller of its affinity mask and its
/// cgroup's quota (version 2 `cpu.max`, version 1 `cpu.cfs_quota_us`), the quota rounded up.
pub fn usable() -> u32 {
    affinity().min(quota().unwrap_or(u32::MAX)).max(1)
}

/// Processors in the affinity mask of this thread.
pub fn affinity() -> u32 {
    sched_getaffinity(None).map_or(1, |set| set.count()).max(1)
}

/// Processors that the parent of this process may use: a launcher binds each process to fewer.
pub fn of_parent() -> u32 {
    sched_getaffinity(getppid()).map_or(1, |set| set.count()).max(1)
}

/// Lets the calling thread run wherever the parent of its process may: it is to find a processor
/// beside those that processes are bound to.
pub fn follow_parent() {
    if let Ok(set) = sched_getaffinity(getppid()) {
        // Where that is not allowed it stays where its process is.
        let _ = sched_setaffinity(None, &set);
    }
}

/// Whole processors that the cgroup's quota amounts to; none when there is no quota.
pub fn quota() -> Option<u32> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    directories(&groups).into_iter().filter_map(|directory| quota_in(&directory)).min()
}

/// The directories whose quota binds a process with this `/proc/self/cgroup`: its own group and
/// all above it.
fn directories(groups: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            some if some.split(',').any(|name| name == "cpu") => "/sys/fs/cgroup/cpu",
            _ => continue,
        };
        let own = Path::new(root).join(path.trim_start_matches('/'));
        found.extend(own.ancestors().take_while(|at| at.starts_with(root)).map(Path::to_owned));
    }
    found
}

fn quota_in(directory: &Path) -> Option<u32> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    if let Some(text) = read("cpu.max") {
        let (quota, period) = text.trim().split_once(' ')?;
        return whole(quota.parse().ok()?, period.parse().ok()?);
    }
    whole(
        read("cpu.cfs_quota_us")?.trim().parse().ok()?,
        read("cpu.cfs_period_us")?.trim().parse().ok()?,
    )
}

fn whole(quota_us: u64, period_us: u64) -> Option<u32> {
    (period_us > 0 && quota_us > 0)
        .then(|| u32::try_from(quota_us.div_ceil(period_us)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_at_least_one() {
        assert!(usable() >= 1 && usable() <= affinity());
    }

    #[test]
    fn both_versions_of_cgroups_are_found_up_to_their_root() {
        let unified = directories("0::/user/job\n");
        assert_eq!(unified.len(), 3);
        assert_eq!(unified[0], Path::new("/sys/fs/cgroup/user/job"));
        let first = directories("4:memory:/a\n3:cpu,cpuacct:/b\n");
        assert_eq!(first, [Path::new("/sys/fs/cgroup/cpu/b"), Path::new("/sys/fs/cgroup/cpu")]);
        assert!(directories("nonsense").is_empty());
    }

    #[test]
    fn a_part_of_a_processor_counts_as_one() {
        assert_eq!(whole(50_000, 100_000), Some(1));
        assert_eq!(whole(250_000, 100_000), Some(3));
        assert_eq!(whole(1, 0), None);
    }
}
