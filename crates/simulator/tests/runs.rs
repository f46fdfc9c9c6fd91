//! Every operation by every architecture comes to its end; equal input gives equal runs; faults do
//! what they should; sizes that no lab has.

use landeck_collectives::{Group, Operation, Preset, Task, Way};
use landeck_simulator::platform::library;
use landeck_simulator::{
    Calls, Death, Faults, Outcome, Placement, Platform, Setting, SimulationError, SimulationReport,
    Time, Work, run,
};
use landeck_testing::Watchdog;
use std::time::Duration;

const ARCHITECTURES: [&str; 11] = [
    "flat",
    "pipeline",
    "daisy",
    "hierarchy",
    "hypercube",
    "binary-tree",
    "knomial",
    "butterfly",
    "ring",
    "circulant",
    "ring+split",
];

fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(120))
}

fn way(name: &str, operation: Operation) -> Way {
    name.parse::<Preset>().expect("a name").way(operation)
}

struct Run<'a> {
    operation: Operation,
    way: Way,
    size: u32,
    clusters: u32,
    bytes: u64,
    platform: &'a Platform,
    per_host: Option<u32>,
    calls: Calls,
    faults: Faults,
}

impl<'a> Run<'a> {
    fn new(operation: Operation, name: &str, size: u32, platform: &'a Platform) -> Self {
        let way = way(name, operation);
        let faults = Faults::default();
        Self {
            operation,
            way,
            size,
            clusters: 4,
            bytes: 100,
            platform,
            per_host: None,
            calls: Calls::AtOnce,
            faults,
        }
    }

    fn go(&self) -> Result<SimulationReport, SimulationError> {
        let group = Group::divided(self.size, self.clusters).expect("members");
        let task = Task::new(self.operation);
        let work = Work { task: &task, way: &self.way, group: &group, bytes: self.bytes };
        let usual = Setting::new(self.platform, &self.faults);
        let placement = self.per_host.map_or(Placement::Usual, Placement::PerHost);
        let setting = Setting { placement, calls: self.calls, keeps_history: true, ..usual };
        run(&work, &setting, &mut |_| {})
    }
}

#[test]
fn all_operations_come_to_their_end_everywhere() {
    let _watchdog = watchdog();
    for platform in ["myrinet2000", "ethernet10", "sites"].map(|name| library::find(name).unwrap())
    {
        for operation in Operation::ALL {
            for name in ARCHITECTURES {
                for (size, bytes) in [(1, 0), (2, 40), (13, 40_000)] {
                    let mut run = Run::new(operation, name, size, &platform);
                    run.bytes = bytes;
                    let report = run.go().unwrap();
                    let what = format!("{operation} {name} {size} on {}", platform.name);
                    assert_eq!(report.left(), [], "{what}");
                    let plans = landeck_collectives::plans(
                        &Task::new(operation),
                        &run.way,
                        &Group::divided(size, 4).unwrap(),
                    );
                    let sent: usize = plans.iter().map(|plan| plan.messages_sent()).sum();
                    assert_eq!(report.messages, sent as u64, "{what}");
                    let path = report.history.critical_path();
                    let last = path.last().map_or(Time::ZERO, |record| record.end);
                    assert_eq!(last, report.time(), "{what}");
                }
            }
        }
    }
}

#[test]
fn boards_come_to_their_end_also_where_processors_are_shared() {
    let _watchdog = watchdog();
    let host = host();
    for operation in Operation::ALL {
        for name in ["board", "board:divided", "board:together", "board:told", "butterfly", "flat"]
        {
            for (size, bytes) in [(1, 8), (2, 8), (7, 100_000), (32, 8)] {
                let mut run = Run::new(operation, name, size, &host);
                run.bytes = bytes;
                let report = run.go().unwrap();
                assert_eq!(report.left(), [], "{operation} {name} {size}");
            }
        }
    }
}

#[test]
fn equal_seeds_give_equal_runs_and_others_do_not() {
    let platform = library::find("ethernet10").unwrap();
    let hash = |seed, bytes| {
        let mut run = Run::new(Operation::AllReduce, "butterfly", 48, &platform);
        run.bytes = bytes;
        run.faults = Faults {
            seed,
            jitter_permille: 200,
            loss_per_million: 20_000,
            resend_ps: 200_000_000,
            deaths: vec![],
        };
        let report = run.go().unwrap();
        assert_eq!(report.left(), []);
        (report.hash, report.time(), report.events)
    };
    assert_eq!(hash(1, 1000), hash(1, 1000));
    assert_ne!(hash(1, 1000).0, hash(2, 1000).0);
    assert_ne!(hash(1, 1000).0, hash(1, 1001).0);
}

#[test]
fn a_trace_is_the_same_on_every_machine() {
    let platform = library::find("myrinet2000").unwrap();
    let report = Run::new(Operation::Broadcast, "daisy", 120, &platform).go().unwrap();
    assert_eq!((report.messages, report.hash), (119, TRACE));
}

/// The hash of the broadcast above. It changes when the model or the platform does.
const TRACE: u64 = 12_021_777_657_631_494_713;

#[test]
fn members_that_wait_for_the_dead_are_left() {
    let platform = library::find("ethernet10").unwrap();
    let mut run = Run::new(Operation::Broadcast, "ring", 8, &platform);
    run.per_host = Some(1);
    let at = Time::from_ps(30_000_000); // member 2 has it by then, and the word of the death has not
    run.faults.deaths = vec![Death { member: 3, at }];
    let report = run.go().unwrap();
    assert_eq!(report.left(), [3, 4, 5, 6, 7]);
    assert!(matches!(report.outcomes[2], Outcome::Done(_)));
    assert_eq!(report.outcomes[3], Outcome::Died(at));
    let notice = at + host_of(&platform).switch_ps;
    for outcome in &report.outcomes[4..] {
        // A word takes 12 us to another host below the same switch.
        let Outcome::Failed { at, heard, dead: 3 } = *outcome else { panic!("{outcome:?}") };
        assert!(heard > notice && heard <= at, "{outcome:?}");
    }
}

fn host_of(platform: &Platform) -> landeck_collectives::CostParameters {
    platform.host.figures
}

#[test]
fn a_member_that_has_brought_its_data_to_others_may_die() {
    let host = host();
    let outcomes = |name, at_ps| {
        let mut run = Run::new(Operation::Broadcast, name, 4, &host);
        run.faults.deaths = vec![Death { member: 0, at: Time::from_ps(at_ps) }];
        run.go().unwrap().outcomes
    };
    // The root of a board is not needed any more once its data lie there.
    let late = outcomes("board", 1_000_000_000);
    assert!(late.iter().all(|outcome| matches!(outcome, Outcome::Done(_))), "{late:?}");
    for name in ["board", "knomial"] {
        let early = outcomes(name, 1);
        assert_eq!(early[0], Outcome::Died(Time::from_ps(1)), "{name}");
        let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { dead: 0, .. });
        assert!(early[1..].iter().all(failed), "{name}: {early:?}");
    }
}

/// One host, not measured.
fn host() -> Platform {
    let figures = landeck_collectives::CostParameters::default();
    let details = landeck_collectives::Calibration::of(&figures);
    Platform::of_host("host", "", figures, details)
}

#[test]
fn the_plans_of_the_largest_groups_are_made() {
    let _watchdog = watchdog();
    let platform = library::find("infiniband").unwrap();
    for (operation, name, messages) in [
        (Operation::Gather, "knomial", 16_383),
        (Operation::Scatter, "knomial", 16_383),
        (Operation::AllGather, "butterfly", 14 * 16_384),
        (Operation::AllGather, "knomial", 2 * 16_383),
        (Operation::ReduceScatter, "butterfly", 14 * 16_384),
        (Operation::ReduceScatter, "knomial", 2 * 16_383),
        (Operation::Scan, "knomial", 2 * 16_383),
    ] {
        let mut run = Run::new(operation, name, 16_384, &platform);
        run.clusters = 1;
        let report = run.go().unwrap();
        assert_eq!((report.messages, report.left()), (messages, vec![]), "{operation} {name}");
    }
}

#[test]
fn losses_and_jitter_cost_time() {
    let platform = library::find("ethernet1").unwrap();
    let time = |faults| {
        let mut run = Run::new(Operation::AllReduce, "butterfly", 16, &platform);
        run.faults = faults;
        run.go().unwrap().time()
    };
    let quiet = time(Faults::default());
    let slow = time(Faults { jitter_permille: 500, ..Faults::default() });
    let lossy =
        Faults { loss_per_million: 300_000, resend_ps: 200_000_000_000, ..Faults::default() };
    assert!(slow > quiet && time(lossy) > quiet + 200_000_000_000);
}

#[test]
fn a_message_may_be_taken_before_its_sender_is_through() {
    let _watchdog = watchdog();
    // On one host long data go in and out at once: what takes longer by chance may be the sender's part.
    let platform = library::find("myrinet2000").unwrap();
    for seed in 0..20 {
        let mut run = Run::new(Operation::Gather, "ring", 32, &platform);
        (run.clusters, run.bytes) = (16, 100_000);
        run.faults = Faults { seed, jitter_permille: 500, ..Faults::default() };
        let report = run.go().unwrap();
        assert_eq!((report.left(), report.messages), (vec![], 31), "seed {seed}");
    }
}

#[test]
fn a_run_that_has_no_room_is_explained() {
    let platform = library::find("myrinet2000").unwrap();
    let error = Run::new(Operation::Barrier, "flat", 500, &platform).go().unwrap_err();
    assert!(error.to_string().contains("500 processes, 2 on each host, need 250 hosts"), "{error}");
    let error = Run::new(Operation::Barrier, "board", 24, &platform).go().unwrap_err();
    assert!(error.to_string().contains("24 are on 12 hosts"), "{error}");
    let mut nobody = Run::new(Operation::Barrier, "flat", 4, &platform);
    nobody.per_host = Some(0);
    assert_eq!(nobody.go().unwrap_err(), SimulationError::NobodyOnHosts);
    let large = library::find("infiniband").unwrap();
    let mut each = Run::new(Operation::AllToAll, "flat", 65_536, &large);
    each.per_host = Some(4);
    let error = each.go().unwrap_err();
    assert!(error.to_string().contains("00 million messages"), "{error}");
    assert!(error.to_string().contains("members can be simulated: take fewer"), "{error}");
}

#[test]
fn members_on_one_host_use_its_memory() {
    let platform = library::find("ethernet10").unwrap();
    let time = |per_host| {
        let mut run = Run::new(Operation::Broadcast, "knomial", 16, &platform);
        run.per_host = Some(per_host);
        run.go().unwrap().time().us()
    };
    assert!(time(16) < 1.0 && time(1) > 30.0, "{} {}", time(16), time(1));
}

#[test]
fn four_thousand_members_are_simulated() {
    let _watchdog = watchdog();
    let platform = library::find("infiniband").unwrap();
    let report = Run::new(Operation::AllReduce, "butterfly", 4096, &platform).go().unwrap();
    assert_eq!((report.messages, report.left()), (12 * 4096, vec![]));
    assert!(report.most_in_flight <= 2 * 4096, "{}", report.most_in_flight);
}

#[test]
fn calls_that_follow_each_other_overlap() {
    let platform = library::find("ethernet10").unwrap();
    let time = |name, calls| {
        let mut run = Run::new(Operation::Broadcast, name, 16, &platform);
        (run.calls, run.per_host) = (calls, Some(1));
        run.go().unwrap().time()
    };
    assert!(time("ring", Calls::Repeated(20)) < time("ring", Calls::AtOnce));
    let once = time("flat", Calls::AtOnce);
    assert_eq!(time("flat", Calls::Repeated(1)), once);
}

#[test]
fn a_measurement_is_simulated_with_what_it_does_around_the_calls() {
    let host = host();
    let run = |calls| {
        let mut run = Run::new(Operation::Broadcast, "flat", 2, &host);
        run.calls = calls;
        run.go().unwrap()
    };
    let report = run(Calls::Measured { rounds: 5, calls: 1 });
    assert_eq!((report.spans_ps.len(), report.messages), (5, 5));
    // The root is the last to come to the barrier, and goes on at once: nothing is longer.
    assert!(report.time() <= run(Calls::AtOnce).time() + host.host.figures.line_ps);
    let network = library::find("ethernet10").unwrap();
    let mut across = Run::new(Operation::Broadcast, "flat", 32, &network);
    across.calls = Calls::Measured { rounds: 1, calls: 1 };
    assert!(matches!(across.go().unwrap_err(), SimulationError::NoBoard { hosts: 2, .. }));
}

/// This machine, two processors, as `landeck tune` has found it.
fn measured() -> Platform {
    let figures = landeck_collectives::CostParameters {
        line_ps: 51_000,
        message_ps: 74_000,
        deposit_ps: 40_000,
        switch_ps: 1_792_000,
        ..landeck_collectives::CostParameters::default()
    };
    let details = landeck_collectives::Calibration {
        turns_ps: [1_410_000, 1_420_000, 1_900_000, 2_000_000],
        switches_ps: [1_792_000, 1_860_000, 2_700_000, 2_750_000],
        ..landeck_collectives::Calibration::of(&figures)
    };
    Platform::of_host("measured", "", figures, details)
}

#[test]
fn calls_that_only_a_measurement_makes_go_the_short_way() {
    let mut host = host();
    host.host.details = host.host.details.with_calls(1_000_000_000, 0);
    let mut run = Run::new(Operation::Barrier, "board", 2, &host);
    run.calls = Calls::Measured { rounds: 3, calls: 1 };
    let report = run.go().unwrap();
    let Outcome::Done(end) = report.outcomes[0] else { panic!("{:?}", report.outcomes) };
    // Three calls on the board, each a quarter of one over messages; nothing else is as long.
    assert!((750_000_000..760_000_000).contains(&end.ps()), "{}", end.ps());
}

#[test]
fn a_member_that_waits_for_messages_learns_to_poll_where_that_pays() {
    let host = measured();
    let mut run = Run::new(Operation::Broadcast, "flat", 4, &host);
    (run.clusters, run.bytes) = (1, 8);
    run.calls = Calls::Measured { rounds: 300, calls: 1 };
    run.faults.jitter_permille = 50;
    let spans_ps = run.go().unwrap().spans_ps;
    let middle_ps = |spans: &[u64]| {
        let mut spans = spans.to_vec();
        spans.sort_unstable();
        spans[spans.len() / 2]
    };
    let (first_ps, last_ps) = (middle_ps(&spans_ps[..15]), middle_ps(&spans_ps[200..]));
    assert!(last_ps + 500_000 < first_ps, "{first_ps} {last_ps}: one switch less");
}

#[test]
fn a_member_that_gives_its_processor_away_gets_its_message_later() {
    // Two on one processor: member 0 has the first turn, and has given it away when the message comes.
    let time_ps = |switch_ps| {
        let mut host = measured();
        host.host.details.turns_ps = [1_000_000; 4];
        host.host.details.switches_ps = [switch_ps; 4];
        host.host.processors = 1;
        host.host.details.call_ps = 0;
        let run = Run { bytes: 8, clusters: 1, ..Run::new(Operation::Reduce, "flat", 2, &host) };
        run.go().unwrap().time().ps()
    };
    let message_ps = measured().host.figures.message_ps;
    let short_ps = time_ps(1_000_000 + message_ps);
    assert_eq!(time_ps(1_500_000 + message_ps), short_ps + 500_000);
    assert_eq!(time_ps(800_000 + message_ps), short_ps - 3 * 200_000, "three shorter turns");
    assert_eq!(time_ps(1), short_ps - 3 * 500_000, "measured with errors");
}

#[test]
fn a_call_in_a_crowd_takes_what_was_measured_there() {
    let time_ps = |name: &str, crowd_ps: u64| {
        let mut host = measured();
        let details = &mut host.host.details;
        (details.crowd_calls_ps, details.crowd_takes_ps) = ([crowd_ps; 4], [crowd_ps; 4]);
        let run = Run { bytes: 8, ..Run::new(Operation::Broadcast, name, 8, &host) };
        run.go().unwrap().time().ps()
    };
    for name in ["flat", "board"] {
        let (short_ps, long_ps) = (time_ps(name, 500_000), time_ps(name, 600_000));
        // Four on each processor: all of them call before the last has what it waits for.
        assert!((300_000..=400_000).contains(&(long_ps - short_ps)), "{name} {short_ps} {long_ps}");
    }
}

#[test]
fn a_spread_member_has_its_neighbour_on_another_host() {
    let platform = library::find("myrinet2000").unwrap();
    let report = |placement, size| {
        let mut run = Run::new(Operation::Broadcast, "flat", size, &platform);
        run.platform = &platform;
        let group = Group::divided(size, 1).unwrap();
        let task = Task::new(Operation::Broadcast);
        let work = Work { task: &task, way: &run.way, group: &group, bytes: 4 };
        let setting = Setting { placement, ..Setting::new(&platform, &run.faults) };
        landeck_simulator::run(&work, &setting, &mut |_| {}).unwrap()
    };
    assert!(report(Placement::Spread, 2).time() > report(Placement::Usual, 2).time());
    assert_eq!(report(Placement::Spread, 192).left(), []);
}
