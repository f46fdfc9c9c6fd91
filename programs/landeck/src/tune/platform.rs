//! `landeck tune --hosts ... --save FILE`: several hosts as a platform file for `landeck simulate`.
//!
//! A job with one process on each host measures messages between each two of them, and a few collective operations. The
//! operations are then simulated on the platform, and both times are shown.

use super::hosts::{TunedHosts, output_of};
use super::{Calibration, CostParameters, TuneError};
use landeck::unstable::JobInternals;
use landeck::unstable::collectives::architecture::{Butterfly, Knomial};
use landeck::unstable::collectives::{Group, Operation, Settings, Task, Way};
use landeck::unstable::host::say::{complain, say};
use landeck::{Job, Result, Sum, Tag, World};
use landeck_simulator::{Faults, Placement, Platform, Setting, Work, run as simulated};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

const TAG: Tag = Tag(0);
const BATCHES: usize = 9;
/// The longest message that goes in one frame: longer ones overlap, which the model does not know.
const LONG_BYTES: usize = 64 << 10;
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

/// Measures the hosts, as a platform with one process on each.
pub(crate) fn measured(hosts: &TunedHosts) -> std::result::Result<Platform, TuneError> {
    let text = output_of(hosts, &["--ppn", "1"], "platform")?;
    if text.is_empty() {
        return Err(TuneError::OneHost { list: hosts.list.clone() });
    }
    Ok(Platform::parse("hosts", &text)?)
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

/// The figures of messages between two hosts, in picoseconds.
#[derive(Clone, Copy, Default)]
struct Pair {
    /// Half of a round trip of 8 bytes.
    message: u64,
    /// The time of a call that sends 8 bytes.
    send: u64,
    /// 1 KiB of long data.
    kib: u64,
}

/// A member of the job. Rank 0 prints the file.
pub(crate) fn member() -> Result<()> {
    let job = Job::join()?;
    let world = job.world();
    if world.size() < 2 {
        // The parent says that there are no links.
        return job.leave();
    }
    let mut pairs = Vec::new();
    for one in 0..world.size() {
        for other in one + 1..world.size() {
            world.barrier()?;
            let pair = pair_of(&world, one, other)?;
            let mut words = [pair.message, pair.send, pair.kib];
            match world.rank() {
                0 if one > 0 => drop(world.receive_into(&mut words, one, TAG)?),
                rank if rank == one && one > 0 => world.send(&words, 0, TAG)?,
                _ => {}
            }
            let [message, send, kib] = words;
            pairs.push(((one, other), Pair { message, send, kib }));
        }
    }
    let call_ps = call_ps(&world, pairs.first().map_or(0, |(_, pair)| pair.message))?;
    let mut measured = String::new();
    for (operation, bytes) in OPERATIONS {
        let us = operation_us(&world, operation, bytes as usize)?;
        let _ = writeln!(measured, "{MEASURED}{us:.3}");
    }
    if world.rank() == 0 {
        let figures = Settings::from_words(&job.segment().plan().settings).figures;
        let details = landeck::tuning::read_all().ok().flatten().map(|(_, details)| details);
        let mut details = details.unwrap_or_else(|| Calibration::of(&figures));
        details.call_ps = details.call_ps.max(call_ps);
        // A process whose output has no reader has nothing else to do.
        let _ = say(&(platform_text(&figures, &details, world.size(), &pairs) + &measured));
    }
    job.leave()
}

/// The time of a call over messages beside its messages: a barrier of the first two members is one message.
fn call_ps(world: &World, message_ps: u64) -> Result<u64> {
    let Some(pair) = world.subset(&[0, 1])? else { return Ok(0) };
    let barrier_ps = operation_us(&pair, Operation::Barrier, 0)? * 1e6;
    Ok((barrier_ps as u64).saturating_sub(message_ps))
}

/// Measures two members. The first one knows the result.
fn pair_of(world: &World, one: usize, other: usize) -> Result<Pair> {
    let rank = world.rank();
    if rank != one && rank != other {
        return Ok(Pair::default());
    }
    let (is_first, peer) = (rank == one, if rank == one { other } else { one });
    let half_ps = |bytes: usize, trips: u32| -> Result<f64> {
        let mut data = vec![0u8; bytes];
        let mut least = f64::MAX;
        for _ in 0..BATCHES {
            let begin = Instant::now();
            for _ in 0..trips {
                if is_first {
                    world.send(&data, peer, TAG)?;
                    world.receive_into(&mut data, peer, TAG)?;
                } else {
                    world.receive_into(&mut data, peer, TAG)?;
                    world.send(&data, peer, TAG)?;
                }
            }
            least = least.min(begin.elapsed().as_nanos() as f64 * 1e3 / f64::from(trips) / 2.0);
        }
        Ok(least)
    };
    half_ps(8, 20)?; // they connect
    let message = half_ps(8, 100)?;
    let long = half_ps(LONG_BYTES, 20)?;
    let send = send_ps(world, is_first, peer)?;
    let kib = ((long - message) * 1024.0 / LONG_BYTES as f64).max(1.0);
    let [message, send, kib] = [message, send, kib].map(|ps| ps.max(1.0) as u64);
    Ok(Pair { message, send, kib })
}

/// The time of a call that sends 8 bytes, where many follow each other.
fn send_ps(world: &World, is_first: bool, peer: usize) -> Result<f64> {
    const MESSAGES: usize = 32;
    let mut least = f64::MAX;
    let mut data = [0u8; 8];
    for _ in 0..BATCHES {
        if is_first {
            let begin = Instant::now();
            for _ in 0..MESSAGES {
                world.send(&data, peer, TAG)?;
            }
            least = least.min(begin.elapsed().as_nanos() as f64 * 1e3 / MESSAGES as f64);
            world.receive_into(&mut data, peer, TAG)?;
        } else {
            for _ in 0..MESSAGES {
                world.receive_into(&mut data, peer, TAG)?;
            }
            world.send(&data, peer, TAG)?;
        }
    }
    Ok(least)
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

/// The text of the file. The first pair stands for all, and the others are named.
fn platform_text(
    figures: &CostParameters,
    details: &Calibration,
    hosts: usize,
    pairs: &[((usize, usize), Pair)],
) -> String {
    let rate = |kib_ps: u64| format!("{:.3} MB/s", 1024e6 / kib_ps.max(1) as f64);
    let send = pairs.iter().map(|(_, pair)| pair.send).min().unwrap_or(1);
    // In the model both ends are busy for the overhead, and the latency lies between them.
    let overhead =
        pairs.iter().map(|(_, pair)| pair.message / 2).min().map_or(send, |half| half.min(send));
    let latency = |pair: &Pair| pair.message.saturating_sub(2 * overhead);
    let first = pairs.first().map(|(_, pair)| *pair).unwrap_or_default();
    let mut text = format!(
        "about = \"{hosts} hosts that `landeck tune --hosts` has measured\"\n\n[host]\n\
         processors = {}\nline = \"{} ps\"\nmessage = \"{} ps\"\ndeposit = \"{} ps\"\n\
         switch = \"{} ps\"\ncall = \"{} ps\"\nstep = \"{} ps\"\none_copy = \"{}\"\n\
         two_copy = \"{}\"\nlocal_copy = \"{}\"\nreduction = \"{}\"\n\n[network]\n\
         hosts = {hosts}\noverhead = \"{overhead} ps\"\nlatency = \"{} ps\"\ngap = \"{overhead} ps\"\n\
         rate = \"{}\"\n",
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
        rate(first.kib)
    );
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
        let pair = |message, kib| Pair { message, send: 2_000_000, kib };
        let pairs = [
            ((0, 1), pair(20_000_000, 512_000)),
            ((0, 2), pair(40_000_000, 5_120_000)),
            ((1, 2), pair(3_000_000, 512_000)),
        ];
        let text = platform_text(&figures, &Calibration::of(&figures), 3, &pairs)
            + &format!("{MEASURED}45.5\n{MEASURED}7\n");
        let platform = Platform::parse("hosts", &text).unwrap();
        let network = platform.network.clone().unwrap();
        assert_eq!((network.overhead_ps, network.latency_ps), (1_500_000, 17_000_000));
        let link = network.links.between(2, 0).unwrap();
        assert_eq!((link.latency_ps, link.kib_ps), (37_000_000, 5_120_000));
        assert_eq!(network.links.between(1, 2).unwrap().latency_ps, 0);
        let table = compared(&platform, &text);
        assert!(table.starts_with("barrier ") && table.contains("45.5"), "{table}");
        assert_eq!(table.lines().count(), 2, "{table}");
        let slow = simulated_us(&platform, Operation::Broadcast, 64 << 10).unwrap();
        assert!(slow > 320.0, "64 KiB go over the slow link: {slow}");
    }
}
