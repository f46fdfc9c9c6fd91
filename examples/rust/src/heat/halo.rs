//! The exchange of halos between the blocks of neighbours.

use landeck::{Result, Tag, World};

use super::block::Block;
use super::division::{Division, Side};

/// The exchange over the sides of a block that have a neighbour. It is made once and used in every step.
pub struct Halo {
    borders: Vec<Border>,
}

struct Border {
    side: Side,
    neighbour: usize,
    outgoing: Vec<f64>,
    incoming: Vec<f64>,
}

impl Halo {
    /// The halo of the block of this process.
    pub fn new(world: &World, division: &Division, block: &Block) -> Self {
        let border = |side| {
            let neighbour = division.neighbour(world.rank(), side)?;
            let cells = vec![0.0; block.length(side)];
            Some(Border { side, neighbour, outgoing: cells.clone(), incoming: cells })
        };
        Self { borders: Side::ALL.into_iter().filter_map(border).collect() }
    }

    /// Exchanges the outermost cells of `block` with those of its neighbours, and calls `meanwhile`
    /// while they travel.
    ///
    /// # Errors
    /// As [`World::send`] and [`World::receive_into`].
    pub fn exchange(
        &mut self,
        world: &World,
        block: &mut Block,
        meanwhile: impl FnOnce(&Block),
    ) -> Result<()> {
        // Columns are not one piece of memory, so all four sides are copied out and in again. That
        // also leaves the block free to be read while the halos travel.
        for border in &mut self.borders {
            block.copy_rim(border.side, &mut border.outgoing);
        }
        world.scope(|scope| {
            let mut requests = Vec::new();
            for Border { side, neighbour, outgoing, incoming } in &mut self.borders {
                // The tag is the side that a message leaves from; the neighbour's is the opposite.
                requests.push(scope.receive_into(incoming, *neighbour, tag(side.opposite()))?);
                requests.push(scope.send(outgoing, *neighbour, tag(*side))?);
            }
            meanwhile(block);
            for request in requests {
                request.wait()?;
            }
            Ok(())
        })?;
        for border in &self.borders {
            block.set_halo(border.side, &border.incoming);
        }
        Ok(())
    }
}

fn tag(side: Side) -> Tag {
    Tag(side as u32)
}
