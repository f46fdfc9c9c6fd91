//! A run of processes on several hosts that publish, find and take back names, and end while their questions are on the
//! way. Questions, answers and words may overtake each other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_protocols::door::{
    Name, ObjectAnswer, ObjectKind, ObjectQuestion, ObjectRequest, Verdict,
};
use landeck_protocols::hosts::NameTable;
use landeck_wire::word::{ProcessEnd, WordContent};
use landeck_wire::{HostIncarnation, HostNumber, Incarnation, JobId, ProcessId, SegmentId, Slot};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};

const JOB: JobId = JobId(1);
const HOSTS: u16 = 3;
const PROCESSES: u32 = 3;
const NAMES: u64 = 3;
/// The time in which processes act.
const LENGTH: Duration = Duration::from_secs(20);
const DELAY_MAX: Duration = Duration::from_millis(300);
/// A lost host is gone before this time has passed.
const GONE_AFTER: Duration = Duration::from_secs(5);

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamesReport {
    /// The names that were given.
    pub(crate) given: usize,
    /// The questions that were refused because another process had the name.
    pub(crate) taken: usize,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Debug)]
enum Event {
    /// A process that waits for nothing asks something.
    Act(ProcessId),
    AtArbiter(ObjectQuestion),
    Answer(ObjectQuestion, ObjectAnswer),
    Ends(ProcessId),
    /// The arbiter gives the word on a process's end.
    Word(ProcessId),
    HostLost(HostNumber),
    /// Nothing of a lost host runs any more.
    HostGone(HostNumber),
}

/// The state of a process.
#[derive(Clone, Debug, Default)]
struct Process {
    is_over: bool,
    waits: bool,
    /// The names that it knows to be its own, with their numbers.
    owned: BTreeMap<Name, u64>,
    /// The names that surely stood when its question left, by other processes or itself.
    stood: BTreeSet<u64>,
    /// The numbers that were surely free then.
    was_free: BTreeSet<u64>,
}

struct World {
    draw: Draw,
    events: BTreeMap<(Duration, u64), Event>,
    planned: u64,
    now: Duration,
    log: EventLog,
    table: NameTable,
    processes: BTreeMap<ProcessId, Process>,
    /// The lost hosts, whose processes run and ask no more, and those of them that are gone.
    lost: BTreeSet<HostNumber>,
    gone: BTreeSet<HostNumber>,
    /// The numbers whose owners know that they have taken them back, or whose ends are words.
    over: BTreeSet<u64>,
    given: usize,
    taken: usize,
}

/// Runs processes on several hosts that share names.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<NamesReport, ProtocolFailure> {
    let mut world = World::new(seed);
    while let Some(((at, _), event)) = world.events.pop_first() {
        world.now = at;
        world.log.note(at, format!("{event:?}"));
        if let Err((property, text)) = world.happen(event) {
            return Err(world.log.failure(seed, property, text));
        }
    }
    match world.at_rest() {
        Err((property, text)) => Err(world.log.failure(seed, property, text)),
        Ok(()) => {
            let (given, taken) = (world.given, world.taken);
            Ok(NamesReport { given, taken, hash: world.log.hash() })
        }
    }
}

fn host_of(process: ProcessId) -> HostNumber {
    HostNumber(process.segment.0 as u16)
}

fn about(process: ProcessId, asked: ObjectRequest) -> ObjectQuestion {
    ObjectQuestion::new(process, ObjectKind::Mailbox, asked)
}

fn name_of(number: u64) -> Name {
    Name::new(format!("name {number}")).unwrap_or_else(|error| unreachable!("{error}"))
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            draw: Draw::new(seed),
            events: BTreeMap::new(),
            planned: 0,
            now: Duration::ZERO,
            log: EventLog::default(),
            table: NameTable::default(),
            processes: BTreeMap::new(),
            lost: BTreeSet::new(),
            gone: BTreeSet::new(),
            over: BTreeSet::new(),
            given: 0,
            taken: 0,
        };
        for host in 0..HOSTS {
            for slot in 0..PROCESSES {
                let (host, incarnation) = (SegmentId(host.into()), Incarnation(1));
                let process = ProcessId { segment: host, slot: Slot(slot), incarnation };
                world.processes.insert(process, Process::default());
                world.plan(DELAY_MAX, Event::Act(process));
                if world.draw.permille(400) {
                    world.plan(LENGTH, Event::Ends(process));
                }
            }
        }
        if world.draw.permille(400) {
            let host = HostNumber(1 + world.draw.below(u64::from(HOSTS) - 1) as u16);
            world.plan(LENGTH, Event::HostLost(host));
        }
        world
    }

    /// Plans an event at some moment before `most` from now.
    fn plan(&mut self, most: Duration, event: Event) {
        let at = self.now + self.draw.time(Duration::from_micros(1), most);
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }

    fn is_there(&self, process: ProcessId) -> bool {
        !self.processes[&process].is_over && !self.lost.contains(&host_of(process))
    }

    /// The processes that run, also on lost hosts.
    fn running(&self) -> impl Iterator<Item = (&ProcessId, &Process)> {
        let runs = |process: ProcessId| !self.gone.contains(&host_of(process));
        self.processes.iter().filter(move |(process, one)| !one.is_over && runs(**process))
    }

    /// The numbers of the names that running processes know to be their own.
    fn standing(&self) -> BTreeSet<u64> {
        self.running().flat_map(|(_, one)| one.owned.values().copied()).collect()
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Act(process) => self.act(process),
            Event::AtArbiter(question) => {
                let (host, pid) = (host_of(question.process), question.process.slot.0);
                let answer = self.table.ask(JOB, host, pid, question.clone());
                self.plan(DELAY_MAX, Event::Answer(question, answer));
            }
            Event::Answer(question, answer) => return self.answered(question, &answer),
            Event::Ends(process) => {
                if let Some(one) = self.processes.get_mut(&process) {
                    one.is_over = true;
                }
                self.plan(DELAY_MAX, Event::Word(process));
            }
            Event::Word(process) => {
                let end = ProcessEnd::Left;
                self.table.take(&WordContent::ProcessEnded { job: JOB, process, end });
                self.forget(process);
            }
            Event::HostLost(host) => {
                self.lost.insert(host);
                let incarnation = HostIncarnation(1);
                self.table.take(&WordContent::HostLost { host, incarnation, silent_ms: 1 });
                self.plan(GONE_AFTER, Event::HostGone(host));
            }
            Event::HostGone(host) => {
                self.gone.insert(host);
                let incarnation = HostIncarnation(1);
                self.table.take(&WordContent::HostGone { host, incarnation });
                let its: Vec<ProcessId> = self.processes.keys().copied().collect();
                its.into_iter().filter(|it| host_of(*it) == host).for_each(|it| self.forget(it));
            }
        }
        Ok(())
    }

    /// The names of a process are over by a word.
    fn forget(&mut self, process: ProcessId) {
        if let Some(one) = self.processes.get_mut(&process) {
            one.is_over = true;
            let owned = std::mem::take(&mut one.owned);
            self.over.extend(owned.into_values());
        }
    }

    fn act(&mut self, process: ProcessId) {
        if !self.is_there(process) || self.now > LENGTH {
            return;
        }
        self.plan(DELAY_MAX, Event::Act(process));
        let name = name_of(self.draw.below(NAMES));
        let choice = self.draw.below(10);
        let (stood, was_free) = (self.standing(), self.over.clone());
        let Some(one) = self.processes.get_mut(&process).filter(|one| !one.waits) else { return };
        let question = match choice {
            0..4 => {
                let question = about(process, ObjectRequest::Name).named(&name);
                ObjectQuestion { words: [choice, 0], ..question }
            }
            4..7 => about(process, ObjectRequest::Find).named(&name),
            // From now on it counts on the name no more.
            _ => match one.owned.pop_first() {
                Some((_, number)) => {
                    ObjectQuestion { number, ..about(process, ObjectRequest::Close) }
                }
                None => return,
            },
        };
        (one.waits, one.stood, one.was_free) = (true, stood, was_free);
        self.plan(DELAY_MAX, Event::AtArbiter(question));
    }

    fn answered(&mut self, question: ObjectQuestion, answer: &ObjectAnswer) -> Check {
        let (process, found) = (question.process, answer.object);
        if !self.is_there(process) {
            return Ok(());
        }
        let still = self.standing();
        let Some(one) = self.processes.get_mut(&process) else { return Ok(()) };
        one.waits = false;
        match (question.asked, question.name, answer.verdict) {
            (ObjectRequest::Name, Some(name), Verdict::Granted) => {
                one.owned.insert(name.clone(), found.number);
                self.given += 1;
                let owners =
                    self.running().filter(|(_, one)| one.owned.contains_key(&name)).count();
                ensure(owners == 1, "one owner per name", || {
                    format!("{name:?} has {owners} owners")
                })
            }
            (ObjectRequest::Name, _, Verdict::InUse) => {
                self.taken += 1;
                let was_free = one.was_free.contains(&found.number);
                ensure(!was_free, "a name that is over blocks nobody", || format!("{found:?}"))
            }
            (ObjectRequest::Find, _, Verdict::Granted) => {
                let was_over = one.was_free.contains(&found.number);
                ensure(!was_over, "no name is found that was over", || format!("{found:?}"))
            }
            (ObjectRequest::Find, Some(name), Verdict::Unknown) => {
                let stands = one.stood.intersection(&still).copied().collect::<BTreeSet<u64>>();
                let mut owners = self.processes.values();
                let missed = owners
                    .any(|one| one.owned.get(&name).is_some_and(|number| stands.contains(number)));
                ensure(!missed, "a name that stands is found", || format!("{name:?}"))
            }
            (ObjectRequest::Close, None, Verdict::Granted) => {
                self.over.insert(question.number);
                Ok(())
            }
            (asked, ..) => Err(("every question has its answer", format!("{asked:?}: {answer:?}"))),
        }
    }

    /// At the end each name belongs to the process that knows it, and to nobody who is gone.
    fn at_rest(&mut self) -> Check {
        let asking =
            ProcessId { segment: SegmentId(0), slot: Slot(99), incarnation: Incarnation(1) };
        for name in (0..NAMES).map(name_of) {
            let question = about(asking, ObjectRequest::Find).named(&name);
            let answer = self.table.ask(JOB, HostNumber(0), 99, question);
            let found = (answer.verdict == Verdict::Granted)
                .then_some((answer.object.owner, answer.object.number));
            let known = self
                .running()
                .find_map(|(process, one)| one.owned.get(&name).map(|number| (*process, *number)));
            ensure(found == known, "names end with their owners", || {
                format!("{name:?} is {found:?} at the arbiter and {known:?} at its owner")
            })?;
        }
        Ok(())
    }
}
