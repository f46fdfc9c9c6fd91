//! Derives the conduct of each process from two pictures of a job, a moment apart: which process needs which.
//!
//! Only a wait that is the same in both pictures and lasts for some time counts: everything else progresses. For a
//! collective operation, the board of the group tells which members have come, whatever its processes do.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use landeck_board::{Roster, Standing, WINDOW, roster_of, standing_of};
use landeck_collectives::{Operation as Together, Signature};
use landeck_host::observe::ObservedJob;
use landeck_host::process_figures::{self, Activity, ProcessFigures};
use landeck_memory::observed::Observed;
use landeck_memory::{Operation, SlotState, WaitRecord};
use rustix::event::Timespec;

use crate::picture::{Member, Picture};
use crate::verdict::{Conduct, Mismatch, Needs};

/// The shortest wait that is significant: a process that was just woken may have to wait for a processor.
pub const LASTING: Duration = Duration::from_millis(100);

/// The conduct of the members of a job, and the mismatches that were found on the way.
pub(crate) struct Conducts {
    /// The conducts, in the order of the picture's members.
    pub(crate) all: Vec<Conduct>,
    pub(crate) mismatches: Vec<Mismatch>,
    /// The groups in which some process waits.
    pub(crate) groups: Groups,
}

/// Groups by the places of their boards.
#[derive(Default)]
pub(crate) struct Groups {
    known: HashMap<u64, Option<Rc<Roster>>>,
}

impl Groups {
    /// The members of the group with this board, as slots in the order of their ranks.
    pub(crate) fn of(&mut self, segment: &Observed, board: u64) -> Option<Rc<Roster>> {
        let look = || roster_of(segment, board).map(Rc::new);
        self.known.entry(board).or_insert_with(look).clone()
    }
}

/// One operation of a group, with the standing of each member.
struct Meeting {
    roster: Rc<Roster>,
    standings: Vec<Standing>,
    /// The needed members, each list made once.
    lists: HashMap<List, Rc<[u32]>>,
}

impl Meeting {
    fn is_past(&self, member: u32) -> bool {
        self.standings.get(member as usize) == Some(&Standing::Past)
    }

    /// The places in the picture of the members on a list.
    fn list(
        &mut self,
        list: List,
        now: &Picture,
        places: &HashMap<u32, u32>,
        wait: &WaitRecord,
    ) -> Rc<[u32]> {
        if let Some(known) = self.lists.get(&list) {
            return known.clone();
        }
        let needed = places_of(places, needed(now, self, list, wait).into_iter());
        self.lists.insert(list, needed.clone());
        needed
    }
}

/// The identity of an operation of a group: its board, its number there, and its tag if there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    board: u64,
    number: u32,
    tag: Option<u32>,
}

impl Key {
    fn of(wait: &WaitRecord) -> Self {
        let tag = wait.tag.filter(|_| wait.number == 0);
        Self { board: wait.board, number: wait.number, tag }
    }
}

/// A list of needed members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum List {
    /// All members that have not come, or have come and are at work.
    Missing,
    /// The members before this one that have not come, or have come and are at work.
    Before(usize),
    /// The members that are so far behind that no member may begin this operation.
    FarBehind,
}

struct Reader<'a> {
    segment: &'a Observed,
    before: &'a Picture,
    now: &'a Picture,
    /// The place of each slot's member in the picture.
    places: HashMap<u32, u32>,
    groups: Groups,
    at_work: HashMap<Key, Rc<[u32]>>,
    everybody: HashMap<u64, Rc<[u32]>>,
    meetings: HashMap<Key, Option<Meeting>>,
}

/// Derives the conduct of a job's members from two pictures and the boards of their groups.
pub(crate) fn conducts(job: &ObservedJob, before: &Picture, now: &Picture) -> Conducts {
    let places = (0..).zip(&now.members).map(|(place, member)| (member.slot, place)).collect();
    let mut reader = Reader {
        segment: &job.segment,
        before,
        now,
        places,
        groups: Groups::default(),
        at_work: HashMap::new(),
        everybody: HashMap::new(),
        meetings: HashMap::new(),
    };
    let all = now.members.iter().map(|member| reader.conduct(member)).collect();
    let mismatches = reader.mismatches();
    Conducts { all, mismatches, groups: reader.groups }
}

/// The wait of a member that lasts: the same in both pictures, for some time.
pub(crate) fn lasting<'a>(
    before: &Picture,
    now: &Picture,
    member: &'a Member,
) -> Option<&'a WaitRecord> {
    let wait = &member.portrait.wait;
    let earlier = before.member(member.slot)?;
    let is_same =
        earlier.portrait.wait == *wait && earlier.record.incarnation == member.record.incarnation;
    let lasts_ns = now.at_ns.saturating_sub(wait.since_ns);
    let is_lasting = wait.operation != Operation::None && lasts_ns >= LASTING.as_nanos() as u64;
    (is_same && is_lasting).then_some(wait)
}

impl Reader<'_> {
    fn conduct(&mut self, member: &Member) -> Conduct {
        match member.record.state {
            SlotState::Free | SlotState::Reserved => return Conduct::Runs,
            SlotState::Departed => return Conduct::Left,
            SlotState::Dead => return Conduct::Dead,
            SlotState::Alive if member.is_stopped() => return Conduct::Stopped,
            SlotState::Alive => {}
        }
        let Some(wait) = lasting(self.before, self.now, member) else { return Conduct::Runs };
        // One thread waits for all; the others may be at work.
        let has_threads = member.figures.is_some_and(|figures| figures.threads > 1);
        if has_threads && process_figures::has_running_thread(member.record.pid) {
            return Conduct::Runs;
        }
        let any_of = member.portrait.remark.as_ref().map_or(&[][..], |remark| &remark.any_of);
        if !any_of.is_empty() {
            return Conduct::Waits(Needs::Any(places_of(&self.places, any_of.iter().copied())));
        }
        match self.needs(member.slot, wait) {
            Needs::All(nobody) if nobody.is_empty() => self.without_need(member, wait),
            needs => Conduct::Waits(needs),
        }
    }

    /// The conduct of a member that waits although no member is missing. Those that wait there may be at work for each
    /// other. If all of them sleep, something holds them.
    fn without_need(&mut self, member: &Member, wait: &WaitRecord) -> Conduct {
        let at_work = self.at_work(wait);
        match self.places.get(&member.slot) {
            Some(own) if at_work.contains(own) => Conduct::Runs,
            _ if at_work.is_empty() => Conduct::Held,
            _ => Conduct::Waits(Needs::All(at_work)),
        }
    }

    /// The members in the operation of this wait that are awake, or have moved since the second picture.
    fn at_work(&mut self, wait: &WaitRecord) -> Rc<[u32]> {
        let key = Key::of(wait);
        if let Some(known) = self.at_work.get(&key) {
            return known.clone();
        }
        if self.at_work.is_empty() {
            // Gives members time to move that are about to; a signal that ends it early does no harm.
            let _ = rustix::event::poll(&mut [], Timespec::try_from(LASTING).ok().as_ref());
        }
        let meeting = self.meetings.get(&key).and_then(Option::as_ref);
        let members = meeting.into_iter().flat_map(|meeting| {
            let all = meeting.roster.members.iter().zip(&meeting.standings);
            all.filter(|(_, standing)| **standing != Standing::Past).map(|(place, _)| place.slot)
        });
        let is_at_work = |slot: &u32| self.now.member(*slot).is_some_and(|one| self.moves(one));
        let found = places_of(&self.places, members.filter(is_at_work));
        self.at_work.insert(key, found.clone());
        found
    }

    /// Whether a member is awake, or has moved since the second picture, as far as that can be seen.
    fn moves(&self, member: &Member) -> bool {
        let sleeps = |figures: Option<ProcessFigures>| {
            figures.is_some_and(|figures| figures.activity == Activity::Sleeps)
        };
        let pid = member.record.pid;
        !sleeps(member.figures)
            || !sleeps(process_figures::of_process(pid))
            || process_figures::has_running_thread(pid)
            || self.segment.portrait(member.slot).as_ref() != Some(&member.portrait)
    }

    fn needs(&mut self, slot: u32, wait: &WaitRecord) -> Needs {
        let peer = wait.peer.map(|peer| self.one(peer));
        match (wait.operation, peer) {
            (Operation::Collective, None) => self.needs_together(slot, wait),
            (_, Some(needs)) => needs,
            (Operation::Receive | Operation::Probe, None) => self.anybody(wait.board),
            _ => Needs::Others,
        }
    }

    fn one(&self, slot: u32) -> Needs {
        self.places.get(&slot).map_or(Needs::Others, |&place| Needs::One(place))
    }

    /// Any member of the group, or of the job if the group is not known.
    fn anybody(&mut self, board: u64) -> Needs {
        let roster = self.groups.of(self.segment, board);
        let (places, now) = (&self.places, self.now);
        let list = self.everybody.entry(board).or_insert_with(|| match roster {
            Some(roster) => places_of(places, roster.members.iter().map(|place| place.slot)),
            None => (0..now.members.len() as u32).collect(),
        });
        Needs::Any(list.clone())
    }

    /// The members without which an operation of a group does not progress.
    fn needs_together(&mut self, slot: u32, wait: &WaitRecord) -> Needs {
        let key = Key::of(wait);
        if !self.meetings.contains_key(&key) {
            let meeting = self.meeting(wait);
            self.meetings.insert(key, meeting);
        }
        let Some(Some(meeting)) = self.meetings.get_mut(&key) else { return Needs::Others };
        let members = &meeting.roster.members;
        let Some(own) = members.iter().position(|place| place.slot == slot) else {
            return Needs::Others;
        };
        let list = match meeting.standings[own] {
            Standing::Past => return Needs::Others,
            Standing::NotYet { .. } if wait.number == 0 => List::Missing,
            Standing::NotYet { .. } => List::FarBehind,
            Standing::Here(signature) => match role(Signature::of_tag(signature), own as u32) {
                Role::Root(root) if !meeting.is_past(root) => {
                    let root = members.get(root as usize).map(|place| place.slot);
                    return root.map_or(Needs::Others, |root| self.one(root));
                }
                Role::Root(_) | Role::All => List::Missing,
                Role::Before => List::Before(own),
            },
        };
        let needed = meeting.list(list, self.now, &self.places, wait);
        match list {
            List::Before(_) if needed.is_empty() => {
                Needs::All(meeting.list(List::Missing, self.now, &self.places, wait))
            }
            // It may wait for room.
            List::FarBehind if needed.is_empty() => Needs::Others,
            _ => Needs::All(needed),
        }
    }

    /// The operation of this wait, with the standing of each member. An agreement has no number: only the processes
    /// that wait in it are known.
    fn meeting(&mut self, wait: &WaitRecord) -> Option<Meeting> {
        let roster = self.groups.of(self.segment, wait.board)?;
        let standing = |place: &_| match wait.number {
            0 => Standing::NotYet { behind: 0 },
            number => standing_of(self.segment, *place, number),
        };
        let standings = roster.members.iter().map(standing).collect();
        Some(Meeting { roster, standings, lists: HashMap::new() })
    }

    /// The operations for which members made different calls.
    fn mismatches(&self) -> Vec<Mismatch> {
        let mut found: Vec<(u64, u32, Mismatch)> = Vec::new();
        for (&Key { board, number, .. }, meeting) in &self.meetings {
            let Some(meeting) = meeting else { continue };
            let mut calls: Vec<(u32, Vec<u32>)> = Vec::new();
            for (place, standing) in meeting.roster.members.iter().zip(&meeting.standings) {
                let Standing::Here(signature) = standing else { continue };
                let Some(&process) = self.places.get(&place.slot) else { continue };
                // Signatures also differ if members differed before.
                match calls.iter_mut().find(|(known, _)| known == signature) {
                    Some((_, processes)) => processes.push(process),
                    None => calls.push((*signature, vec![process])),
                }
            }
            if calls.len() > 1 {
                // The smaller number is more likely to be wrong, and comes last.
                calls.sort_by_key(|(_, processes)| std::cmp::Reverse(processes.len()));
                found.push((board, number, Mismatch { board, calls }));
            }
        }
        found.sort_by_key(|(board, number, _)| (*board, *number));
        found.into_iter().map(|(.., mismatch)| mismatch).collect()
    }
}

/// The needs of a member of an operation once it has come.
enum Role {
    Root(u32),
    Before,
    All,
}

fn role(call: Signature, own: u32) -> Role {
    match (call.operation(), call.root()) {
        (_, Some(root)) if own != root => Role::Root(root),
        (Some(Together::Scan | Together::ExclusiveScan), _) => Role::Before,
        _ => Role::All,
    }
}

/// The slots of the members on a list.
fn needed(now: &Picture, meeting: &Meeting, list: List, wait: &WaitRecord) -> Vec<u32> {
    let count = if let List::Before(member) = list { member } else { usize::MAX };
    let members = meeting.roster.members.iter().zip(&meeting.standings).take(count);
    let is_needed = |slot: u32, standing: &Standing| match (list, standing) {
        (List::FarBehind, Standing::NotYet { behind }) => *behind >= WINDOW as u32,
        (List::FarBehind, _) | (_, Standing::Past) => false,
        (_, Standing::NotYet { .. }) if wait.number != 0 => true,
        // It has come: it waits like the others, or is at work for them.
        _ => !now.member(slot).is_some_and(|member| waits_in(member, wait)),
    };
    let needed = members.filter(|(place, standing)| is_needed(place.slot, standing));
    needed.map(|(place, _)| place.slot).collect()
}

/// Whether a member waits in this operation.
fn waits_in(member: &Member, wait: &WaitRecord) -> bool {
    let own = &member.portrait.wait;
    let is_alive = member.record.state == SlotState::Alive && !member.is_stopped();
    is_alive
        && own.operation == Operation::Collective
        && (Key::of(own), own.context) == (Key::of(wait), wait.context)
}

/// The places of these slots in the picture. A slot that is not in it gets an impossible place.
fn places_of(places: &HashMap<u32, u32>, slots: impl Iterator<Item = u32>) -> Rc<[u32]> {
    slots.map(|slot| places.get(&slot).copied().unwrap_or(u32::MAX)).collect()
}
