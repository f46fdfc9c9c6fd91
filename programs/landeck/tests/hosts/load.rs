//! The load of the hosts of a machine, which their helpers publish, and the groups that helpers serve.

use landeck::{GroupOptions, Job, LoadReport, Message, Options};

use super::machines::lab;
use super::own_job::{LONG, role, shell};
use super::*;

/// The name of a helper, as the kernel has it.
const HELPER: &str = "landeck-helper";

/// Joins the machine's own job, and says so.
fn join() -> Job {
    let job = Job::join_machine(Options::default()).unwrap();
    println!("pid {} is there", std::process::id());
    job
}

/// Says of which hosts it hears, until the job ends. The first text in the group is no load.
fn hear_loads() {
    let job = join();
    let mut inbox = job.create_mailbox().unwrap();
    let group = job.load_group().unwrap();
    let member = group.join(&mut inbox).unwrap();
    member.broadcast(Message::new().pack_text("landeck-load 1 host=n9 number=x")).unwrap();
    while let Ok(mut message) = inbox.retrieve() {
        match message.unpack_text().unwrap().parse::<LoadReport>() {
            Ok(report) => {
                assert!(report.cores > 0 && report.load.memory_kib > 0, "{report}");
                println!("heard {}", report.host);
            }
            Err(error) => println!("wrong: {error}"),
        }
    }
}

impl Cluster {
    /// Waits until a host has another helper than this one, and returns it.
    fn helper_after(&self, host: usize, before: Option<u32>) -> u32 {
        let mut found = None;
        wait_until("there is a helper", || {
            found = self.named(host, HELPER).into_iter().find(|pid| Some(*pid) != before);
            found.is_some()
        });
        found.unwrap()
    }

    /// Kills a process of the machine's own job on a host.
    fn kill(&self, host: usize, process: Running) {
        let said = process.out.text();
        let pid = said.split_once("pid ").and_then(|(_, rest)| rest.split(' ').next());
        self.signal_pid(host, pid.unwrap().parse().unwrap(), "KILL");
        drop(process.end());
    }

    /// Kills the helper of a host, and waits for the next one.
    fn replace_helper(&self, host: usize) {
        let before = self.helper_after(host, None);
        self.signal_pid(host, before, "KILL");
        self.helper_after(host, Some(before));
    }
}

/// Waits until a process has heard of hosts so often behind what it has said so far.
fn hears(process: &Running, hosts: &[&str], times: usize) {
    let said = process.out.text().len();
    process.out.wait_for(&format!("{hosts:?}"), |text| {
        hosts.iter().all(|host| text[said..].matches(&format!("heard {host}\n")).count() >= times)
    });
}

#[test]
fn each_host_of_a_machine_tells_its_load_to_a_group() {
    const TEST: &str = "load::each_host_of_a_machine_tells_its_load_to_a_group";
    if role().is_some() {
        return hear_loads();
    }
    let Some(cluster) = lab("each_host_of_a_machine_tells_its_load_to_a_group", 3, &["n2"]) else {
        return;
    };
    assert_eq!(cluster.named(0, HELPER), [0; 0], "nobody is in the machine's own job");
    let reader = start(&mut shell(&cluster, 1, TEST, "reader"));
    hears(&reader, &["n1", "n2"], 1);
    assert!(reader.out.text().contains("wrong: a load in the group landeck.load has \"number=x\""));
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"])).assert(0, &[]);
    hears(&reader, &["n1", "n2", "n3"], 1);
    // Helpers are nobody's processes.
    assert_eq!(cluster.jobs_on(0), ["lab"]);
    let status = cluster.status_on(2);
    let counts = status["hosts"].as_array().unwrap().iter().map(|host| host["processes"].clone());
    assert_eq!(counts.collect::<Vec<_>>(), [0, 1, 0]);
    let seen = run(&mut cluster.landeck_on(2, &["ps"]));
    assert!(seen.assert(0, &[]).out.contains("lab, 1 guest on 3 hosts"), "{}", seen.out);
    run(&mut cluster.landeck(&["vm", "stop"])).assert(1, &["lab runs (n2)"]);
    // The group lives on the host of the first helper, and the next one serves it.
    cluster.replace_helper(0);
    hears(&reader, &["n1", "n2", "n3"], 1);
    run(&mut cluster.landeck(&["vm", "remove", "n3"])).assert(0, &[]);
    wait_until("its helper has ended", || cluster.named(2, HELPER).is_empty());
    hears(&reader, &["n1", "n2"], 1);
    let said = reader.out.text().len();
    hears(&reader, &["n1", "n2"], 2);
    assert!(!reader.out.text()[said..].contains("heard n3"));
    run(&mut cluster.landeck(&["end", "lab"])).assert(0, &[]);
    reader.end().assert(0, &[]);
    wait_until("it is over", || (0..2).all(|host| cluster.named(host, HELPER).is_empty()));
    // Helpers keep no machine from its end.
    let reader = start(&mut shell(&cluster, 0, TEST, "reader"));
    hears(&reader, &["n1", "n2"], 1);
    cluster.kill(0, reader);
    wait_until("nobody is in it", || cluster.jobs_on(1).is_empty());
    cluster.stop_lab();
}

/// Makes a group that lasts, joins it, and stays a member.
fn make_town() {
    let job = join();
    let group = job.create_group("town", GroupOptions::default().persistent(true)).unwrap();
    let mut inbox = job.create_mailbox().unwrap();
    let member = group.join(&mut inbox).unwrap();
    println!("made");
    while inbox.retrieve().is_ok() {}
    drop(member);
}

/// Makes a group that lasts, and leaves.
fn make_square() {
    let job = join();
    job.create_group("square", GroupOptions::default().persistent(true)).unwrap();
    job.leave().unwrap();
}

/// Joins the town, and says what it hears until that fails.
fn listen() {
    let job = join();
    let mut inbox = job.create_mailbox().unwrap();
    let member = job.open_group("town").unwrap().join(&mut inbox).unwrap();
    println!("member {}", member.id());
    loop {
        match inbox.retrieve() {
            Ok(mut message) => println!("heard {}", message.unpack_text().unwrap()),
            Err(error) => return println!("error: {error}"),
        }
    }
}

/// Says something to a group as no member of it. While the group has no server, its name is not found.
fn tell(group: &str, text: &str) {
    let job = join();
    let until = Instant::now() + LONG;
    let open = loop {
        match job.open_group(group) {
            Err(error) if Instant::now() > until => panic!("{error}"),
            Err(_) => thread::sleep(Duration::from_millis(10)),
            Ok(open) => break open,
        }
    };
    open.broadcast(Message::new().pack_text(text)).unwrap();
    job.leave().unwrap();
}

/// Says why the town is not reached.
fn miss_town() {
    let job = join();
    println!("missed: {}", job.open_group("town").unwrap_err());
    job.leave().unwrap();
}

#[test]
fn a_group_of_the_machine_outlives_all_processes_of_its_host() {
    const TEST: &str = "load::a_group_of_the_machine_outlives_all_processes_of_its_host";
    match role().as_deref() {
        Some("maker") => return make_town(),
        Some("square") => return make_square(),
        Some("listener") => return listen(),
        Some("lost") => return miss_town(),
        Some(words) => {
            let (group, text) = words.split_once(' ').unwrap();
            return tell(group, text);
        }
        None => {}
    }
    let test = "a_group_of_the_machine_outlives_all_processes_of_its_host";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let maker = start(&mut shell(&cluster, 1, TEST, "maker"));
    maker.out.wait_for("the group", |text| text.contains("made"));
    let listener = start(&mut shell(&cluster, 2, TEST, "listener"));
    listener.out.wait_for("it is a member", |text| text.contains("member 1"));
    let say = |words: &str| {
        run(&mut shell(&cluster, 0, TEST, words)).assert(0, &[]);
    };
    let hears =
        |text: &str| listener.out.wait_for(text, |all| all.contains(&format!("heard {text}\n")));
    say("town first");
    hears("first");
    // Nobody of the group's host is in it, nor anywhere else.
    cluster.kill(1, maker);
    say("town second");
    hears("second");
    run(&mut shell(&cluster, 1, TEST, "square")).assert(0, &[]);
    say("square alone");
    // The helper serves it, and the next helper.
    cluster.replace_helper(1);
    say("town third");
    hears("third");
    say("square still there");
    // The host of the group goes.
    cluster.lose(1);
    let ended = listener.end();
    let error = "error: retrieve: the group \"town\" lives on n2 and cannot be reached: ";
    assert!(ended.assert(0, &[]).out.contains(error), "{}", ended.out);
    let missed = run(&mut shell(&cluster, 0, TEST, "lost"));
    assert!(missed.assert(0, &[]).out.contains("missed: open_group: "), "{}", missed.out);
    cluster.stop_lab();
}

#[test]
fn by_load_a_job_goes_to_the_host_that_is_least_busy() {
    let test = "by_load_a_job_goes_to_the_host_that_is_least_busy";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    // Hosts of one kernel have one load, so these are told another one.
    for (host, running) in [(0, 41), (1, 1)] {
        let line = format!("{running}.00 1.00 1.00 {running}/100 1");
        cluster.shell(
            host,
            &format!("echo {line} >/tmp/load && mount --bind /tmp/load /proc/loadavg"),
        );
    }
    let running = |host: usize| cluster.status_on(0)["hosts"][host]["load"]["running"].as_f64();
    let difference = || Some(running(0)? - running(1)?);
    wait_until("the founder knows it", || difference() > Some(10.0));
    assert_eq!(cluster.where_on(0, &["-n", "1"]), ["n1"]);
    assert_eq!(cluster.where_on(0, &["-n", "1", "--map-by", "load"]), ["n2"]);
    let shown = run(&mut cluster.landeck_on(1, &["vm", "top", "--once"]));
    let hosts = shown.assert(0, &[]).out.lines().skip(2);
    let hosts = hosts.map(|line| line.split_whitespace().next().unwrap());
    assert_eq!(hosts.collect::<Vec<_>>(), ["n1", "n2"], "{}", shown.out);
    let watching = start(&mut cluster.landeck_on(1, &["vm", "top"]));
    watching.out.wait_for("two tables", |text| text.matches("lab: 2 hosts").count() >= 2);
    cluster.stop_lab();
    watching.end().assert(0, &["lab has ended"]);
}
