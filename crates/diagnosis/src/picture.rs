//! The visible state of a job on all its hosts at a moment.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use landeck_host::report::duration;
use landeck_memory::{JobState, SlotState};
use landeck_wire::{ContextId, ProcessId, SegmentId, Slot};
use serde::{Deserialize, Serialize};

use crate::host_picture::{BoardPicture, FarMember, HostPicture, ObservedWait, Stored};
pub use crate::host_picture::{Doing, Member};
use crate::names::{Names, Role};

/// A job at a moment.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The number of processes of the job's first world.
    pub processes: u32,
    /// The names of the processes.
    pub names: Names,
    /// Whether the job runs or is ending.
    pub state: JobState,
    /// The hosts of the job, in the order of their numbers.
    pub hosts: Vec<HostInPicture>,
    /// All processes that are, were or will be in the job: by slot on one host, on several by rank.
    pub members: Vec<Member>,
    places: HashMap<(SegmentId, Slot), u32>,
    boards: HashMap<BoardPlace, Rc<BoardPicture>>,
    /// The names of the gateways on the way from one host to another, by their numbers.
    ways: HashMap<(u16, u16), Vec<String>>,
}

/// A host of a job, as far as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInPicture {
    /// The identity of the segment there; `None` if no other host knows it.
    pub host: Option<SegmentId>,
    /// The number of the host in its machine.
    pub number: u16,
    /// The name of the host.
    pub name: String,
    /// The reason why its picture is missing, if it is.
    pub missing: Option<MissingPicture>,
    /// The data of messages that stay there.
    pub stored: Stored,
}

/// The reason why the picture of a host is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MissingPicture {
    /// The arbiter has called the host lost.
    Lost,
    /// The daemon of the host does not answer.
    Silent {
        /// The time since it was last heard, in milliseconds.
        silent_ms: u64,
    },
    /// The job has ended on that host.
    Over,
    /// The observer is of another release than the daemons of the job.
    OtherRelease,
    /// The daemon of the observer's own host does not answer, so nobody asks the other one.
    NotAsked {
        /// The time since the first question, in milliseconds.
        silent_ms: u64,
    },
}

impl fmt::Display for MissingPicture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ms: u64| duration(Duration::from_millis(ms));
        match self {
            Self::Lost => formatter.write_str("lost"),
            Self::Silent { silent_ms } => {
                write!(formatter, "daemon silent for {}", time(*silent_ms))
            }
            Self::Over => formatter.write_str("the job is over there"),
            Self::OtherRelease => {
                formatter.write_str("not asked: the job runs under another release of Landeck")
            }
            Self::NotAsked { silent_ms } => {
                write!(formatter, "not asked: daemon of this host silent for {}", time(*silent_ms))
            }
        }
    }
}

/// A host without a picture, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingHost {
    /// The number of the host in its machine.
    pub number: u16,
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: MissingPicture,
}

/// The place of a group's board. A group that spans hosts has none: its context, which is equal on all hosts, stands for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoardPlace {
    host: SegmentId,
    board: u64,
}

impl BoardPlace {
    /// The first world of a job on several hosts.
    pub const WORLD: Self = Self::without_board(ContextId::WORLD.0);

    /// A group without a board, by the context of a wait in it.
    const fn without_board(context: u32) -> Self {
        Self { host: SegmentId(0), board: ContextId(context).of_group().0 as u64 }
    }
}

impl Picture {
    /// Joins the pictures of a job's hosts. Of a host whose picture is missing, the processes are known by the records
    /// of the others.
    pub fn join(pictures: Vec<HostPicture>, missing: Vec<MissingHost>) -> Self {
        let mut names = Names::default();
        let mut hosts: BTreeMap<u16, HostInPicture> = BTreeMap::new();
        for picture in &pictures {
            names.add_host(picture.host, &picture.name, picture.processes);
            let HostPicture { host, number, name, stored, .. } = picture;
            let sight = HostInPicture {
                host: Some(*host),
                number: *number,
                name: name.clone(),
                missing: None,
                stored: *stored,
            };
            hosts.insert(*number, sight);
        }
        for MissingHost { number, name, why } in missing {
            let stored = Stored::default();
            let sight = HostInPicture { host: None, number, name, missing: Some(why), stored };
            hosts.entry(number).or_insert(sight);
        }
        let mut members: Vec<Member> = Vec::new();
        let mut known: HashMap<(SegmentId, Slot), u32> = HashMap::new();
        let seen: Vec<SegmentId> = pictures.iter().map(|picture| picture.host).collect();
        for picture in &pictures {
            let far = picture.far.iter().filter(|far| !seen.contains(&far.process.segment));
            for far in far {
                if known.insert((far.process.segment, far.process.slot), 0).is_none() {
                    note_host(&mut hosts, far, picture);
                    members.push(Member::unseen(far));
                }
            }
        }
        for host in hosts.values() {
            if let Some(id) = host.host.filter(|id| !seen.contains(id)) {
                names.add_host(id, &host.name, 0);
            }
        }
        let ways = pictures.iter().flat_map(|from| {
            let to = from.ways.iter().cloned();
            to.map(|(to, gateways)| ((from.number, to), gateways))
        });
        let ways = ways.collect();
        // A part whose processes have ended is no sign: data may stay there while the job goes on.
        let lives = |picture: &&HostPicture| {
            picture.members.iter().any(|member| member.record.state == SlotState::Alive)
        };
        let is_ending = pictures.iter().filter(lives).any(|picture| picture.is_ending);
        let processes = pictures.iter().map(|picture| picture.ranks).max().unwrap_or(0);
        let mut boards = HashMap::new();
        for picture in pictures {
            for board in picture.boards {
                let place = BoardPlace { host: picture.host, board: board.board };
                boards.insert(place, Rc::new(board));
            }
            members.extend(picture.members);
        }
        members.iter().for_each(|one| names.add(one.process, one.role, one.record.pid));
        if names.span_hosts() {
            members.sort_by_key(|member| match member.role {
                Role::Rank(rank) => (0, rank, 0, member.process),
                Role::Again(of) => (1, of.rank, of.number, member.process),
                Role::Started(number) => (2, number, 0, member.process),
                Role::Guest(_) => (3, 0, 0, member.process),
            });
            boards.insert(BoardPlace::WORLD, Rc::new(world(&members)));
            for member in members.iter().filter(|member| !member.group.is_empty()) {
                let place = BoardPlace::without_board(member.wait.context);
                boards.entry(place).or_insert_with(|| Rc::new(over_hosts(&member.group)));
            }
        }
        let places = (0..)
            .zip(&members)
            .map(|(place, Member { process, .. })| ((process.segment, process.slot), place));
        let state = if is_ending { JobState::Ending } else { JobState::Running };
        let hosts = hosts.into_values().collect();
        Self { processes, places: places.collect(), names, state, hosts, members, boards, ways }
    }

    /// The names of the gateways between the hosts of two processes, those nearest to the first one first; none if the hosts
    /// reach each other, or it is not known.
    pub fn gateways_between(&self, from: ProcessId, to: ProcessId) -> Vec<&str> {
        let to = self.host_of(to).map(|host| host.number);
        to.map_or_else(Vec::new, |to| self.gateways_to_host(from, to))
    }

    /// The names of the gateways between the host of a process and that of a number, as
    /// [`Picture::gateways_between`] gives them.
    pub fn gateways_to_host(&self, from: ProcessId, to: u16) -> Vec<&str> {
        let Some(from) = self.host_of(from).map(|host| host.number) else { return Vec::new() };
        // A host that is looked at from itself says nothing of its ways, but the other one does.
        let there = self.ways.get(&(from, to)).map(|all| all.iter().map(String::as_str).collect());
        let back =
            || self.ways.get(&(to, from)).map(|all| all.iter().rev().map(String::as_str).collect());
        there.or_else(back).unwrap_or_default()
    }

    /// The place of a process among the members.
    pub fn place(&self, process: ProcessId) -> Option<u32> {
        self.places.get(&(process.segment, process.slot)).copied()
    }

    /// The member that a process is.
    pub fn member(&self, process: ProcessId) -> Option<&Member> {
        self.members.get(self.place(process)? as usize)
    }

    /// Whether any process lives, as far as that was seen.
    pub fn is_alive(&self) -> bool {
        self.members.iter().any(|member| member.record.state == SlotState::Alive)
    }

    /// The sight of a process's host.
    pub fn host_of(&self, process: ProcessId) -> Option<&HostInPicture> {
        self.hosts.iter().find(|sight| sight.host == Some(process.segment))
    }

    /// The board of the group in which a process waits.
    pub(crate) fn board_place(&self, process: ProcessId, wait: &ObservedWait) -> BoardPlace {
        match wait.board == 0 && self.names.span_hosts() {
            true => BoardPlace::without_board(wait.context),
            false => BoardPlace { host: process.segment, board: wait.board },
        }
    }

    /// The group with this board.
    pub(crate) fn board(&self, place: BoardPlace) -> Option<&Rc<BoardPicture>> {
        self.boards.get(&place)
    }
}

/// The first world of a job on several hosts: its ranks meet on no board.
fn world(members: &[Member]) -> BoardPicture {
    let ranks = members.iter().filter(|member| matches!(member.role, Role::Rank(_)));
    BoardPicture {
        board: 0,
        is_world: true,
        members: ranks.map(|member| member.process).collect(),
        operations: Vec::new(),
    }
}

/// A group over hosts, as one of its members lists it.
fn over_hosts(members: &[ProcessId]) -> BoardPicture {
    BoardPicture { board: 0, is_world: false, members: members.to_vec(), operations: Vec::new() }
}

/// Learns the identity of a host whose picture is missing from a record of one of its processes.
fn note_host(hosts: &mut BTreeMap<u16, HostInPicture>, far: &FarMember, by: &HostPicture) {
    let number = far.host_number;
    let sight = hosts.entry(number).or_insert_with(|| {
        let known = by.host_names.iter().find(|(known, _)| *known == number);
        let name = known.map_or_else(|| format!("host {number}"), |(_, name)| name.clone());
        let missing = Some(MissingPicture::Over);
        HostInPicture { host: None, number, name, missing, stored: Stored::default() }
    });
    sight.host = Some(far.process.segment);
    if far.is_host_lost {
        sight.missing = Some(MissingPicture::Lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use landeck_host::process_figures::{Activity, ProcessFigures};
    use landeck_memory::Operation;

    fn member(operation: Operation, activity: Activity) -> Member {
        let mut member = samples::member(1, 0, 0);
        member.wait = ObservedWait { operation, since_ns: 100, ..ObservedWait::default() };
        member.figures = Some(ProcessFigures { activity, computed: Duration::ZERO, threads: 1 });
        member
    }

    #[test]
    fn every_activity_of_a_process_has_one_word() {
        let of = |operation, activity| member(operation, activity).doing();
        assert_eq!(of(Operation::None, Activity::Runs), Doing::Run);
        assert_eq!(of(Operation::None, Activity::Sleeps), Doing::Wait);
        assert_eq!(of(Operation::Receive, Activity::Runs), Doing::Spin);
        assert_eq!(of(Operation::Receive, Activity::Stopped), Doing::Stopped);
        let mut asleep = member(Operation::Receive, Activity::Sleeps);
        asleep.is_asleep = true;
        assert_eq!(asleep.doing(), Doing::Sleep);
        asleep.record.stopped = true;
        assert_eq!(asleep.doing(), Doing::Stopped);
        asleep.is_seen = false;
        assert_eq!(asleep.doing(), Doing::Unseen);
        asleep.record.state = SlotState::Dead;
        assert_eq!(asleep.doing(), Doing::Dead);
    }

    #[test]
    fn the_present_wait_counts() {
        let mut waiting = member(Operation::Send, Activity::Runs);
        waiting.counters.waited_ns = 7;
        let mut at = |at_ns| {
            waiting.at_ns = at_ns;
            waiting.waited_ns()
        };
        assert_eq!((at(150), at(50)), (57, 7), "the clock of the words may be anything");
        waiting.wait.operation = Operation::None;
        assert_eq!(waiting.waited_ns(), 7);
    }

    #[test]
    fn a_picture_of_a_host_travels() {
        let mut picture = samples::two_hosts().remove(1);
        picture.boards = vec![BoardPicture {
            board: 7,
            is_world: false,
            members: vec![samples::process(2, 0)],
            operations: vec![(3, vec![crate::host_picture::BoardProgress::Here(9)])],
        }];
        let bytes = postcard::to_stdvec(&picture).unwrap();
        assert_eq!(postcard::from_bytes::<HostPicture>(&bytes).unwrap(), picture);
    }

    #[test]
    fn pictures_of_hosts_become_one() {
        let picture = Picture::join(samples::two_hosts(), Vec::new());
        let roles: Vec<Role> = picture.members.iter().map(|member| member.role).collect();
        assert_eq!(roles, [0, 1, 2, 3].map(Role::Rank), "by rank, though ranks alternate");
        assert_eq!(picture.place(samples::process(2, 1)), Some(3));
        let names: Vec<&str> = picture.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["n1", "n2"]);
        assert!(picture.hosts.iter().all(|host| host.missing.is_none()));
    }

    #[test]
    fn processes_of_a_missing_host_are_known_by_records() {
        let mut pictures = samples::two_hosts();
        pictures.truncate(1);
        let why = MissingPicture::Silent { silent_ms: 2_100 };
        let silent = MissingHost { number: 1, name: "n2".to_owned(), why };
        let picture = Picture::join(pictures.clone(), vec![silent]);
        let doing: Vec<Doing> = picture.members.iter().map(Member::doing).collect();
        assert_eq!(doing, [Doing::Run, Doing::Unseen, Doing::Run, Doing::Unseen]);
        let sight = picture.host_of(samples::process(2, 0)).unwrap();
        assert_eq!(sight.missing.as_ref().unwrap().to_string(), "daemon silent for 2.1 s");
        for far in &mut pictures[0].far {
            far.record.state = SlotState::Dead;
            far.is_host_lost = true;
        }
        let picture = Picture::join(pictures, Vec::new());
        assert_eq!(picture.hosts[1].missing, Some(MissingPicture::Lost));
        assert_eq!(picture.members[1].doing(), Doing::Dead);
        assert!(picture.members[1].is_host_lost);
    }
}
