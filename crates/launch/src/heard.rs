//! The events of a job's parts, each once, also if a daemon is killed and the next one tells them again; and the orders that
//! such a daemon needs again.
//!
//! Events go from the part to the daemon that conducts the job, and from there to the launcher. Each of the two counts them: the
//! daemon of the part may be killed, and that of the launcher.
//!
//! A part that stands again behind [`PartEvent::Stands`] has told everything before that its guardian knows. What its daemon
//! was told and has not done by then is lost.

#[cfg(test)]
pub(crate) mod simulation;

use std::collections::{BTreeMap, BTreeSet};

use crate::events::Happened;
use crate::messages::{PartCommand, PartEvent};
use crate::output::Stream;
use landeck_protocols::door::{StartAnswer, StartRefusal};
use landeck_wire::HostNumber;

/// The answers to processes that are kept. One that is older has come.
const ANSWERS_MAX: usize = 1_024;

/// The events and the orders of a job's parts, as far as they count.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    hosts: BTreeMap<HostNumber, Host>,
}

/// The events and the orders of one part.
#[derive(Clone, Debug, Default)]
struct Host {
    processes: BTreeMap<u32, Process>,
    has_all_ended: bool,
    abort: Option<Happened>,
    /// The numbers of processes that it was told to start, and that neither run nor were refused; those that a daemon was told
    /// which was killed, and the others.
    doubtful: BTreeSet<u32>,
    starting: BTreeSet<u32>,
    /// The questions of its processes, with the answers that were sent.
    questions: BTreeMap<u64, Option<StartAnswer>>,
    orders: Orders,
}

/// The last events of the process with a rank or number.
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
    pub fn is_new(&mut self, host: HostNumber, event: &PartEvent) -> bool {
        self.hosts.entry(host).or_default().is_new(event)
    }

    /// Takes note of a command for a part.
    pub fn ordered(&mut self, host: HostNumber, command: &PartCommand) {
        self.hosts.entry(host).or_default().ordered(command);
    }

    /// The daemon of a host was killed, and the next one is there. Nothing that was sent to the former one comes to it.
    pub fn restarted(&mut self, host: HostNumber) {
        if let Some(known) = self.hosts.get_mut(&host) {
            known.doubtful.append(&mut known.starting);
        }
    }

    /// A part has told everything again to its next daemon: the commands that it needs again, and the events that stand for
    /// starts which are lost.
    pub fn stands(&mut self, host: HostNumber) -> (Vec<PartCommand>, Vec<PartEvent>) {
        let Some(known) = self.hosts.get_mut(&host) else { return Default::default() };
        let lost = std::mem::take(&mut known.doubtful).into_iter().map(|rank| {
            let refusal = StartRefusal::System("its daemon (landeckd) was killed".to_owned());
            PartEvent::NotAdded { rank, refusal }
        });
        (known.orders.all(), lost.collect())
    }

    /// The answer that a process is waiting for, if it was sent before.
    pub fn answer(&self, host: HostNumber, request: u64) -> Option<PartCommand> {
        let answer = self.hosts.get(&host)?.questions.get(&request)?.clone()?;
        Some(PartCommand::AnswerStart { request, answer })
    }

    /// Forgets a part: it is over, or its host is lost. The host may be added again.
    pub fn forget(&mut self, host: HostNumber) {
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
            | PartEvent::Stands { .. }
            | PartEvent::Over => true,
        }
    }

    fn is_new_happening(&mut self, happened: &Happened, event: &PartEvent) -> bool {
        match happened {
            Happened::Started { rank, pid, .. } => {
                let process = self.processes.entry(*rank).or_default();
                let is_new = process.pid != Some(*pid);
                if is_new {
                    self.doubtful.remove(rank);
                    self.starting.remove(rank);
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
        let is_starting = self.doubtful.contains(&rank) || self.starting.contains(&rank);
        let process = self.processes.entry(rank).or_default();
        let is_end = |it: &PartEvent| matches!(it, PartEvent::Happened(Happened::Ended { .. }));
        let is_known = match &process.end {
            // The words about a process that has ended may differ.
            Some(end) if is_end(event) => is_end(end),
            Some(end) => end == event && !is_starting,
            None => false,
        };
        if !is_known {
            process.end = Some(event.clone());
            self.doubtful.remove(&rank);
            self.starting.remove(&rank);
        }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use landeck_host::process::{StartError, StartStep};

    use super::*;

    const HOST: HostNumber = HostNumber(2);

    fn started(rank: u32, pid: u32) -> PartEvent {
        PartEvent::Happened(Happened::Started { rank, pid, restart: 0 })
    }

    pub(super) fn ended(rank: u32, pid: u32) -> PartEvent {
        PartEvent::Happened(Happened::Ended {
            rank,
            pid,
            failure: None,
            at: Duration::ZERO,
            waiting: None,
            was_member: true,
            deeds: Default::default(),
            again: None,
        })
    }

    fn news(heard: &mut Heard, events: &[PartEvent]) -> Vec<bool> {
        events.iter().map(|event| heard.is_new(HOST, event)).collect()
    }

    #[test]
    fn each_event_of_a_process_counts_once() {
        let mut heard = Heard::default();
        let output_ended = PartEvent::OutputEnded { rank: 0, stream: Stream::Output };
        let first = [started(0, 7), output_ended.clone(), ended(0, 7)];
        assert_eq!(news(&mut heard, &first), [true; 3]);
        assert_eq!(news(&mut heard, &first), [false; 3]);
        let again = [started(0, 8), output_ended, ended(0, 8)];
        assert_eq!(news(&mut heard, &again), [true; 3]);
        let all_ended = PartEvent::Happened(Happened::AllEnded);
        assert_eq!(news(&mut heard, &[all_ended.clone(), all_ended]), [true, false]);
        heard.forget(HOST);
        assert_eq!(news(&mut heard, &again), [true; 3], "the host was added again");
    }

    #[test]
    fn starts_that_fail_one_after_the_other_count_each() {
        let mut heard = Heard::default();
        let error = StartError { step: StartStep::Execute, errno: 2 };
        let failed = |number: u32| {
            let again = Some((number, Duration::ZERO));
            PartEvent::Happened(Happened::NotStarted { rank: 1, error, again })
        };
        let events = [failed(1), failed(1), failed(2), failed(2)];
        assert_eq!(news(&mut heard, &events), [true, false, true, false]);
        let refusal = StartRefusal::NoSlot;
        let not_added = PartEvent::NotAdded { rank: 9, refusal };
        assert_eq!(news(&mut heard, &[not_added.clone(), not_added.clone()]), [true, false]);
        let wish = Box::new(simulation::wish());
        heard.ordered(HOST, &PartCommand::Start { rank: 9, like: 0, wish });
        assert_eq!(news(&mut heard, &[not_added.clone(), not_added]), [true, false]);
    }

    #[test]
    fn the_next_daemon_gets_the_orders_that_hold() {
        let mut heard = Heard::default();
        let end = PartCommand::End { grace: Duration::from_secs(1) };
        let wish = Box::new(simulation::wish());
        for command in [
            PartCommand::Signal(10),
            PartCommand::InputEnd,
            PartCommand::CloseOutput(Stream::Error),
            PartCommand::Start { rank: 4, like: 0, wish: wish.clone() },
            PartCommand::Start { rank: 5, like: 0, wish },
            end.clone(),
        ] {
            heard.ordered(HOST, &command);
        }
        assert!(heard.is_new(HOST, &started(4, 11)));
        assert_eq!(heard.stands(HOST).1, [], "it may still be told");
        heard.restarted(HOST);
        let (orders, lost) = heard.stands(HOST);
        let closed = PartCommand::CloseOutput(Stream::Error);
        assert_eq!(orders, [PartCommand::InputEnd, closed, end]);
        assert!(matches!(lost[..], [PartEvent::NotAdded { rank: 5, .. }]), "{lost:?}");
        assert_eq!(heard.stands(HOST).1, [], "they are told once");
        heard.ordered(HOST, &PartCommand::Kill);
        assert_eq!(heard.stands(HOST).0.last(), Some(&PartCommand::Kill));
        assert_eq!(heard.stands(HostNumber(3)), Default::default());
    }
}
