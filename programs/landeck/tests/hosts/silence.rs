//! Cables that are pulled, and hosts that are stopped.

use super::*;

#[test]
fn a_short_cut_ends_nothing() {
    let Some(cluster) = Cluster::pair("a_short_cut_ends_nothing") else { return };
    let mut running = cluster.start_four(&[], "sleep 4; echo end $RANK");
    cluster.hosts.cut(1).unwrap();
    thread::sleep(Duration::from_secs(2));
    cluster.hosts.join(1).unwrap();
    assert!(running.goes_on(), "{:?}", running.err.text());
    let ended = running.end();
    ended.assert(0, &[]);
    assert_eq!(ended.out.matches("end ").count(), 4, "{ended:?}");
    cluster.assert_nothing_left();
}

#[test]
fn a_long_cut_ends_the_job() {
    let Some(cluster) = Cluster::pair("a_long_cut_ends_the_job") else { return };
    let running = cluster.start_four(&[], "exec sleep 60");
    let cut = Instant::now();
    cluster.hosts.cut(1).unwrap();
    running.end().assert(137, &["Host n2 is lost: it has not answered for 3"]);
    let after = cut.elapsed();
    assert!(Duration::from_secs(3) < after && after < Duration::from_secs(31), "{after:?}");
    cluster.assert_nothing_left_on(0);
    // landeck-rsh needs no cable: its end is the end of the daemon there.
    cluster.assert_nothing_left_on(1);
}

#[test]
fn a_short_limit_is_kept() {
    let Some(cluster) = Cluster::pair("a_short_limit_is_kept") else { return };
    let running = cluster.start_four(&["--host-timeout", "0.5"], "exec sleep 60");
    let cut = Instant::now();
    cluster.hosts.cut(1).unwrap();
    running.end().assert(137, &["Host n2 is lost: it has not answered for 0."]);
    assert!(cut.elapsed() < Duration::from_secs(6), "{:?}", cut.elapsed());
    cluster.assert_nothing_left();
}

#[test]
fn a_stopped_host_is_not_lost() {
    let Some(cluster) = Cluster::pair("a_stopped_host_is_not_lost") else { return };
    let mut running = cluster.start_four(&["--host-timeout", "1"], "sleep 4; echo end $RANK");
    // Its daemon alone: its kernel goes on, and answers for it.
    let daemon = cluster.daemon(1);
    cluster.signal_pid(1, daemon, "STOP");
    thread::sleep(Duration::from_secs(3));
    assert!(running.goes_on(), "{:?}", running.err.text());
    cluster.signal_pid(1, daemon, "CONT");
    let ended = running.end();
    ended.assert(0, &[]);
    assert_eq!(ended.out.matches("end ").count(), 4, "{ended:?}");
    cluster.assert_nothing_left();
}
