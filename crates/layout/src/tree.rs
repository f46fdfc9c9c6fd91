//! The parts of a layout in one flat table, children before parents.
//!
//! Only a root can have size zero: other parts without bytes only move bounds, so they are dropped and a walk never
//! meets them.

use std::sync::Arc;

use crate::fingerprint::Fingerprint;
use crate::{Bounds, Kind, LayoutError};

/// The largest number of parts of one table.
pub(crate) const PARTS_LIMIT: usize = u32::MAX as usize;
/// The largest depth of nested parts, which is also the depth of a walk.
pub(crate) const DEPTH_LIMIT: u16 = 512;

/// A layout that is more than a run of equal elements.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) entries: Vec<Entry>,
}

/// One part of a layout.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) form: Form,
    pub(crate) facts: Facts,
    /// The depth of nesting here, including this part.
    depth: u16,
}

/// The composition of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// A run of elements of the kind in the facts.
    Run,
    /// The repeated child.
    Repeat(Repeat),
    /// The entries of the table with these indices, in packing order.
    List { first: u32, last: u32 },
}

/// A child, repeated `count` times: the first at `offset`, each `stride` bytes behind the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    pub(crate) offset: i64,
    pub(crate) count: u64,
    pub(crate) stride: i64,
    pub(crate) child: u32,
}

/// One entry of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) offset: i64,
    pub(crate) packed_start: u64,
    pub(crate) child: u32,
}

/// The facts about a part that are known without walking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The number of packed bytes.
    pub(crate) size: u64,
    /// The number of elements.
    pub(crate) elements: u64,
    /// The bounds, which determine the place of the next part.
    pub(crate) bounds: Bounds,
    /// The places of its first and last byte.
    pub(crate) true_bounds: Bounds,
    /// Whether the bounds were given explicitly, instead of following from the bytes.
    pub(crate) is_bounded: bool,
    /// The largest alignment of its elements.
    pub(crate) alignment: u8,
    /// Whether its packed bytes are the bytes from `true_bounds.lower` on.
    pub(crate) dense: bool,
    /// The kind of all its elements, if they are equal.
    pub(crate) uniform: Option<Kind>,
    /// The fingerprint of its elements.
    pub(crate) fingerprint: Fingerprint,
}

impl Facts {
    /// The facts about a part without bytes and without place.
    pub(crate) const EMPTY: Self = Self {
        size: 0,
        elements: 0,
        bounds: Bounds::EMPTY,
        true_bounds: Bounds::EMPTY,
        is_bounded: false,
        alignment: 1,
        dense: true,
        uniform: None,
        fingerprint: Fingerprint::EMPTY,
    };

    /// The facts about `count` elements of one kind, one behind the other.
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
            bounds,
            true_bounds: bounds,
            is_bounded: false,
            alignment: kind.alignment_bytes() as u8,
            dense: true,
            uniform: Some(kind),
            fingerprint: Fingerprint::of(kind).repeated(1, count),
        })
    }

    /// Whether it has neither bytes nor bounds, and thus no place.
    pub(crate) fn is_nothing(&self) -> bool {
        self.size == 0 && !self.is_bounded
    }

    /// The facts about this part, repeated `count` times, each `stride` bytes behind the one before.
    pub(crate) fn repeated(&self, count: u64, stride: i64) -> Result<Self, LayoutError> {
        if count == 0 || self.is_nothing() {
            return Ok(Self::EMPTY);
        }
        let reach = reach(count, stride)?;
        let mut repeated = Self {
            size: multiply(self.size, count, "the size")?,
            elements: multiply(self.elements, count, "the number of elements")?,
            dense: self.dense
                && (count == 1 || self.size == 0 || i64::try_from(self.size) == Ok(stride)),
            fingerprint: self.fingerprint.repeated(self.elements, count),
            ..*self
        };
        repeated.true_bounds = self.span(count, stride)?;
        repeated.bounds = if self.is_bounded {
            self.bounds.joined(&self.bounds.moved(reach)?)
        } else {
            repeated.natural_bounds()?
        };
        Ok(repeated)
    }

    /// The bounds of the bytes of this part, repeated as in [`Facts::repeated`].
    pub(crate) fn span(&self, count: u64, stride: i64) -> Result<Bounds, LayoutError> {
        if count == 0 || self.size == 0 {
            return Ok(Bounds::EMPTY);
        }
        Ok(self.true_bounds.joined(&self.true_bounds.moved(reach(count, stride)?)?))
    }

    /// The facts about this part, moved by an offset.
    pub(crate) fn moved(&self, offset: i64) -> Result<Self, LayoutError> {
        let true_bounds =
            if self.size == 0 { self.true_bounds } else { self.true_bounds.moved(offset)? };
        Ok(Self { bounds: self.bounds.moved(offset)?, true_bounds, ..*self })
    }

    /// The facts about these elements and those of another part behind them, each at its own place.
    pub(crate) fn followed_by(&self, next: &Self) -> Result<Self, LayoutError> {
        if next.is_nothing() {
            return Ok(*self);
        }
        if self.is_nothing() {
            return Ok(*next);
        }
        let (body, marks) = (self.with_bytes_of(next)?, self.bounds.joined(&next.bounds));
        let bounds = match (self.is_bounded, next.is_bounded) {
            (true, true) => marks,
            (true, false) => self.bounds,
            (false, true) => next.bounds,
            (false, false) => body.natural_bounds()?,
        };
        Ok(Self { bounds, is_bounded: self.is_bounded || next.is_bounded, ..body })
    }

    /// The bounds of a part without given ones: the distance of its first and last byte, rounded up so that the next
    /// part's elements are aligned.
    pub(crate) fn natural_bounds(&self) -> Result<Bounds, LayoutError> {
        let Bounds { lower, upper } = self.true_bounds;
        let alignment = i64::from(self.alignment);
        let extent = upper.checked_sub(lower).ok_or(too_large("the extent"))?;
        let missing = (alignment - extent % alignment) % alignment;
        let upper = upper.checked_add(missing).ok_or(too_large("the extent"))?;
        Ok(Bounds { lower, upper })
    }

    /// The facts about the elements of both, without their bounds.
    fn with_bytes_of(&self, next: &Self) -> Result<Self, LayoutError> {
        if next.size == 0 {
            return Ok(*self);
        }
        if self.size == 0 {
            return Ok(*next);
        }
        let follows = next.true_bounds.lower == self.true_bounds.upper;
        let too_many = too_large("the number of elements");
        Ok(Self {
            size: self
                .size
                .checked_add(next.size)
                .filter(|size| i64::try_from(*size).is_ok())
                .ok_or(too_large("the size"))?,
            elements: self.elements.checked_add(next.elements).ok_or(too_many)?,
            true_bounds: self.true_bounds.joined(&next.true_bounds),
            alignment: self.alignment.max(next.alignment),
            dense: self.dense && next.dense && follows,
            uniform: self.uniform.filter(|_| self.uniform == next.uniform),
            fingerprint: self.fingerprint.followed_by(next.fingerprint, next.elements),
            ..*self
        })
    }
}

impl Tree {
    /// Creates an empty table.
    pub(crate) fn new() -> Self {
        Self { nodes: Vec::new(), entries: Vec::new() }
    }

    /// The index of the root, which is the last node.
    pub(crate) fn root(&self) -> u32 {
        // Every table is created with at least one node and at most `PARTS_LIMIT`.
        (self.nodes.len() - 1) as u32
    }

    /// The facts of a node.
    pub(crate) fn facts(&self, node: u32) -> &Facts {
        &self.nodes[node as usize].facts
    }

    /// The form of a node.
    pub(crate) fn form(&self, node: u32) -> Form {
        self.nodes[node as usize].form
    }

    /// The entries of a list.
    pub(crate) fn list(&self, first: u32, last: u32) -> &[Entry] {
        &self.entries[first as usize..last as usize]
    }

    /// Appends a node.
    pub(crate) fn push(&mut self, form: Form, facts: Facts) -> Result<u32, LayoutError> {
        let index = number(self.nodes.len())?;
        let below = match form {
            Form::Run => 0,
            Form::Repeat(repeat) => self.depth(repeat.child),
            Form::List { first, last } => {
                let entries = self.list(first, last).iter();
                entries.map(|entry| self.depth(entry.child)).max().unwrap_or(0)
            }
        };
        if below >= DEPTH_LIMIT {
            return Err(LayoutError::TooDeep { limit: DEPTH_LIMIT });
        }
        self.nodes.push(Node { form, facts, depth: below + 1 });
        Ok(index)
    }

    /// Appends a list.
    pub(crate) fn push_list(
        &mut self,
        entries: &mut Vec<Entry>,
        facts: Facts,
    ) -> Result<u32, LayoutError> {
        let first = number(self.entries.len())?;
        let last = number(self.entries.len() + entries.len())?;
        self.entries.append(entries);
        self.push(Form::List { first, last }, facts)
    }

    /// Appends a copy of another table, and returns the index of its root.
    pub(crate) fn append(&mut self, other: &Tree) -> Result<u32, LayoutError> {
        let nodes_before = number(self.nodes.len())?;
        let entries_before = number(self.entries.len())?;
        number(self.nodes.len() + other.nodes.len())?;
        number(self.entries.len() + other.entries.len())?;
        self.entries.extend(
            other.entries.iter().map(|entry| Entry { child: entry.child + nodes_before, ..*entry }),
        );
        self.nodes.extend(other.nodes.iter().map(|node| Node {
            form: match node.form {
                Form::Run => Form::Run,
                Form::Repeat(repeat) => {
                    Form::Repeat(Repeat { child: repeat.child + nodes_before, ..repeat })
                }
                Form::List { first, last } => {
                    Form::List { first: first + entries_before, last: last + entries_before }
                }
            },
            ..*node
        }));
        Ok(self.root())
    }

    /// Completes the table.
    pub(crate) fn finish(self) -> Arc<Self> {
        Arc::new(self)
    }

    fn depth(&self, node: u32) -> u16 {
        self.nodes[node as usize].depth
    }
}

/// The distance from the first to the last of `count` parts. A single one needs no stride: it is no error if that is
/// huge.
fn reach(count: u64, stride: i64) -> Result<i64, LayoutError> {
    let steps = i64::try_from(count - 1).map_err(|_| too_large("the extent"))?;
    if steps == 0 { Ok(0) } else { steps.checked_mul(stride).ok_or(too_large("the extent")) }
}

/// Converts a number of parts into an index.
pub(crate) fn number(parts: usize) -> Result<u32, LayoutError> {
    if parts >= PARTS_LIMIT {
        return Err(LayoutError::TooManyParts { parts, limit: PARTS_LIMIT });
    }
    Ok(parts as u32)
}

/// The error for a value beyond 63 bits.
pub(crate) fn too_large(what: &'static str) -> LayoutError {
    LayoutError::TooLarge { what }
}

/// The product of two sizes, if it stays below 2^63.
pub(crate) fn multiply(left: u64, right: u64, what: &'static str) -> Result<u64, LayoutError> {
    left.checked_mul(right)
        .filter(|product| i64::try_from(*product).is_ok())
        .ok_or(LayoutError::TooLarge { what })
}
