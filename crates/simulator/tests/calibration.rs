//! Which figures of a calibration move a prediction, given the record of a machine.
//!
//! ```sh
//! LANDECK_RECORDS=near:far cargo test --release -p landeck-simulator --test calibration -- --ignored --nocapture
//! ```

use landeck_collectives::record::Record;
use landeck_collectives::{Group, Operation, Preset, Task};
use landeck_simulator::{Calls, Faults, Platform, Setting, Work, run};
use std::collections::BTreeMap;
use std::fs;

/// The operations and architectures that docs/simulation.md compares with measurements.
const COMPARED: [(Operation, &[&str]); 8] = [
    (Operation::Barrier, &["board", "butterfly", "knomial"]),
    (Operation::Broadcast, &["flat", "board", "knomial"]),
    (Operation::Gather, &["flat", "board", "knomial"]),
    (Operation::Scatter, &["flat", "board", "knomial"]),
    (Operation::Reduce, &["flat", "board", "knomial"]),
    (Operation::AllReduce, &["board", "butterfly", "knomial"]),
    (Operation::AllGather, &["board", "ring"]),
    (Operation::AllToAll, &["board", "flat"]),
];
const SIZES: [u32; 5] = [2, 4, 8, 16, 32];
const BYTES: [u64; 3] = [8, 1 << 10, 64 << 10];
const MESSAGE_BYTES: [u64; 11] =
    [8, 64, 512, 2048, 4096, 8192, 16_384, 32_768, 65_536, 262_144, 1 << 20];
/// Launches of each, which differ in the order of the processes that share a processor.
const SEEDS: u64 = 4;
/// A family of figures stays in the calibration if it moves a prediction by more.
const LIMIT: f64 = 0.1;

/// All predictions with these figures, by name, in picoseconds.
fn predictions(record: &Record) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    let mut host = Platform::of_host("host", "", record.figures, record.details);
    for (operation, names) in COMPARED {
        for name in names {
            for size in SIZES {
                for bytes in BYTES {
                    if operation == Operation::Barrier && bytes != BYTES[0] {
                        continue;
                    }
                    let calls = match operation.has_root() {
                        true => Calls::Measured { rounds: 24, calls: 1 },
                        false => Calls::Measured { rounds: 3, calls: 8 },
                    };
                    let what = format!("{operation} {name} n={size} {bytes} B");
                    all.push((what, time_ps(operation, name, size, bytes, &host, calls)));
                }
            }
        }
    }
    host.host.details.call_ps = 0; // nobody calls an operation
    for bytes in MESSAGE_BYTES {
        let ps = time_ps(Operation::Broadcast, "flat", 2, bytes, &host, Calls::AtOnce);
        all.push((format!("message {bytes} B"), ps));
    }
    all
}

fn time_ps(
    operation: Operation,
    name: &str,
    size: u32,
    bytes: u64,
    host: &Platform,
    calls: Calls,
) -> f64 {
    let group = Group::divided(size, 1).expect("members");
    let way = name.parse::<Preset>().expect("a name").way(operation);
    let task = Task::new(operation);
    let work = Work { task: &task, way: &way, group: &group, bytes };
    let is_message = calls == Calls::AtOnce;
    let (seeds, jitter_permille) = if is_message { (1, 0) } else { (SEEDS, 50) };
    let times_ps = (0..seeds).map(|seed| {
        let faults = Faults { seed, jitter_permille, ..Faults::default() };
        let setting = Setting { calls, ..Setting::new(host, &faults) };
        run(&work, &setting, &mut |_| {}).expect("room").time().ps() as f64
    });
    times_ps.sum::<f64>() / seeds as f64
}

/// The name with `#` in place of its size: `turn_of_#_ps` is the family of `turn_of_8_ps` and `turn_of_16_ps`.
fn family(name: &str) -> String {
    let is_size = |part: &str| part.starts_with(|first: char| first.is_ascii_digit());
    let parts = name.split('_').map(|part| if is_size(part) { "#" } else { part });
    parts.collect::<Vec<_>>().join("_")
}

/// The record without the figures of these families, which are what follows from the others.
fn without(text: &str, families: &[&str]) -> Record {
    let is_kept = |line: &&str| {
        let name = line.split(' ').next().unwrap_or_default();
        !families.contains(&family(name).as_str())
    };
    text.lines().filter(is_kept).collect::<Vec<_>>().join("\n").parse().expect("a record")
}

#[test]
#[ignore = "takes the records of machines, and minutes"]
fn families_of_figures_and_how_far_they_move_predictions() {
    let paths = std::env::var("LANDECK_RECORDS").unwrap();
    let retired = std::env::var("LANDECK_RETIRED").unwrap_or_default();
    for path in paths.split(':') {
        let text = fs::read_to_string(path).unwrap();
        let record: Record = text.parse().unwrap();
        let usual = predictions(&record);
        let mut families: BTreeMap<String, u32> = BTreeMap::new();
        record
            .details
            .lines()
            .for_each(|(name, ..)| *families.entry(family(&name)).or_default() += 1);
        println!("{path}: {} predictions", usual.len());
        let mut sets: Vec<(String, Vec<&str>, u32)> = families
            .iter()
            .map(|(name, count)| (name.clone(), vec![name.as_str()], *count))
            .collect();
        let retired: Vec<&str> = retired.split(',').filter(|name| !name.is_empty()).collect();
        if !retired.is_empty() {
            let count = retired.iter().map(|name| families[*name]).sum();
            sets = vec![("all of these".into(), retired, count)];
        }
        for (name, families, count) in sets {
            let moved = predictions(&without(&text, &families));
            let mut off: Vec<(f64, &str)> = usual
                .iter()
                .zip(&moved)
                .map(|((what, usual), (_, moved))| (moved / usual - 1.0, what.as_str()))
                .collect();
            off.sort_by(|one, other| other.0.abs().total_cmp(&one.0.abs()));
            let beyond = off.iter().filter(|(off, _)| off.abs() > LIMIT).count();
            let most: Vec<String> =
                off[..3].iter().map(|(off, what)| format!("{:+.0}% {what}", 100.0 * off)).collect();
            println!("| {name} | {count} | {beyond} | {} |", most.join(", "));
        }
    }
}
