//! Children made by fork: they are refused by every way into the job, and what they drop is their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use landeck::{
    Error, ErrorKind, GroupOptions, Job, Message, ObjectError, Options, Progress, Result, Tag,
    ThreadMode,
};

use crate::support::{is_member, job_of, run_well, text};
use landeck_testing::Trail;

/// A child that hangs is ended after so long.
const CHILD_SECONDS: u32 = 60;

/// Makes a child; none in the child itself.
fn fork() -> Option<i32> {
    // SAFETY: the child calls this library and ends in `end_child` or `Job::abort`.
    match unsafe { libc::fork() } {
        0 => None,
        child => Some(child),
    }
}

/// Runs this in the child, which ends with code 1 when something is not as expected.
fn check_child(body: impl FnOnce()) {
    // SAFETY: a plain system call.
    unsafe { libc::alarm(CHILD_SECONDS) };
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        // SAFETY: the call does not return, and no handler of the test harness runs.
        unsafe { libc::_exit(1) }
    }
}

/// Runs this in the child as [`check_child`] does, and ends the child with code 0.
fn end_child(body: impl FnOnce()) -> ! {
    check_child(body);
    // SAFETY: as above.
    unsafe { libc::_exit(0) }
}

/// The wait status of a child.
fn status_of(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the status is memory of ours.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

fn assert_refused<T>(what: &str, result: Result<T>) {
    let Err(error) = result else { panic!("{what} is not refused") };
    assert!(error.to_string().contains("made by fork"), "{what}: {error}");
}

fn join() -> Job {
    let options = Options { threads: ThreadMode::Multiple, progress: Progress::Thread };
    Job::join_with(options).unwrap()
}

#[test]
fn a_forked_child_reaches_nobody_through_memory_and_units() {
    let test = "forks::a_forked_child_reaches_nobody_through_memory_and_units";
    if !is_member() {
        return run_well(&mut job_of(2, test, &[]));
    }
    let job = join();
    let world = job.world();
    let rank = world.rank();
    let name = |what: &str| format!("{what} {rank}");
    let lock = job.create_semaphore(name("lock"), 1).unwrap();
    let permit = lock.take().unwrap();
    let field = job.create_segment(name("field"), 64).unwrap();
    let region = job.create_region(64).unwrap();
    let remote = job.open_region(region.address()).unwrap();
    let mut loan = job.loan::<u8>(1 << 16).unwrap();
    loan[0] = 1;
    let threads = job.threads(2).unwrap();
    let before = job.heap_in_use().unwrap();

    let Some(child) = fork() else {
        end_child(|| {
            assert_refused("take", lock.take().map(drop));
            assert_refused("try_take", lock.try_take().map(drop));
            assert_refused("give", lock.give(1));
            assert_refused("recover", lock.recover());
            assert!(!lock.put_back() && !lock.use_up());
            assert_refused("create_semaphore", job.create_semaphore("child's", 1));
            assert_refused("open_semaphore", job.open_semaphore(name("lock")));
            assert_refused("create_segment", job.create_segment("child's", 8));
            assert_refused("read", field.read(0, &mut [0u8]));
            assert_refused("write", field.write(0, &[9u8]));
            assert_refused("create_region", job.create_region(8));
            assert_refused("put", remote.put(0, &[9u8]));
            assert_refused("loan", job.loan::<u8>(1));
            assert_refused("start", threads.start("child's", || ()));
            loan[0] = 9;
            // As at the end of a program.
            drop((permit, remote, region, loan, threads, world));
            assert_refused("leave", job.leave());
        })
    };
    assert_eq!(status_of(child), 0);

    assert_eq!(lock.units(), 0, "the unit is held");
    drop(permit);
    assert_eq!(lock.units(), 1);
    assert_eq!((loan[0], job.heap_in_use().unwrap()), (1, before));
    let mut values = [7u8];
    field.read(0, &mut values).unwrap();
    assert_eq!(values, [0]);
    remote.put(0, &[3u8]).unwrap();
    world.barrier().unwrap();
    let unknown = job.open_semaphore("child's").unwrap_err();
    assert!(matches!(unknown.kind, ErrorKind::Object(ObjectError::Unknown { .. })), "{unknown}");
    drop((region, loan));
    job.leave().unwrap();
}

#[test]
fn a_forked_child_reaches_nobody_through_messages_and_names() {
    let test = "forks::a_forked_child_reaches_nobody_through_messages_and_names";
    if !is_member() {
        return run_well(&mut job_of(2, test, &[]));
    }
    let job = join();
    let world = job.world();
    let rank = world.rank();
    let name = |what: &str| format!("{what} {rank}");
    let mut inbox = job.create_mailbox().unwrap();
    inbox.register(name("inbox")).unwrap();
    inbox.on_message(|| ()).unwrap();
    let group = job.create_group(name("group"), GroupOptions::default()).unwrap();
    let member = group.join(&mut inbox).unwrap();
    let outbox = job.open_mailbox(name("inbox")).unwrap();
    let port = job.create_port(&name("port")).unwrap();

    let Some(child) = fork() else {
        check_child(|| {
            assert_refused("create_mailbox", job.create_mailbox());
            assert_refused("register", inbox.register("child's"));
            assert_refused("unregister", inbox.unregister(name("inbox")));
            assert_refused("open_mailbox", job.open_mailbox(name("inbox")));
            assert_refused("try_retrieve", inbox.try_retrieve());
            assert_refused("post", outbox.post(&Message::new()));
            assert_refused("create_group", job.create_group("child's", GroupOptions::default()));
            assert_refused("open_group", job.open_group(name("group")));
            assert_refused("group_names", job.group_names());
            assert_refused("broadcast", member.broadcast(&Message::new()));
            assert_refused("create_port", job.create_port("child's"));
            assert_refused("connect", job.connect(&name("port")));
            assert_refused("send", world.send(&[1u8], rank, Tag(1)));
            assert_refused("barrier", world.barrier());
            assert_refused("split", world.split(Some(0), 0));
            assert_refused("drain", job.drain());
            assert_refused("join", Job::join());
            drop((member, inbox, group, outbox));
        });
        drop((port, world));
        end_child(|| assert_refused("leave", job.leave()))
    };
    assert_eq!(status_of(child), 0);

    outbox.post(&Message::new()).unwrap();
    inbox.retrieve().unwrap();
    assert_eq!(group.view().unwrap().members.len(), 1);
    assert!(job.create_port(&name("port")).is_err(), "the name is taken still");
    world.barrier().unwrap();
    let unknown = job.open_mailbox("child's").err();
    assert!(
        matches!(unknown, Some(Error { kind: ErrorKind::Object(ObjectError::Unknown { .. }), .. })),
        "{unknown:?}"
    );
    member.leave().unwrap();
    drop((inbox, outbox, port, group));
    job.leave().unwrap();
}

#[test]
fn a_child_aborts_alone() {
    let test = "forks::a_child_aborts_alone";
    if !is_member() {
        let trail = Trail::new();
        let ended = trail.run(&mut job_of(2, test, &[]), Duration::from_secs(150));
        assert!(ended.status.success(), "{}", text(&ended));
        let said = text(&ended);
        assert!(said.contains("called abort with code 7 (enough): it ends alone"), "{said}");
        return;
    }
    let job = join();
    let Some(child) = fork() else { job.abort(7, "enough") };
    assert_eq!(status_of(child) >> 8, 7);
    job.world().barrier().unwrap();
    job.leave().unwrap();
}
