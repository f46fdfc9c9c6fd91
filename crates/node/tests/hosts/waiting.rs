//! Processes that sleep are woken by memory and by lanes, whichever thread waits.

use std::thread;
use std::time::Duration;

use landeck::{Any, Options, Progress, Tag, ThreadMode};

use crate::job::{EACH, RANKS, on_hosts, on_hosts_with};

const MOMENT: Duration = Duration::from_millis(30);

#[test]
fn a_sleeper_is_woken_by_memory_and_by_network() {
    on_hosts("waiting::a_sleeper_is_woken_by_memory_and_by_network", |job| {
        const ROUNDS: u64 = 20;
        let world = job.world();
        let before = job.counters().sleeps;
        if world.rank() == 0 {
            for round in 0..ROUNDS {
                let sender = 1 + round as usize % (RANKS - 1);
                world.send(&[round], sender, Tag(1)).unwrap();
                let (value, status) = world.receive::<u64>(Any, Tag(2)).unwrap();
                assert_eq!((value, status.rank()), (round, sender));
            }
            (1..RANKS).for_each(|rank| world.send(&[u64::MAX], rank, Tag(1)).unwrap());
            assert!(job.counters().sleeps > before, "it slept");
            return;
        }
        loop {
            let (value, _) = world.receive::<u64>(0, Tag(1)).unwrap();
            if value == u64::MAX {
                return;
            }
            thread::sleep(MOMENT);
            world.send(&[value], 0, Tag(2)).unwrap();
        }
    });
}

#[test]
fn threads_of_one_process_wait_for_memory_and_network() {
    let options = Options { threads: ThreadMode::Multiple, ..Options::default() };
    let test = "waiting::threads_of_one_process_wait_for_memory_and_network";
    on_hosts_with(test, options, |job| {
        const ROUNDS: u64 = 300;
        let world = job.world();
        let (rank, near) = (world.rank(), world.rank() ^ 1);
        let far = (rank + EACH) % RANKS;
        thread::scope(|threads| {
            for (tag, other) in [(1, near), (2, far), (3, (far ^ 1))] {
                let world = world.clone();
                threads.spawn(move || {
                    for round in 0..ROUNDS {
                        if round % 100 == 7 {
                            thread::sleep(MOMENT);
                        }
                        let sent = [round, rank as u64];
                        let mut got = [0u64; 2];
                        let to = (other, Tag(tag));
                        world.send_receive(&sent, to, &mut got, to).unwrap();
                        assert_eq!(got, [round, other as u64]);
                    }
                });
            }
        });
    });
}

#[test]
fn a_thread_advances_what_comes_from_another_host() {
    let options = Options { progress: Progress::Thread, ..Options::default() };
    on_hosts_with("waiting::a_thread_advances_what_comes_from_another_host", options, |job| {
        let world = job.world();
        let far = (world.rank() + EACH) % RANKS;
        let long = vec![world.rank() as u32; 1_000_000];
        let mut into = vec![0u32; 1_000_000];
        world
            .scope(|scope| {
                let receive = scope.receive_into(&mut into, far, Tag(1))?;
                let send = scope.send(&long, far, Tag(1))?;
                thread::sleep(20 * MOMENT); // the helping thread does it meanwhile
                send.wait()?;
                receive.wait()
            })
            .unwrap();
        assert!(into.iter().all(|&value| value == far as u32));
    });
}
