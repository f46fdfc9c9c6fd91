//! Runs against closed formulas, to the picosecond, where these hold.

use landeck_collectives::architecture::{Butterfly, Daisy, Flat, Knomial, Pipeline, Ring};
use landeck_collectives::{
    Architecture, BoardStyle, Calibration, CostParameters, Group, Links, Operation, Task, Way,
};
use landeck_simulator::platform::{Host, SharedProcessors, SimulatedNetwork};
use landeck_simulator::{Faults, Platform, Setting, SimulationReport, Work, run};

const OVERHEAD_PS: u64 = 1_000;
const LATENCY_PS: u64 = 10_000;
const GAP_PS: u64 = 3_000;
/// A byte takes 2 ps.
const KIB_PS: u64 = 2 * 1024;
/// A message without data on an idle network: o + L + o.
const MESSAGE_PS: u64 = 2 * OVERHEAD_PS + LATENCY_PS;

fn network(gap_ps: u64) -> Platform {
    Platform {
        name: "formulas".into(),
        about: "one switch that takes no time".into(),
        host: Host {
            processors: 1,
            figures: CostParameters { processors: 1, ..CostParameters::default() },
            details: Calibration::of(&CostParameters::default()).with_calls(0, 0),
        },
        network: Some(SimulatedNetwork {
            hosts: 4096,
            overhead_ps: OVERHEAD_PS,
            latency_ps: LATENCY_PS,
            gap_ps,
            kib_ps: KIB_PS,
            copy_kib_ps: 0,
            part_copy_kib_ps: None,
            eager_bytes: None,
            part_bytes: None,
            shared: None,
            levels: vec![],
            links: Links::default(),
        }),
    }
}

fn simulate(
    task: &Task,
    way: &Way,
    group: &Group,
    bytes: u64,
    platform: &Platform,
) -> SimulationReport {
    let work = Work { task, way, group, bytes };
    let faults = Faults::default();
    run(&work, &Setting::new(platform, &faults), &mut |_| {}).expect("room for all")
}

fn time_ps(
    operation: Operation,
    architecture: impl Architecture + 'static,
    group: &Group,
    bytes: u64,
) -> u64 {
    let way = Way::by(architecture);
    let report = simulate(&Task::new(operation), &way, group, bytes, &network(0));
    assert_eq!(report.left(), []);
    report.time().ps()
}

#[test]
fn one_message_takes_two_overheads_the_latency_and_its_bytes() {
    let pair = Group::whole(2).unwrap();
    for bytes in [0, 1, 1000, 1 << 20] {
        let time = time_ps(Operation::Broadcast, Flat, &pair, bytes);
        assert_eq!(time, MESSAGE_PS + 2 * bytes, "{bytes}");
    }
}

#[test]
fn waits_at_a_card_and_messages_under_way_are_counted() {
    let of = |size, gap_ps| {
        let task = Task::new(Operation::Broadcast);
        let group = Group::whole(size).unwrap();
        let report = simulate(&task, &Way::by(Flat), &group, 0, &network(gap_ps));
        (report.waited_ps, report.most_in_flight)
    };
    assert_eq!(of(2, GAP_PS), (0, 1));
    let (waited_ps, most_in_flight) = of(4, GAP_PS);
    assert!(waited_ps > 0 && most_in_flight > 1, "{waited_ps} {most_in_flight}");
}

#[test]
fn a_flat_broadcast_sends_one_after_the_other() {
    for n in [2u64, 3, 9, 100] {
        let group = Group::whole(n as u32).unwrap();
        let time = time_ps(Operation::Broadcast, Flat, &group, 0);
        assert_eq!(time, (n - 2) * OVERHEAD_PS + MESSAGE_PS, "{n}: the processor is the limit");
        let way = Way::by(Flat);
        let task = Task::new(Operation::Broadcast);
        let time = simulate(&task, &way, &group, 0, &network(GAP_PS)).time().ps();
        assert_eq!(time, (n - 2) * GAP_PS + MESSAGE_PS, "{n}: the card is the limit");
        let bytes = 5_000; // 10,000 ps through the card
        let time = time_ps(Operation::Broadcast, Flat, &group, bytes);
        assert_eq!(time, (n - 1) * 2 * bytes + MESSAGE_PS, "{n}: the bytes are the limit");
    }
}

#[test]
fn a_binomial_broadcast_takes_a_message_for_each_doubling() {
    // A member that has the data sends next after an overhead; no member sends before it has received. The member
    // that is served last in each round is the last of all where o + L + o > k o.
    for k in 1..=8u64 {
        let group = Group::whole(1 << k).unwrap();
        let time = time_ps(Operation::Broadcast, Knomial::BINOMIAL, &group, 0);
        assert_eq!(time, k * MESSAGE_PS, "{k}");
    }
}

#[test]
fn a_chain_takes_a_message_for_each_link() {
    for n in [2u64, 5, 64] {
        let group = Group::whole(n as u32).unwrap();
        let time = time_ps(Operation::Broadcast, Ring, &group, 1000);
        let links = n - 1;
        assert_eq!(time, links * (MESSAGE_PS + 2000), "{n}");
    }
}

#[test]
fn a_pipeline_of_clusters_relays_and_then_serves() {
    // m clusters of k: m - 1 relays, then the last leader serves k - 1.
    let (m, k) = (8u64, 5u64);
    let group = Group::divided((m * k) as u32, m as u32).unwrap();
    let time = time_ps(Operation::Broadcast, Pipeline, &group, 0);
    assert_eq!(time, (m - 1) * MESSAGE_PS + (k - 2) * OVERHEAD_PS + MESSAGE_PS);
}

#[test]
fn a_daisy_serves_its_leaders_and_they_serve_theirs() {
    // The last leader has it after m - 2 overheads and a message; then k - 1 of its own.
    let (m, k) = (8u64, 5u64);
    let group = Group::divided((m * k) as u32, m as u32).unwrap();
    let time = time_ps(Operation::Broadcast, Daisy, &group, 0);
    let leaders = (m - 2) * OVERHEAD_PS + MESSAGE_PS;
    assert_eq!(time, leaders + (k - 2) * OVERHEAD_PS + MESSAGE_PS);
}

#[test]
fn a_butterfly_takes_a_message_for_each_doubling() {
    let combined = |bytes: u64| bytes * CostParameters::default().reduction_kib_ps / 1024;
    for k in 1..=7u64 {
        let group = Group::whole(1 << k).unwrap();
        for bytes in [0, 8, 1024, 65_536] {
            let time = time_ps(Operation::AllReduce, Butterfly, &group, bytes);
            let round = MESSAGE_PS + 2 * bytes + combined(bytes);
            // In the end each copies its result to its place.
            let copied = bytes * CostParameters::default().local_copy_kib_ps / 1024;
            assert_eq!(time, k * round + copied, "{k} {bytes}");
        }
    }
}

#[test]
fn a_split_ring_takes_its_bytes_twice_but_for_one_part() {
    // 2 (n - 1) steps of a part each: message, bytes and, in the first half, combining; in between
    // each copies its finished part to its place.
    let (n, part) = (8u64, 8192u64);
    let group = Group::whole(n as u32).unwrap();
    let way = Way::split_by(Ring);
    let report = simulate(&Task::new(Operation::AllReduce), &way, &group, n * part, &network(0));
    let combined = part * CostParameters::default().reduction_kib_ps / 1024;
    let step = MESSAGE_PS + 2 * part;
    let copied = part * CostParameters::default().local_copy_kib_ps / 1024;
    let expected = 2 * (n - 1) * step + (n - 1) * combined + copied;
    assert_eq!((report.messages, report.bytes), (2 * n * (n - 1), 2 * n * (n - 1) * part));
    assert_eq!(report.time().ps(), expected);
}

#[test]
fn announced_data_take_three_messages() {
    let mut platform = network(0);
    let network = platform.network.as_mut().unwrap();
    network.eager_bytes = Some(999);
    let pair = Group::whole(2).unwrap();
    let (task, way) = (Task::new(Operation::Broadcast), Way::by(Flat));
    let time = |bytes| simulate(&task, &way, &pair, bytes, &platform).time().ps();
    assert_eq!(time(999), MESSAGE_PS + 2 * 999);
    // o L 2o L o ... : what is announced, asked for, sent.
    assert_eq!(time(1000), 3 * MESSAGE_PS + 2 * 1000);
}

/// One host with these figures, on which calls and steps take no time of their own.
fn host(figures: CostParameters) -> Platform {
    let mut platform = Platform::of_host("host", "", figures, Calibration::of(&figures));
    platform.host.details = platform.host.details.with_calls(0, 0);
    platform
}

#[test]
fn a_barrier_on_the_board_is_a_word_and_a_line_where_all_have_processors() {
    let figures = CostParameters { processors: 8, ..CostParameters::default() };
    let platform = host(figures);
    let group = Group::whole(8).unwrap();
    let way = Way::Board(BoardStyle::Each);
    let report = simulate(&Task::new(Operation::Barrier), &way, &group, 0, &platform);
    assert_eq!(report.time().ps(), figures.deposit_ps + figures.line_ps);
}

#[test]
fn a_message_within_a_host_takes_what_was_measured() {
    let figures = CostParameters::default();
    let platform = host(figures);
    let pair = Group::whole(2).unwrap();
    let (task, way) = (Task::new(Operation::Broadcast), Way::by(Flat));
    let time = |bytes| simulate(&task, &way, &pair, bytes, &platform).time().ps();
    let odd = (figures.message_ps - figures.line_ps) % 2;
    assert_eq!(time(8), figures.message_ps - odd);
    let short = figures.message_ps - odd + figures.deposit_ps;
    let short = short + figures.line_ps; // until lines follow each other
    let copies = figures.two_copy_kib_ps + figures.one_copy_kib_ps;
    assert_eq!(time(16 * 1024), short + 16 * copies, "in a ring: in, and then out");
    let long = figures.message_ps - odd + 1024 * figures.two_copy_kib_ps;
    assert_eq!(time(1 << 20), long, "at one rate from the first byte on");
}

/// A network whose processors move 4 ps a byte, and that sends longer data than 100 bytes in parts of 1,000.
fn in_parts() -> Platform {
    let mut platform = network(0);
    if let Some(network) = &mut platform.network {
        network.copy_kib_ps = 4 * 1024;
        (network.eager_bytes, network.part_bytes) = (Some(100), Some(1_000));
    }
    platform
}

#[test]
fn parts_of_long_data_are_moved_at_both_ends_at_once() {
    let pair = Group::whole(2).unwrap();
    let time = |operation, parts: u64| {
        let task = Task { in_place: true, ..Task::new(operation) };
        simulate(&task, &Way::by(Butterfly), &pair, 1_000 * parts, &in_parts()).time().ps()
    };
    let part_ps = OVERHEAD_PS + 4_000;
    let slower = |operation| {
        let mut platform = in_parts();
        if let Some(network) = &mut platform.network {
            network.part_copy_kib_ps = Some(9 * 1024);
        }
        let task = Task { in_place: true, ..Task::new(operation) };
        let of = |parts: u64| {
            simulate(&task, &Way::by(Butterfly), &pair, 1_000 * parts, &platform).time().ps()
        };
        of(16) - of(12)
    };
    assert_eq!(slower(Operation::Broadcast), 4 * (part_ps + 5_000), "parts at a rate of their own");
    // Of the first parts, some travel while the others are moved.
    let four_more = |operation| time(operation, 16) - time(operation, 12);
    assert_eq!(four_more(Operation::Broadcast), 4 * part_ps, "each processor moves them once");
    assert_eq!(four_more(Operation::AllGather), 2 * 4 * part_ps, "and in both directions twice");
    let report =
        simulate(&Task::new(Operation::Broadcast), &Way::by(Flat), &pair, 8_000, &in_parts());
    assert_eq!((report.messages, report.bytes), (1, 8_000), "parts are no messages");
}

#[test]
fn hosts_of_one_computer_share_its_processors() {
    let group = Group::whole(4).unwrap();
    let time = |shared| {
        let mut platform = network(0);
        if let Some(network) = &mut platform.network {
            network.shared = shared;
        }
        let task = Task::new(Operation::Barrier);
        simulate(&task, &Way::by(Butterfly), &group, 0, &platform).time().ps()
    };
    let of = |processors, turn_ps| time(Some(SharedProcessors { processors, turn_ps }));
    let own = time(None);
    assert_eq!(of(4, 50_000), own);
    let (short, long) = (of(2, 1_000_000), of(2, 20_000_000));
    assert!(own < short && short < long, "{own} {short} {long}");
}
