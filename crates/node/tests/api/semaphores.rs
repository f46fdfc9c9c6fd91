//! Semaphores and shared segments as programs use them, and what remains when their users die.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use landeck::{
    Error, ErrorKind, Job, NameError, ObjectError, Semaphore, SemaphoreError, SharedSegment, Tag,
    ThreadMode,
};

use crate::support::{NOTICED_WITHIN, in_enduring_job, in_job, kill_myself};

const MOMENT: Duration = Duration::from_millis(30);

fn semaphore(job: &Job, name: &str, units: u32) -> Semaphore {
    match job.create_semaphore(name, units) {
        Err(Error { kind: ErrorKind::Object(ObjectError::Taken { .. }), .. }) => {
            job.open_semaphore(name).unwrap()
        }
        made => made.unwrap(),
    }
}

fn segment(job: &Job, name: &str, bytes: u64) -> SharedSegment {
    match job.create_segment(name, bytes) {
        Err(Error { kind: ErrorKind::Object(ObjectError::Taken { .. }), .. }) => {
            job.open_segment(name).unwrap()
        }
        made => made.unwrap(),
    }
}

fn is_owner_died(error: &Error, of: u32) -> bool {
    matches!(error.kind, ErrorKind::Semaphore(SemaphoreError::OwnerDied { slot, ref who })
        if slot == of && who.starts_with(&format!("rank {of} (pid ")))
}

#[test]
fn one_at_a_time_changes_what_all_share() {
    for n in [1, 2, 4] {
        in_job(n, "semaphores::one_at_a_time_changes_what_all_share", ThreadMode::Single, |job| {
            const ROUNDS: u64 = 1_000;
            let world = job.world();
            let turn = semaphore(job, "turn", 1);
            let shared = segment(job, "sum", 16);
            world.barrier().unwrap();
            for _ in 0..ROUNDS {
                let _permit = turn.take().unwrap();
                let mut sum = [0u64];
                shared.read(8, &mut sum).unwrap();
                shared.write(8, &[sum[0] + 1]).unwrap();
            }
            world.barrier().unwrap();
            assert_eq!(shared.words()[1].load(Ordering::Acquire), ROUNDS * world.size() as u64);
            assert_eq!(turn.units(), 1);
        });
        if crate::support::is_member() {
            return;
        }
    }
}

#[test]
fn threads_of_all_processes_wait_for_what_others_give() {
    let name = "semaphores::threads_of_all_processes_wait_for_what_others_give";
    in_job(2, name, ThreadMode::Multiple, |job| {
        const EACH: u32 = 200;
        let world = job.world();
        let filled = semaphore(job, "filled", 0);
        world.barrier().unwrap();
        if world.rank() == 0 {
            for _ in 0..2 * EACH {
                filled.give(1).unwrap();
            }
        } else {
            std::thread::scope(|threads| {
                for _ in 0..2 {
                    threads.spawn(|| {
                        for _ in 0..EACH {
                            filled.take().unwrap().spend();
                        }
                    });
                }
            });
            assert_eq!(filled.units(), 0);
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_number_that_travels_opens_the_same_and_never_another() {
    let name = "semaphores::a_number_that_travels_opens_the_same_and_never_another";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        if world.rank() == 0 {
            let (units, memory) = (
                job.create_unnamed_semaphore(3).unwrap(),
                job.create_unnamed_segment(100).unwrap(),
            );
            memory.write(99, &[7u8]).unwrap();
            world.send(&[units.number(), memory.number()], 1, Tag(1)).unwrap();
            world.barrier().unwrap();
            drop((units, memory));
            world.barrier().unwrap();
            world.barrier().unwrap();
            return;
        }
        let numbers = world.receive::<[u64; 2]>(0, Tag(1)).unwrap().0;
        let units = job.open_semaphore_by_number(numbers[0]).unwrap();
        let memory = job.open_segment_by_number(numbers[1]).unwrap();
        world.barrier().unwrap();
        world.barrier().unwrap();
        // Who made them has gone from them; they are there.
        let mut last = [0u8];
        memory.read(99, &mut last).unwrap();
        assert_eq!((units.units(), last, memory.len()), (3, [7], 100));
        drop((units, memory));
        let gone = |error: Error| matches!(error.kind, ErrorKind::Object(ObjectError::Gone { .. }));
        assert!(gone(job.open_semaphore_by_number(numbers[0]).unwrap_err()));
        assert!(gone(job.open_segment_by_number(numbers[1]).unwrap_err()));
        assert!(gone(job.open_segment_by_number(u64::MAX).unwrap_err()));
        world.barrier().unwrap();
    });
}

#[test]
fn bad_input_of_semaphores_and_segments_is_told() {
    let name = "semaphores::bad_input_of_semaphores_and_segments_is_told";
    in_job(1, name, ThreadMode::Single, |job| {
        let named = |error: Error| match error.kind {
            ErrorKind::Object(ObjectError::Name(error)) => error,
            other => panic!("{other}"),
        };
        assert_eq!(named(job.create_semaphore("", 1).unwrap_err()), NameError::Empty);
        let bytes = named(job.create_segment([0xff], 8).unwrap_err());
        assert!(matches!(bytes, NameError::NotUtf8(_)));
        let unknown = job.open_semaphore("none").unwrap_err();
        assert!(
            matches!(unknown.kind, ErrorKind::Object(ObjectError::Unknown { .. })),
            "{unknown}"
        );
        for units in [1 << 16, u32::MAX] {
            let many = job.create_unnamed_semaphore(units).unwrap_err();
            let told =
                matches!(many.kind, ErrorKind::Semaphore(SemaphoreError::TooManyUnits { .. }));
            assert!(told, "{many}");
        }
        for bytes in [0, u64::MAX, (1 << 40) + 1] {
            let none = job.create_unnamed_segment(bytes).unwrap_err();
            assert!(matches!(none.kind, ErrorKind::Object(ObjectError::Size { .. })), "{none}");
            assert!(none.to_string().ends_with("give it 1 to 1,099,511,627,776"), "{none}");
        }
        // A name stands for one kind of object at a time.
        let both =
            (job.create_semaphore("both", 0).unwrap(), job.create_segment("both", 8).unwrap());
        assert!(both.0.try_take().unwrap().is_none());
        let late = both.0.take_within(MOMENT).map(drop).unwrap_err();
        assert!(matches!(late.kind, ErrorKind::TimedOut(_)), "{late}");
        assert!(both.0.give(1 << 16).is_err());
        let outside = both.1.write(7, &[1u16]).unwrap_err();
        assert!(matches!(outside.kind, ErrorKind::OutsideSegment(_)), "{outside}");
    });
}

#[test]
fn waiters_are_told_of_a_holder_that_dies_and_recover() {
    let name = "semaphores::waiters_are_told_of_a_holder_that_dies_and_recover";
    in_enduring_job(3, name, 137, |job| {
        let world = job.world();
        let turn = semaphore(&job, "turn", 1);
        // It goes with its last user, who is not to be the one that dies.
        world.barrier().unwrap();
        if world.rank() == 2 {
            let _permit = turn.take().unwrap();
            world.send(&[1u8], 0, Tag(1)).unwrap();
            world.send(&[1u8], 1, Tag(1)).unwrap();
            job.drain().unwrap();
            std::thread::sleep(3 * MOMENT);
            kill_myself();
        }
        world.receive::<u8>(2, Tag(1)).unwrap();
        let began = Instant::now();
        let told = turn.take().map(drop).unwrap_err();
        assert!(is_owner_died(&told, 2), "{told}");
        assert!(began.elapsed() < NOTICED_WITHIN);
        // Until somebody recovers, everybody is told.
        let told = turn.try_take().map(drop).unwrap_err();
        assert!(is_owner_died(&told, 2), "{told}");
        let other = 1 - world.rank();
        world.send(&[1u8], other, Tag(2)).unwrap();
        world.receive::<u8>(other, Tag(2)).unwrap();
        if world.rank() == 0 {
            assert_eq!(turn.recover().unwrap(), 1);
            assert_eq!(turn.recover().unwrap(), 0);
            let permit = turn.take().unwrap();
            world.send(&[1u8], 1, Tag(3)).unwrap();
            std::thread::sleep(MOMENT);
            drop(permit);
        } else {
            world.receive::<u8>(0, Tag(3)).unwrap();
            drop(turn.take().unwrap());
        }
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn memory_outlives_its_maker_and_goes_with_its_last_user() {
    let name = "semaphores::memory_outlives_its_maker_and_goes_with_its_last_user";
    in_enduring_job(3, name, 137, |job| {
        let world = job.world();
        if world.rank() == 2 {
            let made = job.create_segment("heirloom", 1 << 20).unwrap();
            made.write(1 << 19, &[4711u32]).unwrap();
            // Nobody else uses this one: it goes with its maker.
            let alone = job.create_segment("alone", 8).unwrap();
            world.send(&[1u8], 0, Tag(1)).unwrap();
            world.receive::<u8>(0, Tag(2)).unwrap();
            let _both = (made, alone);
            kill_myself();
        }
        if world.rank() == 0 {
            world.receive::<u8>(2, Tag(1)).unwrap();
            let opened = job.open_segment("heirloom").unwrap();
            world.send(&[1u8], 2, Tag(2)).unwrap();
            assert!(world.receive::<u8>(2, Tag(3)).is_err(), "it is dead");
            let unknown = job.open_segment("alone").unwrap_err();
            assert!(
                matches!(unknown.kind, ErrorKind::Object(ObjectError::Unknown { .. })),
                "{unknown}"
            );
            let again = job.open_segment("heirloom").unwrap();
            assert_eq!(again.number(), opened.number());
            drop(opened);
            let mut value = [0u32];
            again.read(1 << 19, &mut value).unwrap();
            assert_eq!(value, [4711]);
            drop(again);
            assert!(job.open_segment("heirloom").is_err());
            let next = job.create_segment("heirloom", 8).unwrap();
            assert_eq!(next.words()[0].load(Ordering::Relaxed), 0, "another memory");
        }
        println!("survivor done");
        job.leave().unwrap();
    });
}
