//! The helper of a machine on one of its hosts: a guest of the machine's own job that no user has started. It serves the
//! groups of that job whose logs lie on its host.

use std::sync::Arc;

use landeck_engine::{Shared, WaitError};
use landeck_joining::attach;
use landeck_memory::{Operation, Presence, SlotState, WaitRecord};
use landeck_named_groups::{ServerHandle, serve_orphans};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use crate::error::{self, Error, ErrorKind, Members, Result};
use crate::job::{Job, Options};

/// The helper of a machine on this host. Dropping it leaves the job.
#[derive(Debug)]
pub struct Helper {
    job: Job,
}

impl Helper {
    /// Joins the machine's own job, which has this identity. The process is called `landeck-helper` from then on.
    ///
    /// # Errors
    /// As [`Job::join_running`].
    pub fn join(job: &str, options: Options) -> Result<Self> {
        // It is a name alone.
        let _ = rustix::thread::set_name(c"landeck-helper");
        let job = join(job, options).map_err(|error| error.of_call("join", None))?;
        Ok(Self { job })
    }

    /// Returns the job.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Serves the groups whose logs lie on this host, each from when its server is gone, until the job ends.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the agent does not answer; [`ErrorKind::Thread`].
    pub fn serve_groups(&self) -> Result<()> {
        let shared = &self.job.shared;
        let (mut generation, mut known) = (None, None);
        while let Some(next) = next_generation(shared, generation)? {
            generation = Some(next);
            let living = living(shared);
            let has_lost = |known: &Vec<ProcessId>| known.iter().any(|it| !living.contains(it));
            if known.as_ref().is_none_or(has_lost) {
                let served = serve_orphans(shared, &self.job.server_handle);
                served.map_err(Error::from).map_err(|it| error::in_call(shared, "serve", it))?;
            }
            known = Some(living);
        }
        Ok(())
    }
}

/// Joins the job of a host as a thread of a helper, calls `body`, and leaves.
fn as_helper(
    host: SegmentId,
    body: &mut dyn FnMut(&Arc<Shared>, &Arc<ServerHandle>),
) -> std::result::Result<(), String> {
    Job::in_guest(join(&host.to_string(), Options::default()), body)
}

fn join(job: &str, options: Options) -> Result<Job> {
    let attachment = attach::running(job)?;
    // The daemon looks at it when this process connects.
    attachment.segment.set_presence(attachment.slot, Presence::Helping);
    Job::with_attachment(attachment, options, as_helper)
}

/// Waits until the membership of the job has another generation, and returns it; `None` when the job ends.
fn next_generation(shared: &Shared, before: Option<u32>) -> Result<Option<u32>> {
    let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
    let waited = shared.wait_until(&record, None, |_| {
        let now = shared.segment.membership_generation();
        (before != Some(now)).then_some(now)
    });
    match waited.map_err(|error: WaitError| Error::of_wait(shared, error, None, Members::OF_JOB)) {
        Ok(generation) => Ok(Some(generation)),
        Err(Error { kind: ErrorKind::Ended, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The processes of the job on this host.
fn living(shared: &Shared) -> Vec<ProcessId> {
    let segment = &shared.segment;
    let process = |slot| {
        let record = segment.slot_record(slot);
        let (segment, slot) = (SegmentId(segment.plan().host), Slot(slot));
        let process = ProcessId { segment, slot, incarnation: Incarnation(record.incarnation) };
        (record.state == SlotState::Alive).then_some(process)
    };
    (0..segment.plan().slots()).filter_map(process).collect()
}
