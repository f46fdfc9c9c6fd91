//! What members do together.

use landeck::collectives::Way;
use landeck::collectives::architecture::{Butterfly, Daisy, Flat, Knomial};
use landeck::{Sum, ThreadMode};

use crate::support::in_job;

#[test]
fn first() {
    let n = 3;
    in_job(n, "first::first", ThreadMode::Single, |job| {
        let world = job.world();
        let (rank, size) = (world.rank(), world.size());
        for way in [
            Way::by(Flat),
            Way::by(Daisy),
            Way::by(Knomial::BINOMIAL),
            Way::by(Butterfly),
            Way::split_by(Butterfly),
        ] {
            let world = world.via(way);
            for root in 0..size {
                world.barrier().unwrap();
                let mut data = if rank == root { [3u64, 4, root as u64] } else { [0; 3] };
                world.broadcast(&mut data, root).unwrap();
                assert_eq!(data, [3, 4, root as u64]);
                assert_eq!(
                    world.all_reduce(rank as u64 + 1, Sum).unwrap(),
                    (size * (size + 1) / 2) as u64
                );
            }
        }
    });
}
