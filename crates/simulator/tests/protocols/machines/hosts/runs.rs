//! Daemons of simulated hosts that are killed, and go on as the next run with what their keepers have kept.

use std::time::Duration;

use landeck_protocols::hosts::{Lease, Snapshot, WordFollower, numbers_before};
use landeck_wire::{HostIncarnation, JobId};

use super::{ARBITER, Event, Up, World, segment};

impl World {
    /// Checks that the lease of a host ends in its time, whichever run of its daemon looks.
    pub(super) fn check_lease(&mut self, node: usize, local: Duration) {
        let current = &mut self.nodes[node];
        let Some(lease) = &current.lease else { return };
        current.leased_from = current.leased_from.max(lease.counts_from());
        let (since, is_over) = (local - current.leased_from, lease.end().is_some());
        let stood_still = current.trouble.stood_still;
        let punctual = self.now.saturating_sub(stood_still.max(current.looks_from));
        let check = self.checks.leased(node, (since, punctual), is_over, self.timing);
        self.check(check);
    }

    /// The daemon of a host is killed. Its processes run on, at most until the lease ends that they have.
    pub(super) fn kill(&mut self, node: usize) {
        let local = self.local(node);
        let needs_view = self.setting.kill_pause <= self.timing.timeout() / 2;
        let pause = self.draw.time(Duration::ZERO, self.setting.kill_pause);
        let current = &mut self.nodes[node];
        let Some(lease) = &current.lease else { return };
        let is_there = current.is_up && current.runs && !current.is_paused && lease.end().is_none();
        if !is_there || (needs_view && !lease.is_valid(local)) {
            return;
        }
        current.leased_from = current.leased_from.max(lease.counts_from());
        if std::mem::take(&mut current.is_frozen) {
            current.trouble.stood_still = self.now;
        }
        current.is_up = false;
        (current.lease, current.follower) = (None, None);
        current.inbox.clear();
        let (incarnation, end) = (current.incarnation, current.leased_from + self.timing.lease());
        let is_in_time = local + pause < end;
        let pause = pause.min(end.saturating_sub(local));
        self.trunks[node].down.reset();
        // What it has sent may come, or may be lost with it.
        if self.draw.permille(500) {
            self.trunks[node].up.reset();
        }
        self.note_trouble(node);
        self.plan(self.now + pause, Event::StartAgain { node, incarnation, is_in_time });
    }

    /// The keeper of a killed daemon ends the processes with their lease.
    pub(super) fn end_without_daemon(&mut self, node: usize) {
        self.nodes[node].runs = false;
        self.start_later(node);
    }

    /// A killed daemon is there again, and has what its keeper has kept.
    pub(super) fn start_again(&mut self, node: usize) {
        let (local, timing) = (self.local(node), self.timing);
        let current = &mut self.nodes[node];
        let incarnation = current.incarnation;
        let own = HostIncarnation(incarnation);
        current.is_up = true;
        current.run += 1;
        let lease = Lease::new(timing, own, ARBITER, current.boot, local);
        current.lease = Some(lease.resumed(current.run, current.leased_from));
        (current.request, current.is_request_open) = (numbers_before(current.run), false);
        let its = segment(own, JobId(current.job));
        current.reports.retain(|report| match report {
            Up::Ended(_, process, _) | Up::Came(_, process) | Up::Returned(_, process) => {
                process.segment == its
            }
            report => matches!(report, Up::Moved(..)),
        });
        // It is not heard before it has a trunk.
        current.trouble.welcomed = None;
        let run = current.run;
        self.note(format!("host {node} goes on as run {run}"));
        self.note_trouble(node);
        let trunk = &mut self.trunks[node];
        trunk.up.reset();
        trunk.down.reset();
        self.plan(self.now, Event::Hello { node, incarnation });
        self.plan_look(node);
    }

    /// A daemon that has started again says everything anew: what the run before has said may be lost.
    pub(super) fn tell_again(&mut self, node: usize, own: HostIncarnation) {
        let job = JobId(self.nodes[node].job);
        let kept = [Up::PartAdded(own, job), Up::PartKept(own, job)];
        self.nodes[node].reports.splice(..0, kept);
        let reports = self.nodes[node].reports.clone();
        reports.into_iter().for_each(|report| self.send_up(node, report));
    }

    /// A daemon learns everything that was said before it had a copy of the words.
    pub(super) fn welcomed(&mut self, node: usize, own: HostIncarnation, snapshot: Snapshot) {
        let current = &mut self.nodes[node];
        current.follower = Some(WordFollower::new(snapshot));
        current.trouble.welcomed = Some(self.now);
        let new = Lease::new(self.timing, own, ARBITER, current.boot, current.leased_from);
        current.lease.get_or_insert(new);
        match current.run {
            0 => current.looks_from = self.now,
            _ => self.tell_again(node, own),
        }
        self.plan_look(node);
    }
}
