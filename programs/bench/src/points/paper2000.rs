//! The group service of the paper of 2000, as the paper describes it: a server, and clients that talk to it alone.
//!
//! Rank 0 is the server, on the host of the first member; all others are members. Nothing of Landeck's groups is used:
//! the protocol is written with messages of a world. So the messages of each call are those of the paper, on any number of
//! hosts, and they are counted from the counters of all processes.

use std::time::Instant;

use landeck::{Any, Result, Sum, Tag, World};

use crate::collective::{fill, holds};
use crate::{Bench, Measured, report};

/// The calls, which are tags of requests as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Join,
    Leave,
    Broadcast,
    Sync,
    Destroy,
}

impl Call {
    const ALL: [Call; 5] = [Call::Join, Call::Leave, Call::Broadcast, Call::Sync, Call::Destroy];

    fn name(self) -> &'static str {
        match self {
            Call::Join => "join",
            Call::Leave => "leave",
            Call::Broadcast => "broadcast",
            Call::Sync => "sync",
            Call::Destroy => "destroy",
        }
    }

    fn tag(self) -> Tag {
        Tag(100 + self as u32)
    }

    fn of(tag: Tag) -> Option<Call> {
        Call::ALL.into_iter().find(|call| call.tag() == tag)
    }
}

const SERVER: usize = 0;
/// An answer of the server.
const ANSWER: Tag = Tag(200);
/// A broadcast on its way to a member.
const DELIVERY: Tag = Tag(201);
/// Broadcasts before those that are timed.
const WARM: usize = 3;

/// How often a call was made, and the messages that it cost.
type Costs = [[u64; 2]; Call::ALL.len()];

/// A process of the service.
struct Party<'a> {
    bench: &'a Bench,
    costs: Costs,
}

/// Measures broadcasts with synchronisations, and counts the messages of all calls.
pub(crate) fn measure(bench: &Bench) -> Measured {
    let (world, settings) = (&bench.world, &bench.settings);
    bench.needs(world.size() >= 2, "a server and at least one member")?;
    let mut party = Party { bench, costs: Costs::default() };
    if world.rank() == SERVER {
        party.serve()?;
    } else {
        party.call(Call::Join, &[])?;
        world_of_members_measures(&mut party)?;
        party.call(Call::Leave, &[])?;
        if world.rank() == 1 {
            party.call(Call::Destroy, &[])?;
        }
    }
    let own: Vec<u64> = party.costs.as_flattened().to_vec();
    let mut all = vec![0; own.len()];
    world.all_reduce_into(&own, &mut all, Sum)?;
    if world.rank() == 0 {
        for (call, cost) in Call::ALL.into_iter().zip(all.chunks(2)) {
            let each = cost[1] as f64 / cost[0] as f64;
            let n = world.size() - 1;
            report::print(&settings.figure, call.name(), n, 0, 0, "messages", each);
        }
    }
    Ok(())
}

fn world_of_members_measures(party: &mut Party<'_>) -> Measured {
    let bench = party.bench;
    let (world, settings) = (&bench.world, &bench.settings);
    let mut data = vec![0u8; settings.largest()];
    for &bytes in &settings.bytes {
        let data = &mut data[..bytes];
        for _ in 0..WARM {
            data.fill(0);
            let mut sent = vec![0; bytes];
            fill(&mut sent, 0, 0);
            party.broadcast_sync(&sent, data)?;
            if !holds(data, 0, 0) {
                return Err(bench.wrong("a wrong broadcast"));
            }
        }
        let sent = data.to_vec();
        for _ in 0..settings.batches {
            party.call(Call::Sync, &[])?;
            let start = Instant::now();
            for _ in 0..settings.iterations {
                party.broadcast_sync(&sent, data)?;
            }
            let mean_ns = start.elapsed().as_nanos() as f64 / settings.iterations as f64;
            if world.rank() == 1 {
                let n = world.size() - 1;
                report::print(&settings.figure, "broadcast-sync", n, bytes, 0, "ns", mean_ns);
            }
        }
    }
    Ok(())
}

impl Party<'_> {
    fn world(&self) -> &World {
        &self.bench.world
    }

    /// Adds the messages of a part to those of a call.
    fn counted<T>(
        &mut self,
        call: Call,
        calls: u64,
        part: impl FnOnce(&World) -> Result<T>,
    ) -> Result<T> {
        let before = self.bench.job.counters().messages_sent;
        let result = part(self.world())?;
        let cost = &mut self.costs[call as usize];
        cost[0] += calls;
        cost[1] += self.bench.job.counters().messages_sent - before;
        Ok(result)
    }

    /// A request to the server and its answer.
    fn call(&mut self, call: Call, request: &[u8]) -> Result<()> {
        // A synchronisation is one call of all members.
        let calls = u64::from(call != Call::Sync || self.world().rank() == 1);
        self.counted(call, calls, |world| {
            world.send(request, SERVER, call.tag())?;
            world.receive_into(&mut [0u8; 1], SERVER, ANSWER).map(|_| ())
        })
    }

    /// The first member broadcasts; all members take the message out, and synchronise.
    fn broadcast_sync(&mut self, sent: &[u8], into: &mut [u8]) -> Result<()> {
        if self.world().rank() == 1 {
            self.counted(Call::Broadcast, 1, |world| {
                world.send(sent, SERVER, Call::Broadcast.tag())
            })?;
        }
        self.world().receive_into(into, SERVER, DELIVERY)?;
        self.call(Call::Sync, &[])
    }

    /// Serves until the group is destroyed and all have left it.
    fn serve(&mut self) -> Measured {
        let mut members: Vec<usize> = Vec::new();
        let mut waiting: Vec<usize> = Vec::new();
        let mut data = vec![0u8; self.bench.settings.largest()];
        // Broadcasts begin when all have joined: the minimum of the group.
        let minimum = self.world().size() - 1;
        let mut is_destroyed = false;
        while !(is_destroyed && members.is_empty()) {
            let status = self.world().receive_into(&mut data, Any, Any)?;
            let (from, bytes) = (status.rank(), status.bytes() as usize);
            let call =
                Call::of(status.tag()).ok_or_else(|| self.bench.wrong("an unknown request"))?;
            let answered: Vec<usize> = match call {
                Call::Join => {
                    members.push(from);
                    let is_enough = members.len() == minimum;
                    waiting.push(from);
                    if is_enough { std::mem::take(&mut waiting) } else { Vec::new() }
                }
                Call::Sync => {
                    waiting.push(from);
                    let is_last = waiting.len() == members.len();
                    if is_last { std::mem::take(&mut waiting) } else { Vec::new() }
                }
                Call::Leave => {
                    members.retain(|&member| member != from);
                    vec![from]
                }
                Call::Destroy => {
                    is_destroyed = true;
                    vec![from]
                }
                Call::Broadcast => Vec::new(),
            };
            let to = if call == Call::Broadcast { members.clone() } else { Vec::new() };
            self.counted(call, 0, |world| {
                to.iter().try_for_each(|&to| world.send(&data[..bytes], to, DELIVERY))?;
                answered.iter().try_for_each(|&to| world.send(&[0u8], to, ANSWER))
            })?;
        }
        Ok(())
    }
}
