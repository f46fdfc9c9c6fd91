//! Tools of measurements: data that begin with a page, the clock's own time, the median, what a job says.

use landeck::World;
use landeck::unstable::host::say::say;
use std::hint::black_box;
use std::time::Instant;

/// Batches of looks at the clock.
const BATCHES: usize = 9;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Room for data that begin with a page.
pub(crate) fn page_room(bytes: usize) -> Vec<u8> {
    vec![1; bytes + PAGE_BYTES]
}

/// The data in that room. They begin with a page, since copies differ by a tenth and more by where they begin.
pub(crate) fn of_page(room: &mut [u8], bytes: usize) -> &mut [u8] {
    let before = room.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
    &mut room[before..before + bytes]
}

/// The time of one look at the clock.
pub(crate) fn clock_ps() -> f64 {
    const LOOKS: u32 = 1_000;
    let batch_ps = || {
        let start = Instant::now();
        (0..LOOKS).for_each(|_| {
            black_box(Instant::now());
        });
        start.elapsed().as_nanos() as f64 * 1e3 / f64::from(LOOKS)
    };
    (0..BATCHES).map(|_| batch_ps()).fold(f64::INFINITY, f64::min)
}

/// The median; 0 of no values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Says a finding of a job: rank 0 prints it.
pub(super) fn report(world: &World, name: &str, ps: f64) {
    if world.rank() == 0 {
        // A process whose output has no reader has nothing else to do.
        let _ = say(&format!("{name} {}\n", ps.max(1.0) as u64));
    }
}
