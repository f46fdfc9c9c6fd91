//! Hosts that are added to a job while it runs. The decisions are those of `protocols::hosts::Growth`; this carries them out.

use landeck_launch::events::Happened;
use landeck_launch::messages::{ArbiterReport, PartCommand, PartEvent, PartRefusal};
use landeck_launch::spec::HostSpec;
use landeck_protocols::hosts::{GrowthOutput, NewHost, Prospect};
use landeck_wire::{HostNumber, ProcessId, SegmentId};

use super::{Phase, WholeJob};
use crate::context::Context;
use crate::job_message::JobContent;
use crate::machine_message::MachineMessage;
use crate::random;

impl WholeJob {
    /// Adds a host, or takes note that a process of it is to be started there and the launcher waits.
    pub(super) fn want_host(&mut self, context: &mut Context<'_>, host: HostNumber) {
        self.growth.want(host, false);
        self.grow(context);
    }

    /// Adds a host on which a process wants to join.
    pub(super) fn want_part(&mut self, context: &mut Context<'_>, host: HostNumber) {
        self.growth.want(host, true);
        self.grow(context);
    }

    /// Takes the founder's answer.
    pub(crate) fn take_allowance(
        &mut self,
        context: &mut Context<'_>,
        host: NewHost,
        outcome: Result<(), String>,
    ) {
        self.growth.allowed(host, outcome);
        self.grow(context);
    }

    /// Takes the answer of the host that is added, to the question whether its part is possible or to the order to make it.
    pub(super) fn take_answer_of_added(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        answer: Result<(), PartRefusal>,
    ) {
        let answer = answer.map_err(|refusal| refusal.text);
        self.growth.answered(host, answer, &self.awaited);
        self.grow(context);
    }

    /// Takes the guests of another host, which has given those of the host with this segment their places.
    pub(super) fn take_guests(
        &mut self,
        context: &mut Context<'_>,
        from: HostNumber,
        segment: SegmentId,
        guests: Vec<(ProcessId, bool)>,
    ) {
        self.growth.told(from, segment, guests);
        self.grow(context);
    }

    /// Gives up a host that was to be added, for this reason, or no longer waits for another one.
    pub(super) fn lose_added(&mut self, context: &mut Context<'_>, host: HostNumber, why: &str) {
        self.growth.lost(host, why);
        self.grow(context);
    }

    /// The daemon of a host was killed, and the next one has its place.
    pub(super) fn restart_adding(&mut self, context: &mut Context<'_>, host: HostNumber) {
        self.growth.restarted(host);
        self.grow(context);
    }

    /// The guardian of an added host was not started, for this reason.
    pub(super) fn miss_added(&mut self, context: &mut Context<'_>, host: HostNumber, why: String) {
        self.growth.not_started(host, &why);
        self.grow(context);
        self.lose(context, host, why);
    }

    /// Adds no further host, since the job is over or about to be.
    pub(super) fn give_up_adding(&mut self, context: &mut Context<'_>) {
        self.growth.close();
        self.grow(context);
    }

    /// Takes note of a process that is to be started.
    pub(super) fn note_start(&mut self, host: HostNumber, command: &PartCommand) {
        if let PartCommand::Start { rank, .. } = command {
            self.growth.process_starts(host, *rank);
        }
    }

    /// Takes note of an event of a part.
    pub(super) fn note_event(
        &mut self,
        context: &mut Context<'_>,
        host: HostNumber,
        event: &PartEvent,
    ) {
        match event {
            // One that runs is told again behind a restart of this daemon.
            PartEvent::Happened(Happened::Started { rank, .. }) => {
                self.growth.process_starts(host, *rank);
            }
            PartEvent::NotAdded { rank, .. }
            | PartEvent::Happened(
                Happened::Ended { rank, again: None, .. }
                | Happened::NotStarted { rank, again: None, .. },
            ) => self.growth.process_ended(host, *rank),
            PartEvent::Over => self.growth.over(host),
            _ => {}
        }
        self.grow(context);
    }

    /// Has the added hosts end with their last processes, once the parts that the job began with are over.
    pub(super) fn release_added(&mut self, context: &mut Context<'_>) {
        // The machine's own job stays, also while nobody is in it.
        let may_end = self.phase == Phase::Running && self.launcher.is_some();
        if may_end && self.growth.release(&self.awaited) {
            self.command_all(context, &PartCommand::Release);
            self.grow(context);
        }
    }

    /// Carries out everything that was decided.
    fn grow(&mut self, context: &mut Context<'_>) {
        while let Some(output) = self.growth.take() {
            self.carry_out(context, output);
        }
    }

    fn carry_out(&mut self, context: &mut Context<'_>, output: GrowthOutput) {
        let job = self.spec.job;
        match output {
            GrowthOutput::Look(host) => {
                let seen = self.look(context, host);
                self.growth.looked(host, seen);
            }
            GrowthOutput::Ask(host) => {
                let wanted = MachineMessage::HostWanted { job, host };
                context.send_machine(HostNumber::ARBITER, wanted);
            }
            GrowthOutput::Check(host) => {
                let mut spec = self.spec.clone();
                spec.hosts.push(spec_of(context, host));
                context.send(host.number, job, JobContent::Check(Box::new(spec)));
            }
            GrowthOutput::Prepare(host) => {
                context.send(host.number, job, self.order_to_prepare());
            }
            GrowthOutput::Place(host) => {
                self.spec.hosts.push(spec_of(context, host));
                self.keep(context);
            }
            GrowthOutput::Tell { to, host } => {
                context.send(to, job, JobContent::AddHost(spec_of(context, host)));
            }
            GrowthOutput::Begin { host, guests } => {
                context.send(host.number, job, JobContent::Meet(guests));
                context.send(host.number, job, JobContent::Start);
                self.awaited.insert(host.number);
            }
            GrowthOutput::Dismiss(host) => context.send(host, job, JobContent::Dismiss),
            GrowthOutput::GiveUp(host) => {
                let given_up = MachineMessage::HostGivenUp { job, host };
                context.send_machine(HostNumber::ARBITER, given_up);
            }
            GrowthOutput::Refuse(host, why) => {
                context.send(host, job, JobContent::PartRefused(why));
            }
            GrowthOutput::Answer(host, outcome) => {
                let place = self.spec.place_of(host).ok_or("it has no place in the job");
                let spec = place.map(|place| self.spec.hosts[place].clone());
                let outcome = outcome.and_then(|()| Ok(spec?));
                self.report(&ArbiterReport::HostAdded { host, outcome });
            }
        }
    }

    /// The sight of a host that is wanted.
    fn look(&self, context: &Context<'_>, host: HostNumber) -> Result<Prospect, String> {
        if self.phase != Phase::Running {
            return Err("it has not begun, or is ending".to_owned());
        }
        if self.awaited.contains(&host) {
            let is_ending = self.ends.is_ending(host);
            return Ok(if is_ending { Prospect::Ending } else { Prospect::There });
        }
        if !context.hosts().any(|entry| entry.host == host) {
            return Err("it is no host of the machine, or is lost".to_owned());
        }
        if !self.spec.has_host_tables() {
            return Err("it began on one host, and stays there".to_owned());
        }
        if !self.spec.has_room_for(host) {
            let added = self.spec.hosts.len() - self.spec.first_hosts();
            return Err(format!("{added} hosts were added to it: there is no room for more"));
        }
        let segment = random::bytes().map_err(|error| error.to_string())?;
        Ok(Prospect::New(SegmentId(u64::from_ne_bytes(segment))))
    }
}

/// A host as it comes into the job: it has no core for itself.
fn spec_of(context: &Context<'_>, host: NewHost) -> HostSpec {
    let NewHost { number, segment } = host;
    let entry = context.host(number);
    let name = entry.map(|entry| entry.name.clone()).unwrap_or_default();
    let site = entry.map(|entry| entry.place.site.clone()).unwrap_or_default();
    HostSpec { number, name, site, segment, cores: Vec::new() }
}
