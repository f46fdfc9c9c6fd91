//! The measurement of the papers on DECK: so many operations in a row, the time of rank 0 divided by their
//! number. The root is always rank 0, as theirs was. The job gets the architecture as an option when it is
//! started.

use std::time::Instant;

use landeck::{Result, Sum, World};

use crate::collective::{fill, holds};
use crate::counting::print_messages;
use crate::{Bench, Measured};

/// Operations, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// `deck_group_bcast`, then `deck_group_sync`.
    BroadcastSync,
    ScatterGather,
    Reduce,
    Barrier,
}

/// So many of them before they count: by then all members have their connections.
const WARM: usize = 12;

/// A broadcast and a barrier: the paper of 2000.
pub(crate) fn service(bench: &Bench) -> Measured {
    measure(bench, &[Row::BroadcastSync])
}

/// Scatter and gather, reduce, and barrier: the paper of 2003.
pub(crate) fn collective(bench: &Bench) -> Measured {
    measure(bench, &[Row::ScatterGather, Row::Reduce, Row::Barrier])
}

fn measure(bench: &Bench, rows: &[Row]) -> Measured {
    let (world, settings) = (&bench.world, &bench.settings);
    let sizes = |row: Row| if row == Row::Barrier { &[0][..] } else { &settings.bytes };
    let points = || rows.iter().flat_map(|&row| sizes(row).iter().map(move |&bytes| (row, bytes)));
    let mut data = Data::new(world.size(), settings.largest());
    for (row, bytes) in points() {
        data.check(bench, row, bytes)?;
        print_messages(bench, row.name(), bytes, || row.call(world, &mut data, bytes))?;
    }
    let begun = Instant::now();
    for batch in 0..settings.batches {
        if batch > 0 && !bench.goes_on(begun)? {
            break;
        }
        for (row, bytes) in points() {
            bench.repeat(row.name(), bytes, || row.call(world, &mut data, bytes))?;
        }
    }
    Ok(())
}

impl Row {
    fn name(self) -> &'static str {
        match self {
            Row::BroadcastSync => "broadcast-sync",
            Row::ScatterGather => "scatter-gather",
            Row::Reduce => "reduce",
            Row::Barrier => "barrier",
        }
    }

    fn call(self, world: &World, data: &mut Data, bytes: usize) -> Result<()> {
        let all = bytes * world.size();
        let (own, every) = (&mut data.own[..bytes], &mut data.every);
        match self {
            Row::BroadcastSync => {
                world.broadcast(own, 0)?;
                world.barrier()
            }
            Row::ScatterGather => {
                world.scatter(&every[..all], own, 0)?;
                world.gather(own, &mut every[..all], 0)
            }
            Row::Reduce => {
                world.reduce(&data.terms[..bytes / 4], &mut data.sums[..bytes / 4], Sum, 0)
            }
            Row::Barrier => world.barrier(),
        }
    }
}

/// The block of one member, those of all, and the terms and sums of reductions.
struct Data {
    own: Vec<u8>,
    every: Vec<u8>,
    terms: Vec<u32>,
    sums: Vec<u32>,
}

impl Data {
    fn new(size: usize, largest: usize) -> Data {
        let (terms, sums) = (vec![0; largest / 4], vec![0; largest / 4]);
        Data { own: vec![0; largest], every: vec![0; largest * size], terms, sums }
    }

    /// Operations whose results every member looks at. What is scattered comes back, so they can
    /// be repeated.
    fn check(&mut self, bench: &Bench, row: Row, bytes: usize) -> Measured {
        let world = &bench.world;
        self.prepare(world, row, bytes);
        for _ in 0..WARM {
            row.call(world, self, bytes)?;
        }
        if self.is_right(world, row, bytes) { Ok(()) } else { Err(bench.wrong("a wrong result")) }
    }

    fn prepare(&mut self, world: &World, row: Row, bytes: usize) {
        let is_root = world.rank() == 0;
        self.own.fill(0);
        self.sums.fill(0);
        self.terms.fill(world.rank() as u32 + 1);
        if is_root && row == Row::BroadcastSync {
            fill(&mut self.own[..bytes], 0, 0);
        }
        if is_root && row == Row::ScatterGather {
            for to in 0..world.size() {
                fill(&mut self.every[to * bytes..][..bytes], 0, to);
            }
        }
    }

    fn is_right(&self, world: &World, row: Row, bytes: usize) -> bool {
        let (rank, size) = (world.rank(), world.size());
        let own_is = |to| holds(&self.own[..bytes], 0, to);
        let every = |to: usize| holds(&self.every[to * bytes..][..bytes], 0, to);
        match row {
            Row::BroadcastSync => own_is(0),
            Row::ScatterGather => own_is(rank) && (rank > 0 || (0..size).all(every)),
            Row::Reduce => {
                let sum = (size * (size + 1) / 2) as u32;
                rank > 0 || self.sums[..bytes / 4].iter().all(|&found| found == sum)
            }
            Row::Barrier => true,
        }
    }
}
