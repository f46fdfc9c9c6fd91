//! `landeck tune --hosts ... --save FILE`: several hosts as a platform file for `landeck simulate`.
//!
//! A job with one process on each host measures messages between each two of them, and a few collective operations. The
//! operations are then simulated on the platform, and both times are shown.

use super::hosts::{TunedHosts, output_of};
use super::instruments::TAG;
use super::pairs::{self, FRAME_BYTES, Pair, Shares};
use super::{CostParameters, TuneError, probe};
use landeck::unstable::JobInternals;
use landeck::{Job, Result, Sum, World};
use landeck_collectives::architecture::{Butterfly, Knomial};
use landeck_collectives::{Group, Operation, Settings, Task, Way};
use landeck_host::say::{complain, say};
use landeck_measure::clock::each_ps;
use landeck_measure::processors::allowed;
use landeck_simulator::{Faults, Placement, Platform, Setting, Work, run as simulated};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Jobs that measure the hosts for a comparison.
const LAUNCHES: usize = 5;

/// The operations that are measured and simulated, with their bytes.
const OPERATIONS: [(Operation, u64); 5] = [
    (Operation::Barrier, 0),
    (Operation::Broadcast, 8),
    (Operation::Broadcast, 64 << 10),
    (Operation::AllReduce, 8),
    (Operation::AllReduce, 64 << 10),
];

/// The way by which an operation is measured and simulated.
fn way_of(operation: Operation) -> Way {
    match operation {
        Operation::Broadcast => Way::by(Knomial::BINOMIAL),
        _ => Way::by(Butterfly),
    }
}

/// Findings of a job: rows of numbers, each with its name. Times are in picoseconds.
///
/// | row | numbers |
/// |---|---|
/// | `figures` | the words of the [`CostParameters`] |
/// | `calls` | a call over messages beside these, and a step that combines |
/// | `shared` | the processors that the hosts share, 0 if they do not, and a turn on one of them |
/// | `crowd` | 1 KiB that a processor moves, where members take turns on it; 0 where they do not |
/// | `pair` | two hosts, and the words of their [`Pair`]; a row for each two |
/// | `operation` | one of [`OPERATIONS`]; a row for each |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Findings(Vec<(String, Vec<u64>)>);

impl Findings {
    /// Parses the lines that rank 0 has printed; other lines count nothing.
    fn parse(text: &str) -> Self {
        let row = |line: &str| {
            let mut words = line.split_whitespace();
            let name = words.next()?.to_owned();
            let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
            Some((name, numbers.filter(|numbers| !numbers.is_empty())?))
        };
        Self(text.lines().filter_map(row).collect())
    }

    fn add(&mut self, name: &str, numbers: &[u64]) {
        self.0.push((name.to_owned(), numbers.to_vec()));
    }

    fn text(&self) -> String {
        let line = |(name, numbers): &(String, Vec<u64>)| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("{name} {}\n", numbers.join(" "))
        };
        self.0.iter().map(line).collect()
    }

    fn rows<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u64]> {
        self.0.iter().filter(move |row| row.0 == name).map(|row| &row.1[..])
    }

    /// The first row of this name, if it has so many numbers.
    fn row<const N: usize>(&self, name: &str) -> Option<[u64; N]> {
        self.rows(name).next()?.try_into().ok()
    }

    fn pairs(&self) -> Vec<((usize, usize), Pair)> {
        let pair = |row: &[u64]| {
            let (&[one, other], words) = row.split_first_chunk()?;
            Some(((one as usize, other as usize), Pair::from_words(words.try_into().ok()?)))
        };
        self.rows("pair").filter_map(pair).collect()
    }

    /// The median of each number of several launches; `None` without any. All have the rows of the first one.
    fn middle_of(all: &[Self]) -> Option<Self> {
        let mut middle = all.first()?.clone();
        for (place, (name, numbers)) in middle.0.iter_mut().enumerate() {
            for (column, number) in numbers.iter_mut().enumerate() {
                let of = |one: &Self| {
                    one.0.get(place).filter(|row| row.0 == *name)?.1.get(column).copied()
                };
                let mut values: Vec<u64> = all.iter().filter_map(of).collect();
                values.sort_unstable();
                *number = values[values.len() / 2];
            }
        }
        Some(middle)
    }
}

/// The findings of one job on the hosts.
fn found_on(hosts: &TunedHosts) -> std::result::Result<Findings, TuneError> {
    let found = Findings::parse(&output_of(hosts, &["--ppn", "1"], "platform")?);
    match found.pairs().is_empty() {
        true => Err(TuneError::OneHost { list: hosts.list.clone() }),
        false => Ok(found),
    }
}

/// Measures the hosts, writes the file, and shows measured and simulated times.
pub(crate) fn save(hosts: &TunedHosts, path: &Path) -> std::result::Result<(), TuneError> {
    let found = found_on(hosts)?;
    let text = platform_text(&found);
    fs::write(path, &text)
        .map_err(|error| TuneError::Save { path: path.display().to_string(), error })?;
    let mut table = format!(
        "Written to {}, for `landeck simulate --per-host 1 --platform`.\n\
         With one process on each host:\n{:<24}{:>14}{:>14}\n",
        path.display(),
        "",
        "measured us",
        "simulated us"
    );
    match Platform::parse("hosts", &text) {
        Ok(platform) => table += &compared(&platform, &found),
        // Figures that no platform has: the measurement was disturbed.
        Err(error) => complain(format_args!("landeck: {error}; measure again")),
    }
    Ok(say(&table)?)
}

/// Measures the hosts, as a platform with one process on each. A message takes a quarter longer in some launches than in
/// others, so there are several, and the median of each finding counts. The platform follows from these together: figures
/// that were derived from one launch each might belong to different ones.
pub(crate) fn measured(hosts: &TunedHosts) -> std::result::Result<Platform, TuneError> {
    let all = (0..LAUNCHES).map(|_| found_on(hosts)).collect::<std::result::Result<Vec<_>, _>>()?;
    let middle = Findings::middle_of(&all).unwrap_or_default();
    Ok(Platform::parse("hosts", &platform_text(&middle))?)
}

/// A line for each operation, with both of its times.
fn compared(platform: &Platform, found: &Findings) -> String {
    let mut lines = String::new();
    for ((operation, bytes), measured) in OPERATIONS.into_iter().zip(found.rows("operation")) {
        let measured_us = measured[0] as f64 / 1e6;
        let simulated = match simulated_us(platform, operation, bytes) {
            Some(us) => format!("{us:>14.1}"),
            None => format!("{:>14}", "-"),
        };
        let name = match operation {
            Operation::Barrier => operation.to_string(),
            _ => format!("{operation} of {bytes} B"),
        };
        let _ = writeln!(lines, "{name:<24}{measured_us:>14.1}{simulated}");
    }
    lines
}

/// The simulated time of an operation with one process on each host.
fn simulated_us(platform: &Platform, operation: Operation, bytes: u64) -> Option<f64> {
    let hosts = platform.hosts();
    let group = Group::divided(hosts, hosts).ok()?;
    let (task, way, faults) = (Task::new(operation), way_of(operation), Faults::default());
    let work = Work { task: &task, way: &way, group: &group, bytes };
    let setting = Setting { placement: Placement::PerHost(1), ..Setting::new(platform, &faults) };
    let report = simulated(&work, &setting, &mut |_| {}).ok()?;
    report.spans_ps.first().map(|ps| *ps as f64 / 1e6)
}

/// A member of the job. Rank 0 prints the findings.
pub(crate) fn member() -> Result<()> {
    let job = Job::join()?;
    let world = job.world();
    if world.size() < 2 {
        // The parent says that there are no links.
        return job.leave();
    }
    let processors = allowed();
    let shared = pairs::shared_processors(&world, processors.len())?;
    // The system must not put two of them on one processor, if the hosts share these.
    super::pin_among(&processors, world.rank());
    let pairs = all_pairs(&world)?;
    let message_ps = pairs.first().map_or(0, |(_, pair)| pair.message);
    let calls = call_and_step_ps(&world, message_ps)?;
    let (mut turn_ps, mut crowd_ps) = (0, 0);
    if let Some(count) = shared {
        turn_ps = pairs::turn_ps(&world, &processors, message_ps)?;
        crowd_ps = pairs::crowd_copy_ps(&world, count)?.unwrap_or(0);
    }
    let mut found = Findings::default();
    for (operation, bytes) in OPERATIONS {
        found.add("operation", &[operation_ps(&world, operation, bytes as usize)?]);
    }
    if world.rank() == 0 {
        let mut figures = Settings::from_words(&job.segment().plan().settings).figures;
        figures.local_copy_kib_ps = probe::copy_kib_ps();
        figures.reduction_kib_ps = probe::reduction_kib_ps().unwrap_or(figures.reduction_kib_ps);
        found.add("figures", &figures.to_words());
        found.add("calls", &calls);
        found.add("shared", &[shared.unwrap_or(0) as u64, turn_ps]);
        found.add("crowd", &[crowd_ps]);
        for ((one, other), pair) in pairs {
            found.add("pair", &[&[one as u64, other as u64][..], &pair.to_words()].concat());
        }
        // A process whose output has no reader has nothing else to do.
        let _ = say(&found.text());
    }
    job.leave()
}

/// Measures each two members. Rank 0 knows the results.
fn all_pairs(world: &World) -> Result<Vec<((usize, usize), Pair)>> {
    let mut pairs = Vec::new();
    for one in 0..world.size() {
        for other in one + 1..world.size() {
            world.barrier()?;
            let mut words = pairs::pair_of(world, one, other)?.to_words();
            match world.rank() {
                0 if one > 0 => drop(world.receive_into(&mut words, one, TAG)?),
                rank if rank == one && one > 0 => world.send(&words, 0, TAG)?,
                _ => {}
            }
            pairs.push(((one, other), Pair::from_words(words)));
        }
    }
    Ok(pairs)
}

/// The time of a call over messages beside its messages, and that of a step that combines. A barrier of the first two members
/// is one message, and an allreduce of 8 bytes also combines.
fn call_and_step_ps(world: &World, message_ps: u64) -> Result<[u64; 2]> {
    let Some(pair) = world.subset(&[0, 1])? else { return Ok([0, 0]) };
    let barrier_ps = operation_ps(&pair, Operation::Barrier, 0)?;
    let all_reduce_ps = operation_ps(&pair, Operation::AllReduce, 8)?;
    let step_ps = all_reduce_ps.saturating_sub(barrier_ps.max(message_ps));
    Ok([barrier_ps.saturating_sub(message_ps), step_ps])
}

/// The time of an operation in front of a barrier, less that of the barrier: so a root does not run ahead. The least of
/// some batches counts, as for messages: other work only takes longer.
fn operation_ps(world: &World, operation: Operation, bytes: usize) -> Result<u64> {
    const CALLS: u32 = 5;
    const TIMES: usize = 80;
    let way = world.via(way_of(operation));
    let barriers = world.via(way_of(Operation::Barrier));
    let count = bytes.div_ceil(8);
    let (input, mut output) = (vec![1.0f64; count], vec![0.0f64; count]);
    let mut call = || match operation {
        Operation::Broadcast => way.broadcast(&mut output[..], 0),
        Operation::AllReduce => way.all_reduce_into(&input, &mut output, Sum),
        _ => Ok(()),
    };
    let (mut both_ps, mut barrier_ps) = (f64::MAX, f64::MAX);
    for _ in 0..TIMES {
        let both = |_| call().and_then(|()| barriers.barrier());
        both_ps = both_ps.min(each_ps(CALLS, || (0..CALLS).try_for_each(both))?);
        let alone = |_| barriers.barrier();
        barrier_ps = barrier_ps.min(each_ps(CALLS, || (0..CALLS).try_for_each(alone))?);
    }
    Ok(match operation {
        Operation::Barrier => barrier_ps as u64,
        _ => (both_ps - barrier_ps).max(1e3) as u64,
    })
}

/// The text of the file. The first pair stands for all, and the others are named. What is missing in the findings has its
/// usual value, or is no part of the file.
fn platform_text(found: &Findings) -> String {
    let rate = |kib_ps: u64| format!("{:.3} MB/s", 1024e6 / kib_ps.max(1) as f64);
    let pairs = found.pairs();
    let figures = found.row("figures").and_then(|words| CostParameters::from_words(&words).ok());
    let figures = figures.unwrap_or_default();
    let [call, step] = found.row("calls").unwrap_or_default();
    let hosts = pairs.iter().map(|((_, other), _)| other + 1).max().unwrap_or(1);
    let send = pairs.iter().map(|(_, pair)| pair.send).min().unwrap_or(1);
    // In the model both ends are busy for the overhead, and the latency lies between them.
    let overhead =
        pairs.iter().map(|(_, pair)| pair.message / 2).min().map_or(send, |half| half.min(send));
    let latency = |pair: &Pair| pair.message.saturating_sub(2 * overhead);
    let first = pairs.first().map(|(_, pair)| *pair).unwrap_or_default();
    let crowd = found.row("crowd").map_or(0, |[crowd]| crowd);
    let least = |figure: fn(Shares) -> u64| {
        let all = pairs.iter().map(|(_, pair)| figure(pair.shares()));
        if crowd > 0 { crowd } else { all.min().unwrap_or(0) }
    };
    let mut text = format!(
        "about = \"{hosts} hosts that `landeck tune --hosts` has measured\"\n\n[host]\n\
         processors = {}\nline = \"{} ps\"\nmessage = \"{} ps\"\ndeposit = \"{} ps\"\n\
         switch = \"{} ps\"\ncall = \"{call} ps\"\nstep = \"{step} ps\"\none_copy = \"{}\"\n\
         two_copy = \"{}\"\nlocal_copy = \"{}\"\nreduction = \"{}\"\n\n[network]\n\
         hosts = {hosts}\noverhead = \"{overhead} ps\"\nlatency = \"{} ps\"\ngap = \"{overhead} ps\"\n\
         rate = \"{}\"\ncopy = \"{}\"\npart_copy = \"{}\"\neager = \"{FRAME_BYTES} B\"\n\
         part = \"{FRAME_BYTES} B\"\n",
        figures.processors,
        figures.line_ps,
        figures.message_ps,
        figures.deposit_ps,
        figures.switch_ps,
        rate(figures.one_copy_kib_ps),
        rate(figures.two_copy_kib_ps),
        rate(figures.local_copy_kib_ps),
        rate(figures.reduction_kib_ps),
        latency(&first),
        rate(first.shares().way),
        rate(least(|shares| shares.frame_copy)),
        rate(least(|shares| shares.part_copy)),
    );
    if let Some([processors, turn]) = found.row("shared")
        && processors > 0
    {
        let _ = write!(text, "shared_processors = {processors}\nturn = \"{turn} ps\"\n");
    }
    for ((one, other), pair) in pairs.iter().skip(1) {
        let _ = write!(
            text,
            "\n[[link]]\nhosts = [{one}, {other}]\nlatency = \"{} ps\"\nrate = \"{}\"\n",
            latency(pair),
            rate(pair.shares().way)
        );
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three hosts on two processors, one of which has slower links. A message between the first two takes `message`.
    fn findings(message: u64) -> Findings {
        let pair = |message, way| Pair {
            message,
            send: 2_000_000,
            in_frame: way + 200_000,
            one_way: way,
            both_ways: way,
        };
        let mut found = Findings::default();
        found.add("operation", &[45_500_000]);
        found.add("operation", &[7_000_000]);
        found.add("figures", &CostParameters::default().to_words());
        found.add("calls", &[message / 2, 3]);
        found.add("shared", &[2, 9]);
        found.add("crowd", &[0]);
        for ((one, other), pair) in [
            ((0, 1), pair(message, 512_000)),
            ((0, 2), pair(2 * message, 5_120_000)),
            ((1, 2), pair(3_000_000, 512_000)),
        ] {
            found.add("pair", &[&[one, other][..], &pair.to_words()].concat());
        }
        found
    }

    #[test]
    fn the_file_is_a_platform_with_all_links() {
        let found = findings(20_000_000);
        let platform = Platform::parse("hosts", &platform_text(&found)).unwrap();
        let network = platform.network.clone().unwrap();
        assert_eq!((network.overhead_ps, network.latency_ps), (1_500_000, 17_000_000));
        let link = network.links.between(2, 0).unwrap();
        assert_eq!((link.latency_ps, link.kib_ps), (37_000_000, 5_120_000));
        assert_eq!(network.links.between(1, 2).unwrap().latency_ps, 0);
        assert_eq!((network.copy_kib_ps, network.part_copy_kib_ps), (100_000, Some(100_000)));
        assert_eq!(network.part_bytes, Some(64 << 10));
        assert_eq!(network.shared.map(|shared| (shared.processors, shared.turn_ps)), Some((2, 9)));
        let table = compared(&platform, &found);
        assert!(table.starts_with("barrier ") && table.contains("45.5"), "{table}");
        assert_eq!(table.lines().count(), 2, "{table}");
        let slow = simulated_us(&platform, Operation::Broadcast, 64 << 10).unwrap();
        assert!(slow > 320.0, "64 KiB go over the slow link: {slow}");
    }

    #[test]
    fn hosts_with_processors_of_their_own_and_crowds_are_told_apart() {
        let with = |name: &str, numbers: &[u64]| {
            let mut found = findings(20_000_000);
            found.0.retain(|row| row.0 != name);
            found.add(name, numbers);
            Platform::parse("hosts", &platform_text(&found)).unwrap().network.unwrap()
        };
        assert_eq!(with("shared", &[0, 0]).shared, None);
        let crowd = with("crowd", &[700_000]);
        assert_eq!((crowd.copy_kib_ps, crowd.part_copy_kib_ps), (700_000, Some(700_000)));
    }

    #[test]
    fn the_middle_of_each_finding_counts() {
        let launches = [20_000_000, 90_000_000, 30_000_000].map(findings);
        assert_eq!(Findings::middle_of(&launches), Some(launches[2].clone()));
        assert_eq!(Findings::middle_of(&[]), None);
        let said = format!("{}a line of another program\n", launches[0].text());
        assert_eq!(Findings::parse(&said), launches[0]);
        assert_eq!(Findings::parse("pair\n\npair x\n"), Findings::default());
    }
}
