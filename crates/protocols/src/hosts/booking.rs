//! The processors of a machine, and the jobs that have booked them. The founder keeps the book.
//!
//! A host gives all its cores to the machine, numbered from 0. A job books one core for each process: first on the host that
//! asks, then where most are free. A core belongs to one job at a time. Processes beyond the free cores get none, and run
//! where the fewest processes are for each core; those of a job that spreads go where it has none first. A job that wants hosts
//! for itself gets whole ones that no other job uses, and no other job comes there until it is over. Jobs that wait get their turn in the order in which they have asked first.
//!
//! A job may be placed by load instead ([`BookingOrder::Load`]): each of its processes goes to the host that would then have the
//! fewest busy tasks for each core. Busy are as many as want to run there, by the last [`HostLoad`] of the host, or as many
//! processes of jobs as are booked there, whichever is more. Of equal hosts the own one comes first, then the one with the most free
//! cores. A host that is short of memory gets a process only if all hosts are. A process has a core of its own as long as one
//! is free on its host.
//!
//! A job may go to all sites of a machine ([`BookingOrder::Site`]): these get one process each in turn, the own site first, as
//! long as they have free cores. Within its site a process goes where the job has the fewest, so that it has as many hosts as
//! it can. Whatever the order, hosts of one site stand beside each other in the answer, and so do the ranks there; but for a
//! job that spreads over hosts, whose ranks go round them anyway.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use landeck_wire::{HostNumber, JobId};
use serde::{Deserialize, Serialize};

use super::load::HostLoad;

/// The hosts that a job takes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BookingOrder {
    /// The own host, and then those with the most free cores, one after the other.
    #[default]
    Fill,
    /// As many hosts as possible: they get one process each in turn.
    Spread,
    /// For each process the host with the least load.
    Load,
    /// All sites alike, and the hosts of a site alike.
    Site,
}

/// A wish for processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookingWish {
    /// The number of processes; `None` is one for each core of the host that asks.
    pub processes: Option<u32>,
    /// The hosts that come first.
    pub order: BookingOrder,
    /// Whether no other job may use the hosts.
    pub is_exclusive: bool,
    /// Whether the job waits for its turn and asks again, if it gets nothing now.
    pub waits: bool,
}

/// The share of a host in a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookedShare {
    /// The host.
    pub host: HostNumber,
    /// The processes there: at least one, unless the host was added while the job ran.
    pub processes: u32,
    /// The cores that the job has there: one for each process, or fewer if the host is oversubscribed.
    pub cores: Vec<u16>,
}

/// The reason why a job gets no processors now. The jobs in the way are named with their hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NothingFree {
    /// The jobs that use hosts, and those hosts.
    pub taken: Vec<(JobId, Vec<HostNumber>)>,
}

/// The book of a machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Booking {
    hosts: BTreeMap<HostNumber, HostCores>,
    jobs: BTreeMap<JobId, BookedJob>,
    /// The jobs that wait, in the order in which they have first asked.
    waiting: VecDeque<JobId>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct HostCores {
    count: u16,
    /// The load that the host has told last.
    load: Option<HostLoad>,
    /// Whether further jobs may come.
    is_open: bool,
    /// The site; empty if the host has none.
    site: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct BookedJob {
    shares: Vec<BookedShare>,
    is_exclusive: bool,
}

impl Booking {
    /// Adds a host with its cores, or opens it again.
    pub fn add_host(&mut self, host: HostNumber, cores: u16) {
        let known = self.hosts.remove(&host);
        let (load, site) = known.map(|known| (known.load, known.site)).unwrap_or_default();
        self.hosts.insert(host, HostCores { count: cores.max(1), load, is_open: true, site });
    }

    /// Notes the site of a host; an empty one is none. A host that is not in the book has none.
    pub fn note_site(&mut self, host: HostNumber, site: &str) {
        if let Some(cores) = self.hosts.get_mut(&host).filter(|cores| cores.site != site) {
            site.clone_into(&mut cores.site);
        }
    }

    /// Notes the load of a host. One that is not in the book has none.
    pub fn note_load(&mut self, host: HostNumber, load: HostLoad) {
        if let Some(cores) = self.hosts.get_mut(&host) {
            cores.load = Some(load);
        }
    }

    /// The load that a host has told last; `None` if it has told none.
    #[must_use]
    pub fn host_load(&self, host: HostNumber) -> Option<HostLoad> {
        self.hosts.get(&host)?.load
    }

    /// Lets no further job come to a host.
    pub fn close_host(&mut self, host: HostNumber) {
        if let Some(cores) = self.hosts.get_mut(&host) {
            cores.is_open = false;
        }
    }

    /// Forgets a host. The jobs there keep their shares on other hosts.
    pub fn remove_host(&mut self, host: HostNumber) {
        self.hosts.remove(&host);
        for job in self.jobs.values_mut() {
            job.shares.retain(|share| share.host != host);
        }
    }

    /// The number of cores of a host.
    #[must_use]
    pub fn cores(&self, host: HostNumber) -> u16 {
        self.hosts.get(&host).map_or(0, |cores| cores.count)
    }

    /// The jobs on a host.
    pub fn jobs_on(&self, host: HostNumber) -> impl Iterator<Item = JobId> {
        let is_there = move |job: &BookedJob| job.shares.iter().any(|share| share.host == host);
        self.jobs.iter().filter(move |(_, job)| is_there(job)).map(|(id, _)| *id)
    }

    /// The jobs that have processes on a host.
    pub fn jobs_busy_on(&self, host: HostNumber) -> impl Iterator<Item = JobId> {
        let is_busy = move |share: &BookedShare| share.host == host && share.processes > 0;
        self.jobs.iter().filter(move |(_, job)| job.shares.iter().any(is_busy)).map(|(id, _)| *id)
    }

    /// The jobs with their shares.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &[BookedShare])> {
        self.jobs.iter().map(|(id, job)| (*id, &job.shares[..]))
    }

    /// Books processors for a job of a launcher on the host `own`. A job that has booked keeps what it has.
    ///
    /// # Errors
    /// [`NothingFree`] if jobs that want their hosts for themselves are in the way, or this one wants so and no host is free.
    pub fn book(
        &mut self,
        job: JobId,
        own: HostNumber,
        wish: BookingWish,
    ) -> Result<Vec<BookedShare>, NothingFree> {
        if let Some(known) = self.jobs.get(&job) {
            return Ok(known.shares.clone());
        }
        let hosts: Vec<HostNumber> =
            self.hosts.keys().copied().filter(|host| self.is_there(*host, wish)).collect();
        if wish.waits && !self.waiting.contains(&job) {
            self.waiting.push_back(job);
        }
        let is_next = !wish.waits || self.waiting.front() == Some(&job);
        if hosts.is_empty() || !is_next {
            return Err(self.nothing_free());
        }
        self.waiting.retain(|waiting| *waiting != job);
        let own_cores = u32::from(self.cores(own)).max(1);
        let processes = wish.processes.unwrap_or(own_cores).max(1);
        let shares = self.shares(&hosts, own, processes, wish.order);
        let is_exclusive = wish.is_exclusive;
        self.jobs.insert(job, BookedJob { shares: shares.clone(), is_exclusive });
        Ok(shares)
    }

    /// Adds a host to a job that has booked. The job gets no core for itself there, and no process yet. The host may be one
    /// that is about to come.
    ///
    /// # Errors
    /// [`NothingFree`]: no further job may come to the host, or jobs that want their hosts for themselves are in the way. It
    /// names the jobs there; none if the host takes no jobs.
    pub fn add_share(
        &mut self,
        job: JobId,
        host: HostNumber,
        is_coming: bool,
    ) -> Result<(), NothingFree> {
        let none = || NothingFree { taken: Vec::new() };
        let is_exclusive = self.jobs.get(&job).ok_or_else(none)?.is_exclusive;
        let is_open = self.hosts.get(&host).map_or(is_coming, |cores| cores.is_open);
        let others: Vec<JobId> = self.jobs_on(host).collect();
        match is_open {
            false => return Err(none()),
            true if others.contains(&job) => return Ok(()),
            true => {}
        }
        let is_in_the_way = |other: &JobId| is_exclusive || self.jobs[other].is_exclusive;
        if others.iter().any(is_in_the_way) {
            return Err(NothingFree {
                taken: others.into_iter().map(|id| (id, vec![host])).collect(),
            });
        }
        let share = BookedShare { host, processes: 0, cores: Vec::new() };
        self.jobs.entry(job).and_modify(|booked| booked.shares.push(share));
        Ok(())
    }

    /// Notes how many processes of a job are on a host that was added to it.
    pub fn note_processes(&mut self, job: JobId, host: HostNumber, processes: u32) {
        let shares = self.jobs.get_mut(&job).into_iter().flat_map(|job| &mut job.shares);
        shares.filter(|share| share.host == host).for_each(|share| share.processes = processes);
    }

    /// Takes a host from a job again that has no process there.
    pub fn remove_share(&mut self, job: JobId, host: HostNumber) {
        if let Some(booked) = self.jobs.get_mut(&job) {
            booked.shares.retain(|share| share.host != host || share.processes > 0);
        }
    }

    /// Frees everything that a job has booked. It does not wait any more either.
    pub fn release(&mut self, job: JobId) {
        self.jobs.remove(&job);
        self.waiting.retain(|waiting| *waiting != job);
    }

    /// Whether a wish may be fulfilled on a host.
    fn is_there(&self, host: HostNumber, wish: BookingWish) -> bool {
        let mut others = self.jobs_on(host).peekable();
        let is_open = self.hosts.get(&host).is_some_and(|cores| cores.is_open);
        is_open
            && match wish.is_exclusive {
                true => others.peek().is_none(),
                false => !others.any(|job| self.jobs[&job].is_exclusive),
            }
    }

    fn nothing_free(&self) -> NothingFree {
        let taken = self
            .jobs
            .iter()
            .map(|(id, job)| (*id, job.shares.iter().map(|share| share.host).collect::<Vec<_>>()));
        NothingFree { taken: taken.collect() }
    }

    /// The cores of a host that no job has.
    fn free_cores(&self, host: HostNumber) -> Vec<u16> {
        let shares = self.jobs.values().flat_map(|job| &job.shares);
        let its = shares.filter(|share| share.host == host);
        let taken: BTreeSet<u16> = its.flat_map(|share| share.cores.iter().copied()).collect();
        (0..self.cores(host)).filter(|core| !taken.contains(core)).collect()
    }

    /// The processes of all jobs on a host.
    fn booked_on(&self, host: HostNumber) -> u32 {
        let shares = self.jobs.values().flat_map(|job| &job.shares);
        shares.filter(|share| share.host == host).map(|share| share.processes).sum()
    }

    /// The tasks that count on a host before a job comes, in hundredths, and whether it should get no process at all. By load
    /// the next process counts as well, so that of two idle hosts the larger one comes first.
    fn busy(&self, host: HostNumber, order: BookingOrder) -> (bool, u64) {
        let booked = u64::from(self.booked_on(host)) * 100;
        if order != BookingOrder::Load {
            return (false, booked);
        }
        let load = self.host_load(host).unwrap_or_default();
        (load.is_short_of_memory(), booked.max(load.running_hundredths.into()) + 100)
    }

    /// Distributes processes over these hosts. Free cores are given out first, unless the load decides. Each further process
    /// goes where the fewest busy tasks are for each core.
    fn shares(
        &self,
        hosts: &[HostNumber],
        own: HostNumber,
        processes: u32,
        order: BookingOrder,
    ) -> Vec<BookedShare> {
        let offers = self.offers(hosts, own, order);
        let mut counts = match order {
            BookingOrder::Load => vec![0; offers.len()],
            BookingOrder::Fill => distributed(&offers, processes, usize::MAX),
            BookingOrder::Spread => distributed(&offers, processes, 1),
            BookingOrder::Site => over_sites(&offers, processes),
        };
        let busy: Vec<_> = offers.iter().map(|offer| self.busy(offer.host, order)).collect();
        let left = processes as usize - counts.iter().sum::<usize>();
        let mut of_sites = counts_of_sites(&offers, &counts);
        for _ in 0..left {
            let fullness = |at: &usize| {
                let (is_short, tasks) = busy[*at];
                let tasks = tasks + 100 * counts[*at] as u64;
                // A job that spreads comes to each host first, and one that goes to all sites has as many processes at each.
                let before = match order {
                    BookingOrder::Spread => usize::from(counts[*at] > 0),
                    BookingOrder::Site => of_sites[offers[*at].site],
                    BookingOrder::Fill | BookingOrder::Load => 0,
                };
                // The tasks for each core, as a number with 20 binary places.
                (before, is_short, (tasks << 20) / u64::from(self.cores(offers[*at].host).max(1)))
            };
            let Some(next) = (0..offers.len()).min_by_key(fullness) else { break };
            counts[next] += 1;
            of_sites[offers[next].site] += 1;
        }
        let mut shares: Vec<(Offer, usize)> =
            offers.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect();
        if order != BookingOrder::Spread {
            let sites: Vec<usize> = shares.iter().map(|(offer, _)| offer.site).collect();
            shares.sort_by_key(|(offer, _)| sites.iter().position(|site| *site == offer.site));
        }
        let share = |(mut offer, count): (Offer, usize)| {
            offer.free.truncate(count);
            BookedShare { host: offer.host, processes: count as u32, cores: offer.free }
        };
        shares.into_iter().map(share).collect()
    }

    /// The offers of these hosts, in the order in which they are asked: the own host first, then those with the most free
    /// cores; site after site if the job goes to all sites. The own site is the first one, and then comes that of the host
    /// with the lowest number.
    fn offers(&self, hosts: &[HostNumber], own: HostNumber, order: BookingOrder) -> Vec<Offer> {
        let site_of = |host: &HostNumber| self.hosts.get(host).map_or("", |cores| &cores.site);
        let mut sites = BTreeMap::from([(site_of(&own), 0)]);
        let offer = |host: &HostNumber| {
            let number = sites.len();
            let site = *sites.entry(site_of(host)).or_insert(number);
            Offer { host: *host, free: self.free_cores(*host), site }
        };
        let mut offers: Vec<Offer> = hosts.iter().map(offer).collect();
        offers.sort_by_key(|Offer { host, free, site }| {
            let (first, last) = match order {
                BookingOrder::Site => (*site, 0),
                BookingOrder::Fill | BookingOrder::Load => (0, *site),
                BookingOrder::Spread => (0, 0),
            };
            (first, *host != own, usize::MAX - free.len(), last, *host)
        });
        offers
    }
}

/// The offer of a host.
struct Offer {
    host: HostNumber,
    /// The cores that no job has.
    free: Vec<u16>,
    /// The number of its site, from 0.
    site: usize,
}

/// The number of processes at each site.
fn counts_of_sites(offers: &[Offer], counts: &[usize]) -> Vec<usize> {
    let mut of_sites = vec![0; offers.len() + 1];
    offers.iter().zip(counts).for_each(|(offer, count)| of_sites[offer.site] += count);
    of_sites
}

/// The number of processes that each offer gets if all sites get one in turn, and the hosts of a site as well; one for each
/// free core at most.
fn over_sites(offers: &[Offer], processes: u32) -> Vec<usize> {
    let mut counts = vec![0; offers.len()];
    let mut of_sites = counts_of_sites(offers, &counts);
    for _ in 0..processes {
        let has_room = |at: &usize| counts[*at] < offers[*at].free.len();
        let turn = |at: &usize| (of_sites[offers[*at].site], offers[*at].site, counts[*at]);
        let Some(next) = (0..offers.len()).filter(has_room).min_by_key(turn) else { break };
        of_sites[offers[next].site] += 1;
        counts[next] += 1;
    }
    counts
}

/// The number of processes that each offer gets, one for each free core at most. A host gets up to `each` of them before it is
/// the next one's turn.
fn distributed(offers: &[Offer], processes: u32, each: usize) -> Vec<usize> {
    let mut counts = vec![0; offers.len()];
    let mut left = processes as usize;
    while left > 0 && offers.iter().zip(&counts).any(|(offer, count)| *count < offer.free.len()) {
        for (offer, count) in offers.iter().zip(&mut counts) {
            let more = each.min(offer.free.len() - *count).min(left);
            *count += more;
            left -= more;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::load::HostPressure;
    use proptest::prelude::*;

    const N1: HostNumber = HostNumber(0);
    const N2: HostNumber = HostNumber(1);
    const N3: HostNumber = HostNumber(2);
    const ORDERS: [BookingOrder; 4] =
        [BookingOrder::Fill, BookingOrder::Spread, BookingOrder::Load, BookingOrder::Site];

    fn wish(processes: u32) -> BookingWish {
        let (is_exclusive, waits, order) = (false, false, BookingOrder::Fill);
        BookingWish { processes: Some(processes), order, is_exclusive, waits }
    }

    fn alone(processes: u32) -> BookingWish {
        BookingWish { is_exclusive: true, ..wish(processes) }
    }

    fn two_hosts() -> Booking {
        let mut book = Booking::default();
        book.add_host(N1, 2);
        book.add_host(N2, 2);
        book
    }

    fn hosts(shares: &[BookedShare]) -> Vec<(u16, u32)> {
        shares.iter().map(|share| (share.host.0, share.processes)).collect()
    }

    #[test]
    fn the_own_host_comes_first_and_then_the_one_with_most_free_cores() {
        let mut book = two_hosts();
        book.add_host(N3, 4);
        assert_eq!(hosts(&book.book(JobId(1), N2, wish(2)).unwrap()), [(1, 2)]);
        assert_eq!(hosts(&book.book(JobId(2), N1, wish(3)).unwrap()), [(0, 2), (2, 1)]);
        let unsaid = BookingWish { processes: None, ..wish(1) };
        assert_eq!(hosts(&book.book(JobId(3), N2, unsaid).unwrap()), [(2, 2)]);
        book.release(JobId(1));
        assert_eq!(hosts(&book.book(JobId(4), N3, wish(3)).unwrap()), [(2, 1), (1, 2)]);
    }

    #[test]
    fn full_hosts_are_oversubscribed_evenly_and_give_no_core_twice() {
        let mut book = two_hosts();
        book.book(JobId(1), N1, wish(4)).unwrap();
        let more = book.book(JobId(2), N1, wish(3)).unwrap();
        assert_eq!(hosts(&more), [(0, 2), (1, 1)]);
        assert!(more.iter().all(|share| share.cores.is_empty()));
    }

    #[test]
    fn a_job_that_spreads_has_one_process_on_each_host_in_turn() {
        let mut book = two_hosts();
        book.add_host(N3, 4);
        let spread = |processes| BookingWish { order: BookingOrder::Spread, ..wish(processes) };
        for (job, processes, expected) in [
            (1, 2, &[(1, 1), (2, 1)][..]),
            (2, 3, &[(1, 1), (2, 1), (0, 1)]),
            (3, 7, &[(1, 2), (2, 3), (0, 2)]),
            (4, 9, &[(1, 3), (2, 4), (0, 2)]),
        ] {
            let mut shares = hosts(&book.book(JobId(job), N2, spread(processes)).unwrap());
            shares.sort_unstable();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(shares, expected, "{processes} processes");
            book.release(JobId(job));
        }
    }

    /// A load with so many tasks that run, in hundredths.
    fn running(running_hundredths: u32) -> HostLoad {
        HostLoad { running_hundredths, ..HostLoad::default() }
    }

    #[test]
    fn by_load_each_process_goes_where_the_fewest_tasks_are_for_each_core() {
        let by_load = |processes| BookingWish { order: BookingOrder::Load, ..wish(processes) };
        let mut book = two_hosts();
        book.add_host(N3, 4);
        // Nothing is known: as many for each core everywhere, and the own host first among equals.
        assert_eq!(hosts(&book.book(JobId(1), N2, by_load(1)).unwrap()), [(2, 1)]);
        assert_eq!(hosts(&book.book(JobId(2), N2, by_load(2)).unwrap()), [(1, 1), (2, 1)]);
        book.release(JobId(1));
        book.release(JobId(2));
        // The founder is busy with three tasks, and the third host with half of one.
        book.note_load(N1, running(300));
        book.note_load(N2, running(0));
        book.note_load(N3, running(50));
        let shares = book.book(JobId(3), N1, by_load(5)).unwrap();
        assert_eq!(hosts(&shares), [(2, 3), (1, 2)]);
        assert_eq!((&shares[0].cores, &shares[1].cores), (&vec![0, 1, 2], &vec![0, 1]));
        // Processes that were placed a moment ago count before they are seen to run.
        assert_eq!(hosts(&book.book(JobId(4), N1, by_load(1)).unwrap()), [(2, 1)]);
        assert_eq!(hosts(&book.book(JobId(5), N1, by_load(1)).unwrap()), [(2, 1)]);
        // Without the wish, load counts for nothing.
        assert_eq!(hosts(&book.book(JobId(6), N1, wish(1)).unwrap()), [(0, 1)]);
    }

    #[test]
    fn a_host_that_is_short_of_memory_comes_last() {
        let by_load = BookingWish { order: BookingOrder::Load, ..wish(3) };
        let mut book = two_hosts();
        let pressure = Some(HostPressure { memory: 1_000, ..HostPressure::default() });
        let short = HostLoad { pressure, ..running(0) };
        book.note_load(N1, short);
        book.note_load(N2, running(900));
        let shares = book.book(JobId(1), N1, by_load).unwrap();
        assert_eq!((hosts(&shares), shares[0].cores.len()), (vec![(1, 3)], 2));
        book.note_load(N2, HostLoad { running_hundredths: 900, ..short });
        assert_eq!(hosts(&book.book(JobId(2), N2, by_load).unwrap()), [(0, 3)]);
    }

    #[test]
    fn the_load_of_a_host_goes_with_it() {
        let mut book = two_hosts();
        book.note_load(N1, running(100));
        book.close_host(N1);
        book.add_host(N1, 2);
        assert_eq!(book.host_load(N1), Some(running(100)));
        book.remove_host(N1);
        book.note_load(N1, running(100));
        book.add_host(N1, 2);
        assert_eq!(book.host_load(N1), None);
    }

    #[test]
    fn a_job_that_spreads_comes_to_full_hosts_as_well() {
        let mut book = Booking::default();
        [N1, N2, N3].into_iter().for_each(|host| book.add_host(host, 1));
        book.book(JobId(1), N1, wish(1)).unwrap();
        book.book(JobId(2), N3, wish(1)).unwrap();
        let spread = |processes| BookingWish { order: BookingOrder::Spread, ..wish(processes) };
        let shares = book.book(JobId(3), N2, spread(3)).unwrap();
        assert_eq!(hosts(&shares), [(1, 1), (0, 1), (2, 1)]);
        let more = book.book(JobId(4), N2, spread(4)).unwrap();
        assert_eq!(hosts(&more), [(1, 2), (0, 1), (2, 1)]);
    }

    #[test]
    fn a_job_that_wants_hosts_for_itself_shares_none() {
        let mut book = two_hosts();
        book.book(JobId(1), N1, wish(1)).unwrap();
        assert_eq!(hosts(&book.book(JobId(2), N1, alone(1)).unwrap()), [(1, 1)]);
        let refused = book.book(JobId(3), N1, alone(1)).unwrap_err();
        assert_eq!(refused.taken, [(JobId(1), vec![N1]), (JobId(2), vec![N2])]);
        assert_eq!(hosts(&book.book(JobId(4), N2, wish(1)).unwrap()), [(0, 1)], "n2 is taken");
        book.release(JobId(2));
        assert_eq!(hosts(&book.book(JobId(5), N2, alone(3)).unwrap()), [(1, 3)]);
    }

    #[test]
    fn closed_and_removed_hosts_get_no_further_job() {
        let mut book = two_hosts();
        book.book(JobId(1), N1, wish(4)).unwrap();
        book.close_host(N2);
        assert_eq!(hosts(&book.book(JobId(2), N2, wish(2)).unwrap()), [(0, 2)]);
        assert_eq!(book.jobs_on(N2).collect::<Vec<_>>(), [JobId(1)]);
        book.remove_host(N2);
        assert_eq!(book.jobs_on(N2).count(), 0);
        book.remove_host(N1);
        assert!(book.book(JobId(3), N1, wish(1)).is_err());
    }

    #[test]
    fn jobs_that_wait_get_their_turn_in_the_order_of_asking() {
        let mut book = two_hosts();
        book.book(JobId(1), N1, wish(4)).unwrap();
        let waits = |job| BookingWish { waits: true, ..job };
        let mut ask = |job: u64, wish| book.book(JobId(job), N1, waits(wish)).is_ok();
        assert!(!ask(2, alone(1)) && !ask(3, alone(1)) && !ask(2, alone(1)));
        book.release(JobId(1));
        let mut ask = |job: u64| book.book(JobId(job), N1, waits(alone(3))).is_ok();
        assert!(!ask(3), "it has asked later");
        assert!(ask(2) && !ask(3));
        book.release(JobId(2));
        assert!(book.book(JobId(3), N1, waits(alone(3))).is_ok());
        book.book(JobId(4), N1, waits(alone(1))).unwrap_err();
        book.release(JobId(4));
        assert!(book.waiting.is_empty(), "who has gone waits no more");
    }

    #[test]
    fn a_job_comes_to_one_more_host_if_that_is_open_and_no_job_wants_it_alone() {
        let mut book = two_hosts();
        assert_eq!(book.add_share(JobId(1), N2, false).unwrap_err().taken, [], "it has not booked");
        book.book(JobId(1), N1, wish(1)).unwrap();
        book.add_share(JobId(1), N2, false).unwrap();
        book.add_share(JobId(1), N2, false).unwrap();
        assert_eq!(hosts(&book.jobs[&JobId(1)].shares), [(0, 1), (1, 0)]);
        book.add_share(JobId(1), N3, false).unwrap_err();
        book.add_share(JobId(1), N3, true).unwrap();
        book.add_host(N3, 2);
        let refused = book.book(JobId(2), N3, alone(1)).unwrap_err();
        assert_eq!(refused.taken, [(JobId(1), vec![N1, N2, N3])]);
        book.remove_host(N3);
        book.add_host(N3, 2);
        book.book(JobId(2), N3, alone(1)).unwrap();
        let refused = book.add_share(JobId(1), N3, false).unwrap_err();
        assert_eq!(refused.taken, [(JobId(2), vec![N3])]);
        book.add_share(JobId(2), N1, false).unwrap_err();
        book.remove_share(JobId(1), N1);
        book.remove_share(JobId(1), N2);
        assert_eq!(hosts(&book.jobs[&JobId(1)].shares), [(0, 1)], "it has a process there");
        book.close_host(N1);
        book.add_share(JobId(1), N1, false).unwrap_err();
    }

    #[test]
    fn a_host_is_busy_while_processes_of_a_job_are_there() {
        let mut book = two_hosts();
        let busy = |book: &Booking, host| book.jobs_busy_on(host).collect::<Vec<_>>();
        book.book(JobId(1), N1, wish(1)).unwrap();
        book.add_share(JobId(1), N2, false).unwrap();
        assert_eq!((busy(&book, N1), busy(&book, N2)), (vec![JobId(1)], vec![]));
        book.note_processes(JobId(1), N2, 3);
        book.note_processes(JobId(2), N2, 3); // it is over
        assert_eq!(hosts(&book.jobs[&JobId(1)].shares), [(0, 1), (1, 3)]);
        assert_eq!(busy(&book, N2), [JobId(1)]);
        book.note_processes(JobId(1), N2, 0);
        assert_eq!(busy(&book, N2), []);
    }

    /// A book of hosts with so many cores and these sites, by their numbers.
    fn at_sites(hosts: &[(u16, &str)]) -> Booking {
        let mut book = Booking::default();
        for (number, (cores, site)) in (0..).zip(hosts) {
            book.add_host(HostNumber(number), *cores);
            book.note_site(HostNumber(number), site);
        }
        book
    }

    #[test]
    fn a_job_by_sites_is_divided_evenly_over_them() {
        let by_site = |book: &Booking, own, processes| {
            let wish = BookingWish { order: BookingOrder::Site, ..wish(processes) };
            hosts(&book.clone().book(JobId(1), own, wish).unwrap())
        };
        let book = at_sites(&[(2, "a"), (2, "a"), (2, "b"), (2, "b")]);
        assert_eq!(by_site(&book, N1, 2), [(0, 1), (2, 1)]);
        assert_eq!(by_site(&book, N1, 3), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(by_site(&book, N1, 4), [(0, 1), (1, 1), (2, 1), (3, 1)]);
        assert_eq!(by_site(&book, HostNumber(3), 4), [(3, 1), (2, 1), (0, 1), (1, 1)]);
        assert_eq!(by_site(&book, N1, 8), [(0, 2), (1, 2), (2, 2), (3, 2)]);
        // All have one more that shares cores.
        assert_eq!(by_site(&book, N1, 12), [(0, 3), (1, 3), (2, 3), (3, 3)]);
        // The hosts of the sites are numbered in turn.
        let book = at_sites(&[(2, "a"), (2, "b"), (2, "a"), (2, "b")]);
        assert_eq!(by_site(&book, N2, 4), [(1, 1), (3, 1), (0, 1), (2, 1)]);
        // A small site is full first.
        let book = at_sites(&[(1, "a"), (4, "b"), (4, "b")]);
        assert_eq!(by_site(&book, N1, 6), [(0, 1), (1, 3), (2, 2)]);
        assert_eq!(by_site(&book, N1, 9), [(0, 1), (1, 4), (2, 4)]);
        // A host without a site counts as a site of its own.
        let book = at_sites(&[(2, ""), (2, "a"), (2, "a")]);
        assert_eq!(by_site(&book, N2, 3), [(1, 1), (2, 1), (0, 1)]);
    }

    #[test]
    fn hosts_of_one_site_follow_each_other_where_that_costs_nothing() {
        let sites = [(4, "a"), (4, "b"), (4, "a"), (4, "b")];
        let book = at_sites(&sites);
        let booked = |own, order, processes| {
            let wish = BookingWish { order, ..wish(processes) };
            hosts(&book.clone().book(JobId(1), own, wish).unwrap())
        };
        let fill = BookingOrder::Fill;
        assert_eq!(booked(N1, fill, 8), [(0, 4), (2, 4)], "the own site comes first");
        assert_eq!(booked(N2, fill, 16), [(1, 4), (3, 4), (0, 4), (2, 4)]);
        assert_eq!(booked(N1, BookingOrder::Load, 4), [(0, 1), (2, 1), (1, 1), (3, 1)]);
        // More free cores count more than the site, and ranks are still beside each other.
        let mut book = at_sites(&[(4, "a"), (6, "b"), (4, "a"), (6, "b")]);
        let shares = book.book(JobId(1), N1, wish(17)).unwrap();
        assert_eq!(hosts(&shares), [(0, 4), (2, 1), (1, 6), (3, 6)]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add(u16, u16),
        Close(u16),
        Remove(u16),
        Book(u64, u16, Option<u32>, bool),
        Share(u64, u16),
        Release(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..4_u16, 1..5_u16).prop_map(|(host, cores)| Step::Add(host, cores)),
            (0..4_u16).prop_map(Step::Close),
            (0..4_u16).prop_map(Step::Remove),
            (0..9_u64, 0..4_u16, prop::option::of(0..9_u32), prop::bool::weighted(0.2))
                .prop_map(|(job, own, count, alone)| Step::Book(job, own, count, alone)),
            (0..9_u64, 0..4_u16).prop_map(|(job, host)| Step::Share(job, host)),
            (0..9_u64).prop_map(Step::Release),
        ]
    }

    proptest! {
        /// Whatever happens: a core has one job, a job has all of its processes on open hosts, jobs that want hosts for
        /// themselves have them so, and everything is free when all jobs are over.
        #[test]
        fn the_book_is_right(steps in prop::collection::vec(step(), 1..60)) {
            let mut book = Booking::default();
            for step in steps {
                match step {
                    // A host comes with the same cores, as long as it is there.
                    Step::Add(host, cores) => {
                        let known = book.cores(HostNumber(host));
                        book.add_host(HostNumber(host), if known == 0 { cores } else { known });
                    }
                    Step::Close(host) => book.close_host(HostNumber(host)),
                    Step::Remove(host) => book.remove_host(HostNumber(host)),
                    Step::Book(job, own, processes, is_exclusive) => {
                        let is_new = !book.jobs.contains_key(&JobId(job));
                        let wish = BookingWish {
                            processes,
                            order: ORDERS[(job % 4) as usize],
                            is_exclusive,
                            waits: job % 2 == 0,
                        };
                        if let Ok(shares) = book.book(JobId(job), HostNumber(own), wish)
                            && is_new
                        {
                            let all: u32 = shares.iter().map(|share| share.processes).sum();
                            let usual = u32::from(book.cores(HostNumber(own))).max(1);
                            prop_assert_eq!(all, processes.unwrap_or(usual).max(1));
                            for share in &shares {
                                prop_assert!(book.hosts[&share.host].is_open);
                            }
                        }
                    }
                    Step::Share(job, host) => {
                        let (job, host) = (JobId(job), HostNumber(host));
                        if book.add_share(job, host, true).is_ok() {
                            prop_assert!(book.jobs_on(host).any(|other| other == job));
                            prop_assert!(book.hosts.get(&host).is_none_or(|it| it.is_open));
                        }
                    }
                    Step::Release(job) => book.release(JobId(job)),
                }
                let mut seen = BTreeSet::new();
                for (job, shares) in book.jobs() {
                    for share in shares {
                        prop_assert!(share.processes as usize >= share.cores.len());
                        for core in &share.cores {
                            prop_assert!(*core < book.cores(share.host));
                            prop_assert!(seen.insert((share.host, *core)), "a core twice");
                        }
                        let others = book.jobs_on(share.host).filter(|other| *other != job).count();
                        prop_assert!(!book.jobs[&job].is_exclusive || others == 0);
                    }
                }
            }
            let all: Vec<JobId> = book.jobs().map(|(job, _)| job).collect();
            all.into_iter().for_each(|job| book.release(job));
            for host in book.hosts.keys() {
                prop_assert_eq!(book.free_cores(*host).len(), usize::from(book.cores(*host)));
            }
        }
    }
}
