//! Survivors of a kill that stay until the last of them has been told.
//!
//! A survivor that leaves wakes those that still wait, and so hides that nobody told them.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The file to which each survivor adds a byte.
const FILE: &str = "LANDECK_TEST_SURVIVORS";
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Where the survivors of one job wait for each other; gone when it is dropped.
pub(crate) struct Survivors(PathBuf);

impl Survivors {
    /// For the members of the job that this command starts.
    pub(crate) fn of(command: &mut Command) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("landeck-survivors-{}-{number}", std::process::id());
        let path = super::shared_folder().join(name);
        File::create(&path).unwrap();
        command.env(FILE, &path);
        Self(path)
    }
}

impl Drop for Survivors {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Waits, without a call of the library, until so many members of this process's job have come here.
pub(crate) fn stay_until_told(members: usize) {
    let path = std::env::var_os(FILE).expect("the test has set it");
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(&[0]).unwrap();
    while file.metadata().unwrap().len() < members as u64 {
        thread::sleep(LOOK_EVERY);
    }
}
