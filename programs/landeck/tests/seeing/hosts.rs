//! `landeck ps`, `why` and `top` for a job on two hosts.

use super::*;
use landeck::Tag;
use landeck::unstable::JobInternals;
use landeck_collectives::cost_parameters::CostParameters;
use landeck_collectives::record::Record;
use landeck_collectives::{Calibration, Settings};
use landeck_host::figures;
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::program::build;

/// Runs `landeck` on a host until its output contains all of `wanted`; returns the output.
fn until_said(hosts: &Hosts, host: usize, words: &[&str], wanted: &[&str]) -> String {
    let give_up = Instant::now() + SEEN_WITHIN;
    loop {
        let mut command = hosts.command(host, env!("CARGO_BIN_EXE_landeck"));
        let said = support::text(&command.args(words).output().unwrap());
        if wanted.iter().all(|wanted| said.contains(wanted)) {
            return said;
        }
        assert!(Instant::now() < give_up, "{wanted:?} is not in\n{said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The launcher of a test of this file with two processes on each of two hosts.
fn launcher_of(hosts: &Hosts, test: &str, options: &[&str]) -> Command {
    // The launcher finds the daemon beside itself.
    build(env!("CARGO"));
    let mut launcher = hosts.command(0, env!("CARGO_BIN_EXE_landeck"));
    launcher.args(["run", "--rsh", "landeck-rsh", "--host", "n1:2,n2:2", "--grace", "0.2"]);
    launcher.args(options).arg(std::env::current_exe().unwrap());
    launcher.args([test, "--exact", "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
    launcher
}

/// Signals the daemon of a host.
fn signal_daemon(hosts: &Hosts, host: usize, signal: &str) {
    let script = format!("kill -{signal} $(pidof landeckd)");
    assert!(hosts.command(host, "/bin/sh").args(["-c", &script]).status().unwrap().success());
}

#[test]
fn a_deadlock_over_hosts_is_explained_on_each_of_them() {
    let test = "hosts::a_deadlock_over_hosts_is_explained_on_each_of_them";
    if is_member() {
        return take_part(|_, world| match world.rank() {
            1 | 2 => drop(world.receive::<u32>(3 - world.rank(), Tag(7))),
            _ => stay(),
        });
    }
    let _watchdog = Watchdog::start(TEST_MAX);
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    let mut launcher = launcher_of(&hosts, test, &["--name", "stuck"]);
    let mut launcher = launcher.stdout(Stdio::null()).spawn().unwrap();
    let mut ids = Vec::new();
    for host in [0, 1] {
        let said = until_said(&hosts, host, &["why"], &["wait for each other."]);
        let (_, id) = said.split_once("stuck (").unwrap();
        ids.push(id.split(')').next().unwrap().to_owned());
        assert!(
            said.contains("rank 1 on n1 (pid ") && said.contains("rank 2 on n2 (pid "),
            "{said}"
        );
        assert!(said.contains("receive from rank 2 on n2 (pid "), "{said}");
        assert!(said.contains("), over a lane, "), "{said}");
        assert!(said.contains("one of them has to send first"), "{said}");
        let wanted = ["Logs of the daemons", " n1: trunk to host 1: connected", " n2: word "];
        until_said(&hosts, host, &["why", "--log"], &wanted);
        let said = until_said(&hosts, host, &["ps"], &["4 processes on 2 hosts", "HOST"]);
        // The launcher runs on the first host alone.
        assert_eq!(said.contains("launcher pid "), host == 0, "{said}");
        assert!(said.contains("rank 0        n1") && said.contains("rank 3        n2"), "{said}");
    }
    assert_eq!(ids[0], ids[1], "the job has one identity");
    let said = until_said(&hosts, 1, &["top", "--once", "-d", "0.1"], &["wait for each other."]);
    assert!(said.contains(&ids[0]), "{said}");
    assert!(said.contains("4 of 4 processes alive") && said.contains("HOST"), "{said}");
    for (host, name) in [(0, &ids[0][..]), (1, &ids[0]), (1, &ids[0][..12]), (1, "stuck")] {
        let said = until_said(&hosts, host, &["ps", name], &["4 processes on 2 hosts"]);
        assert!(said.contains(&ids[0]), "{said}");
    }
    signal_daemon(&hosts, 1, "STOP");
    let wanted = ["cannot be seen (daemon silent for ", "host n2: daemon silent for "];
    until_said(&hosts, 0, &["why"], &wanted);
    until_said(&hosts, 0, &["ps"], &["unseen", "host n2: daemon silent for "]);
    signal_daemon(&hosts, 1, "CONT");
    until_said(&hosts, 0, &["why"], &["wait for each other."]);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
}

#[test]
fn bytes_that_do_not_leave_and_groups_over_hosts_are_seen() {
    let test = "hosts::bytes_that_do_not_leave_and_groups_over_hosts_are_seen";
    if is_member() {
        return take_part(|_, world| {
            let color = u32::from(world.rank() > 0);
            let group = world.split(Some(color), 0).unwrap().unwrap();
            match world.rank() {
                0 => stay(),
                3 => while world.send(&[0u8; 4_000], 0, Tag(5)).is_ok() {},
                _ => drop(group.barrier()),
            }
        });
    }
    let _watchdog = Watchdog::start(TEST_MAX);
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    let mut launcher = launcher_of(&hosts, test, &["--name", "full"]);
    let mut launcher = launcher.stdout(Stdio::null()).spawn().unwrap();
    let members = ", the group of rank 1 on n1 (pid ";
    for host in [0, 1] {
        let wanted = [
            " unsent to rank 0 on n1 (pid ",
            ", which does not read: it ",
            members,
            " and ranks 2 3 on n2",
            "rank 2 on n2 (pid ",
        ];
        let said = until_said(&hosts, host, &["why"], &wanted);
        // It waits for all of its host, or for that one member: the way of a barrier follows from measurements.
        let is_missed = |line: &str| {
            line.starts_with("  rank 2 on n2 (pid ")
                && (line.contains(", missing rank 3 on n2 (pid ")
                    || line.contains("barrier from rank 3 on n2 (pid "))
        };
        assert!(said.lines().any(is_missed), "{said}");
        let lane = said.lines().find(|line| line.contains(" unsent ")).unwrap();
        assert!(lane.starts_with("  rank 3 on n2 (pid ") && lane.contains("iB unsent"), "{said}");
        let said =
            until_said(&hosts, host, &["top", "--once", "-d", "0.1"], &[" unsent to rank 0"]);
        until_said(&hosts, host, &["why", "--log"], &[" n1: lane ", " n2: lane ", ": open"]);
        let row = said.lines().find(|line| line.starts_with("rank 3 ")).unwrap();
        assert!(said.contains(" UNSENT ") && row.contains("B send: rank 0 on n1"), "{said}");
    }
    launcher.kill().unwrap();
    launcher.wait().unwrap();
}

#[test]
fn the_time_limit_shows_all_hosts() {
    let test = "hosts::the_time_limit_shows_all_hosts";
    if is_member() {
        return take_part(|_, world| match world.rank() {
            1 | 2 => drop(world.receive::<u32>(3 - world.rank(), Tag(7))),
            _ => stay(),
        });
    }
    let _watchdog = Watchdog::start(TEST_MAX);
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    // On a busy machine the processes may need longer than the first limit to get into each other's way.
    let said = [5, 20, 80].into_iter().find_map(|seconds| {
        let limit = seconds.to_string();
        let ended = launcher_of(&hosts, test, &["--timeout", &limit]).output().unwrap();
        let said = support::text(&ended);
        assert_eq!(ended.status.code(), Some(124), "{said}");
        (said.contains("wait for each other.") || seconds == 80).then_some(said)
    });
    let said = said.unwrap();
    let verdict = said.lines().find(|line| line.contains("wait for each other.")).unwrap_or("");
    let both = ["rank 1 on n1 (pid ", "rank 2 on n2 (pid "];
    assert!(both.iter().all(|rank| verdict.contains(rank)), "{said}");
    assert!(said.contains("one of them has to send first"), "{said}");
    assert!(said.contains("receive from rank 2 on n2"), "{said}");
}

/// Whether all four ranks are there with their stacks.
fn has_all_stacks(said: &str) -> bool {
    ["rank 0 on n1", "rank 1 on n1", "rank 2 on n2", "rank 3 on n2"].iter().all(|rank| {
        let head = format!("  {rank} (pid ");
        let found = said.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
        let mut stack = found.take_while(|line| !line.starts_with("  rank "));
        stack.any(|line| line.contains("#0") || line.contains("state "))
    })
}

#[test]
fn stacks_of_far_processes_are_shown() {
    let test = "hosts::stacks_of_far_processes_are_shown";
    let _watchdog = Watchdog::start(TEST_MAX);
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    build(env!("CARGO"));
    // A debugger is quick with so small a program.
    let sleepers = |options: &[&str]| {
        let mut launcher = hosts.command(0, env!("CARGO_BIN_EXE_landeck"));
        launcher.args(["run", "--rsh", "landeck-rsh", "--host", "n1:2,n2:2", "--grace", "0.2"]);
        launcher.args(options).args(["sleep", "300"]).stdin(Stdio::null());
        launcher
    };
    let mut launcher = sleepers(&[]).spawn().unwrap();
    let give_up = Instant::now() + SEEN_WITHIN;
    loop {
        let said = until_said(&hosts, 1, &["why", "--stacks"], &["has not joined the job"]);
        if has_all_stacks(&said) {
            break;
        }
        assert!(Instant::now() < give_up, "{said}");
    }
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    // On a busy machine the processes, or the debugger, may come later than the first limit.
    let said = [4, 20, 80].map(|seconds: u32| seconds.to_string()).iter().find_map(|limit| {
        let ended = sleepers(&["--timeout", limit, "--stacks"]).output().unwrap();
        let said = support::text(&ended);
        (has_all_stacks(&said) || limit == "80").then_some(said)
    });
    let said = said.unwrap();
    assert!(has_all_stacks(&said), "{said}");
}

#[test]
fn the_figures_of_the_slowest_host_count() {
    let test = "hosts::the_figures_of_the_slowest_host_count";
    if is_member() {
        return take_part(|job, _| {
            let settings = Settings::from_words(&job.segment().plan().settings);
            let CostParameters { line_ps, message_ps, .. } = settings.figures;
            println!("a line {line_ps}, a message {message_ps}");
        });
    }
    let _watchdog = Watchdog::start(TEST_MAX);
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    let usual = CostParameters::default();
    let slow_lines = CostParameters { line_ps: 71_000, message_ps: 50_000, ..usual };
    let slow_messages = CostParameters { line_ps: 31_000, message_ps: 95_000, ..usual };
    let said = |wanted: &str| {
        let mut launcher = launcher_of(&hosts, test, &[]);
        let said = support::text(&launcher.env_remove("XDG_CACHE_HOME").output().unwrap());
        assert_eq!(said.matches(wanted).count(), 4, "{wanted}: {said}");
    };
    keep_figures(&hosts, 0, slow_lines);
    said("a line 71000, a message 50000");
    keep_figures(&hosts, 1, slow_messages);
    said("a line 71000, a message 95000");
}

/// Writes the figures of a host, as `landeck tune` does.
fn keep_figures(hosts: &Hosts, host: usize, figures: CostParameters) {
    let details = Calibration::of(&figures);
    let record = Record { machine: figures::machine(), figures, details }.to_string();
    let script =
        r#"mkdir -p "$HOME/.cache/landeck" && printf %s "$1" >"$HOME/.cache/landeck/figures""#;
    let mut command = hosts.command(host, "/bin/sh");
    assert!(command.args(["-c", script, "sh", &record]).status().unwrap().success());
}
