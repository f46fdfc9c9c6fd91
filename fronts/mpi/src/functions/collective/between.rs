//! Collective operations between two groups: each process tells the other group what that is to have.
//!
//! All of them are one exchange in the world of both groups, in which the members of one's own group
//! get nothing. Who is no root needs not know which process of its group is. Reductions bring the
//! values of the other group together, and combine them where they are wanted.

use landeck::layout::{Kind, Layout};
use landeck::raw::collective::Data;
use landeck::unstable::collectives::Operation as Collective;

use super::asked::{Asked, Below, Role};
use super::fold::{self, Fold, Shared};
use super::side::Side;
use crate::arguments::Items;
use crate::mistake::Mistake;
use crate::objects::communicator::Remote;

/// The data of one side for each member of both groups, in bytes from its start.
struct Parts {
    start: *mut u8,
    layouts: Vec<Layout>,
    counts: Vec<u64>,
    displacements: Vec<i64>,
}

impl Parts {
    /// No data for so many members.
    fn none(members: usize) -> Result<Self, Mistake> {
        Ok(Self {
            start: std::ptr::null_mut(),
            layouts: vec![Layout::elements(Kind::BYTE, 0)?; members],
            counts: vec![0; members],
            displacements: vec![0; members],
        })
    }

    fn set(&mut self, member: usize, layout: &Layout, count: u64, displacement: i64) {
        self.layouts[member] = layout.clone();
        self.counts[member] = count;
        self.displacements[member] = displacement;
    }

    fn data(&self) -> Data<'_> {
        let Self { start, layouts, counts, displacements } = self;
        Data::Layouts { start: *start, layouts, counts, displacements }
    }
}

/// The members of the other group that exchange data with this process.
#[derive(Clone, Copy)]
enum Partners {
    Nobody,
    All,
    Only(usize),
}

impl Partners {
    fn has(self, rank: usize) -> bool {
        match self {
            Self::Nobody => false,
            Self::All => true,
            Self::Only(only) => only == rank,
        }
    }
}

/// Exchanges the data of a call.
pub(super) fn exchange<R>(
    asked: &Asked,
    remote: &Remote,
    folds: Option<&Shared>,
    use_it: impl FnOnce(&Below<'_>) -> Result<R, Mistake>,
) -> Result<R, Mistake> {
    let world = remote.both();
    let below = |operation, input, output| Below {
        world,
        operation,
        root: 0,
        input,
        output,
        operator: None,
        missing: folds.and_then(|folds| fold::lock(folds).missing()),
    };
    if asked.operation == Collective::Barrier {
        return use_it(&below(Collective::Barrier, Data::Nothing, Data::Nothing));
    }
    let (to, from) = partners(asked);
    let mut sent = Parts::none(world.size())?;
    // A root has what it tells all where others get it.
    let input = match asked.operation {
        Collective::Broadcast => &asked.output,
        _ => &asked.input,
    };
    side(&mut sent, input, remote, to)?;
    let mut received = Parts::none(world.size())?;
    match folds {
        Some(folds) => values(&mut received, &fold::lock(folds), remote, from)?,
        None => side(&mut received, &asked.output, remote, from)?,
    }
    use_it(&below(Collective::AllToAll, sent.data(), received.data()))
}

/// To whom and from whom data go.
fn partners(asked: &Asked) -> (Partners, Partners) {
    let is_from_root = matches!(asked.operation, Collective::Broadcast | Collective::Scatter);
    match asked.role {
        Role::Member => (Partners::All, Partners::All),
        Role::Bystander => (Partners::Nobody, Partners::Nobody),
        Role::Root if is_from_root => (Partners::All, Partners::Nobody),
        Role::Root => (Partners::Nobody, Partners::All),
        Role::RootIs(root) if is_from_root => (Partners::Nobody, Partners::Only(root)),
        Role::RootIs(root) => (Partners::Only(root), Partners::Nobody),
    }
}

/// One side of the call.
fn side(parts: &mut Parts, side: &Side, remote: &Remote, who: Partners) -> Result<(), Mistake> {
    let all = (0..remote.group.size() as usize).filter(|&rank| who.has(rank));
    match side {
        Side::Nothing | Side::Elsewhere | Side::InPlace => {}
        Side::Whole(Items { start, count, datatype }) => {
            parts.start = *start;
            for rank in all {
                parts.set(remote.place(rank), &datatype.layout, *count, 0);
            }
        }
        Side::Blocks(Items { start, count, datatype }) => {
            parts.start = *start;
            let stride = datatype.layout.extent_bytes()?.saturating_mul(*count as i64);
            for rank in all {
                let from = stride.saturating_mul(rank as i64);
                parts.set(remote.place(rank), &datatype.layout, *count, from);
            }
        }
        Side::Varying { items, counts, displacements } => {
            parts.start = items.start;
            let layout = &items.datatype.layout;
            let extent = layout.extent_bytes()?;
            for rank in all {
                let from = extent.saturating_mul(displacements[rank]);
                parts.set(remote.place(rank), layout, counts[rank], from);
            }
        }
        Side::Layouts { start, layouts, counts, displacements } => {
            parts.start = *start;
            for rank in all {
                let place = remote.place(rank);
                parts.set(place, &layouts[rank], counts[rank], displacements[rank]);
            }
        }
    }
    Ok(())
}

/// The place where the values of the other group come together.
fn values(parts: &mut Parts, fold: &Fold, remote: &Remote, who: Partners) -> Result<(), Mistake> {
    let (start, layout, count) = fold.place();
    parts.start = start;
    let stride = layout.extent_bytes()?.saturating_mul(count as i64);
    for rank in (0..remote.group.size() as usize).filter(|&rank| who.has(rank)) {
        parts.set(remote.place(rank), layout, count, stride.saturating_mul(rank as i64));
    }
    Ok(())
}
