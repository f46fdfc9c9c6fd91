//! Processes that sleep are woken by memory and by lanes, whichever thread waits.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use landeck::{Any, Job, Options, Progress, Tag, ThreadMode};
use rustix::time::{ClockId, clock_gettime};

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

/// The processor time of this process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_process_that_waits_for_memory_and_network_uses_no_processor() {
    let test = "waiting::a_process_that_waits_for_memory_and_network_uses_no_processor";
    on_hosts(test, |job| {
        const WAIT: Duration = Duration::from_secs(2);
        let world = job.world();
        world.barrier().unwrap();
        // Once it is woken from its own host, and once from the other one.
        for sender in [1, EACH] {
            if world.rank() == 0 {
                world.send(&[1u8], sender, Tag(1)).unwrap();
                let (begun, before) = (Instant::now(), processor_time());
                let status = world.receive::<u8>(Any, Tag(2)).unwrap().1;
                let (waited, used) = (begun.elapsed(), processor_time() - before);
                assert_eq!(status.rank(), sender);
                println!("waited {waited:?} and used {used:?}");
                assert!(used < waited / 100, "{used:?} of {waited:?}");
            } else if world.rank() == sender {
                world.receive::<u8>(0, Tag(1)).unwrap();
                thread::sleep(WAIT);
                world.send(&[2u8], 0, Tag(2)).unwrap();
            }
        }
        world.barrier().unwrap();
    });
}

/// The bytes that this host has exchanged with others.
fn moved_bytes() -> u64 {
    let table = fs::read_to_string("/proc/self/net/dev").unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    numbers[0] + numbers[8]
}

/// Rank 0 sends 8 MiB to another host. Both ranks compute then. With threads that help, the data move meanwhile; without
/// them, only the offer does.
fn send_and_compute(job: &Job, has_helper: bool) {
    const BYTES: usize = 8 << 20;
    const COMPUTE: Duration = Duration::from_millis(300);
    let world = job.world();
    let data: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
    let mut into = vec![0; BYTES];
    world.barrier().unwrap();
    let before = moved_bytes();
    let compute = || {
        let begun = Instant::now();
        while if has_helper {
            moved_bytes() - before < BYTES as u64
        } else {
            begun.elapsed() < COMPUTE
        } {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody helps");
            thread::sleep(Duration::from_millis(1));
        }
        let moved = moved_bytes() - before;
        assert!(has_helper || moved < BYTES as u64 / 8, "{moved} bytes moved without a call");
    };
    match world.rank() {
        0 => world
            .scope(|scope| {
                let send = scope.send(&data, EACH, Tag(1))?;
                compute();
                fs::write("/run/hosts/has-computed", "").unwrap();
                send.wait().map(drop)
            })
            .unwrap(),
        EACH => {
            world
                .scope(|scope| {
                    let receive = scope.receive_into(&mut into, 0, Tag(1))?;
                    compute();
                    while !fs::exists("/run/hosts/has-computed").unwrap() {
                        thread::sleep(Duration::from_millis(1));
                    }
                    receive.wait().map(drop)
                })
                .unwrap();
            assert!(into == data);
        }
        _ => {}
    }
    world.barrier().unwrap();
}

#[test]
fn threads_that_help_move_a_long_message_while_both_compute() {
    let options = Options { progress: Progress::Thread, ..Options::default() };
    let test = "waiting::threads_that_help_move_a_long_message_while_both_compute";
    on_hosts_with(test, options, |job| send_and_compute(job, true));
}

#[test]
fn a_long_message_without_helpers_moves_in_calls_of_both() {
    let test = "waiting::a_long_message_without_helpers_moves_in_calls_of_both";
    on_hosts(test, |job| send_and_compute(job, false));
}
