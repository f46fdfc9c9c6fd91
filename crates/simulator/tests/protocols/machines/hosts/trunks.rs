//! The trunks between the hosts and the arbiter: what is sent over them, and when it passes.

use landeck_wire::{HostIncarnation, JobId};

use super::{Down, Event, Inbound, Up, World, entry};

impl World {
    pub(super) fn send_up(&mut self, host: usize, message: Up) {
        if host == 0 {
            return self.hear_up(0, message);
        }
        let epoch = self.trunks[host].up.epoch;
        if self.trunks[host].up.push(message) {
            self.plan(self.now, Event::Attempt { host, is_up: true, epoch });
        }
    }

    pub(super) fn send_down(&mut self, host: usize, message: Down) {
        if host == 0 {
            return self.hear_down(0, message);
        }
        let epoch = self.trunks[host].down.epoch;
        if self.trunks[host].down.push(message) {
            self.plan(self.now, Event::Attempt { host, is_up: false, epoch });
        }
    }

    /// Whether a TCP segment to a host and its acknowledgement pass.
    pub(super) fn passes(&self, host: usize) -> bool {
        let (trunk, current) = (&self.trunks[host], &self.nodes[host]);
        !trunk.is_cut_up
            && !trunk.is_cut_down
            && !current.is_paused
            && current.is_up
            && !self.nodes[0].is_paused
    }

    pub(super) fn attempt(&mut self, host: usize, is_up: bool, epoch: u32) {
        let (passes, quality, now) = (self.passes(host), self.quality, self.now);
        let trunk = &mut self.trunks[host];
        if epoch != if is_up { trunk.up.epoch } else { trunk.down.epoch } {
            return;
        }
        let draw = &mut self.draw;
        let again = if is_up {
            trunk.up.attempt(now, passes, quality, draw).map(|(at, messages)| {
                let inbound = |message| Inbound::Up { host, epoch, message };
                (at, 0, messages.into_iter().map(inbound).collect::<Vec<_>>())
            })
        } else {
            trunk.down.attempt(now, passes, quality, draw).map(|(at, messages)| {
                let inbound = |message| Inbound::Down { epoch, message };
                (at, host, messages.into_iter().map(inbound).collect())
            })
        };
        match again {
            Ok((at, node, all)) => {
                all.into_iter().for_each(|inbound| self.plan(at, Event::Arrive { node, inbound }));
            }
            Err(at) => self.plan(at, Event::Attempt { host, is_up, epoch }),
        }
    }

    /// A probe of the arbiter's kernel on the trunk: the host's kernel acknowledges it.
    pub(super) fn probe(&mut self, host: usize) {
        self.plan(self.now + self.timing.interval(), Event::Probe { host });
        if self.passes(host)
            && self.nodes[host].runs
            && !self.draw.permille(self.setting.loss_permille)
        {
            let incarnation = HostIncarnation(self.nodes[host].incarnation);
            let inbound = Inbound::KernelAnswer { host, incarnation, at: self.local(0) };
            self.arrive(0, inbound);
        }
    }

    pub(super) fn hello(&mut self, node: usize) {
        let current = &self.nodes[node];
        let (incarnation, boot, run) = (current.incarnation, current.boot, current.run);
        self.send_up(node, Up::Hello(entry(node, incarnation), boot, run));
    }

    /// A trunk breaks and is opened again: what was on its way is lost, and the host says everything anew.
    pub(super) fn reset(&mut self, node: usize) {
        let trunk = &mut self.trunks[node];
        trunk.up.reset();
        trunk.down.reset();
        let current = &self.nodes[node];
        if !current.is_up || !current.runs {
            return;
        }
        self.hello(node);
        let current = &self.nodes[node];
        let own = HostIncarnation(current.incarnation);
        let reports = current.reports.clone();
        let request = current.is_request_open.then_some(current.request);
        reports.into_iter().for_each(|report| self.send_up(node, report));
        if let Some(request) = request {
            self.send_up(node, Up::Numbers(own, JobId(self.nodes[node].request_job), request));
        }
    }
}
