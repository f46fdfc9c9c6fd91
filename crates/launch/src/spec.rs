//! Everything that the hosts of a job must know about it.

use std::time::Duration;

use landeck_host::placement::{BindTo, MapBy};
use landeck_memory::plan::{FAR_MAX, GUESTS, HOSTS, LINK_WORDS, SETTINGS_WORDS, SLOTS_MAX};
use landeck_wire::{HostNumber, Incarnation, JobId, ProcessId, SegmentId, Slot};
use serde::{Deserialize, Serialize};

use crate::guardian::OnFailure;
use crate::input::InputTo;
use crate::machine::BookedHost;
use crate::plan::PlannedProgram;
use crate::request::GRACE;

/// The hosts that can be added to a job while it runs.
pub const ADDED_HOSTS_MAX: usize = 32;
/// The times that a host can come into a job of guests, the processes that can be in it on each host at the same time, and the
/// hosts that the machine of such a job can have.
const ADDED_OF_GUESTS_MAX: usize = 256;
const GUESTS_OF_HOST: u32 = 128;
const HOSTS_OF_GUESTS: u32 = 1024;

/// A job on several hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Its identity.
    pub job: JobId,
    /// Its name, for people.
    pub name: String,
    /// Its programs, in the order of their ranks.
    pub programs: Vec<PlannedProgram>,
    /// The hosts with processes of the job, and behind them those that were added while it ran.
    pub hosts: Vec<HostSpec>,
    /// The place of each rank.
    pub ranks: Vec<RankSpec>,
    /// The address at which hosts reach the one of rank 0. The arbiter writes it.
    pub first_address: String,
    /// How the processes of a host are distributed over it.
    pub map_by: MapBy,
    /// The processors that they are bound to; `None` leaves the choice to each host.
    pub bind_to: Option<BindTo>,
    /// Whether each host says which process is bound to which processors.
    pub report_bindings: bool,
    /// The consequence of a failed process for the others.
    pub on_failure: OnFailure,
    /// The time between asking processes to end and killing them.
    pub grace: Duration,
    /// Whether processes map memory with another writer read-only.
    pub is_hardened: bool,
    /// The settings of all processes, one for each word of a segment.
    pub settings: Vec<u64>,
    /// The links of its hosts that were measured. The arbiter writes them, and all hosts get the same.
    pub links: Vec<HostLink>,
    /// Whether hosts of the job share processors, as namespaces of one computer do. The arbiter writes it.
    pub shares_processors: bool,
    /// The processes that get the standard input.
    pub stdin: InputTo,
    /// Whether both output streams of a process go to one place.
    pub is_merged: bool,
    /// The signals that the launcher was started to ignore, as by `nohup`: processes ignore them on all hosts.
    pub ignored: Vec<i32>,
    /// Whether the launcher serves named groups.
    pub serves_groups: bool,
    /// Whether it runs in a machine that stays, and so may come to further hosts even if it begins on one.
    pub takes_hosts: bool,
}

/// A host of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Its number in the machine; none if the launcher's host has the whole job, which needs no machine.
    pub number: HostNumber,
    /// The name by which its user asked for it.
    pub name: String,
    /// The site where it was when it came into the job; empty if it had none.
    pub site: String,
    /// The identity of the job's segment there.
    pub segment: SegmentId,
    /// The cores that the job has there for itself, by their numbers; none means that it shares them with others.
    pub cores: Vec<u16>,
}

/// The place of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankSpec {
    /// Its host, as a place in the list of hosts.
    pub host: u16,
    /// Its slot there.
    pub slot: u32,
    /// Its program, as a place in the list of programs.
    pub program: u16,
}

/// The link between two hosts, in the words of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLink {
    /// Both hosts.
    pub hosts: (HostNumber, HostNumber),
    /// Its figures.
    pub words: [u64; LINK_WORDS],
}

impl JobSpec {
    /// A job that begins without hosts and processes: those that come join it as guests.
    pub fn of_guests(job: JobId, name: String, settings: Vec<u64>) -> Self {
        Self {
            job,
            name,
            programs: Vec::new(),
            hosts: Vec::new(),
            ranks: Vec::new(),
            first_address: String::new(),
            map_by: MapBy::default(),
            bind_to: None,
            report_bindings: false,
            on_failure: OnFailure::Notify,
            grace: GRACE,
            is_hardened: false,
            settings,
            links: Vec::new(),
            shares_processors: false,
            stdin: InputTo::None,
            is_merged: false,
            ignored: Vec::new(),
            serves_groups: false,
            takes_hosts: true,
        }
    }

    /// Gives the hosts of the list what was booked for them in a machine that stays.
    pub fn book(&mut self, job: JobId, booked: &[BookedHost]) {
        (self.job, self.takes_hosts) = (job, true);
        for host in &mut self.hosts {
            if let Some(its) = booked.iter().find(|booked| booked.name == host.name) {
                (host.number, host.cores) = (its.number, its.cores.clone());
                host.site.clone_from(&its.site);
            }
        }
    }

    /// Gives each host of the list its number in the machine. Two names of one host become one host, whose slots add
    /// up.
    pub fn settle(&mut self, numbers: &[HostNumber]) {
        let mut hosts: Vec<HostSpec> = Vec::new();
        let mut place_of = Vec::with_capacity(self.hosts.len());
        for (host, &number) in self.hosts.drain(..).zip(numbers) {
            let known = hosts.iter().position(|known| known.number == number);
            place_of.push(known.unwrap_or(hosts.len()));
            if known.is_none() {
                hosts.push(HostSpec { number, ..host });
            }
        }
        let mut next = vec![0; hosts.len()];
        for rank in &mut self.ranks {
            let place = place_of.get(usize::from(rank.host)).copied().unwrap_or(0);
            rank.host = place as u16;
            rank.slot = next[place];
            next[place] += 1;
        }
        self.hosts = hosts;
    }

    /// Whether daemons connect the hosts of the job. Without them, the launcher's host has the whole job.
    pub fn has_machine(&self) -> bool {
        self.hosts.iter().all(|host| host.number != HostNumber::NONE)
    }

    /// The name of a rank, or of a process that was started while the job ran: its number is behind the ranks.
    pub fn process_in_words(&self, rank: u32) -> String {
        match rank.checked_sub(self.processes()) {
            None => format!("rank {rank}"),
            Some(number) => format!("started process {number}"),
        }
    }

    /// The place of a host in the list: the last one, as a host that was lost may have been added again.
    pub fn place_of(&self, host: HostNumber) -> Option<usize> {
        self.hosts.iter().rposition(|known| known.number == host)
    }

    /// The number of the site of a host in this job, from 1, by the host's place in the list; 0 for none. Hosts are added at
    /// the end of the list, so a site keeps its number, and all hosts of the job find the same.
    pub fn site_number(&self, place: usize) -> u16 {
        let site = |host: &HostSpec| host.site == self.hosts[place].site;
        let first = self.hosts.iter().position(site).filter(|_| !self.hosts[place].site.is_empty());
        first.map_or(0, |first| u16::try_from(first + 1).unwrap_or(u16::MAX))
    }

    /// The number of processes.
    pub fn processes(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// The ranks of a host by their slots. Places are those in the list of hosts.
    pub fn ranks_on(&self, place: usize) -> Vec<u32> {
        let own = (0..).zip(&self.ranks).filter(|(_, rank)| usize::from(rank.host) == place);
        let mut own: Vec<(u32, u32)> = own.map(|(number, rank)| (rank.slot, number)).collect();
        own.sort_unstable();
        own.into_iter().map(|(_, number)| number).collect()
    }

    /// The first process of a rank.
    pub fn process_of(&self, rank: u32) -> ProcessId {
        let place = self.ranks[rank as usize];
        let host = self.hosts[usize::from(place.host)].segment;
        ProcessId { segment: host, slot: Slot(place.slot), incarnation: Incarnation(1) }
    }

    /// The ranks on other hosts than this one, in order: the order of this host's far records.
    pub fn ranks_elsewhere(&self, place: usize) -> impl Iterator<Item = u32> {
        let elsewhere =
            (0..).zip(&self.ranks).filter(move |(_, rank)| usize::from(rank.host) != place);
        elsewhere.map(|(rank, _)| rank)
    }

    /// The slots for guests of each host, restarted processes and those that are started while the job runs. All hosts have
    /// the same number, so each knows the places of those of all others.
    pub fn guests(&self) -> u32 {
        if self.is_of_guests() {
            return GUESTS_OF_HOST;
        }
        let on =
            |place: usize| self.ranks.iter().filter(|it| usize::from(it.host) == place).count();
        let most = (0..self.hosts.len()).map(on).max().unwrap_or(0) as u32;
        slots_for_more(most, self.on_failure)
    }

    /// The slots for guests of other hosts than this one, in the order of this host's far records: that of the list of
    /// hosts. Nobody has them yet. With each comes the number of its host.
    pub fn guests_elsewhere(&self, place: usize) -> Vec<(HostNumber, ProcessId)> {
        let others = (0..self.hosts.len()).filter(|&other| other != place);
        others.flat_map(|other| self.guests_on(other)).collect()
    }

    /// The slots for guests of a host, which nobody has yet. With each comes the number of the host.
    pub fn guests_on(&self, place: usize) -> Vec<(HostNumber, ProcessId)> {
        let HostSpec { number, segment, .. } = self.hosts[place];
        let (first, incarnation) = (self.ranks_on(place).len() as u32, Incarnation(0));
        let slots = (first..first + self.guests()).map(Slot);
        slots.map(|slot| (number, ProcessId { segment, slot, incarnation })).collect()
    }

    /// The far records of a host with so many ranks elsewhere: for these, and for the guests of all other hosts, also of those
    /// that are added while the job runs.
    pub fn far_records(&self, ranks_elsewhere: u32) -> u32 {
        let hosts = (self.first_hosts() + self.added_max() - 1) as u32;
        let guests = if self.has_host_tables() { hosts.saturating_mul(self.guests()) } else { 0 };
        ranks_elsewhere.saturating_add(guests).min(FAR_MAX)
    }

    /// Whether the segments have tables for other hosts. A job without them stays on the host that it begins on.
    pub fn has_host_tables(&self) -> bool {
        self.takes_hosts || self.first_hosts() > 1
    }

    /// The hosts that the job began with. Behind them stand those that were added, which have no ranks.
    pub fn first_hosts(&self) -> usize {
        self.ranks.iter().map(|rank| usize::from(rank.host) + 1).max().unwrap_or(0)
    }

    /// Whether the job has no processes of its own: all join it as guests.
    pub fn is_of_guests(&self) -> bool {
        self.ranks.is_empty()
    }

    /// The hosts that can be added while the job runs.
    fn added_max(&self) -> usize {
        if self.is_of_guests() { ADDED_OF_GUESTS_MAX } else { ADDED_HOSTS_MAX }
    }

    /// The hosts for whose names the segments have room, by their numbers.
    pub fn host_records(&self) -> u32 {
        if self.is_of_guests() {
            return HOSTS_OF_GUESTS;
        }
        let first = self.hosts.iter().take(self.first_hosts()).filter(|_| self.has_machine());
        HOSTS + first.map(|host| u32::from(host.number.0) + 1).max().unwrap_or(0)
    }

    /// Whether there is room for one more host with this number, and for its guests.
    pub fn has_room_for(&self, host: HostNumber) -> bool {
        let added = self.hosts.len() - self.first_hosts();
        let guests = (self.hosts.len() as u64) * u64::from(self.guests());
        added < self.added_max()
            && u32::from(host.0) < self.host_records()
            && u64::from(self.processes()) + guests <= u64::from(FAR_MAX)
    }

    /// The settings in the form of a segment's plan.
    pub fn settings(&self) -> [u64; SETTINGS_WORDS] {
        std::array::from_fn(|word| self.settings.get(word).copied().unwrap_or(0))
    }

    /// Whether a rank gets the standard input.
    pub fn gets_input(&self, rank: u32) -> bool {
        self.stdin == InputTo::All || self.stdin == InputTo::Rank(rank)
    }

    /// Whether the list is one that a launcher makes: it has ranks, each has a place, and slots are dense. A job of guests
    /// has none.
    pub fn is_valid(&self) -> bool {
        let is_known = |rank: &RankSpec| {
            usize::from(rank.host) < self.hosts.len()
                && usize::from(rank.program) < self.programs.len()
        };
        let is_dense = |place: usize| {
            let own = self.ranks_on(place);
            let slots = own.iter().map(|&rank| self.ranks[rank as usize].slot);
            slots.eq(0..own.len() as u32) && !own.is_empty()
        };
        // Hosts without ranks stand behind all others.
        self.ranks.is_empty() == self.programs.is_empty()
            && self.ranks.iter().all(is_known)
            && (0..self.first_hosts()).all(is_dense)
    }
}

/// The number of slots beyond those of the ranks: for guests, and for restarted processes, each of which leaves its
/// first slot to its predecessor.
fn slots_for_more(processes: u32, on_failure: OnFailure) -> u32 {
    let again = match on_failure {
        OnFailure::Restart { .. } => processes,
        OnFailure::Abort | OnFailure::Notify => 0,
    };
    (GUESTS + again).min(SLOTS_MAX.saturating_sub(processes))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use landeck_host::environment::Environment;
    use landeck_host::placement::MapBy;

    /// A job of shell scripts; `hosts` has the place of each rank's host.
    pub(crate) fn spec(scripts: &[&str], hosts: &[u16]) -> JobSpec {
        let count = hosts.iter().max().map_or(0, |&last| last + 1);
        let variables = [("PATH".into(), "/usr/bin:/bin".into())];
        let program = |script: &&str| PlannedProgram {
            file: "/bin/sh".into(),
            arguments: vec!["sh".into(), "-c".into(), script.into()],
            directory: "/".into(),
            environment: Environment::new(variables.clone().into_iter(), true, &[]),
            processes: 1,
        };
        let host = |number: u16| HostSpec {
            number: HostNumber(number),
            name: format!("n{number}"),
            site: String::new(),
            segment: SegmentId(100 + u64::from(number)),
            cores: Vec::new(),
        };
        let rank = |(program, &host): (u16, &u16)| {
            let before = &hosts[..usize::from(program)];
            let slot = before.iter().filter(|&&other| other == host).count() as u32;
            RankSpec { host, slot, program }
        };
        JobSpec {
            job: JobId(7),
            name: "test".to_owned(),
            programs: scripts.iter().map(program).collect(),
            hosts: (0..count).map(host).collect(),
            ranks: (0..).zip(hosts).map(rank).collect(),
            first_address: "10.0.0.1".into(),
            map_by: MapBy::default(),
            bind_to: None,
            report_bindings: false,
            on_failure: OnFailure::Restart { times: 2, then_abort: true },
            grace: Duration::from_secs(1),
            is_hardened: false,
            settings: vec![3; SETTINGS_WORDS],
            links: Vec::new(),
            shares_processors: true,
            stdin: InputTo::Rank(0),
            is_merged: false,
            ignored: Vec::new(),
            serves_groups: false,
            takes_hosts: false,
        }
    }

    #[test]
    fn a_job_comes_over_as_it_is() {
        let job = spec(&["true", "exit 1", "ls"], &[0, 1, 0]);
        let bytes = postcard::to_stdvec(&job).unwrap();
        assert_eq!(postcard::from_bytes::<JobSpec>(&bytes).unwrap(), job);
        assert!(job.is_valid());
        assert_eq!((job.ranks_on(0), job.ranks_on(1)), (vec![0, 2], vec![1]));
        assert_eq!(job.ranks_elsewhere(0).collect::<Vec<_>>(), [1]);
        assert_eq!(job.process_of(2).slot, Slot(1));
        assert_eq!(job.process_of(1).segment, SegmentId(101));
    }

    #[test]
    fn a_job_of_a_machine_that_stays_has_room_for_hosts_from_its_first_one_on() {
        let mut job = spec(&["a", "b"], &[0, 0]);
        assert_eq!((job.has_host_tables(), job.far_records(0)), (false, 0));
        let cores = vec![0, 1];
        let (name, site) = ("n0".to_owned(), "a".to_owned());
        let booked = BookedHost { name, number: HostNumber(4), site, cores, processes: 2 };
        job.book(JobId(9), &[booked]);
        assert_eq!(job.site_number(0), 1);
        assert!(job.has_host_tables() && job.has_room_for(HostNumber(7)));
        assert_eq!(job.far_records(0), ADDED_HOSTS_MAX as u32 * job.guests());
    }

    #[test]
    fn a_site_keeps_its_number_when_hosts_are_added() {
        let mut job = spec(&["a", "b", "c"], &[0, 1, 2]);
        let numbers = |job: &JobSpec| -> Vec<u16> {
            (0..job.hosts.len()).map(|place| job.site_number(place)).collect()
        };
        assert_eq!(numbers(&job), [0, 0, 0]);
        (job.hosts[1].site, job.hosts[2].site) = ("b".to_owned(), "a".to_owned());
        assert_eq!(numbers(&job), [0, 2, 3]);
        for site in ["a", "", "c"] {
            job.hosts.push(HostSpec { site: site.to_owned(), ..job.hosts[0].clone() });
        }
        assert_eq!(numbers(&job), [0, 2, 3, 3, 0, 6]);
    }

    #[test]
    fn two_names_of_one_host_become_one_host() {
        let mut job = spec(&["a", "b", "c", "d"], &[0, 1, 2, 1]);
        job.settle(&[HostNumber(5), HostNumber(0), HostNumber(5)]);
        let numbers: Vec<u16> = job.hosts.iter().map(|host| host.number.0).collect();
        assert_eq!(numbers, [5, 0]);
        assert_eq!((job.ranks_on(0), job.ranks_on(1)), (vec![0, 2], vec![1, 3]));
        assert!(job.is_valid());
        assert_eq!(job.place_of(HostNumber(0)), Some(1));
    }

    #[test]
    fn an_impossible_job_is_recognised() {
        let good = spec(&["a", "b"], &[0, 1]);
        let with = |change: fn(&mut JobSpec)| {
            let mut other = good.clone();
            change(&mut other);
            other.is_valid()
        };
        assert!(good.is_valid());
        assert!(!with(|job| job.ranks[1].host = 2));
        assert!(!with(|job| (job.ranks, job.hosts) = (Vec::new(), Vec::new())));
        assert!(JobSpec::of_guests(JobId(7), "lab".to_owned(), Vec::new()).is_valid());
        assert!(!with(|job| job.ranks[1].slot = 1));
        assert!(!with(|job| job.ranks[0].program = 9));
        assert!(with(|job| job.hosts.push(job.hosts[0].clone())), "it was added while it ran");
        let gap = |job: &mut JobSpec| {
            job.hosts.push(job.hosts[0].clone());
            job.ranks[1].host = 2;
        };
        assert!(!with(gap), "hosts without ranks stand behind all others");
    }
}
