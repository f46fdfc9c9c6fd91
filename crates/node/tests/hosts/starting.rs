//! Processes that are started on both hosts of a running job.

use std::time::Duration;

use landeck::{
    Error, ErrorKind, Executable, GroupOptions, HostOfJob, Member, StartOnError, StartRefusal, Sum,
};

use crate::job::{EACH, RANKS, on_hosts};

const LONG: Duration = Duration::from_secs(60);
/// One on each host.
const STARTED: usize = 2;

/// This test as a program.
fn this(test: &str) -> Executable {
    let program = Executable::new(std::env::current_exe().unwrap()).join_within(LONG);
    program.arguments([test, "--exact", "--nocapture", "--test-threads=1"])
}

/// Takes part in operations until this many members do. Returns the sum of what each brings then.
fn grow_to(member: &mut Member, members: usize, own: u64) -> u64 {
    loop {
        member.advance().unwrap();
        let world = member.world().unwrap();
        if world.size() == members {
            return world.all_reduce(own, Sum).unwrap();
        }
        world.barrier().unwrap();
    }
}

#[test]
fn processes_started_on_both_hosts_take_part_in_a_group_of_either_host() {
    const TEST: &str =
        "starting::processes_started_on_both_hosts_take_part_in_a_group_of_either_host";
    on_hosts(TEST, |job| {
        let world = job.world();
        let is_started = world.rank() == usize::MAX;
        if is_started {
            // The group of the other host, and that of its own.
            for name in ["made by 0", "made by 2"] {
                let group = job.open_group(name).unwrap();
                let mut inbox = job.create_mailbox().unwrap();
                let mut member = group.join(&mut inbox).unwrap();
                assert_eq!(grow_to(&mut member, RANKS + STARTED, 100), 6 + 200);
                member.sync().unwrap();
                assert_eq!(inbox.retrieve_within(LONG).unwrap().unpack_value::<u64>().unwrap(), 7);
                member.leave().unwrap();
            }
            return;
        }
        let mut members = Vec::new();
        for maker in [0, EACH] {
            let name = format!("made by {maker}");
            let options = GroupOptions::default().minimum(RANKS as u32);
            let made = (world.rank() == maker).then(|| job.create_group(&name, options).unwrap());
            world.barrier().unwrap();
            let group = made.unwrap_or_else(|| job.open_group(&name).unwrap());
            let mut inbox = job.create_mailbox().unwrap();
            let member = group.join(&mut inbox).unwrap();
            members.push((group, inbox, member));
        }
        for (_, _, member) in &mut members {
            assert_eq!(grow_to(member, RANKS, world.rank() as u64), 6);
        }
        let hosts = job.hosts();
        let names: Vec<_> = hosts.iter().map(HostOfJob::name).collect();
        assert_eq!(names, ["n1", "n2"]);
        assert!(hosts.iter().all(|host| host.is_up() && host.processors() > 0), "{hosts:?}");
        assert_eq!(hosts.iter().filter(|host| host.is_own()).count(), 1);
        assert_eq!(hosts.iter().map(HostOfJob::processes).sum::<u32>(), RANKS as u32);
        world.barrier().unwrap();
        if world.rank() == 0 {
            let program = this(TEST);
            for host in &hosts {
                let started = job.start_on(host, &program).unwrap();
                let is_here = started.process().segment == job.process().segment;
                assert_eq!(is_here, host.is_own(), "{host:?}");
            }
        }
        for (_, inbox, member) in &mut members {
            assert_eq!(grow_to(member, RANKS + STARTED, world.rank() as u64), 6 + 200);
            if world.rank() == 0 {
                let mut seven = landeck::Message::new();
                seven.pack(&[7u64]);
                member.broadcast(&seven).unwrap();
            }
            member.sync().unwrap();
            assert_eq!(inbox.retrieve_within(LONG).unwrap().unpack_value::<u64>().unwrap(), 7);
        }
        for (_, _, member) in members {
            member.leave().unwrap();
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_start_on_another_host_is_refused_by_name() {
    on_hosts("starting::a_start_on_another_host_is_refused_by_name", |job| {
        let world = job.world();
        if world.rank() == 0 {
            let hosts = job.hosts();
            let other = hosts.iter().find(|host| !host.is_own()).unwrap();
            let refused = |program: &Executable| match job.start_on(other, program) {
                Err(Error { kind: ErrorKind::Start(StartOnError::Refused(refusal)), .. }) => {
                    refusal
                }
                it => panic!("{it:?}"),
            };
            let missing = refused(&Executable::new("./no-such-program"));
            assert!(matches!(missing, StartRefusal::Program(_)), "{missing}");
            let shell = |script| Executable::new("sh").arguments(["-c", script]);
            let ended = refused(&shell("exit 0"));
            assert!(matches!(ended, StartRefusal::Ended { .. }), "{ended}");
            let late = shell("sleep 0.2").join_within(Duration::from_millis(1));
            let late = refused(&late);
            assert!(matches!(late, StartRefusal::NotJoined { .. }), "{late}");
        }
        world.barrier().unwrap();
    });
}
