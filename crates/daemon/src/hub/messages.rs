//! The messages of other daemons.

use landeck_trust::KeyHash;
use landeck_wire::{ControlMessage, JobId, ProcessId};

use super::*;
use crate::observers::log;
use crate::observers::pictures::picture_message;

/// The reason for the end of a daemon that has said goodbye.
const IN_ORDER: &str = "its daemon has ended in order";

impl Hub {
    /// Takes a content that another daemon has sent.
    pub(super) fn content(&mut self, from: HostNumber, class: EnvelopeClass, content: &[u8]) {
        let now = self.now();
        self.note_heard(from, now);
        match class {
            EnvelopeClass::Heartbeat => {
                if let Some(beat) = self.heartbeats.take_envelope(from, content, now) {
                    self.heard(beat);
                }
            }
            EnvelopeClass::Job | EnvelopeClass::Bulk => match JobMessage::decode(content) {
                Ok(message) => self.inbox.push_back(Incoming::Message(from, message)),
                Err(_) => self.distrust(from, JobMessage::NAME),
            },
            EnvelopeClass::Daemon => match DaemonMessage::decode(content) {
                Ok(message) => self.message(from, message),
                Err(_) => self.distrust(from, DaemonMessage::NAME),
            },
            EnvelopeClass::Probe | EnvelopeClass::Receipt => {}
        }
    }

    fn distrust(&mut self, from: HostNumber, what: &str) {
        self.say(format!(
            "landeckd: host {} sent {what} that this release does not know: install one release on all hosts",
            from.0
        ));
    }

    fn message(&mut self, from: HostNumber, message: DaemonMessage) {
        let is_arbiter = self.members.is_arbiter();
        let is_from_arbiter = from == HostNumber::ARBITER;
        let incarnation = self.members.host(from).map(|entry| entry.incarnation);
        let events = match message {
            DaemonMessage::Welcome(snapshot) if is_from_arbiter => self.members.welcome(snapshot),
            DaemonMessage::Word(word) if is_from_arbiter => self.members.take(word),
            DaemonMessage::Excluded { incarnation } if is_from_arbiter => {
                self.watch.excluded(incarnation);
                Vec::new()
            }
            DaemonMessage::Numbers { job, outcome, .. } if is_from_arbiter => {
                self.take_numbers(job, outcome);
                Vec::new()
            }
            DaemonMessage::Said(text) if is_arbiter => self.for_jobs(Incoming::Said(from, text)),
            DaemonMessage::Machine(message) => self.for_jobs(Incoming::Machine(from, message)),
            DaemonMessage::Resend { .. } if is_arbiter => self.members.renewed(from),
            DaemonMessage::Ask(content) if is_arbiter => match incarnation {
                Some(incarnation) => self.members.asked(from, incarnation, content),
                None => Vec::new(),
            },
            DaemonMessage::PairBroken { job, far, cause } if is_arbiter => {
                self.pair_broken(job, far, cause);
                Vec::new()
            }
            DaemonMessage::PartAdded { job, segment } if is_arbiter => {
                self.members.part_added(job, segment, from);
                Vec::new()
            }
            DaemonMessage::PartRemoved { segment } if is_arbiter => {
                self.members.part_removed(segment, from)
            }
            DaemonMessage::NumbersWanted { job, request } if is_arbiter => {
                let outcome = self.members.lease_numbers(job, from, request);
                self.send(from, &DaemonMessage::Numbers { job, request, outcome });
                Vec::new()
            }
            DaemonMessage::NameAsked { job, pid, request, question } if is_arbiter => {
                let answer = self.names.ask(job, from, pid, question);
                self.send(from, &DaemonMessage::NameAnswered { request, answer });
                Vec::new()
            }
            DaemonMessage::NameAnswered { request, answer } if is_from_arbiter => {
                self.name_answered(request, answer);
                Vec::new()
            }
            DaemonMessage::PictureWanted { .. }
            | DaemonMessage::Picture { .. }
            | DaemonMessage::StacksWanted { .. }
            | DaemonMessage::Stacks { .. }
            | DaemonMessage::LogWanted { .. }
            | DaemonMessage::Log { .. } => {
                self.for_observers(from, message);
                Vec::new()
            }
            DaemonMessage::Dial(message) => {
                self.parts.meet_returned(from, message.from);
                self.with_lanes(|lanes, tools| lanes.heard(tools, from, message));
                Vec::new()
            }
            DaemonMessage::Narrow => {
                self.trunks.keep_short(from);
                Vec::new()
            }
            DaemonMessage::Goodbye { incarnation } => {
                self.said_goodbye(from, incarnation);
                Vec::new()
            }
            _ => {
                self.distrust(from, DaemonMessage::NAME);
                Vec::new()
            }
        };
        self.follow(events);
    }

    /// Keeps something for the jobs. No word follows from it yet.
    fn for_jobs(&mut self, incoming: Incoming) -> Vec<MembersEvent> {
        self.inbox.push_back(incoming);
        Vec::new()
    }

    /// Takes a question of an observer on another host, or the answer for one on this host.
    fn for_observers(&mut self, from: HostNumber, message: DaemonMessage) {
        match message {
            DaemonMessage::PictureWanted { job, request, is_glance } => {
                let part = self.parts.get(job);
                let answer = picture_message(part, self.own(), request, is_glance);
                self.send(from, &answer);
            }
            DaemonMessage::StacksWanted { job, request, processes } => {
                self.search_stacks(job, (from, request), &processes);
            }
            DaemonMessage::Stacks { request, texts } => {
                self.with_pictures(|all, tools| all.stacks_came(tools, from, request, texts));
            }
            DaemonMessage::LogWanted { request } => {
                self.send(from, &DaemonMessage::Log { request, lines: log::lines() });
            }
            DaemonMessage::Log { request, lines } => {
                self.with_pictures(|all, tools| all.log_came(tools, from, request, lines));
            }
            DaemonMessage::Picture { request, picture } => {
                self.with_pictures(|all, tools| all.answered(tools, from, request, *picture));
            }
            _ => {}
        }
    }

    /// The daemon of a host ends in order.
    fn said_goodbye(&mut self, from: HostNumber, incarnation: HostIncarnation) {
        let now = self.now();
        // The reason comes before the word that follows.
        self.trunks.leave(&self.reactor, from, IN_ORDER.into(), now);
        self.settle();
        let events = self.watch.said_gone(from, incarnation, now);
        self.judge(events);
    }

    /// Begins to search stacks for an observer on another host.
    fn search_stacks(&mut self, job: JobId, asker: (HostNumber, u64), processes: &[ProcessId]) {
        let Self { pictures, reactor, parts, .. } = self;
        let answer = pictures.searches.begin(reactor, parts.get(job), asker, processes);
        if let Some((to, answer)) = answer {
            self.send(to, &answer);
        }
    }

    pub(super) fn take_numbers(
        &mut self,
        job: JobId,
        outcome: Result<landeck_protocols::hosts::NumberBlock, String>,
    ) {
        match outcome {
            Ok(block) => self.parts.take_numbers(job, block.first..block.first + block.count),
            Err(cause) => self.tell(WordContent::JobEnds { job, code: 1, cause }),
        }
    }

    /// Takes the content of a caller that is no member: it must be a request to join.
    pub(super) fn guest(&mut self, trunk: u64, key: KeyHash, content: &[u8]) {
        let answer = match DaemonMessage::decode(content) {
            Ok(DaemonMessage::Join { secret, name, incarnation, port, addresses, facts }) => {
                let addresses = addresses.iter().map(|address| SocketAddr::new(*address, port));
                self.admit_guest(&secret, name, (key, incarnation), addresses.collect(), &facts)
            }
            _ => {
                Err("this daemon understands no such request: install one release on all hosts"
                    .into())
            }
        };
        let answer = answer.unwrap_or_else(|why| DaemonMessage::Refused { why });
        self.trunks.answer_guest(&self.reactor, trunk, &answer.encode());
    }

    fn admit_guest(
        &mut self,
        secret: &[u8; 16],
        name: String,
        (key, incarnation): (KeyHash, HostIncarnation),
        addresses: Vec<SocketAddr>,
        facts: &HostFacts,
    ) -> Result<DaemonMessage, String> {
        let now_ns = u64::try_from(self.now().as_nanos()).unwrap_or(u64::MAX);
        // Facts come first, so that a token is not spent on a host that does not fit.
        self.facts.admits(&name, facts).map_err(|error| error.to_string())?;
        self.tokens.redeem(now_ns, secret).map_err(|error| error.to_string())?;
        let host = self.admit(name, key, incarnation, addresses, facts.cores);
        Ok(DaemonMessage::Admitted {
            machine: self.station.machine,
            host,
            arbiter: self.station.own.clone(),
            options: self.station.options,
        })
    }

    /// Admits a host to the machine, and makes the word that says so. Only the arbiter does.
    pub(crate) fn admit(
        &mut self,
        name: String,
        key: KeyHash,
        incarnation: HostIncarnation,
        addresses: Vec<SocketAddr>,
        cores: u16,
    ) -> HostNumber {
        let host = self.members.next_number();
        let entry = HostEntry { host, incarnation, name, key: key.0, addresses, cores };
        // The link is there before the first message for it.
        let now = self.now();
        self.trunks.add_host(entry.clone(), now);
        match self.members.admit(entry) {
            Ok(events) => self.follow(events),
            // A number that was never given has no earlier incarnation.
            Err(error) => self.say(format!("landeckd: {error}")),
        }
        host
    }
}
