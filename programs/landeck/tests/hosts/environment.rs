//! The surroundings of processes on all hosts: variables, addresses, open files, sockets.

use super::*;

#[test]
fn every_process_knows_its_place() {
    let Some(cluster) = Cluster::pair("every_process_knows_its_place") else { return };
    let script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $(hostname) $FLAG; pwd >&2";
    let ended = cluster.run_four(&["-x", "FLAG=a b"], script);
    let wanted = ["0 4 0 2 0 n1 a b", "1 4 1 2 0 n1 a b", "2 4 0 2 1 n2 a b", "3 4 1 2 1 n2 a b"];
    assert_eq!(ended.assert(0, &[]).sorted(), wanted);
    let here = std::env::current_dir().unwrap().display().to_string();
    assert_eq!(ended.err.lines().filter(|line| *line == here).count(), 4, "{ended:?}");
    cluster.assert_nothing_left();
}

#[test]
fn the_address_of_rank_0_is_reached_by_all() {
    let Some(cluster) = Cluster::pair("the_address_of_rank_0_is_reached_by_all") else { return };
    for hosts in ["n1:1,n2:1", "localhost:1,n2:1", "127.0.0.1:1,n2:1", "n2:1,localhost:1"] {
        let first = if hosts.starts_with("n2") { 1 } else { 0 };
        let arguments = ["run", "--rsh", "landeck-rsh", "--host", hosts, "-n", "2"];
        let program = ["sh", "-c", "echo $MASTER_ADDR"];
        let ended = cluster.run_clean(&mut cluster.landeck(&[&arguments[..], &program].concat()));
        let address = cluster.hosts.address(first).to_string();
        let is_it = |line: &str| line == address || line == cluster.hosts.name(first);
        assert_eq!(
            ended.assert(0, &[]).out.lines().filter(|line| is_it(line)).count(),
            2,
            "{ended:?}"
        );
    }
    let ended = cluster.run_four(&["-x", "MASTER_ADDR=mine"], "echo $MASTER_ADDR");
    assert_eq!(ended.assert(0, &[]).sorted(), ["mine"; 4]);
}

#[test]
fn two_names_of_a_host_add_up() {
    let Some(cluster) = Cluster::pair("two_names_of_a_host_add_up") else { return };
    let script = "echo $RANK $(hostname) $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK";
    let address = cluster.hosts.address(1).to_string();
    for (hosts, wanted) in [
        (
            "n1:1,localhost:1,n2:2".to_owned(),
            ["0 n1 0 2 0", "1 n1 1 2 0", "2 n2 0 2 1", "3 n2 1 2 1"],
        ),
        (
            format!("n2:1,n1:2,{address}:1"),
            ["0 n2 0 2 0", "1 n1 0 2 1", "2 n1 1 2 1", "3 n2 1 2 0"],
        ),
    ] {
        // landeck-rsh knows hosts by their names alone.
        cluster.shell(0, "printf '#!/bin/sh\\nhost=$1; shift; [ $host != 10.77.1.2 ] || host=n2; exec landeck-rsh $host \"$@\"\\n' \
             >/run/home/rsh; chmod +x /run/home/rsh");
        let arguments =
            ["run", "--rsh", "/run/home/rsh", "--host", &hosts, "-n", "4", "sh", "-c", script];
        let ended = cluster.run_clean(&mut cluster.landeck(&arguments));
        assert_eq!(ended.assert(0, &[]).sorted(), wanted);
    }
}

#[test]
fn few_open_files_are_enough() {
    let Some(cluster) = Cluster::pair("few_open_files_are_enough") else { return };
    let mut command = cluster.hosts.command(0, "/bin/sh");
    command.args(["-c", "ulimit -n 256; exec \"$@\"", "sh"]).arg(landeck());
    command.args(["run", "--rsh", "landeck-rsh", "--host", "n1:4,n2:4", "-n", "8", "hostname"]);
    let ended = cluster.run_clean(command.stdin(Stdio::null()));
    assert_eq!(ended.assert(0, &[]).sorted(), ["n1", "n1", "n1", "n1", "n2", "n2", "n2", "n2"]);
}

#[test]
fn a_job_on_one_host_listens_nowhere() {
    let Some(cluster) = Cluster::pair("a_job_on_one_host_listens_nowhere") else { return };
    // Everything in this network namespace that is bound or connected: no line but the heads of the tables.
    let tables = "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 2>/dev/null";
    // The heads of the tables have no colon.
    let both = format!("echo $({tables} | grep -c :)");
    let sockets = |hosts: Option<&str>| {
        let list = hosts.map(|hosts| ["--rsh", "landeck-rsh", "--host", hosts]);
        let options: Vec<&str> = list.iter().flatten().copied().collect();
        let program = ["-n", "2", "sh", "-c", &both];
        let ended =
            cluster.run_clean(&mut cluster.landeck(&[&["run"], &options[..], &program].concat()));
        let line = ended.assert(0, &[]).out.lines().next().unwrap().to_owned();
        line.parse::<u32>().unwrap()
    };
    assert_eq!(sockets(None), 0);
    assert_eq!(sockets(Some("localhost:2")), 0);
    assert!(sockets(Some("n1:1,n2:1")) > 0, "this is how one would see it");
}
