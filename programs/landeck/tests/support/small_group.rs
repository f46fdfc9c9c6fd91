//! Control groups with little memory.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Numbers the groups of this test process.
static GROUPS: AtomicU32 = AtomicU32::new(0);

/// A memory control group that is gone with the test.
pub(crate) struct SmallGroup(PathBuf);

impl SmallGroup {
    /// What to say where there is none.
    pub(crate) const NONE: &str = "no memory control group can be made here (needs root)";

    /// `None` where this user cannot make one.
    pub(crate) fn new(bytes: u64) -> Option<SmallGroup> {
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let name = format!("landeck-test-{}.{number}", std::process::id());
        for (root, file) in
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        {
            let path = PathBuf::from(root).join(&name);
            if fs::create_dir(&path).is_err() {
                continue;
            }
            if fs::write(path.join(file), bytes.to_string()).is_ok() {
                return Some(SmallGroup(path));
            }
            let _ = fs::remove_dir(&path);
        }
        None
    }

    /// The line of a shell that enters it.
    pub(crate) fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
