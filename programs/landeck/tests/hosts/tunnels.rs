//! `--path daemons`: all messages of two hosts go over one connection of their daemons.

use std::io::{Read, stdin};

use landeck::{Job, Tag};

use super::members::is_member;
use super::*;

const RANKS: usize = 4;

/// A process that talks with all processes of the other host, and waits for rank 0 then.
fn talk() {
    let job = Job::join().unwrap();
    let (world, rank) = (job.world(), job.world().rank());
    let far: Vec<usize> = (0..RANKS).filter(|other| other / 2 != rank / 2).collect();
    for length in [1, 300_000] {
        let data = vec![rank as u8; length];
        for to in &far {
            let mut received = vec![0u8; length];
            world.send_receive(&data, (*to, Tag(7)), &mut received, (*to, Tag(7))).unwrap();
            assert!(received.iter().all(|byte| usize::from(*byte) == *to));
        }
    }
    println!("connected");
    if rank == 0 {
        stdin().read_to_end(&mut Vec::new()).unwrap();
        (1..RANKS).for_each(|to| world.send(&[7u8], to, Tag(9)).unwrap());
    } else {
        assert_eq!(world.receive::<u8>(0, Tag(9)).unwrap().0, 7);
    }
    println!("whole");
    job.leave().unwrap();
}

#[test]
fn two_hosts_have_one_connection_for_all_processes() {
    let test = "tunnels::two_hosts_have_one_connection_for_all_processes";
    if is_member() {
        return talk();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let mut command = cluster.four_members(test, &["--path", "daemons"]);
    let mut running = start(command.stdin(Stdio::piped()));
    running.out.wait_for("all of them", |text| text.matches("connected\n").count() == RANKS);
    for host in 0..2 {
        let listed = cluster.shell(host, "ss -Htnp state established");
        let owned_by = |name: &str| listed.lines().filter(|line| line.contains(name)).count();
        // The trunk, and the one for messages.
        assert_eq!((owned_by("\"landeckd\""), owned_by("\"hosts-")), (2, 0), "{listed}");
    }
    wait_until("the path is named", || {
        let told = run(&mut cluster.landeck(&["why"]));
        told.out.contains("through the daemons of both hosts")
    });
    drop(running.stdin.take());
    let ended = running.end();
    ended.assert(0, &[]);
    assert_eq!(ended.out.matches("whole\n").count(), RANKS, "{ended:?}");
    cluster.assert_nothing_left();
}
