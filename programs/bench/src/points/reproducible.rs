//! The cost of a sum with the same bits whatever the architecture: allreduce as the library
//! chooses (over the board, where that is always so), and over messages, with and without it.

use landeck::World;
use landeck_collectives::Way;
use landeck_collectives::architecture::{Butterfly, Ring};

use crate::collective::{Blocks, Operation, measure_over};
use crate::{Bench, Trouble};

/// Every form, every size.
pub(crate) fn measure(bench: &Bench) -> Result<(), Trouble> {
    let mut blocks = Blocks::new(bench);
    for (form, world) in forms(&bench.world) {
        for &bytes in &bench.settings.bytes {
            measure_over(bench, &world, &mut blocks, form, Operation::AllReduce, bytes)?;
        }
    }
    Ok(())
}

fn forms(world: &World) -> [(&'static str, World); 6] {
    let (butterfly, ring) = (world.via(Butterfly), world.via(Way::split_by(Ring)));
    [
        ("default", world.clone()),
        ("default, same bits", world.clone().reproducible()),
        ("butterfly", butterfly.clone()),
        ("butterfly, same bits", butterfly.reproducible()),
        ("ring, split", ring.clone()),
        ("ring, split, same bits", ring.reproducible()),
    ]
}
