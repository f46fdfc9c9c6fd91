//! The own job of a machine: processes that are started from shells meet in it, on all hosts.

use landeck::{Executable, GroupOptions, Job, Options, Sum, Tag};

use super::machines::lab;
use super::*;

pub(super) const LONG: Duration = Duration::from_secs(60);
/// The variable that says what the process of a test does in the job.
const ROLE: &str = "TEST_ROLE";

/// The test of this program as a process that somebody starts on a host, with this role.
pub(super) fn shell(cluster: &Cluster, host: usize, test: &str, role: &str) -> Command {
    let mut command = cluster.hosts.command(host, std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).stdin(Stdio::null());
    command
}

/// The role of this process, if a test has started it.
pub(super) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Joins the job and its group of so many, and says so; then does one operation, and waits for a message of the mailbox
/// that is called like the role.
fn meet(role: &str, members: usize) -> Job {
    let job = Job::join_machine(Options::default()).unwrap();
    let mut letters = job.create_mailbox().unwrap();
    letters.register(role).unwrap();
    let group = job.open_group("town");
    let group = group.or_else(|_| job.create_group("town", GroupOptions::default())).unwrap();
    let mut inbox = job.create_mailbox().unwrap();
    let mut member = group.join(&mut inbox).unwrap();
    println!("{role} is there");
    let mut count = 0;
    while count < members as u64 {
        member.advance().unwrap();
        count = member.world().unwrap().all_reduce(1u64, Sum).unwrap();
    }
    println!("{role} counts {count}");
    let mut letter = letters.retrieve_within(LONG).unwrap();
    println!("{role} got {}", letter.unpack_text().unwrap());
    member.leave().unwrap();
    job
}

/// Sends a letter to each of these, and leaves.
fn write_to(others: &[&str]) {
    let job = Job::join_running("lab", Options::default()).unwrap();
    for other in others {
        let mailbox = job.open_mailbox(other).unwrap();
        mailbox.post(landeck::Message::new().pack_text("a letter")).unwrap();
    }
    let refused = job.hosts().first().map(|host| job.start_on(host, &Executable::new("true")));
    println!("start: {}", refused.unwrap().unwrap_err());
    job.leave().unwrap();
}

/// Finds a group that lasts, or makes it.
fn keep() {
    let job = Job::join_machine(Options::default()).unwrap();
    if job.open_group("lasting").is_ok() {
        println!("found");
    } else {
        job.create_group("lasting", GroupOptions::default().persistent(true)).unwrap();
        println!("made");
    }
    job.leave().unwrap();
}

#[test]
fn processes_from_shells_meet_in_the_own_job_of_their_machine() {
    const TEST: &str = "own_job::processes_from_shells_meet_in_the_own_job_of_their_machine";
    match role().as_deref() {
        Some("keeper") => return keep(),
        Some("visitor") => return Job::join_machine(Options::default()).unwrap().leave().unwrap(),
        Some("writer") => return write_to(&["one", "two", "three"]),
        Some(role) => return meet(role, 3).leave().unwrap(),
        None => {}
    }
    let test = "processes_from_shells_meet_in_the_own_job_of_their_machine";
    let Some(cluster) = lab(test, 3, &["n2"]) else { return };
    // Nobody is in it, so nobody is shown.
    assert_eq!(cluster.jobs_on(0), Vec::<String>::new());
    let one = start(&mut shell(&cluster, 1, TEST, "one"));
    one.out.wait_for("it is there", |text| text.contains("one is there"));
    let two = start(&mut shell(&cluster, 0, TEST, "two"));
    two.out.wait_for("it is there", |text| text.contains("two is there"));
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"])).assert(0, &[]);
    let three = start(&mut shell(&cluster, 2, TEST, "three"));
    for (process, name) in [(&one, "one"), (&two, "two"), (&three, "three")] {
        process.out.wait_for("the sum", |text| text.contains(&format!("{name} counts 3\n")));
    }
    let there = || {
        let jobs = cluster.status_on(2)["jobs"].clone();
        let hosts = jobs[0]["hosts"].as_array().cloned().unwrap_or_default();
        hosts.iter().filter_map(|host| host["processes"].as_u64()).collect::<Vec<_>>()
    };
    wait_until("the founder knows all of them", || there().len() == 3);
    let known = there();
    assert_eq!(cluster.status_on(1)["jobs"][0]["name"], "lab");
    let seen = run(&mut cluster.landeck_on(2, &["ps"]));
    assert!(seen.assert(0, &[]).out.contains("lab, 4 guests on 3 hosts"), "{}", seen.out);
    // The next run of the founder's daemon knows them, too.
    cluster.signal_pid(0, cluster.daemon(0), "KILL");
    wait_until("the next run", || {
        let why = cluster.status_on(2)["hosts"][0]["why"].clone();
        why.as_str().is_some_and(|why| why.contains("again, once"))
    });
    run(&mut shell(&cluster, 2, TEST, "visitor")).assert(0, &[]);
    run(&mut shell(&cluster, 2, TEST, "visitor")).assert(0, &[]);
    wait_until("the founder knows all of them", || there() == known);
    run(&mut cluster.landeck(&["vm", "stop"])).assert(1, &["lab runs (n1 n2 n3)"]);
    let wrote = run(&mut shell(&cluster, 2, TEST, "writer"));
    assert!(
        wrote.assert(0, &[]).out.contains("this job has no launcher that starts"),
        "{}",
        wrote.out
    );
    for process in [one, two, three] {
        assert!(process.end().assert(0, &[]).out.contains(" got a letter\n"));
    }
    // The machine keeps what is to last, while nobody is in its job.
    for said in ["made", "found"] {
        let keeper = run(&mut shell(&cluster, 1, TEST, "keeper"));
        assert!(keeper.assert(0, &[]).out.contains(said), "{said}: {}", keeper.out);
    }
    // Nobody is there any more, so the host may go, and the machine.
    wait_until("nobody is in it", || cluster.jobs_on(0).is_empty());
    run(&mut cluster.landeck(&["vm", "remove", "n3"])).assert(0, &[]);
    run(&mut cluster.landeck(&["vm", "stop"])).assert(0, &[]);
}

/// Joins, says so, and does operations until the job is ended. It says how many members there are, whenever that changes.
fn endure(role: &str) {
    let job = Job::join_machine(Options::default()).unwrap();
    let group = job.open_group("town");
    let group = group.or_else(|_| job.create_group("town", GroupOptions::default())).unwrap();
    let mut inbox = job.create_mailbox().unwrap();
    let mut member = group.join(&mut inbox).unwrap();
    println!("{} {role} is there", std::process::id());
    let mut before = 0;
    loop {
        let done = member.advance().and_then(|_| member.world()?.all_reduce(1u64, Sum));
        match done {
            // A process alone waits for nobody, so its operations do not see the end of the job.
            Ok(1) if before == 1 => match inbox.retrieve_within(Duration::from_millis(10)) {
                Err(landeck::Error { kind: landeck::ErrorKind::TimedOut(_), .. }) => {}
                other => return println!("{role} ends: {:?}", other.err()),
            },
            Ok(count) if count == before => {}
            Ok(count) => {
                println!("{role} is one of {count};");
                before = count;
            }
            Err(landeck::Error { kind: landeck::ErrorKind::PeerFailed { .. }, .. }) => {}
            Err(error) => return println!("{role} ends: {error}"),
        }
    }
}

/// Whether a host has joined twice, and its daemon listens: the founder knows of it a moment before.
fn is_back(cluster: &Cluster, host: usize, name: &str) -> bool {
    let asked = run(&mut cluster.landeck_on(host, &["vm", "status", "--json"]));
    let Ok(status) = serde_json::from_str::<serde_json::Value>(&asked.out) else { return false };
    let mut hosts = status["hosts"].as_array().unwrap().iter();
    hosts.any(|host| host["name"] == name && host["why"].as_str().unwrap().contains("time 2"))
}

#[test]
fn the_own_job_survives_its_processes_and_hosts_and_ends_when_somebody_wants() {
    const TEST: &str =
        "own_job::the_own_job_survives_its_processes_and_hosts_and_ends_when_somebody_wants";
    match role().as_deref() {
        Some("aborter") => {
            let job = Job::join_machine(Options::default()).unwrap();
            job.abort(3, "on purpose");
        }
        Some("waiter") => {
            let job = Job::join_machine(Options::default()).unwrap();
            println!("{} waiter is there", std::process::id());
            return println!(
                "waiter ends: {}",
                job.create_mailbox().unwrap().retrieve().unwrap_err()
            );
        }
        Some("nobody") => {
            return println!("refused: {}", Job::join_machine(Options::default()).err().unwrap());
        }
        Some(role) => return endure(role),
        None => {}
    }
    let test = "the_own_job_survives_its_processes_and_hosts_and_ends_when_somebody_wants";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let begun = |host: usize, role: &str| {
        let process = start(&mut shell(&cluster, host, TEST, role));
        process.out.wait_for("it is there", |text| text.contains(&format!("{role} is there")));
        process
    };
    let sees = |process: &Running, count: u32, times: usize| {
        let word = format!(" is one of {count};");
        process.out.wait_for(&word, |text| text.matches(&word).count() == times);
    };
    let job_of = |host: usize| cluster.status_on(host)["jobs"][0]["job"].clone();
    // The group's log is on the host of its creator, so that one stays.
    let one = begun(0, "one");
    let two = begun(1, "two");
    let three = begun(2, "three");
    sees(&one, 3, 1);
    let said = two.out.text();
    let pid = said.split(" two is there").next().and_then(|text| text.split(' ').next_back());
    cluster.signal_pid(1, pid.unwrap().parse().unwrap(), "KILL");
    sees(&one, 2, 2);
    let second = begun(1, "second");
    sees(&second, 3, 1);
    let first_job = job_of(1);
    // A host goes with all of its processes, and comes back with its daemon.
    cluster.lose(2);
    sees(&one, 2, 3);
    sees(&second, 2, 1);
    drop(three.end());
    wait_until("n3 is back", || is_back(&cluster, 2, "n3"));
    let third = begun(2, "third");
    sees(&third, 3, 1);
    assert_eq!(job_of(2), first_job);
    // On a busy computer the founder may be slow to answer.
    wait_until("it is ended", || run(&mut cluster.landeck_on(1, &["end", "lab"])).status.success());
    for process in [one, second, third] {
        let ended = process.end();
        assert!(ended.assert(0, &[]).out.contains(" ends: "), "{}", ended.out);
    }
    // The next one begins with the next process.
    let waiter = begun(1, "waiter");
    assert_ne!(job_of(0), first_job);
    run(&mut shell(&cluster, 2, TEST, "aborter")).assert(3, &[]);
    assert!(
        waiter.end().assert(0, &[]).out.contains("waiter ends: retrieve: the job is being ended")
    );
    run(&mut cluster.landeck(&["vm", "drain", "n3"])).assert(0, &[]);
    let refused = run(&mut shell(&cluster, 2, TEST, "nobody")).out;
    assert!(refused.contains("refused: join_machine: "), "{refused}");
    assert!(refused.contains("n3 takes no further jobs"), "{refused}");
    cluster.stop_lab();
    let refused = run(&mut shell(&cluster, 1, TEST, "nobody")).out;
    assert!(refused.contains("no machine of this user is on this host"), "{refused}");
}

/// A rank of a job that is in the own job of its machine as well: it tells of its job there, and hears of the other one.
fn meet_the_other_job(name: &str) {
    let own = Job::join().unwrap();
    assert_eq!(own.world().size(), 2);
    let machine = Job::join_machine(Options::default()).unwrap();
    let group = machine.open_group("jobs");
    let options = GroupOptions::default().minimum(4);
    let group = group.or_else(|_| machine.create_group("jobs", options));
    // Another process was faster.
    let group = group.or_else(|_| machine.open_group("jobs")).unwrap();
    let mut inbox = machine.create_mailbox().unwrap();
    let member = group.join(&mut inbox).unwrap();
    let rank = own.world().rank() as u64;
    member.broadcast(landeck::Message::new().pack_text(name).pack(&[rank])).unwrap();
    let mut heard = Vec::new();
    for _ in 0..4 {
        let mut message = inbox.retrieve_within(LONG).unwrap();
        heard.push(format!(
            "{}{}",
            message.unpack_text().unwrap(),
            message.unpack_value::<u64>().unwrap()
        ));
    }
    let sum = own.world().all_reduce(1u64, Sum).unwrap();
    println!("{name}{rank} of {sum} heard {}", heard.join(" "));
    member.leave().unwrap();
    machine.leave().unwrap();
    own.leave().unwrap();
}

#[test]
fn processes_of_several_jobs_meet_in_the_own_job_of_their_machine() {
    const TEST: &str = "own_job::processes_of_several_jobs_meet_in_the_own_job_of_their_machine";
    if let Some(role) = role() {
        return meet_the_other_job(&role);
    }
    let test = "processes_of_several_jobs_meet_in_the_own_job_of_their_machine";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    let program = std::env::current_exe().unwrap();
    let job = |host: usize, name: &str| {
        let first = ["run", "--name", name, "-n", "2", "--map-by", "node"];
        let last = [program.to_str().unwrap(), TEST, "--exact", "--nocapture", "--test-threads=1"];
        start(cluster.landeck_on(host, &[&first[..], &last[..]].concat()).env(ROLE, name))
    };
    let jobs = [job(0, "a"), job(1, "b")];
    let outs = jobs.map(|job| job.end().assert(0, &[]).out.clone());
    // All of them hear the same in the same order.
    let heard: Vec<&str> = outs
        .iter()
        .flat_map(|out| out.lines())
        .filter_map(|line| line.split(" of 2 heard ").nth(1))
        .collect();
    assert_eq!(heard.len(), 4, "{outs:?}");
    assert!(heard.iter().all(|one| *one == heard[0]), "{outs:?}");
    let mut names: Vec<&str> = heard[0].split(' ').collect();
    names.sort_unstable();
    assert_eq!(names, ["a0", "a1", "b0", "b1"]);
    cluster.stop_lab();
}

/// Has a port, answers those that connect, and leaves.
fn offer(name: &str, callers: usize) {
    let job = Job::join().unwrap();
    let port = job.create_port(name).unwrap();
    println!("offers");
    for _ in 0..callers {
        let remote = port.accept(LONG).unwrap();
        let mut came = [0u64; 4];
        remote.receive_into(&mut came, Tag(3)).unwrap();
        remote.send(&came.map(|word| word + 1), Tag(4)).unwrap();
    }
    let vanishes = port.accept(LONG).unwrap();
    println!("lost: {}", vanishes.receive_into(&mut [0u64], Tag(3)).unwrap_err());
    println!("refused: {}", job.create_port("taken").err().unwrap());
    drop(port);
    job.leave().unwrap();
}

/// Connects to a port, and exchanges a message.
fn call(name: &str) {
    let job = Job::join().unwrap();
    match job.connect(name) {
        Ok(remote) => {
            remote.send(&[1u64, 2, 3, 4], Tag(3)).unwrap();
            let mut came = [0u64; 4];
            remote.receive_into(&mut came, Tag(4)).unwrap();
            println!("got {came:?}");
        }
        Err(error) => println!("failed: {error}"),
    }
    job.leave().unwrap();
}

#[test]
fn jobs_on_different_hosts_meet_at_a_port() {
    const TEST: &str = "own_job::jobs_on_different_hosts_meet_at_a_port";
    match role().as_deref() {
        Some("offers") => return offer("heat", 3),
        Some("takes") => {
            let job = Job::join().unwrap();
            let _port = job.create_port("taken").unwrap();
            println!("taken");
            let go = Path::new("/tmp/go");
            wait_until("the file", || go.exists());
            std::process::abort();
        }
        Some("vanishes") => {
            let job = Job::join().unwrap();
            let _remote = job.connect("heat").unwrap();
            std::process::abort();
        }
        Some("waits") => return call("taken"),
        Some(_) => return call("heat"),
        None => {}
    }
    let test = "jobs_on_different_hosts_meet_at_a_port";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let program = std::env::current_exe().unwrap();
    let program = [program.to_str().unwrap(), TEST, "--exact", "--nocapture", "--test-threads=1"];
    let job = |host: usize, role: &str| {
        let run = ["run", "--name", role, "-n", "1"];
        let mut command = cluster.landeck_on(host, &[&run[..], &program].concat());
        command.env(ROLE, role);
        start(&mut command)
    };
    let takes = job(2, "takes");
    takes.out.wait_for("its port", |text| text.contains("taken"));
    let offers = job(0, "offers");
    offers.out.wait_for("its port", |text| text.contains("offers"));
    // Two from other hosts, and one from the same host.
    let callers = [job(1, "calls"), job(2, "calls"), job(0, "calls")];
    for caller in callers {
        let called = caller.end();
        assert!(called.assert(0, &[]).out.contains("got [2, 3, 4, 5]"), "{called:?}");
    }
    let vanished = job(1, "vanishes").end();
    assert!(!vanished.status.success(), "{vanished:?}");
    let offered = offers.end();
    let offered = offered.assert(0, &[]);
    let lost = offered.out.lines().find(|line| line.starts_with("lost: ")).unwrap();
    assert!(lost.contains("rank 1 on n2") && lost.contains("ended without leaving"), "{lost}");
    let refused = "the port \"taken\" is there already, made by process ";
    assert!(
        offered.out.contains(refused) && offered.out.contains(" on another host"),
        "{offered:?}"
    );
    // The name has gone with the port.
    let late = job(1, "calls").end();
    assert!(late.assert(0, &[]).out.contains("nothing is published as \"heat\""), "{late:?}");
    // The owner of a port dies before it accepts, and with it its job: the process that waits for it is told of one or the other.
    let waits = job(1, "waits");
    wait_until("a caller", || {
        run(&mut cluster.landeck_on(2, &["why", "takes"])).out.contains("receive from rank 0")
    });
    cluster.shell(2, "touch /tmp/go");
    assert_eq!(takes.end().status.code(), Some(134));
    let waited = waits.end();
    let waited = waited.assert(0, &[]);
    let told = ["was killed by signal 6", "the job is being ended"];
    assert!(told.iter().any(|how| waited.out.contains(how)), "{waited:?}");
    cluster.stop_lab();
}
