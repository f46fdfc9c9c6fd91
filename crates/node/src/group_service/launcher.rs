//! The launcher as the place of a group's server: beside no process that computes.
//!
//! A launcher that serves groups (`landeck run --serve-groups`) is a guest of its own job, in a thread. It has
//! a mailbox under a name that everybody knows; whoever makes a group for it posts the group's name
//! there, and it opens the group, which makes it the server as any process that is named.

use std::time::Duration;

use landeck_host::objects::{self, ObjectError, ObjectName};
use landeck_memory::{Operation, WaitRecord};
use landeck_wire::Slot;

use crate::error::{Error, ErrorKind, GroupError, Result};
use crate::job::Job;
use crate::message::Message;
use crate::named_group::options::{GroupOptions, ServedBy};
use crate::outbox::Outbox;
use crate::unstable::JobInternals;
use landeck_engine::{Engine, WaitError, deadline_ns};

/// The name of the launcher's mailbox.
const DESK: &str = "landeck: group server";
/// A launcher that is to serve groups has joined its job by then.
const JOINS_WITHIN: Duration = Duration::from_secs(30);

/// The launcher, where it serves groups.
pub(super) struct ServingLauncher(Outbox);

impl Job {
    /// Serves the groups of this job that are made for its launcher ([`ServedBy::Launcher`]), until the job
    /// ends. This is what `landeck run --serve-groups` does in a thread of the launcher; one process of
    /// a job can.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: another process does it already, the agent does not answer; [`ErrorKind::Thread`].
    pub fn serve_groups(&self) -> Result<()> {
        let mut inbox = self.create_mailbox()?;
        inbox.register(DESK)?;
        let segment = self.segment();
        // Whoever was faster than this waits for it.
        (0..segment.plan().slots()).for_each(|slot| segment.tell_news(slot));
        loop {
            let name = match inbox.retrieve() {
                Ok(mut message) => message.unpack_text(),
                Err(Error { kind: ErrorKind::Ended, .. }) => return Ok(()),
                Err(Error { kind: ErrorKind::PeerFailed { .. }, .. }) => continue,
                Err(error) => return Err(error),
            };
            if let Ok(name) = name {
                // A group that is over by now needs no server; who asks one that cannot serve is told why.
                let _ = self.open_group(name);
            }
        }
    }

    /// The launcher, if a group is to be served by it. It may be about to join the job.
    pub(super) fn serving_launcher(
        &self,
        group: &ObjectName,
        options: GroupOptions,
    ) -> Result<Option<ServingLauncher>> {
        if !options.is_for_launcher() {
            return Ok(None);
        }
        let desk = ObjectName::new(DESK).map_err(ObjectError::from)?;
        let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
        let is_there = |_: &mut Engine| match objects::find_mailbox(self.process(), &desk) {
            Err(ObjectError::Unknown { .. }) => None,
            found => Some(found.map(drop)),
        };
        // Where no launcher is to, another process may do it by now.
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
            Err(error) => return Err(Error::of_wait(&self.shared, error, None, |_| None)),
        }
        Ok(Some(ServingLauncher(self.open_mailbox(DESK)?)))
    }
}

impl ServingLauncher {
    /// How a group names it.
    pub(super) fn place(&self) -> ServedBy {
        let Slot(slot) = self.0.address().process().slot;
        ServedBy::Process(slot)
    }

    /// Tells it that a group was made.
    pub(super) fn is_told_of(&self, group: &ObjectName) -> Result<()> {
        self.0.post(Message::new().pack_text(group.as_str()))
    }
}
