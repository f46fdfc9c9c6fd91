//! The part of a job on this host, which the job's conductor has asked for.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use landeck_launch::guardian::server::GuardianServer;
use landeck_launch::messages::{PartCommand, PartEvent, PartRefusal};
use landeck_launch::part::{DescriptorWatch, HostPart, KeptPipe};
use landeck_launch::request::{LAUNCHER_FAILED, LaunchError};
use landeck_launch::spec::{HostSpec, JobSpec};
use landeck_wire::word::WordContent;
use landeck_wire::{HostNumber, JobId, SegmentId};
use rustix::event::epoll::EventFlags;

use crate::context::Context;
use crate::job_message::JobContent;
use crate::journal::{Change, Entry, EntryName};

/// The part of a job on this host.
#[derive(Debug)]
pub(crate) struct OwnPart {
    job: JobId,
    /// The host whose daemon conducts the job.
    pub(crate) conductor: HostNumber,
    /// The token of its first descriptor; it has 2^32 of them.
    pub(crate) tokens: u64,
    state: State,
    /// A descriptor could not be watched.
    cannot_watch: bool,
}

/// The descriptors with which a part goes on that another run of the daemon has driven.
#[derive(Debug)]
pub(crate) struct KeptDescriptors {
    /// The segment, and the conversation with the guardian.
    pub(crate) part: [OwnedFd; 2],
    /// The listening socket for the processes.
    pub(crate) listener: OwnedFd,
    /// The pipes of the processes.
    pub(crate) pipes: Vec<(KeptPipe, Option<OwnedFd>)>,
}

#[derive(Debug)]
enum State {
    /// The job as it was checked.
    Checked(Box<JobSpec>),
    Made(Box<HostPart>),
    /// The part is over, and may be asked to tell everything again.
    Ended(Box<HostPart>),
    Over,
}

/// The daemon's loop, as a part uses it.
struct PartWatch<'a, 'b> {
    context: &'a mut Context<'b>,
    tokens: u64,
}

impl DescriptorWatch for PartWatch<'_, '_> {
    fn watch(&mut self, what: BorrowedFd<'_>, token: u32, flags: EventFlags) -> io::Result<()> {
        self.context.watch(what, self.tokens + u64::from(token), flags)
    }

    fn rewatch(&mut self, what: BorrowedFd<'_>, token: u32, flags: EventFlags) -> io::Result<()> {
        self.context.rewatch(what, self.tokens + u64::from(token), flags)
    }

    fn unwatch(&mut self, what: BorrowedFd<'_>) {
        // It was watched, so this can fail only if it is closed already.
        let _ = self.context.unwatch(what);
    }
}

impl KeptDescriptors {
    /// The descriptors as they stood in the journal; `None` if some are missing.
    pub(crate) fn of(kept: Vec<OwnedFd>, pipes: Vec<(KeptPipe, Option<OwnedFd>)>) -> Option<Self> {
        let [segment, guardian, listener] = <[OwnedFd; 3]>::try_from(kept).ok()?;
        Some(Self { part: [segment, guardian], listener, pipes })
    }
}

impl OwnPart {
    /// The part of a job that was checked, whose descriptors get the tokens from this one on.
    pub(crate) fn checked(spec: JobSpec, conductor: HostNumber, tokens: u64) -> Self {
        let (job, state) = (spec.job, State::Checked(Box::new(spec)));
        Self { job, conductor, tokens, state, cannot_watch: false }
    }

    /// The part that another run of the daemon has driven.
    ///
    /// # Errors
    /// The kernel's error: nothing of the part is left.
    pub(crate) fn resumed(
        context: &mut Context<'_>,
        (spec, conductor, tokens): (JobSpec, HostNumber, u64),
        kept: KeptDescriptors,
    ) -> io::Result<Self> {
        let job = spec.job;
        let part = HostPart::resume(spec, context.own_host(), kept.part, kept.pipes)?;
        context.resume_part(job, part.segment().clone(), kept.listener)?;
        let state = State::Made(Box::new(part));
        Ok(Self { job, conductor, tokens, state, cannot_watch: false })
    }

    /// Makes everything that the part needs, with what the conductor has settled, and tells the conductor.
    pub(crate) fn prepare(
        &mut self,
        context: &mut Context<'_>,
        settle: impl FnOnce(JobSpec) -> JobSpec,
    ) {
        let State::Checked(spec) = std::mem::replace(&mut self.state, State::Over) else { return };
        let made = make(context, settle(*spec));
        let answer = made.map(|part| self.state = State::Made(Box::new(part)));
        context.send(self.conductor, self.job, JobContent::Prepared(answer));
    }

    /// Starts the processes.
    pub(crate) fn start(&mut self, context: &mut Context<'_>, server: &GuardianServer) {
        let State::Made(part) = &mut self.state else { return };
        if let Err(error) = part.start(Some(server)) {
            let refusal = PartRefusal::from(&LaunchError::from(error));
            return context.send(self.conductor, self.job, JobContent::NotStarted(refusal));
        }
        // A guardian whose daemon was killed before this ends at once.
        self.keep(context);
    }

    /// Keeps the part as it is now for the next run of this daemon.
    fn keep(&mut self, context: &Context<'_>) {
        let State::Made(part) = &mut self.state else { return };
        let Some(listener) = context.listener_of(self.job).filter(|_| context.journal().is_kept())
        else {
            return;
        };
        let Some(kept) = part.kept() else { return };
        let descriptors = kept.into_iter().chain([listener]).collect();
        let spec = Box::new(part.spec().clone());
        let entry = Entry::Runs { conductor: self.conductor, spec };
        let whole = Change::keep(EntryName::Part(self.job), &entry, descriptors);
        context.journal().write(vec![whole]);
        self.keep_pipes(context);
    }

    /// Keeps the pipes that were opened, and no longer those that were closed.
    fn keep_pipes(&mut self, context: &Context<'_>) {
        let (job, journal) = (self.job, context.journal());
        let State::Made(part) = &mut self.state else { return };
        if !journal.is_kept() || part.kept().is_none() {
            return;
        }
        let changes = part.unkept_pipes().into_iter().map(|(kept, pipe)| {
            let name = EntryName::Pipe(job, kept.number());
            Change::keep(name, &Entry::Pipe(kept), pipe.into_iter().collect())
        });
        journal.write(changes.collect());
    }

    /// Gives the guests of a host that is added to the job their places, and tells the conductor of those that are here.
    pub(crate) fn add_host(&mut self, context: &mut Context<'_>, host: HostSpec) {
        let State::Made(part) = &mut self.state else { return };
        let segment = host.segment;
        // A daemon that was killed may not have answered.
        if part.spec().hosts.iter().all(|known| known.segment != segment) {
            let added = part.add_host(host);
            context.add_far_guests(self.job, added);
        }
        let guests = part.guests_here();
        self.keep(context);
        context.send(self.conductor, self.job, JobContent::HostAdded { segment, guests });
    }

    /// Carries out a command.
    pub(crate) fn command(&mut self, command: PartCommand) {
        if let State::Made(part) = &mut self.state {
            part.command(command);
        }
    }

    /// Handles a descriptor that is ready.
    pub(crate) fn ready(&mut self, token: u32) {
        if let State::Made(part) = &mut self.state {
            part.ready(token);
        }
    }

    /// Passes on what the part has to say, and watches what it waits for. Returns whether it has come to its end.
    pub(crate) fn settle(&mut self, context: &mut Context<'_>) -> bool {
        // The pipes of processes that are to be added come before these are started.
        self.keep_pipes(context);
        let has_ended = self.go_on(context);
        self.keep_pipes(context);
        if has_ended {
            context.part_ended(self.job);
            self.state = match std::mem::replace(&mut self.state, State::Over) {
                State::Made(part) => State::Ended(part),
                state => state,
            };
        }
        has_ended
    }

    /// Tells everything again: the daemon that conducts the job was killed.
    pub(crate) fn tell_again(&mut self, asked: u64) {
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Made(mut part) | State::Ended(mut part) => {
                part.tell_again(asked);
                State::Made(part)
            }
            state => state,
        };
    }

    /// Passes on what the part has to say, and watches what it waits for. Returns whether it has come to its end.
    fn go_on(&mut self, context: &mut Context<'_>) -> bool {
        let State::Made(part) = &mut self.state else { return false };
        let (job, to) = (self.job, self.conductor);
        let mut watch = PartWatch { context, tokens: self.tokens };
        if let Err(error) = part.settle(&mut watch)
            && !std::mem::replace(&mut self.cannot_watch, true)
        {
            let text = format!("landeckd cannot watch the processes, and ends them: {error}");
            context.send(to, job, JobContent::Event(PartEvent::Said(text)));
            part.command(PartCommand::Kill);
        }
        while let Some(event) = part.take_event() {
            if let PartEvent::Gone { process, end } = event {
                context.tell(WordContent::ProcessEnded { job, process, end });
                continue;
            }
            match event.is_bulk() {
                true => context.send_bulk(to, job, JobContent::Event(event)),
                false => context.send(to, job, JobContent::Event(event)),
            }
        }
        part.is_over()
    }

    /// Forgets everything of the part. Processes that still run end with their guardian.
    pub(crate) fn forget(&mut self, context: &mut Context<'_>) {
        if let State::Made(_) = std::mem::replace(&mut self.state, State::Over) {
            context.remove_part(self.job);
        }
    }

    /// The segment, if the guardian lets processes join.
    pub(crate) fn present_segment(&self) -> Option<SegmentId> {
        let State::Made(part) = &self.state else { return None };
        part.is_present().then(|| SegmentId(part.segment().plan().host))
    }

    /// Whether there is nothing more to do.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.state, State::Ended(_) | State::Over)
    }
}

fn make(context: &mut Context<'_>, spec: JobSpec) -> Result<HostPart, PartRefusal> {
    let job = spec.job;
    let part = HostPart::prepare(spec, context.own_host())?;
    let refuse = |error: io::Error| PartRefusal {
        exit_code: LAUNCHER_FAILED,
        text: format!("the socket for the processes cannot be opened: {error}"),
    };
    context.add_part(job, part.segment().clone(), part.far()).map_err(refuse)?;
    Ok(part)
}
