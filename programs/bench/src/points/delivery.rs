//! How long a broadcast takes until its last receiver has it, by several ways in turn.
//!
//! Everybody looks at the one clock of the machine: a delivery lasts from the root's call to the last
//! return. A barrier of the usual way stands before each, and is not in it. A way is written as a
//! preset and the number of groups, `daisy@5`; `landeck` is whatever the table says.

use std::time::Instant;

use landeck::{Maximum, World};
use landeck_collectives::{Group, Operation, Preset};

use crate::collective::{fill, holds, now_s};
use crate::counting::print_messages;
use crate::{Bench, Trouble};

/// Names the way that nobody has asked for.
const USUAL: &str = "landeck";
/// So many broadcasts of a way before it counts: by then its members have their connections.
const WARM: usize = 12;

/// A world whose broadcasts go by one way.
struct By {
    way: String,
    world: World,
}

/// Every way with every size, batch by batch, in an order that rotates.
pub(crate) fn measure(bench: &Bench) -> Result<(), Trouble> {
    let settings = &bench.settings;
    let ways =
        settings.ways.iter().map(|way| By::new(bench, way)).collect::<Result<Vec<_>, _>>()?;
    let mut block = vec![0; settings.largest()];
    for by in &ways {
        for &bytes in &settings.bytes {
            check(bench, by, &mut block[..bytes])?;
            let once = || by.world.broadcast(&mut block[..bytes], 0);
            print_messages(bench, &by.way, bytes, once)?;
        }
    }
    let begun = Instant::now();
    for batch in 0..settings.batches {
        if batch > 0 && !bench.goes_on(begun)? {
            break;
        }
        for place in 0..ways.len() {
            let by = &ways[(batch + place) % ways.len()];
            for &bytes in &settings.bytes {
                let mean_s = mean_delivery_s(bench, by, &mut block[..bytes])?;
                if bench.world.rank() == 0 {
                    bench.print(&by.way, bytes, "ns", mean_s * 1e9);
                }
            }
        }
    }
    Ok(())
}

impl By {
    fn new(bench: &Bench, way: &str) -> Result<By, Trouble> {
        let world = &bench.world;
        let named = |world| By { way: way.to_owned(), world };
        if way == USUAL {
            return Ok(named(world.clone()));
        }
        let wrong = |why: String| Trouble::Usage(format!("ways={way}: {why}"));
        let (preset, groups) = way
            .split_once('@')
            .and_then(|(preset, groups)| Some((preset, groups.parse().ok()?)))
            .ok_or_else(|| wrong("a way is a preset and a number of groups: daisy@5".into()))?;
        let preset: Preset = preset.parse().map_err(|error| wrong(format!("{error}")))?;
        let groups = Group::divided(world.size() as u32, groups)
            .map_err(|error| wrong(error.to_string()))?;
        let world = world.with_clusters(&groups)?;
        Ok(named(world.via(preset.way(Operation::Broadcast))))
    }
}

/// Broadcasts whose result everybody looks at.
fn check(bench: &Bench, by: &By, block: &mut [u8]) -> Result<(), Trouble> {
    for turn in 0..WARM {
        block.fill(0);
        if by.world.rank() == 0 {
            fill(block, 0, turn);
        }
        by.world.broadcast(block, 0)?;
        if !holds(block, 0, turn) {
            return Err(bench.wrong("a wrong broadcast"));
        }
    }
    Ok(())
}

/// Of the iterations of a batch; rank 0 alone knows it.
fn mean_delivery_s(bench: &Bench, by: &By, block: &mut [u8]) -> landeck::Result<f64> {
    let iterations = bench.settings.iterations;
    let (mut begun_s, mut ended_s) = (vec![0.0; iterations], vec![0.0; iterations]);
    for (begun_s, ended_s) in begun_s.iter_mut().zip(&mut ended_s) {
        bench.world.barrier()?;
        *begun_s = now_s();
        by.world.broadcast(block, 0)?;
        *ended_s = now_s();
    }
    let mut last_s = vec![0.0; iterations];
    bench.world.reduce(&ended_s, &mut last_s, Maximum, 0)?;
    let sum_s: f64 = last_s.iter().zip(&begun_s).map(|(last, begun)| last - begun).sum();
    Ok(sum_s / iterations as f64)
}
