//! Options of `landeck run` that mean something on every host.

use super::*;

#[test]
fn a_timeout_says_where_everybody_is() {
    let Some(cluster) = Cluster::pair("a_timeout_says_where_everybody_is") else { return };
    let has_gdb = !cluster.shell(0, "command -v gdb || true").is_empty();
    let has_stack = |text: &str| {
        text.split_once("rank 3 on n2").is_some_and(|(_, behind)| behind.contains("sleep"))
    };
    // On a busy machine the processes, or the debugger, may come later than the first limit.
    let late = |limit: &str, options: &[&str], has_all: &dyn Fn(&str) -> bool| {
        let arguments = [&["--timeout", limit][..], options, &["sleep", "300"]].concat();
        let ended = cluster.run_clean(&mut cluster.four(&arguments));
        ended.assert(124, &[]);
        (has_all(&ended.err) || limit == "50").then_some(ended)
    };
    let places = ["rank 0 on n1 (pid ", "rank 3 on n2 (pid "];
    let has_places = |text: &str| places.iter().all(|place| text.contains(place));
    let mut limits = ["0.5", "5", "50"].into_iter();
    let ended = limits.find_map(|limit| late(limit, &[], &has_places)).unwrap();
    ended.assert(124, &["4 of its 4 processes", places[0], places[1]]);
    let is_whole = |text: &str| has_places(text) && (has_stack(text) || !has_gdb);
    let mut limits = ["0.5", "5", "50"].into_iter();
    let ended = limits.find_map(|limit| late(limit, &["--stacks"], &is_whole)).unwrap();
    ended.assert(124, &places);
    assert!(has_stack(&ended.err) || !has_gdb, "{ended:?}");
}

#[test]
fn bindings_are_said_for_each_host() {
    let Some(cluster) = Cluster::pair("bindings_are_said_for_each_host") else { return };
    for _ in 0..3 {
        let arguments = ["--report-bindings", "--bind-to", "none", "true"];
        let ended = cluster.run_clean(&mut cluster.four(&arguments));
        ended.assert(0, &["Host n1: ", "Host n2: "]);
    }
    // The hosts of a cluster in namespaces have the processors of one kernel. Each would choose the same for its processes.
    let ended = cluster.run_clean(&mut cluster.four(&["--report-bindings", "true"]));
    let unbound = "No process is bound: hosts of the job share processors.";
    ended.assert(0, &[&format!("Host n1: {unbound}"), &format!("Host n2: {unbound}")]);
}

#[test]
fn a_failure_can_be_only_told() {
    let Some(cluster) = Cluster::pair("a_failure_can_be_only_told") else { return };
    let script = format!("test $RANK = 3 && exit 5; {UNTIL_GO}");
    let running = cluster.start_four(&["--on-failure", "notify"], &script);
    running.err.wait_for("the failure", |text| text.contains("The other 3 processes go on"));
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    let ended = running.end();
    ended.assert(5, &["rank 3 of 4 (pid ", "host n2", "The other 3 processes go on"]);
    assert_eq!(ended.out.matches("end ").count(), 3, "{ended:?}");
    cluster.assert_nothing_left();
}

#[test]
fn a_failed_process_starts_again_on_its_host() {
    let Some(cluster) = Cluster::pair("a_failed_process_starts_again_on_its_host") else { return };
    let script = "echo $RANK.$LANDECK_RESTART $(hostname); \
        test $RANK = 3 && test \"$LANDECK_RESTART\" != 1 && exit 5; sleep 1; true";
    let ended = cluster.run_four(&["--on-failure", "restart:2"], script);
    ended.assert(
        0,
        &["rank 3 of 4", "host n2", "started again", "Started again: rank 3 on n2 once."],
    );
    assert_eq!(ended.sorted(), ["0. n1", "1. n1", "2. n2", "3. n2", "3.1 n2"]);
    cluster.assert_nothing_left();
    let script = "test $RANK != 2 || exit 6; sleep 60";
    let ended = cluster.run_four(&["--on-failure", "restart:1,abort"], script);
    assert_eq!(ended.status.code(), Some(6), "{ended:?}");
    cluster.assert_nothing_left();
}

#[test]
fn processes_that_ignore_everything_are_killed() {
    let Some(cluster) = Cluster::pair("processes_that_ignore_everything_are_killed") else {
        return;
    };
    let script = "trap '' TERM INT HUP; test $RANK = 0 && exit 9; while :; do sleep 1; done";
    let ended = cluster.run_four(&["--grace", "0.5"], script);
    ended.assert(9, &["rank 0 of 4"]).within(Duration::from_secs(60));
    cluster.assert_nothing_left();
}

#[test]
fn several_programs_have_their_places() {
    let Some(cluster) = Cluster::pair("several_programs_have_their_places") else { return };
    let mut arguments = vec!["run", "--rsh", "landeck-rsh", "--host", "n1:1,n2:2", "--tag=host"];
    arguments.extend(["-n", "1", "echo", "one", ":", "-n", "2", "echo", "other"]);
    let ended = cluster.run_clean(&mut cluster.landeck(&arguments));
    let lines = ended.assert(0, &[]).sorted();
    assert_eq!(lines.iter().filter(|line| line.contains("n1") && line.ends_with("one")).count(), 1);
    assert_eq!(
        lines.iter().filter(|line| line.contains("n2") && line.ends_with("other")).count(),
        2
    );
}
