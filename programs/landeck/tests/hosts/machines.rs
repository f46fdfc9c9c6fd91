//! Machines that stay: hosts that come, jobs that share them, launchers, daemons and founders that die.

use super::members::is_member;
use super::*;

/// Hosts of a test, of which the first ones are a machine called lab.
pub(crate) fn lab(test: &str, hosts: usize, others: &[&str]) -> Option<Cluster> {
    let cluster = Cluster::wished(test, &Wish::hosts(hosts))?;
    let start = ["vm", "start", "--name", "lab", "--rsh", "landeck-rsh", "--host-timeout", "0.5"];
    run(&mut cluster.landeck(&[&start, others].concat())).assert(0, &[]);
    Some(cluster)
}

impl Cluster {
    /// `landeck` with arguments on a host.
    pub(crate) fn landeck_on(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = self.hosts.command(host, landeck());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// The hosts of a job of so many `hostname`, which is started on a host.
    pub(super) fn where_on(&self, host: usize, options: &[&str]) -> Vec<String> {
        let ended = run(&mut self.landeck_on(host, &[&["run"], options, &["hostname"]].concat()));
        ended.assert(0, &[]).sorted().into_iter().map(str::to_owned).collect()
    }

    /// The state of the machine, as a host tells it.
    pub(super) fn status_on(&self, host: usize) -> serde_json::Value {
        let ended = run(&mut self.landeck_on(host, &["vm", "status", "--json"]));
        serde_json::from_str(&ended.assert(0, &[]).out).unwrap()
    }

    /// The cores of a host. All have the same.
    pub(super) fn cores(&self) -> usize {
        self.status_on(0)["hosts"][0]["cores"].as_u64().unwrap() as usize
    }

    /// So many processes that a job has all cores of so many hosts, as a word.
    pub(super) fn all_of(&self, hosts: usize) -> String {
        (hosts * self.cores()).to_string()
    }

    /// The words on a host in the state of the machine, and its processes.
    pub(super) fn state_of(&self, host: &str) -> (String, u64) {
        let status = self.status_on(0);
        let all = status["hosts"].as_array().unwrap();
        let it = all.iter().find(|known| known["name"] == host).unwrap();
        (it["state"].as_str().unwrap().to_owned(), it["processes"].as_u64().unwrap())
    }

    /// Detaches a job of so many sleeping processes on a host. Returns its output file there.
    fn detach(&self, host: usize, name: &str, processes: &str, options: &[&str]) -> String {
        let usual = ["run", "--detach", "--name", name, "-n", processes];
        let script = ["sh", "-c", "echo ready; exec sleep 299"];
        let ended = run(&mut self.landeck_on(host, &[&usual, options, &script].concat()));
        let said = &ended.assert(0, &[]).out;
        assert!(said.contains(&format!("End it by: landeck end {name}\n")), "{ended:?}");
        let (_, file) = said.split_once(". Output: ").unwrap();
        file.lines().next().unwrap().to_owned()
    }

    /// The jobs of the machine, as a host tells it.
    pub(super) fn jobs_on(&self, host: usize) -> Vec<String> {
        let status = self.status_on(host);
        let jobs = status["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends the machine, and checks that nothing is left of it.
    pub(crate) fn stop_lab(&self) {
        run(&mut self.landeck(&["vm", "stop"])).assert(0, &[]);
        self.assert_nothing_left();
    }

    /// Starts a job of so many shells that say "ready", and then run until there is `/tmp/go` on their host.
    pub(crate) fn start_waiting(&self, host: usize, name: &str, processes: &str) -> Running {
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
    // The founder hears of the end of a job on another host after its launcher has ended.
    wait_until("its processors are free", || cluster.state_of("n2").1 == 0);
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
    // The same host under another name, which this remote shell knows.
    let other = "printf '#!/bin/sh\nh=$1; shift; exec landeck-rsh ${h%%-ib} \"$@\"\n' >/tmp/rsh; chmod +x /tmp/rsh";
    cluster.shell(0, other);
    let again = run(&mut cluster.landeck(&["vm", "add", "--rsh", "/tmp/rsh", "n3-ib"]));
    assert_eq!(again.assert(0, &[]).out, "n3-ib is n3, which is in lab\n");
    assert_eq!(cluster.where_on(0, &["-n", &all]), vec!["n3"; cores]);
    run(&mut cluster.landeck_on(2, &["run", "--exclusive", "-n", "1", "true"])).assert(0, &[]);
    let other = cluster.start_waiting(2, "other", "1");
    let refused = run(&mut cluster.landeck(&["run", "--exclusive", "-n", "1", "true"]));
    refused.assert(125, &["no host of lab is free: ", "heat on n1 n2", "other on n3"]);
    // Full hosts are oversubscribed.
    assert_eq!(cluster.where_on(0, &["-n", &(3 * cores).to_string()]).len(), 3 * cores);
    assert_eq!(cluster.jobs_on(2), ["heat", "other"]);
    // A host without a process of a job sees it whole.
    let listed = run(&mut cluster.landeck_on(2, &["ps"]));
    let heat_line = format!("heat, {both} processes on 2 hosts: ");
    assert!(listed.assert(0, &[]).out.contains(&heat_line), "{listed:?}");
    assert!(listed.out.contains("other, 1 process: "), "{listed:?}");
    let why = run(&mut cluster.landeck_on(2, &["why", "heat"]));
    assert!(["heat (", " on n1", " on n2"].iter().all(|words| why.out.contains(words)), "{why:?}");
    let log = run(&mut cluster.landeck_on(2, &["why", "heat", "--log"]));
    assert!(log.out.contains("n1: ") && log.out.contains("n2: "), "{log:?}");
    let stays = run(&mut cluster.landeck_on(2, &["vm", "stop"]));
    stays.assert(1, &["heat runs (n1 n2)", "other runs (n3)", "--now ends jobs"]);
    (0..3).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    assert_eq!(heat.end().assert(0, &[]).out.matches("end\n").count(), 2 * cores);
    other.end().assert(0, &[]);
    wait_until("the founder knows it", || cluster.jobs_on(0).is_empty());
    if cores > 1 {
        jobs_have_cores_of_their_own(&cluster);
    }
    cluster.stop_lab();
    run(&mut cluster.landeck(&["vm", "status"])).assert(125, &["no machine of this user"]);
}

#[test]
fn the_state_has_load_and_links_and_is_watched_until_the_machine_ends() {
    let test = "the_state_has_load_and_links_and_is_watched_until_the_machine_ends";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    let host = |name: &str| {
        let status = cluster.status_on(1);
        let all = status["hosts"].as_array().unwrap();
        all.iter().find(|host| host["name"] == name).unwrap().clone()
    };
    for name in ["n1", "n2"] {
        wait_until("its load", || host(name)["load"]["memory_bytes"].as_u64() > Some(1 << 20));
    }
    assert_eq!(cluster.status_on(0)["links"], serde_json::json!([]), "no job has measured one");
    // A job of the host that is not the founder has its links measured.
    run(&mut cluster.landeck_on(1, &["run", "-n", &cluster.all_of(2), "true"])).assert(0, &[]);
    let links = cluster.status_on(1)["links"].clone();
    assert_eq!(links[0]["hosts"], serde_json::json!(["n1", "n2"]), "{links}");
    assert!(links[0]["latency_s"].as_f64().unwrap() > 0.0, "{links}");
    // By load a job goes somewhere, and elsewhere it is no job.
    assert_eq!(cluster.where_on(0, &["--map-by", "load", "-n", "2"]).len(), 2);
    let away = ["run", "--no-machine", "--map-by", "load", "true"];
    run(&mut cluster.landeck(&away)).assert(2, &["--map-by load", "landeck vm start"]);
    let watching = start(&mut cluster.landeck_on(1, &["vm", "status", "--watch"]));
    watching.out.wait_for("two tables", |text| text.matches("lab: 2 hosts").count() >= 2);
    let lines = start(&mut cluster.landeck(&["vm", "status", "--watch", "--json"]));
    lines.out.wait_for("two lines", |text| text.lines().count() >= 2);
    cluster.stop_lab();
    watching.end().assert(0, &["lab has ended"]);
    let ended = lines.end();
    for line in ended.assert(0, &["lab has ended"]).out.lines() {
        let status: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(status["hosts"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_machine_of_one_host_listens_on_no_address() {
    let test = "a_machine_of_one_host_listens_on_no_address";
    let Some(cluster) = lab(test, 2, &[]) else { return };
    let sockets = || {
        let tables = "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6";
        let text = cluster.shell(0, tables);
        // Connections have another state; 0A listens, and 07 is a socket for datagrams.
        let is_open = |line: &&str| matches!(line.split_whitespace().nth(3), Some("0A" | "07"));
        text.lines().filter(is_open).count()
    };
    assert_eq!(cluster.where_on(0, &["-n", "1"]), ["n1"]);
    assert_eq!(sockets(), 0);
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n2"])).assert(0, &[]);
    assert_eq!(sockets(), 2);
    assert!(cluster.where_on(0, &["-n", &cluster.all_of(2)]).contains(&"n2".to_owned()));
    cluster.stop_lab();
}

#[test]
fn a_logout_is_warned_of_and_takes_no_runtime_directory_along() {
    let test = "a_logout_is_warned_of_and_takes_no_runtime_directory_along";
    let Some(cluster) = Cluster::pair(test) else { return };
    // Each host has a /run of its own.
    let settings = "mkdir -p /run/systemd/seats /run/systemd/logind.conf.d && \
        printf '[Login]\nKillUserProcesses=yes\nKillExcludeUsers=\n' >/run/systemd/logind.conf.d/z.conf";
    (0..2).for_each(|host| drop(cluster.shell(host, settings)));
    cluster.shell(0, "mkdir -m 700 /tmp/runtime");
    let mut start =
        cluster.landeck(&["vm", "start", "--name", "lab", "--rsh", "landeck-rsh", "n2"]);
    let started = run(start.env("XDG_RUNTIME_DIR", "/tmp/runtime"));
    started.assert(0, &[]);
    let lingers = Path::new("/var/lib/systemd/linger/root").exists();
    for warned in ["landeckd: this system ends", "host n2: landeckd: this system ends"] {
        assert_eq!(started.err.contains(warned), !lingers, "{started:?}");
    }
    cluster.shell(0, "rm -r /tmp/runtime");
    assert_eq!(cluster.state_of("n2").0, "up");
    let job = cluster.start_waiting(1, "heat", &cluster.all_of(2));
    let listed = run(&mut cluster.landeck(&["ps"]));
    assert!(listed.assert(0, &[]).out.contains("heat, "), "{listed:?}");
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    job.end().assert(0, &[]);
    cluster.stop_lab();
}

#[test]
fn a_machine_without_ports_or_descriptors_says_so() {
    let test = "a_machine_without_ports_or_descriptors_says_so";
    let Some(cluster) = Cluster::pair(test) else { return };
    let start = |name: &str| {
        run(&mut cluster.landeck(&["vm", "start", "--name", name, "--port-range", "4000-4000"]))
    };
    let add = |name: &str| {
        run(&mut cluster.landeck(&["vm", "add", "--machine", name, "--rsh", "landeck-rsh", "n2"]))
    };
    start("first").assert(0, &[]);
    start("second").assert(0, &[]);
    add("first").assert(0, &[]);
    add("second").assert(1, &["host n2", "cannot listen on the ports 4000-4000 (--port-range)"]);
    for name in ["first", "second"] {
        run(&mut cluster.landeck(&["vm", "stop", "--machine", name])).assert(0, &[]);
    }
    // Callers that stay use up its descriptors.
    cluster.shell(0, &format!("ulimit -n 40; {} vm start --name lab", landeck().display()));
    let mut watching: Vec<Running> = Vec::new();
    let refused = loop {
        assert!(watching.len() < 40, "no caller was refused");
        let mut one = super::start(&mut cluster.landeck(&["vm", "status", "--watch"]));
        wait_until("an answer", || !one.out.text().is_empty() || !one.goes_on());
        match one.goes_on() {
            true => watching.push(one),
            false => break one.end(),
        }
    };
    refused.assert(125, &["serves no further command", "no file descriptor left of 40"]);
    cluster.signal(0, "landeck", "KILL");
    watching.into_iter().for_each(|one| drop(one.end()));
    cluster.stop_lab();
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
    // Nobody starts the daemon again for now.
    cluster.signal(2, "landeck-keeper", "STOP");
    cluster.signal(2, "landeckd", "KILL");
    over.end().assert(137, &["Host n3 is lost"]).within(Duration::from_secs(50));
    there.end().assert(137, &["The daemon of this host (landeckd) has ended"]);
    wait_until("the machine knows it", || cluster.state_of("n3") == ("lost".to_owned(), 0));
    // The founder hears of the end of a job after its launcher has ended.
    wait_until("its processors are free", || cluster.state_of("n2") == ("up".to_owned(), 0));
    cluster.shell(0, "touch /tmp/go");
    away.end().assert(0, &[]);
    assert!(!cluster.where_on(1, &["-n", &all]).contains(&"n3".to_owned()));
    cluster.signal(2, "landeck-keeper", "CONT");
    wait_until("n3 is back", || cluster.state_of("n3") == ("up".to_owned(), 0));
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
    cluster.kill_for_good(0);
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
    let running = cluster.start_waiting(1, "heat", &cluster.all_of(1));
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
    let given_up = ["run", "--exclusive", "--wait", "--name", "given-up", "-n", "1", "hostname"];
    let given_up = start(&mut cluster.landeck_on(1, &given_up));
    wait_until("it is found and ended", || {
        run(&mut cluster.landeck_on(1, &["end", "given-up"])).status.success()
    });
    let ended = given_up.end();
    assert!(!ended.status.success() && ended.out.is_empty(), "{}", ended.out);
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
        match way.is_empty() {
            true => cluster.lose(host),
            false => cluster.signal(host, "landeckd", "KILL"),
        }
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

#[test]
fn a_host_that_was_lost_comes_back_by_itself() {
    let test = "a_host_that_was_lost_comes_back_by_itself";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let cores = cluster.cores();
    let n3_of = |status: serde_json::Value| {
        let hosts = status["hosts"].as_array().unwrap().clone();
        assert_eq!(hosts.len(), 3, "{status}");
        hosts.into_iter().find(|host| host["name"] == "n3").unwrap()
    };
    let number = n3_of(cluster.status_on(0))["number"].clone();
    for (time, is_gone) in [("time 2", false), ("time 3", true)] {
        (0..3).for_each(|host| drop(cluster.shell(host, "rm -f /tmp/go")));
        let script = "echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; echo end";
        let all = cluster.all_of(3);
        let how = ["run", "--name", "s", "-n", &all, "--on-failure", "notify", "sh", "-c", script];
        let running = start(&mut cluster.landeck(&how));
        let count = 3 * cores;
        running.out.wait_for("its processes", |text| text.matches("ready\n").count() == count);
        cluster.hosts.cut(2).unwrap();
        running.err.wait_for("the loss", |text| text.contains("Host n3 is lost: "));
        assert_eq!(cluster.state_of("n3").0, "lost");
        wait_until("n3 tells that it is cut off", || {
            let said = run(&mut cluster.landeck_on(2, &["vm", "status"]));
            said.status.code() == Some(125) && said.err.contains("this host is cut off from lab")
        });
        if is_gone {
            // Its daemon has ended everything, and asks again and again.
            wait_until("n3 is gone", || cluster.state_of("n3").0 == "gone");
            wait_until("n3 asks its founder", || {
                let said = run(&mut cluster.landeck_on(2, &["vm", "status"]));
                said.err.contains("the founding host is not reached")
            });
        }
        cluster.hosts.join(2).unwrap();
        wait_until("n3 is back", || cluster.state_of("n3").0 == "up");
        let n3 = n3_of(cluster.status_on(2));
        assert_eq!(n3["number"], number, "it has its place");
        assert!(n3["why"].as_str().unwrap().contains(time), "{time}: {n3}");
        // It has no process of the job any more, and takes further ones.
        assert_eq!(cluster.where_on(0, &["-n", &cluster.all_of(1)]), vec!["n3"; cores]);
        (0..3).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
        let ended = running.end();
        assert_eq!(ended.assert(137, &[]).out.matches("end\n").count(), 2 * cores);
        // All hosts together carry a job.
        assert_eq!(cluster.where_on(1, &["-n", &all]).len(), count);
    }
    // A host that cannot hear of the machine's end finds nobody.
    cluster.hosts.cut(2).unwrap();
    run(&mut cluster.landeck(&["vm", "stop"])).assert(0, &[]);
    cluster.hosts.join(2).unwrap();
    cluster.assert_nothing_left();
    let left = cluster.shell(2, "ls /var/tmp/landeck-$(id -u)");
    assert!(!left.contains("lab@n3"), "{left}");
}

#[test]
fn jobs_of_a_machine_are_ended_from_each_of_its_hosts() {
    let test = "jobs_of_a_machine_are_ended_from_each_of_its_hosts";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let end = |host: usize, words: &[&str]| {
        run(&mut cluster.landeck_on(host, &[&["end"], words].concat()))
    };
    // The third host has neither processes of this job nor its launcher.
    let file = cluster.detach(0, "far", &cluster.all_of(2), &[]);
    let unknown = end(2, &["nobody"]);
    unknown.assert(2, &["no job is called \"nobody\": there is far ("]);
    end(2, &["--machine", "other", "far"]).assert(125, &["no machine other", "there is lab"]);
    assert_eq!(end(2, &["far"]).assert(0, &[]).err, "");
    assert_eq!(cluster.jobs_on(1), [""; 0]);
    let count = 2 * cluster.cores();
    let wanted =
        "ready\n".repeat(count) + "The job was ended by `landeck end` on host n3. Exit code 143.\n";
    assert_eq!(cluster.shell(0, &format!("cat {file}")), wanted);
    // Jobs that are not detached end in the same way, several at once, and all are over then.
    let near = cluster.start_waiting(1, "near", "1");
    let other = cluster.start_waiting(2, "other", &cluster.all_of(1));
    end(0, &["--machine", "lab", "near", "other"]).assert(0, &[]);
    assert_eq!(cluster.jobs_on(0), [""; 0]);
    for running in [near, other] {
        let ended = running.end();
        ended.assert(143, &["The job was ended by `landeck end` on host n1. Exit code 143."]);
    }
    // Two jobs of one name are told apart by their identities.
    let first = cluster.detach(0, "twin", "1", &[]);
    cluster.detach(1, "twin", "1", &["--machine", "lab"]);
    let unclear = end(2, &["twin"]);
    assert_eq!(unclear.assert(2, &[]).err.matches("twin (").count(), 2, "{unclear:?}");
    let identity = first.trim_end_matches(".out").rsplit('-').next().unwrap();
    end(2, &[identity]).assert(0, &[]);
    end(2, &["twin"]).assert(0, &[]);
    cluster.stop_lab();
}

#[test]
fn a_detached_job_that_waits_begins_or_ends_with_its_command() {
    let test = "a_detached_job_that_waits_begins_or_ends_with_its_command";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    cluster.detach(0, "first", &cluster.all_of(2), &["--exclusive"]);
    let alone = ["run", "--detach", "--exclusive", "-n", "1"];
    let refused = run(&mut cluster.landeck(&[&alone[..], &["true"]].concat()));
    refused.assert(125, &["no host of lab is free: first on n1 n2", "--wait waits"]);
    let line = [&alone[..], &["--wait", "--name", "next", "sleep", "299"]].concat();
    let waiting = start(&mut cluster.landeck_on(1, &line));
    let given_up = start(&mut cluster.landeck_on(1, &line));
    let launchers = || cluster.named(1, "landeck");
    wait_until("both have forked their launchers", || launchers().len() == 4);
    // The command is the parent of its launcher, and their numbers ascend.
    let parent = |pid: u32| cluster.shell(1, &format!("cut -d' ' -f4 /proc/{pid}/stat"));
    let is_starter = |pid: &u32| !launchers().contains(&parent(*pid).trim().parse().unwrap());
    let starters: Vec<u32> = launchers().into_iter().filter(is_starter).collect();
    cluster.signal_pid(1, starters[1], "INT");
    wait_until("its launcher has ended with it", || launchers().len() == 2);
    run(&mut cluster.landeck_on(1, &["end", "first"])).assert(0, &[]);
    let ended = [waiting.end(), given_up.end()];
    let began: Vec<&Ended> = ended.iter().filter(|ended| ended.status.success()).collect();
    assert!(began.len() == 1 && began[0].out.starts_with("next ("), "{ended:?}");
    run(&mut cluster.landeck(&["end", "next"])).assert(0, &[]);
    cluster.stop_lab();
}

#[test]
fn a_host_may_get_another_address() {
    let Some(cluster) = lab("a_host_may_get_another_address", 2, &["n2"]) else { return };
    let running = cluster.start_waiting(0, "moves", &cluster.all_of(2));
    let before = cluster.shell(1, "ip -4 -o addr show eth0");
    let address = before.split_ascii_whitespace().skip_while(|word| *word != "inet").nth(1);
    let (_, prefix) = address.and_then(|address| address.split_once('/')).unwrap();
    let change = format!("ip addr flush dev eth0; ip addr add 10.77.1.200/{prefix} dev eth0");
    cluster.shell(1, &change);
    wait_until("all hosts know it", || {
        let log = run(&mut cluster.landeck(&["vm", "log"])).out;
        log.contains("is at [10.77.1.200")
    });
    assert_eq!(cluster.state_of("n2").0, "up");
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    running.end().assert(0, &[]);
    assert_eq!(cluster.where_on(1, &["-n", &cluster.all_of(2)]).len(), 2 * cluster.cores());
    cluster.stop_lab();
}

#[test]
fn a_detached_job_has_a_machine_of_its_own() {
    let Some(cluster) = Cluster::pair("a_detached_job_has_a_machine_of_its_own") else { return };
    let hosts = ["--rsh", "landeck-rsh", "--host", "n1:1,n2:1"];
    let file = cluster.detach(0, "own", "2", &hosts);
    let elsewhere = run(&mut cluster.landeck_on(1, &["end", "own"]));
    elsewhere
        .assert(2, &["the launcher of own (", "is not seen from here", "Call landeck end there"]);
    run(&mut cluster.landeck(&["end", "own"])).assert(0, &[]);
    cluster.assert_nothing_left();
    let wanted = "ready\nready\nThe job was ended by `landeck end` on host n1. Exit code 143.\n";
    assert_eq!(cluster.shell(0, &format!("cat {file}")), wanted);
    // One without a part here is ended by its launcher, and is seen on its hosts.
    let hosts = ["--rsh", "landeck-rsh", "--host", "n2:2", "--name", "away"];
    let away =
        run(&mut cluster.landeck(&[&["run", "--detach"], &hosts[..], &["sleep", "99"]].concat()));
    let words = "See it by: landeck ps away on n2. End it by: landeck end away\n";
    assert!(away.assert(0, &[]).out.ends_with(words), "{away:?}");
    let not_here = run(&mut cluster.landeck(&["ps", "away"]));
    not_here.assert(2, &["away (", "has no process on this host, only its launcher"]);
    let there = run(&mut cluster.landeck_on(1, &["ps", "away"]));
    assert!(there.assert(0, &[]).out.contains("  away, 2 processes"), "{there:?}");
    let file = away.out.split(". Output: ").nth(1).unwrap().lines().next().unwrap();
    run(&mut cluster.landeck(&["end", "away"])).assert(0, &[]);
    let wanted = "The job was ended by `landeck end` on host n1. Exit code 143.\n";
    assert_eq!(cluster.shell(0, &format!("cat {file}")), wanted);
    cluster.assert_nothing_left();
    // It says why it does not begin, in the words of one with a terminal.
    let nowhere = ["--rsh", "landeck-rsh", "--host", "n1:1,n9:1", "true"];
    let both = [&["run"][..], &["run", "--detach"]]
        .map(|how| run(&mut cluster.landeck(&[how, &nowhere].concat())));
    let [attached, detached] = &both;
    detached.assert(125, &["host n9"]);
    assert_eq!(attached.err, detached.err);
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
    until("two", &|hosts| hosts.len() == 2);
    let hosts = until("three", &|hosts| hosts.len() == 3);
    let third = &hosts[2];
    assert!(third.is_up() && third.processes() == 0, "{third:?}");
    assert_eq!(third.processors(), hosts[0].processors(), "{hosts:?}");
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

#[test]
fn a_running_machine_is_drawn_as_it_was_described() {
    let Some(cluster) = Cluster::wished("drawn", &Wish::hosts(2)) else { return };
    let script = "printf 'network.a = { site = \"x\" }\nhost.n1 = { eth0 = \"a\" }\nhost.n2 = { eth0 = \"a\" }\n' \
                  >/tmp/lab.toml && exec \"$0\" vm start /tmp/lab.toml --rsh landeck-rsh";
    let mut start = cluster.hosts.command(0, "sh");
    run(start.args(["-c", script]).arg(landeck()).stdin(Stdio::null())).assert(0, &[]);
    let map =
        "lab: 2 hosts, 1 site, 1 network\n\nsite x\n  n1  a\n  n2  a\n\nnetworks\n  a    site x\n";
    for host in [0, 1] {
        let drawn = run(&mut cluster.landeck_on(host, &["vm", "map"]));
        assert_eq!(drawn.assert(0, &[]).out, map);
    }
    cluster.stop_lab();
}
