//! Derives the conduct of each process from two pictures of a job, a moment apart: which process needs which.
//!
//! Only a wait that is the same in both pictures and lasts for some time counts: everything else progresses. For a
//! collective operation, the board of the group tells which members have come, whatever its processes do. A group
//! over several hosts has no board: there, the members that wait in the same operation have come.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use landeck_board::WINDOW;
use landeck_collectives::{Operation as Together, Signature};
use landeck_host::process_figures::Activity;
use landeck_memory::{Operation, SlotState};
use landeck_wire::ProcessId;

use crate::host_picture::{BoardPicture, BoardProgress, ObservedWait};
use crate::picture::{BoardPlace, Member, Picture};
use crate::verdict::{Conduct, Needs, WaitMismatch};

/// The shortest wait that is significant: a process that was just woken may have to wait for a processor.
pub const LASTING: Duration = Duration::from_millis(100);

/// The conduct of the members of a job, and the mismatches that were found on the way.
pub(crate) struct Conducts {
    /// The conducts, in the order of the picture's members.
    pub(crate) all: Vec<Conduct>,
    pub(crate) mismatches: Vec<WaitMismatch>,
}

/// One operation of a group, with the progress of each member.
struct Meeting {
    group: Rc<BoardPicture>,
    progress: Vec<BoardProgress>,
    /// The needed members, each list made once.
    lists: HashMap<List, Rc<[u32]>>,
}

impl Meeting {
    fn is_past(&self, member: u32) -> bool {
        self.progress.get(member as usize) == Some(&BoardProgress::Past)
    }

    /// The places in the picture of the members on a list.
    fn list(&mut self, list: List, now: &Picture, member: &Member) -> Rc<[u32]> {
        if let Some(known) = self.lists.get(&list) {
            return known.clone();
        }
        let needed = places_of(now, needed(now, self, list, member).into_iter());
        self.lists.insert(list, needed.clone());
        needed
    }
}

/// The identity of an operation of a group: its board, its number there, and its tag if there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    board: BoardPlace,
    number: u32,
    tag: Option<u32>,
}

impl Key {
    fn of(now: &Picture, member: &Member) -> Self {
        let wait = &member.wait;
        let tag = wait.tag.filter(|_| wait.number == 0);
        Self { board: now.board_place(member.process, wait), number: wait.number, tag }
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
    before: &'a Picture,
    now: &'a Picture,
    /// Takes a third picture.
    look_again: &'a mut dyn FnMut() -> Picture,
    /// The third picture, once it was needed.
    later: Option<Picture>,
    at_work: HashMap<Key, Rc<[u32]>>,
    everybody: HashMap<BoardPlace, Rc<[u32]>>,
    meetings: HashMap<Key, Option<Meeting>>,
}

/// Derives the conduct of a job's members from two pictures, and from a third one that is taken if there is doubt.
pub(crate) fn conducts(
    before: &Picture,
    now: &Picture,
    look_again: &mut dyn FnMut() -> Picture,
) -> Conducts {
    let mut reader = Reader {
        before,
        now,
        look_again,
        later: None,
        at_work: HashMap::new(),
        everybody: HashMap::new(),
        meetings: HashMap::new(),
    };
    let all = now.members.iter().map(|member| reader.conduct(member)).collect();
    let mismatches = reader.mismatches();
    Conducts { all, mismatches }
}

/// The wait of a member that lasts: the same in both pictures, for some time.
pub(crate) fn lasting<'a>(before: &Picture, member: &'a Member) -> Option<&'a ObservedWait> {
    let wait = &member.wait;
    let earlier = before.member(member.process)?;
    let is_same = earlier.wait == *wait && earlier.record.incarnation == member.record.incarnation;
    let lasts_ns = member.at_ns.saturating_sub(wait.since_ns);
    let is_lasting = wait.operation != Operation::None && lasts_ns >= LASTING.as_nanos() as u64;
    (is_same && is_lasting).then_some(wait)
}

impl Reader<'_> {
    fn conduct(&mut self, member: &Member) -> Conduct {
        match member.record.state {
            SlotState::Left | SlotState::Departed => return Conduct::Left,
            SlotState::Dead => return Conduct::Dead,
            _ if !member.is_seen => return Conduct::Unseen,
            SlotState::Free | SlotState::Reserved => return Conduct::Runs,
            SlotState::Alive if member.is_stopped() => return Conduct::Stopped,
            SlotState::Alive => {}
        }
        if lasting(self.before, member).is_none() {
            return Conduct::Runs;
        }
        // One thread waits for all; the others may be at work.
        let has_threads = member.figures.is_some_and(|figures| figures.threads > 1);
        if has_threads && member.has_running_thread {
            return Conduct::Runs;
        }
        if !member.any_of.is_empty() {
            let any_of = places_of(self.now, member.any_of.iter().copied());
            return Conduct::Waits(Needs::Any(any_of));
        }
        match self.needs(member) {
            Needs::All(nobody) if nobody.is_empty() => self.without_need(member),
            needs => Conduct::Waits(needs),
        }
    }

    /// The conduct of a member that waits although no member is missing. Those that wait there may be at work for each
    /// other. If all of them sleep, something holds them.
    fn without_need(&mut self, member: &Member) -> Conduct {
        let at_work = self.at_work(member);
        match self.now.place(member.process) {
            Some(own) if at_work.contains(&own) => Conduct::Runs,
            _ if at_work.is_empty() => Conduct::Held,
            _ => Conduct::Waits(Needs::All(at_work)),
        }
    }

    /// The members in the operation of this member's wait that are awake, or have moved since the second picture.
    fn at_work(&mut self, member: &Member) -> Rc<[u32]> {
        let key = Key::of(self.now, member);
        if let Some(known) = self.at_work.get(&key) {
            return known.clone();
        }
        let Self { now, look_again, later, meetings, .. } = self;
        let later = later.get_or_insert_with(look_again);
        let meeting = meetings.get(&key).and_then(Option::as_ref);
        let members = meeting.into_iter().flat_map(|meeting| {
            let all = meeting.group.members.iter().zip(&meeting.progress);
            all.filter(|(_, progress)| **progress != BoardProgress::Past)
                .map(|(process, _)| *process)
        });
        let is_at_work = |process: &ProcessId| {
            now.member(*process).is_some_and(|one| moves(one, later.member(*process)))
        };
        let found = places_of(now, members.filter(is_at_work));
        self.at_work.insert(key, found.clone());
        found
    }

    fn needs(&mut self, member: &Member) -> Needs {
        let wait = &member.wait;
        let peer = wait.peer.map(|peer| one(self.now, peer));
        match (wait.operation, peer) {
            (Operation::Collective, None) => self.needs_together(member),
            (_, Some(needs)) => needs,
            (Operation::Receive | Operation::Probe, None) => self.anybody(member),
            _ => Needs::Others,
        }
    }

    /// Any member of the group, or of the job if the group is not known.
    fn anybody(&mut self, member: &Member) -> Needs {
        let now = self.now;
        let board = now.board_place(member.process, &member.wait);
        let list = self.everybody.entry(board).or_insert_with(|| match now.board(board) {
            Some(group) => places_of(now, group.members.iter().copied()),
            None => (0..now.members.len() as u32).collect(),
        });
        Needs::Any(list.clone())
    }

    /// The members without which an operation of a group does not progress.
    fn needs_together(&mut self, member: &Member) -> Needs {
        let now = self.now;
        let key = Key::of(now, member);
        let meeting = self.meetings.entry(key).or_insert_with(|| meeting(now, key));
        let Some(meeting) = meeting else { return Needs::Others };
        let group = meeting.group.clone();
        let is_own = |process: &ProcessId| {
            (process.segment, process.slot) == (member.process.segment, member.process.slot)
        };
        let Some(own) = group.members.iter().position(is_own) else { return Needs::Others };
        let list = match meeting.progress[own] {
            BoardProgress::Past => return Needs::Others,
            BoardProgress::NotYet { .. } if member.wait.number == 0 => List::Missing,
            BoardProgress::NotYet { .. } => List::FarBehind,
            BoardProgress::Here(signature) => {
                match role(Signature::of_tag(signature), own as u32) {
                    Role::Root(root) if !meeting.is_past(root) => {
                        let root = group.members.get(root as usize);
                        return root.map_or(Needs::Others, |root| one(now, *root));
                    }
                    Role::Root(_) | Role::All => List::Missing,
                    Role::Before => List::Before(own),
                }
            }
        };
        let needed = meeting.list(list, now, member);
        match list {
            List::Before(_) if needed.is_empty() => {
                Needs::All(meeting.list(List::Missing, now, member))
            }
            // It may wait for room.
            List::FarBehind if needed.is_empty() => Needs::Others,
            _ => Needs::All(needed),
        }
    }

    /// The operations for which members made different calls.
    fn mismatches(&self) -> Vec<WaitMismatch> {
        let mut found: Vec<(BoardPlace, u32, WaitMismatch)> = Vec::new();
        for (&Key { board, number, .. }, meeting) in &self.meetings {
            let Some(meeting) = meeting else { continue };
            let mut calls: Vec<(u32, Vec<u32>)> = Vec::new();
            for (process, progress) in meeting.group.members.iter().zip(&meeting.progress) {
                let BoardProgress::Here(signature) = progress else { continue };
                let Some(process) = self.now.place(*process) else { continue };
                // Signatures also differ if members differed before.
                match calls.iter_mut().find(|(known, _)| known == signature) {
                    Some((_, processes)) => processes.push(process),
                    None => calls.push((*signature, vec![process])),
                }
            }
            if calls.len() > 1 {
                // The smaller number is more likely to be wrong, and comes last.
                calls.sort_by_key(|(_, processes)| std::cmp::Reverse(processes.len()));
                found.push((board, number, WaitMismatch { board, calls }));
            }
        }
        found.extend(self.mismatches_without_board());
        found.sort_by_key(|(board, number, _)| (*board, *number));
        found.into_iter().map(|(.., mismatch)| mismatch).collect()
    }
}

/// Calls in one place: the signature of each, and the processes that made it.
type Calls = Vec<(u32, Vec<u32>)>;

impl Reader<'_> {
    /// The operations of groups without a board for which members made different calls: they wait in operations with
    /// one number. What members called before is not known here.
    fn mismatches_without_board(&self) -> Vec<(BoardPlace, u32, WaitMismatch)> {
        let mut calls: BTreeMap<(BoardPlace, u32), Calls> = BTreeMap::new();
        for (place, member) in (0..).zip(&self.now.members) {
            let is_alive = member.record.state == SlotState::Alive && member.is_seen;
            let wait = lasting(self.before, member).filter(|wait| is_alive && wait.number == 0);
            let Some(wait) = wait.filter(|wait| wait.operation == Operation::Collective) else {
                continue;
            };
            let board = self.now.board_place(member.process, wait);
            let Some(tag) = wait.tag.filter(|_| self.now.board(board).is_some()) else { continue };
            let known = calls.entry((board, Signature::of_tag(tag).number())).or_default();
            match known.iter_mut().find(|(call, _)| *call == tag) {
                Some((_, places)) => places.push(place),
                None => known.push((tag, vec![place])),
            }
        }
        let differ = calls.into_iter().filter(|(_, calls)| calls.len() > 1);
        differ
            .map(|((board, number), mut calls)| {
                calls.sort_by_key(|(_, processes)| std::cmp::Reverse(processes.len()));
                (board, number, WaitMismatch { board, calls })
            })
            .collect()
    }
}

fn one(now: &Picture, process: ProcessId) -> Needs {
    now.place(process).map_or(Needs::Others, Needs::One)
}

/// Whether a member is awake, or has moved since the second picture, as far as that can be seen.
fn moves(now: &Member, later: Option<&Member>) -> bool {
    let Some(later) = later.filter(|later| later.is_seen) else { return true };
    let sleeps = |member: &Member| {
        member.figures.is_some_and(|figures| figures.activity == Activity::Sleeps)
    };
    !sleeps(now) || !sleeps(later) || later.has_running_thread || !now.says_the_same(later)
}

/// The operation of this key, with the progress of each member. An agreement, and an operation over several hosts, has
/// no number: only the processes that wait in it are known.
fn meeting(now: &Picture, Key { board, number, .. }: Key) -> Option<Meeting> {
    let group = now.board(board)?.clone();
    let progress = match number {
        0 => vec![BoardProgress::NotYet { behind: 0 }; group.members.len()],
        _ => group.operations.iter().find(|(known, _)| *known == number)?.1.clone(),
    };
    (progress.len() == group.members.len()).then(|| Meeting {
        group,
        progress,
        lists: HashMap::new(),
    })
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

/// The members of a meeting on a list, for a member that waits there.
fn needed(now: &Picture, meeting: &Meeting, list: List, waiting: &Member) -> Vec<ProcessId> {
    let count = if let List::Before(member) = list { member } else { usize::MAX };
    let members = meeting.group.members.iter().zip(&meeting.progress).take(count);
    let is_needed = |process: ProcessId, progress: &BoardProgress| match (list, progress) {
        (List::FarBehind, BoardProgress::NotYet { behind }) => *behind >= WINDOW as u32,
        (List::FarBehind, _) | (_, BoardProgress::Past) => false,
        (_, BoardProgress::NotYet { .. }) if waiting.wait.number != 0 => true,
        // It has come: it waits like the others, or is at work for them.
        _ => !now.member(process).is_some_and(|member| waits_in(now, member, waiting)),
    };
    let needed = members.filter(|(process, progress)| is_needed(**process, progress));
    needed.map(|(process, _)| *process).collect()
}

/// Whether a member waits in the operation in which another one does.
fn waits_in(now: &Picture, member: &Member, other: &Member) -> bool {
    let is_alive =
        member.record.state == SlotState::Alive && member.is_seen && !member.is_stopped();
    is_alive
        && member.wait.operation == Operation::Collective
        && (Key::of(now, member), member.wait.context) == (Key::of(now, other), other.wait.context)
}

/// The places of these processes in the picture. A process that is not in it gets an impossible place.
fn places_of(now: &Picture, processes: impl Iterator<Item = ProcessId>) -> Rc<[u32]> {
    processes.map(|process| now.place(process).unwrap_or(u32::MAX)).collect()
}
