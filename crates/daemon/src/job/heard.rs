//! The events of a job's parts, each once, also if a daemon is killed and the next one tells them again; and the orders that
//! such a daemon needs again.
//!
//! A part that stands again behind [`PartEvent::Stands`] has told everything before that its guardian knows. What its daemon
//! was told and has not done by then is lost.

use std::collections::{BTreeMap, BTreeSet};

use landeck_launch::events::Happened;
use landeck_launch::messages::{PartCommand, PartEvent};
use landeck_launch::output::Stream;
use landeck_protocols::door::{StartAnswer, StartRefusal};
use landeck_wire::HostNumber;

/// The answers to processes that are kept. One that is older has come.
const ANSWERS_MAX: usize = 1_024;

/// What is known of the parts of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    hosts: BTreeMap<HostNumber, Host>,
}

/// What is known of one part.
#[derive(Clone, Debug, Default)]
struct Host {
    processes: BTreeMap<u32, Process>,
    has_all_ended: bool,
    abort: Option<Happened>,
    /// The numbers of processes that it was told to start, and that neither run nor were refused.
    starting: BTreeSet<u32>,
    /// The questions of its processes, with the answers that were sent.
    questions: BTreeMap<u64, Option<StartAnswer>>,
    orders: Orders,
}

/// What was heard last of the process with a rank or number.
#[derive(Clone, Debug, Default)]
struct Process {
    pid: Option<u32>,
    has_joined: bool,
    /// The event of its end.
    end: Option<PartEvent>,
    /// Its streams that have ended.
    closed: Vec<Stream>,
}

/// The orders that hold until the part is over.
#[derive(Clone, Debug, Default)]
struct Orders {
    has_input_ended: bool,
    closed: Vec<Stream>,
    is_released: bool,
    /// The order to end, or to kill.
    end: Option<PartCommand>,
}

impl Heard {
    /// Takes an event of a part; returns whether it is the first time.
    pub(crate) fn is_new(&mut self, host: HostNumber, event: &PartEvent) -> bool {
        self.hosts.entry(host).or_default().is_new(event)
    }

    /// Takes note of a command for a part.
    pub(crate) fn ordered(&mut self, host: HostNumber, command: &PartCommand) {
        self.hosts.entry(host).or_default().ordered(command);
    }

    /// A part has another daemon: the commands that it needs again, and the events that stand for starts which are lost.
    pub(crate) fn stands(&mut self, host: HostNumber) -> (Vec<PartCommand>, Vec<PartEvent>) {
        let Some(known) = self.hosts.get_mut(&host) else { return Default::default() };
        let lost = std::mem::take(&mut known.starting).into_iter().map(|rank| {
            let refusal = StartRefusal::System("its daemon (landeckd) was killed".to_owned());
            PartEvent::NotAdded { rank, refusal }
        });
        (known.orders.all(), lost.collect())
    }

    /// The answer that a process is waiting for, if it was sent before.
    pub(crate) fn answer(&self, host: HostNumber, request: u64) -> Option<PartCommand> {
        let answer = self.hosts.get(&host)?.questions.get(&request)?.clone()?;
        Some(PartCommand::AnswerStart { request, answer })
    }

    /// Forgets a part: it is over, or its host is lost. The host may be added again.
    pub(crate) fn forget(&mut self, host: HostNumber) {
        self.hosts.remove(&host);
    }
}

impl Host {
    fn is_new(&mut self, event: &PartEvent) -> bool {
        match event {
            PartEvent::Happened(happened) => self.is_new_happening(happened, event),
            PartEvent::Joined { rank, .. } => {
                let process = self.processes.entry(*rank).or_default();
                process.end.is_none() && !std::mem::replace(&mut process.has_joined, true)
            }
            PartEvent::NotAdded { rank, .. } => self.has_ended(*rank, event),
            PartEvent::OutputEnded { rank, stream } => {
                let closed = &mut self.processes.entry(*rank).or_default().closed;
                let is_new = !closed.contains(stream);
                closed.extend(is_new.then_some(*stream));
                is_new
            }
            PartEvent::StartAsked { request, .. } => {
                let is_new = !self.questions.contains_key(request);
                self.questions.entry(*request).or_default();
                is_new
            }
            PartEvent::Gone { .. }
            | PartEvent::Output { .. }
            | PartEvent::InputTaken
            | PartEvent::InputUnread
            | PartEvent::Places(_)
            | PartEvent::Said(_)
            | PartEvent::Stands
            | PartEvent::Over => true,
        }
    }

    fn is_new_happening(&mut self, happened: &Happened, event: &PartEvent) -> bool {
        match happened {
            Happened::Started { rank, pid, .. } => {
                self.starting.remove(rank);
                let process = self.processes.entry(*rank).or_default();
                let is_new = process.pid != Some(*pid);
                if is_new {
                    *process = Process { pid: Some(*pid), ..Process::default() };
                }
                is_new
            }
            Happened::NotStarted { rank, .. } | Happened::Ended { rank, .. } => {
                self.has_ended(*rank, event)
            }
            Happened::GuestAborted { .. } => {
                self.abort.replace(happened.clone()).as_ref() != Some(happened)
            }
            Happened::AllEnded => !std::mem::replace(&mut self.has_all_ended, true),
            Happened::Stopped { .. } | Happened::Continued { .. } | Happened::GuardianGone => true,
        }
    }

    /// Takes the end of a process, or that there is none; returns whether that is news.
    fn has_ended(&mut self, rank: u32, event: &PartEvent) -> bool {
        let was_starting = self.starting.remove(&rank);
        let process = self.processes.entry(rank).or_default();
        let is_end = |it: &PartEvent| matches!(it, PartEvent::Happened(Happened::Ended { .. }));
        let is_known = match &process.end {
            // The words about a process that has ended may differ.
            Some(end) if is_end(event) => is_end(end),
            Some(end) => end == event && !was_starting,
            None => false,
        };
        process.end = Some(event.clone());
        !is_known
    }

    fn ordered(&mut self, command: &PartCommand) {
        match command {
            PartCommand::InputEnd => self.orders.has_input_ended = true,
            PartCommand::CloseOutput(stream) => self.orders.closed.push(*stream),
            PartCommand::Release => self.orders.is_released = true,
            PartCommand::Kill => self.orders.end = Some(PartCommand::Kill),
            PartCommand::End { .. } => {
                self.orders.end.get_or_insert_with(|| command.clone());
            }
            PartCommand::Start { rank, .. } => drop(self.starting.insert(*rank)),
            PartCommand::AnswerStart { request, answer } => {
                self.questions.insert(*request, Some(answer.clone()));
                self.forget_old_answers();
            }
            PartCommand::Signal(_)
            | PartCommand::Input(_)
            | PartCommand::Credit { .. }
            | PartCommand::Places { .. } => {}
        }
    }

    fn forget_old_answers(&mut self) {
        if self.questions.len() > ANSWERS_MAX {
            let answered = self.questions.iter().filter(|(_, answer)| answer.is_some());
            if let Some(oldest) = answered.map(|(request, _)| *request).next() {
                self.questions.remove(&oldest);
            }
        }
    }
}

impl Orders {
    fn all(&self) -> Vec<PartCommand> {
        let input = self.has_input_ended.then_some(PartCommand::InputEnd);
        let closed = self.closed.iter().map(|&stream| PartCommand::CloseOutput(stream));
        let released = self.is_released.then_some(PartCommand::Release);
        input.into_iter().chain(closed).chain(released).chain(self.end.clone()).collect()
    }
}
