//! The blocks that a member has, in all its stores, in one row.

use super::shape::Shape;
use crate::plan::{Cells, Plan, Store};

/// The blocks of a member and their places in the row.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    stores: Vec<Run>,
    exists: Vec<bool>,
}

/// The blocks of one store: these numbers, from this place on.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    end: u32,
    place: usize,
}

impl Grid {
    /// The blocks that a member has by its task, and those for which its plan declares room.
    pub(super) fn new(shape: &Shape, plan: &Plan) -> Self {
        let mut grid = Self { stores: Vec::new(), exists: Vec::new() };
        let (member, numbers) = (plan.member, shape.numbers());
        grid.add(0, numbers, |block| shape.has_input(member, block));
        grid.add(0, numbers, |block| shape.has_output(member, block));
        for declared in &plan.scratch {
            let first = declared.iter().map(|cells| cells.first).min().unwrap_or(0);
            let end = declared.iter().map(|cells| cells.blocks().end).max().unwrap_or(0);
            let is_declared = |block| declared.iter().any(|cells| cells.blocks().contains(&block));
            grid.add(first, end.max(first), is_declared);
        }
        grid
    }

    fn add(&mut self, first: u32, end: u32, exists: impl Fn(u32) -> bool) {
        self.stores.push(Run { first, end, place: self.exists.len() });
        self.exists.extend((first..end).map(exists));
    }

    /// The length of the row.
    pub(super) fn len(&self) -> usize {
        self.exists.len()
    }

    /// The place of a block; none when the member does not have it.
    pub(super) fn place(&self, store: Store, block: u32) -> Option<usize> {
        let number = match store {
            Store::Input => 0,
            Store::Output => 1,
            Store::Scratch(number) => number as usize + 2,
        };
        let run = self.stores.get(number)?;
        let place = run.place + block.checked_sub(run.first)? as usize;
        (block < run.end && self.exists[place]).then_some(place)
    }

    /// Returns the places of the blocks of some cells, in order. An earlier check has ensured that all of them exist.
    pub(super) fn places(&self, cells: Cells) -> impl Iterator<Item = (u32, usize)> + '_ {
        cells.blocks().filter_map(move |block| Some((block, self.place(cells.store, block)?)))
    }
}
