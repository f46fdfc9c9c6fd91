//! The arbiter's daemon, which hears hosts, is killed, and goes on from its record.
//!
//! It decides in turns, and everything that leaves in a turn has been recorded before, with everything on its way. So a kill within
//! a turn is a turn that comes later, and what hosts have sent waits for the next run. The links of the next run go on where
//! they were, and each begins with a trunk. Heartbeats alone leave without a record.

use std::collections::BTreeMap;
use std::time::Duration;

use landeck_protocols::hosts::{Arbiter, Detector, run_of};
use landeck_wire::heartbeat::Heartbeat;
use landeck_wire::{ControlMessage, HostIncarnation, HostNumber};
use serde::{Deserialize, Serialize};

use super::{ARBITER, Event, Fault, World};

/// The part of the record that these machines have.
#[derive(Serialize, Deserialize)]
struct Record(Arbiter, BTreeMap<usize, Detector>);

impl ControlMessage for Record {
    const NAME: &'static str = "a record";
    const BYTES_MAX: usize = 1 << 24;
}

impl World {
    /// The daemon of the arbiter is killed.
    pub(super) fn kill_arbiter(&mut self) {
        let node = &mut self.nodes[0];
        if node.is_frozen || node.is_paused {
            return;
        }
        node.is_frozen = true;
        node.trouble.stood_still = self.now;
        self.note_trouble(0);
        let pause = self.draw.time(Duration::ZERO, self.setting.kill_pause);
        self.plan(self.now + pause, Event::Repair(Fault::KillArbiter, 0));
    }

    /// The next run of the arbiter's daemon goes on from the record.
    pub(super) fn start_arbiter_again(&mut self) {
        let written = Record(self.arbiter.clone(), self.recorded.clone()).encode();
        let Ok(Record(arbiter, detectors)) = Record::decode(&written) else {
            unreachable!("it was written a moment ago")
        };
        let local = self.local(0);
        self.nodes[0].is_frozen = false;
        self.nodes[0].run += 1;
        let run = self.nodes[0].run;
        self.note(format!("the arbiter goes on as run {run}"));
        self.arbiter = arbiter;
        self.detectors = detectors
            .into_iter()
            .map(|(host, detector)| (host, detector.resumed(run, local)))
            .collect();
        self.arbiter.restarted(HostNumber::ARBITER, ARBITER, run);
        self.nodes[0].follower = None;
        let outputs = self.arbiter.trunk_renewed(HostNumber::ARBITER, ARBITER);
        self.carry_out(outputs);
        self.tell_again(0, ARBITER);
        for host in 1..self.nodes.len() {
            self.renew_trunk(host);
        }
    }

    /// The daemon of a host has a trunk again, if the arbiter knows it.
    fn renew_trunk(&mut self, host: usize) {
        let (number, node) = (HostNumber(host as u16), &self.nodes[host]);
        let incarnation = HostIncarnation(node.incarnation);
        let is_known = node.run == self.runs[host] && self.arbiter.is_living(number, incarnation);
        if node.is_up && is_known {
            let outputs = self.arbiter.trunk_renewed(number, incarnation);
            self.carry_out(outputs);
        }
    }

    /// The arbiter hears a heartbeat of a host.
    pub(super) fn heard_host(&mut self, host: usize, number: u64, heartbeat: &Heartbeat) {
        let local = self.local(0);
        let Some(detector) = self.detectors.get_mut(&host) else { return };
        let outputs = detector.hear(number, heartbeat, local);
        self.judge(host, outputs, false);
        let Heartbeat { incarnation, word, .. } = *heartbeat;
        let run = run_of(number);
        self.checks.reported((host, incarnation), (run, self.runs[host]), word);
        self.arbiter.applied(HostNumber(host as u16), incarnation, run, word);
    }
}
