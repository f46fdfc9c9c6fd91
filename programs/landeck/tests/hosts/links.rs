//! `landeck tune --hosts`: the links of a job's hosts, and the ways that follow from them.

use super::*;

/// On a busy machine links look slower than they are, for as long as it is busy.
const FOUND_WITHIN: Duration = Duration::from_secs(100);

/// Runs `landeck tune --hosts` until it finds the links as they are. On a busy machine the time of a round may not suffice.
fn tuned(cluster: &Cluster, hosts: &str, is_right: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let arguments = ["tune", "--hosts", hosts, "--rsh", "landeck-rsh"];
        let ended = cluster.run_clean(&mut cluster.landeck(&arguments));
        ended.assert(0, &[]);
        if !ended.out.contains('?') && is_right(&ended.out) {
            return ended.out;
        }
        assert!(began.elapsed() < FOUND_WITHIN, "{hosts}: other links are found: {}", ended.out);
    }
}

/// The rate of a link in MB/s.
fn rate_of(text: &str, hosts: &str) -> f64 {
    let line = text.lines().find(|line| line.contains(hosts)).unwrap();
    line.split_whitespace().last().unwrap().parse().unwrap()
}

/// The ways of all operations.
fn ways(text: &str) -> &str {
    text.split_once("for all:\n").unwrap().1
}

#[test]
fn a_slow_link_is_seen_and_changes_the_ways_of_all_members_alike() {
    let wish = Wish { rate: Some("2gbit".into()), ..Wish::hosts(4) };
    let test = "a_slow_link_is_seen_and_changes_the_ways_of_all_members_alike";
    let Some(cluster) = Cluster::wished(test, &wish) else { return };
    let links = ["n1 - n2", "n1 - n3", "n1 - n4", "n2 - n3", "n2 - n4", "n3 - n4"];
    let is_alike = |text: &str| links.iter().all(|link| rate_of(text, link) > 60.0);
    let alike = tuned(&cluster, "n1,n2,n3,n4", is_alike);
    cluster.shell(2, "tc qdisc replace dev eth0 root tbf rate 200mbit burst 128kb latency 50ms");
    let is_one_slow =
        |text: &str| links.iter().all(|link| link.contains("n3") == (rate_of(text, link) < 30.0));
    let slow = tuned(&cluster, "n1,n2,n3,n4", is_one_slow);
    for text in [&alike, &slow] {
        assert!(text.contains("All 4 members choose these ways."), "{text}");
    }
    assert_ne!(ways(&alike), ways(&slow));
    // The first host is the centre of three, unless its link is the slow one.
    cluster.shell(2, "tc qdisc replace dev eth0 root tbf rate 2gbit burst 128kb latency 50ms");
    cluster.shell(0, "tc qdisc replace dev eth0 root tbf rate 200mbit burst 128kb latency 50ms");
    let is_first_slow =
        |text: &str| rate_of(text, "n1 - n2") < 30.0 && rate_of(text, "n2 - n3") > 60.0;
    let slow = tuned(&cluster, "n1,n2,n3", is_first_slow);
    assert!(slow.contains("All 3 members choose these ways."), "{slow}");
    let (_, order) = longest_allreduce(&slow).split_once(" in order ").unwrap();
    assert!(!order.starts_with('0'), "{slow}");
}

/// The way of the longest allreduce. Rates alone decide it: latencies, which others on the machine disturb, decide the shorter ones.
fn longest_allreduce(text: &str) -> &str {
    ways(text).lines().rfind(|line| line.starts_with("allreduce")).unwrap()
}

#[test]
fn one_host_has_no_links_and_an_unknown_one_is_named() {
    let Some(cluster) = Cluster::pair("one_host_has_no_links_and_an_unknown_one_is_named") else {
        return;
    };
    let arguments = ["tune", "--hosts", "n1:2", "--rsh", "landeck-rsh"];
    let ended = cluster.run_clean(&mut cluster.landeck(&arguments));
    assert!(ended.out.contains("All processes are on one host"), "{ended:?}");
    let arguments = ["tune", "--hosts", "n1,n9", "--rsh", "landeck-rsh"];
    let ended = cluster.run_clean(&mut cluster.landeck(&arguments));
    ended.assert(1, &["host n9", "--hosts n1,n9: no links, since a job on these hosts failed"]);
}

#[test]
fn hosts_are_saved_as_a_platform_and_simulated() {
    let Some(cluster) = Cluster::pair("hosts_are_saved_as_a_platform_and_simulated") else {
        return;
    };
    let save = ["tune", "--hosts", "n1,n2", "--rsh", "landeck-rsh", "--save", "/tmp/two.toml"];
    let ended = cluster.run_clean(&mut cluster.landeck(&save));
    ended.assert(0, &[]);
    // Speeds belong to the benchmark: here only the table and its order count.
    let times = |operation: &str| -> Vec<f64> {
        let line = ended.out.lines().find(|line| line.starts_with(operation)).unwrap();
        let words = line.split_whitespace().filter_map(|word| word.parse().ok());
        words.rev().take(2).collect()
    };
    assert!(times("barrier").iter().all(|us| *us > 0.0), "{ended:?}");
    let (short, long) = (times("broadcast of 8 B")[0], times("broadcast of 65536 B")[0]);
    // On a busy machine the latency may hide what 64 KiB add.
    assert!(long >= short, "{ended:?}");
    let simulate = ["simulate", "barrier", "-a", "butterfly", "-n", "2", "--per-host", "1"];
    let platform = ["--platform", "/tmp/two.toml", "--sizes", "0"];
    let ended = cluster.run_clean(&mut cluster.landeck(&[&simulate[..], &platform].concat()));
    ended.assert(0, &[]);
    assert!(ended.out.contains("butterfly"), "{ended:?}");
    let nowhere = ["tune", "--hosts", "n1", "--rsh", "landeck-rsh", "--save", "/tmp/one.toml"];
    let ended = cluster.run_clean(&mut cluster.landeck(&nowhere));
    ended.assert(1, &["--hosts n1: one host has no links; give several"]);
}

/// It repeats what others disturb, for up to a minute and a half: on a busy machine that is too long for the short form.
#[test]
fn simulated_operations_are_compared_with_those_of_hosts() {
    let test = "simulated_operations_are_compared_with_those_of_hosts";
    let Some(cluster) = is_soak().then(|| Cluster::pair(test)).flatten() else { return };
    let measured = ["simulate", "barrier", "-a", "butterfly", "--sizes", "0", "--measured"];
    let hosts = ["--hosts", "n1,n2", "--rsh", "landeck-rsh"];
    let ended = run_within(&mut cluster.landeck(&[&measured[..], &hosts].concat()), TEST_MAX);
    assert!(ended.out.contains("Barrier, 2 processes: simulated, measured"), "{ended:?}");
    assert!(ended.out.contains("of 1 figures are within 25% of what was measured."), "{ended:?}");
    cluster.assert_nothing_left();
}
