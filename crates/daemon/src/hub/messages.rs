//! The messages of other daemons.

use landeck_protocols::hosts::HostStanding;
use landeck_trust::KeyHash;
use landeck_wire::{ControlMessage, JobId, ProcessId};

use super::*;
use crate::observers::log;
use crate::observers::pictures::picture_message;

/// The reason for the end of a daemon that has said goodbye.
const IN_ORDER: &str = "its daemon has ended in order";
/// The reason for the end of one that comes back.
const STARTED_AGAIN: &str = "its daemon has started again";
/// The answer to a return ticket that is none.
const VOID_TICKET: &str = "its return ticket is void: it was removed, or came back with another one. landeck vm add adds it";

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

    /// Takes a message of the arbiter, which is this host.
    pub(crate) fn take_own(&mut self, message: DaemonMessage) {
        self.message(self.own(), message);
        self.settle();
    }

    fn message(&mut self, from: HostNumber, message: DaemonMessage) {
        let is_arbiter = self.members.is_arbiter();
        let is_from_arbiter = from == HostNumber::ARBITER;
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
            DaemonMessage::Ask(content) if is_arbiter => self.asked(from, content),
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
            DaemonMessage::PartsKept { segments } if is_arbiter => {
                self.members.parts_kept(from, &segments)
            }
            DaemonMessage::Restarted { host, run } if is_from_arbiter => {
                self.told_of_restart(host, run)
            }
            DaemonMessage::NumbersWanted { job, request } if is_arbiter => {
                let outcome = self.members.lease_numbers(job, from, request);
                self.send(from, &DaemonMessage::Numbers { job, request, outcome });
                Vec::new()
            }
            DaemonMessage::NameAsked { job, pid, request, question } if is_arbiter => {
                self.answer_name(job, (from, pid), request, question);
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
            DaemonMessage::GatewaySilent { .. }
            | DaemonMessage::KernelWanted { .. }
            | DaemonMessage::KernelAnswers { .. }
            | DaemonMessage::StepBroken { .. }
            | DaemonMessage::Narrow => {
                self.for_ways(from, message);
                Vec::new()
            }
            DaemonMessage::Dial(message) => {
                self.parts.meet_returned(from, message.from);
                self.with_lanes(|lanes, tools| lanes.heard(tools, from, message));
                Vec::new()
            }
            DaemonMessage::Goodbye { incarnation } => self.said_goodbye(from, incarnation),
            _ => {
                self.distrust(from, DaemonMessage::NAME);
                Vec::new()
            }
        };
        self.follow(events);
    }

    /// A host asks for a word.
    fn asked(&mut self, from: HostNumber, content: WordContent) -> Vec<MembersEvent> {
        let Some(incarnation) = self.members.host(from).map(|entry| entry.incarnation) else {
            return Vec::new();
        };
        let content = self.placed(content);
        self.members.asked(from, incarnation, content)
    }

    /// Keeps something for the jobs. No word follows from it yet.
    pub(super) fn for_jobs(&mut self, incoming: Incoming) -> Vec<MembersEvent> {
        self.inbox.push_back(incoming);
        Vec::new()
    }

    /// Takes a question of an observer on another host, or the answer for one on this host.
    fn for_observers(&mut self, from: HostNumber, message: DaemonMessage) {
        match message {
            DaemonMessage::PictureWanted { job, request, is_glance } => {
                let (part, ways) = (self.parts.get(job), self.ways_over_gateways());
                let answer = picture_message(part, self.own(), ways, (request, is_glance));
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

    /// The hosts that this one reaches over gateways, and the names of these.
    fn ways_over_gateways(&self) -> Vec<(u16, Vec<String>)> {
        let now = self.clock.now();
        let name = |host: &HostNumber| {
            self.members.host(*host).map_or_else(String::new, |entry| entry.name.clone())
        };
        let hosts = self.members.hosts().map(|entry| entry.host);
        let over =
            hosts.filter_map(|host| match self.trunks.taken_way(host, now)?.hosts.as_slice() {
                [_, gateways @ .., _] if !gateways.is_empty() => {
                    Some((host.0, gateways.iter().map(name).collect()))
                }
                _ => None,
            });
        over.collect()
    }

    /// The daemon of a host ends in order. The word of that is given when the jobs have heard of it.
    fn said_goodbye(
        &mut self,
        from: HostNumber,
        incarnation: HostIncarnation,
    ) -> Vec<MembersEvent> {
        self.has_arbiter_ended |= from == HostNumber::ARBITER;
        self.is_over(from, incarnation, IN_ORDER);
        Vec::new()
    }

    /// Nothing of this incarnation of a host runs any more, for this reason.
    fn is_over(&mut self, host: HostNumber, incarnation: HostIncarnation, why: &str) {
        let now = self.now();
        // The reason comes before the word that follows.
        self.trunks.leave(&self.reactor, host, why.to_owned(), now);
        self.settle();
        let events = self.watch.said_gone(host, incarnation, now);
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
            Ok(DaemonMessage::Return { host, secret, incarnation, port, addresses, facts }) => {
                let addresses = addresses.iter().map(|address| SocketAddr::new(*address, port));
                self.admit_again(host, &secret, (key, incarnation), addresses.collect(), &facts)
            }
            _ => {
                Err("this daemon understands no such request: install one release on all hosts"
                    .into())
            }
        };
        let answer = answer.unwrap_or_else(|why| DaemonMessage::Refused { why });
        self.trunks.answer_guest(trunk, &answer.encode());
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
        Ok(self.admitted(host, facts))
    }

    /// Admits a host again that was lost, under its number. What it was before is over first.
    fn admit_again(
        &mut self,
        host: HostNumber,
        secret: &[u8; 16],
        (key, incarnation): (KeyHash, HostIncarnation),
        addresses: Vec<SocketAddr>,
        facts: &HostFacts,
    ) -> Result<DaemonMessage, String> {
        let known = self.members.standing(host).map(|(entry, standing)| (entry.clone(), standing));
        let Some((known, standing)) = known.filter(|_| self.tickets.is_good(host, secret)) else {
            return Err(VOID_TICKET.to_owned());
        };
        let HostEntry { name, incarnation: before, .. } = known;
        self.facts.admits(&name, facts).map_err(|error| error.to_string())?;
        match standing {
            HostStanding::Gone => {
                let (key, cores) = (key.0, facts.cores);
                let place = self.place_of(&name, &addresses);
                let entry = HostEntry { host, incarnation, name, key, addresses, cores, place };
                self.admit_entry(entry);
                Ok(self.admitted(host, facts))
            }
            standing => {
                self.is_over(host, before, STARTED_AGAIN);
                if standing == HostStanding::Living && !self.watch.knows(host, before) {
                    self.never_came(host, before);
                }
                Ok(DaemonMessage::StillThere)
            }
        }
    }

    /// A host was admitted and its daemon was never connected, so nobody watches it: it is over.
    fn never_came(&mut self, host: HostNumber, incarnation: HostIncarnation) {
        let lost = WordContent::HostLost { host, incarnation, silent_ms: 0 };
        let gone = WordContent::HostGone { host, incarnation };
        self.inbox.extend([lost, gone].map(Incoming::Verdict));
    }

    /// The answer to a host that was admitted.
    fn admitted(&mut self, host: HostNumber, facts: &HostFacts) -> DaemonMessage {
        self.facts_of.insert(host, facts.clone());
        match self.enrolment(host) {
            Some(enrolment) => DaemonMessage::Admitted(Box::new(enrolment)),
            None => DaemonMessage::Refused { why: "it is no member of the machine".to_owned() },
        }
    }

    /// Everything that a host learns when it is admitted.
    pub(crate) fn enrolment(&self, host: HostNumber) -> Option<Enrolment> {
        let arbiter = self.station.own.clone();
        let own = self.members.host(host)?.clone();
        let Station { machine, options, .. } = self.station;
        let is_gateway = |entry: &&HostEntry| entry.place.is_gateway && entry.host != host;
        let gateways = self.members.hosts().filter(is_gateway).cloned().collect();
        Some(Enrolment { machine, options, own, arbiter, gateways })
    }

    /// Admits a host to the machine, and makes the word that says so. Only the arbiter does. A host that is gone leaves its
    /// number to the next one with its name.
    pub(crate) fn admit(
        &mut self,
        name: String,
        key: KeyHash,
        incarnation: HostIncarnation,
        addresses: Vec<SocketAddr>,
        cores: u16,
    ) -> HostNumber {
        let host = self.members.number_for(&name);
        let place = self.place_of(&name, &addresses);
        self.admit_entry(HostEntry {
            host,
            incarnation,
            name,
            key: key.0,
            addresses,
            cores,
            place,
        });
        host
    }

    fn admit_entry(&mut self, entry: HostEntry) {
        // The link is there before the first message for it.
        let now = self.now();
        self.trunks.add_host(&self.reactor, entry.clone(), now);
        match self.members.admit(entry) {
            Ok(events) => self.follow(events),
            // No earlier incarnation has its number, or that is gone.
            Err(error) => self.say(format!("landeckd: {error}")),
        }
    }
}
