//! `landeck tune --hosts ... --save FILE`: several hosts as a platform file for `landeck simulate`.
//!
//! A job with one process on each host measures messages between each two of them, and a few collective operations. The
//! operations are then simulated on the platform, and both times are shown.

use super::hosts::{TunedHosts, output_of};
use super::pairs::{self, FRAME_BYTES, Pair};
use super::{Calibration, CostParameters, TuneError, probe};
use landeck::unstable::JobInternals;
use landeck::unstable::collectives::architecture::{Butterfly, Knomial};
use landeck::unstable::collectives::{Group, Link, Operation, Settings, Task, Way};
use landeck::unstable::host::say::{complain, say};
use landeck::{Job, Result, Sum, Tag, World};
use landeck_simulator::platform::Network;
use landeck_simulator::{Faults, Placement, Platform, Setting, Work, run as simulated};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

const TAG: Tag = Tag(0);
/// Jobs that measure the hosts for a comparison.
const LAUNCHES: usize = 5;
/// The beginning of a line with a measured operation, which is a comment of the file.
const MEASURED: &str = "# measured ";

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

/// Measures the hosts, writes the file, and shows measured and simulated times.
pub(crate) fn save(hosts: &TunedHosts, path: &Path) -> std::result::Result<(), TuneError> {
    let text = output_of(hosts, &["--ppn", "1"], "platform")?;
    if text.is_empty() {
        return Err(TuneError::OneHost { list: hosts.list.clone() });
    }
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
        Ok(platform) => table += &compared(&platform, &text),
        // Figures that no platform has: the measurement was disturbed.
        Err(error) => complain(format_args!("landeck: {error}; measure again")),
    }
    Ok(say(&table)?)
}

/// Measures the hosts, as a platform with one process on each. A message takes a quarter longer in some launches than in
/// others, so there are several, and the median of each figure counts.
pub(crate) fn measured(hosts: &TunedHosts) -> std::result::Result<Platform, TuneError> {
    let mut all = Vec::with_capacity(LAUNCHES);
    for _ in 0..LAUNCHES {
        let text = output_of(hosts, &["--ppn", "1"], "platform")?;
        if text.is_empty() {
            break;
        }
        all.push(Platform::parse("hosts", &text)?);
    }
    middle_of(&all).ok_or_else(|| TuneError::OneHost { list: hosts.list.clone() })
}

/// A platform with the median of each figure that the launches measure; `None` for no platforms.
fn middle_of(all: &[Platform]) -> Option<Platform> {
    let mut platform = all.first()?.clone();
    let of = |figure: &dyn Fn(&Platform) -> u64| {
        let mut values: Vec<u64> = all.iter().map(figure).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let host = &mut platform.host;
    host.figures.local_copy_kib_ps = of(&|one| one.host.figures.local_copy_kib_ps);
    host.figures.reduction_kib_ps = of(&|one| one.host.figures.reduction_kib_ps);
    let call_ps = of(&|one| one.host.details.call_ps);
    let step_ps = of(&|one| one.host.details.step_ps);
    host.details = Calibration::of(&host.figures).with_calls(call_ps, step_ps);
    let of_network =
        |figure: &dyn Fn(&Network) -> u64| of(&|one| one.network.as_ref().map_or(0, figure));
    let network = platform.network.as_mut()?;
    network.overhead_ps = of_network(&|one| one.overhead_ps);
    network.latency_ps = of_network(&|one| one.latency_ps);
    network.gap_ps = of_network(&|one| one.gap_ps);
    network.kib_ps = of_network(&|one| one.kib_ps);
    network.copy_kib_ps = of_network(&|one| one.copy_kib_ps);
    if let Some(shared) = &mut network.shared {
        shared.turn_ps = of_network(&|one| one.shared.map_or(0, |shared| shared.turn_ps));
    }
    let hosts = network.hosts as usize;
    let gap_ps = network.gap_ps;
    for (low, high) in (0..hosts).flat_map(|high| (0..high).map(move |low| (low, high))) {
        if network.links.between(low, high).is_none() {
            continue;
        }
        let of_link = |figure: &dyn Fn(Link) -> u64| {
            of_network(&|one| one.links.between(low, high).map_or(0, figure))
        };
        let (latency_ps, kib_ps) = (of_link(&|link| link.latency_ps), of_link(&|link| link.kib_ps));
        network.links.set(low, high, Link { latency_ps, gap_ps, kib_ps });
    }
    Some(platform)
}

/// A line for each operation, with both of its times.
fn compared(platform: &Platform, text: &str) -> String {
    let mut lines = String::new();
    let measured = text.lines().filter_map(|line| line.strip_prefix(MEASURED)?.parse().ok());
    let measured: Vec<f64> = measured.collect();
    for ((operation, bytes), measured_us) in OPERATIONS.into_iter().zip(measured) {
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

/// A member of the job. Rank 0 prints the file.
pub(crate) fn member() -> Result<()> {
    let job = Job::join()?;
    let world = job.world();
    if world.size() < 2 {
        // The parent says that there are no links.
        return job.leave();
    }
    // The system must not put two of them on one processor, if the hosts are of one computer.
    let processors = super::processors();
    super::pin_among(&processors, world.rank());
    let mut pairs = Vec::new();
    for one in 0..world.size() {
        for other in one + 1..world.size() {
            world.barrier()?;
            let mut words = pairs::pair_of(&world, one, other)?.to_words();
            match world.rank() {
                0 if one > 0 => drop(world.receive_into(&mut words, one, TAG)?),
                rank if rank == one && one > 0 => world.send(&words, 0, TAG)?,
                _ => {}
            }
            pairs.push(((one, other), Pair::from_words(words)));
        }
    }
    let message_ps = pairs.first().map_or(0, |(_, pair)| pair.message);
    let (call_ps, step_ps) = call_and_step_ps(&world, message_ps)?;
    let mut shared = None;
    if pairs::are_on_one_computer(&world)? {
        shared = Some((processors.len(), pairs::turn_ps(&world, &processors, message_ps)?));
        if let Some(copy) = pairs::crowd_copy_ps(&world, processors.len())? {
            pairs.iter_mut().for_each(|(_, pair)| pair.copy = copy);
        }
    }
    let mut measured = String::new();
    for (operation, bytes) in OPERATIONS {
        let us = operation_us(&world, operation, bytes as usize)?;
        let _ = writeln!(measured, "{MEASURED}{us:.3}");
    }
    if world.rank() == 0 {
        let mut figures = Settings::from_words(&job.segment().plan().settings).figures;
        figures.local_copy_kib_ps = probe::copy_kib_ps();
        figures.reduction_kib_ps = probe::reduction_kib_ps().unwrap_or(figures.reduction_kib_ps);
        let details = landeck::tuning::read_all().ok().flatten().map(|(_, details)| details);
        let mut details = details.unwrap_or_else(|| Calibration::of(&figures));
        (details.call_ps, details.step_ps) = (call_ps, step_ps);
        // A process whose output has no reader has nothing else to do.
        let text = platform_text(&figures, &details, (world.size(), shared), &pairs);
        let _ = say(&(text + &measured));
    }
    job.leave()
}

/// The time of a call over messages beside its messages, and that of a step that combines. A barrier of the first two members
/// is one message, and an allreduce of 8 bytes also combines.
fn call_and_step_ps(world: &World, message_ps: u64) -> Result<(u64, u64)> {
    let Some(pair) = world.subset(&[0, 1])? else { return Ok((0, 0)) };
    let barrier_ps = (operation_us(&pair, Operation::Barrier, 0)? * 1e6) as u64;
    let all_reduce_ps = (operation_us(&pair, Operation::AllReduce, 8)? * 1e6) as u64;
    let step_ps = all_reduce_ps.saturating_sub(barrier_ps.max(message_ps));
    Ok((barrier_ps.saturating_sub(message_ps), step_ps))
}

/// The time of an operation in front of a barrier, less that of the barrier: so a root does not run ahead. The least of
/// some batches counts, as for messages: other work only takes longer.
fn operation_us(world: &World, operation: Operation, bytes: usize) -> Result<f64> {
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
    let (mut both_us, mut barrier_us) = (f64::MAX, f64::MAX);
    for _ in 0..TIMES {
        let begin = Instant::now();
        for _ in 0..CALLS {
            call()?;
            barriers.barrier()?;
        }
        both_us = both_us.min(begin.elapsed().as_nanos() as f64 / 1e3 / f64::from(CALLS));
        let begin = Instant::now();
        (0..CALLS).try_for_each(|_| barriers.barrier())?;
        barrier_us = barrier_us.min(begin.elapsed().as_nanos() as f64 / 1e3 / f64::from(CALLS));
    }
    Ok(match operation {
        Operation::Barrier => barrier_us,
        _ => (both_us - barrier_us).max(0.001),
    })
}

/// The text of the file. The first pair stands for all, and the others are named. Of `hosts` that share processors, there are
/// so many of these, and a turn takes so long.
fn platform_text(
    figures: &CostParameters,
    details: &Calibration,
    (hosts, shared): (usize, Option<(usize, u64)>),
    pairs: &[((usize, usize), Pair)],
) -> String {
    let rate = |kib_ps: u64| format!("{:.3} MB/s", 1024e6 / kib_ps.max(1) as f64);
    let send = pairs.iter().map(|(_, pair)| pair.send).min().unwrap_or(1);
    // In the model both ends are busy for the overhead, and the latency lies between them.
    let overhead =
        pairs.iter().map(|(_, pair)| pair.message / 2).min().map_or(send, |half| half.min(send));
    let latency = |pair: &Pair| pair.message.saturating_sub(2 * overhead);
    let first = pairs.first().map(|(_, pair)| *pair).unwrap_or_default();
    let copy = pairs.iter().map(|(_, pair)| pair.copy).min().unwrap_or(0);
    let mut text = format!(
        "about = \"{hosts} hosts that `landeck tune --hosts` has measured\"\n\n[host]\n\
         processors = {}\nline = \"{} ps\"\nmessage = \"{} ps\"\ndeposit = \"{} ps\"\n\
         switch = \"{} ps\"\ncall = \"{} ps\"\nstep = \"{} ps\"\none_copy = \"{}\"\n\
         two_copy = \"{}\"\nlocal_copy = \"{}\"\nreduction = \"{}\"\n\n[network]\n\
         hosts = {hosts}\noverhead = \"{overhead} ps\"\nlatency = \"{} ps\"\ngap = \"{overhead} ps\"\n\
         rate = \"{}\"\ncopy = \"{}\"\neager = \"{FRAME_BYTES} B\"\npart = \"{FRAME_BYTES} B\"\n",
        figures.processors,
        figures.line_ps,
        figures.message_ps,
        figures.deposit_ps,
        figures.switch_ps,
        details.call_ps,
        details.step_ps,
        rate(figures.one_copy_kib_ps),
        rate(figures.two_copy_kib_ps),
        rate(figures.local_copy_kib_ps),
        rate(figures.reduction_kib_ps),
        latency(&first),
        rate(first.kib),
        rate(copy)
    );
    if let Some((processors, turn)) = shared {
        let _ = write!(text, "shared_processors = {processors}\nturn = \"{turn} ps\"\n");
    }
    for ((one, other), pair) in pairs.iter().skip(1) {
        let _ = write!(
            text,
            "\n[[link]]\nhosts = [{one}, {other}]\nlatency = \"{} ps\"\nrate = \"{}\"\n",
            latency(pair),
            rate(pair.kib)
        );
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_a_platform_with_all_links() {
        let figures = CostParameters::default();
        let pair = |message, kib| Pair { message, send: 2_000_000, kib, copy: 100_000 };
        let pairs = [
            ((0, 1), pair(20_000_000, 512_000)),
            ((0, 2), pair(40_000_000, 5_120_000)),
            ((1, 2), pair(3_000_000, 512_000)),
        ];
        let text = platform_text(&figures, &Calibration::of(&figures), (3, Some((2, 9))), &pairs)
            + &format!("{MEASURED}45.5\n{MEASURED}7\n");
        let platform = Platform::parse("hosts", &text).unwrap();
        let network = platform.network.clone().unwrap();
        assert_eq!((network.overhead_ps, network.latency_ps), (1_500_000, 17_000_000));
        let link = network.links.between(2, 0).unwrap();
        assert_eq!((link.latency_ps, link.kib_ps), (37_000_000, 5_120_000));
        assert_eq!(network.links.between(1, 2).unwrap().latency_ps, 0);
        assert_eq!((network.copy_kib_ps, network.part_bytes), (100_000, Some(64 << 10)));
        assert_eq!(network.shared.map(|shared| (shared.processors, shared.turn_ps)), Some((2, 9)));
        let table = compared(&platform, &text);
        assert!(table.starts_with("barrier ") && table.contains("45.5"), "{table}");
        assert_eq!(table.lines().count(), 2, "{table}");
        let of = |message| {
            let pairs = [((0, 1), pair(message, 7)), ((0, 2), pair(2 * message, 9))];
            let figures = CostParameters { reduction_kib_ps: message, ..figures };
            let details = Calibration::of(&figures).with_calls(message / 2, 3);
            Platform::parse(
                "hosts",
                &platform_text(&figures, &details, (3, Some((2, message))), &pairs),
            )
        };
        let launches = [20_000_000, 90_000_000, 30_000_000].map(|message| of(message).unwrap());
        assert_eq!(middle_of(&launches), Some(launches[2].clone()));
        assert_eq!(middle_of(&[]), None);
        let slow = simulated_us(&platform, Operation::Broadcast, 64 << 10).unwrap();
        assert!(slow > 320.0, "64 KiB go over the slow link: {slow}");
    }
}
