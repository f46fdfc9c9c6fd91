//! The launchers and commands of this host that call the daemon of a machine.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use landeck_host::message_stream::MessageStream;
use landeck_joining::address::Address;
use landeck_joining::peer;
use landeck_launch::machine::{MachineAnswer, MachineQuestion};
use landeck_launch::machine_call::greeting;
use landeck_launch::messages::{ArbiterReport, HostsRequest, ToArbiter};
use landeck_wire::{HostNumber, JobId};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{Resource, getrlimit};

use crate::context::Context;
use crate::machine::listening::Listening;

/// The callers that are served at the same time.
const CALLERS_MAX: usize = 256;

/// The stream to a launcher or a command.
pub(crate) type CallerStream = MessageStream<ToArbiter, ArbiterReport>;

/// Something that a caller wants.
#[derive(Debug)]
pub(crate) enum CallersEvent {
    /// It asks.
    Asks {
        /// The caller.
        caller: u64,
        /// The question.
        question: MachineQuestion,
    },
    /// It starts a job, and is its launcher from now on.
    Starts(CallerStream, Box<HostsRequest>),
    /// It is the launcher of a job that ran when the daemon before was killed.
    Resumes {
        /// The conversation from now on.
        stream: CallerStream,
        /// The job.
        job: JobId,
        /// The hosts whose parts are not over, as the launcher knows.
        hosts: Vec<HostNumber>,
        /// The number by which the launcher knows the answers of the parts.
        asked: u64,
    },
    /// It has booked processors for a job, and has gone without starting it.
    HasGone(JobId),
}

/// The callers of a daemon.
#[derive(Debug)]
pub(crate) struct Callers {
    listening: Listening,
    /// A descriptor that is given up for a moment to tell a caller that there is no other one.
    spare: Option<OwnedFd>,
    callers: BTreeMap<u64, Caller>,
    events: Vec<CallersEvent>,
}

#[derive(Debug)]
struct Caller {
    stream: CallerStream,
    waits_for_room: bool,
    booked: Option<JobId>,
}

impl Callers {
    /// Listens for callers. Their descriptors get the tokens from this one on.
    ///
    /// # Errors
    /// The kernel's error: another daemon may listen there.
    pub(crate) fn listen(address: &Address, tokens: u64) -> io::Result<Self> {
        let listening = Listening::new(address.listen_for_streams()?, tokens);
        let (callers, events) = (BTreeMap::new(), Vec::new());
        Ok(Self { spare: listening.spare(), listening, callers, events })
    }

    /// Takes what callers want.
    pub(crate) fn take_events(&mut self) -> Vec<CallersEvent> {
        std::mem::take(&mut self.events)
    }

    /// Watches the socket at which callers come.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn watch(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.listening.watch(context)
    }

    /// Goes on with a descriptor that is ready.
    pub(crate) fn ready(&mut self, context: &mut Context<'_>, token: u64) {
        let Some(number) = self.listening.number(token) else { return self.accept(context) };
        let Some(caller) = self.callers.get_mut(&number) else { return };
        caller.stream.flush();
        caller.stream.read();
        while let Some(message) = caller.stream.take_next() {
            match message {
                ToArbiter::Ask(question) => {
                    if let MachineQuestion::Book { job, .. } = &question {
                        caller.booked = Some(*job);
                    }
                    self.events.push(CallersEvent::Asks { caller: number, question });
                }
                ToArbiter::Start(request) => return self.hand_over(context, number, request),
                ToArbiter::Resume { job, hosts, asked } => {
                    if let Some(caller) = self.remove(context, number) {
                        let stream = caller.stream;
                        self.events.push(CallersEvent::Resumes { stream, job, hosts, asked });
                    }
                    return;
                }
                // There is no job that it commands.
                ToArbiter::Command { .. } | ToArbiter::AddHost(_) => {}
            }
        }
        self.settle(context, number);
    }

    /// Answers a caller, which may have gone.
    pub(crate) fn answer(&mut self, context: &mut Context<'_>, caller: u64, answer: MachineAnswer) {
        if let Some(known) = self.callers.get_mut(&caller) {
            known.stream.send(&ArbiterReport::Answered(answer));
            self.settle(context, caller);
        }
    }

    fn accept(&mut self, context: &mut Context<'_>) {
        let (socket, refusal) = match self.listening.accept() {
            Ok(socket) if self.callers.len() < CALLERS_MAX => (socket, String::new()),
            Ok(socket) => (socket, format!("it serves {CALLERS_MAX} already")),
            Err(Errno::MFILE | Errno::NFILE) => {
                self.spare = None;
                let Ok(socket) = self.listening.accept() else { return };
                (socket, no_descriptor())
            }
            Err(_) => return,
        };
        if !greet(&socket, &refusal) || !refusal.is_empty() {
            drop(socket);
            self.spare = self.spare.take().or_else(|| self.listening.spare());
            return;
        }
        let Ok(stream) = CallerStream::new(socket) else { return };
        let number = self.listening.next();
        let token = self.listening.token(number);
        if context.watch(stream.descriptor(), token, EventFlags::IN).is_ok() {
            self.callers.insert(number, Caller { stream, waits_for_room: false, booked: None });
        }
    }

    /// Makes a caller the launcher of the job that it has booked. A caller that starts anything else is sent away.
    fn hand_over(&mut self, context: &mut Context<'_>, number: u64, request: Box<HostsRequest>) {
        let Some(caller) = self.remove(context, number) else { return };
        let HostsRequest { spec, machine } = &*request;
        let is_booked = caller.booked == Some(spec.job) && machine.is_none();
        match is_booked && spec.is_valid() && spec.has_machine() {
            true => self.events.push(CallersEvent::Starts(caller.stream, request)),
            false => self.events.extend(caller.booked.map(CallersEvent::HasGone)),
        }
    }

    fn remove(&mut self, context: &mut Context<'_>, number: u64) -> Option<Caller> {
        let caller = self.callers.remove(&number)?;
        // It was watched, so this can fail only if it is closed already.
        let _ = context.unwatch(caller.stream.descriptor());
        Some(caller)
    }

    /// Forgets a caller that has gone, and waits for room if there is none for its answers.
    fn settle(&mut self, context: &mut Context<'_>, number: u64) {
        let Some(caller) = self.callers.get_mut(&number) else { return };
        let waits = caller.stream.has_unsent();
        let room = if waits { EventFlags::OUT } else { EventFlags::empty() };
        let (descriptor, token) = (caller.stream.descriptor(), self.listening.token(number));
        let is_watched = std::mem::replace(&mut caller.waits_for_room, waits) == waits
            || context.rewatch(descriptor, token, EventFlags::IN | room).is_ok();
        if caller.stream.has_ended() || !is_watched {
            // Its socket is closed with it, which ends the watch.
            let booked = self.callers.remove(&number).and_then(|caller| caller.booked);
            self.events.extend(booked.map(CallersEvent::HasGone));
        }
    }
}

/// Greets a caller, and says why it is not served, if it is not. Returns false if it is another user's, or has gone.
pub(crate) fn greet(socket: &OwnedFd, refusal: &str) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_own = peer::credentials(socket).is_ok_and(|(user, _)| user == own);
    // The buffer of a new socket has room for it.
    is_own && send(socket, greeting(refusal).as_bytes(), SendFlags::NOSIGNAL).is_ok()
}

/// The reason why a caller is not served for which there is no descriptor.
fn no_descriptor() -> String {
    let most = getrlimit(Resource::Nofile).current;
    let most = most.map_or_else(String::new, |most| format!(" of {most}"));
    format!(
        "it has no file descriptor left{most}; start the machine with a higher limit (ulimit -n)"
    )
}
