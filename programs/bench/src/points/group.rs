//! Named groups: a broadcast that all retrieve, with the synchronisation behind it, beside MPI's
//! broadcast and barrier; and what it costs to come and go.

use std::time::{Duration, Instant};

use landeck::{Group, GroupOptions, Mailbox, Member, Message, Result, ServedBy};

use crate::batches::Batches;
use crate::collective::{fill, holds};
use crate::counting::Counting;
use crate::{Bench, Measured};

/// Bytes that are broadcast while others join.
const LONG_BYTES: usize = 1 << 30;
/// How often they are.
const LONG_BROADCASTS: u64 = 3;
/// Fewer joins beside one of them say nothing.
const JOINS_MIN: usize = 100;
/// Synchronisations one after the other, and how many at each end are compared.
const ROUNDS: usize = 5_000;
const ENDS: usize = 500;

/// The state that all figures of groups begin with.
struct GroupPart {
    member: Member,
    inbox: Mailbox,
    data: Vec<u8>,
}

fn group(bench: &Bench, options: GroupOptions) -> Result<Group> {
    group_called(bench, &bench.settings.figure, options)
}

fn group_called(bench: &Bench, name: &str, options: GroupOptions) -> Result<Group> {
    let made = match bench.world.rank() {
        0 => Some(bench.job.create_group(name, options)?),
        _ => None,
    };
    bench.world.barrier()?;
    made.map_or_else(|| bench.job.open_group(name), Ok)
}

/// As the paper of 2000 has it: with a server, away from the process that begins.
pub(crate) fn served(bench: &Bench) -> GroupOptions {
    let last = bench.world.size() as u32 - 1;
    GroupOptions::default().served_by(ServedBy::Process(last))
}

/// As the paper of 2000 has it, on any number of hosts: the server is a thread beside the process that makes the group.
pub(crate) fn served_by_creator() -> GroupOptions {
    GroupOptions::default().served_by(ServedBy::Creator)
}

/// The measurement of the paper of 2000: rank 0 broadcasts and all synchronise, `iterations` times in a row.
pub(crate) fn service(bench: &Bench, options: GroupOptions) -> Measured {
    let (world, settings) = (&bench.world, &bench.settings);
    let group = group(bench, options.minimum(world.size() as u32))?;
    let mut inbox = bench.job.create_mailbox()?;
    let member = group.join(&mut inbox)?;
    let mut part = GroupPart { member, inbox, data: vec![0; settings.largest()] };
    for &bytes in &settings.bytes {
        part.check(bench, 0, bytes)?;
        let message = message_of(&part.data[..bytes]);
        for _ in 0..settings.batches {
            let once = || part.once(world.rank() == 0, &message, bytes);
            bench.repeat("broadcast-sync", bytes, once)?;
        }
    }
    Ok(part.member.leave()?)
}

/// The messages that each call costs, on all hosts together: with a server, and without.
pub(crate) fn calls(bench: &Bench) -> Measured {
    let counting = Counting::new(bench)?;
    calls_of(bench, &counting, "served", served_by_creator())?;
    calls_of(bench, &counting, "group", GroupOptions::default())
}

fn calls_of(bench: &Bench, counting: &Counting<'_>, name: &str, options: GroupOptions) -> Measured {
    let (world, largest) = (&bench.world, bench.settings.largest());
    let is = |rank: usize| world.rank() == rank;
    let print =
        |call: &str, bytes, messages| counting.print(&format!("{name}: {call}"), bytes, messages);
    let options = options.minimum(world.size() as u32);
    let (messages, made) =
        counting.cost(|| is(0).then(|| bench.job.create_group(name, options)).transpose())?;
    print("create", 0, messages);
    let group = made.map_or_else(|| bench.job.open_group(name), Ok)?;
    let mut inbox = bench.job.create_mailbox()?;
    let mut member = None;
    for joining in 0..world.size() {
        let join = || is(joining).then(|| group.join(&mut inbox)).transpose();
        let (messages, joined) = counting.cost(join)?;
        member = joined.or(member);
        print(&format!("join of rank {joining}"), 0, messages);
    }
    let mut member = member.ok_or_else(|| bench.wrong("no place in the group"))?;
    for (sender, bytes) in [(0, 1), (0, largest), (1, 1), (1, largest)] {
        let mut data = vec![0; bytes];
        let message = message_of(&data);
        let (messages, ()) = counting.cost(|| {
            if is(sender) {
                member.broadcast(&message)?;
            }
            inbox.retrieve_values(&mut data).map(|_| ())
        })?;
        print(&format!("broadcast of rank {sender}"), bytes, messages);
    }
    for _ in 0..2 {
        print("sync", 0, counting.cost(|| member.sync())?.0);
    }
    let mut member = Some(member);
    for leaving in (0..world.size()).rev() {
        let its = if is(leaving) { member.take() } else { None };
        let (messages, _) = counting.cost(|| its.map(Member::leave).transpose())?;
        print(&format!("leave of rank {leaving}"), 0, messages);
    }
    Ok(())
}

/// Synchronisations one after the other: the median of the first ones (`first`) and of the last ones
/// (`last`), which are as quick.
pub(crate) fn rounds(bench: &Bench, options: GroupOptions) -> Measured {
    let world = &bench.world;
    let group = group(bench, options.minimum(world.size() as u32))?;
    let mut inbox = bench.job.create_mailbox()?;
    let mut member = group.join(&mut inbox)?;
    world.barrier()?;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        member.sync()?;
        times.push(start.elapsed());
    }
    world.barrier()?;
    if world.rank() == 0 {
        for (form, from) in [("first", 0), ("last", ROUNDS - ENDS)] {
            let times = &mut times[from..from + ENDS];
            times.sort_unstable();
            let median_ns = times[ENDS / 2].as_nanos() as f64;
            bench.print(form, 0, "ns", median_ns);
        }
    }
    Ok(member.leave()?)
}

/// Every size; the sender moves on with each broadcast.
pub(crate) fn broadcast(bench: &Bench, options: GroupOptions) -> Measured {
    let (world, settings) = (&bench.world, &bench.settings);
    let group = group(bench, options.minimum(world.size() as u32))?;
    let mut inbox = bench.job.create_mailbox()?;
    let member = group.join(&mut inbox)?;
    let mut part = GroupPart { member, inbox, data: vec![0; settings.largest()] };
    for &bytes in &settings.bytes {
        for root in 0..world.size() {
            part.check(bench, root, bytes)?;
        }
        let step = world.size() as u64;
        let batches = Batches { step, ..bench.batches("", bytes) };
        let message = message_of(&part.data[..bytes]);
        batches.run(|iterations| {
            world.barrier()?;
            let start = Instant::now();
            for turn in 0..iterations {
                let root = (turn % world.size() as u64) as usize;
                part.once(world.rank() == root, &message, bytes)?;
            }
            Ok(start.elapsed())
        })?;
    }
    Ok(part.member.leave()?)
}

impl GroupPart {
    #[inline]
    fn once(&mut self, is_root: bool, message: &Message, bytes: usize) -> Result<()> {
        if is_root {
            self.member.broadcast(message)?;
        }
        self.inbox.retrieve_values(&mut self.data[..bytes])?;
        self.member.sync()
    }

    fn check(&mut self, bench: &Bench, root: usize, bytes: usize) -> Measured {
        let mut block = vec![0; bytes];
        fill(&mut block, root, 0);
        self.once(bench.world.rank() == root, &message_of(&block), bytes)?;
        match holds(&self.data[..bytes], root, 0) {
            true => Ok(()),
            false => Err(bench.wrong("a wrong broadcast")),
        }
    }
}

fn message_of(bytes: &[u8]) -> Message {
    let mut message = Message::new();
    message.pack(bytes);
    message
}

/// Joins and leaves of all processes at once: the time of one of them.
pub(crate) fn members(bench: &Bench) -> Measured {
    let world = &bench.world;
    let group = group(bench, GroupOptions::default().persistent(true))?;
    let mut inbox = bench.job.create_mailbox()?;
    let divisor = 2.0 * world.size() as f64;
    let batches = Batches { divisor, ..bench.batches("", 0) };
    Ok(batches.run(|iterations| {
        world.barrier()?;
        let start = Instant::now();
        for _ in 0..iterations {
            group.join(&mut inbox)?.leave()?;
        }
        Ok(start.elapsed())
    })?)
}

/// A join while rank 0 broadcasts a gigabyte: the median of all of rank 1 from the beginning to the
/// acceptance. Others serve, if anybody does.
pub(crate) fn join_beside(bench: &Bench, options: GroupOptions) -> Measured {
    let world = &bench.world;
    bench.needs(world.size() >= 2, "at least 2 processes")?;
    let group = group(bench, options.bytes(LONG_BYTES as u64 + (1 << 20)).persistent(true))?;
    let long = match world.rank() {
        0 => message_of(&vec![1; LONG_BYTES]),
        _ => Message::new(),
    };
    for before in 0..LONG_BROADCASTS {
        world.barrier()?;
        match world.rank() {
            0 => group.broadcast(&long)?,
            1 => {
                let median_ns = join_until_sent(bench, &group, before)?;
                bench.print("", LONG_BYTES, "ns", median_ns);
            }
            _ => {}
        }
        world.barrier()?;
    }
    Ok(())
}

/// Joins of rank 1 while rank 0 broadcasts `bytes`, to a group with a server and to one without: the median and the
/// longest join, and the broadcast itself.
pub(crate) fn service_joins(bench: &Bench) -> Measured {
    let (world, settings) = (&bench.world, &bench.settings);
    bench.needs(world.size() >= 2, "at least 2 processes")?;
    let bytes = settings.largest();
    for (name, options) in [("served", served_by_creator()), ("group", GroupOptions::default())] {
        let options = options.bytes(bytes as u64 + (1 << 20)).persistent(true);
        let group = group_called(bench, name, options)?;
        let long = if world.rank() == 0 { message_of(&vec![1; bytes]) } else { Message::new() };
        let print = |what: &str, time: Duration| {
            bench.print(&format!("{name}: {what}"), bytes, "ns", time.as_nanos() as f64);
        };
        for before in 0..settings.batches as u64 {
            world.barrier()?;
            let start = Instant::now();
            match world.rank() {
                0 => {
                    group.broadcast(&long)?;
                    print("broadcast", start.elapsed());
                }
                1 => {
                    let times = joins_until_sent(bench, &group, before)?;
                    print("join", times[times.len() / 2]);
                    print("longest join", times[times.len() - 1]);
                }
                _ => {}
            }
            world.barrier()?;
        }
    }
    Ok(())
}

/// The median of joins until there are more broadcasts than `before`.
fn join_until_sent(bench: &Bench, group: &Group, before: u64) -> Measured<f64> {
    let times = joins_until_sent(bench, group, before)?;
    if times.len() < JOINS_MIN {
        return Err(bench.wrong("that the broadcast left no time for joins"));
    }
    Ok(times[times.len() / 2].as_nanos() as f64)
}

/// Joins and leaves at least once, and until there are more broadcasts than `before`. Returns the times of the joins,
/// sorted.
fn joins_until_sent(bench: &Bench, group: &Group, before: u64) -> Measured<Vec<Duration>> {
    let mut inbox = bench.job.create_mailbox()?;
    let mut times: Vec<Duration> = Vec::new();
    loop {
        let start = Instant::now();
        let member = group.join(&mut inbox)?;
        times.push(start.elapsed());
        member.leave()?;
        if group.broadcasts()? > before {
            break;
        }
    }
    times.sort_unstable();
    Ok(times)
}
