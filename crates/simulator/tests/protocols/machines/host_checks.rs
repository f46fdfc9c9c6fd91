//! The properties of several hosts, a checker each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_protocols::hosts::{
    FarChange, FarState, FarSubject, FollowerOutput, HostTiming, NumberBlock, Snapshot,
    WordFollower,
};
use landeck_wire::word::{ProcessEnd, Word, WordContent};
use landeck_wire::{HostIncarnation, HostNumber, JobId, ProcessId};

/// The name of a property that does not hold, and the observation.
pub(super) type Check = Result<(), (&'static str, String)>;

/// The trouble of one host, which the machines cannot see but the checkers can.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    /// Since when the host and the arbiter do not reach each other.
    pub(super) since: Option<Duration>,
    /// When the last such time ended.
    pub(super) ended: Duration,
    /// The incarnation that runs, or ran last.
    pub(super) incarnation: u64,
    /// When the host was last admitted.
    pub(super) admitted: Duration,
    /// When the incarnation that runs learned that it is admitted. Without that it sends no heartbeats.
    pub(super) welcomed: Option<Duration>,
    /// When the host's daemon or its clock last stood still.
    pub(super) stood_still: Duration,
    /// When the clock of the host last stood still.
    pub(super) paused: Duration,
}

/// A look of the arbiter at one host.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArbiterLook {
    pub(super) now: Duration,
    /// The time since the host's last renewal, by the arbiter's clock.
    pub(super) renewed_ago: Duration,
    /// Since when the arbiter looks punctually.
    pub(super) punctual_since: Duration,
}

/// The observations of a run.
#[derive(Debug, Default)]
pub(super) struct HostChecks {
    /// All words, in the order of their numbers.
    pub(super) words: Vec<Word>,
    came: BTreeSet<ProcessId>,
    ended: BTreeMap<ProcessId, ProcessEnd>,
    over: BTreeSet<HostIncarnation>,
    /// When each incarnation was called lost.
    lost: BTreeMap<HostIncarnation, Duration>,
    gone: BTreeSet<HostIncarnation>,
    blocks: BTreeMap<(u64, u32), (HostIncarnation, u32, u64)>,
    /// The daemons that have said that they have words: host and incarnation, and their newest run.
    welcome: BTreeMap<usize, (HostIncarnation, u32)>,
    /// The incarnations that have parts of each job, as the arbiter has heard.
    parts: BTreeSet<(JobId, HostIncarnation)>,
    /// The jobs whose conductor is done, and those that a word has called over.
    done: BTreeSet<JobId>,
    forgotten: BTreeSet<JobId>,
    ending: BTreeSet<JobId>,
    /// The hosts that were called lost by their silence.
    pub(super) losses: u64,
}

/// The time after which the arbiter calls a silent host lost, as the documents say it, whatever the machine says.
fn lost_after(timing: HostTiming) -> Duration {
    timing.timeout() + Duration::from_millis(100)
}

/// The time after which it calls a lost host gone.
fn gone_after(timing: HostTiming) -> Duration {
    (3 * timing.timeout()).max(Duration::from_secs(10)) + Duration::from_secs(1)
}

/// The time that may pass between the beginning of a trouble and the arbiter's verdict, besides T or L. A cut in one
/// direction shows in the echo of a heartbeat, and several of these may be lost.
fn slack(timing: HostTiming, delay: Duration) -> Duration {
    10 * timing.interval() + 2 * delay + gone_after(timing) / 1_000 + Duration::from_millis(50)
}

impl HostChecks {
    /// A word that the arbiter sends.
    pub(super) fn word_sent(&mut self, word: &Word) -> Check {
        let known = self.words.get((word.number as usize).wrapping_sub(1));
        if let Some(known) = known {
            let text = || format!("number {} is {known:?} and {word:?}", word.number);
            return ensure(known == word, "words have one order", text);
        }
        let next = self.words.len() as u64 + 1;
        ensure(word.number == next, "words have one order", || {
            format!("word {} was given after word {}", word.number, next - 1)
        })?;
        self.words.push(word.clone());
        self.first_word(&word.content)
    }

    fn first_word(&mut self, content: &WordContent) -> Check {
        let name = "the first word is final";
        match content {
            WordContent::ProcessEnded { process, end, .. } => {
                let is_first = match self.ended.insert(*process, *end) {
                    None => true,
                    Some(before) => !before.is_final() && end.is_final(),
                };
                let is_over = self.over.contains(&incarnation_of(*process));
                ensure(is_first && !is_over, name, || format!("another word on process {process}"))
            }
            WordContent::ProcessCame { process, .. } => {
                let is_first = self.came.insert(*process);
                ensure(is_first, "a process comes once", || format!("{process} comes again"))?;
                ensure(!self.ended.contains_key(process), name, || format!("{process} comes late"))
            }
            WordContent::ProcessReturned { process, .. } => {
                let name = "only a process that is away returns";
                let before = process.before().and_then(|before| self.ended.get_mut(&before));
                let was_away = before.is_some_and(|end| {
                    std::mem::replace(end, ProcessEnd::Left) == ProcessEnd::Away
                });
                let is_over = self.over.contains(&incarnation_of(*process));
                ensure(was_away && !is_over, name, || format!("process {process} returns"))
            }
            WordContent::HostLost { incarnation, .. } => {
                let is_first = self.over.insert(*incarnation);
                ensure(is_first, name, || format!("incarnation {incarnation} is lost twice"))
            }
            WordContent::JobEnds { job, .. } => {
                let is_first = self.ending.insert(*job);
                ensure(is_first, "a job ends once", || format!("job {job} ends again"))
            }
            WordContent::JobOver { job } => {
                let is_first = self.forgotten.insert(*job);
                let parts: Vec<_> = self.parts.iter().filter(|(of, _)| of == job).collect();
                let is_over = self.done.contains(job) && parts.is_empty();
                ensure(is_first && is_over, "a job is over once nobody has a part", || {
                    format!("job {job} is called over, and has the parts {parts:?}")
                })
            }
            WordContent::HostMoved { incarnation, .. } => {
                let is_over = self.over.contains(incarnation);
                ensure(!is_over, name, || format!("lost incarnation {incarnation} moves"))
            }
            WordContent::HostJoined(_) | WordContent::HostGone { .. } => Ok(()),
        }
    }

    /// The arbiter has heard of a host's part of a job.
    pub(super) fn part_added(&mut self, job: JobId, incarnation: HostIncarnation) {
        if !self.forgotten.contains(&job) {
            self.parts.insert((job, incarnation));
        }
    }

    /// The arbiter has heard that a host has this part alone.
    pub(super) fn part_kept(&mut self, kept: JobId, incarnation: HostIncarnation) {
        self.parts.retain(|(job, of)| *of != incarnation || *job == kept);
    }

    /// The arbiter has heard which words a run of a host's daemon has. `known` is the run that it knows of.
    pub(super) fn reported(
        &mut self,
        (host, incarnation): (usize, HostIncarnation),
        (run, known): (u32, u32),
        word: u64,
    ) {
        if word > 0 && run == known {
            self.welcome.insert(host, (incarnation, run));
        }
    }

    /// The arbiter welcomes a host whose daemon is this one, as far as the arbiter knows.
    pub(super) fn welcome_sent(
        &self,
        host: usize,
        daemon: Option<(HostIncarnation, u32)>,
    ) -> Check {
        let has_words = daemon.is_some() && self.welcome.get(&host).copied() == daemon;
        ensure(!has_words, "a welcome is not in vain", || {
            format!("host {host} has said that it has words as {daemon:?}, and is welcomed again")
        })
    }

    /// A daemon without words takes its welcome.
    pub(super) fn welcomed(&self, host: usize, snapshot: &Snapshot) -> Check {
        let mut follower = WordFollower::new(Snapshot::default());
        let told = self.words.iter().take(snapshot.number as usize);
        told.cloned().for_each(|word| drop(follower.take(word)));
        let expected = follower.snapshot();
        ensure(*snapshot == expected, "a welcome tells what the words have said", || {
            format!("host {host} is welcomed with {snapshot:?}, not {expected:?}")
        })
    }

    /// A look of a host's daemon, so long after the heartbeat was sent, by whichever run, that the arbiter has answered last.
    pub(super) fn leased(
        &self,
        host: usize,
        (since, punctual): (Duration, Duration),
        is_over: bool,
        timing: HostTiming,
    ) -> Check {
        let margin = 3 * timing.interval();
        let is_late = punctual > timing.timeout() + margin && since > timing.lease() + margin;
        ensure(is_over || !is_late, "the end of a lease does not move", || {
            format!("host {host} runs {since:?} after what the arbiter has answered last")
        })
    }

    /// The arbiter has heard that a part is over.
    pub(super) fn part_over(&mut self, job: JobId, incarnation: HostIncarnation) {
        self.parts.remove(&(job, incarnation));
    }

    /// An incarnation is gone, and all of its parts.
    pub(super) fn parts_gone(&mut self, incarnation: HostIncarnation) {
        self.parts.retain(|(_, of)| *of != incarnation);
    }

    /// A job's conductor is done with it.
    pub(super) fn job_done(&mut self, job: JobId) {
        self.done.insert(job);
    }

    /// A follower has gone from one number to another, and said what follows.
    pub(super) fn applied(
        &self,
        host: usize,
        from: u64,
        to: u64,
        outputs: &[FollowerOutput],
    ) -> Check {
        let Some(words) = self.words.get(from as usize..to as usize) else {
            return Err((
                "words have one order",
                format!("host {host} applied word {to} before it was given"),
            ));
        };
        let expected: Vec<FollowerOutput> = words.iter().map(consequence).collect();
        let is_change = |output: &&FollowerOutput| !matches!(output, FollowerOutput::Resend { .. });
        let found: Vec<FollowerOutput> = outputs.iter().filter(is_change).cloned().collect();
        let text = || {
            format!("host {host} went from word {from} to {to} with {found:?}, not {expected:?}")
        };
        let name = match found.len() > expected.len() {
            true => "only words change far records",
            false => "words have one order",
        };
        ensure(found == expected, name, text)
    }

    /// The arbiter calls an incarnation lost by its silence.
    pub(super) fn lost(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        now: Duration,
        trouble: Trouble,
        timing: HostTiming,
        delay: Duration,
    ) -> Check {
        self.lost.insert(incarnation, now);
        self.losses += u64::from(trouble.incarnation == incarnation.0);
        let recent = trouble.incarnation != incarnation.0
            || trouble.since.is_some()
            || now.saturating_sub(trouble.ended) <= lost_after(timing) + slack(timing, delay);
        ensure(recent, "no host is lost that answers", || {
            format!(
                "host {} was called lost, its last trouble ended at {:?}",
                host.0, trouble.ended
            )
        })
    }

    /// A host ends its part because it has heard nothing for the length of its lease.
    pub(super) fn expired(
        &self,
        (host, incarnation): (usize, HostIncarnation),
        ArbiterLook { now, punctual_since: calm, .. }: ArbiterLook,
        trouble: Trouble,
        timing: HostTiming,
        delay: Duration,
    ) -> Check {
        let recent = now.saturating_sub(calm) <= lost_after(timing) + slack(timing, delay);
        let is_lost = self.lost.contains_key(&incarnation);
        ensure(
            is_lost || trouble.since.is_some() || recent,
            "no host ends that hears the arbiter",
            || format!("host {host} has ended its part, and hears the arbiter since {calm:?}"),
        )
    }

    /// A host's end that was not noticed by silence.
    pub(super) fn lost_otherwise(&mut self, incarnation: HostIncarnation, now: Duration) {
        self.lost.entry(incarnation).or_insert(now);
    }

    /// The arbiter calls an incarnation gone after its lease.
    pub(super) fn gone(
        &mut self,
        incarnation: HostIncarnation,
        now: Duration,
        runs: bool,
        trouble: Trouble,
        timing: HostTiming,
    ) -> Check {
        self.gone.insert(incarnation);
        let stood_still = now.saturating_sub(trouble.stood_still) <= 2 * gone_after(timing);
        ensure(!runs || stood_still, "nothing of a gone host runs", || {
            format!("incarnation {incarnation} was called gone and runs")
        })
    }

    /// A look of the arbiter, which has looked punctually since some moment: is a host in trouble still there?
    pub(super) fn is_in_time(
        &self,
        (host, incarnation): (usize, HostIncarnation),
        ArbiterLook { now, renewed_ago, punctual_since }: ArbiterLook,
        trouble: Trouble,
        timing: HostTiming,
        delay: Duration,
    ) -> Check {
        let Some(since) = trouble.since else { return Ok(()) };
        let silent = now.saturating_sub(since.max(punctual_since).max(trouble.admitted));
        // Since its last renewal the arbiter waits for a look, and for nothing else.
        let by_renewal =
            silent.min(renewed_ago) > lost_after(timing) + timing.interval() + 2 * delay;
        let late = |after: Duration| silent > after + slack(timing, delay);
        let is_lost = self.lost.contains_key(&incarnation);
        ensure(
            is_lost || !(by_renewal || late(lost_after(timing))),
            "a host that is cut off is lost in time",
            || format!("host {host} is in trouble for {silent:?} and not lost"),
        )?;
        let is_gone = self.gone.contains(&incarnation);
        ensure(is_gone || !late(gone_after(timing)), "a lost host is gone in time", || {
            format!("host {host} is in trouble for {silent:?} and not gone")
        })
    }

    /// A look of the arbiter that shows the daemon of a host as silent.
    pub(super) fn is_silent(
        &self,
        host: usize,
        ArbiterLook { now, punctual_since, .. }: ArbiterLook,
        trouble: Trouble,
        timing: HostTiming,
        delay: Duration,
    ) -> Check {
        let Some(welcomed) = trouble.welcomed else { return Ok(()) };
        let calm = [trouble.ended, trouble.stood_still, welcomed, punctual_since];
        let since = calm.into_iter().max().unwrap_or_default();
        let answers = now.saturating_sub(since) > lost_after(timing) + slack(timing, delay);
        ensure(trouble.since.is_some() || !answers, "a host that answers is shown as up", || {
            format!("host {host} answers since {since:?} and is shown as silent")
        })
    }

    /// A host believes that its view is valid.
    pub(super) fn believes(
        &self,
        incarnation: HostIncarnation,
        now: Duration,
        trouble: Trouble,
        timing: HostTiming,
    ) -> Check {
        let Some(&lost) = self.lost.get(&incarnation) else { return Ok(()) };
        let was_paused = trouble.paused + 2 * timing.lease() >= lost;
        ensure(was_paused, "no view is valid after a loss", || {
            format!(
                "incarnation {incarnation} was called lost at {lost:?} and has a valid view at {now:?}"
            )
        })
    }

    /// A host has got a block of group numbers.
    pub(super) fn block(
        &mut self,
        ((incarnation, run), (job, request)): ((HostIncarnation, u32), (u64, u64)),
        block: NumberBlock,
    ) -> Check {
        let asker = (incarnation, run, request);
        let first = *self.blocks.entry((job, block.first)).or_insert(asker);
        let is_whole = block.first.is_multiple_of(block.count) && block.first > 0;
        ensure(first == asker && is_whole, "a block of numbers is given once", || {
            format!("{block:?} was given to {first:?} and to {asker:?}")
        })
    }
}

/// The consequence of a word, as the design says it.
fn consequence(word: &Word) -> FollowerOutput {
    let far = |subject, state| FollowerOutput::Far(FarChange { subject, state });
    match word.content.clone() {
        WordContent::HostJoined(entry) => FollowerOutput::Joined(entry),
        WordContent::HostMoved { host, addresses, place, .. } => {
            FollowerOutput::Moved { host, addresses, place }
        }
        WordContent::HostLost { host, incarnation, silent_ms } => {
            far(FarSubject::Host(host, incarnation), FarState::Lost { silent_ms })
        }
        WordContent::HostGone { host, incarnation } => {
            far(FarSubject::Host(host, incarnation), FarState::Gone)
        }
        WordContent::ProcessEnded { process, end: ProcessEnd::Left, .. } => {
            far(FarSubject::Process(process), FarState::Left)
        }
        WordContent::ProcessEnded { process, end: ProcessEnd::Away, .. } => {
            far(FarSubject::Process(process), FarState::Away)
        }
        WordContent::ProcessCame { process, kind, .. } => {
            far(FarSubject::Process(process), FarState::Came { is_guest: kind.is_guest() })
        }
        WordContent::ProcessReturned { process, .. } => {
            far(FarSubject::Process(process), FarState::Back)
        }
        WordContent::ProcessEnded { process, end: ProcessEnd::Died { pid, status }, .. } => {
            far(FarSubject::Process(process), FarState::Died { pid, status })
        }
        WordContent::JobEnds { job, code, cause } => FollowerOutput::JobEnds { job, code, cause },
        WordContent::JobOver { job } => FollowerOutput::JobOver { job },
    }
}

/// The incarnation of the host that a process belongs to.
fn incarnation_of(process: ProcessId) -> HostIncarnation {
    HostIncarnation(process.segment.0 & u64::from(u32::MAX))
}

/// An error with this name if something does not hold.
pub(super) fn ensure(holds: bool, name: &'static str, text: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err((name, text())) }
}
