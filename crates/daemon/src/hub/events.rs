//! The consequences of events of trunks, words, heartbeats and lanes.

use landeck_protocols::door::{Object, ObjectAnswer, ObjectQuestion, Verdict};
use landeck_protocols::hosts::run_of;
use landeck_wire::JobId;
use landeck_wire::preamble::Preamble;
use tracing::info;

use super::*;
use crate::calls::listener::Caller;
use crate::lanes::{BegunStream, CallRefusal};
use crate::trunks::SHELL;
use crate::trunks::trunk::TrunkError;
use landeck_transports::lanes::silence::SHORT_SEGMENT_BYTES;

/// The advice about a host none of whose ports was reached.
const MESSAGES_NEED_A_PORT: &str = "Programs that exchange no messages between hosts run all the same; messages need a port: do firewalls let it \
     through, for TCP and UDP? --port-range names ports";

impl Hub {
    /// Handles the events of trunks and lanes until there are none.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            while let Some(event) = self.trunks.take_event() {
                is_quiet = false;
                self.trunk_event(event);
            }
            for event in self.lanes.take_events() {
                is_quiet = false;
                match event {
                    LanesEvent::NumbersWanted => self.ask_numbers(),
                    LanesEvent::NameAsked { job, pid, request, question } => {
                        self.ask_name(job, pid, request, question);
                    }
                    LanesEvent::Granted { receiver, source, position } => {
                        self.relay.granted(receiver, source, position);
                    }
                    LanesEvent::HasRoom { process } => self.relay.has_room(process),
                    LanesEvent::RelayCalled(caller) => self.relay.serve(*caller),
                    LanesEvent::RelayTold { process } => self.relay.told(process),
                    LanesEvent::Ended { job, process, end } => {
                        self.tell(WordContent::ProcessEnded { job, process, end });
                    }
                    LanesEvent::Came { job, process, kind } => {
                        self.tell(WordContent::ProcessCame { job, process, kind });
                    }
                    LanesEvent::Returned { job, process } => {
                        self.tell(WordContent::ProcessReturned { job, process });
                    }
                    LanesEvent::PairBroken { job, far, cause } => self.tell_pair(job, far, cause),
                    LanesEvent::Refused { host, why } => self.refused_in_tunnel(host, why),
                }
            }
            for stream in self.lanes.take_begun() {
                is_quiet = false;
                self.stream_begun(&stream);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// Tells the arbiter of two processes without a connection. While this host holds, nothing reaches the arbiter, and the
    /// report will come again.
    fn tell_pair(&mut self, job: JobId, far: HostNumber, cause: String) {
        if self.members.is_arbiter() {
            self.pair_broken(job, far, cause);
        } else if !self.holds {
            self.send(HostNumber::ARBITER, &DaemonMessage::PairBroken { job, far, cause });
        }
    }

    /// Ends a job two processes of which have no connection; on the arbiter. While it doubts that the host of one of them
    /// lives, the host's loss may be the cause, and the report will come again.
    pub(super) fn pair_broken(&mut self, job: JobId, far: HostNumber, cause: String) {
        if !self.watch.doubts(far, self.now()) {
            self.tell(WordContent::JobEnds { job, code: 1, cause });
        }
    }

    fn trunk_event(&mut self, event: TrunksEvent) {
        match event {
            TrunksEvent::Up(host) => {
                info!("trunk to host {}: connected", host.0);
                self.up(host);
            }
            TrunksEvent::Restarted(host, run) => {
                info!("trunk to host {}: its daemon has started again, as run {run}", host.0);
                self.restarted(host, run);
            }
            TrunksEvent::Down(host, why) => {
                info!("trunk to host {}: down for good: {why}", host.0);
                self.down(host, why);
            }
            TrunksEvent::Narrow(host) => {
                info!("trunk to host {}: long packets are lost", host.0);
                self.narrow(host);
            }
            TrunksEvent::Content { from, class, content } => self.content(from, class, &content),
            TrunksEvent::Recognised(token) => self.listener.recognised(token),
            TrunksEvent::Refused(token, why, from) => self.listener.refused(token, why, from),
            TrunksEvent::Guest { trunk, key, content } => self.guest(trunk, key, &content),
        }
    }

    fn up(&mut self, host: HostNumber) {
        let now = self.now();
        if self.members.is_arbiter() && self.trunks.dependence(host).is_some() {
            let name = self.members.host(host).map_or("", |entry| entry.name.as_str());
            self.say(format!(
                "landeck: none of the ports of host {name} was reached, so {SHELL} carries its output and input. \
                 {MESSAGES_NEED_A_PORT}"
            ));
        }
        // A host is judged from its first trunk on. Before, the link's own limit holds.
        if let Some(incarnation) = self.members.host(host).map(|entry| entry.incarnation) {
            self.watch.add(host, incarnation, now);
        }
        if let Some((_, secret)) = self.trunks.newest_secret(host) {
            let secret = *secret;
            let port = self.members.host(host).and_then(|entry| entry.addresses.first());
            let port = port.map(SocketAddr::port);
            let socket = self.trunks.socket(host);
            if let Err(error) = self.heartbeats.begin(host, &secret, socket, port, now) {
                self.say(format!("landeckd: no heartbeats to host {}: {error}", host.0));
            }
        }
        let events = self.members.renewed(host);
        self.follow(events);
        self.count_ways(host);
        self.with_lanes(|lanes, tools| lanes.host_up(tools, host));
        self.inbox.push_back(Incoming::Up(host));
    }

    /// The daemon of a host has started again. What two other hosts say to each other is kept by the arbiter on its way. So the
    /// arbiter tells all of them what is lost, and nothing follows from a trunk between them.
    pub(super) fn restarted(&mut self, host: HostNumber, run: u32) {
        if !self.members.is_arbiter() {
            return;
        }
        self.members.restarted(host, run);
        let own = self.own();
        if host != own {
            self.with_lanes(|lanes, tools| lanes.host_restarted(tools, host, run));
        }
        if self.trunks.is_narrow(host) {
            self.send(host, &DaemonMessage::Narrow);
        }
        let others = self.members.hosts().map(|entry| entry.host);
        let others: Vec<HostNumber> = others.filter(|it| ![own, host].contains(it)).collect();
        for other in others {
            self.send(other, &DaemonMessage::Restarted { host, run });
        }
        self.inbox.push_back(Incoming::Restarted(host));
    }

    /// The arbiter says that the daemon of a host has started again: what is asked of that is asked again.
    pub(super) fn told_of_restart(&mut self, host: HostNumber, run: u32) -> Vec<MembersEvent> {
        let now = self.now();
        // The next run of the arbiter goes on with its streams, so its trunk stays.
        if host != HostNumber::ARBITER {
            self.trunks.host_restarted(&self.reactor, host, run, now);
        }
        self.with_lanes(|lanes, tools| lanes.host_restarted(tools, host, run));
        if self.members.is_arbiter() {
            // Its daemon has started again itself, and knows that.
            return Vec::new();
        }
        self.for_jobs(Incoming::Restarted(host))
    }

    /// The jobs have taken up what is left of the run before of this daemon: says what the arbiter may not have heard of that.
    pub(crate) fn resumed(&mut self) {
        let segments = self.parts.segments();
        self.send(HostNumber::ARBITER, &DaemonMessage::PartsKept { segments });
        let known = self.members.host(self.own()).map(|entry| entry.addresses.clone());
        let is_known = |own: SocketAddr| known.iter().flatten().any(|known| *known == own);
        if !with_port(&self.addresses, self.listener.port()).into_iter().all(is_known) {
            self.tell_addresses();
        }
    }

    /// Long packets do not pass between this host and another one: its daemon learns that, and so do people.
    fn narrow(&mut self, host: HostNumber) {
        self.send(host, &DaemonMessage::Narrow);
        let name = self.members.host(host).map_or_else(|| host.0.to_string(), |it| it.name.clone());
        let own = &self.station.own.name;
        let (thousands, rest) = (SHORT_SEGMENT_BYTES / 1_000, SHORT_SEGMENT_BYTES % 1_000);
        self.say(format!(
            "landeckd: a connection of {own} and {name} carried short packets, and long ones seem to be lost. Their further \
             connections use segments of at most {thousands},{rest:03} bytes. Check the MTU on the way"
        ));
    }

    fn down(&mut self, host: HostNumber, why: String) {
        self.with_lanes(|lanes, tools| lanes.host_down(tools, host));
        let concerns_jobs = self.members.is_arbiter() || host == HostNumber::ARBITER;
        if concerns_jobs && !(host == HostNumber::ARBITER && self.is_arbiter_down) {
            self.is_arbiter_down |= host == HostNumber::ARBITER;
            self.inbox.push_back(Incoming::Down(host, why));
        }
    }

    /// Carries out what follows from words.
    pub(crate) fn follow(&mut self, events: Vec<MembersEvent>) {
        let mut events = VecDeque::from(events);
        while let Some(event) = events.pop_front() {
            match event {
                MembersEvent::Send(to, message) => self.send(to, &message),
                MembersEvent::Given(word) => {
                    self.names.take(&word.content);
                    self.inbox.push_back(Incoming::Given(word));
                }
                MembersEvent::Welcomed => {
                    let entries: Vec<HostEntry> = self.members.hosts().cloned().collect();
                    entries.into_iter().for_each(|entry| self.joined(&entry));
                    self.inbox.push_back(Incoming::Welcomed);
                }
                MembersEvent::Applied(word, outputs) => {
                    match &word.content {
                        WordContent::HostJoined(HostEntry { host, name, .. }) => {
                            info!("word {}: {name} joins as host {}", word.number, host.0);
                        }
                        WordContent::HostMoved { host, addresses, place, .. } => {
                            let networks = place.networks.len();
                            info!(
                                "word {}: host {} is at {addresses:?}, in {networks} described networks",
                                word.number, host.0
                            );
                        }
                        content => info!("word {}: {content:?}", word.number),
                    }
                    outputs.into_iter().for_each(|output| self.apply(output));
                    if let WordContent::ProcessEnded { job, process, .. } = word.content {
                        self.relay.process_ended(process);
                        self.with_lanes(|lanes, tools| lanes.process_ended(tools, job, process));
                    }
                    self.inbox.push_back(Incoming::Word(word));
                }
            }
        }
    }

    fn apply(&mut self, output: landeck_protocols::hosts::FollowerOutput) {
        use landeck_protocols::hosts::{FarState, FarSubject, FollowerOutput};
        match output {
            FollowerOutput::Joined(entry) => self.joined(&entry),
            FollowerOutput::Moved { host, addresses, place } => {
                self.trunks.host_moved(host, addresses, place);
                if let Some(entry) = self.members.host(host).cloned() {
                    self.note_gateway(&entry);
                }
                self.count_ways(host);
            }
            FollowerOutput::Far(change) => {
                self.parts.write(&change);
                if let (FarSubject::Process(process), FarState::Came { .. }) =
                    (change.subject, change.state)
                {
                    self.with_lanes(|lanes, tools| lanes.process_came(tools, process));
                }
                if let FarSubject::Host(host, _) = change.subject {
                    self.relay.host_lost(host);
                    self.trunks.host_lost(host);
                    self.with_lanes(|lanes, tools| lanes.host_lost(tools, host));
                    if change.state == FarState::Gone {
                        self.heartbeats.end(host);
                    }
                }
            }
            FollowerOutput::JobEnds { job, .. } => self.parts.end(job),
            FollowerOutput::JobOver { job } => self.lanes.job_over(job),
            FollowerOutput::Resend { .. } => {}
        }
    }

    fn joined(&mut self, entry: &HostEntry) {
        let now = self.now();
        match entry.host == self.own() {
            true => self.trunks.set_place(entry.host, entry.place.clone()),
            false => self.trunks.add_host(&self.reactor, entry.clone(), now),
        }
        self.note_gateway(entry);
        self.count_ways(entry.host);
        self.parts.note_host(entry);
    }

    /// Keeps a gateway for the next run of this daemon, whose way to the arbiter may lead over it.
    fn note_gateway(&mut self, entry: &HostEntry) {
        let gateways = &mut self.station.gateways;
        let before = gateways.iter().position(|known| known.host == entry.host);
        let is_known = before.is_some_and(|at| gateways[at] == *entry);
        let is_one = entry.place.is_gateway && entry.host != self.station.own.host;
        if is_known || (before.is_none() && !is_one) {
            return;
        }
        gateways.retain(|known| known.host != entry.host);
        if is_one {
            gateways.push(entry.clone());
        }
        self.keep_place();
    }

    /// Tells the lanes how many ways lead to a host. A gateway adds some to other hosts.
    fn count_ways(&mut self, host: HostNumber) {
        let now = self.now();
        let is_gateway = self.trunks.is_gateway(host);
        let hosts = self.members.hosts().map(|entry| entry.host);
        for host in hosts.filter(|other| is_gateway || *other == host) {
            self.lanes.add_host(host, self.trunks.ways_max(host, now));
        }
    }

    /// Takes a heartbeat.
    pub(super) fn heard(&mut self, beat: HeardBeat) {
        let now = self.now();
        let HeardBeat { from, number, heartbeat } = beat;
        self.note_heard(from, now);
        // A host does not ask for words that a heartbeat knows and it does not: they are on their way over a numbered stream,
        // and the arbiter sends them again when the trunk is renewed.
        if self.members.is_arbiter() {
            self.members.applied(from, heartbeat.incarnation, run_of(number), heartbeat.word);
        }
        let events = self.watch.hear(from, number, &heartbeat, now);
        self.judge(events);
        if let Some(from) = self.watch.leased_from() {
            self.journal.note_lease(from);
        }
    }

    /// Looks at the time: sends heartbeats, and notices lost hosts.
    pub(super) fn look(&mut self) {
        let now = self.now();
        if self.watch.next_look().is_none_or(|at| now < at) {
            return;
        }
        if self.members.is_arbiter() {
            let hosts: Vec<HostNumber> = self.members.hosts().map(|entry| entry.host).collect();
            for host in hosts {
                let silence = self.trunks.socket(host).and_then(peer::kernel_silence);
                if let (Some(silence), Some(incarnation)) = (silence, self.trunks.incarnation(host))
                {
                    self.watch.kernel_answers(host, incarnation, now.saturating_sub(silence));
                }
            }
        }
        let drained = std::mem::replace(&mut self.is_drained, true);
        let events = self.watch.look(now, drained, self.members.last());
        self.judge(events);
        self.look_at_unheard(now);
    }

    pub(super) fn judge(&mut self, events: Vec<WatchEvent>) {
        for event in events {
            if !matches!(event, WatchEvent::Beat { .. }) {
                info!("heartbeats: {event:?}");
            }
            match event {
                WatchEvent::Beat { to, number, heartbeat } => {
                    let now = self.now();
                    if let Some(bytes) = self.heartbeats.send(to, number, &heartbeat, now) {
                        let class = EnvelopeClass::Heartbeat;
                        self.trunks.send_unnumbered(to, class, &bytes);
                    }
                }
                WatchEvent::Lost { host, incarnation, silent } => {
                    let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
                    let word = WordContent::HostLost { host, incarnation, silent_ms };
                    self.inbox.push_back(Incoming::Verdict(word));
                }
                WatchEvent::Gone { host, incarnation } => {
                    let word = WordContent::HostGone { host, incarnation };
                    self.inbox.push_back(Incoming::Verdict(word));
                }
                WatchEvent::Exclude { host, incarnation } => {
                    self.send(host, &DaemonMessage::Excluded { incarnation });
                }
                WatchEvent::Ended(end) => {
                    let why = match end {
                        HostEnd::Expired { silent } => {
                            format!("it did not answer for {:.1} s", silent.as_secs_f64())
                        }
                        HostEnd::Excluded => {
                            "it has called this host lost, and goes on without it".to_owned()
                        }
                    };
                    self.down(HostNumber::ARBITER, why);
                }
            }
        }
    }

    /// Asks the arbiter for numbers of groups where a segment needs them.
    pub(super) fn ask_numbers(&mut self) {
        if self.holds {
            // The arbiter may have called this host lost, and another one may have the numbers.
            return;
        }
        for (job, request) in self.parts.ask_numbers() {
            self.send(HostNumber::ARBITER, &DaemonMessage::NumbersWanted { job, request });
        }
    }

    /// Asks the arbiter about a name of a job.
    fn ask_name(&mut self, job: JobId, pid: u32, request: u64, question: ObjectQuestion) {
        let asked = DaemonMessage::NameAsked { job, pid, request, question };
        self.send(HostNumber::ARBITER, &asked);
    }

    /// Answers a question of a process about a name of a job; on the arbiter. A job that is over has no names, and gets none.
    pub(super) fn answer_name(
        &mut self,
        job: JobId,
        (host, pid): (HostNumber, u32),
        request: u64,
        question: ObjectQuestion,
    ) {
        let knows_job =
            self.members.arbiter().is_some_and(|it| it.jobs().any(|known| known == job));
        let answer = match knows_job {
            true => self.names.ask(job, host, pid, question),
            false => ObjectAnswer::bare(Verdict::NotAlive),
        };
        self.send(host, &DaemonMessage::NameAnswered { request, answer });
    }

    /// Passes an answer of the arbiter on. The owner of the name may be a guest of another host: whoever knows the name
    /// may send to it.
    pub(super) fn name_answered(&mut self, request: u64, answer: ObjectAnswer) {
        let Object { number, owner, .. } = answer.object;
        // An answer about no object has no number.
        if number > 0
            && let Some(segment) = self.lanes.asker_of_name(request)
        {
            self.parts.meet(segment, owner, self.members.words());
        }
        self.with_lanes(|lanes, tools| lanes.name_answered(tools, request, answer));
    }

    /// A caller has lost its place among the strangers.
    pub(super) fn oust(&mut self, caller: u64) {
        let now = self.now();
        self.trunks.oust(&self.reactor, caller, &TrunkError::Handshake, now);
    }

    /// Goes on with a stranger whose bytes have come.
    pub(super) fn call(&mut self, token: u64) {
        let Some(caller) = self.listener.read(token) else { return };
        let now = self.now();
        let address = caller.address;
        self.meet_caller(&caller);
        match caller.preamble.purpose {
            Purpose::Trunk => self.trunks.called(caller, now),
            Purpose::Lane | Purpose::Tunnel => {
                let outcome = self.with_lanes(|lanes, tools| lanes.called(tools, caller));
                self.judge_caller(token, address, outcome.err());
            }
            Purpose::Measure => match self.with_links(|links, tools| links.called(tools, caller)) {
                Ok(()) => self.listener.recognised(token),
                Err(why) => self.listener.refused(token, why, address),
            },
            Purpose::Pass => self.pass(caller),
            Purpose::Relay => {
                let outcome = self.with_lanes(|lanes, tools| lanes.relay_called(tools, caller));
                self.judge_caller(token, address, outcome.as_ref().err().copied());
                if let Ok(caller) = outcome {
                    self.relay.serve(caller);
                }
            }
        }
    }

    /// A process elsewhere begins a stream to the relay of this host. It may have returned a moment ago.
    fn stream_begun(&mut self, stream: &BegunStream) {
        let proven = self.lanes.prove_stream(&self.trunks, stream);
        if let Ok((preamble, _)) = &proven {
            self.parts.meet_returned(preamble.from, preamble.own);
        }
        let caller = match proven {
            Ok(proven) => {
                self.with_lanes(|lanes, tools| lanes.accept_stream(tools, stream, &proven))
            }
            Err(why) => Err(why.into()),
        };
        match caller {
            Ok(caller) => self.relay.serve(caller),
            Err(refusal) => {
                self.lanes.refuse_stream(stream);
                if let CallRefusal::Counted(why) = refusal {
                    self.refused_in_tunnel(stream.name.0, why);
                }
            }
        }
    }

    /// Counts something that no daemon does in a tunnel.
    fn refused_in_tunnel(&mut self, host: HostNumber, why: &'static str) {
        let name = self.members.host(host).map_or_else(|| host.0.to_string(), |it| it.name.clone());
        self.listener.refused_in_tunnel(why, format_args!("the daemon of {name}"));
    }

    /// Takes a caller that is to be passed on to the next host.
    fn pass(&mut self, caller: Caller) {
        let (token, address) = (caller.token, caller.address);
        let is_proven = self.lanes.secret_of(&self.trunks, &caller).map(drop);
        match self.with_gateway(|gateway, tools| gateway.called(tools, caller, is_proven)) {
            Ok(()) => self.listener.recognised(token),
            Err(why) => self.listener.refused(token, why, address),
        }
    }

    /// A process that calls may have returned a moment ago.
    fn meet_caller(&mut self, caller: &Caller) {
        let Preamble { purpose, from, own, .. } = caller.preamble;
        let is_process = matches!(purpose, Purpose::Lane | Purpose::Relay);
        if is_process && self.lanes.secret_of(&self.trunks, caller).is_ok() {
            self.parts.meet_returned(from, own);
        }
    }

    /// Frees the place of a caller that is a process elsewhere, and counts it if it was refused as a stranger.
    fn judge_caller(&mut self, token: u64, address: SocketAddr, refusal: Option<CallRefusal>) {
        match refusal {
            Some(CallRefusal::Counted(why)) => self.listener.refused(token, why, address),
            Some(CallRefusal::Known) | None => self.listener.recognised(token),
        }
    }

    pub(super) fn signalled(&mut self) {
        let Some((_, signals)) = &self.signals else { return };
        while let Some(signal) = signals.next() {
            // All others are the launcher's, which passes on what the processes must get.
            if signal.number == rustix::process::Signal::TERM.as_raw() {
                self.end = Some(HubEnd::Asked);
            }
        }
    }

    /// The streams that the daemon was started with become its trunk, or end it if there never was one.
    pub(super) fn streams_ready(&mut self) {
        let Some(streams) = self.streams.take() else { return };
        let now = self.now();
        let mut buffer = vec![0; 64 << 10];
        let outcome = match rustix::io::read(&streams.input, &mut buffer[..]) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                self.keep_streams_again(streams)
            }
            // The shell has carried what a daemon needs to begin. Trunks carry everything else, and say whether the arbiter
            // lives: the end of the shell ends nothing any more.
            Ok(0) | Err(_) if self.trunks.was_up(HostNumber::ARBITER) => {
                let _ = self.reactor.unwatch(&streams.input);
                Ok(())
            }
            // The lines are for other hosts.
            Ok(count) if count > 0 && streams.is_shared => self.keep_streams_again(streams),
            Ok(count) if count > 0 => {
                let KeptStreams { input, output, .. } = streams;
                let _ = self.reactor.unwatch(&input);
                let (arbiter, early) = (HostNumber::ARBITER, &buffer[..count]);
                let both = (input, output);
                self.trunks
                    .accept_streams(&mut self.reactor, arbiter, both, early, now)
                    .map_err(io::Error::other)
            }
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(errno) => Err(errno.into()),
        };
        if outcome.is_err() {
            self.end = Some(HubEnd::StreamsEnded);
        }
    }

    fn keep_streams_again(&mut self, streams: KeptStreams) -> io::Result<()> {
        self.reactor.unwatch(&streams.input)?;
        self.keep_streams(streams.input, streams.output, streams.is_shared)
    }
}
