//! Jobs that grow onto hosts that come into their machine while they run.

use landeck::{Executable, Group, GroupOptions, HostOfJob, Job, Mailbox, Member, Sum};

use super::machines::lab;
use super::members::is_member;
use super::*;

const LONG: Duration = Duration::from_secs(60);
/// Two ranks, a process that is started beside one of them, and two on the third host.
const MEMBERS: usize = 5;

/// The test of this program as a job of one process on each of the hosts of the machine.
fn as_job<'a>(test: &'a str, program: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    as_job_of("2", test, program, &[&["--map-by", "node"], options].concat())
}

/// The test of this program as a job of so many processes, which the first host has room for.
fn as_job_of<'a>(
    processes: &'a str,
    test: &'a str,
    program: &'a str,
    options: &[&'a str],
) -> Vec<&'a str> {
    let first = ["run", "--name", "heat", "-n", processes];
    [&first[..], options, &[program, test, "--exact", "--nocapture", "--test-threads=1"]].concat()
}

/// A process of the job that is a member of its group.
struct Worker {
    job: Job,
    _group: Group,
    inbox: Mailbox,
    member: Member,
}

impl Worker {
    /// Joins the job and the group, which rank 0 creates.
    fn join() -> Self {
        let job = Job::join().unwrap();
        let world = job.world();
        let options = GroupOptions::default().minimum(world.size() as u32);
        let made = (world.rank() == 0).then(|| job.create_group("workers", options).unwrap());
        if world.rank() < world.size() {
            world.barrier().unwrap();
        }
        let group = made.unwrap_or_else(|| job.open_group("workers").unwrap());
        let mut inbox = job.create_mailbox().unwrap();
        let member = group.join(&mut inbox).unwrap();
        Self { job, _group: group, inbox, member }
    }

    fn is_started(&self) -> bool {
        self.job.world().rank() == usize::MAX
    }

    /// Takes part in operations until so many members do. Returns the sum of what each brings then.
    fn grow_to(&mut self, members: usize, own: u64) -> u64 {
        loop {
            self.member.advance().unwrap();
            let world = self.member.world().unwrap();
            let sum = world.all_reduce(own, Sum).unwrap();
            if world.size() == members {
                return sum;
            }
        }
    }

    /// Takes part in operations until so many members are left. Others may be lost meanwhile. Returns the number.
    fn shrink_to(&mut self, members: usize) -> usize {
        loop {
            // An operation that fails ends with its view; the next one has those that are left.
            let world = self.member.advance().and_then(|_| self.member.world());
            let counted = world.and_then(|world| Ok((world.size(), world.all_reduce(1u64, Sum)?)));
            if let Ok((size, all)) = counted
                && size == members
            {
                return all as usize;
            }
        }
    }

    /// Waits for the third host of the machine, which takes part.
    fn third_host(&self) -> HostOfJob {
        let mut hosts = self.job.hosts();
        while hosts.len() < 3 || !hosts[2].is_up() {
            hosts = self.job.hosts_after_within(&hosts, LONG).unwrap();
        }
        hosts.swap_remove(2)
    }

    /// Starts this test on a host.
    fn start_on(&self, host: &HostOfJob, test: &str) {
        let program = Executable::new(std::env::current_exe().unwrap()).join_within(LONG);
        let program = program.arguments([test, "--exact", "--nocapture", "--test-threads=1"]);
        self.job.start_on(host, &program).unwrap();
    }

    fn leave(self) {
        let Self { job, member, .. } = self;
        member.leave().unwrap();
        job.leave().unwrap();
    }
}

fn work_on_three_hosts(test: &str) {
    let mut worker = Worker::join();
    if !worker.is_started() {
        assert_eq!(worker.grow_to(2, 1), 2);
        let rank = worker.job.world().rank();
        if rank == 0 {
            // The third host learns later of what has come before.
            worker.start_on(&worker.job.hosts()[1], test);
        }
        assert_eq!(worker.grow_to(3, 10), 30);
        println!("rank {rank} works");
        let third = worker.third_host();
        if rank == 0 {
            (0..2).for_each(|_| worker.start_on(&third, test));
        }
    }
    assert_eq!(worker.grow_to(MEMBERS, 10), 10 * MEMBERS as u64);
    worker.member.sync().unwrap();
    if worker.is_started() {
        // From a host that the job did not begin on.
        let mut words = landeck::Message::new();
        words.pack(&[7u64]);
        worker.member.broadcast(&words).unwrap();
    }
    for _ in 0..3 {
        let mut message = worker.inbox.retrieve_within(LONG).unwrap();
        assert_eq!(message.unpack_value::<u64>().unwrap(), 7);
    }
    let hosts = worker.job.hosts();
    assert!(hosts.iter().all(|host| host.is_up()), "{hosts:?}");
    let processes: Vec<u32> = hosts.iter().map(HostOfJob::processes).collect();
    assert_eq!(processes, [1, 2, 2], "{hosts:?}");
    worker.member.sync().unwrap();
    worker.leave();
}

#[test]
fn a_job_grows_onto_a_host_that_comes() {
    const TEST: &str = "growing::a_job_grows_onto_a_host_that_comes";
    if is_member() {
        return work_on_three_hosts(TEST);
    }
    let Some(cluster) = lab("a_job_grows_onto_a_host_that_comes", 3, &["n2"]) else { return };
    let program = std::env::current_exe().unwrap();
    let job = start(&mut cluster.landeck(&as_job(TEST, program.to_str().unwrap(), &[])));
    job.out.wait_for("its work", |text| text.matches(" works\n").count() == 2);
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"])).assert(0, &[]);
    job.end().assert(0, &[]);
    cluster.stop_lab();
}

/// The process on the third host is lost with its daemon, and another one is started there once the host is back.
fn work_on_a_host_that_returns(test: &str) {
    let mut worker = Worker::join();
    if worker.is_started() {
        assert_eq!(worker.grow_to(3, 10), 30);
        println!("pid {} works", std::process::id());
        // The first one of the two that this is in turn is killed here.
        assert_eq!(worker.shrink_to(2), 2);
        return worker.leave();
    }
    let rank = worker.job.world().rank();
    assert_eq!(worker.grow_to(2, 1), 2);
    println!("rank {rank} begins");
    for _ in 0..2 {
        if rank == 0 {
            worker.third_host();
            let mut hosts = worker.job.hosts();
            while !hosts[2].is_up() || hosts[2].processes() > 0 {
                hosts = worker.job.hosts_after_within(&hosts, LONG).unwrap();
            }
            worker.start_on(&hosts[2], test);
        }
        assert_eq!(worker.grow_to(3, 10), 30);
        assert_eq!(worker.shrink_to(2), 2);
        println!("rank {rank} goes on");
    }
    worker.leave();
}

#[test]
fn a_host_that_a_job_has_grown_onto_is_lost_and_comes_back_without_harm() {
    const TEST: &str =
        "growing::a_host_that_a_job_has_grown_onto_is_lost_and_comes_back_without_harm";
    if is_member() {
        return work_on_a_host_that_returns(TEST);
    }
    let name = "a_host_that_a_job_has_grown_onto_is_lost_and_comes_back_without_harm";
    let Some(cluster) = lab(name, 3, &["n2"]) else { return };
    let program = std::env::current_exe().unwrap();
    let options = ["--on-failure", "notify"];
    let job = start(&mut cluster.landeck(&as_job(TEST, program.to_str().unwrap(), &options)));
    job.out.wait_for("its work", |text| text.matches(" begins\n").count() == 2);
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"])).assert(0, &[]);
    job.out.wait_for("the first one", |text| text.matches("works\n").count() == 1);
    cluster.lose(2);
    job.out.wait_for("the second one", |text| text.matches("works\n").count() == 2);
    let go_on = |text: &str| text.matches(" goes on\n").count() == 2;
    job.out.wait_for("that the others go on", go_on);
    cluster.lose(2);
    job.end().assert(137, &["Host n3 is lost", "Started process 0 is lost with it"]);
    cluster.stop_lab();
}

/// A process that was started by hand on a host without a part of the job. So many of its processes were started.
fn visit_a_job(job: &str, started: usize) {
    match Job::join() {
        Err(error) => println!("refused: {error}"),
        Ok(guest) => {
            let members = guest.world().size() + started + 1;
            let inbox = guest.open_mailbox("commands").unwrap();
            inbox.post(landeck::Message::new().pack_text("go on")).unwrap();
            // A named group of another host, which has no rank of this one.
            let group = guest.open_group("workers").unwrap();
            let mut own = guest.create_mailbox().unwrap();
            let mut member = group.join(&mut own).unwrap();
            while member.advance().and_then(|_| member.world()).unwrap().size() < members {}
            let sum = member.world().unwrap().all_reduce(10u64, Sum).unwrap();
            println!("guest of {job}: {sum}");
            member.leave().unwrap();
            guest.leave().unwrap();
        }
    }
}

fn work_with_guests() {
    let mut worker = Worker::join();
    let is_first = worker.job.world().rank() == 0;
    let mut commands = worker.job.create_mailbox().unwrap();
    if is_first {
        commands.register("commands").unwrap();
    }
    worker.job.world().barrier().unwrap();
    for _ in 0..2 {
        assert_eq!(worker.grow_to(2, 1), 2);
        println!("rank {} waits", worker.job.world().rank());
        if is_first {
            let mut command = commands.retrieve_within(LONG).unwrap();
            assert_eq!(command.unpack_text().unwrap(), "go on");
        }
        assert_eq!(worker.grow_to(3, 10), 30);
        assert_eq!(worker.shrink_to(2), 2);
    }
    worker.leave();
}

#[test]
fn guests_join_on_a_host_without_a_part_of_their_job() {
    const TEST: &str = "growing::guests_join_on_a_host_without_a_part_of_their_job";
    if is_member() {
        return work_with_guests();
    }
    if let Ok(job) = std::env::var("LANDECK_JOB") {
        return visit_a_job(&job, 0);
    }
    let test = "guests_join_on_a_host_without_a_part_of_their_job";
    let Some(cluster) = lab(test, 3, &["n2"]) else { return };
    let program = std::env::current_exe().unwrap();
    let job = start(&mut cluster.landeck(&as_job(TEST, program.to_str().unwrap(), &[])));
    job.out.wait_for("its work", |text| text.matches(" waits\n").count() == 2);
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"])).assert(0, &[]);
    let guest = |name: &str| {
        let mut command = cluster.hosts.command(2, &program);
        command.args([TEST, "--exact", "--nocapture", "--test-threads=1"]);
        run(command.env("LANDECK_JOB", name).stdin(Stdio::null())).assert(0, &[]).out.clone()
    };
    assert!(guest("heat").contains("guest of heat: 30\n"));
    job.out.wait_for("the next round", |text| text.matches(" waits\n").count() == 4);
    assert!(
        guest("cold").contains("refused: join: no job is called \"cold\""),
        "{}",
        guest("cold")
    );
    // Nothing of the job runs on that host now, so it goes on without it, and comes there again.
    cluster.lose(2);
    wait_until("n3 is back", || {
        let status = cluster.status_on(0);
        let mut hosts = status["hosts"].as_array().unwrap().iter();
        let n3 = hosts.find(|host| host["name"] == "n3").unwrap();
        n3["state"] == "up" && n3["why"].as_str().unwrap().contains("time 2")
    });
    let alone = cluster.start_waiting(0, "alone", "1");
    let second = cluster.start_waiting(1, "alone", "1");
    let refused = guest("alone");
    assert!(
        refused.contains("lab has alone (") && refused.contains("by its identity"),
        "{refused}"
    );
    assert!(guest("heat").contains("guest of heat: 30\n"));
    job.end().assert(0, &[]);
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    for other in [alone, second] {
        other.end().assert(0, &[]);
    }
    cluster.stop_lab();
}

/// The ranks are on the first host of the machine. One process is started on the second one, and a guest comes on the third.
fn work_from_one_host(test: &str) {
    let mut worker = Worker::join();
    let (ranks, rank) = (worker.job.world().size(), worker.job.world().rank());
    let mut commands = worker.job.create_mailbox().unwrap();
    if rank == 0 {
        commands.register("commands").unwrap();
    }
    if !worker.is_started() {
        assert_eq!(worker.grow_to(ranks, 1), ranks as u64);
        assert!(!worker.job.spans_hosts());
        if rank == 0 {
            let hosts = worker.job.hosts();
            let second = hosts.iter().find(|host| host.name() == "n2").unwrap();
            worker.start_on(second, test);
        }
    }
    assert_eq!(worker.grow_to(ranks + 1, 10), 10 * (ranks as u64 + 1));
    assert!(worker.job.spans_hosts());
    worker.member.sync().unwrap();
    // All see what all have sent in one order.
    worker.member.broadcast(landeck::Message::new().pack(&[rank.min(ranks) as u64])).unwrap();
    let mut next = || worker.inbox.retrieve_within(LONG).unwrap().unpack_value::<u64>().unwrap();
    let order: Vec<u64> = (0..=ranks).map(|_| next()).collect();
    println!("order {order:?}");
    worker.member.sync().unwrap();
    if rank == 0 {
        let mut command = commands.retrieve_within(LONG).unwrap();
        assert_eq!(command.unpack_text().unwrap(), "go on");
    }
    assert_eq!(worker.grow_to(ranks + 2, 10), 10 * (ranks as u64 + 2));
    assert_eq!(worker.shrink_to(ranks + 1), ranks + 1);
    if worker.is_started() {
        println!("pid {} works", std::process::id());
    }
    assert_eq!(worker.shrink_to(ranks), ranks);
    println!("rank {rank} goes on");
    worker.leave();
}

#[test]
fn a_job_that_began_on_one_host_takes_processes_and_guests_on_others() {
    const TEST: &str = "growing::a_job_that_began_on_one_host_takes_processes_and_guests_on_others";
    if is_member() {
        return work_from_one_host(TEST);
    }
    if let Ok(job) = std::env::var("LANDECK_JOB") {
        return visit_a_job(&job, 1);
    }
    let test = "a_job_that_began_on_one_host_takes_processes_and_guests_on_others";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let program = std::env::current_exe().unwrap();
    for ranks in 1..=2 {
        let (processes, options) = (ranks.to_string(), ["--on-failure", "notify"]);
        let arguments = as_job_of(&processes, TEST, program.to_str().unwrap(), &options);
        let job = start(&mut cluster.landeck(&arguments));
        let orders = |text: &str| -> Vec<String> {
            let ends = text.split("order ").skip(1).filter_map(|rest| rest.split_once('\n'));
            ends.map(|(order, _)| order.to_owned()).collect()
        };
        job.out.wait_for("the messages of all", |text| orders(text).len() == ranks + 1);
        let seen = orders(&job.out.text());
        assert!(seen.iter().all(|order| *order == seen[0]), "{seen:?}");
        let mut guest = cluster.hosts.command(2, &program);
        guest.args([TEST, "--exact", "--nocapture", "--test-threads=1"]);
        let guest = run(guest.env("LANDECK_JOB", "heat").stdin(Stdio::null()));
        let sum = format!("guest of heat: {}\n", 10 * (ranks + 2));
        assert!(guest.assert(0, &[]).out.contains(&sum), "{guest:?}");
        job.out.wait_for("the started process", |text| text.contains(" works\n"));
        let text = job.out.text();
        let (_, pid) = text.split_once("pid ").unwrap();
        let pid = pid.split_once(' ').unwrap().0.parse().unwrap();
        cluster.signal_pid(1, pid, "KILL");
        job.out
            .wait_for("that the ranks go on", |text| text.matches(" goes on\n").count() == ranks);
        job.end().assert(137, &["started process 0", "host n2) was killed by signal 9"]);
    }
    cluster.stop_lab();
}
