//! Measures from which length on a message is faster in one copy by the kernel of the system.
//!
//! The data are written before each message and read after it, as programs do. Data that never change stay in the
//! reader's cache, which makes one copy look up to three times as fast.

use super::instruments::{TAG, share_of};
use landeck::{OneCopy, Result, World};
use landeck_collectives::CostParameters;
use landeck_measure::Paged;
use std::hint::black_box;
use std::time::Instant;

const LENGTHS_KIB: [u64; 5] = [16, 64, 256, 1_024, 4_096];
const BATCHES: usize = 3;
/// The distance of bytes that the receiver reads: one in each cache line.
const LINE_BYTES: usize = 64;
const ROUND_TRIPS: u32 = 4;
/// One copy is taken where it needs at most so much of the time of two.
const SHARE_MAX: f64 = 0.9;

/// The length in KiB from which one copy is faster, up to the longest that is measured.
pub(super) fn from_kib(world: &World) -> Result<u64> {
    let (twice, once) = (world.duplicate()?, world.duplicate()?);
    twice.set_one_copy(OneCopy::Never)?;
    once.set_one_copy(OneCopy::From(4 << 10))?;
    let mut from = CostParameters::NO_LENGTH_KIB;
    for kib in LENGTHS_KIB.into_iter().rev() {
        let bytes = (kib << 10) as usize;
        if share_of([&twice, &once], BATCHES, |world| exchange_s(world, bytes))? > SHARE_MAX {
            break;
        }
        from = kib;
    }
    Ok(from)
}

/// The time of some round trips of data that their sender writes and their receiver reads.
fn exchange_s(world: &World, bytes: usize) -> Result<f64> {
    let other = 1 - world.rank();
    let [mut own, mut others] = [(); 2].map(|()| Paged::new(1u8, bytes, 0));
    let mut began = Instant::now();
    for round in 0..=ROUND_TRIPS {
        if round == 1 {
            began = Instant::now(); // the first one touches the memory
        }
        for sender in 0..2 {
            if sender == world.rank() {
                own.fill(black_box(round as u8));
                world.send(&own, other, TAG)?;
            } else {
                world.receive_into(&mut others, other, TAG)?;
                let sum: u64 = others.iter().step_by(LINE_BYTES).map(|&byte| u64::from(byte)).sum();
                black_box(sum);
            }
        }
    }
    Ok(began.elapsed().as_secs_f64())
}
