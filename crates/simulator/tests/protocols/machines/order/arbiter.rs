//! The arbiter of simulated groups: hosts that come and are lost, and words.

use landeck_protocols::hosts::{Detector, DetectorOutput, HostSight};
use landeck_protocols::order::{GroupChange, GroupWord, HolderId, HomeReport};
use landeck_wire::heartbeat::Heartbeat;
use landeck_wire::{HostIncarnation, HostNumber};

use super::{ARBITER, Inbound, World};

/// The words of one datagram.
const WORDS_MAX: usize = 64;

fn is_living(detector: &Detector) -> bool {
    detector.sight() != HostSight::Lost && detector.sight() != HostSight::Gone
}

impl World {
    fn next_word(&self) -> u64 {
        self.words.len() as u64 + 1
    }

    fn is_living(&self, host: usize, incarnation: u64) -> bool {
        let is_it =
            |detector: &Detector| detector.incarnation().0 == incarnation && is_living(detector);
        (host == 0 && incarnation == ARBITER.0) || self.detectors.get(&host).is_some_and(is_it)
    }

    /// A host that has begun is admitted; its former incarnation is gone.
    pub(super) fn admit(&mut self, host: usize, incarnation: u64, boot: u128) {
        let (local, own) = (self.local(0), (ARBITER, self.nodes[0].boot));
        if let Some(known) = self.detectors.get_mut(&host) {
            let former = known.incarnation();
            if former.0 > incarnation || (former.0 == incarnation && !is_living(known)) {
                return self.post(0, host, Inbound::Excluded(incarnation));
            }
            if former.0 < incarnation {
                let mut outputs = known.rebooted(boot, local);
                outputs.extend(known.said_gone(former, local));
                let next = known.succeeded_by(HostIncarnation(incarnation), local);
                self.judge(host, outputs);
                self.detectors.insert(host, next);
            }
        } else {
            let (number, incarnation) = (HostNumber(host as u16), HostIncarnation(incarnation));
            let detector = Detector::new(self.timing, number, incarnation, own, local);
            self.detectors.insert(host, detector);
        }
        let groups = 1..=self.setting.groups as u32;
        let standing = |group| Some((group, self.homes.standing(group)?.clone()));
        let standings = groups.filter_map(standing).collect();
        let number = self.words.len() as u64;
        self.post(0, host, Inbound::Welcome { incarnation, number, standings });
    }

    pub(super) fn heard_host(
        &mut self,
        host: usize,
        sealed_for: u64,
        number: u64,
        heartbeat: &Heartbeat,
    ) {
        let local = self.local(0);
        let Some(detector) = self.detectors.get_mut(&host) else { return };
        let is_current = detector.incarnation().0 == sealed_for;
        let outputs = detector.hear(number, heartbeat, local);
        let is_living = is_current && is_living(detector);
        self.judge(host, outputs);
        if is_living {
            self.send_words(host, heartbeat.word);
        }
    }

    fn send_words(&mut self, host: usize, applied: u64) {
        let missing: Vec<GroupWord> =
            self.words.iter().skip(applied as usize).take(WORDS_MAX).copied().collect();
        if !missing.is_empty() {
            self.post(0, host, Inbound::Words(missing));
        }
    }

    pub(super) fn look_arbiter(&mut self, drained: bool) {
        let (local, last) = (self.local(0), self.words.len() as u64);
        let hosts: Vec<usize> = self.detectors.keys().copied().collect();
        for host in hosts {
            // The kernel of a host with a stopped daemon answers.
            let answers = self.nodes[host].is_up && !self.nodes[host].is_paused;
            let answers = answers && self.passes(0, host) && self.passes(host, 0);
            let Some(detector) = self.detectors.get_mut(&host) else { continue };
            if answers && self.nodes[host].is_frozen {
                detector.kernel_answers(detector.incarnation(), local);
            }
            let outputs = detector.look(local, drained, last);
            self.judge(host, outputs);
        }
    }

    fn judge(&mut self, host: usize, outputs: Vec<DetectorOutput>) {
        for output in outputs {
            match output {
                DetectorOutput::Send { number, heartbeat } => {
                    let sealed_for = self.detectors.get(&host).map_or(0, |it| it.incarnation().0);
                    self.post(0, host, Inbound::Beat { host, sealed_for, number, heartbeat });
                }
                DetectorOutput::Lost { incarnation, .. } => {
                    self.note(format!("host {host} ({}) is lost", incarnation.0));
                    let next = self.next_word();
                    let words = self.homes.host_lost(HostNumber(host as u16), next);
                    self.give(words);
                }
                DetectorOutput::Gone { .. } => {}
                DetectorOutput::Exclude { incarnation } => {
                    self.post(0, host, Inbound::Excluded(incarnation.0));
                }
            }
        }
    }

    fn give(&mut self, words: Vec<GroupWord>) {
        if words.is_empty() {
            return;
        }
        for word in &words {
            self.note(format!("word {word:?}"));
            self.words.push(*word);
            if word.change == GroupChange::Lost {
                self.check_loss(word.group);
            }
        }
        for host in 0..self.nodes.len() {
            let is_member = host == 0 || self.detectors.get(&host).is_some_and(is_living);
            if is_member {
                self.post(0, host, Inbound::Words(words.clone()));
            }
        }
    }

    pub(super) fn register(&mut self, host: usize, incarnation: u64, group: u32) {
        if self.is_living(host, incarnation) {
            let (next, name) = (self.next_word(), format!("g{group}"));
            let words = self.homes.register(&name, HostNumber(host as u16), next);
            self.give(words);
        }
    }

    pub(super) fn left(&mut self, host: usize, incarnation: u64, (group, holder): (u32, HolderId)) {
        let standing = self.homes.standing(group);
        let is_there = standing.is_some_and(|standing| standing.registered.contains(&holder));
        if self.is_living(host, incarnation) && is_there {
            let next = self.next_word();
            let words = self.homes.no_process(group, HostNumber(host as u16), next);
            self.give(words);
        }
    }

    pub(super) fn reported(
        &mut self,
        (host, incarnation): (usize, u64),
        of: (u32, u64),
        report: HomeReport,
    ) {
        if !self.is_living(host, incarnation) {
            return;
        }
        let (local, next) = (self.local(0), self.next_word());
        let detectors = &self.detectors;
        let reaches = |host: HostNumber| {
            let detector = detectors.get(&usize::from(host.0));
            host == HostNumber::ARBITER || detector.is_some_and(|it| !it.is_in_doubt(local))
        };
        let words = self.homes.report(of, HostNumber(host as u16), report, reaches, next);
        self.give(words);
    }
}
