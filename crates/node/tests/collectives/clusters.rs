//! Clusters that follow from where members run: with a made-up machine, whose first two processors
//! share no cache.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use landeck::unstable::collectives::{Group, Operation, Preset};
use landeck::{Job, Sum, World};
use landeck_testing::Trail;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::support::{RUN_MAX, is_member, job_of, launcher, run_well, skipped, text};

const PROCESSES: usize = 4;
const EXPECTED: &str = "LANDECK_TEST_CLUSTERS";

/// A directory that looks like `/sys/devices/system` of the made-up machine.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("landeck-{name}-{}", std::process::id()));
        for cpu in 0..2 {
            let cache = path.join(format!("cpu/cpu{cpu}/cache/index3"));
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("level"), "3\n").unwrap();
            fs::write(cache.join("shared_cpu_list"), format!("{cpu}\n")).unwrap();
        }
        Self(path)
    }

    fn on(&self, mut command: Command) -> Command {
        command.env("LANDECK_TOPOLOGY", &self.0).env_remove("LANDECK_CLUSTERS");
        command
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether the first two processors of this machine may be used.
fn has_both(test: &str) -> bool {
    let usable = sched_getaffinity(None).unwrap();
    let has = usable.is_set(0) && usable.is_set(1);
    if !has {
        skipped(test, "it needs processors 0 and 1");
    }
    has
}

fn clusters(world: &World) -> Vec<Vec<u32>> {
    world.clusters().unwrap().clusters().to_vec()
}

#[test]
fn clusters_follow_from_caches_unless_they_are_given() {
    let test = "clusters::clusters_follow_from_caches_unless_they_are_given";
    if is_member() {
        return take_part();
    }
    if !has_both(test) {
        return;
    }
    let machine = Machine::new("clusters");
    let bound = |more: &[&str]| {
        machine.on(job_of(PROCESSES, test, &[&["--bind-to", "core"], more].concat()))
    };
    run_well(bound(&[]).env(EXPECTED, "by cache"));
    run_well(bound(&["--clusters", "hosts"]).env(EXPECTED, "one"));
    run_well(bound(&[]).env("LANDECK_CLUSTERS", "none").env(EXPECTED, "one"));
    let option_wins = &mut bound(&["--clusters", "caches"]);
    run_well(option_wins.env("LANDECK_CLUSTERS", "none").env(EXPECTED, "by cache"));
}

fn take_part() {
    let job = Job::join().unwrap();
    let world = job.world();
    let by_cache = std::env::var(EXPECTED).unwrap() == "by cache";
    let expected: &[&[u32]] = if by_cache { &[&[0, 2], &[1, 3]] } else { &[&[0, 1, 2, 3]] };
    assert_eq!(clusters(&world), expected);
    go_every_way(&world);
    // What holds for a world was frozen when it was made, and what all know is where they began.
    sched_setaffinity(None, &both()).unwrap();
    assert_eq!(clusters(&world), expected);
    assert_eq!(clusters(&world.duplicate().unwrap()), expected);
    assert_eq!(clusters(&world.start_duplicate().unwrap().finish().unwrap()), expected);
    let turned = world.subset(&[3, 2, 1]).unwrap();
    if let Some(turned) = turned {
        let expected: &[&[u32]] = if by_cache { &[&[0, 2], &[1]] } else { &[&[0, 1, 2]] };
        assert_eq!(clusters(&turned), expected);
        go_every_way(&turned);
    }
    let given = Group::of(vec![vec![3, 0], vec![1, 2]]).unwrap();
    let given = world.with_clusters(&given).unwrap();
    assert_eq!(clusters(&given), [[3, 0], [1, 2]]);
    assert_eq!(clusters(&given.duplicate().unwrap()), [[3, 0], [1, 2]]);
    go_every_way(&given);
    job.leave().unwrap();
}

/// By the architectures that care about clusters.
fn go_every_way(world: &World) {
    let ranks: u64 = (0..world.size() as u64).sum();
    for name in ["pipeline", "daisy", "hierarchy", "hierarchy:derived", "hypercube", "ring"] {
        let preset: Preset = name.parse().unwrap();
        let by = |operation| world.via(preset.way(operation));
        let sum = by(Operation::AllReduce).all_reduce(world.rank() as u64, Sum).unwrap();
        assert_eq!(sum, ranks, "{name}");
        for root in 0..world.size() {
            let mut value = [if world.rank() == root { root + 7 } else { 0 }];
            by(Operation::Broadcast).broadcast(&mut value, root).unwrap();
            assert_eq!(value, [root + 7], "{name}");
        }
    }
}

fn both() -> CpuSet {
    let mut set = CpuSet::new();
    set.set(0);
    set.set(1);
    set
}

/// Where nobody has said what processes are bound to, each says it when a world is made.
#[test]
fn a_process_that_binds_itself_says_so_to_the_next_world() {
    let test = "clusters::a_process_that_binds_itself_says_so_to_the_next_world";
    if !is_member() {
        if has_both(test) {
            let machine = Machine::new("bound-itself");
            run_well(&mut machine.on(job_of(PROCESSES, test, &["--bind-to", "none"])));
        }
        return;
    }
    let job = Job::join().unwrap();
    let world = job.world();
    let mut own = CpuSet::new();
    own.set(world.rank() / 2);
    sched_setaffinity(None, &own).unwrap();
    assert_eq!(clusters(&world), [[0, 1, 2, 3]]);
    let next = world.split(Some(0), 0).unwrap().unwrap();
    assert_eq!(clusters(&next), [[0, 1], [2, 3]]);
    go_every_way(&next);
    let among = world.named(&[3, 2, 1, 0], "turned").unwrap();
    assert_eq!(clusters(&among), [[0, 1], [2, 3]]);
    job.leave().unwrap();
}

#[test]
fn the_command_shows_what_follows() {
    if !has_both("clusters::the_command_shows_what_follows") {
        return;
    }
    let machine = Machine::new("shown");
    let said = |arguments: &[&str]| {
        let mut command = Command::new(launcher());
        command.args(arguments);
        let ended = Trail::new().run(&mut machine.on(command), RUN_MAX);
        assert!(ended.status.success(), "{}", text(&ended));
        text(&ended)
    };
    let plan = said(&["plan", "broadcast", "-a", "daisy", "-n", "4", "--derived"]);
    assert!(plan.contains("4 members in 2 clusters"), "{plan}");
    let table = said(&["tune", "--show", "-n", "2"]);
    assert!(table.contains("2 clusters (caches): 0  1\n"), "{table}");
    let table = said(&["tune", "--show", "-n", "2", "--clusters", "none"]);
    assert!(table.contains("All members are near each other (none).\n"), "{table}");
}
