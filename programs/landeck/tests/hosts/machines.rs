//! Machines that stay: hosts that come, jobs that share them, launchers, daemons and founders that die.

use super::members::is_member;
use super::*;

/// Hosts of a test, of which the first ones are a machine called lab.
fn lab(test: &str, hosts: usize, others: &[&str]) -> Option<Cluster> {
    let cluster = Cluster::wished(test, &Wish::hosts(hosts))?;
    let start = ["vm", "start", "--name", "lab", "--rsh", "landeck-rsh", "--host-timeout", "0.5"];
    run(&mut cluster.landeck(&[&start, others].concat())).assert(0, &[]);
    Some(cluster)
}

impl Cluster {
    /// `landeck` with arguments on a host.
    fn landeck_on(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = self.hosts.command(host, landeck());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// The hosts of a job of so many `hostname`, which is started on a host.
    fn where_on(&self, host: usize, options: &[&str]) -> Vec<String> {
        let ended = run(&mut self.landeck_on(host, &[&["run"], options, &["hostname"]].concat()));
        ended.assert(0, &[]).sorted().into_iter().map(str::to_owned).collect()
    }

    /// The state of the machine, as a host tells it.
    fn status_on(&self, host: usize) -> serde_json::Value {
        let ended = run(&mut self.landeck_on(host, &["vm", "status", "--json"]));
        serde_json::from_str(&ended.assert(0, &[]).out).unwrap()
    }

    /// The cores of a host. All have the same.
    fn cores(&self) -> usize {
        self.status_on(0)["hosts"][0]["cores"].as_u64().unwrap() as usize
    }

    /// So many processes that a job has all cores of so many hosts, as a word.
    fn all_of(&self, hosts: usize) -> String {
        (hosts * self.cores()).to_string()
    }

    /// The words on a host in the state of the machine, and its processes.
    fn state_of(&self, host: &str) -> (String, u64) {
        let status = self.status_on(0);
        let all = status["hosts"].as_array().unwrap();
        let it = all.iter().find(|known| known["name"] == host).unwrap();
        (it["state"].as_str().unwrap().to_owned(), it["processes"].as_u64().unwrap())
    }

    /// Ends the machine, and checks that nothing is left of it.
    fn stop_lab(&self) {
        run(&mut self.landeck(&["vm", "stop"])).assert(0, &[]);
        self.assert_nothing_left();
    }

    /// Starts a job of so many shells that say "ready", and then run until there is `/tmp/go` on their host.
    fn start_waiting(&self, host: usize, name: &str, processes: &str) -> Running {
        let script = "echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; echo end";
        let arguments = ["run", "--name", name, "-n", processes, "sh", "-c", script];
        let running = start(&mut self.landeck_on(host, &arguments));
        let count: usize = processes.parse().unwrap();
        running.out.wait_for("its processes", |text| text.matches("ready\n").count() == count);
        running
    }
}

/// Two jobs of one process each on one host may use no processor in common.
fn jobs_have_cores_of_their_own(cluster: &Cluster) {
    let allowed = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.trim().to_owned()
    };
    cluster.shell(0, "rm -f /tmp/go");
    let script =
        "grep Cpus_allowed_list /proc/self/status; until [ -e /tmp/go ]; do sleep 0.05; done";
    let first = start(&mut cluster.landeck(&["run", "-n", "1", "sh", "-c", script]));
    first.out.wait_for("its processors", |text| text.ends_with('\n'));
    let show = ["run", "-n", "1", "grep", "Cpus_allowed_list", "/proc/self/status"];
    let second = run(&mut cluster.landeck(&show));
    assert_ne!(allowed(&second.assert(0, &[]).out), allowed(&first.out.text()));
    let alone = run(&mut cluster.landeck(&[&["run", "--no-machine"], &show[1..]].concat()));
    assert_ne!(allowed(&alone.assert(0, &[]).out), allowed(&second.out), "not all of them");
    cluster.shell(0, "touch /tmp/go");
    first.end().assert(0, &[]);
}

#[test]
fn a_day_of_a_machine() {
    let Some(cluster) = lab("a_day_of_a_machine", 3, &["n2"]) else { return };
    let taken = run(&mut cluster.landeck(&["vm", "start", "--name", "lab"]));
    taken.assert(125, &["a machine lab of this user is on this host already"]);
    // The own host comes first, and then free processors.
    let (cores, all, both) = (cluster.cores(), cluster.all_of(1), cluster.all_of(2));
    assert_eq!(cluster.where_on(1, &["-n", &all]), vec!["n2"; cores]);
    assert_eq!(
        cluster.where_on(0, &["-n", &both]),
        [vec!["n1"; cores], vec!["n2"; cores]].concat()
    );
    let heat = cluster.start_waiting(0, "heat", &both);
    assert_eq!(cluster.state_of("n2"), ("up".to_owned(), cores as u64));
    let joined = run(&mut cluster.landeck_on(1, &["vm", "add", "--rsh", "landeck-rsh", "n3"]));
    assert!(joined.assert(0, &[]).out.starts_with("n3 has joined ("), "{joined:?}");
    let again = run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"]));
    assert_eq!(again.assert(0, &[]).out, "n3 is in lab already\n");
    assert_eq!(cluster.where_on(0, &["-n", &all]), vec!["n3"; cores]);
    run(&mut cluster.landeck_on(2, &["run", "--exclusive", "-n", "1", "true"])).assert(0, &[]);
    let other = cluster.start_waiting(2, "other", "1");
    let refused = run(&mut cluster.landeck(&["run", "--exclusive", "-n", "1", "true"]));
    refused.assert(125, &["no host of lab is free: ", "heat on n1 n2", "other on n3"]);
    // Full hosts are oversubscribed.
    assert_eq!(cluster.where_on(0, &["-n", &(3 * cores).to_string()]).len(), 3 * cores);
    let names = |status: serde_json::Value| {
        let jobs = status["jobs"].as_array().unwrap().clone();
        jobs.iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(cluster.status_on(2)), ["heat", "other"]);
    // A host without a process of a job sees it whole.
    let listed = run(&mut cluster.landeck_on(2, &["ps"]));
    let heat_line = format!("heat, {both} processes on 2 hosts: ");
    assert!(listed.assert(0, &[]).out.contains(&heat_line), "{listed:?}");
    assert!(listed.out.contains("other, 1 process: "), "{listed:?}");
    let why = run(&mut cluster.landeck_on(2, &["why", "heat"]));
    assert!(why.out.starts_with("heat (") && why.out.contains(" on n1 and "), "{why:?}");
    let log = run(&mut cluster.landeck_on(2, &["why", "heat", "--log"]));
    assert!(log.out.contains("n1: ") && log.out.contains("n2: "), "{log:?}");
    let stays = run(&mut cluster.landeck_on(2, &["vm", "stop"]));
    stays.assert(1, &["heat runs (n1 n2)", "other runs (n3)", "--now ends jobs"]);
    (0..3).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    assert_eq!(heat.end().assert(0, &[]).out.matches("end\n").count(), 2 * cores);
    other.end().assert(0, &[]);
    assert_eq!(names(cluster.status_on(0)), [""; 0]);
    if cores > 1 {
        jobs_have_cores_of_their_own(&cluster);
    }
    cluster.stop_lab();
    run(&mut cluster.landeck(&["vm", "status"])).assert(125, &["no machine of this user"]);
}

#[test]
fn a_launcher_that_dies_ends_its_job_alone() {
    let Some(cluster) = lab("a_launcher_that_dies_ends_its_job_alone", 2, &["n2"]) else { return };
    let other = cluster.start_waiting(1, "other", "1");
    let all = cluster.all_of(2);
    let script = "echo ready; exec sleep 99";
    let running = start(&mut cluster.landeck(&["run", "-n", &all, "sh", "-c", script]));
    let count = 2 * cluster.cores();
    running.out.wait_for("its processes", |text| text.matches("ready\n").count() == count);
    cluster.signal(0, "landeck", "KILL");
    drop(running.end());
    for host in 0..2 {
        wait_until("its processes end", || cluster.named(host, "sleep").len() <= host);
    }
    wait_until("its processors are free", || cluster.state_of("n1").1 == 0);
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    other.end().assert(0, &[]);
    cluster.stop_lab();
}

#[test]
fn a_host_that_is_lost_ends_the_jobs_there_and_no_others() {
    let test = "a_host_that_is_lost_ends_the_jobs_there_and_no_others";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    // The launcher of one is on the host that dies, one has processes there, and one has nothing to do with it.
    let there = cluster.start_waiting(2, "there", "1");
    let away = cluster.start_waiting(0, "away", "1");
    let (all, count) = (cluster.all_of(3), 3 * cluster.cores());
    let script = "echo ready; exec sleep 99";
    let mut over =
        cluster.landeck_on(1, &["run", "--map-by", "node", "-n", &all, "sh", "-c", script]);
    let over = start(&mut over);
    over.out.wait_for("its processes", |text| text.matches("ready\n").count() == count);
    cluster.signal(2, "landeckd", "KILL");
    over.end().assert(137, &["Host n3 is lost"]).within(Duration::from_secs(50));
    there.end().assert(137, &["The daemon of this host (landeckd) has ended"]);
    wait_until("the machine knows it", || cluster.state_of("n3") == ("lost".to_owned(), 0));
    assert_eq!(cluster.state_of("n2"), ("up".to_owned(), 0));
    cluster.shell(0, "touch /tmp/go");
    away.end().assert(0, &[]);
    assert!(!cluster.where_on(1, &["-n", &all]).contains(&"n3".to_owned()));
    cluster.stop_lab();
}

#[test]
fn a_machine_ends_with_its_founder_and_when_it_is_stopped() {
    let test = "a_machine_ends_with_its_founder_and_when_it_is_stopped";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    let running = cluster.start_waiting(1, "long", &cluster.all_of(2));
    let stopped = run(&mut cluster.landeck_on(1, &["vm", "stop", "--now"]));
    stopped.assert(0, &[]).within(Duration::from_secs(50));
    running.end().assert(137, &["lab was stopped"]);
    cluster.assert_nothing_left();
    let start = ["vm", "start", "--name", "lab", "--rsh", "landeck-rsh", "n2"];
    run(&mut cluster.landeck(&start)).assert(0, &[]);
    let running = cluster.start_waiting(1, "long", &cluster.all_of(2));
    cluster.signal(0, "landeckd", "KILL");
    assert!(running.end().status.code().is_some_and(|code| code != 0));
    cluster.assert_nothing_left();
}

#[test]
fn a_host_that_does_not_come_is_named_and_the_others_begin() {
    let test = "a_host_that_does_not_come_is_named_and_the_others_begin";
    let Some(cluster) = Cluster::pair(test) else { return };
    let start = ["vm", "start", "--name", "lab", "--rsh", "landeck-rsh"];
    let all = run(&mut cluster.landeck(&[&start[..], &["--all", "n2", "n9"]].concat()));
    all.assert(1, &["host n9", "lab was not started"]);
    cluster.assert_nothing_left();
    let some = run(&mut cluster.landeck(&[&start[..], &["n2", "n9"]].concat()));
    some.assert(1, &["host n9"]);
    assert!(some.out.starts_with("lab: 2 hosts, "), "{some:?}");
    let unknown = run(&mut cluster.landeck(&["run", "--machine", "other", "true"]));
    unknown.assert(125, &["no machine other", "there is lab"]);
    let name = run(&mut cluster.landeck(&["vm", "start", "--name", "a/b"]));
    name.assert(125, &["\"a/b\" is no name of a machine"]);
    let second = run(&mut cluster.landeck(&["vm", "start", "--name", "second"]));
    second.assert(0, &[]);
    let senseless = ["run", "--exclusive", "--host", "n1,n2", "true"];
    run(&mut cluster.landeck(&senseless)).assert(2, &["--exclusive", "--host"]);
    let unclear = run(&mut cluster.landeck(&["run", "true"]));
    unclear.assert(125, &["several machines (lab, second)", "--machine", "LANDECK_MACHINE"]);
    assert_eq!(cluster.where_on(0, &["--no-machine", "-n", "1"]), ["n1"]);
    assert_eq!(cluster.where_on(0, &["--machine", "second", "-n", "1"]), ["n1"]);
    run(&mut cluster.landeck(&["vm", "stop", "--machine", "second"])).assert(0, &[]);
    cluster.stop_lab();
}

#[test]
fn hosts_are_drained_resumed_and_removed() {
    let test = "hosts_are_drained_resumed_and_removed";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    let vm = |host: usize, words: &[&str]| {
        run(&mut cluster.landeck_on(host, &[&["vm"], words].concat()))
    };
    vm(1, &["drain", "n9"]).assert(1, &["n9 is no host of lab, which has n1, n2"]);
    let running = cluster.start_waiting(1, "heat", "2");
    vm(0, &["drain", "n2", "--reason", "new disk"]).assert(0, &[]);
    let shown = vm(1, &["status"]);
    assert!(shown.out.contains("draining") && shown.out.contains("new disk"), "{shown:?}");
    assert_eq!(cluster.where_on(1, &["-n", "2"]), ["n1"; 2], "nothing more comes to n2");
    vm(0, &["resume", "n2"]).assert(0, &[]);
    let all = cluster.all_of(2);
    assert!(cluster.where_on(1, &["-n", &all]).contains(&"n2".to_owned()));
    let founder = vm(1, &["remove", "n1"]);
    founder.assert(1, &["lab ends with n1, its founder: stop it"]);
    // It waits for the job there, which has its launcher on the host as well.
    let removing = start(&mut cluster.landeck(&["vm", "remove", "n2"]));
    removing.err.wait_for("the job", |text| text.contains("waiting: heat runs (n2)"));
    cluster.shell(1, "touch /tmp/go");
    running.end().assert(0, &[]);
    removing.end().assert(0, &["--now ends jobs"]);
    cluster.assert_nothing_left_on(1);
    assert_eq!(cluster.where_on(0, &["-n", &all]), vec!["n1"; 2 * cluster.cores()]);
    // It comes back, and is removed with the job there.
    vm(0, &["add", "--rsh", "landeck-rsh", "n2"]).assert(0, &[]);
    assert_eq!(cluster.status_on(0)["hosts"].as_array().unwrap().len(), 2);
    let script = "echo ready; exec sleep 99";
    let running = start(&mut cluster.landeck(&["run", "-n", &all, "sh", "-c", script]));
    let count = 2 * cluster.cores();
    running.out.wait_for("its processes", |text| text.matches("ready\n").count() == count);
    vm(0, &["remove", "--now", "n2"]).assert(0, &[]);
    running.end().assert(137, &["host n2 was removed from lab"]);
    cluster.assert_nothing_left_on(1);
    let log = vm(0, &["log"]);
    assert!(log.assert(0, &[]).out.contains("n2 joins as host"), "{log:?}");
    cluster.stop_lab();
}

#[test]
fn a_job_that_waits_begins_when_hosts_are_free() {
    let test = "a_job_that_waits_begins_when_hosts_are_free";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    let first = cluster.start_waiting(0, "first", &cluster.all_of(2));
    let alone = ["run", "--exclusive", "--wait", "-n", "1", "hostname"];
    let mut waiting = start(&mut cluster.landeck_on(1, &alone));
    thread::sleep(Duration::from_millis(300));
    assert!(waiting.goes_on(), "{}", waiting.err.text());
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    first.end().assert(0, &[]);
    assert_eq!(waiting.end().assert(0, &[]).out, "n2\n");
    cluster.stop_lab();
}

#[test]
fn with_notify_the_others_go_on_without_a_lost_host() {
    let test = "with_notify_the_others_go_on_without_a_lost_host";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let script = "echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; echo end";
    // The machine has all of its hosts in such a job.
    let cores = cluster.cores();
    let (all, rest) = (3 * cores, 2 * cores);
    let slots = format!("n1:{cores},n2:{cores},n3:{cores}");
    let made = ["--host", &slots, "--rsh", "landeck-rsh", "--host-timeout", "0.5"];
    for way in [&[][..], &made[..]] {
        (0..3).for_each(|host| drop(cluster.shell(host, "rm -f /tmp/go")));
        let count = all.to_string();
        let how = ["run", "-n", &count, "--on-failure", "notify"];
        let line = [&how[..], way, &["sh", "-c", script]].concat();
        let running = start(&mut cluster.landeck(&line));
        running.out.wait_for("its processes", |text| text.matches("ready\n").count() == all);
        // The machine that stays is smaller from then on, and the other one is on the rest of the hosts.
        let host = if way.is_empty() { 2 } else { 1 };
        cluster.signal(host, "landeckd", "KILL");
        let name = cluster.hosts.name(host);
        let said = [format!("Host {name} is lost: "), format!("; {rest} processes go on.")];
        running.err.wait_for("the loss", |text| said.iter().all(|said| text.contains(said)));
        (0..3).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
        let ended = running.end();
        assert_eq!(ended.assert(137, &["Exit code 137."]).out.matches("end\n").count(), rest);
    }
    run(&mut cluster.landeck(&["vm", "stop"])).assert(0, &[]);
    cluster.assert_nothing_left();
}

/// A process of a job on two hosts, which sees a third one come and leave.
fn see_a_host_come_and_leave() {
    let job = landeck::Job::join().unwrap();
    let until = |what: &str, is_it: &dyn Fn(&[landeck::HostOfJob]) -> bool| {
        let mut hosts = job.hosts();
        while !is_it(&hosts) {
            hosts = job.hosts_after_within(&hosts, Duration::from_secs(60)).unwrap();
        }
        println!("rank {} sees {what}", job.world().rank());
        hosts
    };
    until("two", &|hosts| hosts.len() == 2 && hosts.iter().all(landeck::HostOfJob::takes_part));
    let hosts = until("three", &|hosts| hosts.len() == 3);
    let third = &hosts[2];
    assert!(third.is_up() && !third.takes_part() && third.processes() == 0, "{third:?}");
    assert_eq!(third.processors(), hosts[0].processors(), "{hosts:?}");
    let refused = job.start_on(third, &landeck::Executable::new("true")).unwrap_err();
    assert!(refused.to_string().contains("has no part of this job"), "{refused}");
    until("it leave", &|hosts| hosts.len() == 3 && !hosts[2].is_up());
    job.leave().unwrap();
}

#[test]
fn a_job_sees_a_host_come_and_leave() {
    const TEST: &str = "machines::a_job_sees_a_host_come_and_leave";
    if is_member() {
        return see_a_host_come_and_leave();
    }
    let Some(cluster) = lab("a_job_sees_a_host_come_and_leave", 3, &["n2"]) else { return };
    let program = std::env::current_exe().unwrap();
    let program = [program.to_str().unwrap(), TEST, "--exact", "--nocapture", "--test-threads=1"];
    let run_job = [&["run", "-n", "2", "--map-by", "node"], &program[..]].concat();
    let job = start(&mut cluster.landeck(&run_job));
    let both_see = |what: &str| {
        let line = format!("sees {what}\n");
        job.out.wait_for(what, |text| text.matches(&line).count() == 2);
    };
    both_see("two");
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"])).assert(0, &[]);
    both_see("three");
    run(&mut cluster.landeck(&["vm", "remove", "n3"])).assert(0, &[]);
    both_see("it leave");
    job.end().assert(0, &[]);
    cluster.stop_lab();
}
