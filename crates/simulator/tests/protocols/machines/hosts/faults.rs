//! The life of simulated hosts: processes that end, faults, and daemons that start anew.

use std::net::SocketAddr;
use std::time::Duration;

use landeck_wire::word::ProcessEnd;
use landeck_wire::{HostIncarnation, Incarnation, JobId, ProcessId, Slot};

use super::{ASK_AGAIN, Event, Fault, Node, Up, World, segment};

impl Node {
    /// A process of this host comes, ends, goes away or returns.
    fn next_report(&mut self, own: HostIncarnation, turn: u64) -> Up {
        if turn == 0
            && let Some(before) = self.away.pop()
        {
            let incarnation = Incarnation(before.incarnation.0 + 1);
            let process = ProcessId { incarnation, ..before };
            self.back.push(process);
            return Up::Returned(own, process);
        }
        if turn == 1
            && let Some(process) = self.away.pop()
        {
            return Up::Ended(own, process, ProcessEnd::Left);
        }
        let again = if turn == 2 { self.back.pop() } else { None };
        let process = again.unwrap_or_else(|| {
            self.slots += 1;
            let slot = Slot(self.slots - 1);
            let segment = segment(own, JobId(self.job));
            ProcessId { segment, slot, incarnation: Incarnation(1) }
        });
        if turn == 3 {
            self.back.push(process);
            return Up::Came(own, process);
        }
        let end = match self.reports.len() % 3 {
            0 => ProcessEnd::Left,
            1 => ProcessEnd::Away,
            _ => ProcessEnd::Died { pid: process.slot.0, status: 9 },
        };
        if end == ProcessEnd::Away {
            self.away.push(process);
        }
        Up::Ended(own, process, end)
    }
}

impl World {
    pub(super) fn process_ends(&mut self, node: usize) {
        let mean = self.setting.process_ends;
        let wait = self.draw.about(mean);
        self.plan(self.now + wait, Event::ProcessEnds { node });
        let ask = self.draw.permille(500);
        let end_job = self.draw.permille(50);
        let turn = self.draw.below(4);
        let current = &mut self.nodes[node];
        if !current.runs
            || current.is_paused
            || current.is_frozen
            || current.follower.is_none()
            || self.is_healed
        {
            return;
        }
        let own = HostIncarnation(current.incarnation);
        let report = current.next_report(own, turn);
        current.reports.push(report.clone());
        let moved = (turn == 0).then(|| {
            let moved = Up::Moved(own, SocketAddr::from(([10, 0, 0, 1], current.slots as u16)));
            // The daemon tells where it is now.
            current.reports.retain(|report| !matches!(report, Up::Moved(..)));
            current.reports.push(moved.clone());
            moved
        });
        let job = JobId(current.job);
        let request = ask.then(|| {
            current.request += 1;
            current.request_job = current.job;
            current.is_request_open = true;
            current.request
        });
        self.send_up(node, report);
        moved.into_iter().for_each(|moved| self.send_up(node, moved));
        if let Some(request) = request {
            self.send_up(node, Up::Numbers(own, job, request));
        }
        if end_job {
            self.send_up(node, Up::EndJob(job, 3));
        }
    }

    pub(super) fn plan_job_turn(&mut self) {
        let wait = self.draw.about(10 * self.setting.process_ends);
        self.plan(self.now + wait, Event::JobTurns);
    }

    /// The conductor, which is on the arbiter's host, is done with the job. The hosts end their parts one after the other.
    pub(super) fn job_turns(&mut self) {
        if self.is_healed {
            return;
        }
        self.plan_job_turn();
        let done = JobId(self.job);
        self.job += 1;
        for node in 0..self.nodes.len() {
            let wait = self.draw.time(Duration::ZERO, Duration::from_secs(2));
            self.plan(self.now + wait, Event::PartTurns { node, job: self.job });
        }
        self.checks.job_done(done);
        let outputs = self.arbiter.job_done(done);
        self.carry_out(outputs);
    }

    /// The part of a host is over, and that of the next job begins.
    pub(super) fn part_turns(&mut self, node: usize, job: u64) {
        let current = &mut self.nodes[node];
        if current.job >= job {
            return;
        }
        if !current.runs || current.is_paused || current.is_frozen || current.follower.is_none() {
            return self.plan(self.now + ASK_AGAIN, Event::PartTurns { node, job });
        }
        let own = HostIncarnation(current.incarnation);
        let reports = [Up::PartOver(own, JobId(current.job)), Up::PartAdded(own, JobId(job))];
        current.job = job;
        current.slots = 0;
        current.away.clear();
        current.back.clear();
        current.reports.extend(reports.clone());
        reports.into_iter().for_each(|report| self.send_up(node, report));
    }

    pub(super) fn start_later(&mut self, node: usize) {
        let incarnation = self.nodes[node].incarnation;
        let wait = self.draw.about(Duration::from_secs(1));
        self.plan(self.now + wait, Event::Start { node, incarnation });
        self.note_trouble(node);
    }

    /// Starts the daemon of a host as a new incarnation.
    pub(super) fn start(&mut self, node: usize) {
        self.incarnations += 1;
        let (incarnation, began) = (self.incarnations, self.local(node));
        let current = &mut self.nodes[node];
        current.incarnation = incarnation;
        current.job = self.job;
        (current.trouble.incarnation, current.trouble.welcomed) = (incarnation, None);
        (current.is_up, current.runs) = (true, true);
        (current.lease, current.follower, current.leased_from) = (None, None, began);
        (current.run, current.request, current.is_request_open) = (0, 0, false);
        current.reports.clear();
        current.away.clear();
        current.back.clear();
        current.slots = 0;
        current.inbox.clear();
        self.note(format!("host {node} starts as {incarnation}"));
        self.note_trouble(node);
        self.reset(node);
        self.plan(self.now + ASK_AGAIN, Event::Hello { node, incarnation });
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        let rates = self.setting.faults;
        let mean = match fault {
            Fault::Cut => rates.cut,
            Fault::CutUp | Fault::CutDown => rates.one_way_cut,
            Fault::Freeze => rates.freeze,
            Fault::Pause => rates.pause,
            Fault::Restart => rates.restart,
            Fault::Reset => rates.reset,
            Fault::Kill => rates.kill,
            Fault::KillArbiter => rates.kill_arbiter,
        };
        if self.is_healed {
            return;
        }
        self.plan_fault(fault, mean);
        let hosts = self.nodes.len() as u64;
        let with_arbiter = matches!(fault, Fault::Freeze | Fault::Pause);
        let node =
            if with_arbiter { self.draw.below(hosts) } else { 1 + self.draw.below(hosts - 1) }
                as usize;
        self.note(format!("{fault:?} of host {node}"));
        let longest = self.draw.pick(&[self.timing.timeout(), 2 * self.timing.gone_after()]);
        let length = self.draw.time(self.timing.interval(), longest);
        match fault {
            Fault::Cut => {
                (self.trunks[node].is_cut_up, self.trunks[node].is_cut_down) = (true, true);
            }
            Fault::CutUp => self.trunks[node].is_cut_up = true,
            Fault::CutDown => self.trunks[node].is_cut_down = true,
            Fault::Freeze => self.nodes[node].is_frozen = true,
            Fault::Pause if !self.nodes[node].is_paused => {
                self.nodes[node].is_paused = true;
                self.nodes[node].trouble.paused = self.now;
                self.nodes[node].clock.pause(self.now);
            }
            Fault::Pause => {}
            Fault::Reset => return self.reset(node),
            Fault::Restart => return self.restart(node),
            Fault::Kill => return self.kill(node),
            Fault::KillArbiter => return self.kill_arbiter(),
        }
        self.note_stand(fault, node);
        self.note_trouble(node);
        self.plan(self.now + length, Event::Repair(fault, node));
    }

    fn restart(&mut self, node: usize) {
        let with_host = self.draw.permille(500);
        let current = &mut self.nodes[node];
        (current.is_up, current.runs) = (false, false);
        (current.is_frozen, current.lease, current.follower) = (false, None, None);
        if with_host {
            current.boot += 1_000;
        }
        self.start_later(node);
    }

    pub(super) fn repair(&mut self, fault: Fault, node: usize) {
        match fault {
            Fault::Cut => {
                (self.trunks[node].is_cut_up, self.trunks[node].is_cut_down) = (false, false);
            }
            Fault::CutUp => self.trunks[node].is_cut_up = false,
            Fault::CutDown => self.trunks[node].is_cut_down = false,
            Fault::Freeze => self.nodes[node].is_frozen = false,
            Fault::KillArbiter => self.start_arbiter_again(),
            Fault::Pause => {
                if std::mem::take(&mut self.nodes[node].is_paused) {
                    self.nodes[node].clock.resume(self.now);
                    self.nodes[node].trouble.paused = self.now;
                }
            }
            Fault::Restart | Fault::Reset | Fault::Kill => return,
        }
        self.note(format!("end of {fault:?} of host {node}"));
        self.note_stand(fault, node);
        self.note_trouble(node);
        let current = &self.nodes[node];
        let did_stand = matches!(fault, Fault::Freeze | Fault::Pause | Fault::KillArbiter);
        if did_stand && !current.is_frozen && !current.is_paused {
            // A driver's timer may be first: it looks before it has read its sockets.
            self.look(node, false);
            self.drain(node);
            self.look(node, true);
        }
    }

    /// Keeps for the checkers when the daemon of a host or its clock stood still.
    fn note_stand(&mut self, fault: Fault, node: usize) {
        if matches!(fault, Fault::Freeze | Fault::Pause | Fault::KillArbiter) {
            self.nodes[node].trouble.stood_still = self.now;
        }
    }

    /// Keeps for the checkers since when a host and the arbiter do not reach each other.
    pub(super) fn note_trouble(&mut self, node: usize) {
        let now = self.now;
        if node == 0 {
            self.punctual_since = now;
        }
        let is_arbiter_paused = self.nodes[0].is_paused;
        for host in 0..self.nodes.len() {
            let trunk = &self.trunks[host];
            let is_cut = trunk.is_cut_up || trunk.is_cut_down;
            let current = &mut self.nodes[host];
            let is_over = !current.is_up || !current.runs || current.is_paused;
            let trouble = &mut current.trouble;
            if is_cut || is_over || is_arbiter_paused {
                // Another fault, or the end of one of several, begins the trouble anew.
                let since = trouble.since.filter(|_| host != node);
                trouble.since = Some(since.unwrap_or(now));
            } else if trouble.since.take().is_some() {
                trouble.ended = now;
            }
        }
    }

    pub(super) fn heal(&mut self) {
        self.note("all faults end".into());
        self.is_healed = true;
        for node in 0..self.nodes.len() {
            for fault in [Fault::Cut, Fault::Freeze, Fault::Pause] {
                self.repair(fault, node);
            }
        }
    }
}
