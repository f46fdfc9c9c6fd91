//! The parts of a job as the launcher's loop has them: the only one itself, or the arbiter that conducts those of all
//! hosts.

use std::io;
use std::os::fd::BorrowedFd;

use landeck_wire::{HostNumber, JobId};
use rustix::event::epoll::EventFlags;

use crate::arbiter::Arbiter;
use crate::guardian::GuardianError;
use crate::messages::{ArbiterReport, PartCommand, ToArbiter};
use crate::part::{DescriptorWatch, HostPart};
use crate::watch::Watch;

/// The names of the descriptors of parts in the launcher's loop are above this.
pub(crate) const PARTS: u64 = 2 << 32;

/// The parts of a job.
pub(crate) enum Parts {
    /// This host has the whole job.
    Here(Box<HostPart>),
    /// Several hosts have it.
    Arbiter(Arbiter),
}

impl Parts {
    /// Starts the processes of this host. The arbiter does that by itself.
    pub(crate) fn start(&mut self) -> Result<(), GuardianError> {
        match self {
            Parts::Here(part) => part.start(None),
            Parts::Arbiter(_) => Ok(()),
        }
    }

    /// Gives a command to the part on a host; `None` means all.
    pub(crate) fn command(&mut self, host: Option<HostNumber>, command: PartCommand) {
        match self {
            Parts::Here(part) => part.command(command),
            Parts::Arbiter(arbiter) => arbiter.send(&ToArbiter::Command { host, command }),
        }
    }

    /// Asks for one more host. Returns whether there may be an answer: a job without a machine has one host for ever.
    pub(crate) fn add_host(&mut self, host: HostNumber) -> bool {
        match self {
            Parts::Here(_) => false,
            Parts::Arbiter(arbiter) => {
                arbiter.send(&ToArbiter::AddHost(host));
                true
            }
        }
    }

    /// Handles a descriptor that is ready.
    pub(crate) fn ready(&mut self, name: u64) {
        match self {
            Parts::Here(part) => part.ready((name - PARTS) as u32),
            Parts::Arbiter(arbiter) => arbiter.move_on(),
        }
    }

    /// Takes the next report.
    pub(crate) fn take_report(&mut self) -> Option<ArbiterReport> {
        match self {
            Parts::Here(part) => part
                .take_event()
                .map(|event| ArbiterReport::Event { host: HostNumber::NONE, event }),
            Parts::Arbiter(arbiter) => arbiter.take_report(),
        }
    }

    /// Whether there is a report that [`Parts::take_report`] has not taken.
    pub(crate) fn has_report(&self) -> bool {
        match self {
            Parts::Here(part) => part.has_event(),
            Parts::Arbiter(_) => false, // its messages are taken as soon as they are whole
        }
    }

    /// Whether nothing more will come, without a word.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Parts::Here(_) => false,
            Parts::Arbiter(arbiter) => arbiter.has_ended(),
        }
    }

    /// Whether another daemon may take the place of the arbiter, if that has ended.
    pub(crate) fn may_return(&self) -> bool {
        match self {
            Parts::Here(_) => false,
            Parts::Arbiter(arbiter) => arbiter.may_return(),
        }
    }

    /// Goes on with a job and its hosts at the next daemon; false if there is none yet. Nothing is watched meanwhile.
    pub(crate) fn try_return(&mut self, job: JobId, hosts: Vec<HostNumber>, asked: u64) -> bool {
        match self {
            Parts::Here(_) => false,
            Parts::Arbiter(arbiter) => arbiter.try_return(job, hosts, asked),
        }
    }

    /// Watches the descriptors that can make progress now.
    pub(crate) fn watch(&mut self, watch: &mut Watch) -> io::Result<()> {
        match self {
            Parts::Here(part) => part.settle(watch),
            Parts::Arbiter(arbiter) => arbiter.watch(watch, PARTS),
        }
    }

    /// Watches nothing more. A part that is over has seen to that.
    pub(crate) fn unwatch(&mut self, watch: &mut Watch) {
        if let Parts::Arbiter(arbiter) = self {
            arbiter.unwatch(watch, PARTS);
        }
    }

    /// Ends what serves the job.
    pub(crate) fn end(self) {
        if let Parts::Arbiter(arbiter) = self {
            arbiter.end();
        }
    }
}

/// The names of a part's descriptors in the launcher's loop follow [`PARTS`].
impl DescriptorWatch for Watch {
    fn watch(&mut self, what: BorrowedFd<'_>, token: u32, flags: EventFlags) -> io::Result<()> {
        self.set(PARTS + u64::from(token), &what, flags)
    }

    fn rewatch(&mut self, what: BorrowedFd<'_>, token: u32, flags: EventFlags) -> io::Result<()> {
        self.unwatch(what);
        DescriptorWatch::watch(self, what, token, flags)
    }

    fn unwatch(&mut self, what: BorrowedFd<'_>) {
        self.forget(&what);
    }
}
