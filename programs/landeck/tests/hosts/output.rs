//! Streams of processes on all hosts: whole, bounded, and where the user wants them.

use super::*;
use std::io::Write;

#[test]
fn input_reaches_those_that_are_named() {
    let Some(cluster) = Cluster::pair("input_reaches_those_that_are_named") else { return };
    let text = "0123456789".repeat(100_000);
    for (to, wanted) in [
        ("all", ["0 1000000", "1 1000000", "2 1000000", "3 1000000"]),
        ("3", ["0 0", "1 0", "2 0", "3 1000000"]),
    ] {
        let script = "echo $RANK $(wc -c)";
        let mut command = cluster.four(&["--stdin", to, "sh", "-c", script]);
        let mut running = start(command.stdin(Stdio::piped()));
        let mut stdin = running.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        assert_eq!(running.end().assert(0, &[]).sorted(), wanted);
    }
    cluster.assert_nothing_left();
}

/// A part drops the input that is on its way when it ends, and its end travels behind its output.
#[test]
fn a_host_that_ends_amid_the_input_holds_up_no_other_host() {
    let test = "a_host_that_ends_amid_the_input_holds_up_no_other_host";
    let Some(cluster) = Cluster::pair(test) else { return };
    let script =
        "case $RANK in 0) wc -c ;; *) head -c 500000 | wc -c; yes | head -c 900000 >&2 ;; esac";
    let usual = ["run", "--rsh", "landeck-rsh", "--host", "n1,n2", "--stdin", "all"];
    for _ in 0..8 {
        let mut command = cluster.landeck(&[&usual, &["sh", "-c", script][..]].concat());
        let mut running = start(command.stdin(Stdio::piped()));
        let mut stdin = running.stdin.take().unwrap();
        stdin.write_all(&vec![b'x'; 6_000_000]).unwrap();
        drop(stdin);
        let ended = running.end();
        assert!(ended.status.success(), "{}", ended.status);
        assert_eq!(ended.sorted(), ["500000", "6000000"]);
    }
    cluster.assert_nothing_left();
}

#[test]
fn a_reader_that_stops_bounds_everything() {
    let Some(cluster) = Cluster::pair("a_reader_that_stops_bounds_everything") else { return };
    let bytes = if is_soak() { 50_000_000 } else { 5_000_000 };
    // A reader that does not read until it is told.
    let script = format!(
        "{} run --rsh landeck-rsh --host n1:2,n2:2 -n 4 sh -c 'yes 0123456 | head -c {bytes}' \
         | {{ until [ -e /tmp/go ]; do sleep 0.05; done; wc -c; }}",
        landeck().display()
    );
    let mut command = cluster.hosts.command(0, "/bin/sh");
    let mut running = start(command.args(["-c", &script]).stdin(Stdio::null()));
    wait_until("the processes start", || cluster.named(1, "head").len() == 2);
    // What all buffers hold is taken within this time.
    thread::sleep(Duration::from_secs(1));
    assert!(running.goes_on());
    for host in 0..2 {
        assert_eq!(
            cluster.named(host, "head").len(),
            2,
            "a process has ended before its output was read"
        );
        for name in ["landeckd", "landeck"] {
            for pid in cluster.named(host, name) {
                let line = cluster.shell(host, &format!("grep VmRSS /proc/{pid}/status"));
                let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
                assert!(kilobytes < 100_000, "{name} on host {host}: {line}");
            }
        }
    }
    cluster.shell(0, "touch /tmp/go");
    let ended = running.end();
    assert_eq!(ended.assert(0, &[]).out.trim(), (4 * bytes).to_string());
    cluster.assert_nothing_left();
}

#[test]
fn nothing_of_long_output_is_lost() {
    let Some(cluster) = Cluster::pair("nothing_of_long_output_is_lost") else { return };
    let script = "i=0; while [ $i -lt 3000 ]; do echo $RANK.$i; i=$((i + 1)); done";
    let ended = cluster.run_four(&[], script);
    let mut next = [0; 4];
    for line in ended.assert(0, &[]).out.lines() {
        let (rank, number) = line.split_once('.').unwrap();
        let rank: usize = rank.parse().unwrap();
        assert_eq!(number.parse(), Ok(next[rank]), "{line}");
        next[rank] += 1;
    }
    assert_eq!(next, [3000; 4]);
    cluster.assert_nothing_left();
}

#[test]
fn a_reader_that_leaves_ends_the_writers() {
    let Some(cluster) = Cluster::pair("a_reader_that_leaves_ends_the_writers") else { return };
    let script = format!(
        "{} run --rsh landeck-rsh --host n1:2,n2:2 -n 4 yes | head -n 3",
        landeck().display()
    );
    let mut command = cluster.hosts.command(0, "/bin/sh");
    let ended = run(command.args(["-c", &script]).stdin(Stdio::null()));
    assert_eq!(ended.assert(0, &[]).out, "y\ny\ny\n");
    cluster.assert_nothing_left();
}

#[test]
fn output_goes_into_files_until_the_disk_is_full() {
    let test = "output_goes_into_files_until_the_disk_is_full";
    let Some(cluster) = Cluster::pair(test) else { return };
    let script = "echo out $RANK; echo err $RANK >&2";
    let ended = cluster.run_four(&["--output-dir", "/tmp/out"], script);
    ended.assert(0, &[]);
    assert_eq!(cluster.shell(0, "cat /tmp/out/*3*"), "err 3\nout 3\n");
    cluster.shell(1, "! test -e /tmp/out");
    cluster.shell(0, "mkdir /tmp/small; mount -t tmpfs -o size=256k none /tmp/small");
    let script = "head -c 1000000 /dev/zero; echo end $RANK >&2";
    let ended = cluster.run_four(&["--output-dir", "/tmp/small/out"], script);
    assert!(ended.status.code().is_some_and(|code| code != 0), "{ended:?}");
    assert!(
        ended.err.contains("/tmp/small/out") && ended.err.contains("No space left"),
        "{ended:?}"
    );
    cluster.assert_nothing_left();
}
