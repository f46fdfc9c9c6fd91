//! `landeck ps`, `why` and `top` for a job on two hosts.

use super::*;
use landeck::Tag;
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
    // The launcher finds the daemon beside itself.
    build(env!("CARGO"), &["landeckd"]);
    let mut launcher = hosts.command(0, env!("CARGO_BIN_EXE_landeck"));
    launcher.args(["run", "--rsh", "landeck-rsh", "--host", "n1:2,n2:2", "--grace", "0.2"]);
    launcher.args(["--name", "stuck"]).arg(std::env::current_exe().unwrap());
    launcher.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    let mut launcher = launcher.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    for host in [0, 1] {
        let said = until_said(&hosts, host, &["why"], &["wait for each other."]);
        assert!(
            said.contains("rank 1 on n1 (pid ") && said.contains("rank 2 on n2 (pid "),
            "{said}"
        );
        assert!(said.contains("receive from rank 2 on n2 (pid "), "{said}");
        assert!(said.contains("), over a lane, "), "{said}");
        assert!(said.contains("one of them has to send first"), "{said}");
        let said = until_said(&hosts, host, &["ps"], &["4 processes on 2 hosts", "HOST"]);
        assert!(said.contains("rank 0        n1") && said.contains("rank 3        n2"), "{said}");
    }
    let said = until_said(&hosts, 1, &["top", "--once", "-d", "0.1"], &["wait for each other."]);
    assert!(said.contains("4 of 4 processes alive") && said.contains("HOST"), "{said}");
    signal_daemon(&hosts, 1, "STOP");
    let wanted = ["cannot be seen (daemon silent for ", "host n2: daemon silent for "];
    until_said(&hosts, 0, &["why"], &wanted);
    until_said(&hosts, 0, &["ps"], &["unseen", "host n2: daemon silent for "]);
    signal_daemon(&hosts, 1, "CONT");
    until_said(&hosts, 0, &["why"], &["wait for each other."]);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
}
