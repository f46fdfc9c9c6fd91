//! A clock that is set while a job runs: nothing that waits for so long looks at it.
//!
//! Setting the machine's clock would be felt by everybody else, so the launcher and the processes get a
//! library in front of the C library's that lets the time of day jump an hour to and fro with each look;
//! and the kernel refuses to wait for a time of day, which no library could see.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use landeck::{ErrorKind, Job, Message, Sum, Tag, ThreadMode};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use crate::support::{in_job, is_member, job_of, run_well, skipped};

/// Set where the launcher is started, behind the filter.
const FILTER: &str = "LANDECK_TEST_FILTER";
const NAME: &str = "clock::a_clock_that_jumps_changes_nothing";

/// The clock functions that are preloaded before the C library.
const JUMPS: &str = r#"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void) {
    static int looks;
    return __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) % 2 ? 3600 : -3600;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    (void)zone;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (place) *place = exact.tv_sec;
    return exact.tv_sec;
}
"#;

#[test]
fn a_clock_that_jumps_changes_nothing() {
    if is_member() {
        return in_job(2, NAME, ThreadMode::Multiple, take_part);
    }
    if std::env::var_os(FILTER).is_some() {
        refuse_waits_for_a_time_of_day();
        let library = std::env::var_os(FILTER).unwrap();
        let mut job = job_of(2, NAME, &["--timeout", "140", "--grace", "1"]);
        panic!("cannot start the launcher: {}", job.env("LD_PRELOAD", library).exec());
    }
    let folder = std::env::temp_dir().join(format!("landeck-clock-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("jumps.c"), folder.join("jumps.so"));
    std::fs::write(&source, JUMPS).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]);
    match compiler.status() {
        Ok(status) => assert!(status.success()),
        Err(_) => return skipped(NAME, "there is no C compiler"),
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([NAME, "--exact", "--nocapture", "--test-threads=1"]).env(FILTER, &library);
    run_well(&mut command);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Waits of all kinds, with a time limit and without.
fn take_part(job: &Job) {
    const TIME: Duration = Duration::from_millis(300);
    /// On a machine with a lot to do.
    const LATE: Duration = Duration::from_secs(60);
    let looks = [0; 2].map(|_| SystemTime::now());
    let jump = looks[0].duration_since(looks[1]).unwrap_or_else(|error| error.duration());
    assert!(jump > Duration::from_secs(3_600), "the clock does not jump: {jump:?}");
    let world = job.world();
    let mut inbox = job.create_mailbox().unwrap();
    inbox.register(["one", "two"][world.rank()]).unwrap();
    world.barrier().unwrap();
    let limited = |wait: &mut dyn FnMut() -> landeck::Result<()>| {
        let began = Instant::now();
        let error = wait().unwrap_err();
        assert!(matches!(error.kind, ErrorKind::TimedOut(_)), "{error}");
        assert!((TIME..LATE).contains(&began.elapsed()), "after {:?}", began.elapsed());
    };
    let mut value = [0u64];
    limited(&mut || {
        world.receive_into_within(&mut value, 1 - world.rank(), Tag(1), TIME).map(drop)
    });
    limited(&mut || inbox.retrieve_within(TIME).map(drop));
    let semaphore = match world.rank() {
        0 => job.create_semaphore("none", 0).unwrap(),
        _ => {
            world.receive::<u64>(0, Tag(2)).unwrap();
            job.open_semaphore("none").unwrap()
        }
    };
    if world.rank() == 0 {
        world.send(&[1u64], 1, Tag(2)).unwrap();
    }
    limited(&mut || semaphore.take_within(TIME).map(drop));
    // Rank 1 sleeps until it is woken.
    if world.rank() == 0 {
        std::thread::sleep(TIME);
        job.open_mailbox("two").unwrap().post(Message::new().pack(&[7u64])).unwrap();
    } else {
        assert_eq!(inbox.retrieve().unwrap().bytes(), 8);
    }
    assert_eq!(world.all_reduce(1u64, Sum).unwrap(), 2);
}

/// From now on the kernel refuses to wait on a word until a time of day.
fn refuse_waits_for_a_time_of_day() {
    let realtime = SeccompCondition::new(
        1,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(libc::FUTEX_CLOCK_REALTIME as u64),
        libc::FUTEX_CLOCK_REALTIME as u64,
    );
    // Without a limit it is no matter which clock it names: the C library's joins do.
    let is_limited = SeccompCondition::new(3, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    let conditions = vec![realtime.unwrap(), is_limited.unwrap()];
    let rule = SeccompRule::new(conditions).unwrap();
    let rules = [(libc::SYS_futex, vec![rule])];
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter(&program).unwrap();
}
