//! Daemons that are killed and start again, the founder's among them: their processes go on.

use std::os::unix::net::UnixDatagram;

use landeck::{Job, Tag};

use super::machines::lab;
use super::members::is_member;
use super::*;

/// Kills the daemon of this keeper, and the next one as soon as it is forked.
const KILL_TWICE: &str = "
    read -r known </proc/$keeper/task/$keeper/children
    for child in $known; do
        read -r name </proc/$child/comm
        [ $name != landeckd ] || kill -s KILL $child
    done
    while :; do
        read -r children </proc/$keeper/task/$keeper/children
        for child in $children; do
            case \" $known \" in
                *\" $child \"*) ;;
                *) kill -s KILL $child; exit ;;
            esac
        done
    done";

#[test]
fn a_killed_daemon_is_started_again_and_its_processes_go_on() {
    let test = "a_killed_daemon_is_started_again_and_its_processes_go_on";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    let cores = cluster.cores();
    let n2 = || cluster.status_on(0)["hosts"].as_array().unwrap().last().unwrap().clone();
    let is_back =
        |times: &str| n2()["state"] == "up" && n2()["why"].as_str().unwrap().contains(times);
    let script = "echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; echo end; exit 3";
    let all = cluster.all_of(2);
    let how = ["run", "-n", &all, "--on-failure", "notify", "sh", "-c", script];
    let running = start(&mut cluster.landeck(&how));
    running.out.wait_for("its processes", |text| text.matches("ready\n").count() == 2 * cores);
    for times in ["again, once", "again, 2 times", "again, 3 times"] {
        cluster.signal_pid(1, cluster.daemon(1), "KILL");
        // A command waits for the next run, and finds the machine.
        run(&mut cluster.landeck_on(1, &["run", "--machine", "lab", "-n", "1", "true"]))
            .assert(0, &[]);
        run(&mut cluster.landeck_on(1, &["vm", "status"])).assert(0, &[]);
        wait_until("the next run", || is_back(times));
        wait_until("a job on n2", || cluster.where_on(1, &["-n", "1"]) == ["n2"]);
    }
    cluster.shell(0, "touch /tmp/go");
    cluster.shell(1, "touch /tmp/go");
    let ended = running.end();
    let ended = ended.assert(3, &["landeckd on n2 has started again. The processes there go on"]);
    assert_eq!(ended.out.matches("end\n").count(), 2 * cores);
    // A daemon that is killed again and again stays away, and its host is added as any other one. It is drained still.
    run(&mut cluster.landeck(&["vm", "drain", "n2", "--reason", "new disk"])).assert(0, &[]);
    cluster.signal_pid(1, cluster.daemon(1), "KILL");
    wait_until("n2 is lost", || n2()["state"] != "up");
    cluster.assert_nothing_left_on(1);
    wait_until("n2 is gone", || n2()["state"] == "gone");
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n2"])).assert(0, &[]);
    assert_eq!(
        (n2()["state"].as_str(), n2()["why"].as_str()),
        (Some("draining"), Some("new disk"))
    );
    // A founder's daemon that is killed before it has begun knows everything.
    cluster.shell(0, &format!("keeper={}\n{KILL_TWICE}", cluster.named(0, "landeck-keeper")[0]));
    wait_until("the one after", || {
        let asked = run(&mut cluster.landeck(&["vm", "status"]));
        asked.status.success() && asked.out.contains("new disk")
    });
    // Without its keeper it ends in order.
    cluster.signal(1, "landeck-keeper", "KILL");
    wait_until("n2 has left", || n2()["state"] == "gone");
    cluster.assert_nothing_left_on(1);
    cluster.stop_lab();
}

/// Each process has a message for each other one, behind the file that its host gets.
pub(super) fn exchange() {
    let job = Job::join().unwrap();
    let world = job.world();
    println!("ready");
    let go = Path::new("/tmp/go");
    wait_until("the file", || go.exists());
    let others = || (0..world.size()).filter(|other| *other != world.rank());
    others().for_each(|to| world.send(&[world.rank() as u64], to, Tag(1)).unwrap());
    for from in others() {
        let mut came = [0u64];
        world.receive_into(&mut came, from, Tag(1)).unwrap();
        assert_eq!(came, [from as u64]);
    }
    println!("has all");
    job.leave().unwrap();
}

#[test]
fn hosts_whose_daemons_have_started_again_reach_each_other() {
    const TEST: &str = "next_run::hosts_whose_daemons_have_started_again_reach_each_other";
    if is_member() {
        return exchange();
    }
    let test = "hosts_whose_daemons_have_started_again_reach_each_other";
    let Some(cluster) = lab(test, 3, &["n2"]) else { return };
    let program = std::env::current_exe().unwrap();
    let program = [program.to_str().unwrap(), TEST, "--exact", "--nocapture", "--test-threads=1"];
    let begin = || {
        let words = ["run", "--map-by", "node", "-n", "3", "--on-failure", "notify"];
        let running = start(&mut cluster.landeck(&[&words[..], &program].concat()));
        running.out.wait_for("its processes", |text| text.matches("ready\n").count() == 3);
        running
    };
    let kill = |host: usize, times: &str| {
        cluster.signal_pid(host, cluster.daemon(host), "KILL");
        wait_until("the next run", || {
            let it = cluster.status_on((host + 1) % 2)["hosts"][host].clone();
            it["state"] == "up" && it["why"].as_str().unwrap().contains(times)
        });
    };
    let ends = |running: Running| {
        (0..3).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
        let ended = running.end();
        let (said, warned) = (ended.out.matches("has all\n").count(), "output may be missing");
        // A line that has come to a conductor before its launcher is lost with it, and that is said.
        let is_whole = said == 3 || said < 3 && ended.err.contains(warned);
        assert!(is_whole && ended.status.success(), "{ended:?}");
        (0..3).for_each(|host| drop(cluster.shell(host, "rm /tmp/go")));
    };
    kill(1, "again, once");
    kill(0, "again, once");
    // A host that comes learns which run of n2 it deals with.
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"])).assert(0, &[]);
    ends(begin());
    // So does a daemon that starts again, and processes that were there before.
    let before = begin();
    kill(2, "again, once");
    kill(0, "again, 2 times");
    before.err.wait_for("its launcher", |text| text.contains("The job goes on"));
    ends(before);
    ends(begin());
    let before = begin();
    kill(1, "again, 2 times");
    kill(2, "again, 2 times");
    ends(before);
    cluster.stop_lab();
}

impl Cluster {
    /// Kills the daemon of the second host, and lets the next one begin when something is done.
    fn without_daemon(&self, act: impl FnOnce()) {
        self.signal(1, "landeck-keeper", "STOP");
        self.signal_pid(1, self.daemon(1), "KILL");
        act();
        self.signal(1, "landeck-keeper", "CONT");
    }
}

/// A machine of hosts that wait long for each other.
fn patient_lab(test: &str, others: &[&str]) -> Option<Cluster> {
    let cluster = Cluster::wished(test, &Wish::hosts(1 + others.len()))?;
    let start = ["vm", "start", "--name", "lab", "--rsh", "landeck-rsh", "--host-timeout", "20"];
    run(&mut cluster.landeck(&[&start, others].concat())).assert(0, &[]);
    Some(cluster)
}

#[test]
fn a_job_outlives_the_daemon_that_conducts_it() {
    let Some(cluster) = lab("a_job_outlives_the_daemon_that_conducts_it", 2, &["n2"]) else {
        return;
    };
    // The founder's daemon conducts the jobs of its host, as others do.
    [1, 0].into_iter().for_each(|conductor| outlive(&cluster, conductor));
    cluster.stop_lab();
}

/// Jobs whose launchers are on this host of two outlive its daemon three times.
fn outlive(cluster: &Cluster, conductor: usize) {
    let name = cluster.hosts.name(conductor);
    (0..2).for_each(|host| drop(cluster.shell(host, "rm -f /tmp/go /tmp/fail")));
    let wait = "echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; echo end; exit 3";
    let fail = "echo ready; until [ -e /tmp/fail ]; do sleep 0.05; done; exit 9";
    let begin = |name: &str, on_failure: &str, script: &str| {
        let way = ["run", "--name", name, "--on-failure", on_failure, "--map-by", "node"];
        let how = [&way[..], &["-n", "4", "sh", "-c", script]].concat();
        let running = start(&mut cluster.landeck_on(conductor, &how));
        running.out.wait_for("its processes", |text| text.matches("ready\n").count() == 4);
        running
    };
    let ends = begin("ends", "notify", wait);
    let fails = begin("fails", "abort", fail);
    let ended = begin("ended", "abort", "echo ready; sleep 299");
    for times in ["again, once", "again, 2 times", "again, 3 times"] {
        cluster.signal_pid(conductor, cluster.daemon(conductor), "KILL");
        run(&mut cluster.landeck_on(conductor, &["vm", "status"])).assert(0, &[]);
        wait_until("the next run", || {
            let host = cluster.status_on(1 - conductor)["hosts"][conductor].clone();
            host["state"] == "up" && host["why"].as_str().unwrap().contains(times)
        });
        wait_until("a job there", || cluster.where_on(conductor, &["-n", "1"]) == [name.as_str()]);
    }
    // The short job is forgotten a moment after its end.
    wait_until("these jobs alone", || {
        let mut all = cluster.jobs_on(0);
        all.sort();
        all == ["ended", "ends", "fails"]
    });
    let log = run(&mut cluster.landeck_on(conductor, &["vm", "log"]));
    log.assert(0, &[]);
    assert!(
        log.out.contains("as run 3: the run before was killed by signal 9 (SIGKILL)"),
        "{log:?}"
    );
    let said = "landeckd on this host has started again. The job goes on";
    // A failure on the other host ends its job, an order ends another one, and the last one ends by itself.
    let other = cluster.hosts.name(1 - conductor);
    cluster.shell(1 - conductor, "touch /tmp/fail");
    fails.end().assert(9, &[said, &format!("host {other}) ended with exit code 9")]);
    run(&mut cluster.landeck_on(1 - conductor, &["end", "ended"])).assert(0, &[]);
    ended.end().assert(143, &[said, &format!("`landeck end` on host {other}")]);
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    let ends = ends.end();
    assert_eq!(ends.assert(3, &[said]).out.matches("end\n").count(), 4, "{ends:?}");
}

#[test]
fn a_job_that_ends_while_its_conductor_is_killed_says_how() {
    let Some(cluster) =
        patient_lab("a_job_that_ends_while_its_conductor_is_killed_says_how", &["n2"])
    else {
        return;
    };
    let script = "echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; exit 3";
    let how = ["run", "--map-by", "node", "-n", "4", "--on-failure", "notify", "sh", "-c", script];
    let running = start(&mut cluster.landeck_on(1, &how));
    running.out.wait_for("its processes", |text| text.matches("ready\n").count() == 4);
    cluster.without_daemon(|| {
        (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
        wait_until("all have ended", || (0..2).all(|host| cluster.named(host, "sh").is_empty()));
    });
    running.end().assert(3, &["has started again. The job goes on"]);
    wait_until("the job is over", || cluster.jobs_on(0).is_empty());
    cluster.stop_lab();
}

#[test]
fn a_job_ends_that_has_lost_its_launcher_and_its_conductor() {
    let Some(cluster) =
        patient_lab("a_job_ends_that_has_lost_its_launcher_and_its_conductor", &["n2"])
    else {
        return;
    };
    let how = ["run", "--map-by", "node", "-n", "4", "sh", "-c", "echo ready; exec sleep 299"];
    let running = start(&mut cluster.landeck_on(1, &how));
    running.out.wait_for("its processes", |text| text.matches("ready\n").count() == 4);
    cluster.without_daemon(|| cluster.signal(1, "landeck", "KILL"));
    drop(running);
    wait_until("the job is over", || cluster.jobs_on(0).is_empty());
    wait_until("its processes too", || (0..2).all(|host| cluster.named(host, "sleep").is_empty()));
    cluster.stop_lab();
}

#[test]
fn a_job_whose_conductor_is_killed_before_it_runs_is_given_up() {
    let test = "a_job_whose_conductor_is_killed_before_it_runs_is_given_up";
    let Some(cluster) = patient_lab(test, &["n2", "n3"]) else { return };
    // A host whose daemon is stopped does not answer whether it can start its part, and is not lost.
    let silent = cluster.daemon(2);
    cluster.signal_pid(2, silent, "STOP");
    let how = ["run", "--name", "new", "--map-by", "node", "-n", "3", "sleep", "299"];
    let starting = start(&mut cluster.landeck_on(1, &how));
    wait_until("the job", || cluster.jobs_on(0) == ["new"]);
    cluster.signal_pid(1, cluster.daemon(1), "KILL");
    starting.end().assert(125, &["landeckd"]);
    cluster.signal_pid(2, silent, "CONT");
    wait_until("the job is over", || cluster.jobs_on(0).is_empty());
    assert!((0..3).all(|host| cluster.named(host, "sleep").is_empty()), "nothing was started");
    assert_eq!(cluster.where_on(1, &["--map-by", "node", "-n", "3"]), ["n1", "n2", "n3"]);
    cluster.stop_lab();
}

#[test]
fn a_founder_whose_daemon_is_killed_forgets_nothing() {
    let test = "a_founder_whose_daemon_is_killed_forgets_nothing";
    let Some(cluster) = lab(test, 4, &["n2", "n3"]) else { return };
    let vm = |words: &[&str]| {
        run(&mut cluster.landeck(&[&["vm"], words].concat())).assert(0, &[]);
    };
    let why = |name: &str| {
        let all = cluster.status_on(1)["hosts"].as_array().unwrap().clone();
        let host = all.into_iter().find(|host| host["name"] == name).unwrap();
        host["why"].as_str().unwrap().to_owned()
    };
    vm(&["drain", "n3", "--reason", "new disk"]);
    // One job has a host for itself, one waits for it, and the output of one passes through the founder's daemon.
    let script = "until [ -e /tmp/go ]; do echo tick; sleep 0.01; done; echo end";
    let way = ["run", "--name", "talks", "--map-by", "node", "-n", "2", "--on-failure", "notify"];
    let talks = start(&mut cluster.landeck_on(1, &[&way[..], &["sh", "-c", script]].concat()));
    talks.out.wait_for("its output", |text| text.contains("tick"));
    let waits = ["run", "--name", "waits", "--exclusive", "--wait", "-n", "1", "hostname"];
    let mut waiting = start(&mut cluster.landeck_on(1, &waits));
    for times in ["again, once", "again, 2 times", "again, 3 times"] {
        cluster.signal_pid(0, cluster.daemon(0), "KILL");
        wait_until("the next run", || why("n1").contains(times));
        assert_eq!(
            (why("n3"), cluster.jobs_on(2)),
            ("new disk".to_owned(), vec!["talks".to_owned()])
        );
    }
    let refused = run(&mut cluster.landeck(&["run", "--exclusive", "-n", "1", "true"]));
    refused.assert(125, &["no host of lab is free: talks on n2 n1"]);
    assert!(waiting.goes_on(), "{}", waiting.err.text());
    vm(&["resume", "n3"]);
    assert_eq!(waiting.end().assert(0, &[]).out, "n3\n");
    // A host that was lost knows its ticket, and one that is new is admitted.
    cluster.lose(2);
    wait_until("n3 is back", || why("n3").contains("time 2 in the machine"));
    vm(&["add", "--rsh", "landeck-rsh", "n4"]);
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    let talks = talks.end();
    talks.assert(0, &[]);
    assert_eq!(talks.out.matches("end\n").count(), 2, "{talks:?}");
    wait_until("all jobs are over", || cluster.jobs_on(2).is_empty());
    assert_eq!(cluster.where_on(3, &["--map-by", "node", "-n", "4"]), ["n1", "n2", "n3", "n4"]);
    cluster.stop_lab();
}

#[test]
fn a_host_comes_back_by_a_command_that_tells_when_it_is_there() {
    let test = "a_host_comes_back_by_a_command_that_tells_when_it_is_there";
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    wait_until("its return ticket", || {
        cluster.shell(1, "ls /var/tmp/landeck-0 2>/dev/null || true").contains("lab")
    });
    cluster.kill_for_good(1);
    let n2 = || cluster.status_on(0)["hosts"][1]["state"].clone();
    wait_until("n2 is lost", || n2() != "up");
    // As a unit of the user starts it. The socket of the manager of services is a file that both see.
    let manager = UnixDatagram::bind(cluster.hosts.folder(1).join("notify")).unwrap();
    manager.set_read_timeout(Some(RUN_MAX)).unwrap();
    let mut unit = cluster.hosts.command(1, landeckd());
    unit.args(["return", "--machine", "lab"]).env("NOTIFY_SOCKET", "/run/hosts/n2/notify");
    let coming = start(unit.stdin(Stdio::null()));
    let mut told = [0; 64];
    let count = manager.recv(&mut told).unwrap();
    assert_eq!(&told[..count], b"READY=1");
    assert_eq!(n2(), "up");
    assert_eq!(cluster.where_on(0, &["--map-by", "node", "-n", "2"]), ["n1", "n2"]);
    run(&mut cluster.landeck(&["vm", "stop"])).assert(0, &[]);
    coming.end();
    cluster.assert_nothing_left();
}
