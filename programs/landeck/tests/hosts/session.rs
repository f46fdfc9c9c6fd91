//! A user's session on two hosts that ssh reaches: the order of ranks, exit codes, and the ways in which jobs end.

use super::*;

/// Two hosts with sshd, a program that says where it is, and a host file.
fn session(test: &str) -> Option<Cluster> {
    let cluster = Cluster::wished(test, &Wish { ssh: true, ..Wish::hosts(2) })?;
    for host in 0..2 {
        cluster.shell(host, "cd; printf '#!/bin/sh\\nhostname\\n' >where; chmod +x where");
    }
    cluster.shell(0, "printf 'n1 slots=2\\nn2 slots=2\\n' >/run/home/h");
    let link = format!("ln -s {} /run/home/mpiexec", landeck().display());
    cluster.shell(0, &link);
    Some(cluster)
}

#[test]
fn the_first_session() {
    let Some(cluster) = session("the_first_session") else { return };
    let in_home = |line: &str| {
        let mut command = cluster.hosts.command(0, "/bin/sh");
        command.args(["-c", &format!("cd && {line}")]).stdin(Stdio::null());
        command
    };
    let ended = cluster.run_clean(&mut in_home("./mpiexec -f h -n 4 -l ./where"));
    assert_eq!(ended.assert(0, &[]).sorted(), ["[0] n1", "[1] n1", "[2] n2", "[3] n2"]);
    assert_eq!(ended.err, "");
    let line = format!("{} run --hostfile h --map-by node --dry-run ./where", landeck().display());
    let ended = cluster.run_clean(&mut in_home(&line));
    let hosts = ended.assert(0, &[]).out.lines().filter_map(|line| line.split(" host ").nth(1));
    let hosts: Vec<&str> = hosts.filter_map(|rest| rest.split(',').next()).collect();
    assert_eq!(hosts, ["n1", "n2", "n1", "n2"], "{ended:?}");
    let script = "test $RANK = 3 && exit 7; sleep 60";
    let line = format!("{} run -f h sh -c '{script}'", landeck().display());
    let ended = cluster.run_clean(&mut in_home(&line));
    ended.assert(7, &["rank 3 of 4", "host n2", "exit code 7"]).within(Duration::from_secs(50));
    let script = "test $RANK = 3 && kill -9 $$; sleep 60";
    let line = format!("{} run -f h sh -c '{script}'", landeck().display());
    let ended = cluster.run_clean(&mut in_home(&line));
    ended.assert(137, &["rank 3 of 4 (pid ", "host n2) was killed by signal 9 (kill) after"]);
}

#[test]
fn a_stopped_process_is_waited_for() {
    let Some(cluster) = Cluster::pair("a_stopped_process_is_waited_for") else { return };
    let script = "echo $$ >/tmp/rank$RANK; echo there; \
        test $RANK != 0 || until test -e /tmp/go; do sleep 0.1; done; echo end $RANK";
    let mut running = cluster.start_four(&["--host-timeout", "0.5"], script);
    running.out.wait_for("all of them", |text| text.matches("there\n").count() == 4);
    let pid = cluster.shell(0, "cat /tmp/rank0").trim().parse().unwrap();
    cluster.signal_pid(0, pid, "STOP");
    cluster.shell(0, "touch /tmp/go");
    // Longer than a silent host is waited for with the shortest limit.
    running.out.wait_for("the others", |text| text.matches("end ").count() == 3);
    thread::sleep(Duration::from_secs(2));
    assert!(running.goes_on(), "{:?}", running.err.text());
    cluster.signal_pid(0, pid, "CONT");
    running.end().assert(0, &[]);
    cluster.assert_nothing_left();
}

#[test]
fn a_stopped_launcher_ends_nothing() {
    let Some(cluster) = Cluster::pair("a_stopped_launcher_ends_nothing") else { return };
    let script = "echo $$ >/tmp/rank$RANK; echo there; \
        until test -e /tmp/go; do sleep 0.1; done; echo end";
    let mut running = cluster.start_four(&[], script);
    running.out.wait_for("all of them", |text| text.matches("there\n").count() == 4);
    cluster.signal(0, "landeck", "STOP");
    // Longer than a silent host is waited for.
    thread::sleep(Duration::from_secs(5));
    for host in 0..2 {
        cluster.shell(host, "for rank in /tmp/rank*; do kill -0 $(cat $rank) || exit 1; done");
        cluster.shell(host, "touch /tmp/go");
    }
    assert!(running.goes_on());
    cluster.signal(0, "landeck", "CONT");
    running.go_on();
    let ended = running.end();
    assert_eq!(ended.assert(0, &[]).out.matches("end\n").count(), 4, "{ended:?}");
    cluster.assert_nothing_left();
}

#[test]
fn signals_to_the_launcher_reach_all_hosts() {
    let Some(cluster) = Cluster::pair("signals_to_the_launcher_reach_all_hosts") else { return };
    let script = "trap 'echo got' USR1; trap 'echo over; exit 0' TERM; while :; do sleep 0.1; done";
    let running = cluster.start_four(&[], script);
    cluster.signal(0, "landeck", "USR1");
    running.out.wait_for("USR1", |text| text.matches("got\n").count() == 4);
    cluster.signal(0, "landeck", "TERM");
    let ended = running.end();
    assert_eq!(ended.out.matches("over\n").count(), 4, "{ended:?}");
    cluster.assert_nothing_left();
    for (signal, code) in [("INT", 130), ("HUP", 143)] {
        let running = cluster.start_four(&[], "exec sleep 60");
        cluster.signal(0, "landeck", signal);
        running.end().assert(code, &[]).within(Duration::from_secs(50));
        cluster.assert_nothing_left();
    }
    let running = cluster.start_four(&[], "exec sleep 60");
    cluster.signal(0, "landeck", "KILL");
    drop(running.end());
    cluster.assert_nothing_left();
}

#[test]
fn ignored_signals_stay_ignored_on_all_hosts() {
    let Some(cluster) = Cluster::pair("ignored_signals_stay_ignored_on_all_hosts") else { return };
    // As nohup starts it. A shell cannot trap what was ignored when it began.
    let script = "trap '' HUP; exec \"$@\"";
    let mut command = cluster.hosts.command(0, "/bin/sh");
    command.args(["-c", script, "sh"]).arg(landeck());
    command.args(["run", "--rsh", "landeck-rsh", "--host", "n1:1,n2:1", "-n", "2"]);
    command.args(["grep", "SigIgn", "/proc/self/status"]);
    let ended = cluster.run_clean(command.stdin(Stdio::null()));
    let masks = ended.assert(0, &[]).out.lines().map(|line| {
        u64::from_str_radix(line.split_whitespace().last().unwrap_or_default(), 16).unwrap()
    });
    let masks: Vec<u64> = masks.collect();
    assert_eq!(masks.len(), 2, "{ended:?}");
    assert!(masks.iter().all(|mask| mask & 1 == 1), "{ended:?}");
}
