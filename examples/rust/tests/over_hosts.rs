//! The example `ordered` over hosts of which one is lost: its traces show what the survivors keep.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::program::build;

/// How long the test may take, with the build of the launcher.
const TEST_LIMIT: Duration = Duration::from_secs(300);
/// How long traces may take to get as long as they should.
const WRITTEN_WITHIN: Duration = Duration::from_secs(100);
/// Lines of a trace in the midst of a run.
const LINES: usize = 150;

#[test]
fn survivors_of_a_lost_host_see_one_order() {
    let _watchdog = Watchdog::start(TEST_LIMIT);
    let launcher = build(env!("CARGO")).join("landeck");
    let test = "survivors_of_a_lost_host_see_one_order";
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(3)) else { return };
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples-ordered-hosts");
    let _ = fs::remove_dir_all(&out);
    let running = start(&hosts, &launcher, &out);
    wait_for_traces(&out);
    hosts.cut(1).unwrap();
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(137), "{ended:?}");
    let checked = Command::new(&launcher).args(["group", "check"]).arg(&out).output().unwrap();
    let text = text(&checked);
    assert!(checked.status.success(), "{text}");
    let mut all: Vec<String> = (0..4).map(|rank| member_of(&out, rank)).collect();
    let lost = all.remove(2);
    all.sort();
    let survivors = format!("members {}: the same ", all.join(", "));
    assert!(text.contains(&survivors) && text.contains(" before view 5"), "{text}");
    let lost = format!("member {lost}: the same ");
    assert!(text.contains(&lost) && text.contains("safe lost: 0; "), "{text}");
}

/// Starts two members on the first host, one on the second and one on the third. The group lies on the first host.
fn start(hosts: &Hosts, launcher: &Path, out: &PathBuf) -> Child {
    let mut command = hosts.command(0, launcher);
    command.args(["run", "--rsh", "landeck-rsh", "--host", "n1:2,n2:1,n3:1", "-n", "4"]);
    command.args(["--on-failure", "notify", "--host-timeout", "0.5", "--output-dir"]).arg(out);
    command.args([env!("CARGO_BIN_EXE_ordered"), "--seconds", "6", "--every", "10"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the launcher starts")
}

/// Waits until all members are in the midst of it.
fn wait_for_traces(out: &Path) {
    let is_within = |rank: u32| {
        let trace = fs::read_to_string(out.join(format!("rank-{rank}.stdout")));
        trace.is_ok_and(|trace| trace.lines().count() > LINES)
    };
    let give_up = Instant::now() + WRITTEN_WITHIN;
    while !(0..4).all(is_within) {
        assert!(Instant::now() < give_up, "no traces are written");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The number of the member of a rank: its trace says it first.
fn member_of(out: &Path, rank: u32) -> String {
    let trace = fs::read_to_string(out.join(format!("rank-{rank}.stdout"))).expect("a trace");
    let joined = trace.lines().find_map(|line| line.strip_prefix("join "));
    joined.and_then(|line| line.split('@').next()).expect("it joins").to_owned()
}

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}
