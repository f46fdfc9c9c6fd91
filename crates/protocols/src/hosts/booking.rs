//! The processors of a machine, and the jobs that have booked them. The founder keeps the book.
//!
//! A host gives all its cores to the machine, numbered from 0. A job books one core for each process: first on the host that
//! asks, then where most are free. A core belongs to one job at a time. Processes beyond the free cores get none, and run
//! where the fewest processes are for each core; those of a job that spreads go where it has none first. A job that wants hosts for itself gets whole ones that no other job uses, and
//! no other job comes there until it is over. Jobs that wait get their turn in the order in which they have asked first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use landeck_wire::{HostNumber, JobId};
use serde::{Deserialize, Serialize};

/// A wish for processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookingWish {
    /// The number of processes; `None` is one for each core of the host that asks.
    pub processes: Option<u32>,
    /// Whether the processes go to as many hosts as possible.
    pub spreads: bool,
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
    /// The processes there, at least one.
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
#[derive(Clone, Debug, Default)]
pub struct Booking {
    hosts: BTreeMap<HostNumber, HostCores>,
    jobs: BTreeMap<JobId, BookedJob>,
    /// The jobs that wait, in the order in which they have first asked.
    waiting: VecDeque<JobId>,
}

#[derive(Clone, Debug)]
struct HostCores {
    count: u16,
    /// Whether further jobs may come.
    is_open: bool,
}

#[derive(Clone, Debug)]
struct BookedJob {
    shares: Vec<BookedShare>,
    is_exclusive: bool,
}

impl Booking {
    /// Adds a host with its cores, or opens it again.
    pub fn add_host(&mut self, host: HostNumber, cores: u16) {
        self.hosts.insert(host, HostCores { count: cores.max(1), is_open: true });
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
        let shares = self.shares(&hosts, own, processes, wish.spreads);
        let is_exclusive = wish.is_exclusive;
        self.jobs.insert(job, BookedJob { shares: shares.clone(), is_exclusive });
        Ok(shares)
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
    fn load(&self, host: HostNumber) -> u32 {
        let shares = self.jobs.values().flat_map(|job| &job.shares);
        shares.filter(|share| share.host == host).map(|share| share.processes).sum()
    }

    /// Distributes processes over these hosts: each host gets as many as it has free cores before the next one gets any, or
    /// all get one in turn.
    fn shares(
        &self,
        hosts: &[HostNumber],
        own: HostNumber,
        processes: u32,
        spreads: bool,
    ) -> Vec<BookedShare> {
        let mut offers: Vec<(HostNumber, Vec<u16>)> =
            hosts.iter().map(|host| (*host, self.free_cores(*host))).collect();
        offers.sort_by_key(|(host, free)| (*host != own, usize::MAX - free.len(), *host));
        let counts = distributed(&offers, processes, spreads);
        let mut shares: Vec<BookedShare> = Vec::new();
        for ((host, free), &count) in offers.iter().zip(&counts).filter(|(_, count)| **count > 0) {
            let cores = free[..count].to_vec();
            shares.push(BookedShare { host: *host, processes: count as u32, cores });
        }
        let left = processes - counts.iter().sum::<usize>() as u32;
        for _ in 0..left {
            let here = |host: HostNumber| {
                shares.iter().find(|share| share.host == host).map_or(0, |share| share.processes)
            };
            // The processes for each core, as a number with 32 binary places.
            let fullness = |host: HostNumber| {
                let load = u64::from(self.load(host) + here(host));
                (load << 32) / u64::from(self.cores(host).max(1))
            };
            let order = |host: &HostNumber| (spreads && here(*host) > 0, fullness(*host));
            let next = offers.iter().map(|(host, _)| *host).min_by_key(order);
            let Some(host) = next else { break };
            match shares.iter_mut().find(|share| share.host == host) {
                Some(share) => share.processes += 1,
                None => shares.push(BookedShare { host, processes: 1, cores: Vec::new() }),
            }
        }
        shares
    }
}

/// The number of processes that each offer of free cores gets, one for each core at most.
fn distributed(offers: &[(HostNumber, Vec<u16>)], processes: u32, spreads: bool) -> Vec<usize> {
    let mut counts = vec![0; offers.len()];
    let mut left = processes as usize;
    let each = if spreads { 1 } else { usize::MAX };
    while left > 0 && offers.iter().zip(&counts).any(|((_, free), count)| *count < free.len()) {
        for ((_, free), count) in offers.iter().zip(&mut counts) {
            let more = each.min(free.len() - *count).min(left);
            *count += more;
            left -= more;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const N1: HostNumber = HostNumber(0);
    const N2: HostNumber = HostNumber(1);
    const N3: HostNumber = HostNumber(2);

    fn wish(processes: u32) -> BookingWish {
        let (is_exclusive, waits, spreads) = (false, false, false);
        BookingWish { processes: Some(processes), spreads, is_exclusive, waits }
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
        let spread = |processes| BookingWish { spreads: true, ..wish(processes) };
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

    #[test]
    fn a_job_that_spreads_comes_to_full_hosts_as_well() {
        let mut book = Booking::default();
        [N1, N2, N3].into_iter().for_each(|host| book.add_host(host, 1));
        book.book(JobId(1), N1, wish(1)).unwrap();
        book.book(JobId(2), N3, wish(1)).unwrap();
        let spread = |processes| BookingWish { spreads: true, ..wish(processes) };
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

    #[derive(Clone, Debug)]
    enum Step {
        Add(u16, u16),
        Close(u16),
        Remove(u16),
        Book(u64, u16, Option<u32>, bool),
        Release(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..4_u16, 1..5_u16).prop_map(|(host, cores)| Step::Add(host, cores)),
            (0..4_u16).prop_map(Step::Close),
            (0..4_u16).prop_map(Step::Remove),
            (0..9_u64, 0..4_u16, prop::option::of(0..9_u32), prop::bool::weighted(0.2))
                .prop_map(|(job, own, count, alone)| Step::Book(job, own, count, alone)),
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
                            spreads: job % 3 == 0,
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
                    Step::Release(job) => book.release(JobId(job)),
                }
                let mut seen = BTreeSet::new();
                for (job, shares) in book.jobs() {
                    for share in shares {
                        prop_assert!(share.processes as usize >= share.cores.len().max(1));
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
