//! Jobs that are impossible: the message names the host and the cure, and nothing is started anywhere.

use super::*;

const LAUNCHER_FAILED: i32 = 125;
const NOT_FOUND: i32 = 127;

#[test]
fn hosts_that_ssh_does_not_reach() {
    let test = "hosts_that_ssh_does_not_reach";
    let Some(mut cluster) = Cluster::wished(test, &Wish { ssh: true, ..Wish::hosts(3) }) else {
        return;
    };
    let on = |cluster: &Cluster, hosts: &str| {
        run(&mut cluster.landeck(&["run", "--host", hosts, "touch", "/tmp/started"]))
    };
    on(&cluster, "n1,nowhere").assert(LAUNCHER_FAILED, &["host nowhere", "getent hosts nowhere"]);
    // It admits no key of ours, so ssh would ask for a password.
    cluster.shell(
        0,
        "cp /run/home/.ssh/config /run/home/kept; sed -i /IdentityFile/d /run/home/.ssh/config",
    );
    on(&cluster, "n1,n2")
        .assert(LAUNCHER_FAILED, &["host n2", "Permission denied", "ssh-copy-id n2"]);
    cluster.shell(0, "cp /run/home/kept /run/home/.ssh/config");
    // Each host that fails is named.
    on(&cluster, "n1,nowhere,nobody").assert(LAUNCHER_FAILED, &["host nowhere", "host nobody"]);
    // Its sshd is gone.
    let sshd = cluster.named(2, "sshd");
    sshd.iter().for_each(|pid| cluster.signal_pid(2, *pid, "KILL"));
    on(&cluster, "n1,n2,n3").assert(LAUNCHER_FAILED, &["host n3", "Connection refused", "ssh n3"]);
    for host in 0..2 {
        cluster.assert_nothing_left_on(host);
        cluster.shell(host, "! test -e /tmp/started");
    }
    cluster.hosts.kill(2).unwrap();
    let ended = on(&cluster, "n1,n3");
    ended.assert(LAUNCHER_FAILED, &["host n3", "ssh n3"]).within(Duration::from_secs(90));
    cluster.assert_nothing_left_on(0);
}

#[test]
fn hosts_that_another_shell_does_not_reach() {
    let Some(cluster) = Cluster::pair("hosts_that_another_shell_does_not_reach") else { return };
    let on = |arguments: &[&str]| {
        cluster.run_clean(
            &mut cluster.landeck(&[&["run", "--host", "n1,n2"], arguments, &["true"]].concat()),
        )
    };
    on(&["--rsh", "no-such-rsh"]).assert(LAUNCHER_FAILED, &["host n2", "no-such-rsh", "--rsh"]);
    on(&["--rsh", "false"]).assert(LAUNCHER_FAILED, &["host n2", "exit code 1"]);
    on(&["--rsh", "sh -c 'echo rubbish'"])
        .assert(LAUNCHER_FAILED, &["host n2", "exit code 0", "rubbish", "was not run there"]);
    // What nologin, a forced command or a profile has printed.
    on(&["--rsh", "sh -c 'echo This account is not available.; exit 1'"])
        .assert(LAUNCHER_FAILED, &["host n2", "exit code 1\n  This account is not available."]);
    let endless = on(&["--rsh", "yes Welcome"]);
    endless.assert(LAUNCHER_FAILED, &["host n2", "more than 1 MiB"]);
    assert!(endless.err.lines().count() < 10, "{endless:?}");
    cluster.shell(0, "echo 'echo $((2*21)) reasons >&2; exit 3' >/tmp/complain");
    let complaint = on(&["--rsh", "sh /tmp/complain"]);
    complaint.assert(LAUNCHER_FAILED, &["host n2", "exit code 3"]);
    assert_eq!(complaint.err.matches("42 reasons").count(), 1, "{complaint:?}");
    let arguments = ["run", "--rsh", "landeck-rsh", "--host", "n1,n9", "true"];
    let ended = cluster.run_clean(&mut cluster.landeck(&arguments));
    ended.assert(LAUNCHER_FAILED, &["host n9", "there is no host \"n9\""]);
}

#[test]
fn a_path_missing_on_one_host_is_explained() {
    let Some(cluster) = Cluster::pair("a_path_missing_on_one_host_is_explained") else { return };
    cluster.shell(0, "mkdir /tmp/only; cp $(command -v hostname) /tmp/only/program");
    let ended = cluster.run_clean(&mut cluster.four(&["/tmp/only/program"]));
    ended.assert(NOT_FOUND, &["host n2", "/tmp/only/program", "not found"]);
    let ended = cluster.run_clean(&mut cluster.four(&["--wdir", "/tmp/only", "hostname"]));
    ended.assert(LAUNCHER_FAILED, &["host n2", "/tmp/only", "no such folder"]);
    cluster.shell(1, "mkdir /tmp/only; echo >/tmp/only/program");
    let ended = cluster.run_clean(&mut cluster.four(&["/tmp/only/program"]));
    ended.assert(126, &["host n2", "/tmp/only/program"]);
    cluster.shell(1, "cp $(command -v hostname) /tmp/only/program; chmod +x /tmp/only/program");
    let ended = cluster.run_clean(&mut cluster.four(&["--wdir", "/tmp/only", "/tmp/only/program"]));
    assert_eq!(ended.assert(0, &[]).sorted(), ["n1", "n1", "n2", "n2"]);
}

/// Puts a script in the place of landeckd on n2: a folder that only n2 has hides the daemon's own.
fn with_daemon_of_n2(cluster: &Cluster, script: &str) -> Ended {
    let folder = landeckd().parent().unwrap().display().to_string();
    cluster.shell(1, &format!(
        "mkdir -p /tmp/bin /tmp/prefix/bin; cat >/tmp/prefix/bin/landeckd <<'END'\n{script}\nEND\n\
         chmod +x /tmp/prefix/bin/landeckd"
    ));
    // The host's mounts are its own; landeck-rsh starts what it starts in them.
    cluster.shell(1, &format!("mount -t tmpfs none '{folder}'"));
    let ended = run(&mut cluster.four(&["--remote-prefix", "/tmp/prefix", "true"]));
    cluster.shell(1, &format!("umount '{folder}'"));
    cluster.assert_nothing_left();
    ended
}

#[test]
fn daemons_that_are_missing_or_others() {
    let Some(cluster) = Cluster::pair("daemons_that_are_missing_or_others") else { return };
    let folder = landeckd().parent().unwrap().display().to_string();
    cluster.shell(1, &format!("mount -t tmpfs none '{folder}'"));
    let ended = cluster.run_clean(&mut cluster.four(&["true"]));
    ended.assert(LAUNCHER_FAILED, &["host n2: there is no landeckd", "--remote-prefix"]);
    cluster.shell(1, &format!("umount '{folder}'"));
    let key = "0".repeat(64);
    let line = |release: &str| {
        format!(
            "#!/bin/sh\necho 'landeckd 1 {key} {release} 4000 10.77.1.2 what ever'; read -r line"
        )
    };
    let ended = with_daemon_of_n2(&cluster, &line("9.9.9"));
    ended.assert(LAUNCHER_FAILED, &["host n2", "release 9.9.9", env!("CARGO_PKG_VERSION")]);
    let ended = with_daemon_of_n2(&cluster, "#!/bin/sh\necho 'landeckd 1 what'; read -r line");
    ended.assert(LAUNCHER_FAILED, &["host n2"]);
    let ended = with_daemon_of_n2(&cluster, "#!/bin/sh\nexec sed -u s/a/b/");
    ended.assert(LAUNCHER_FAILED, &["host n2"]);
    let ended = with_daemon_of_n2(&cluster, "#!/bin/sh\necho dying >&2; exit 3");
    ended.assert(LAUNCHER_FAILED, &["host n2", "dying", "exit code 3"]);
}

#[test]
fn a_daemon_with_another_key_is_not_admitted() {
    let Some(cluster) = Cluster::pair("a_daemon_with_another_key_is_not_admitted") else { return };
    // It says another key than the one that it has. Its last digits are changed.
    let script = format!(
        "#!/bin/bash\nexec 5<&0; {} bootstrap <&5 | {{ read -r one two key rest; \
         echo \"$one $two $(echo $key | tr 0-9 1-90) $rest\"; cat; }}",
        landeckd().display()
    );
    cluster.shell(1, &format!("mkdir -p /tmp/own; cp {} /tmp/own/landeckd", landeckd().display()));
    let script = script.replace(&landeckd().display().to_string(), "/tmp/own/landeckd");
    let ended = with_daemon_of_n2(&cluster, &script);
    ended.assert(LAUNCHER_FAILED, &["host n2"]);
}

#[test]
fn host_files_and_options_that_are_wrong() {
    let Some(cluster) = Cluster::pair("host_files_and_options_that_are_wrong") else { return };
    let bad = |content: &str, said: &[&str]| {
        cluster.shell(0, &format!("printf '{content}' >/tmp/h"));
        let ended = run(&mut cluster.landeck(&["run", "-f", "/tmp/h", "true"]));
        ended.assert(LAUNCHER_FAILED, said);
    };
    bad("n1 slots=2\\nn2 slots=2 color=red\\n", &["/tmp/h", "line 2", "color=red"]);
    bad("n1 slots=many\\n", &["/tmp/h", "line 1", "slots=many"]);
    bad("", &["/tmp/h"]);
    let wrong = |arguments: &[&str], said: &[&str]| {
        let ended = run(&mut cluster.landeck(&[&["run"], arguments, &["true"]].concat()));
        assert!(ended.status.code().is_some_and(|code| code != 0), "{ended:?}");
        said.iter().for_each(|said| assert!(ended.err.contains(said), "{said}: {ended:?}"));
    };
    wrong(&["--host", "n1,n2", "--host-timeout", "0.1"], &["--host-timeout", "0.5"]);
    wrong(&["--host", "n1,n2", "--port-range", "9-3"], &["--port-range"]);
    wrong(&["--host", "n1,n2", "--port-range", "5"], &["--port-range", "two ports are wanted"]);
    wrong(&["--host", "n1,n2", "--network", "eth0"], &["--network"]);
    wrong(&["-f", "/tmp/none"], &["/tmp/none"]);
    wrong(
        &["--rsh", "landeck-rsh", "--host", "n1,n2", "--serve-groups"],
        &["--serve-groups", "one host"],
    );
    cluster.assert_nothing_left();
}

#[test]
fn a_full_port_range_is_named() {
    let Some(cluster) = Cluster::pair("a_full_port_range_is_named") else { return };
    let running = cluster.start_four(&["--port-range", "40000-40000"], "exec sleep 60");
    let ended = run(&mut cluster.four(&["--port-range", "40000-40000", "true"]));
    ended.assert(LAUNCHER_FAILED, &["40000"]);
    cluster.signal(0, "landeck", "TERM");
    drop(running.end());
    cluster.assert_nothing_left();
}
