//! The launcher as the place of a group's server, where it takes no core from the program.
//!
//! A launcher that serves groups (`landeck run --serve-groups`) is a guest of its own job, in a thread. It has
//! a mailbox under a fixed name. A process that makes a group for the launcher posts the group's name
//! there. The launcher opens the group, which makes it the server like any process that the options name.

use std::time::Duration;

use landeck_engine::{Engine, WaitError, deadline_ns};
use landeck_joining::objects::{Name, ObjectError};
use landeck_memory::{Operation, WaitRecord};
use landeck_named_groups::{GroupOptions, ServedBy};
use landeck_wire::Slot;

use crate::error::{Error, ErrorKind, GroupError, Members, Result};
use crate::job::Job;
use crate::mailbox::outbox::Outbox;
use crate::message::Message;
use crate::unstable::JobInternals;

/// The name of the launcher's mailbox.
const MAILBOX_NAME: &str = "landeck: group server";
/// How long a launcher that serves groups takes at most to join its job.
const JOINS_WITHIN: Duration = Duration::from_secs(30);

/// The launcher, where it serves groups.
pub(super) struct ServingLauncher(Outbox);

impl Job {
    /// Serves the groups of this job that are created for its launcher ([`ServedBy::Launcher`])
    /// until the job ends, as `landeck run --serve-groups` does in a thread of the launcher. Only
    /// one process of a job can do this.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: another process serves already, or the agent does not answer;
    /// [`ErrorKind::Thread`].
    pub fn serve_groups(&self) -> Result<()> {
        let mut inbox = self.create_mailbox()?;
        inbox.register(MAILBOX_NAME)?;
        let segment = self.segment();
        // Processes that were faster wait for the name.
        (0..segment.plan().slots()).for_each(|slot| segment.tell_news(slot));
        loop {
            let name = match inbox.retrieve() {
                Ok(mut message) => message.unpack_text(),
                Err(Error { kind: ErrorKind::Ended, .. }) => return Ok(()),
                Err(Error { kind: ErrorKind::PeerFailed { .. }, .. }) => continue,
                Err(error) => return Err(error),
            };
            if let Ok(name) = name {
                // A group that has ended needs no server. Clients of a group that cannot be served get the reason.
                let _ = self.open_group(name);
            }
        }
    }

    /// The launcher, if it is to serve a group. It may be about to join the job.
    pub(super) fn serving_launcher(
        &self,
        group: &Name,
        options: GroupOptions,
    ) -> Result<Option<ServingLauncher>> {
        if options.served_by_whom() != ServedBy::Launcher {
            return Ok(None);
        }
        let mailbox = Name::new(MAILBOX_NAME).map_err(ObjectError::from)?;
        let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
        let is_there = |_: &mut Engine| match self.find_mailbox(&mailbox) {
            Err(ObjectError::Unknown { .. }) => None,
            // A group is served on its own host.
            Ok(found) if found.owner.segment != self.process().segment => None,
            found => Some(found.map(drop)),
        };
        // Where the launcher serves no groups, another process may do so by now.
        let joins_within = match self.segment().plan().serves_groups {
            true => JOINS_WITHIN,
            false => Duration::ZERO,
        };
        let until = deadline_ns(Some(joins_within));
        match self.shared.wait_until(&record, until, is_there) {
            Ok(found) => found?,
            Err(WaitError::TimedOut) => {
                let group = group.as_str().to_owned();
                return Err(GroupError::NoServingLauncher { group }.into());
            }
            Err(error) => return Err(Error::of_wait(&self.shared, error, None, Members::OF_JOB)),
        }
        Ok(Some(ServingLauncher(self.open_mailbox(MAILBOX_NAME)?)))
    }
}

impl ServingLauncher {
    /// The launcher's place in a group's options.
    pub(super) fn place(&self) -> ServedBy {
        let Slot(slot) = self.0.address().process().slot;
        ServedBy::Process(slot)
    }

    /// Tells the launcher that a group was made.
    pub(super) fn tell_of(&self, group: &Name) -> Result<()> {
        self.0.post(Message::new().pack_text(group.as_str()))
    }
}
