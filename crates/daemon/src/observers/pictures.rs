//! Pictures of a job's hosts for observers (`landeck why`): this daemon asks the others, and answers for its own host.
//!
//! An observer connects at a socket of its own for each part of a job. A host that does not answer within a second counts
//! as silent, and the observer learns since when. That ends nothing: a debugger may have stopped its daemon.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use landeck_diagnosis::HostPicture;
use landeck_diagnosis::far::{
    LogLine, LookAnswer, LookRequest, LookWish, PICTURE_TIME, STACKS_TIME, look_socket_name,
};
use landeck_diagnosis::picture::{MissingHost, MissingPicture};
use landeck_host::message_stream::MessageStream;
use landeck_joining::address::Address;
use landeck_joining::peer;
use landeck_memory::Observed;
use landeck_protocols::hosts::numbers_before;
use landeck_wire::{ControlMessage, HostNumber, JobId, ProcessId, SegmentId};
use rustix::event::epoll::EventFlags;
use rustix::net::{SocketFlags, accept_with};

use crate::daemon_message::DaemonMessage;
use crate::observers::log;
use crate::observers::stack_searches::StackSearches;
use crate::parts::{PartOfHost, Parts};
use crate::reactor::Reactor;
use crate::trunks::envelope::CONTENT_BYTES_MAX;

/// The observers of this host's parts that are served at the same time.
const OBSERVERS_MAX: usize = 64;

/// The parts of the daemon that pictures need.
pub(crate) struct PictureTools<'a> {
    /// The descriptors.
    pub(crate) reactor: &'a mut Reactor,
    /// The parts of jobs.
    pub(crate) parts: &'a Parts,
    /// When each host was last heard, if it sends heartbeats to this one.
    pub(crate) heard: &'a BTreeMap<HostNumber, Duration>,
    /// The time.
    pub(crate) now: Duration,
}

/// A message for another daemon.
type Outgoing = (HostNumber, DaemonMessage);

/// An observer's connection.
#[derive(Debug)]
struct Observer {
    /// The job of the part at whose socket it has come; `None` at that of the machine, where requests name their jobs.
    job: Option<JobId>,
    stream: MessageStream<LookRequest, LookAnswer>,
    waits_for_room: bool,
    question: Option<Question>,
}

/// An observer's question, while hosts have still to answer.
#[derive(Debug)]
struct Question {
    /// The observer's number of it.
    number: u32,
    /// This daemon's number of it.
    request: u64,
    asked: Duration,
    /// How long hosts have to answer.
    time: Duration,
    waiting: BTreeSet<HostNumber>,
    /// The job, and the names of its hosts if it has no part here.
    job: Option<JobId>,
    names: BTreeMap<HostNumber, String>,
}

/// The observers of this host's parts, and what they have asked.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    listeners: HashMap<u64, (Option<JobId>, OwnedFd)>,
    observers: HashMap<u64, Observer>,
    last_request: u64,
    /// The hosts that did not answer, and when they were first asked.
    silent: BTreeMap<HostNumber, Duration>,
    /// The stacks that other hosts have asked for.
    pub(crate) searches: StackSearches,
}

impl Pictures {
    /// Those of this run of a daemon, which answers to the run before are not taken for answers to.
    pub(crate) fn of_run(run: u32) -> Self {
        Self { last_request: numbers_before(run), ..Self::default() }
    }

    /// Serves observers of a part.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn add_part(
        &mut self,
        reactor: &mut Reactor,
        job: JobId,
        segment: SegmentId,
    ) -> io::Result<()> {
        self.listen(reactor, &Address::Abstract(look_socket_name(segment)), Some(job))
    }

    /// Serves observers of jobs that have no part here; for a machine that stays.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn add_machine(
        &mut self,
        reactor: &mut Reactor,
        address: &Address,
    ) -> io::Result<()> {
        self.listen(reactor, address, None)
    }

    fn listen(
        &mut self,
        reactor: &mut Reactor,
        address: &Address,
        job: Option<JobId>,
    ) -> io::Result<()> {
        let socket = address.listen_for_streams()?;
        let token = reactor.token();
        reactor.watch(&socket, token, EventFlags::IN)?;
        self.listeners.insert(token, (job, socket));
        Ok(())
    }

    /// Forgets a part and its observers.
    pub(crate) fn remove_part(&mut self, job: JobId) {
        self.listeners.retain(|_, (of, _)| *of != Some(job));
        self.observers.retain(|_, observer| observer.job != Some(job));
    }

    /// Whether a token belongs to an observer or to a socket for them.
    pub(crate) fn has(&self, token: u64) -> bool {
        let is_observer =
            self.listeners.contains_key(&token) || self.observers.contains_key(&token);
        is_observer || self.searches.has(token)
    }

    /// Goes on with a descriptor that is ready. Returns the messages for other daemons.
    pub(crate) fn ready(&mut self, tools: &mut PictureTools<'_>, token: u64) -> Vec<Outgoing> {
        if let Some((job, listener)) = self.listeners.get(&token) {
            let observer = accept(listener, *job);
            let has_room = self.observers.len() < OBSERVERS_MAX;
            if let Some(observer) = observer.filter(|_| has_room) {
                let token = tools.reactor.token();
                let descriptor = observer.stream.descriptor();
                if tools.reactor.watch(descriptor, token, EventFlags::IN).is_ok() {
                    self.observers.insert(token, observer);
                }
            }
            return Vec::new();
        }
        if self.searches.has(token) {
            return self.searches.ready(token).into_iter().collect();
        }
        let Some(observer) = self.observers.get_mut(&token) else { return Vec::new() };
        observer.stream.flush();
        observer.stream.read();
        let mut outgoing = Vec::new();
        while let Some(request) = observer.stream.take_next() {
            self.last_request += 1;
            outgoing.extend(observer.begin(tools, &request, self.last_request));
        }
        self.settle(tools, token);
        outgoing
    }

    /// Takes another host's answer.
    pub(crate) fn answered(
        &mut self,
        tools: &mut PictureTools<'_>,
        from: HostNumber,
        request: u64,
        picture: Option<HostPicture>,
    ) {
        self.silent.remove(&from);
        let Some((token, observer)) = self.asker(from, request) else { return };
        let outcome = match picture {
            Some(picture) => Ok(picture),
            None => Err(observer.missing(tools.parts, from, MissingPicture::Over)),
        };
        observer.answer(from, outcome);
        self.settle(tools, token);
    }

    /// Takes the stacks that another host has found.
    pub(crate) fn stacks_came(
        &mut self,
        tools: &mut PictureTools<'_>,
        from: HostNumber,
        request: u64,
        texts: Vec<(ProcessId, String)>,
    ) {
        let Some((token, observer)) = self.asker(from, request) else { return };
        observer.pass_on(from, |request| LookAnswer::Stacks { request, texts });
        self.settle(tools, token);
    }

    /// Takes the log of another host's daemon.
    pub(crate) fn log_came(
        &mut self,
        tools: &mut PictureTools<'_>,
        from: HostNumber,
        request: u64,
        lines: Vec<LogLine>,
    ) {
        let Some((token, observer)) = self.asker(from, request) else { return };
        let host = observer.name_of(tools.parts, from);
        observer.pass_on(from, |request| LookAnswer::Log { request, host, lines });
        self.settle(tools, token);
    }

    /// The observer whose question a host answers.
    fn asker(&mut self, from: HostNumber, request: u64) -> Option<(u64, &mut Observer)> {
        let is_asker = |observer: &Observer| {
            observer.question.as_ref().is_some_and(|question| {
                question.request == request && question.waiting.contains(&from)
            })
        };
        let asker = self.observers.iter_mut().find(|(_, observer)| is_asker(observer));
        asker.map(|(&token, observer)| (token, observer))
    }

    /// Answers for the hosts that have not answered in time.
    pub(crate) fn tick(&mut self, tools: &mut PictureTools<'_>) {
        let is_due = |question: &Question| question.due() <= tools.now;
        let late =
            self.observers.iter().filter(|(_, one)| one.question.as_ref().is_some_and(is_due));
        for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
            let Some(observer) = self.observers.get_mut(&token) else { continue };
            let Some(Question { asked, waiting, .. }) = &observer.question else { continue };
            let asked = *asked;
            for host in waiting.clone() {
                let first_asked = *self.silent.entry(host).or_insert(asked);
                let since = tools.heard.get(&host).map_or(first_asked, |heard| *heard);
                let silent = tools.now.saturating_sub(since);
                let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
                let why = MissingPicture::Silent { silent_ms };
                let missing = observer.missing(tools.parts, host, why);
                observer.answer(host, Err(missing));
            }
            self.settle(tools, token);
        }
    }

    /// When [`Pictures::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let questions = self.observers.values().filter_map(|one| one.question.as_ref());
        questions.map(Question::due).min()
    }

    /// Forgets an observer that has gone, and waits for room if there is none for its answers.
    fn settle(&mut self, tools: &mut PictureTools<'_>, token: u64) {
        let Some(observer) = self.observers.get_mut(&token) else { return };
        let waits = observer.stream.has_unsent();
        let room = if waits { EventFlags::OUT } else { EventFlags::empty() };
        let is_watched = std::mem::replace(&mut observer.waits_for_room, waits) == waits
            || tools
                .reactor
                .rewatch(observer.stream.descriptor(), token, EventFlags::IN | room)
                .is_ok();
        if observer.stream.has_ended() || !is_watched {
            // Its socket is closed with it, which ends the watch.
            self.observers.remove(&token);
        }
    }
}

/// Accepts the next observer, if it is one of the same user.
fn accept(listener: &OwnedFd, job: Option<JobId>) -> Option<Observer> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = accept_with(listener, flags).ok()?;
    let (user, _) = peer::credentials(&socket).ok()?;
    let is_own = user == rustix::process::geteuid().as_raw();
    let stream = MessageStream::new(is_own.then_some(socket)?).ok()?;
    Some(Observer { job, stream, waits_for_room: false, question: None })
}

impl Question {
    fn due(&self) -> Duration {
        self.asked + self.time
    }
}

impl Observer {
    /// Begins to answer a question. A question before it is forgotten: its time was over.
    fn begin(
        &mut self,
        tools: &PictureTools<'_>,
        request: &LookRequest,
        own_request: u64,
    ) -> Vec<Outgoing> {
        let (number, asked) = (request.number, tools.now);
        let looked_at = request.job.as_ref().filter(|_| self.job.is_none());
        let job = self.job.or_else(|| looked_at.map(|it| it.job));
        let part = job.and_then(|job| tools.parts.get(job));
        let names: BTreeMap<HostNumber, String> =
            looked_at.map_or_else(BTreeMap::new, |it| it.hosts.iter().cloned().collect());
        let hosts = match (&request.wish, part) {
            (_, None) => names.keys().copied().collect(),
            (LookWish::Stacks(all), Some(part)) => part.hosts_of(all),
            (LookWish::Glance | LookWish::Pictures | LookWish::Logs, Some(part)) => {
                // The observer sees the part on this host by itself, unless its processes have ended.
                let own = part.segment.own_host_number().filter(|_| looked_at.is_some());
                part.far_hosts().into_iter().chain(own.map(HostNumber)).collect()
            }
        };
        let time = match &request.wish {
            LookWish::Stacks(_) => STACKS_TIME,
            LookWish::Glance | LookWish::Pictures | LookWish::Logs => PICTURE_TIME,
        };
        let own = part.and_then(|part| part.segment.own_host_number());
        if let (LookWish::Logs, Some(own)) = (&request.wish, own) {
            let (host, lines) = (self.name_of(tools.parts, HostNumber(own)), log::lines());
            self.stream.send(&LookAnswer::Log { request: number, host, lines });
        }
        let waiting = hosts.clone();
        let question = Question { number, request: own_request, asked, time, waiting, job, names };
        self.question = Some(question);
        if hosts.is_empty() {
            self.question = None;
            self.stream.send(&LookAnswer::Complete { request: number });
        }
        let mut outgoing = Vec::new();
        for host in hosts {
            let why = match part {
                _ if request.is_of_other_release() => Some(MissingPicture::OtherRelease),
                Some(part) if part.has_lost(host) => Some(MissingPicture::Lost),
                _ => None,
            };
            if let Some(why) = why {
                self.answer(host, Err(self.missing(tools.parts, host, why)));
                continue;
            }
            if let Some(part) = part.filter(|_| own == Some(host.0)) {
                let picture = picture_of(part, host, request.wish == LookWish::Glance);
                let missing = || self.missing(tools.parts, host, MissingPicture::Over);
                self.answer(host, picture.ok_or_else(missing));
                continue;
            }
            let (Some(job), own) = (job, own_request) else { continue };
            let picture = |is_glance| DaemonMessage::PictureWanted { job, request: own, is_glance };
            let wanted = match &request.wish {
                LookWish::Glance => picture(true),
                LookWish::Pictures => picture(false),
                LookWish::Stacks(processes) => {
                    let processes = processes.clone();
                    DaemonMessage::StacksWanted { job, request: own, processes }
                }
                LookWish::Logs => DaemonMessage::LogWanted { request: own },
            };
            outgoing.push((host, wanted));
        }
        outgoing
    }

    fn missing(&self, parts: &Parts, host: HostNumber, why: MissingPicture) -> MissingHost {
        MissingHost { number: host.0, name: self.name_of(parts, host), why }
    }

    /// The name of a host of the job that is asked for.
    fn name_of(&self, parts: &Parts, host: HostNumber) -> String {
        let asked = self.question.as_ref();
        let part = asked.and_then(|asked| asked.job).or(self.job).and_then(|job| parts.get(job));
        let told = asked.and_then(|asked| asked.names.get(&host).cloned());
        let known = part.map(|part| part.segment.host_name(host.0).to_string());
        let named = told.or(known).filter(|name| !name.is_empty());
        named.unwrap_or_else(|| format!("host {}", host.0))
    }

    /// Passes on what is known of a host. The last answer completes the question.
    fn answer(&mut self, host: HostNumber, outcome: Result<HostPicture, MissingHost>) {
        let outcome = Box::new(outcome);
        self.pass_on(host, |request| LookAnswer::Host { request, outcome });
    }

    fn pass_on(&mut self, host: HostNumber, answer: impl FnOnce(u32) -> LookAnswer) {
        let Some(question) = &mut self.question else { return };
        let request = question.number;
        question.waiting.remove(&host);
        let is_complete = question.waiting.is_empty();
        self.stream.send(&answer(request));
        if is_complete {
            self.question = None;
            self.stream.send(&LookAnswer::Complete { request });
        }
    }
}

/// The message with the picture of a part on this host, for another daemon.
pub(crate) fn picture_message(
    part: Option<&PartOfHost>,
    own: HostNumber,
    ways: Vec<(u16, Vec<String>)>,
    (request, is_glance): (u64, bool),
) -> DaemonMessage {
    let picture = part.and_then(|part| picture_of(part, own, is_glance));
    let picture = picture.map(|picture| HostPicture { ways, ..picture });
    let message = DaemonMessage::Picture { request, picture: Box::new(picture) };
    match message.encode().len() < CONTENT_BYTES_MAX / 2 {
        true => message,
        // A hundred thousand processes on one host: a trunk must not break for their sake.
        false => DaemonMessage::Picture { request, picture: Box::new(None) },
    }
}

fn picture_of(part: &PartOfHost, own: HostNumber, is_glance: bool) -> Option<HostPicture> {
    let file = part.segment.descriptor()?.as_fd().try_clone_to_owned().ok()?;
    let segment = Observed::open(file).ok()?;
    let picture = match is_glance {
        true => HostPicture::glance(&segment),
        false => HostPicture::take(&segment, true),
    };
    let name = part.segment.host_name(own.0).to_string();
    let name = if name.is_empty() { picture.name.clone() } else { name };
    Some(HostPicture { number: own.0, name, ..picture })
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::plan::JobName;
    use landeck_memory::{FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState};
    use landeck_protocols::hosts::{Snapshot, WordFollower};
    use landeck_testing::Watchdog;
    use landeck_wire::{Incarnation, Slot};

    const JOB: JobId = JobId(7);

    /// A part with a process here, and one on each of two other hosts.
    fn part(number: u64) -> (Parts, SegmentId) {
        let host = SegmentId(u64::from(std::process::id()) << 32 | number);
        let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(host.0, 1) };
        let segment = Segment::create(&SegmentPlan { ranks: 3, far: 2, hosts: 3, ..plan }).unwrap();
        let mut far = Vec::new();
        for place in 0..2 {
            let process = FarProcess { host: 50 + u64::from(place), slot: 0, incarnation: 1 };
            let host_number = place as u16 + 1;
            let state = SlotState::Alive;
            let record = FarRecord { process, host_number, state, ..FarRecord::default() };
            segment.set_far_record(place, record);
            segment.set_host_name(host_number, JobName::new(&format!("n{}", host_number + 1)));
            far.push(ProcessId {
                segment: SegmentId(process.host),
                slot: Slot(0),
                incarnation: Incarnation(1),
            });
        }
        let mut parts = Parts::default();
        parts.add(JOB, segment, far, &WordFollower::new(Snapshot::default()));
        (parts, host)
    }

    struct Bench {
        reactor: Reactor,
        parts: Parts,
        pictures: Pictures,
        heard: BTreeMap<HostNumber, Duration>,
        stream: MessageStream<LookAnswer, LookRequest>,
    }

    impl Bench {
        fn new(number: u64) -> Self {
            let (parts, host) = part(number);
            let (mut reactor, mut pictures) = (Reactor::new().unwrap(), Pictures::default());
            pictures.add_part(&mut reactor, JOB, host).unwrap();
            let address = Address::Abstract(look_socket_name(host));
            let stream = MessageStream::new(address.connect_stream().unwrap()).unwrap();
            Self { reactor, parts, pictures, heard: BTreeMap::new(), stream }
        }

        fn at<T>(
            &mut self,
            now_s: u64,
            call: impl FnOnce(&mut Pictures, &mut PictureTools<'_>) -> T,
        ) -> T {
            let Self { reactor, parts, pictures, heard, .. } = self;
            let now = Duration::from_secs(now_s);
            call(pictures, &mut PictureTools { reactor, parts, heard, now })
        }

        /// Asks, and lets the daemon read the question.
        fn ask(&mut self, now_s: u64, number: u32) -> Vec<Outgoing> {
            self.ask_for(now_s, number, LookWish::Glance)
        }

        fn ask_for(&mut self, now_s: u64, number: u32, wish: LookWish) -> Vec<Outgoing> {
            let release = env!("CARGO_PKG_VERSION").to_owned();
            self.stream.send(&LookRequest { release, number, job: None, wish });
            let mut outgoing = Vec::new();
            for _ in 0..2 {
                let mut ready = Vec::new();
                self.reactor.wait(Some(Duration::from_millis(100)), &mut ready).unwrap();
                for (token, _) in ready {
                    outgoing.extend(self.at(now_s, |pictures, tools| pictures.ready(tools, token)));
                }
            }
            outgoing
        }

        fn answers(&mut self) -> Vec<LookAnswer> {
            self.stream.read();
            std::iter::from_fn(|| self.stream.take_next()).collect()
        }
    }

    fn silence(answer: &LookAnswer) -> Option<(u16, u64)> {
        let LookAnswer::Host { outcome, .. } = answer else { return None };
        let missing = outcome.as_ref().as_ref().err()?;
        let MissingPicture::Silent { silent_ms } = missing.why else { return None };
        Some((missing.number, silent_ms))
    }

    #[test]
    fn every_host_is_answered_for_once() {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let mut bench = Bench::new(1);
        let outgoing = bench.ask(10, 5);
        let wanted = DaemonMessage::PictureWanted { job: JOB, request: 1, is_glance: true };
        let asked = [1, 2].map(|host| (HostNumber(host), wanted.clone()));
        assert_eq!(outgoing, asked);
        let part = bench.parts.get(JOB);
        let DaemonMessage::Picture { picture, .. } =
            picture_message(part, HostNumber(1), Vec::new(), (1, true))
        else {
            panic!("no picture")
        };
        let picture = picture.unwrap();
        assert_eq!((picture.name.as_str(), picture.far.len()), ("n2", 2));
        for request in [9, 1, 1] {
            let picture = Some(picture.clone());
            bench.at(10, |all, tools| all.answered(tools, HostNumber(1), request, picture));
        }
        assert!(matches!(bench.answers()[..], [LookAnswer::Host { request: 5, .. }]));
        bench.at(10, |all, tools| all.answered(tools, HostNumber(2), 1, None));
        let answers = bench.answers();
        let [LookAnswer::Host { outcome, .. }, LookAnswer::Complete { request: 5 }] = &answers[..]
        else {
            panic!("{answers:?}")
        };
        let missing = outcome.as_ref().as_ref().unwrap_err();
        assert_eq!((missing.name.as_str(), &missing.why), ("n3", &MissingPicture::Over));
        assert_eq!(bench.pictures.deadline(), None);
    }

    #[test]
    fn a_silent_host_is_named_with_its_silence() {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let mut bench = Bench::new(2);
        bench.heard.insert(HostNumber(2), Duration::from_secs(4));
        bench.ask(10, 1);
        assert_eq!(bench.pictures.deadline(), Some(Duration::from_secs(11)));
        bench.at(10, Pictures::tick);
        assert_eq!(bench.answers(), []);
        bench.at(11, Pictures::tick);
        let silent: Vec<_> = bench.answers().iter().filter_map(silence).collect();
        assert_eq!(silent, [(1, 1_000), (2, 7_000)]);
        bench.ask(20, 2);
        bench.at(22, Pictures::tick);
        let silent: Vec<_> = bench.answers().iter().filter_map(silence).collect();
        assert_eq!(silent, [(1, 12_000), (2, 18_000)], "since the first question");
    }

    #[test]
    fn a_lost_host_is_not_asked() {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let mut bench = Bench::new(3);
        let segment = bench.parts.get(JOB).unwrap().segment.clone();
        let record = segment.far_record(0);
        segment.set_host_state(record.host_number, 1, true);
        let outgoing = bench.ask(10, 1);
        assert_eq!(outgoing.len(), 1);
        let answers = bench.answers();
        let [LookAnswer::Host { outcome, .. }] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(outcome.as_ref().as_ref().unwrap_err().why, MissingPicture::Lost);
    }

    #[test]
    fn the_hosts_of_these_processes_are_asked_for_stacks() {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let mut bench = Bench::new(4);
        let far = bench.parts.get(JOB).unwrap().far.clone();
        let outgoing = bench.ask_for(10, 5, LookWish::Stacks(vec![far[1]]));
        let wanted = DaemonMessage::StacksWanted { job: JOB, request: 1, processes: vec![far[1]] };
        assert_eq!(outgoing, [(HostNumber(2), wanted)]);
        bench.at(20, Pictures::tick);
        assert_eq!(bench.answers(), [], "a debugger is slow");
        let texts = vec![(far[1], "#0 main".to_owned())];
        for host in [1, 2] {
            let texts = texts.clone();
            bench.at(20, |all, tools| all.stacks_came(tools, HostNumber(host), 1, texts));
        }
        let stacks = LookAnswer::Stacks { request: 5, texts };
        assert_eq!(bench.answers(), [stacks, LookAnswer::Complete { request: 5 }]);
        assert_eq!(bench.ask_for(30, 6, LookWish::Stacks(vec![])), []);
        assert_eq!(bench.answers(), [LookAnswer::Complete { request: 6 }]);
    }

    #[test]
    fn stacks_of_own_processes_are_found() {
        let _watchdog = Watchdog::start(Duration::from_secs(120));
        let mut bench = Bench::new(5);
        let (host, asker) = (HostNumber(1), 7);
        let own = |slot, incarnation| ProcessId {
            segment: bench.parts.get(JOB).unwrap().segment_id(),
            slot: Slot(slot),
            incarnation: Incarnation(incarnation),
        };
        let mut sleeper = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let record = SlotRecord {
            state: SlotState::Alive,
            incarnation: 1,
            pid: sleeper.id(),
            ..SlotRecord::default()
        };
        bench.parts.get(JOB).unwrap().segment.set_slot_record(0, record);
        let wanted = [own(0, 1), own(0, 2), own(99, 1)];
        let Bench { reactor, parts, pictures, .. } = &mut bench;
        let part = parts.get(JOB);
        assert_eq!(pictures.searches.begin(reactor, part, (host, asker), &wanted), None);
        let nobody = pictures.searches.begin(reactor, part, (host, 8), &wanted[1..]);
        let nothing = DaemonMessage::Stacks { request: 8, texts: Vec::new() };
        assert_eq!(nobody, Some((host, nothing)));
        let (mut answers, mut ready) = (Vec::new(), Vec::new());
        while answers.is_empty() {
            reactor.wait(Some(Duration::from_millis(100)), &mut ready).unwrap();
            let searches = ready.drain(..).filter(|(token, _)| pictures.searches.has(*token));
            let tokens: Vec<u64> = searches.map(|(token, _)| token).collect();
            answers.extend(tokens.into_iter().filter_map(|token| pictures.searches.ready(token)));
        }
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        let [(to, DaemonMessage::Stacks { request, texts })] = &answers[..] else { panic!() };
        assert_eq!((*to, *request, texts.len(), texts[0].0), (host, asker, 1, wanted[0]));
        assert!(!texts[0].1.is_empty(), "{texts:?}");
    }
}
