//! The parts of a layout in one flat table, children before parents.
//!
//! Nothing here has size zero but a root: parts without bytes only move bounds, so they are dropped
//! and a walk never meets them.

use std::sync::Arc;

use crate::{Bounds, Kind, LayoutError};

/// The most parts one table may hold.
pub(crate) const PARTS_LIMIT: usize = u32::MAX as usize;

/// A layout that is more than a run of equal elements.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) entries: Vec<Entry>,
}

/// One part of a layout.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) form: Form,
    pub(crate) facts: Facts,
}

/// What a part is made of.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// A run of elements of the kind in the facts.
    Run,
    /// The child again and again.
    Repeat { count: u64, stride: i64, child: u32 },
    /// The entries of the table with these indices, in the order they are packed.
    List { first: u32, last: u32 },
}

/// One entry of a list.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) offset: i64,
    pub(crate) packed_start: u64,
    pub(crate) child: u32,
}

/// What is known of a part without walking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// How many bytes it packs to.
    pub(crate) size: u64,
    /// How many elements it has.
    pub(crate) elements: u64,
    /// It has neither bytes nor bounds, so it has no place either.
    pub(crate) is_nothing: bool,
    /// Where it begins and ends for who puts one behind the other.
    pub(crate) bounds: Bounds,
    /// Where its first and last byte lie.
    pub(crate) true_bounds: Bounds,
    /// Its packed bytes are the bytes from `true_bounds.lower` on.
    pub(crate) dense: bool,
    /// All its elements are of this kind.
    pub(crate) uniform: Option<Kind>,
}

impl Facts {
    /// A part without bytes and without place.
    pub(crate) const EMPTY: Self = Self {
        size: 0,
        elements: 0,
        is_nothing: true,
        bounds: Bounds::EMPTY,
        true_bounds: Bounds::EMPTY,
        dense: true,
        uniform: None,
    };

    /// `count` elements of one kind, one behind the other.
    pub(crate) fn run(kind: Kind, count: u64) -> Result<Self, LayoutError> {
        if count == 0 {
            return Ok(Self::EMPTY);
        }
        let size = multiply(kind.size_bytes(), count, "the size")?;
        let upper = i64::try_from(size).map_err(|_| too_large("the size"))?;
        let bounds = Bounds { lower: 0, upper };
        Ok(Self {
            size,
            elements: count,
            is_nothing: false,
            bounds,
            true_bounds: bounds,
            dense: true,
            uniform: Some(kind),
        })
    }

    /// This part `count` times, each `stride` bytes behind the one before.
    pub(crate) fn repeated(&self, count: u64, stride: i64) -> Result<Self, LayoutError> {
        if count == 0 || self.is_nothing {
            return Ok(Self::EMPTY);
        }
        let size = multiply(self.size, count, "the size")?;
        let steps = i64::try_from(count - 1).map_err(|_| too_large("the extent"))?;
        // A single one, or one without any bytes, needs no stride: it is not an error if it is huge.
        let reach = if steps == 0 {
            0
        } else {
            steps.checked_mul(stride).ok_or(too_large("the extent"))?
        };
        let dense =
            self.dense && (count == 1 || self.size == 0 || i64::try_from(self.size) == Ok(stride));
        Ok(Self {
            size,
            elements: multiply(self.elements, count, "the number of elements")?,
            is_nothing: false,
            bounds: self.bounds.joined(&self.bounds.moved(reach)?),
            true_bounds: if self.size == 0 {
                Bounds::EMPTY
            } else {
                self.true_bounds.joined(&self.true_bounds.moved(reach)?)
            },
            dense,
            uniform: self.uniform,
        })
    }
}

impl Tree {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self { nodes: Vec::new(), entries: Vec::new() }
    }

    /// The index of the root, which is the last node.
    pub(crate) fn root(&self) -> u32 {
        // Every table is made with at least one node and at most `PARTS_LIMIT`.
        (self.nodes.len() - 1) as u32
    }

    /// The facts of a node.
    pub(crate) fn facts(&self, node: u32) -> &Facts {
        &self.nodes[node as usize].facts
    }

    /// Puts a node behind the others.
    pub(crate) fn push(&mut self, form: Form, facts: Facts) -> Result<u32, LayoutError> {
        let index = number(self.nodes.len())?;
        self.nodes.push(Node { form, facts });
        Ok(index)
    }

    /// Copies another table behind this one and returns where its root is now.
    pub(crate) fn append(&mut self, other: &Tree) -> Result<u32, LayoutError> {
        let nodes_before = number(self.nodes.len())?;
        let entries_before = number(self.entries.len())?;
        number(self.nodes.len() + other.nodes.len())?;
        number(self.entries.len() + other.entries.len())?;
        self.entries.extend(
            other
                .entries
                .iter()
                .map(|entry| Entry { child: entry.child + nodes_before, ..entry.clone() }),
        );
        self.nodes.extend(other.nodes.iter().map(|node| Node {
            form: match node.form {
                Form::Run => Form::Run,
                Form::Repeat { count, stride, child } => {
                    Form::Repeat { count, stride, child: child + nodes_before }
                }
                Form::List { first, last } => {
                    Form::List { first: first + entries_before, last: last + entries_before }
                }
            },
            facts: node.facts,
        }));
        Ok(self.root())
    }

    /// Ends the building.
    pub(crate) fn finish(self) -> Arc<Self> {
        Arc::new(self)
    }
}

/// A number of parts as an index.
pub(crate) fn number(parts: usize) -> Result<u32, LayoutError> {
    if parts >= PARTS_LIMIT {
        return Err(LayoutError::TooManyParts { parts, limit: PARTS_LIMIT });
    }
    Ok(parts as u32)
}

/// The error for a number beyond 63 bits.
pub(crate) fn too_large(what: &'static str) -> LayoutError {
    LayoutError::TooLarge { what }
}

/// The product of two sizes that stays below 2^63.
pub(crate) fn multiply(left: u64, right: u64, what: &'static str) -> Result<u64, LayoutError> {
    left.checked_mul(right)
        .filter(|product| i64::try_from(*product).is_ok())
        .ok_or(LayoutError::TooLarge { what })
}
