//! Partial results of a reduction: the values that a member holds, their contributors, and how they combine.
//!
//! In the canonical order a result does not depend on which member combines: the only intermediate values are those of
//! aligned intervals of members whose length is a power of two. Two neighbours become one value as soon as a member
//! holds both; the remaining values are combined from the right at the end. For seven members:
//!
//! ```text
//! 0 1 2 3 4 5 6
//! └┬┘ └┬┘ └┬┘ │
//!  └─┬─┘   └┬─┘
//!    └──┬───┘
//! ```
//!
//! That is the binary tree that splits at the largest power of two. A member that cannot combine
//! yet keeps several values, and sends several.

use std::ops::Range;

use crate::plan::{Cells, Store};
use crate::program::Program;

/// The order in which partial results combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The order of the architecture, equal in every execution of a plan. For commutative operations.
    Free,
    /// The canonical order of this module, whatever the architecture.
    Canonical,
    /// The canonical order, combined only at the end: all data go to the root (or to every member), which combines them
    /// in one pass.
    Late,
}

/// A value that stands for the data of consecutive members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    first: u32,
    length: u32,
    cells: Cells,
}

/// The partial result that one member holds: values of disjoint sets of members, in rising order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    order: Order,
    held: Vec<Held>,
}

impl Partial {
    /// A member's own data.
    pub fn own(order: Order, member: u32, cells: Cells) -> Self {
        Self { order, held: vec![Held { first: member, length: 1, cells }] }
    }

    /// One value for the data of so many members from `first` on: in canonical order, those of an aligned interval.
    pub(crate) fn of_run(order: Order, (first, length): (u32, u32), cells: Cells) -> Self {
        Self { order, held: vec![Held { first, length, cells }] }
    }

    /// Its values, each as a partial result of its own, to be combined in canonical order, with the first member of each.
    pub(crate) fn apart(self) -> impl Iterator<Item = (u32, Self)> {
        let order = Order::Canonical;
        self.held.into_iter().map(move |held| (held.first, Self { order, held: vec![held] }))
    }

    /// The blocks of all its values.
    pub fn blocks(&self) -> Range<u32> {
        self.held.first().map_or(0..0, |held| held.cells.blocks())
    }

    /// Cuts off the blocks from `at` on, which the second has then.
    #[must_use]
    pub fn cut(mut self, program: &mut Program, member: u32, at: u32) -> (Self, Self) {
        let mut upper = self.clone();
        for (low, high) in self.held.iter_mut().zip(&mut upper.held) {
            let end = low.cells.first + low.cells.count;
            high.cells = Cells::new(low.cells.store, at, end - at);
            low.cells.count = at - low.cells.first;
            program.share(member, low.cells.store);
        }
        (self, upper)
    }

    /// The cells of its values, in rising order of members.
    pub fn cells(&self) -> Vec<Cells> {
        self.held.iter().map(|held| held.cells).collect()
    }

    /// Returns these values as `member` receives them, each in a scratch store of its own.
    #[must_use]
    pub fn received(&self, program: &mut Program, member: u32) -> Self {
        let receive = |held: &Held| {
            let store = program.scratch(member);
            Held { cells: held.cells.at(store), ..*held }
        };
        Self { order: self.order, held: self.held.iter().map(receive).collect() }
    }

    /// A copy of every value, in scratch stores of its own.
    #[must_use]
    pub fn copied(&self, program: &mut Program, member: u32) -> Self {
        let copies = self.received(program, member);
        for (from, into) in self.held.iter().zip(&copies.held) {
            program.copy(member, from.cells, into.cells);
        }
        copies
    }

    /// Takes the values of another partial result at the same member, and combines what combines.
    pub fn join(&mut self, program: &mut Program, member: u32, other: Self) {
        match self.order {
            Order::Free => {
                for held in other.held {
                    self.held.push(held);
                    self.merge_at(program, member, 0, None);
                }
            }
            Order::Canonical | Order::Late => {
                self.held.extend(other.held);
                self.held.sort_unstable_by_key(|held| held.first);
                if self.order == Order::Canonical {
                    self.merge_siblings(program, member);
                }
            }
        }
    }

    /// Combines all that is held into `output`, which is not among it unless it is the own data
    /// in place. Everything else is free again.
    pub fn close(mut self, program: &mut Program, member: u32, output: Cells) {
        self.merge_siblings(program, member);
        while self.held.len() > 2 {
            let last = self.held.len() - 2;
            self.merge_at(program, member, last, None);
        }
        if self.held.len() == 2 {
            self.merge_at(program, member, 0, Some(output));
        }
        if let Some(held) = self.held.pop() {
            program.copy(member, held.cells, output);
            release(program, member, held.cells, output);
        }
    }

    /// The combined value in `output`, while all that is held stays as it is.
    pub fn show(&self, program: &mut Program, member: u32, output: Cells) {
        let mut values = self.held.iter().rev();
        let Some(last) = values.next() else { return };
        let mut shown = last.cells;
        for held in values {
            program.combine(member, held.cells, shown, output);
            shown = output;
        }
        program.copy(member, shown, output);
    }

    /// Frees the stores of what is held.
    pub fn release(self, program: &mut Program, member: u32) {
        for held in self.held {
            program.release(member, held.cells.store);
        }
    }

    fn merge_siblings(&mut self, program: &mut Program, member: u32) {
        let mut at = 0;
        while at + 1 < self.held.len() {
            if are_siblings(&self.held[at], &self.held[at + 1]) {
                self.merge_at(program, member, at, None);
                at = at.saturating_sub(1);
            } else {
                at += 1;
            }
        }
    }

    /// Combines the values at `at` and after it: into `output`, or into the place of one of them.
    fn merge_at(&mut self, program: &mut Program, member: u32, at: usize, output: Option<Cells>) {
        if at + 1 >= self.held.len() {
            return;
        }
        let (left, right) = (self.held[at], self.held.remove(at + 1));
        let place = if left.cells.store == Store::Input { right.cells } else { left.cells };
        let into = output.unwrap_or(place);
        program.combine(member, left.cells, right.cells, into);
        for old in [left.cells, right.cells] {
            release(program, member, old, into);
        }
        let length = left.length + right.length;
        self.held[at] = Held { first: left.first, length, cells: into };
    }
}

fn release(program: &mut Program, member: u32, old: Cells, into: Cells) {
    if old.store != into.store {
        program.release(member, old.store);
    }
}

fn are_siblings(left: &Held, right: &Held) -> bool {
    left.length == right.length
        && left.first + left.length == right.first
        && left.length.is_power_of_two()
        && left.first.is_multiple_of(2 * left.length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;

    const SIZE: u32 = 12;

    fn members(set: u32) -> Vec<u32> {
        (0..SIZE).filter(|member| set >> member & 1 == 1).collect()
    }

    /// Returns the partial result after joining the data of all these members in rising order.
    fn of(order: Order, members: &[u32], cells: Cells) -> Partial {
        let mut held: Vec<Held> = Vec::new();
        for &first in members {
            held.push(Held { first, length: 1, cells });
            while let [.., left, right] = &mut held[..] {
                if order == Order::Late || !are_siblings(left, right) {
                    break;
                }
                left.length += right.length;
                held.pop();
            }
        }
        Partial { order, held }
    }

    fn intervals(partial: &Partial) -> Vec<(u32, u32)> {
        partial.held.iter().map(|held| (held.first, held.length)).collect()
    }

    /// For any two sets of members, the values held of their union depend only on the union, not on how it came about.
    /// So a reduction by any tree ends with the same values.
    #[test]
    fn values_held_of_a_set_do_not_depend_on_how_it_came_together() {
        let output = Cells::new(Store::Output, 0, 1);
        let sets = 1u32 << SIZE;
        for order in [Order::Canonical, Order::Late] {
            for one in 1..sets {
                // Every set without members of the first.
                let mut other = !one & (sets - 1);
                while other != 0 {
                    let mut program = Program::new(Operation::Reduce, 0, 1, 1, None);
                    let [mut held, arrived] = [one, other]
                        .map(|set| of(order, &members(set), output).received(&mut program, 0));
                    held.join(&mut program, 0, arrived);
                    let expected = of(order, &members(one | other), output);
                    assert_eq!(intervals(&held), intervals(&expected), "{one:b} and {other:b}");
                    other = (other - 1) & !one & (sets - 1);
                }
            }
        }
    }

    #[test]
    fn siblings_are_one_value_and_others_stay_apart() {
        let held = |members: &[u32]| {
            intervals(&of(Order::Canonical, members, Cells::new(Store::Output, 0, 1)))
        };
        assert_eq!(held(&[0, 1, 2, 3, 4, 5, 6]), [(0, 4), (4, 2), (6, 1)]);
        assert_eq!(held(&[1, 2, 3, 5]), [(1, 1), (2, 2), (5, 1)]);
    }
}
