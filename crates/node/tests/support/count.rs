//! A count by which members of a job wait for each other without a look at their messages.

use std::sync::atomic::Ordering;
use std::time::Duration;

use landeck::{Job, SharedSegment};

/// A number in memory that all of a job share. Who waits for it calls nothing of the library, so
/// nothing that was sent to it comes in meanwhile.
pub(crate) struct Count(SharedSegment);

impl Count {
    /// The count of this name; all of the job call this.
    pub(crate) fn new(job: &Job, name: &str) -> Self {
        let world = job.world();
        let made = (world.rank() == 0).then(|| job.create_segment(name, 8).unwrap());
        world.barrier().unwrap();
        let count = Self(made.unwrap_or_else(|| job.open_segment(name).unwrap()));
        // Memory goes with its last user.
        world.barrier().unwrap();
        count
    }

    pub(crate) fn add_one(&self) {
        self.0.words()[0].fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.words()[0].load(Ordering::SeqCst)
    }

    /// Waits until it is as large as this.
    pub(crate) fn wait_for(&self, least: u64) {
        while self.get() < least {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
