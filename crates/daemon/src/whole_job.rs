//! The whole job on the arbiter: it connects the hosts, has all of them check and prepare their parts, starts the
//! processes, and tells the launcher what happens.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_host::guardian::OnFailure;
use landeck_host::launch::LAUNCHER_FAILED;
use landeck_host::remote::messages::{
    MachineOptions, MessageStream, PartCommand, PartEvent, PartRefusal, Report, ToArbiter,
};
use landeck_host::remote::spec::JobSpec;
use landeck_host::remote::start::{
    RemoteStart, STARTS_AT_ONCE, StartProgress, StartTool, StartWay,
};
use landeck_host::report::Failure;
use landeck_host::witness::Happened;
use landeck_machine::host_list::is_this_host;
use landeck_wire::word::WordContent;
use landeck_wire::{HostIncarnation, HostNumber};
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, poll};

use crate::bootstrap::{Announcement, Assignment};
use crate::context::Context;
use crate::job_message::JobMessage;
use crate::random;
use crate::reactor::JOB_TOKENS;

/// The token of the launcher's socket.
const LAUNCHER: u64 = JOB_TOKENS;
/// The tokens of remote shells: two for each.
const STARTS: u64 = JOB_TOKENS + 2;
/// How long a host that has introduced itself may take until its trunk is open.
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// How long other hosts have to fail as well, so that one message names them all.
const FURTHER_FAILURES: Duration = Duration::from_secs(2);

/// The whole job.
#[derive(Debug)]
pub(crate) struct WholeJob {
    launcher: MessageStream<ToArbiter, Report>,
    watched: EventFlags,
    spec: JobSpec,
    way: StartWay,
    phase: Phase,
    /// The hosts of the launcher's list, in its order.
    places: Vec<Place>,
    /// Whether the hosts of the list have been looked at.
    has_begun: bool,
    refusals: Vec<String>,
    exit_code: u8,
    /// When the launcher is told of refusals, though other hosts may still be starting.
    refuse_at: Option<Instant>,
    /// The hosts whose answer or end is awaited.
    awaited: BTreeSet<HostNumber>,
    /// Whether the job is being ended because of a failure.
    is_ending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Checking,
    Preparing,
    Running,
    /// The launcher knows that the job is impossible.
    Refused,
}

/// A host of the launcher's list.
#[derive(Debug)]
struct Place {
    name: String,
    start: Option<RemoteStart>,
    /// The addresses of its daemon, by which two names of one host are recognised.
    addresses: Vec<std::net::IpAddr>,
    state: PlaceState,
    since: Instant,
    /// Whether its remote shell's standard output is watched, and its standard error.
    watched: [bool; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceState {
    /// Its turn has not come.
    Waiting,
    /// Its daemon is being started.
    Starting,
    /// It has this number, and its trunk is awaited.
    Admitted(HostNumber),
    /// It takes part.
    Up(HostNumber),
    Failed,
}

impl WholeJob {
    /// The job that a launcher asks for; waits for its request.
    ///
    /// # Errors
    /// The kernel's error; the launcher has ended.
    pub(crate) fn asked_by(launcher: OwnedFd) -> io::Result<(Self, MachineOptions)> {
        let mut launcher = MessageStream::<ToArbiter, Report>::new(launcher)?;
        let request = loop {
            match launcher.take_next() {
                Some(ToArbiter::Start(request)) => break *request,
                Some(ToArbiter::Command { .. }) => {}
                None if launcher.has_ended() => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                None => {
                    let descriptor = launcher.descriptor();
                    // Interrupted or not, the next look tells.
                    let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None);
                    launcher.read();
                }
            }
        };
        let place = |name: &String| Place {
            name: name.clone(),
            start: None,
            addresses: Vec::new(),
            state: PlaceState::Waiting,
            since: Instant::now(),
            watched: [false; 2],
        };
        let names: Vec<String> = request.spec.hosts.iter().map(|host| host.name.clone()).collect();
        let whole = Self {
            launcher,
            watched: EventFlags::empty(),
            way: request.way,
            phase: Phase::Connecting,
            places: names.iter().map(place).collect(),
            has_begun: false,
            refusals: Vec::new(),
            exit_code: LAUNCHER_FAILED,
            refuse_at: None,
            awaited: BTreeSet::new(),
            is_ending: false,
            spec: request.spec,
        };
        Ok((whole, request.options))
    }

    /// Whether the launcher has ended.
    pub(crate) fn has_launcher_gone(&self) -> bool {
        self.launcher.has_ended()
    }

    /// Handles a descriptor that is ready.
    pub(crate) fn ready(&mut self, context: &mut Context<'_>, token: u64) {
        match token {
            LAUNCHER => self.hear_launcher(context),
            _ => {
                let number = (token - STARTS) as usize;
                self.read_start(context, number / 2, number % 2 == 1);
            }
        }
    }

    /// Goes on with what is due, and watches what is waited for.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.find_own_host(context);
        }
        if self.phase == Phase::Connecting {
            self.begin_starts(context);
            self.look_at_clock(context);
            self.go_on_if_connected(context);
        }
        self.watch_launcher(context);
    }

    /// A host is connected.
    pub(crate) fn host_up(&mut self, context: &mut Context<'_>, host: HostNumber) {
        let joined = context.host(host).map(|entry| entry.name.clone()).unwrap_or_default();
        for place in &mut self.places {
            let is_by_hand = place.state == PlaceState::Starting
                && place.start.is_none()
                && place.name == joined;
            if place.state == PlaceState::Admitted(host) || is_by_hand {
                place.state = PlaceState::Up(host);
            }
        }
    }

    /// A host takes no part any more.
    pub(crate) fn lose(&mut self, context: &mut Context<'_>, host: HostNumber, why: String) {
        match self.phase {
            Phase::Connecting => {
                let is_it = |place: &&mut Place| matches!(place.state, PlaceState::Admitted(own) | PlaceState::Up(own) if own == host);
                for place in self.places.iter_mut().filter(is_it) {
                    place.state = PlaceState::Failed;
                    self.refusals.push(format!("host {}: {why}", place.name));
                }
            }
            Phase::Checking | Phase::Preparing => {
                if self.awaited.remove(&host) || self.spec.place_of(host).is_some() {
                    self.refusals.push(format!("host {}: {why}", self.name_of(host)));
                }
                self.go_on_if_answered(context);
            }
            Phase::Running => {
                if self.awaited.remove(&host) {
                    let cause = format!("host {} is lost: {why}", self.name_of(host));
                    self.launcher.send(&Report::HostLost { host, why });
                    self.end(context, 128 + 9, cause);
                }
            }
            Phase::Refused => {}
        }
    }

    /// Takes a message of a part.
    pub(crate) fn take(
        &mut self,
        context: &mut Context<'_>,
        from: HostNumber,
        message: JobMessage,
    ) {
        match message {
            JobMessage::Checked(answer) if self.phase == Phase::Checking => {
                self.take_answer(context, from, answer);
            }
            JobMessage::Prepared(answer) if self.phase == Phase::Preparing => {
                self.take_answer(context, from, answer);
            }
            JobMessage::NotStarted(refusal) => {
                let cause = format!("host {}: {}", self.name_of(from), refusal.text);
                self.lose(context, from, refusal.text);
                self.end(context, refusal.exit_code, cause);
            }
            JobMessage::Event(event) if self.phase == Phase::Running => {
                self.take_event(context, from, event);
            }
            _ => {}
        }
    }

    fn take_event(&mut self, context: &mut Context<'_>, host: HostNumber, event: PartEvent) {
        match &event {
            PartEvent::Gone { process, end } => {
                let (job, process, end) = (self.spec.job, *process, *end);
                return context.tell_for(host, WordContent::ProcessEnded { job, process, end });
            }
            PartEvent::Happened(happened) => {
                if let Some((code, cause)) = self.cause_of_end(host, happened) {
                    self.end(context, code, cause);
                }
            }
            PartEvent::Over => drop(self.awaited.remove(&host)),
            _ => {}
        }
        self.launcher.send(&Report::Event { host, event });
    }

    /// The exit code and the reason, if an event ends the whole job.
    fn cause_of_end(&self, host: HostNumber, happened: &Happened) -> Option<(u8, String)> {
        let ends = match self.spec.on_failure {
            OnFailure::Abort => true,
            OnFailure::Notify => false,
            OnFailure::Restart { then_abort, .. } => then_abort,
        };
        let name = self.name_of(host);
        match happened {
            Happened::Ended { rank, failure: Some(failure), again: None, .. } => {
                let is_abort = matches!(failure, Failure::Aborted(_));
                let cause = format!("rank {rank} on host {name} has failed");
                (ends || is_abort).then(|| (failure.exit_code(), cause))
            }
            Happened::NotStarted { rank, again: None, .. } if ends => {
                Some((LAUNCHER_FAILED, format!("rank {rank} was not started on host {name}")))
            }
            Happened::GuestAborted { code, .. } => {
                Some((*code, format!("a guest on host {name} has ended the job")))
            }
            Happened::GuardianGone => {
                Some((128 + 9, format!("the guardian of the job on host {name} was killed")))
            }
            _ => None,
        }
    }

    /// Ends the job on all hosts; only the first cause counts.
    fn end(&mut self, context: &mut Context<'_>, code: u8, cause: String) {
        if std::mem::replace(&mut self.is_ending, true) {
            return;
        }
        context.tell(WordContent::JobEnds { job: self.spec.job, code, cause });
        let grace = self.spec.grace;
        self.command_all(context, &PartCommand::End { grace });
    }

    fn command_all(&self, context: &mut Context<'_>, command: &PartCommand) {
        for &host in &self.awaited {
            context.send(host, &JobMessage::Command(command.clone()));
        }
    }

    fn hear_launcher(&mut self, context: &mut Context<'_>) {
        self.launcher.flush();
        self.launcher.read();
        while let Some(message) = self.launcher.take_next() {
            let ToArbiter::Command { host, command } = message else { continue };
            match host {
                _ if self.phase != Phase::Running => {}
                Some(host) => context.send(host, &JobMessage::Command(command)),
                None => self.command_all(context, &command),
            }
        }
    }

    fn watch_launcher(&mut self, context: &mut Context<'_>) {
        let room = match self.launcher.has_unsent() {
            true => EventFlags::OUT,
            false => EventFlags::empty(),
        };
        let wanted = EventFlags::IN | room;
        if wanted == self.watched {
            return;
        }
        let descriptor = self.launcher.descriptor();
        let watched = match self.watched.is_empty() {
            true => context.watch(descriptor, LAUNCHER, wanted),
            false => context.rewatch(descriptor, LAUNCHER, wanted),
        };
        if watched.is_ok() {
            self.watched = wanted;
        }
    }

    /// Recognises the names of this host, which needs no remote shell.
    fn find_own_host(&mut self, context: &Context<'_>) {
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let addresses: Vec<_> = context.own_entry().addresses.iter().map(|at| at.ip()).collect();
        for place in &mut self.places {
            let is_address = || place.name.parse().is_ok_and(|at| addresses.contains(&at));
            if is_this_host(&place.name, &own) || is_address() {
                place.state = PlaceState::Up(HostNumber::ARBITER);
            }
        }
    }

    /// Begins to start daemons, as many at a time as is good for this host.
    fn begin_starts(&mut self, context: &mut Context<'_>) {
        let starting = |place: &Place| place.state == PlaceState::Starting;
        let mut running = self.places.iter().filter(|place| starting(place)).count();
        for number in 0..self.places.len() {
            if running == STARTS_AT_ONCE || !self.refusals.is_empty() {
                return;
            }
            if self.places[number].state != PlaceState::Waiting {
                continue;
            }
            running += 1;
            self.places[number].state = PlaceState::Starting;
            self.places[number].since = Instant::now();
            if self.way.tool == StartTool::ByHand {
                self.ask_user(context, number);
                continue;
            }
            match RemoteStart::begin(&self.way, &self.places[number].name) {
                Ok(start) => {
                    self.places[number].start = Some(start);
                    self.watch_start(context, number);
                }
                Err(why) => self.refuse(number, why),
            }
        }
    }

    /// Tells the user what to type on a host.
    fn ask_user(&mut self, context: &mut Context<'_>, number: usize) {
        let name = self.places[number].name.clone();
        match context.issue_token() {
            Ok(token) => self.launcher.send(&Report::Said(format!(
                "On host {name}, type within 15 minutes:\n  echo '{}' | landeckd join --name '{name}' --token-file -",
                token.text()
            ))),
            Err(error) => self.refuse(number, format!("host {name}: {error}")),
        }
    }

    fn watch_start(&mut self, context: &mut Context<'_>, number: usize) {
        let place = &mut self.places[number];
        let Some(start) = &place.start else { return };
        let token = STARTS + 2 * number as u64;
        for (at, stream) in [start.output(), start.errors()].into_iter().enumerate() {
            if let Some(stream) = stream.filter(|_| !place.watched[at]) {
                place.watched[at] =
                    context.watch(stream, token + at as u64, EventFlags::IN).is_ok();
            }
        }
    }

    fn read_start(&mut self, context: &mut Context<'_>, number: usize, is_errors: bool) {
        let Some(place) = self.places.get_mut(number) else { return };
        let Some(start) = &mut place.start else { return };
        let ended = if is_errors { start.read_errors() } else { start.read_output() };
        if let Some(ended) = ended {
            place.watched[usize::from(is_errors)] = false;
            unwatch(context, ended.as_fd());
        }
        if start.deadline().is_none()
            && let Some(lines) = start.take_complaints()
        {
            for line in lines.lines() {
                self.launcher.send(&Report::Said(format!("host {}: {line}", place.name)));
            }
        }
        self.take_progress(context, number);
    }

    fn take_progress(&mut self, context: &mut Context<'_>, number: usize) {
        let next = self.places[number].start.as_mut().and_then(RemoteStart::take_progress);
        match next {
            None => {}
            Some(StartProgress::Failed(why)) => self.refuse(number, why),
            Some(StartProgress::Introduced(line)) => match self.admit(context, number, &line) {
                Ok(()) => {}
                Err(why) => self.refuse(number, why),
            },
        }
    }

    /// Admits the daemon that has introduced itself on a host.
    fn admit(
        &mut self,
        context: &mut Context<'_>,
        number: usize,
        line: &str,
    ) -> Result<(), String> {
        let name = self.places[number].name.clone();
        let told = |why: &dyn std::fmt::Display| format!("host {name}: {why}");
        let announcement: Announcement = line.parse().map_err(|error| told(&error))?;
        context.facts().admits(&name, &announcement.facts).map_err(|error| error.to_string())?;
        if let Some(host) = self.known_host(context, &announcement) {
            // Two names of one host: the daemon that was started first serves both.
            self.stop_start(context, number);
            self.places[number].state = host;
            return Ok(());
        }
        let incarnation = HostIncarnation(random::number().map_err(|error| told(&error))?);
        let addresses = announcement.socket_addresses();
        let host = context.admit(name.clone(), announcement.key, incarnation, addresses);
        let arbiter = context.own_entry().clone();
        let assignment = Assignment {
            machine: context.machine(),
            host,
            incarnation,
            arbiter: arbiter.incarnation,
            arbiter_key: landeck_trust::KeyHash(arbiter.key),
            arbiter_addresses: arbiter.addresses,
            name: name.clone(),
            options: context.options(),
        };
        let place = &mut self.places[number];
        place.addresses = announcement.addresses;
        place.state = PlaceState::Admitted(host);
        place.since = Instant::now();
        let Some(start) = &mut place.start else { return Ok(()) };
        start.answer(&format!("{assignment}\n")).map_err(|error| told(&error))?;
        if let Some(output) = start.output().filter(|_| place.watched[0]) {
            unwatch(context, output);
            place.watched[0] = false;
        }
        if let Some((output, input)) = start.take_streams() {
            context.add_stdio_trunk(host, output, input);
        }
        Ok(())
    }

    /// The state of a host that is known under another name: its daemon has all of these addresses.
    fn known_host(&self, context: &Context<'_>, announcement: &Announcement) -> Option<PlaceState> {
        let addresses = &announcement.addresses;
        if addresses.is_empty() || addresses.iter().all(|address| address.is_loopback()) {
            return None;
        }
        let own: Vec<_> = context.own_entry().addresses.iter().map(|at| at.ip()).collect();
        if own == *addresses {
            return Some(PlaceState::Up(HostNumber::ARBITER));
        }
        let same = |place: &&Place| place.addresses == *addresses;
        self.places.iter().find(same).map(|place| place.state)
    }

    fn refuse(&mut self, number: usize, why: String) {
        self.places[number].state = PlaceState::Failed;
        self.refusals.push(why);
        self.refuse_at.get_or_insert(Instant::now() + FURTHER_FAILURES);
    }

    fn stop_start(&mut self, context: &mut Context<'_>, number: usize) {
        let place = &mut self.places[number];
        let Some(start) = place.start.take() else { return };
        for (at, stream) in [start.output(), start.errors()].into_iter().enumerate() {
            if let Some(stream) = stream.filter(|_| place.watched[at]) {
                unwatch(context, stream);
            }
        }
        place.watched = [false; 2];
    }

    fn look_at_clock(&mut self, context: &mut Context<'_>) {
        let now = Instant::now();
        for number in 0..self.places.len() {
            if let Some(start) = &mut self.places[number].start {
                start.look_at_clock(now);
                self.take_progress(context, number);
            }
            let place = &self.places[number];
            if matches!(place.state, PlaceState::Admitted(_)) && now > place.since + CONNECT_TIME {
                let why = format!(
                    "host {}: its daemon has started, and no connection to it was made within {} s. May firewalls \
                     let its port through? --port-range names ports",
                    place.name,
                    CONNECT_TIME.as_secs()
                );
                self.refuse(number, why);
            }
        }
        context.wake_at(context.now() + Duration::from_millis(500));
    }

    /// Goes on when all hosts are connected, or refuses the job when some are not.
    fn go_on_if_connected(&mut self, context: &mut Context<'_>) {
        let is_settled =
            |place: &Place| matches!(place.state, PlaceState::Up(_) | PlaceState::Failed);
        if !self.refusals.is_empty() {
            let is_waiting = |place: &Place| place.state == PlaceState::Waiting;
            let all = self.places.iter().all(|place| is_settled(place) || is_waiting(place));
            if all || self.refuse_at.is_none_or(|at| Instant::now() >= at) {
                self.refuse_job();
            }
            return;
        }
        let up = self.places.iter().map(|place| match place.state {
            PlaceState::Up(host) => Some(host),
            _ => None,
        });
        let Some(numbers) = up.collect::<Option<Vec<HostNumber>>>() else { return };
        self.spec.settle(&numbers);
        self.phase = Phase::Checking;
        let check = JobMessage::Check(Box::new(self.spec.clone()));
        self.ask_all(context, &check);
    }

    /// Sends a question to every host of the job, and awaits the answers.
    fn ask_all(&mut self, context: &mut Context<'_>, question: &JobMessage) {
        self.awaited = self.spec.hosts.iter().map(|host| host.number).collect();
        for host in &self.spec.hosts {
            context.send(host.number, question);
        }
    }

    fn take_answer(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        answer: Result<(), PartRefusal>,
    ) {
        self.awaited.remove(&host);
        if let Err(refusal) = answer {
            self.exit_code = refusal.exit_code;
            self.refusals.push(format!("host {}: {}", self.name_of(host), refusal.text));
        }
        self.go_on_if_answered(context);
    }

    fn go_on_if_answered(&mut self, context: &mut Context<'_>) {
        if !self.awaited.is_empty() {
            return;
        }
        if !self.refusals.is_empty() {
            return self.refuse_job();
        }
        match self.phase {
            Phase::Checking => {
                self.phase = Phase::Preparing;
                self.ask_all(context, &JobMessage::Prepare);
            }
            Phase::Preparing => {
                self.phase = Phase::Running;
                self.launcher.send(&Report::Settled(Box::new(self.spec.clone())));
                self.ask_all(context, &JobMessage::Start);
            }
            Phase::Connecting | Phase::Running | Phase::Refused => {}
        }
    }

    fn refuse_job(&mut self) {
        self.phase = Phase::Refused;
        let texts = std::mem::take(&mut self.refusals);
        self.launcher.send(&Report::Refused { exit_code: self.exit_code, texts });
    }

    fn name_of(&self, host: HostNumber) -> &str {
        let place = self.spec.place_of(host);
        place.map_or("", |place| self.spec.hosts[place].name.as_str())
    }
}

fn unwatch(context: &mut Context<'_>, descriptor: BorrowedFd<'_>) {
    // It was watched, so this can fail only if it is closed already.
    let _ = context.unwatch(descriptor);
}
