//! Control groups with little memory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Numbers the groups of this test process.
static GROUPS: AtomicU32 = AtomicU32::new(0);

/// A memory control group that is gone with the test.
pub(crate) struct SmallGroup(PathBuf);

impl SmallGroup {
    /// The text for a host on which no group can be made.
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

    /// A command that does the same in this group, in the same process.
    pub(crate) fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.args(["-c", &format!("{} && exec \"$0\" \"$@\"", self.enter())]);
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    /// Asserts that soon no process is left in it, and no more shared memory than so many bytes: what was
    /// made in the group is counted there whoever has it.
    pub(crate) fn assert_left(&self, bytes: u64) {
        let read = |file| fs::read_to_string(self.0.join(file)).unwrap();
        let give_up = Instant::now() + super::GONE_WITHIN;
        loop {
            let (processes, figures) = (read("cgroup.procs"), read("memory.stat"));
            let shared = figures.lines().find_map(|line| line.strip_prefix("shmem ")).unwrap();
            let shared: u64 = shared.parse().unwrap();
            if processes.is_empty() && shared <= bytes {
                return;
            }
            assert!(
                Instant::now() < give_up,
                "processes {processes:?} are left, and {shared} bytes of shared memory, of which \
                 {bytes} are the test's own"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
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
