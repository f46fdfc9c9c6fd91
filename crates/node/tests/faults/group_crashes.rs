//! A process is killed after each store of each operation on a named group, one after the other: the
//! operation is then done or not, for all that live alike, and nobody hangs. A server is also stopped after
//! each of its stores, and goes on later.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::unstable::objects::crash_point;
use landeck::{
    Error, ErrorKind, Group, GroupError, GroupOptions, Job, Mailbox, Member, Message, ServedBy, Tag,
};
use landeck_testing::{Trail, Watchdog};

use crate::support::named_groups::{sync_the_living, value};
use crate::support::{
    GONE_WITHIN, RUN_MAX, Survivors, is_member, job_of, kill_myself, run_each, stay_until_told,
    text,
};

const TEST: &str = "group_crashes::a_process_that_dies_after_any_store_did_its_operation_or_not";
const STOP_TEST: &str = "group_crashes::a_server_that_is_stopped_after_any_store_keeps_nobody";
const STOPPED: &str = "stopped";
const STOPPED_LIMITED: &str = "stopped, with limits";
const CRASH: &str = "LANDECK_TEST_CRASH";
const PAST: &str = "the victim is past all stores";
const DONE: &str = "survivor done";
const WAS_DONE: &str = "what the victim called was done";
const VICTIM: usize = 2;
const SURVIVORS: u32 = 2;
/// No operation has more stores.
const STORES_MAX: u64 = 600;
/// Turns of joining and leaving after which the log is about to need a snapshot.
const TURNS_TO_SNAPSHOT: u64 = 1_022;
const WATCHED_FOR: Duration = Duration::from_secs(1_500);
const MOMENT: Duration = Duration::from_millis(1);

/// Calls without a limit whose outcome the others see: they were done when they return.
const SEEN: [&str; 4] = ["join", "asked join", "destroy", "asked destroy"];

/// The operation in which the victim dies, and the least number of stores that it has.
const OPERATIONS: [(&str, u64); 14] = [
    ("serve", 40),
    ("snapshot", 30),
    ("broadcast", 10),
    ("long broadcast", 14),
    ("held broadcast", 6),
    ("join", 9),
    ("leave", 1),
    ("sync", 1),
    ("destroy", 1),
    ("asked join", 1),
    ("asked broadcast", 1),
    ("asked sync", 1),
    ("asked leave", 1),
    ("asked destroy", 1),
];

#[test]
fn a_process_that_dies_after_any_store_did_its_operation_or_not() {
    if is_member() {
        return take_part();
    }
    let _watchdog = Watchdog::start(WATCHED_FOR);
    run_each(OPERATIONS.len() as u64, |number| {
        let (operation, stores_min) = OPERATIONS[number as usize];
        let all = (0..STORES_MAX).find(|&stores| run(operation, stores)).unwrap();
        println!("{operation}: killed after each of {} stores", all - 1);
        assert!(all > stores_min, "{operation} has {all} stores only");
    });
}

#[test]
fn a_server_that_is_stopped_after_any_store_keeps_nobody() {
    if is_member() {
        let limited = Part::of(STOPPED_LIMITED);
        let has_limits = limited.is_some();
        let part = limited.or_else(|| Part::of(STOPPED)).expect("it is asked for");
        part.is_stopped_serving(has_limits);
        println!("{DONE}");
        return part.job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(WATCHED_FOR);
    let all = (1..STORES_MAX).find(|&stores| run_stopped(STOPPED, stores)).unwrap();
    println!("stopped after each of {} stores", all - 1);
    assert!(all > 40, "a server makes {all} stores only");
    // A limit that passes takes the seat away, so a server that is slow may make fewer.
    for stores in 1..all {
        run_stopped(STOPPED_LIMITED, stores);
    }
}

/// One job; whether its server was never stopped.
fn run_stopped(operation: &str, stores: u64) -> bool {
    let mut command = job_of(VICTIM + 1, STOP_TEST, &[]);
    command.env(CRASH, format!("{operation}:{stores}")).stdin(Stdio::null());
    let ended = Trail::new().run(&mut command, RUN_MAX);
    let output = text(&ended);
    assert!(ended.status.success(), "{operation}, store {stores}: {output}");
    assert_eq!(output.matches(DONE).count(), VICTIM + 1, "{operation}, store {stores}: {output}");
    output.contains(PAST)
}

/// One job; whether its victim came past all stores.
fn run(operation: &str, stores: u64) -> bool {
    let trail = Trail::new();
    let mut command = job_of(VICTIM + 1, TEST, &["--on-failure", "notify"]);
    command.env(CRASH, format!("{operation}:{stores}")).stdin(Stdio::null());
    let _survivors = Survivors::of(&mut command);
    let ended = trail.run(&mut command, RUN_MAX);
    let output = text(&ended);
    assert_eq!(ended.status.code(), Some(137), "{operation}, store {stores}: {output}");
    let done = output.matches(DONE).count();
    assert_eq!(done, SURVIVORS as usize, "{operation}, store {stores}: {output}");
    assert!(!output.contains("panicked"), "{operation}, store {stores}: {output}");
    trail.assert_gone(GONE_WITHIN);
    let is_past = output.contains(PAST);
    if is_past && SEEN.contains(&operation) {
        assert!(output.contains(WAS_DONE), "{operation} has returned: {output}");
    }
    is_past
}

struct Part {
    job: Job,
    stores: u64,
}

fn take_part() {
    let crash = std::env::var(CRASH).unwrap();
    let (operation, _) = crash.split_once(':').unwrap();
    let part = Part::of(operation).expect("it is asked for");
    match operation {
        "serve" => part.serve(),
        "snapshot" => part.snapshot(),
        "broadcast" => part.broadcast(1, options(), false),
        "long broadcast" => part.broadcast(1_500, options(), false),
        "held broadcast" => part.broadcast(1, options().messages(2), true),
        "join" => part.join(options()),
        "leave" => part.leave(options()),
        "sync" => part.sync(options()),
        "destroy" => part.destroy(options()),
        "asked join" => part.join(served()),
        "asked broadcast" => part.broadcast(1, served(), false),
        "asked sync" => part.sync(served()),
        "asked leave" => part.leave(served()),
        "asked destroy" => part.destroy(served()),
        other => panic!("no operation {other}"),
    }
    println!("{DONE}");
    stay_until_told(SURVIVORS as usize);
    part.job.leave().unwrap();
}

fn options() -> GroupOptions {
    GroupOptions::default()
}

/// By a survivor.
fn served() -> GroupOptions {
    GroupOptions::default().served_by(ServedBy::Process(0))
}

fn next(inbox: &mut Mailbox) -> Vec<u64> {
    inbox.retrieve_within(RUN_MAX).unwrap().unpack_all::<u64>()
}

/// Calls until the call is in time, with growing limits.
fn until_in_time(mut call: impl FnMut(Duration) -> landeck::Result<()>) {
    let mut limit = MOMENT;
    while let Err(error) = call(limit) {
        assert!(matches!(error.kind, ErrorKind::TimedOut(time) if time == limit), "{error}");
        limit *= 2;
    }
}

/// Comes to a synchronisation to which others have not. A server that takes its time is asked again.
fn come_early(member: &mut Member) {
    let mut limit = MOMENT;
    while !member.has_come() {
        assert!(member.sync_within(limit).is_err(), "the others have not come");
        limit *= 2;
    }
}

impl Part {
    /// This process's, if that is what it was started for.
    fn of(operation: &str) -> Option<Self> {
        let crash = std::env::var(CRASH).ok()?;
        let stores = crash.strip_prefix(operation)?.strip_prefix(':')?.parse().ok()?;
        Some(Self { job: Job::join().unwrap(), stores })
    }

    fn is_victim(&self) -> bool {
        self.job.world().rank() == VICTIM
    }

    /// The group, made by the process of a rank; all of the job call this.
    fn group(&self, options: GroupOptions, maker: usize) -> Group {
        let world = self.job.world();
        let made =
            (world.rank() == maker).then(|| self.job.create_group("crash", options).unwrap());
        world.barrier().unwrap();
        made.unwrap_or_else(|| self.job.open_group("crash").unwrap())
    }

    /// All of the job as members.
    fn all(&self, options: GroupOptions) -> (Group, Mailbox, Member) {
        let group = self.group(options, 0);
        let mut inbox = self.job.create_mailbox().unwrap();
        let member = group.join(&mut inbox).unwrap();
        self.job.world().barrier().unwrap();
        (group, inbox, member)
    }

    /// The victim's part: it dies in it, or behind it.
    fn die_in<T>(&self, operation: impl FnOnce() -> T) -> ! {
        crash_point::die_after(self.stores);
        let result = operation();
        println!("{PAST}");
        // It is to end in the middle of all, with nothing of it dropped.
        std::mem::forget(result);
        kill_myself()
    }

    fn wait_until_the_victim_is_gone(&self) {
        while !self.job.segment().slot_record(VICTIM as u32).state.is_gone() {
            thread::sleep(MOMENT);
        }
        self.job.world().among(&[0, 1], Tag(6)).unwrap().barrier().unwrap();
    }

    /// Waits until the victim is gone and, if a survivor may serve, until all requests of the
    /// victim are done or will never be.
    fn wait_until_all_is_done(&self, options: GroupOptions) {
        self.wait_until_the_victim_is_gone();
        let world = self.job.world().among(&[0, 1], Tag(8)).unwrap();
        if options.served_by_whom() != ServedBy::Nobody && world.rank() == 0 {
            // The thread that serves this group serves the other one, and does one thing after the other.
            let mut other = self.job.create_mailbox().unwrap();
            let group = self.job.create_group("beside", served()).unwrap();
            group.join(&mut other).unwrap().leave().unwrap();
        }
        world.barrier().unwrap();
    }

    /// That both who live have found the same.
    fn agree(&self, found: u64) {
        let world = self.job.world().among(&[0, 1], Tag(3)).unwrap();
        let mut first = [found];
        world.broadcast(&mut first, 0).unwrap();
        assert_eq!(first, [found], "both who live have found the same");
    }

    /// The group goes on with those who live: the dead has no number, nobody gets anything twice.
    fn go_on(&self, group: &Group, inbox: &mut Mailbox, member: &mut Member) {
        let view = group.view().unwrap();
        let living: Vec<u32> =
            view.members.iter().map(|member| member.mailbox.process().slot.0).collect();
        assert!(living.len() == 2 && !living.contains(&(VICTIM as u32)), "{view:?}");
        self.agree(view.number);
        assert!(inbox.try_retrieve().unwrap().is_none(), "nothing comes twice");
        self.job.world().among(&[0, 1], Tag(4)).unwrap().barrier().unwrap();
        // Who joins has the smallest number that is free.
        if self.job.world().rank() == 0 {
            let ids: Vec<u32> = view.members.iter().map(|member| member.id).collect();
            let mut other = self.job.create_mailbox().unwrap();
            let joined = group.join(&mut other).unwrap();
            let free = (0..).find(|id| !ids.contains(id)).unwrap();
            assert_eq!(joined.id(), free);
            joined.leave().unwrap();
        }
        self.job.world().among(&[0, 1], Tag(5)).unwrap().barrier().unwrap();
        member.broadcast(&value(u64::from(member.id()) + 10)).unwrap();
        let mut seen: Vec<u64> = (0..2).map(|_| next(inbox)[0]).collect();
        seen.sort_unstable();
        let mut all: Vec<u64> =
            view.members.iter().map(|member| u64::from(member.id) + 10).collect();
        all.sort_unstable();
        assert_eq!(seen, all);
        sync_the_living(member);
        assert!(inbox.try_retrieve().unwrap().is_none(), "nothing comes twice");
    }

    fn join(&self, options: GroupOptions) {
        let group = self.group(options.minimum(3), 0);
        let mut inbox = self.job.create_mailbox().unwrap();
        if self.is_victim() {
            self.job.world().barrier().unwrap();
            self.die_in(|| group.join(&mut inbox).unwrap());
        }
        let mut member = group.join(&mut inbox).unwrap();
        self.job.world().barrier().unwrap();
        self.wait_until_all_is_done(options);
        let started = group.view().unwrap().has_started;
        self.agree(u64::from(started));
        if started {
            println!("{WAS_DONE}");
        }
        // The third starts the group, were it the dead or another one.
        let early = match started {
            true => member.broadcast(&value(1)),
            // It waits for nobody: also not for a server that takes its time.
            false => member.try_broadcast(&value(1)),
        };
        assert_eq!(early.is_ok(), started, "{early:?}");
        if started {
            (0..2).for_each(|_| assert_eq!(next(&mut inbox), [1]));
        }
        self.agree(2);
        self.go_on(&group, &mut inbox, &mut member);
    }

    fn leave(&self, options: GroupOptions) {
        let (group, mut inbox, mut member) = self.all(options);
        if self.is_victim() {
            member.broadcast(&value(7)).unwrap();
            self.job.world().barrier().unwrap();
            self.die_in(|| member.leave().unwrap());
        }
        self.job.world().barrier().unwrap();
        self.wait_until_all_is_done(options);
        assert_eq!(next(&mut inbox), [7]);
        self.go_on(&group, &mut inbox, &mut member);
    }

    fn sync(&self, options: GroupOptions) {
        let (group, mut inbox, mut member) = self.all(options.minimum(3));
        let world = self.job.world();
        let dead = group.view().unwrap();
        let dead = dead.members.iter().find(|it| it.mailbox.process().slot.0 == VICTIM as u32);
        let dead = dead.unwrap().id;
        if world.rank() == 0 {
            come_early(&mut member);
        }
        world.barrier().unwrap();
        if self.is_victim() {
            self.die_in(|| member.sync_within(Duration::from_millis(5)));
        }
        self.wait_until_all_is_done(options);
        match member.sync() {
            Err(Error {
                kind: ErrorKind::Group(GroupError::MemberDied { member, .. }), ..
            }) => assert_eq!(member, dead),
            other => panic!("it took part, and died: {other:?}"),
        }
        self.go_on(&group, &mut inbox, &mut member);
    }

    fn broadcast(&self, length: usize, options: GroupOptions, is_held: bool) {
        let (group, mut inbox, mut member) = self.all(options.minimum(3));
        let world = self.job.world();
        if is_held && self.is_victim() {
            // One of two is for each process: it has no more until the others retrieve, when it is gone.
            member.broadcast(&value(6)).unwrap();
            assert_eq!(next(&mut inbox), [6]);
        }
        world.barrier().unwrap();
        let mut message = Message::new();
        message.pack(&vec![9u64; length]);
        if self.is_victim() {
            self.die_in(|| member.broadcast_within(&message, Duration::from_millis(5)));
        }
        self.wait_until_all_is_done(options);
        if is_held {
            assert_eq!(next(&mut inbox), [6]);
        }
        let mut got = 0;
        while let Ok(mut message) = inbox.retrieve_within(10 * MOMENT) {
            assert_eq!(message.unpack_all::<u64>(), vec![9; length]);
            got += 1;
        }
        assert!(got <= 1, "{got} times");
        self.agree(got);
        self.go_on(&group, &mut inbox, &mut member);
    }

    fn snapshot(&self) {
        let (group, mut inbox, mut member) = self.all(options());
        let world = self.job.world();
        if self.is_victim() {
            let mut other = self.job.create_mailbox().unwrap();
            for _ in 0..TURNS_TO_SNAPSHOT {
                group.join(&mut other).unwrap().leave().unwrap();
            }
            world.barrier().unwrap();
            self.die_in(|| group.join(&mut other).unwrap().leave().unwrap());
        }
        world.barrier().unwrap();
        self.wait_until_the_victim_is_gone();
        self.go_on(&group, &mut inbox, &mut member);
        // The log goes round all the same, for who looks at it and for who does not.
        if world.rank() == 0 {
            let mut other = self.job.create_mailbox().unwrap();
            for _ in 0..5 * TURNS_TO_SNAPSHOT {
                group.join(&mut other).unwrap().leave().unwrap();
            }
        }
        self.agree(3);
        self.go_on(&group, &mut inbox, &mut member);
    }

    fn destroy(&self, options: GroupOptions) {
        let (group, mut inbox, mut member) = self.all(options);
        self.job.world().barrier().unwrap();
        if self.is_victim() {
            self.die_in(|| group.destroy().unwrap());
        }
        self.wait_until_all_is_done(options);
        let destroyed = match member.broadcast(&value(1)) {
            Ok(()) => false,
            Err(Error { kind: ErrorKind::Group(GroupError::GroupDestroyed { .. }), .. }) => true,
            Err(error) => panic!("{error}"),
        };
        self.agree(u64::from(destroyed));
        if !destroyed {
            (0..2).for_each(|_| assert_eq!(next(&mut inbox), [1]));
            self.agree(4);
            return self.go_on(&group, &mut inbox, &mut member);
        }
        println!("{WAS_DONE}");
        drop(member);
        if self.job.world().rank() == 0 {
            // Its name is free, whoever was to say so.
            self.job.create_group("crash", options).unwrap().destroy().unwrap();
        }
        self.agree(5);
    }

    /// The server is stopped while both others ask it for everything, and goes on when they are through.
    fn is_stopped_serving(&self, has_limits: bool) {
        let served = options().served_by(ServedBy::Creator).minimum(2);
        let group = self.group(served, VICTIM);
        let world = self.job.world();
        if self.is_victim() {
            crash_point::stop_after(self.stores);
            (0..VICTIM).for_each(|rank| world.send(&[0u8], rank, Tag(1)).unwrap());
            for rank in 0..VICTIM {
                world.receive::<u8>(rank, Tag(2)).unwrap();
            }
            let has_come = loop {
                match crash_point::call_off() {
                    Some(has_come) => break has_come,
                    None => thread::sleep(MOMENT),
                }
            };
            if !has_come {
                println!("{PAST}");
            }
            (0..VICTIM).for_each(|rank| world.send(&[0u8], rank, Tag(7)).unwrap());
            world.barrier().unwrap();
            return world.barrier().unwrap();
        }
        world.receive::<u8>(VICTIM, Tag(1)).unwrap();
        let mut inbox = self.job.create_mailbox().unwrap();
        let mut member = group.join(&mut inbox).unwrap();
        member.sync().unwrap();
        let all = Self::insist(&mut member, has_limits);
        let mut seen: Vec<u64> = (0..all.len()).map(|_| next(&mut inbox)[0]).collect();
        seen.sort_unstable();
        assert_eq!(seen, all);
        member.sync().unwrap();
        self.wake_the_victim();
        world.barrier().unwrap();
        // What it was in the middle of takes no effect any more.
        assert!(inbox.try_retrieve().unwrap().is_none(), "nothing comes twice");
        self.agree(7);
        self.go_on(&group, &mut inbox, &mut member);
        member.leave().unwrap();
        world.barrier().unwrap();
    }

    /// Broadcasts and synchronises: what all members have sent in the end.
    fn insist(member: &mut Member, has_limits: bool) -> Vec<u64> {
        const EACH: u64 = 4;
        for number in 0..EACH {
            let message = value(u64::from(member.id()) << 32 | number);
            if has_limits && number % 2 == 0 {
                // Each of these calls ends at its limit, and has sent nothing then.
                until_in_time(|limit| member.broadcast_within(&message, limit));
                until_in_time(|limit| member.sync_within(limit));
            } else {
                member.broadcast(&message).unwrap();
                member.sync().unwrap();
            }
        }
        (0..2u64).flat_map(|id| (0..EACH).map(move |number| id << 32 | number)).collect()
    }

    /// Has it go on, until it answers: it may not have been stopped so far.
    fn wake_the_victim(&self) {
        let world = self.job.world();
        world.send(&[0u8], VICTIM, Tag(2)).unwrap();
        let pid = self.job.segment().slot_record(VICTIM as u32).pid;
        let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
        let mut answer = [0u8];
        while world.receive_into_within(&mut answer, VICTIM, Tag(7), MOMENT).is_err() {
            rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        }
    }

    /// The server dies while both others ask it for everything.
    fn serve(&self) {
        const EACH: u64 = 3;
        let served = options().served_by(ServedBy::Creator).minimum(2);
        let group = self.group(served, VICTIM);
        let world = self.job.world();
        if self.is_victim() {
            crash_point::die_after(self.stores);
            world.send(&[0u8], 0, Tag(1)).unwrap();
            world.send(&[0u8], 1, Tag(1)).unwrap();
            world.receive::<u8>(0, Tag(2)).unwrap();
            println!("{PAST}");
            kill_myself();
        }
        // A victim that dies at once says nothing.
        let _ = world.receive::<u8>(VICTIM, Tag(1));
        let mut inbox = self.job.create_mailbox().unwrap();
        let mut member = group.join(&mut inbox).unwrap();
        member.sync().unwrap();
        for number in 0..EACH {
            member.broadcast(&value(u64::from(member.id()) << 32 | number)).unwrap();
            member.sync().unwrap();
        }
        let mut seen: Vec<u64> = (0..2 * EACH).map(|_| next(&mut inbox)[0]).collect();
        seen.sort_unstable();
        let all = (0..2u64).flat_map(|id| (0..EACH).map(move |number| id << 32 | number));
        assert!(seen.iter().copied().eq(all), "{seen:?}");
        member.sync().unwrap();
        if world.rank() == 0 {
            // The other one keeps the group alive.
            let id = member.id();
            member.leave().unwrap();
            member = group.join(&mut inbox).unwrap();
            assert_eq!(member.id(), id);
            // It may be gone by now.
            let _ = world.send(&[0u8], VICTIM, Tag(2));
        }
        self.wait_until_the_victim_is_gone();
        self.agree(6);
        self.go_on(&group, &mut inbox, &mut member);
    }
}
