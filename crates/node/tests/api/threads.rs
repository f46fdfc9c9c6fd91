//! Thread mode multiple.

use landeck::{Any, Tag, ThreadMode};

use crate::support::{in_job, is_member};

#[test]
fn threads_exchange_at_the_same_time() {
    for n in [2, 3] {
        in_job(n, "threads::threads_exchange_at_the_same_time", ThreadMode::Multiple, |job| {
            let world = job.world();
            let (rank, size) = (world.rank(), world.size());
            const THREADS: u32 = 4;
            const ROUNDS: u64 = 300;
            std::thread::scope(|threads| {
                for thread in 0..THREADS {
                    let world = world.clone();
                    threads.spawn(move || {
                        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
                        let tag = Tag(thread);
                        for round in 0..ROUNDS {
                            let length = [1usize, 100, 5_000, 50_000][(round % 4) as usize];
                            let value = round * 100 + u64::from(thread);
                            let mut into = vec![0u64; length];
                            world
                                .send_receive(
                                    &vec![value; length],
                                    (next, tag),
                                    &mut into,
                                    (previous, tag),
                                )
                                .unwrap();
                            assert!(
                                into.iter().all(|&got| got == value),
                                "thread {thread} round {round}"
                            );
                        }
                    });
                }
            });
        });
        if is_member() {
            return;
        }
    }
}

#[test]
fn a_thread_that_waits_long_does_not_hold_up_the_others() {
    let name = "threads::a_thread_that_waits_long_does_not_hold_up_the_others";
    in_job(2, name, ThreadMode::Multiple, |job| {
        let world = job.world();
        let other = 1 - world.rank();
        std::thread::scope(|threads| {
            let patient = threads.spawn(|| world.receive::<u32>(other, Tag(9)).unwrap().0);
            let prober = threads.spawn(|| world.probe(other, Tag(8)).unwrap().bytes());
            for round in 0..500u32 {
                world.send(&[round], other, Tag(1)).unwrap();
                assert_eq!(world.receive::<u32>(Any, Tag(1)).unwrap().0, round);
            }
            world.send(&[1u8, 2], other, Tag(8)).unwrap();
            assert_eq!(prober.join().unwrap(), 2);
            world.send(&[77u32], other, Tag(9)).unwrap();
            assert_eq!(patient.join().unwrap(), 77);
        });
    });
}
