//! The words of the machine: the arbiter gives them, and every host applies them in their order.

use std::collections::BTreeMap;

use landeck_protocols::hosts::{
    AdmissionError, Arbiter, ArbiterOutput, FollowerOutput, HostStanding, NumberBlock, Snapshot,
    WordFollower,
};
use landeck_wire::word::{HostEntry, Word, WordContent};
use landeck_wire::{HostIncarnation, HostNumber, JobId, SegmentId};

use crate::daemon_message::DaemonMessage;

/// The words beyond a gap that are kept whole, as the follower keeps them.
const AHEAD_MAX: usize = 1_024;

/// Something that follows from words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MembersEvent {
    /// Send a message to another host.
    Send(HostNumber, DaemonMessage),
    /// The arbiter, which is this host, has given a word. It is sent to this host as to all others.
    Given(Word),
    /// A word was applied here, with what follows from it.
    Applied(Word, Vec<FollowerOutput>),
    /// All that was said before this host joined was applied at once.
    Welcomed,
}

/// The words of a machine, as one of its daemons has them.
#[derive(Debug)]
pub(crate) struct Members {
    own: HostNumber,
    /// The run of this daemon.
    run: u32,
    arbiter: Option<Arbiter>,
    follower: WordFollower,
    is_welcome: bool,
    /// The words that are not applied yet.
    pending: BTreeMap<u64, Word>,
}

impl Members {
    /// The words of a new machine, whose arbiter this daemon is.
    pub(crate) fn found(own: HostEntry) -> (Self, Vec<MembersEvent>) {
        let host = own.host;
        let (arbiter, outputs) = Arbiter::new(own);
        let mut members = Self::join(host);
        members.arbiter = Some(arbiter);
        let events = members.perform(outputs);
        (members, events)
    }

    /// The words of a machine whose arbiter this daemon is, with what the run before has kept. This host has no copy of them.
    pub(crate) fn resumed(own: HostNumber, run: u32, arbiter: Arbiter) -> Self {
        Self { run, arbiter: Some(arbiter), ..Self::join(own) }
    }

    /// The arbiter, if it is this daemon.
    pub(crate) const fn arbiter(&self) -> Option<&Arbiter> {
        self.arbiter.as_ref()
    }

    /// The words of a machine that another daemon is the arbiter of.
    pub(crate) fn join(own: HostNumber) -> Self {
        let follower = WordFollower::new(Snapshot::default());
        let (run, arbiter, is_welcome, pending) = (0, None, false, BTreeMap::new());
        Self { own, run, arbiter, follower, is_welcome, pending }
    }

    /// Whether this daemon is the arbiter.
    pub(crate) const fn is_arbiter(&self) -> bool {
        self.arbiter.is_some()
    }

    /// This host's copy of the words.
    pub(crate) const fn words(&self) -> &WordFollower {
        &self.follower
    }

    /// The number of the last word that was given, on the arbiter, or applied.
    pub(crate) fn last(&self) -> u64 {
        self.arbiter.as_ref().map_or(self.follower.applied(), Arbiter::last)
    }

    /// The entry of a host, as the arbiter knows it, or as it was told here.
    pub(crate) fn host(&self, host: HostNumber) -> Option<&HostEntry> {
        self.standing(host).map(|(entry, _)| entry)
    }

    /// The entry and the standing of a host, as the arbiter knows them, or as they were told here.
    pub(crate) fn standing(&self, host: HostNumber) -> Option<(&HostEntry, HostStanding)> {
        match &self.arbiter {
            Some(arbiter) => arbiter.host(host),
            None => self.follower.host(host).map(|record| (&record.entry, record.standing)),
        }
    }

    /// The hosts that take part.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &HostEntry> {
        let given = self.arbiter.iter().flat_map(Arbiter::hosts);
        let told = self.follower.hosts().filter(|_| self.arbiter.is_none());
        let all = given.chain(told.map(|record| (&record.entry, record.standing)));
        all.filter(|(_, standing)| *standing == HostStanding::Living).map(|(entry, _)| entry)
    }

    /// The number for a host with this name that is admitted: that of a host with this name that is gone, else a new one.
    pub(crate) fn number_for(&self, name: &str) -> HostNumber {
        let mut used = self.arbiter.iter().flat_map(Arbiter::hosts);
        let last = used.clone().map(|(entry, _)| entry.host.0).max();
        let left =
            used.find(|(entry, standing)| *standing == HostStanding::Gone && entry.name == name);
        let new = || HostNumber(last.map_or(0, |last| last.saturating_add(1)));
        left.map_or_else(new, |(entry, _)| entry.host)
    }

    /// Admits a host; for the arbiter.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub(crate) fn admit(&mut self, entry: HostEntry) -> Result<Vec<MembersEvent>, AdmissionError> {
        let Some(arbiter) = &mut self.arbiter else { return Ok(Vec::new()) };
        let outputs = arbiter.admit(entry)?;
        Ok(self.perform(outputs))
    }

    /// Everything that was said, as the arbiter has said it, or as it was told here.
    #[cfg(test)]
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.arbiter.as_ref().map_or_else(|| self.follower.snapshot(), Arbiter::snapshot)
    }

    /// Asks for a word: gives it on the arbiter, and sends the request elsewhere.
    pub(crate) fn ask(&mut self, content: WordContent) -> Vec<MembersEvent> {
        match self.host(self.own).map(|entry| entry.incarnation) {
            _ if self.arbiter.is_none() => {
                vec![MembersEvent::Send(HostNumber::ARBITER, DaemonMessage::Ask(content))]
            }
            Some(incarnation) => self.asked(self.own, incarnation, content),
            None => Vec::new(),
        }
    }

    /// Ends a job because somebody wants so; for the arbiter.
    pub(crate) fn order_end(&mut self, job: JobId, cause: String) -> Vec<MembersEvent> {
        let outputs = self.arbiter.as_mut().map(|arbiter| arbiter.order_end(job, 1, cause));
        self.perform(outputs.unwrap_or_default())
    }

    /// Takes a host's request for a word; for the arbiter. A host may report the ends of its own processes and end jobs,
    /// but not judge hosts.
    pub(crate) fn asked(
        &mut self,
        from: HostNumber,
        incarnation: HostIncarnation,
        content: WordContent,
    ) -> Vec<MembersEvent> {
        let own = self.own;
        let Some(arbiter) = &mut self.arbiter else { return Vec::new() };
        let outputs = match content {
            WordContent::ProcessEnded { process, end, .. } => {
                arbiter.process_ended(from, incarnation, process, end)
            }
            WordContent::ProcessCame { process, kind, .. } => {
                arbiter.process_came(from, incarnation, process, kind)
            }
            WordContent::ProcessReturned { process, .. } => {
                arbiter.process_returned(from, incarnation, process)
            }
            WordContent::HostMoved { host, addresses, place, .. } if host == from => {
                arbiter.host_moved(from, incarnation, (addresses, place))
            }
            WordContent::JobEnds { job, code, cause } => arbiter.end_job(job, code, cause),
            WordContent::JobOver { job } if from == own => arbiter.job_done(job),
            WordContent::HostLost { host, incarnation, silent_ms } if from == own => {
                arbiter.host_lost(host, incarnation, silent_ms)
            }
            WordContent::HostGone { host, incarnation } if from == own => {
                arbiter.host_gone(host, incarnation)
            }
            WordContent::HostJoined(_)
            | WordContent::HostMoved { .. }
            | WordContent::HostLost { .. }
            | WordContent::HostGone { .. }
            | WordContent::JobOver { .. } => Vec::new(),
        };
        self.perform(outputs)
    }

    /// Records that a host has a part of a job; for the arbiter.
    pub(crate) fn part_added(&mut self, job: JobId, segment: SegmentId, host: HostNumber) {
        let incarnation = self.host(host).map(|entry| entry.incarnation);
        if let (Some(arbiter), Some(incarnation)) = (&mut self.arbiter, incarnation) {
            arbiter.add_part(job, segment, host, incarnation);
        }
    }

    /// Records that a host's part of a job is over; for the arbiter.
    pub(crate) fn part_removed(
        &mut self,
        segment: SegmentId,
        host: HostNumber,
    ) -> Vec<MembersEvent> {
        let incarnation = self.host(host).map(|entry| entry.incarnation);
        match (&mut self.arbiter, incarnation) {
            (Some(arbiter), Some(incarnation)) => {
                let outputs = arbiter.remove_part(segment, host, incarnation);
                self.perform(outputs)
            }
            _ => Vec::new(),
        }
    }

    /// Gives a block of group numbers; for the arbiter.
    pub(crate) fn lease_numbers(
        &mut self,
        job: JobId,
        host: HostNumber,
        request: u64,
    ) -> Result<NumberBlock, String> {
        let incarnation = self.host(host).map(|entry| entry.incarnation);
        match (&mut self.arbiter, incarnation) {
            (Some(arbiter), Some(incarnation)) => arbiter
                .lease_numbers(job, host, incarnation, request)
                .map_err(|error| error.to_string()),
            _ => Err(format!("host {} is no member of the machine", host.0)),
        }
    }

    /// Sends a host what it has not applied: its trunk is new, or it asked.
    pub(crate) fn renewed(&mut self, host: HostNumber) -> Vec<MembersEvent> {
        let incarnation = self.host(host).map(|entry| entry.incarnation);
        match (&mut self.arbiter, incarnation) {
            (Some(arbiter), Some(incarnation)) => {
                let outputs = arbiter.trunk_renewed(host, incarnation);
                self.perform(outputs)
            }
            _ => Vec::new(),
        }
    }

    /// Notes that this run of a host's daemon has applied all words up to a number; for the arbiter.
    pub(crate) fn applied(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        run: u32,
        number: u64,
    ) {
        if let Some(arbiter) = &mut self.arbiter {
            arbiter.applied(host, incarnation, run, number);
        }
    }

    /// Notes for the arbiter, if it is this daemon, which words this host has applied.
    fn note_own_applied(&mut self) {
        if let Some(incarnation) = self.host(self.own).map(|entry| entry.incarnation) {
            self.applied(self.own, incarnation, self.run, self.follower.applied());
        }
    }

    /// Notes that the daemon of a host has started again, as this run; for the arbiter. The host is welcomed again when its
    /// trunk is renewed.
    pub(crate) fn restarted(&mut self, host: HostNumber, run: u32) {
        let incarnation = self.host(host).map(|entry| entry.incarnation);
        if let (Some(arbiter), Some(incarnation)) = (&mut self.arbiter, incarnation) {
            arbiter.restarted(host, incarnation, run);
        }
    }

    /// Records that a host whose daemon has started again has these parts and no others; for the arbiter.
    pub(crate) fn parts_kept(
        &mut self,
        host: HostNumber,
        segments: &[SegmentId],
    ) -> Vec<MembersEvent> {
        let incarnation = self.host(host).map(|entry| entry.incarnation);
        match (&mut self.arbiter, incarnation) {
            (Some(arbiter), Some(incarnation)) => {
                let outputs = arbiter.keep_parts(host, incarnation, segments);
                self.perform(outputs)
            }
            _ => Vec::new(),
        }
    }

    /// Takes everything that was said before this host joined. Words that came before count behind it.
    pub(crate) fn welcome(&mut self, snapshot: Snapshot) -> Vec<MembersEvent> {
        if self.is_welcome {
            return Vec::new();
        }
        self.is_welcome = true;
        self.follower = WordFollower::new(snapshot);
        let mut events = vec![MembersEvent::Welcomed];
        self.note_own_applied();
        let early: Vec<Word> = std::mem::take(&mut self.pending).into_values().collect();
        for word in early {
            events.extend(self.take(word));
        }
        events
    }

    /// Takes a word.
    pub(crate) fn take(&mut self, word: Word) -> Vec<MembersEvent> {
        let applied = self.follower.applied();
        if word.number <= applied && self.is_welcome {
            return Vec::new();
        }
        if self.pending.len() < AHEAD_MAX || word.number == applied + 1 {
            self.pending.insert(word.number, word.clone());
        }
        if !self.is_welcome {
            return Vec::new();
        }
        let mut outputs = self.follower.take(word);
        self.note_own_applied();
        let mut events = Vec::new();
        outputs.retain(|output| match output {
            FollowerOutput::Resend { from } => {
                let message = DaemonMessage::Resend { from: *from };
                events.push(MembersEvent::Send(HostNumber::ARBITER, message));
                false
            }
            _ => true,
        });
        let mut outputs = outputs.into_iter();
        for number in applied + 1..=self.follower.applied() {
            let Some(word) = self.pending.remove(&number) else { continue };
            // Every word has one consequence, but those on an incarnation that nobody knows.
            let is_for_it = |output: &FollowerOutput| follows(&word.content, output);
            let next = outputs.as_slice().first().is_some_and(is_for_it).then(|| outputs.next());
            events.push(MembersEvent::Applied(word, next.flatten().into_iter().collect()));
        }
        events
    }

    fn perform(&self, outputs: Vec<ArbiterOutput>) -> Vec<MembersEvent> {
        let mut events = Vec::new();
        for output in outputs {
            match output {
                ArbiterOutput::Send { to, word } => {
                    if to == self.own {
                        events.push(MembersEvent::Given(word.clone()));
                    }
                    events.push(MembersEvent::Send(to, DaemonMessage::Word(word)));
                }
                ArbiterOutput::Welcome { to, snapshot } => {
                    events.push(MembersEvent::Send(to, DaemonMessage::Welcome(snapshot)));
                    let runs = self.arbiter.iter().flat_map(Arbiter::later_runs);
                    let others = runs.filter(|(host, _)| *host != to);
                    events.extend(others.map(|(host, run)| {
                        MembersEvent::Send(to, DaemonMessage::Restarted { host, run })
                    }));
                }
                ArbiterOutput::Exclude { to, incarnation } => {
                    events.push(MembersEvent::Send(to, DaemonMessage::Excluded { incarnation }));
                }
            }
        }
        events
    }
}

/// Whether an output follows from a word with this content.
fn follows(content: &WordContent, output: &FollowerOutput) -> bool {
    use landeck_protocols::hosts::{FarChange, FarState, FarSubject};
    match (content, output) {
        (WordContent::HostJoined(entry), FollowerOutput::Joined(joined)) => entry == joined,
        (WordContent::HostMoved { host, .. }, FollowerOutput::Moved { host: of, .. }) => host == of,
        (WordContent::JobEnds { job, .. }, FollowerOutput::JobEnds { job: ended, .. })
        | (WordContent::JobOver { job }, FollowerOutput::JobOver { job: ended }) => job == ended,
        (
            WordContent::ProcessEnded { process, .. }
            | WordContent::ProcessCame { process, .. }
            | WordContent::ProcessReturned { process, .. },
            FollowerOutput::Far(FarChange { subject: FarSubject::Process(of), .. }),
        ) => process == of,
        (
            WordContent::HostLost { host, .. },
            FollowerOutput::Far(FarChange {
                subject: FarSubject::Host(of, _),
                state: FarState::Lost { .. },
            }),
        )
        | (
            WordContent::HostGone { host, .. },
            FollowerOutput::Far(FarChange {
                subject: FarSubject::Host(of, _),
                state: FarState::Gone,
            }),
        ) => host == of,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::word::HostPlace;

    fn entry(host: u16) -> HostEntry {
        HostEntry {
            host: HostNumber(host),
            incarnation: HostIncarnation(u64::from(host) + 100),
            name: format!("h{host}"),
            key: [0; 32],
            addresses: Vec::new(),
            cores: 1,
            place: HostPlace::default(),
        }
    }

    fn messages(events: &[MembersEvent], to: u16) -> Vec<DaemonMessage> {
        let its = events.iter().filter_map(|event| match event {
            MembersEvent::Send(host, message) if host.0 == to => Some(message.clone()),
            _ => None,
        });
        its.collect()
    }

    fn applied(events: &[MembersEvent]) -> Vec<u64> {
        let each = events.iter().filter_map(|event| match event {
            MembersEvent::Applied(word, outputs) => {
                assert_eq!(outputs.len(), 1, "{word:?}");
                Some(word.number)
            }
            _ => None,
        });
        each.collect()
    }

    fn given(events: &[MembersEvent]) -> Vec<u64> {
        let each = events.iter().filter_map(|event| match event {
            MembersEvent::Given(word) => Some(word.number),
            _ => None,
        });
        each.collect()
    }

    fn deliver(host: &mut Members, message: DaemonMessage) -> Vec<MembersEvent> {
        match message {
            DaemonMessage::Welcome(snapshot) => host.welcome(snapshot),
            DaemonMessage::Word(word) => host.take(word),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_host_that_joins_learns_everything_in_order() {
        let (mut arbiter, first) = Members::found(entry(0));
        assert_eq!(given(&first), [1]);
        assert_eq!(arbiter.number_for("h1"), HostNumber(1));
        let own: Vec<MembersEvent> =
            messages(&first, 0).into_iter().flat_map(|it| deliver(&mut arbiter, it)).collect();
        assert_eq!((own.len(), applied(&own)), (2, vec![1]), "behind its welcome");
        let events = arbiter.admit(entry(1)).unwrap();
        assert_eq!(given(&events), [2]);
        let own = messages(&events, 0).into_iter().flat_map(|it| deliver(&mut arbiter, it));
        assert_eq!(applied(&own.collect::<Vec<_>>()), [2], "a host like all others");
        let kept = |arbiter: &Members| arbiter.arbiter().map(Arbiter::kept);
        assert_eq!(kept(&arbiter), Some(1));
        arbiter.applied(HostNumber(1), entry(1).incarnation, 0, 2);
        assert_eq!(kept(&arbiter), Some(0), "all hosts have applied all words");
        let mut host = Members::join(HostNumber(1));
        let mut seen = Vec::new();
        for message in messages(&events, 1) {
            seen.extend(applied(&deliver(&mut host, message)));
        }
        assert_eq!(seen, [2], "the arbiter's own word was in the welcome");
        assert_eq!(host.hosts().map(|entry| entry.host.0).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(host.last(), arbiter.last());
    }

    #[test]
    fn words_that_come_before_the_welcome_or_out_of_order_wait() {
        let (mut arbiter, _) = Members::found(entry(0));
        let mut events = arbiter.admit(entry(1)).unwrap();
        for code in 1..=3 {
            let content = WordContent::JobEnds { job: JobId(code), code: 7, cause: "x".into() };
            events.extend(arbiter.ask(content));
        }
        let mut host = Members::join(HostNumber(1));
        let mut seen = Vec::new();
        for message in messages(&events, 1).into_iter().rev() {
            seen.extend(applied(&deliver(&mut host, message)));
        }
        assert_eq!(seen, [2, 3, 4, 5]);
        let asked = host.take(Word {
            number: 9,
            content: WordContent::JobEnds { job: JobId(9), code: 7, cause: "x".into() },
        });
        let resend = MembersEvent::Send(HostNumber(0), DaemonMessage::Resend { from: 6 });
        assert_eq!(asked, [resend]);
    }

    #[test]
    fn a_daemon_that_has_started_again_learns_everything_once() {
        let (mut arbiter, _) = Members::found(entry(0));
        let (host, incarnation) = (HostNumber(1), entry(1).incarnation);
        arbiter.admit(entry(1)).unwrap();
        arbiter.applied(host, incarnation, 0, 2);
        let end = |job| WordContent::JobEnds { job: JobId(job), code: 7, cause: "x".into() };
        arbiter.ask(end(1));
        arbiter.restarted(host, 1);
        let mut events = arbiter.ask(end(2));
        events.extend(arbiter.renewed(host));
        events.extend(arbiter.ask(end(3)));
        let mut next = Members::join(host);
        let mut seen = Vec::new();
        for message in messages(&events, 1) {
            seen.extend(applied(&deliver(&mut next, message)));
        }
        assert_eq!(seen, [5], "the words before are in its welcome");
        assert_eq!(next.words().applied(), 5);
        arbiter.applied(host, incarnation, 1, 5);
        assert_eq!(arbiter.renewed(host), []);
        // A host that comes later knows which run it deals with.
        let events = arbiter.admit(entry(2)).unwrap();
        let told = messages(&events, 2);
        assert!(told.contains(&DaemonMessage::Restarted { host, run: 1 }), "{told:?}");
        assert!(messages(&events, 1).iter().all(|it| matches!(it, DaemonMessage::Word(_))));
    }

    #[test]
    fn a_host_judges_no_host() {
        let (mut arbiter, _) = Members::found(entry(0));
        arbiter.admit(entry(1)).unwrap();
        arbiter.admit(entry(2)).unwrap();
        let incarnation = entry(2).incarnation;
        let lost = WordContent::HostLost { host: HostNumber(2), incarnation, silent_ms: 1 };
        assert_eq!(arbiter.asked(HostNumber(1), entry(1).incarnation, lost.clone()), []);
        assert_eq!(given(&arbiter.ask(lost)), [4]);
        assert_eq!(arbiter.hosts().count(), 2);
    }
}
