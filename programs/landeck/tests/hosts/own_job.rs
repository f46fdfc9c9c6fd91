//! The own job of a machine: processes that are started from shells meet in it, on all hosts.

use landeck::{Executable, GroupOptions, Job, Options, Sum};

use super::machines::lab;
use super::*;

const LONG: Duration = Duration::from_secs(60);
/// The variable that says what the process of a test does in the job.
const ROLE: &str = "TEST_ROLE";

/// The test of this program as a process that somebody starts on a host, with this role.
fn shell(cluster: &Cluster, host: usize, test: &str, role: &str) -> Command {
    let mut command = cluster.hosts.command(host, &std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).stdin(Stdio::null());
    command
}

/// The role of this process, if a test has started it.
fn role() -> Option<String> {
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

#[test]
fn processes_from_shells_meet_in_the_own_job_of_their_machine() {
    const TEST: &str = "own_job::processes_from_shells_meet_in_the_own_job_of_their_machine";
    match role().as_deref() {
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
    wait_until("the founder knows all of them", || {
        cluster.status_on(2)["jobs"][0]["hosts"].as_array().is_some_and(|hosts| hosts.len() == 3)
    });
    assert_eq!(cluster.status_on(1)["jobs"][0]["name"], "lab");
    let seen = run(&mut cluster.landeck_on(2, &["ps"]));
    assert!(seen.assert(0, &[]).out.contains("lab, 0 processes on 3 hosts"), "{}", seen.out);
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
    // Nobody is there any more, so the host may go, and the machine.
    wait_until("nobody is in it", || cluster.jobs_on(0).is_empty());
    run(&mut cluster.landeck(&["vm", "remove", "n3"])).assert(0, &[]);
    run(&mut cluster.landeck(&["vm", "stop"])).assert(0, &[]);
}
