//! A count by which members of a job wait for each other without a look at their messages.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::time::Duration;

use landeck::Job;

use super::shared_file;

/// A number that all of a job share, on all hosts: the length of a file that has no name any more. Who waits for it
/// calls nothing of the library, so nothing that was sent to it comes in meanwhile.
pub(crate) struct Count(File);

impl Count {
    /// The count of this name; all of the job call this.
    pub(crate) fn new(job: &Job, name: &str) -> Self {
        let world = job.world();
        let path = shared_file(job, name);
        if world.rank() == 0 {
            File::create(&path).unwrap();
        }
        world.barrier().unwrap();
        let count = Self(OpenOptions::new().append(true).open(&path).unwrap());
        world.barrier().unwrap();
        if world.rank() == 0 {
            fs::remove_file(path).unwrap();
        }
        count
    }

    pub(crate) fn add_one(&self) {
        (&self.0).write_all(&[0]).unwrap();
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.metadata().unwrap().len()
    }

    /// Waits until it is as large as this.
    pub(crate) fn wait_for(&self, least: u64) {
        while self.get() < least {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
