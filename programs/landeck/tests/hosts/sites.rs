//! A job at two sites that meet in gateways: placement, operations of all kinds, what passes between the sites, and what is
//! shown of it.

use std::fmt::Write;

use landeck::unstable::JobInternals;
use landeck::{GroupOptions, Job, Message, RegionAddress, Sum, Tag, World};
use landeck_testing::hosts::Cable;

use super::members::is_member;
use super::*;

/// The values that a member has for a long operation: 1 MiB.
const LONG: usize = 128 << 10;
/// A gateway's cable to the network between the sites.
const MIDDLE: &str = "/sys/class/net/eth1/statistics";
/// The file that describes the machine, on the first host.
const LAB: &str = "/tmp/lab.toml";
/// The time for the messages of a group.
const TIME: Duration = Duration::from_secs(60);

/// A machine of two sites with two hosts each, which meet in n2 and n3.
pub(super) fn two_sites(test: &str) -> Option<Cluster> {
    let cables = vec![Cable { host: 1, network: 0 }, Cable { host: 2, network: 0 }];
    let cluster = Cluster::wished(test, &Wish { sites: 2, cables, ..Wish::hosts(4) })?;
    let mut lab = String::new();
    for (name, number, site) in [("a", 1, true), ("b", 2, true), ("middle", 0, false)] {
        let what =
            if site { format!("site = \"{name}\"") } else { "gateway = [\"n2\", \"n3\"]".into() };
        writeln!(lab, "[network.{name}]\naddresses = \"10.77.{number}.0/24\"\n{what}").unwrap();
    }
    (1..=4).for_each(|host| writeln!(lab, "[host.n{host}]").unwrap());
    cluster.shell(0, &format!("cat >{LAB} <<'END'\n{lab}END"));
    run(&mut cluster.landeck(&["vm", "start", "--rsh", "landeck-rsh", LAB])).assert(0, &[]);
    Some(cluster)
}

/// Does all collective operations with so many values of each member, and checks their results.
fn operations(world: &World, count: usize) {
    let (own, size) = (world.rank() as u64, world.size() as u64);
    let of = |rank: u64| vec![rank + 1; count];
    let sum = size * (size + 1) / 2;
    world.barrier().unwrap();
    for root in 0..world.size() {
        let is_root = root == world.rank();
        let mut values = if is_root { of(77) } else { vec![0; count] };
        world.broadcast(&mut values, root).unwrap();
        assert_eq!(values, of(77));
        let mut into = vec![0; count];
        world.reduce(&of(own), &mut into, Sum, root).unwrap();
        assert!(!is_root || into == vec![sum; count]);
        let all: Vec<u64> = (0..size).flat_map(of).collect();
        let mut into = vec![0; count * world.size()];
        world.gather(&of(own), &mut into, root).unwrap();
        assert!(!is_root || into == all);
        let mut into = vec![0; count];
        world.scatter(&all, &mut into, root).unwrap();
        assert_eq!(into, of(own));
    }
    let mut values = of(own);
    world.all_reduce_in_place(&mut values, Sum).unwrap();
    assert_eq!(values, vec![sum; count]);
    let all: Vec<u64> = (0..size).flat_map(of).collect();
    let mut into = vec![0; count * world.size()];
    world.all_gather(&of(own), &mut into).unwrap();
    assert_eq!(into, all);
    let blocks: Vec<u64> = (0..size).flat_map(|to| vec![own * size + to; count]).collect();
    world.all_to_all(&blocks, &mut into).unwrap();
    let came: Vec<u64> = (0..size).flat_map(|from| vec![from * size + own; count]).collect();
    assert_eq!(into, came);
    let mut into = vec![0; count];
    world.reduce_scatter_block(&all, &mut into, Sum).unwrap();
    assert_eq!(into, vec![size * (own + 1); count]);
    world.scan(&of(own), &mut into, Sum).unwrap();
    assert_eq!(into, vec![(own + 1) * (own + 2) / 2; count]);
}

/// The bytes that have left this host to the other site, and come from there.
fn passed() -> [u64; 2] {
    ["tx_bytes", "rx_bytes"].map(|which| {
        let text = std::fs::read_to_string(format!("{MIDDLE}/{which}")).unwrap();
        text.trim().parse().unwrap()
    })
}

/// Checks how often the data of one member pass from the first site to the second in an operation, and back. The process on
/// the gateway of the first site counts them.
fn counted(world: &World, name: &str, expected: [u64; 2], operation: impl FnOnce(&World)) {
    world.barrier().unwrap();
    let before = (world.rank() == 1).then(passed);
    world.barrier().unwrap();
    operation(world);
    world.barrier().unwrap();
    let Some(before) = before else { return };
    let after = passed();
    let bytes = (LONG * size_of::<u64>()) as u64;
    for (way, expected) in expected.into_iter().enumerate() {
        // Headers, confirmations, packets that were sent again, and messages of the daemons pass as well.
        let times = (after[way] - before[way]) as f64 / bytes as f64;
        let is_right = times >= expected as f64 && times < expected as f64 * 1.2 + 0.3;
        assert!(is_right, "{name}: the data pass {times:.2} times, not {expected} (way {way})");
    }
    println!("{name} is counted");
}

/// Counts what passes between the sites in operations of long data.
fn count_all(world: &World) {
    let (rank, size) = (world.rank(), world.size());
    let values = || vec![rank as u64; LONG];
    counted(world, "broadcast", [1, 0], |world| world.broadcast(&mut values(), 0).unwrap());
    counted(world, "broadcast back", [0, 1], |world| world.broadcast(&mut values(), 3).unwrap());
    counted(world, "reduce", [0, 1], |world| {
        world.reduce(&values(), &mut values(), Sum, 0).unwrap();
    });
    counted(world, "allreduce", [1, 1], |world| {
        world.all_reduce_in_place(&mut values(), Sum).unwrap();
    });
    // Two members are at each site.
    counted(world, "gather", [0, 2], |world| {
        world.gather(&values(), &mut vec![0; LONG * size], 0).unwrap();
    });
    counted(world, "scatter", [2, 0], |world| {
        world.scatter(&vec![0; LONG * size], &mut values(), 1).unwrap();
    });
    counted(world, "allgather", [2, 2], |world| {
        world.all_gather(&values(), &mut vec![0; LONG * size]).unwrap();
    });
}

/// A group, a mailbox and a region that members at both sites use.
fn objects(job: &Job, world: &World) {
    let (rank, size) = (world.rank(), world.size());
    let mut inbox = job.create_mailbox().unwrap();
    inbox.register(format!("inbox of {rank}")).unwrap();
    world.barrier().unwrap();
    let far = (rank + size / 2) % size;
    let outbox = job.open_mailbox(format!("inbox of {far}")).unwrap();
    outbox.post_values(&[rank as u64]).unwrap();
    let mut came = [0u64];
    inbox.retrieve_values_within(&mut came, TIME).unwrap();
    assert_eq!(came, [far as u64]);

    if rank == 0 {
        job.create_group("town", GroupOptions::default()).unwrap();
    }
    world.barrier().unwrap();
    let group = job.open_group("town").unwrap();
    let mut letters = job.create_mailbox().unwrap();
    let mut member = group.join(&mut letters).unwrap();
    world.barrier().unwrap();
    member.advance().unwrap();
    let of_group = member.world().unwrap();
    assert_eq!(of_group.all_reduce(rank as u64, Sum).unwrap(), (0..size as u64).sum::<u64>());
    assert_eq!(of_group.clusters().unwrap().clusters().len(), 2);
    member.broadcast(Message::new().pack_text(&format!("from {rank}"))).unwrap();
    let mut said: Vec<String> = (0..size)
        .map(|_| letters.retrieve_within(TIME).unwrap().unpack_text().unwrap().to_owned())
        .collect();
    said.sort_unstable();
    assert_eq!(said, (0..size).map(|rank| format!("from {rank}")).collect::<Vec<_>>());
    member.leave().unwrap();

    let region = job.create_region(16).unwrap();
    let mut all = vec![0u64; RegionAddress::WORDS * size];
    world.all_gather(&region.address().to_words(), &mut all).unwrap();
    let words = all[RegionAddress::WORDS * far..][..RegionAddress::WORDS].try_into().unwrap();
    let remote = job.open_region(RegionAddress::from_words(words)).unwrap();
    remote.put(0, &[rank as u64 + 100]).unwrap();
    let mut got = [0u64];
    remote.get(0, &mut got).unwrap();
    assert_eq!(got, [rank as u64 + 100]);
    remote.fetch_add(8, 5).unwrap();
    world.barrier().unwrap();
    let mut own = [0u64; 2];
    region.read(0, &mut own).unwrap();
    assert_eq!(own, [far as u64 + 100, 5]);
    world.barrier().unwrap();
}

/// A process of the job.
fn member() {
    let job = Job::join().unwrap();
    let world = job.world();
    println!("rank {} is there", world.rank());
    assert_eq!(world.clusters().unwrap().clusters(), [[0, 1], [2, 3]]);
    let ways = job.ways(&world).unwrap();
    assert!(ways.contains("hypercube") && !ways.contains("butterfly"), "{ways}");
    operations(&world, 1);
    operations(&world, 10_000);
    // Members of a world that has one at each site, and of one in which all are at one.
    let across = world.split(Some(world.rank() as u32 % 2), 0).unwrap().unwrap();
    assert_eq!(across.clusters().unwrap().clusters(), [[0], [1]]);
    operations(&across, 100);
    let site = world.split(Some(world.rank() as u32 / 2), 0).unwrap().unwrap();
    assert!(site.clusters().unwrap().sites().is_empty());
    operations(&site, 100);
    count_all(&world);
    objects(&job, &world);
    println!("ready");
    if world.rank() == 3 {
        let go = Path::new("/tmp/go");
        wait_until("the file", || go.exists());
        (0..3).for_each(|to| world.send(&[7u64], to, Tag(9)).unwrap());
    } else {
        assert_eq!(world.receive::<u64>(3, Tag(9)).unwrap().0, 7);
    }
    println!("end");
    job.leave().unwrap();
}

#[test]
fn a_job_at_two_sites_crosses_between_them_once_for_each_operation() {
    const TEST: &str = "sites::a_job_at_two_sites_crosses_between_them_once_for_each_operation";
    if is_member() {
        return member();
    }
    let test = "a_job_at_two_sites_crosses_between_them_once_for_each_operation";
    let Some(cluster) = two_sites(test) else { return };
    let placed = |host: usize, number: &str| {
        let words = ["run", "-n", number, "--map-by", "site", "--tag", "hostname"];
        let ended = run(&mut cluster.landeck_on(host, &words));
        let lines = ended.assert(0, &[]).sorted().into_iter().map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    assert_eq!(placed(0, "2"), ["[0] n1", "[1] n3"]);
    assert_eq!(placed(3, "4"), ["[0] n4", "[1] n3", "[2] n1", "[3] n2"]);
    assert_eq!(placed(0, "4"), ["[0] n1", "[1] n2", "[2] n3", "[3] n4"]);
    let program = std::env::current_exe().unwrap();
    let program = [program.to_str().unwrap(), TEST, "--exact", "--nocapture", "--test-threads=1"];
    let words = ["run", "-n", "4", "--map-by", "site", "--name", "meeting"];
    let running = start(&mut cluster.landeck(&[&words[..], &program].concat()));
    running.out.wait_for("its processes", |text| text.matches("ready\n").count() == 4);
    for host in [0, 3] {
        let ps = run(&mut cluster.landeck_on(host, &["ps"]));
        assert!(ps.assert(0, &[]).out.contains("meeting, 4 processes on 4 hosts"), "{ps:?}");
        let top = run(&mut cluster.landeck_on(host, &["top", "--once", "meeting"]));
        top.assert(0, &[]);
        assert!((1..=4).all(|number| top.out.contains(&format!("n{number}"))), "{top:?}");
        let why = run(&mut cluster.landeck_on(host, &["why", "meeting"]));
        assert!(why.out.contains("rank 0") && why.out.contains("from rank 3"), "{why:?}");
    }
    cluster.shell(3, "touch /tmp/go");
    let ended = running.end();
    let ended = ended.assert(0, &[]);
    assert_eq!(ended.out.matches("end\n").count(), 4, "{ended:?}");
    assert_eq!(ended.out.matches("is counted").count(), 7, "{ended:?}");
    cluster.stop_lab();
}
