//! The job in the next run of a conductor that was killed. Its parts run, and its launcher comes back: it knows how far the job
//! was, and the parts tell everything again.

use std::time::Duration;

use landeck_launch::messages::PartCommand;
use landeck_launch::spec::JobSpec;
use landeck_protocols::hosts::Growth;
use landeck_wire::HostNumber;
use rustix::event::epoll::EventFlags;

use super::processes_there::ProcessesThere;
use super::{Phase, WholeJob};
use crate::context::Context;
use crate::job_message::JobContent;
use crate::journal::{Change, Entry, EntryName};
use crate::machine::callers::CallerStream;

/// How long a launcher has to come back.
const LAUNCHER_TIME: Duration = Duration::from_secs(10);
/// The exit code and the cause of the end of a job that cannot go on.
const ORPHANED: (u8, &str) = (128 + 9, "the daemon (landeckd) of its launcher's host was killed");

impl WholeJob {
    /// Keeps the job with its hosts for the next run of this daemon.
    pub(crate) fn keep(&self, context: &Context<'_>) {
        let journal = context.journal();
        if journal.is_kept() {
            let (name, spec) = (EntryName::Conducted(self.spec.job), Box::new(self.spec.clone()));
            let entry = Entry::Conducted { spec, runs: self.phase == Phase::Running };
            journal.write(vec![Change::keep(name, &entry, Vec::new())]);
        }
    }

    /// The job that the run of the daemon before has conducted. One that did not run yet is given up, as its launcher knows.
    pub(crate) fn resumed(
        context: &mut Context<'_>,
        spec: JobSpec,
        runs: bool,
        tokens: u64,
    ) -> Self {
        let awaited = spec.hosts.iter().map(|host| host.number).collect();
        let added = spec.hosts[spec.first_hosts()..].iter().map(|host| host.number);
        let growth = Growth::resumed(added);
        let processes_there = ProcessesThere::of_job(spec.job, context.words());
        let mut whole = Self { awaited, growth, processes_there, ..Self::of_guests(spec, tokens) };
        if whole.spec.is_of_guests() {
            whole.go_on_running(context);
        } else if runs {
            whole.phase = Phase::Waiting { until: context.now() + LAUNCHER_TIME };
        } else {
            whole.ask_all(context, &JobContent::Dismiss);
            (whole.phase, whole.is_ending) = (Phase::Refused, true);
        }
        whole
    }

    /// Takes the launcher that has come back, with the hosts that it knows to have parts.
    pub(crate) fn take_launcher(
        &mut self,
        context: &mut Context<'_>,
        (launcher, asked): (CallerStream, u64),
        hosts: &[HostNumber],
    ) {
        let Phase::Waiting { .. } = self.phase else { return };
        (self.launcher, self.watched) = (Some(launcher), EventFlags::empty());
        self.asked_again = asked;
        for host in std::mem::take(&mut self.awaited) {
            if hosts.contains(&host) {
                self.awaited.insert(host);
                continue;
            }
            // Its part is over, or the launcher has not learned that the host was added.
            context.send(host, self.spec.job, JobContent::OverTaken);
            context.send(host, self.spec.job, JobContent::Dismiss);
        }
        self.go_on_running(context);
        if context.cause_of_end(self.spec.job).is_some() {
            // The order may have been lost.
            self.is_ending = true;
            self.give_up_adding(context);
            let grace = self.spec.grace;
            self.command_all(context, &PartCommand::End { grace });
        }
    }

    /// Ends the job if its launcher does not come back.
    pub(super) fn wait_for_launcher(&mut self, context: &mut Context<'_>, until: Duration) {
        if context.now() < until {
            return context.wake_at(until);
        }
        self.wait_no_longer(context);
        self.end(context, ORPHANED.0, ORPHANED.1.to_owned());
    }

    /// The job is to be ended, whether its launcher comes back or not.
    pub(super) fn wait_no_longer(&mut self, context: &mut Context<'_>) {
        if let Phase::Waiting { .. } = self.phase {
            self.go_on_running(context);
        }
    }

    /// Has all parts tell everything again. One whose host has gone meanwhile is lost.
    fn go_on_running(&mut self, context: &mut Context<'_>) {
        self.phase = Phase::Running;
        for host in self.awaited.clone() {
            if !context.hosts().any(|entry| entry.host == host) {
                self.lose(context, host, "it does not answer".to_owned());
                continue;
            }
            self.telling.insert(host);
            self.have_told_again(context, host);
        }
    }

    /// Has a part tell everything again, unless it has. The order to start it may have been lost, too.
    pub(super) fn have_told_again(&self, context: &mut Context<'_>, host: HostNumber) {
        if self.telling.contains(&host) {
            let (job, asked) = (self.spec.job, self.asked_again);
            context.send(host, job, JobContent::Start);
            context.send(host, job, JobContent::TellAgain { asked });
        }
    }
}
