//! Other ways to start daemons: by hand with a token, and by Slurm.

use super::*;

/// The token in what the launcher says for a host: its command has it in quotes.
fn token_for(text: &str, host: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("On host {host},"))?;
    let (_, rest) = rest.split_once("echo '")?;
    Some(rest.split_once('\'')?.0.to_owned())
}

fn join(cluster: &Cluster, host: usize, token: &str, arguments: &str) -> Command {
    let script = format!(
        "umask 077; echo '{token}' >/tmp/token; exec {} join --token-file /tmp/token {arguments}",
        landeckd().display()
    );
    let mut command = cluster.hosts.command(host, "/bin/sh");
    command.args(["-c", &script]).stdin(Stdio::null());
    command
}

#[test]
fn hosts_join_by_hand() {
    let Some(cluster) = Cluster::wished("hosts_join_by_hand", &Wish::hosts(3)) else { return };
    let arguments = ["run", "--start", "by-hand", "--host", "n1,n2,n3", "-n", "3"];
    let script = "echo ready $RANK $(hostname); exec sleep 60";
    let running = start(&mut cluster.landeck(&[&arguments[..], &["sh", "-c", script]].concat()));
    running.err.wait_for("both commands", |text| token_for(text, "n3").is_some());
    let said = running.err.text();
    assert!(said.contains("landeckd") && said.contains("join"), "{said}");
    let tokens = ["n2", "n3"].map(|host| token_for(&said, host).unwrap());
    // A wrong token, and one that has been used.
    let wrong = tokens[0].chars().rev().collect::<String>();
    let refused = run(&mut join(&cluster, 1, &wrong, ""));
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let second = start(&mut join(&cluster, 1, &tokens[0], "--name n2"));
    let progress = |text: &str| text.contains("n3") && text.contains("waiting");
    running.err.wait_for("progress", progress);
    let refused = run(&mut join(&cluster, 2, &tokens[0], "--name n3"));
    refused.assert(1, &["does not admit", "token"]);
    let third = start(&mut join(&cluster, 2, &tokens[1], "--name n3"));
    running.out.wait_for("three processes", |text| text.matches("ready").count() == 3);
    let mut lines: Vec<String> = running.out.text().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["ready 0 n1", "ready 1 n2", "ready 2 n3"]);
    cluster.signal(0, "landeck", "TERM");
    running.end().assert(143, &[]);
    for daemon in [second, third] {
        drop(daemon.end());
    }
    cluster.assert_nothing_left();
}

#[test]
fn a_host_joins_at_another_address() {
    let Some(cluster) = Cluster::pair("a_host_joins_at_another_address") else { return };
    let arguments =
        ["run", "--start", "by-hand", "--port-range", "40000-40000", "--host", "n1,n2", "hostname"];
    let running = start(&mut cluster.landeck(&arguments));
    running.err.wait_for("the command", |text| token_for(text, "n2").is_some());
    let token = token_for(&running.err.text(), "n2").unwrap();
    let address = format!("{}:40000 --name n2", cluster.hosts.address(0));
    let daemon = start(&mut join(&cluster, 1, &token, &address));
    assert_eq!(running.end().assert(0, &[]).sorted(), ["n1", "n2"]);
    daemon.end().assert(0, &[]);
    cluster.assert_nothing_left();
}

#[test]
fn waiting_for_hosts_ends_on_an_interrupt() {
    let Some(cluster) = Cluster::pair("waiting_for_hosts_ends_on_an_interrupt") else { return };
    let arguments = ["run", "--start", "by-hand", "--host", "n1,n2", "hostname"];
    let running = start(&mut cluster.landeck(&arguments));
    running.err.wait_for("the command", |text| token_for(text, "n2").is_some());
    let token = token_for(&running.err.text(), "n2").unwrap();
    running.err.wait_for("progress", |text| text.contains("waiting"));
    cluster.signal(0, "landeck", "INT");
    running.end().assert(130, &[]);
    cluster.assert_nothing_left();
    // Its time is over.
    let late = run(&mut join(&cluster, 1, &token, ""));
    late.assert(1, &["is not reached"]);
    // The same while a remote shell says nothing.
    cluster.shell(
        0,
        "printf '#!/bin/sh\\nexec sleep 60\\n' >/run/home/silent; chmod +x /run/home/silent",
    );
    let arguments = ["run", "--rsh", "/run/home/silent", "--host", "n1,n2", "hostname"];
    let running = start(&mut cluster.landeck(&arguments));
    running.err.wait_for("progress", |text| text.contains("waiting") && text.contains("n2"));
    cluster.signal(0, "landeck", "INT");
    running.end().assert(130, &[]);
    cluster.assert_nothing_left();
}

#[test]
fn one_srun_starts_all_hosts_of_an_allocation() {
    let test = "one_srun_starts_all_hosts_of_an_allocation";
    let wish = Wish { slurm: true, ..Wish::hosts(3) };
    let Some(mut cluster) = Cluster::wished(test, &wish) else { return };
    let salloc = |cluster: &Cluster, hosts: &str, program: &str| {
        let mut command = cluster.hosts.command(0, "salloc");
        command.args(["-Q", "-N", hosts, "--ntasks-per-node=2", "sh", "-c"]);
        command.arg(format!("{} run --tag=host {program}", landeck().display()));
        command.stdin(Stdio::null());
        command
    };
    // The first use of a node starts what stays: steps of batch jobs have helpers that end later.
    let ended = run(&mut salloc(&cluster, "3", "hostname"));
    let on = |host: &str| {
        ended.out.lines().filter(|line| line.contains(host) && line.ends_with(host)).count()
    };
    assert_eq!(
        (ended.assert(0, &[]).out.lines().count(), on("n1"), on("n2"), on("n3")),
        (6, 2, 2, 2),
        "{ended:?}"
    );
    let running = start(&mut salloc(&cluster, "3", "sh -c 'echo ready; exec sleep 60'"));
    running.out.wait_for("six processes", |text| text.matches("ready").count() == 6);
    let sruns =
        cluster.processes(0).into_iter().filter(|process| process.line.contains("landeckd"));
    let mut sruns: Vec<Process> = sruns.filter(|process| process.name == "srun").collect();
    // srun forks a process that ends what it has started if it dies.
    sruns.retain(|process| process.line.contains("-N 2"));
    assert!(!sruns.is_empty() && sruns.len() <= 2, "{sruns:?}");
    // One of three daemons dies: its host is named.
    let daemon = cluster.daemon(2);
    cluster.signal_pid(2, daemon, "KILL");
    running.end().assert(137, &["Host n3 is lost"]);
    let running = start(&mut salloc(&cluster, "2", "sh -c 'echo ready; exec sleep 60'"));
    running.out.wait_for("four processes", |text| text.matches("ready").count() == 4);
    cluster.signal(0, "landeck", "KILL");
    drop(running.end());
    let is_ours =
        |process: &Process| process.name == "sleep" || process.name.starts_with("landeck");
    for host in 0..3 {
        wait_until("the hosts are free", || !cluster.processes(host).iter().any(is_ours));
    }
    let ended = run(&mut salloc(&cluster, "2", "/no/such/program"));
    ended.assert(127, &["/no/such/program"]);
    cluster.hosts.kill(2).unwrap();
}

#[test]
fn a_shell_that_greets_at_length_a_busy_server_and_another_user_are_no_hindrance() {
    let test = "a_shell_that_greets_at_length_a_busy_server_and_another_user_are_no_hindrance";
    let Some(cluster) = Cluster::pair(test) else { return };
    let script = "echo $1 >>/tmp/targets\n\
        if [ $(wc -l </tmp/targets) -le 2 ]; then\n\
            echo kex_exchange_identification: Connection closed by remote host >&2; exit 255\n\
        fi\n\
        seq 30000; exec landeck-rsh \"$@\"\n";
    cluster.shell(0, &format!("cat >'/tmp/my shell' <<'END'\n{script}END"));
    let arguments = ["run", "--rsh", "sh '/tmp/my shell'", "-H", "n1,ada@n2", "hostname"];
    let ended = cluster.run_clean(&mut cluster.landeck(&arguments));
    assert_eq!(ended.assert(0, &[]).sorted(), ["n1", "n2"]);
    assert_eq!(cluster.shell(0, "sort /tmp/targets | uniq -c").trim(), "3 ada@n2");
    let here = ["run", "--rsh", "landeck-rsh", "--host", "ada@n1,n2", "hostname"];
    cluster
        .run_clean(&mut cluster.landeck(&here))
        .assert(2, &["ada@n1", "leave the other one out"]);
    let by_hand = ["run", "--start", "by-hand", "--host", "n1,ada@n2", "hostname"];
    cluster.run_clean(&mut cluster.landeck(&by_hand)).assert(2, &["ada@n2", "--start ssh"]);
}
