//! Measurements by the processes of a job.
//!
//! Rank 0 prints each finding as a line, its name and picoseconds, and at last `share` and permille. [`super`] reads
//! them. A finding is the least of some batches, and in a crowd their median. After the time limit it is that of one
//! batch: a microsecond's work can take milliseconds on a busy machine.

use super::instruments::{TAG, report, round_trip, usual, usual_of_all};
use super::probe::{self, Pages};
use super::share::Begun;
use clap::ValueEnum;
use landeck::{Job, Result, Sum, World};
use landeck_collectives::architecture::{Butterfly, Flat};
use landeck_collectives::calibration::{CELL_MESSAGE_BYTES, FAR_BYTES, MESSAGE_BYTES, named};
use landeck_collectives::{BoardStyle, Way};
use landeck_measure::clock::{each_ps, look_ps, since_ps};
use landeck_measure::processors::allowed;
use landeck_measure::{Paged, least};
use landeck_memory::Bytes;
use std::hint::black_box;
use std::time::{Duration, Instant};

const BATCHES: usize = 9;
/// A job repeats nothing after this time.
const REPEATED_MAX: Duration = Duration::from_millis(300);
const LONG_BYTES: usize = 512 * 1024;
const LENT_BYTES: usize = 64 * 1024;
/// The subject of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Messages between two processors.
    Messages,
    /// A switch between two processes on one processor.
    Switch,
    /// Copies in one process.
    Caches,
    /// Operations whose members may read each other's blocks.
    Blocks,
    /// Processes that share processors.
    Crowd,
    /// Links between hosts.
    Hosts,
    /// Messages and operations between hosts.
    Platform,
}

impl Subject {
    /// The name on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Switch => "switch",
            Self::Caches => "caches",
            Self::Blocks => "blocks",
            Self::Crowd => "crowd",
            Self::Hosts => "hosts",
            Self::Platform => "platform",
        }
    }

    /// The number of processors that it uses.
    fn processors(self) -> u32 {
        match self {
            Self::Messages => 2,
            Self::Switch | Self::Hosts | Self::Platform => 1,
            Self::Caches => allowed().len().clamp(1, 2) as u32,
            Self::Blocks => super::blocks_members(),
            Self::Crowd => super::crowded(),
        }
    }
}

/// Measures as one process of the job.
pub(crate) fn run(subject: Subject) -> Result<()> {
    match subject {
        Subject::Hosts => return super::hosts::member(),
        Subject::Platform => return super::platform::member(),
        _ => {}
    }
    let job = Job::join()?;
    let world = job.world();
    let processors = subject.processors();
    let begun = Begun::together(&world)?;
    match (subject, world.size()) {
        (Subject::Messages, 2) => messages(&job, &world)?,
        (Subject::Switch, 2) => {
            let batches = Batches::begin(&world);
            report(&world, "switch_ps", batches.half_round_trip_ps(8, 100)?);
        }
        (Subject::Caches, 1) => {
            probe::caches(&allowed(), |name, ps| report(&world, name, ps as f64));
        }
        (Subject::Blocks, 2..) => super::blocks::report_lengths(&world)?,
        (Subject::Crowd, 2..) => crowd(&world)?,
        _ => {}
    }
    let share = begun.permille(&world, processors)?;
    report(&world, "share", share as f64);
    job.leave()
}

/// Measures processes that share processors. The switch follows from barriers: the last member to come goes on to the
/// next barrier, after all others have had a turn. The work of a turn is timed by each member's own clock: only rank
/// 0 waits for others, so each finds what it needs.
fn crowd(world: &World) -> Result<()> {
    let processors = (super::crowded() as usize).min(world.size());
    super::pin_among(&allowed(), world.rank() % processors);
    let turns = (world.size() / processors - 1).max(1);
    let batches = Batches::begin(world);
    let barrier_ps = batches.usual_ps(40, || (0..40).try_for_each(|_| world.barrier()))?;
    let clock_ps = look_ps();
    let flat = world.via(Way::by(Flat));
    let over_messages = own_ps(&batches, &flat)?;
    let at_the_board = own_ps(&batches, &world.via(Way::Board(BoardStyle::Each)))?;
    let sharing = world.size() / processors;
    let of = |family: &str, ps: f64| report(world, &named(family, sharing as u64), ps);
    let of_many = of_many_ps(&batches, &flat, over_messages)?;
    of("send_of_#_ps", of_many.sent);
    of("receive_of_#_ps", of_many.taken);
    of("send_far_of_#_ps", of_many.far.sent);
    of("receive_far_of_#_ps", of_many.far.taken);
    of("keep_of_#_ps", of_many.kept);
    of("find_of_#_ps", of_many.found);
    let again = again_ps(&batches)?;
    of("call_again_of_#_ps", again.call);
    of("receive_again_of_#_ps", again.taken);
    of("read_kib_of_#_ps", read_kib_ps(&batches)?);
    of("page_of_#_ps", page_ps(&batches)?);
    of("turn_of_#_ps", barrier_ps / turns as f64);
    of("switch_of_#_ps", pairs_ps(&batches, processors)? / sharing as f64);
    of("call_of_#_ps", over_messages - clock_ps);
    of("take_of_#_ps", at_the_board - clock_ps);
    Ok(())
}

/// How much longer the first touch of a page takes than the next one, after others have had the processor.
fn page_ps(batches: &Batches<'_>) -> Result<f64> {
    const ROUNDS: usize = 30;
    const BYTES: u64 = 256 << 10;
    let (pages, mut more_ps) = (Pages::of(BYTES), Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        batches.world.barrier()?;
        let first_ps = pages.round_ps();
        more_ps.push(first_ps - pages.round_ps());
    }
    let [more_ps] = usual_of_all(batches.world, [more_ps], 0)?;
    Ok(more_ps)
}

/// 1 KiB copied from data that the process has not touched since it touched much else, while others had the
/// processor.
fn read_kib_ps(batches: &Batches<'_>) -> Result<f64> {
    const BYTES: usize = 64 << 10;
    let [mut near, far] = [BYTES, FAR_BYTES as usize].map(|bytes| Paged::new(1u8, bytes, 0));
    let mut times_ps = Vec::new();
    for place in far.chunks(BYTES) {
        batches.world.barrier()?;
        let start = Instant::now();
        Bytes::from(place).copy_to_slice(black_box(&mut near));
        times_ps.push(since_ps(start));
    }
    let [read_ps] = usual_of_all(batches.world, [times_ps], 0)?;
    Ok(per_kib(read_ps, BYTES))
}

/// A member's time for calls that directly follow each other.
struct Again {
    /// A call that receives one message.
    call: f64,
    /// Each of many received messages.
    taken: f64,
}

/// Each member in turn gathers some times from all others, and from one of them, when their data are there.
fn again_ps(batches: &Batches<'_>) -> Result<Again> {
    const ROUNDS: usize = 4;
    const CALLS: u32 = 8;
    let world = batches.world;
    let (size, rank) = (world.size(), world.rank());
    let pair = world.split(Some(rank as u32 / 2), 0)?.unwrap_or_else(|| world.clone());
    let (of_all, of_two, beside) =
        (world.via(Way::by(Flat)), pair.via(Way::by(Flat)), world.duplicate()?);
    let mut times_ps = [(); 2].map(|()| Vec::new());
    for root in (0..size).flat_map(|root| [root; ROUNDS]) {
        let calls_ps = |call: &mut dyn FnMut() -> Result<()>| {
            each_ps(CALLS, || (0..CALLS).try_for_each(|_| call()))
        };
        let mut all = vec![0u64; size];
        for (of, way, is_among, way_root) in
            [(0, &of_all, true, root), (1, &of_two, rank / 2 == root / 2, root % 2)]
        {
            let mut gather = || way.gather(&[1u64], &mut all[..way.size()], way_root);
            beside.barrier()?;
            if rank == root {
                beside.barrier()?;
                times_ps[of].push(calls_ps(&mut gather)?);
            } else {
                if is_among {
                    calls_ps(&mut gather)?;
                }
                beside.barrier()?;
            }
        }
    }
    let [of_all, call] = usual_of_all(world, times_ps, 0)?;
    let others = (size - 1) as f64;
    Ok(Again { call, taken: (of_all - call) / (others - 1.0).max(1.0) })
}

/// The time of a message at both its ends.
struct Handed {
    sent: f64,
    taken: f64,
}

/// A member's time for each of many messages of a call.
struct OfMany {
    sent: f64,
    /// A message that is there when it is looked for.
    taken: f64,
    /// Messages after each member has sent to all others.
    far: Handed,
    /// Added for a message that came before its receive.
    kept: f64,
    /// A deposit that is taken from the board.
    found: f64,
}

/// Each member in turn broadcasts to all others, and gathers when all data are there, so that no member waits. It
/// repeats that until its messages have their rings. A call that receives one message takes `one_ps`, which is
/// contained once in a call that receives many.
fn of_many_ps(batches: &Batches<'_>, way: &World, one_ps: f64) -> Result<OfMany> {
    const ROUNDS: usize = 6;
    const CYCLES: usize = 3;
    let world = batches.world;
    let (size, rank) = (world.size(), world.rank());
    let pair = world.split(Some(rank as u32 / 2), 0)?.unwrap_or_else(|| world.clone());
    let board = Way::Board(BoardStyle::Each);
    let ways = [way.clone(), pair.via(Way::by(Flat)), world.via(board.clone()), pair.via(board)];
    let [way, of_two, at_board, at_board_of_two] = ways.each_ref().map(Some);
    let gathers = Gathers { world, beside: world.duplicate()? };
    let mut times_ps = [(); 9].map(|()| Vec::new());
    for root in (0..size).flat_map(|root| [root; ROUNDS]) {
        world.barrier()?;
        let sent_ps = each_ps(1, || ways[0].broadcast(&mut [1u64], root))?;
        times_ps[0].extend((rank == root).then_some(sent_ps));
        let kinds = [
            (way, false),
            (None, true),
            (way, true),
            (of_two, false),
            (at_board, false),
            (at_board_of_two, false),
        ];
        for (kind, times_ps) in kinds.into_iter().zip(&mut times_ps[1..]) {
            times_ps.extend(gathers.root_ps(root, kind)?);
        }
    }
    for root in (0..CYCLES).flat_map(|_| 0..size) {
        world.barrier()?;
        let sent_ps = each_ps(1, || ways[0].broadcast(&mut [1u64], root))?;
        times_ps[7].extend((rank == root).then_some(sent_ps));
        times_ps[8].extend(gathers.root_ps(root, (way, false))?);
    }
    let of = usual_of_all(world, times_ps, 0)?;
    let others = (size - 1) as f64;
    let share_ps = |all_ps: f64, one_ps: f64| (all_ps - one_ps) / (others - 1.0).max(1.0);
    let taken = share_ps(of[1], of[4]);
    let kept = share_ps(of[3] - of[2], one_ps) - taken;
    let found = share_ps(of[5], of[6]);
    let sent = |all_ps: f64| (all_ps - (one_ps - taken)) / others;
    let far = Handed { sent: sent(of[7]), taken: share_ps(of[8], of[4]) };
    Ok(OfMany { sent: sent(of[0]), taken, far, kept, found })
}

/// Gathers at a root that begins when all others have finished.
struct Gathers<'a> {
    world: &'a World,
    beside: World,
}

impl Gathers<'_> {
    /// The root's time for a gather in this world, of all or of two, and for receiving a word of each other member if
    /// there are words. None at other members.
    fn root_ps(
        &self,
        root: usize,
        (way, has_words): (Option<&World>, bool),
    ) -> Result<Option<f64>> {
        let (size, rank) = (self.world.size(), self.world.rank());
        let (mut data, mut all) = ([1u64], vec![0u64; size]);
        let is_of_all = |way: &World| way.size() == size;
        let way = way.filter(|way| is_of_all(way) || rank / 2 == root / 2);
        let mut call = || match way {
            Some(way) if is_of_all(way) => way.gather(&[1u64], &mut all, root),
            Some(way) => way.gather(&[1u64], &mut all[..2], root % 2),
            None => Ok(()),
        };
        if rank != root {
            call()?;
            if has_words {
                self.world.send(&data, root, TAG)?;
            }
            self.beside.barrier()?;
            self.beside.barrier()?;
            return Ok(None);
        }
        self.beside.barrier()?;
        let root_ps = each_ps(1, || {
            // Receiving a word also takes in all messages that came before it.
            for from in (0..size).filter(|&from| has_words && from != root) {
                self.world.receive_into(&mut data, from, TAG)?;
            }
            call()
        })?;
        self.beside.barrier()?;
        Ok(Some(root_ps))
    }
}

/// Round trips between pairs on each processor, all at once, so that every process has a turn between them.
fn pairs_ps(batches: &Batches<'_>, processors: usize) -> Result<f64> {
    const ROUND_TRIPS: u32 = 40;
    let world = batches.world;
    let (rank, mut data) = (world.rank(), [1u64]);
    let is_first = (rank / processors).is_multiple_of(2);
    let other = if is_first { rank + processors } else { rank - processors };
    let mut trip = || round_trip(world, (is_first, other), &mut data);
    batches.usual_ps(ROUND_TRIPS, || (0..ROUND_TRIPS).try_for_each(|_| trip()))
}

/// The median time of a broadcast over all members but the root, when they need not wait. Rank 0 learns it. Two
/// reductions follow each broadcast, as they do where operations are measured.
fn own_ps(batches: &Batches<'_>, way: &World) -> Result<f64> {
    const ROUNDS: usize = 100;
    let world = batches.world;
    let mut broadcasts = Vec::new();
    let (mut data, mut sum) = ([0u64], [0u64]);
    loop {
        for _ in 0..ROUNDS {
            world.barrier()?;
            broadcasts.push(each_ps(1, || way.broadcast(&mut data, 0))?);
            world.reduce(&[1u64], &mut sum, Sum, 0)?;
            world.reduce(&[1u64], &mut sum, Sum, 0)?;
        }
        if broadcasts.len() >= 3 * ROUNDS || batches.is_over()? {
            break;
        }
    }
    let [broadcast_ps] = usual_of_all(world, [broadcasts], 1)?;
    Ok(broadcast_ps)
}

fn messages(job: &Job, world: &World) -> Result<()> {
    let batches = Batches::begin(world);
    let short = batches.half_round_trip_ps(8, 5_000)?;
    let long = batches.half_round_trip_ps(LONG_BYTES, 40)?;
    let lent = lent_ps(job, world)?;
    let barrier = batches.calls_ps(world, 5_000, World::barrier)?;
    report(world, "message_ps", short);
    for (bytes, round_trips) in
        MESSAGE_BYTES.into_iter().zip([4_000, 3_000, 2_500, 2_000, 1_500, 500, 250, 150])
    {
        let ps = batches.half_round_trip_ps(bytes as usize, round_trips)?;
        report(world, &named("message_#_ps", bytes), ps);
    }
    for bytes in CELL_MESSAGE_BYTES {
        let ps = batches.one_way_ps(bytes as usize)? - short;
        report(world, &named("one_way_#_ps", bytes), ps);
    }
    calls(&batches)?;
    report(world, "two_copy_kib_ps", per_kib(long - short, LONG_BYTES));
    report(world, "one_copy_kib_ps", per_kib(lent, LENT_BYTES));
    report(world, "deposit_ps", barrier);
    report(world, "one_copy_from_kib", super::one_copy::from_kib(world)? as f64);
    Ok(())
}

fn per_kib(ps: f64, bytes: usize) -> f64 {
    ps / (bytes as f64 / 1024.0)
}

/// Measures a barrier and an allreduce of two over messages: a call beside its message, and one that copies and
/// combines besides. Then a barrier and an allgather at the board, which copies besides.
fn calls(batches: &Batches<'_>) -> Result<()> {
    const CALLS: u32 = 2_000;
    let world = batches.world;
    let barriers = world.via(Way::by(Butterfly));
    let barrier = batches.calls_ps(&barriers, CALLS, World::barrier)?;
    let sums = world.via(Way::by(Butterfly));
    let mut sum = [0u64];
    let each = |world: &World| world.all_reduce_into(&[1], &mut sum, Sum);
    let allreduce = batches.calls_ps(&sums, CALLS, each)?;
    let mut both = [0u64; 2];
    let gather = |world: &World| world.all_gather(&[1], &mut both);
    report(world, "call_ps", barrier);
    report(world, "step_ps", allreduce);
    let at_board = world.via(Way::Board(BoardStyle::Each));
    report(world, "board_call_ps", batches.calls_ps(&at_board, CALLS, World::barrier)?);
    report(world, "board_copy_ps", batches.calls_ps(&at_board, CALLS, gather)?);
    Ok(())
}

/// A series of measurements in a job. Each is repeated while there is time.
struct Batches<'a> {
    world: &'a World,
    began: Instant,
}

impl<'a> Batches<'a> {
    fn begin(world: &'a World) -> Self {
        Self { world, began: Instant::now() }
    }

    /// Half of a round trip.
    fn half_round_trip_ps(&self, bytes: usize, round_trips: u32) -> Result<f64> {
        let (world, rank) = (self.world, self.world.rank());
        let mut data = Paged::new(1u8, bytes, 0);
        let mut trip = || round_trip(world, (rank == 0, 1 - rank), &mut data);
        self.least_ps(2 * round_trips, || (0..round_trips).try_for_each(|_| trip()))
    }

    /// A message to the other process and a short one back, so that all long ones go one way.
    fn one_way_ps(&self, bytes: usize) -> Result<f64> {
        const ROUND_TRIPS: u32 = 100;
        let world = self.world;
        let (mut data, mut back) = (Paged::new(1u8, bytes, 0), [1u8]);
        self.least_ps(ROUND_TRIPS, || {
            for _ in 0..ROUND_TRIPS {
                if world.rank() == 0 {
                    world.send(&data, 1, TAG)?;
                    world.receive_into(&mut back, 1, TAG)?;
                } else {
                    world.receive_into(&mut data, 0, TAG)?;
                    world.send(&back, 0, TAG)?;
                }
            }
            Ok(())
        })
    }

    /// The least time of a call.
    fn calls_ps(
        &self,
        world: &World,
        calls: u32,
        mut call: impl FnMut(&World) -> Result<()>,
    ) -> Result<f64> {
        self.least_ps(calls, || (0..calls).try_for_each(|_| call(world)))
    }

    /// The least time of one of a batch's things.
    fn least_ps(&self, things: u32, batch: impl FnMut() -> Result<()>) -> Result<f64> {
        self.times_ps(things, batch).map(least)
    }

    /// The median time of one of a batch's things.
    fn usual_ps(&self, things: u32, batch: impl FnMut() -> Result<()>) -> Result<f64> {
        Ok(usual(&self.times_ps(things, batch)?))
    }

    /// The times of some batches.
    fn times_ps(&self, things: u32, mut batch: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
        times_until(|| each_ps(things, &mut batch), || self.is_over())
    }

    /// Whether there is no time for another batch. Rank 0 decides for all.
    fn is_over(&self) -> Result<bool> {
        let mut is_over = [u8::from(self.began.elapsed() >= REPEATED_MAX)];
        self.world.broadcast(&mut is_over, 0)?;
        Ok(is_over != [0])
    }
}

/// The times of at least one batch, and of more until the time limit.
fn times_until(
    mut batch_ps: impl FnMut() -> Result<f64>,
    mut is_over: impl FnMut() -> Result<bool>,
) -> Result<Vec<f64>> {
    let mut times_ps = vec![batch_ps()?];
    while times_ps.len() < BATCHES && !is_over()? {
        times_ps.push(batch_ps()?);
    }
    Ok(times_ps)
}

/// Rank 1 fills memory and lends it to rank 0, which copies it out and acknowledges.
fn lent_ps(job: &Job, world: &World) -> Result<f64> {
    let mut target = vec![0u8; LENT_BYTES];
    let mut least_ps = f64::MAX;
    for _ in 0..20 * BATCHES {
        if world.rank() == 1 {
            let mut loan = job.loan::<u8>(LENT_BYTES)?;
            loan.fill(1);
            world.send_loan(loan, 0, TAG)?;
            world.receive::<u8>(0, TAG)?;
            continue;
        }
        let (lent, _) = world.receive_loan::<u8>(1, TAG)?;
        let start = Instant::now();
        lent.bytes().copy_to_slice(black_box(&mut target)); // somebody may look at it
        least_ps = least_ps.min(since_ps(start));
        world.send(&[1u8], 1, TAG)?;
    }
    Ok(least_ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_repeated_when_the_time_is_over_and_everything_is_done_once() {
        let batches_until = |over_after: usize| {
            let batches = std::cell::Cell::new(0);
            let batch_ps = || {
                batches.set(batches.get() + 1);
                Ok(100.0 - batches.get() as f64)
            };
            let times_ps = times_until(batch_ps, || Ok(batches.get() >= over_after)).unwrap();
            assert_eq!(times_ps.len(), batches.get());
            assert_eq!(times_ps.last(), Some(&(100.0 - batches.get() as f64)));
            batches.get()
        };
        assert_eq!([0, 1, 4, 1000].map(batches_until), [1, 1, 4, BATCHES]);
    }

    #[test]
    fn subjects_have_the_names_that_the_command_line_knows() {
        for subject in Subject::value_variants() {
            assert_eq!(Subject::from_str(subject.as_str(), false), Ok(*subject));
        }
    }
}
