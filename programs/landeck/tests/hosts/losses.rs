//! Processes of the system that die: daemons, guardians, whole hosts. The job ends, the end is named, nothing is left.

use super::*;

/// Kills the processes of a name on a host, and checks that the job ends with this message.
fn kill_one(test: &str, host: usize, name: &str, said: &[&str]) {
    let Some(cluster) = Cluster::pair(test) else { return };
    let running = cluster.start_four(&[], "exec sleep 60");
    cluster.signal(host, name, "KILL");
    let killed = Instant::now();
    for other in 0..2 {
        wait_until("the processes end", || cluster.named(other, "sleep").is_empty());
    }
    assert!(killed.elapsed() < GONE_WITHIN, "{:?}", killed.elapsed());
    running.end().assert(137, said);
    cluster.assert_nothing_left();
    for host in 0..2 {
        let left = cluster.shell(host, "find /tmp /run -xdev -name '*.job' 2>/dev/null || true");
        assert_eq!(left, "", "on host {host}");
    }
}

#[test]
fn a_killed_daemon_ends_the_job() {
    kill_one("a_killed_daemon_ends_the_job", 1, "landeckd", &["Host n2 is lost", "daemon"]);
}

#[test]
fn a_killed_arbiter_ends_the_job() {
    let said = ["The daemon of this host (landeckd) has ended"];
    kill_one("a_killed_arbiter_ends_the_job", 0, "landeckd", &said);
}

#[test]
fn a_killed_guardian_ends_the_job() {
    let said = ["The guardian of the job on host n2 was killed"];
    kill_one("a_killed_guardian_ends_the_job", 1, "landeck-guard", &said);
}

#[test]
fn a_killed_guardian_server_ends_the_job() {
    let said = ["host n2"];
    kill_one("a_killed_guardian_server_ends_the_job", 1, "landeck-server", &said);
}

#[test]
fn a_remote_shell_that_is_silent_or_ends_ends_nothing() {
    let test = "a_remote_shell_that_is_silent_or_ends_ends_nothing";
    let Some(cluster) = Cluster::wished(test, &Wish { ssh: true, ..Wish::hosts(2) }) else {
        return;
    };
    let script = "echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; echo end";
    let arguments = ["run", "--host-timeout", "0.5", "--host", "n1:2,n2:2", "sh", "-c", script];
    let mut running = start(&mut cluster.landeck(&arguments));
    running.out.wait_for("four processes", |text| text.matches("ready\n").count() == 4);
    cluster.signal(0, "ssh", "STOP");
    thread::sleep(Duration::from_secs(1));
    cluster.signal(0, "ssh", "KILL");
    wait_until("ssh ends", || cluster.named(0, "ssh").is_empty());
    // Longer than the daemon of n2 needs to see the end of its input, and than the host may be silent.
    thread::sleep(Duration::from_secs(1));
    assert!(running.goes_on(), "{}", running.err.text());
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    let ended = running.end();
    assert_eq!(ended.assert(0, &[]).out.matches("end\n").count(), 4, "{ended:?}");
    assert_eq!(ended.err, "");
    cluster.assert_nothing_left();
}

#[test]
fn a_remote_shell_that_carries_everything_is_named_when_it_ends() {
    let test = "a_remote_shell_that_carries_everything_is_named_when_it_ends";
    let Some(cluster) = Cluster::pair(test) else { return };
    // No port is reached, and landeck-rsh needs no network.
    cluster.hosts.cut(1).unwrap();
    let running = cluster.start_four(&["--host-timeout", "0.5"], "exec sleep 60");
    // The command is a shell, and the programs below it carry the streams.
    cluster.signal(0, "landeck-rsh", "KILL");
    cluster.signal(0, "cat", "KILL");
    let ports = "none of the ports of host n2 was reached, so the remote shell (ssh) carries";
    running.err.wait_for("word of the ports", |text| text.contains(ports));
    let said = ["--port-range", "Host n2 is lost: it has not answered for", "remote shell (ssh): "];
    running.end().assert(137, &said).within(Duration::from_secs(50));
    // So the other host need not wait for the end of its lease.
    cluster.hosts.join(1).unwrap();
    cluster.assert_nothing_left();
}

#[test]
fn a_host_without_power_ends_the_job() {
    let Some(mut cluster) = Cluster::pair("a_host_without_power_ends_the_job") else { return };
    let running = cluster.start_four(&["--host-timeout", "1"], "exec sleep 60");
    let died = Instant::now();
    cluster.hosts.kill(1).unwrap();
    let ended = running.end();
    ended.assert(137, &["Host n2 is lost: it has not answered for"]);
    assert!(died.elapsed() < Duration::from_secs(50), "{:?}", died.elapsed());
    cluster.assert_nothing_left_on(0);
    // It is as good as new.
    cluster.hosts.start(1).unwrap();
    cluster.note_processes(1);
    cluster.run_four(&[], "exit 0").assert(0, &[]);
    cluster.assert_nothing_left();
}

#[test]
fn the_launchers_host_without_power_ends_the_job_elsewhere() {
    let test = "the_launchers_host_without_power_ends_the_job_elsewhere";
    let Some(mut cluster) = Cluster::pair(test) else { return };
    let running = cluster.start_four(&["--host-timeout", "0.5"], "exec sleep 60");
    cluster.hosts.kill(0).unwrap();
    drop(running.end());
    // They end when their lease does, which is ten seconds at least.
    let until = Instant::now() + Duration::from_secs(30);
    while !cluster.named(1, "sleep").is_empty() {
        assert!(Instant::now() < until, "{:?}", cluster.processes(1));
        thread::sleep(Duration::from_millis(100));
    }
    cluster.assert_nothing_left_on(1);
}
