//! Hosts that are added to a job while it runs.
//!
//! A host is added in four steps. The founder allows it, if the machine is one that stays. Then the host makes its part, which
//! has no rank and no guardian yet, and takes words from then on. Then all other hosts give its guests their places, and name
//! the guests that they have themselves; the host learns of those. At last its guardian begins. So each host knows the
//! places of a guest before that one can come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use landeck_launch::events::Happened;
use landeck_launch::messages::{ArbiterReport, PartCommand, PartEvent, PartRefusal};
use landeck_launch::spec::HostSpec;
use landeck_wire::{HostNumber, ProcessId, SegmentId};

use super::{Phase, WholeJob};
use crate::context::Context;
use crate::job_message::JobContent;
use crate::machine_message::MachineMessage;
use crate::random;

/// The hosts that were added to a job, and those that are to be.
#[derive(Debug, Default)]
pub(super) struct AddedHosts {
    /// The first of those that are wanted.
    adding: Option<Adding>,
    wanted: VecDeque<HostNumber>,
    /// The hosts among these on which a process waits to join.
    guests_wait: BTreeSet<HostNumber>,
    /// The processes that were started on each host that was added and have not ended.
    processes: BTreeMap<HostNumber, u32>,
    /// They end with their last processes, as all others have ended.
    is_released: bool,
}

#[derive(Debug)]
struct Adding {
    host: HostSpec,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Allowing,
    Checking,
    Preparing,
    /// The other hosts that have not answered, and the guests of those that have.
    Telling(BTreeSet<HostNumber>, Vec<(ProcessId, bool)>),
}

impl WholeJob {
    /// Adds a host, or takes note that a process of it is to be started there and the launcher waits.
    pub(super) fn want_host(&mut self, context: &mut Context<'_>, host: HostNumber) {
        if !self.added.wanted.contains(&host) {
            self.added.wanted.push_back(host);
        }
        self.go_on_adding(context);
    }

    /// Adds a host on which a process wants to join.
    pub(super) fn want_part(&mut self, context: &mut Context<'_>, host: HostNumber) {
        self.added.guests_wait.insert(host);
        self.want_host(context, host);
    }

    /// Begins with the next host that is wanted.
    fn go_on_adding(&mut self, context: &mut Context<'_>) {
        while self.added.adding.is_none() {
            let Some(number) = self.added.wanted.front().copied() else { return };
            match self.next_host(context, number) {
                Err(why) => self.end_adding(context, number, Err(why)),
                // It was added meanwhile.
                Ok(host) if self.awaited.contains(&number) => {
                    self.end_adding(context, number, Ok(host));
                }
                Ok(host) => {
                    self.added.adding = Some(Adding { host, step: Step::Allowing });
                    match self.gathering {
                        Some(_) => self.take_allowance(context, number, Ok(())),
                        None => context.send_machine(
                            HostNumber::ARBITER,
                            MachineMessage::HostWanted { job: self.spec.job, host: number },
                        ),
                    }
                }
            }
        }
    }

    /// The host with this number, as it is in the job or comes into it.
    fn next_host(&self, context: &Context<'_>, number: HostNumber) -> Result<HostSpec, String> {
        if self.phase != Phase::Running || self.is_ending || self.added.is_released {
            return Err("it has not begun, or is ending".to_owned());
        }
        if let Some(place) = self.spec.place_of(number).filter(|_| self.awaited.contains(&number)) {
            return Ok(self.spec.hosts[place].clone());
        }
        let entry = context.hosts().find(|entry| entry.host == number);
        let entry = entry.ok_or("it is no host of the machine, or is lost")?;
        if !self.spec.has_host_tables() {
            return Err("it began on one host, and stays there".to_owned());
        }
        if !self.spec.has_room_for(number) {
            let added = self.spec.hosts.len() - self.spec.first_hosts();
            return Err(format!("{added} hosts were added to it: there is no room for more"));
        }
        let segment = random::bytes().map_err(|error| error.to_string())?;
        let segment = SegmentId(u64::from_ne_bytes(segment));
        Ok(HostSpec { number, name: entry.name.clone(), segment, cores: Vec::new() })
    }

    /// Takes the founder's answer.
    pub(crate) fn take_allowance(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        allowance: Result<(), String>,
    ) {
        let job = self.spec.job;
        let mut spec = self.spec.clone();
        let Some(adding) = self.adding(host) else { return };
        match (&adding.step, allowance) {
            (Step::Allowing, Ok(())) => {
                adding.step = Step::Checking;
                spec.hosts.push(adding.host.clone());
                context.send(host, job, JobContent::Check(Box::new(spec)));
            }
            (Step::Allowing, Err(why)) => {
                self.end_adding(context, host, Err(why));
                self.go_on_adding(context);
            }
            _ => {}
        }
    }

    /// Takes the answer of the host that is added, to the question whether its part is possible or to the order to make it.
    pub(super) fn take_answer_of_added(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        answer: Result<(), PartRefusal>,
    ) {
        let (job, others, prepare) = (self.spec.job, self.awaited.clone(), self.order_to_prepare());
        let Some(adding) = self.adding(host) else { return };
        match (&adding.step, answer) {
            (Step::Checking, Ok(())) => {
                adding.step = Step::Preparing;
                context.send(host, job, prepare);
            }
            (Step::Preparing, Ok(())) => {
                let added = adding.host.clone();
                for &other in &others {
                    context.send(other, job, JobContent::AddHost(added.clone()));
                }
                adding.step = Step::Telling(others, Vec::new());
                // From now on the host has its place, whatever becomes of it.
                self.spec.hosts.push(added);
                self.begin_added(context);
            }
            (Step::Checking | Step::Preparing, Err(refusal)) => {
                self.lose_added(context, host, &refusal.text);
            }
            _ => {}
        }
    }

    /// Takes the guests of another host, which has given those of the host that is added their places.
    pub(super) fn take_guests(
        &mut self,
        context: &mut Context<'_>,
        from: HostNumber,
        guests: Vec<(ProcessId, bool)>,
    ) {
        if let Some(Adding { step: Step::Telling(awaited, known), .. }) = &mut self.added.adding
            && awaited.remove(&from)
        {
            known.extend(guests);
            self.begin_added(context);
        }
    }

    /// Has the guardian of the added host begin, if all other hosts have answered.
    fn begin_added(&mut self, context: &mut Context<'_>) {
        let Some(Adding { host, step: Step::Telling(awaited, guests) }) = &mut self.added.adding
        else {
            return;
        };
        if !awaited.is_empty() {
            return;
        }
        let (host, guests, job) = (host.clone(), std::mem::take(guests), self.spec.job);
        if self.is_ending {
            return self.lose_added(context, host.number, "the job is ending");
        }
        context.send(host.number, job, JobContent::Meet(guests));
        context.send(host.number, job, JobContent::Start);
        self.awaited.insert(host.number);
        self.added.processes.insert(host.number, 0);
        self.end_adding(context, host.number, Ok(host));
        self.go_on_adding(context);
    }

    /// The host that is being added, if it is this one.
    fn adding(&mut self, host: HostNumber) -> Option<&mut Adding> {
        self.added.adding.as_mut().filter(|adding| adding.host.number == host)
    }

    /// Tells those what has become of a wish that wait for it. Where a process waits to join, it sees the part itself.
    fn end_adding(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        outcome: Result<HostSpec, String>,
    ) {
        let is_waited_for = self.added.guests_wait.remove(&host);
        if let Err(why) = outcome.as_ref()
            && is_waited_for
        {
            context.send(host, self.spec.job, JobContent::PartRefused(why.clone()));
        }
        self.added.adding.take_if(|adding| adding.host.number == host);
        self.added.wanted.retain(|wanted| *wanted != host);
        self.launcher.send(&ArbiterReport::HostAdded { host, outcome });
    }

    /// Gives up a host that was to be added, for this reason, or no longer waits for another one.
    pub(super) fn lose_added(&mut self, context: &mut Context<'_>, host: HostNumber, why: &str) {
        if self.adding(host).is_some() {
            let job = self.spec.job;
            context.send(host, job, JobContent::Dismiss);
            if self.gathering.is_none() {
                let given_up = MachineMessage::HostGivenUp { job, host };
                context.send_machine(HostNumber::ARBITER, given_up);
            }
            self.end_adding(context, host, Err(why.to_owned()));
            self.go_on_adding(context);
        }
        self.take_guests(context, host, Vec::new());
    }

    /// Adds no further host, since the job is over.
    pub(super) fn give_up_adding(&mut self, context: &mut Context<'_>) {
        self.added.is_released = true;
        if let Some(adding) = &self.added.adding {
            let host = adding.host.number;
            self.lose_added(context, host, "the job is over");
        }
    }

    /// Whether the loss of a host is that of a process: one of those that the job began with, or that were started there.
    pub(super) fn has_processes_on(&self, host: HostNumber) -> bool {
        self.added.processes.get(&host).is_none_or(|processes| *processes > 0)
    }

    /// Whether a host was added.
    pub(super) fn is_added(&self, host: HostNumber) -> bool {
        self.added.processes.contains_key(&host)
    }

    /// Takes note of a process that is to be started.
    pub(super) fn note_start(&mut self, host: HostNumber, command: &PartCommand) {
        if let PartCommand::Start { .. } = command
            && let Some(processes) = self.added.processes.get_mut(&host)
        {
            *processes += 1;
        }
    }

    /// Takes note of an event of a host that was added.
    pub(super) fn note_event(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        event: &PartEvent,
    ) {
        let is_end = matches!(
            event,
            PartEvent::NotAdded { .. }
                | PartEvent::Happened(
                    Happened::Ended { again: None, .. } | Happened::NotStarted { again: None, .. }
                )
        );
        if is_end && let Some(processes) = self.added.processes.get_mut(&host) {
            *processes = processes.saturating_sub(1);
        }
        if *event == PartEvent::Over {
            self.take_guests(context, host, Vec::new());
        }
    }

    /// Has the added hosts end with their last processes, once the parts that the job began with are over.
    pub(super) fn release_added(&mut self, context: &mut Context<'_>) {
        let is_alone = !self.awaited.is_empty() && self.awaited.iter().all(|&it| self.is_added(it));
        if self.phase == Phase::Running && is_alone && !self.added.is_released {
            self.added.is_released = true;
            self.command_all(context, &PartCommand::Release);
        }
    }
}
