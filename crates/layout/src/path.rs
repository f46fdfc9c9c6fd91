//! The path from a layout's root down to a part, which cursors and signatures use to walk.

use crate::Layout;
use crate::tree::{Facts, Form, Repeat, Tree};

/// One level of a path.
#[derive(Clone, Copy, Debug)]
struct Step {
    level: Level,
    /// The index of the repetition or entry.
    index: u64,
    /// The base address of this level.
    base: i64,
}

/// The content of a level.
#[derive(Clone, Copy, Debug)]
enum Level {
    /// The items of the message.
    Items { count: u64, extent: i64 },
    /// A node of the table.
    Node(u32),
}

/// The present position of a walk.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    steps: Vec<Step>,
    is_leaf: fn(&Facts) -> bool,
}

/// A part at which a walk stops: its facts, its base address, and the offset at which the walk enters it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) facts: Facts,
    pub(crate) base: i64,
    pub(crate) within: u64,
}

impl Path {
    /// Creates a path that stops at every part that satisfies `is_leaf`.
    pub(crate) fn new(is_leaf: fn(&Facts) -> bool) -> Self {
        Self { steps: Vec::new(), is_leaf }
    }

    /// Goes to a packed byte of `count` items, which must have it.
    pub(crate) fn go_to(&mut self, layout: &Layout, count: u64, packed: u64) -> Stop {
        self.steps.clear();
        let extent = layout.bounds().extent().unwrap_or(0);
        let index = packed / layout.size_bytes();
        self.steps.push(Step { level: Level::Items { count, extent }, index, base: 0 });
        self.descend(layout, times(index, extent), packed % layout.size_bytes())
    }

    /// Goes to the next part, if there is one.
    pub(crate) fn next(&mut self, layout: &Layout) -> Option<Stop> {
        loop {
            let step = self.steps.last_mut()?;
            step.index += 1;
            let step = *step;
            if let Some((below, base)) = child_of(layout, &step) {
                return Some(match below {
                    Below::Item => self.descend(layout, base, 0),
                    Below::Node(tree, node) => self.descend_from(tree, node, base, 0),
                });
            }
            self.steps.pop();
        }
    }

    /// Goes from an item down to a leaf.
    fn descend(&mut self, layout: &Layout, base: i64, within: u64) -> Stop {
        match layout.tree() {
            Some(tree) => self.descend_from(tree, tree.root(), base, within),
            None => Stop { facts: *layout.facts(), base, within },
        }
    }

    /// Goes from a node down to a leaf.
    fn descend_from(&mut self, tree: &Tree, mut node: u32, mut base: i64, mut within: u64) -> Stop {
        loop {
            let part = &tree.nodes[node as usize];
            if (self.is_leaf)(&part.facts) {
                return Stop { facts: part.facts, base, within };
            }
            let (index, offset, child) = match part.form {
                Form::Run => return Stop { facts: part.facts, base, within },
                Form::Repeat(repeat) => {
                    let size = tree.facts(repeat.child).size;
                    let index = within / size;
                    within %= size;
                    (index, place(&repeat, index), repeat.child)
                }
                Form::List { first, last } => {
                    let entries = tree.list(first, last);
                    let index = entries.partition_point(|entry| entry.packed_start <= within) - 1;
                    let entry = &entries[index];
                    within -= entry.packed_start;
                    (index as u64, entry.offset, entry.child)
                }
            };
            self.steps.push(Step { level: Level::Node(node), index, base });
            base = base.wrapping_add(offset);
            node = child;
        }
    }
}

/// The offset of a repetition. Base addresses on the way may lie beyond 63 bits although no byte of the items does, so
/// they wrap; the result at a leaf was checked when the walk was created.
pub(crate) fn times(index: u64, stride: i64) -> i64 {
    (index as i64).wrapping_mul(stride)
}

/// The offset of a repetition's item, which may wrap as [`times`] does.
pub(crate) fn place(repeat: &Repeat, index: u64) -> i64 {
    repeat.offset.wrapping_add(times(index, repeat.stride))
}

/// The child of a step.
enum Below<'a> {
    Item,
    Node(&'a Tree, u32),
}

/// The child of a step with its base address, unless the step is behind the last.
fn child_of<'a>(layout: &'a Layout, step: &Step) -> Option<(Below<'a>, i64)> {
    let node = match step.level {
        Level::Items { count, extent } => {
            return (step.index < count).then(|| (Below::Item, times(step.index, extent)));
        }
        Level::Node(node) => node,
    };
    let tree = layout.tree()?;
    match tree.nodes[node as usize].form {
        Form::Run => None,
        Form::Repeat(repeat) => (step.index < repeat.count).then(|| {
            let base = step.base.wrapping_add(place(&repeat, step.index));
            (Below::Node(tree, repeat.child), base)
        }),
        Form::List { first, last } => {
            let entry = tree.list(first, last).get(step.index as usize)?;
            Some((Below::Node(tree, entry.child), step.base.wrapping_add(entry.offset)))
        }
    }
}
