//! The load of the hosts of a machine, as each of them tells it to a group once a second.
//!
//! The group [`LOAD_GROUP`] is in the own job of the machine. While that job exists, each host broadcasts one line of text a
//! second there, which [`LoadReport`] reads. A program that opens the group may find texts of other processes of the user, too.
//!
//! ```no_run
//! use landeck::{Job, LoadReport, Options};
//!
//! fn main() -> landeck::Result<()> {
//!     let machine = Job::join_machine(Options::default())?;
//!     let mut inbox = machine.create_mailbox()?;
//!     let member = machine.load_group()?.join(&mut inbox)?;
//!     for _ in 0..10 {
//!         match inbox.retrieve()?.unpack_text()?.parse::<LoadReport>() {
//!             Ok(report) => println!("{}: {:?}", report.host, report.load),
//!             Err(error) => eprintln!("{error}"),
//!         }
//!     }
//!     member.leave()?;
//!     machine.leave()
//! }
//! ```

use std::time::{Duration, Instant};

use landeck_engine::{WaitError, deadline_ns};
use landeck_memory::{Operation, WaitRecord};

pub use landeck_protocols::hosts::load_report::LOAD_GROUP;
pub use landeck_protocols::hosts::{HostLoad, HostPressure, LoadReport, LoadReportError};

use crate::error::{Error, ErrorKind, Members, Result};
use crate::group_service::Group;
use crate::job::Job;
use landeck_joining::objects::ObjectError;

/// How long the group may take to be there: it begins with the machine's own job.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Job {
    /// Opens the group of the loads in the own job of a machine ([`Job::join_machine`]). It waits up to 10 s for the group, which
    /// the machine makes when its own job begins.
    ///
    /// # Errors
    /// As [`Job::open_group`]. In another job [`ErrorKind::Object`]: no group has the name.
    pub fn load_group(&self) -> Result<Group> {
        let until = Instant::now() + BEGINS_WITHIN;
        loop {
            match self.open_group(LOAD_GROUP) {
                Err(Error { kind: ErrorKind::Object(ObjectError::Unknown { .. }), .. })
                    if Instant::now() < until && self.shared.segment.plan().ranks == 0 => {}
                opened => return opened,
            }
            self.look_again()?;
        }
    }

    /// Makes progress for a moment.
    fn look_again(&self) -> Result<()> {
        let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
        match self.shared.wait_until(&record, deadline_ns(Some(LOOK_AGAIN)), |_| None::<()>) {
            Ok(()) | Err(WaitError::TimedOut) => Ok(()),
            Err(error) => Err(Error::of_wait(&self.shared, error, None, Members::OF_JOB)),
        }
    }
}
