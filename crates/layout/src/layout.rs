//! A layout: the value that describes typed data, and the constructors that make it.

use std::sync::Arc;

use crate::fingerprint::Fingerprint;
use crate::tree::{Facts, Form, Repeat, Tree, too_large};
use crate::{Bounds, Kind, LayoutError};

/// The bytes that belong to one item, counted from a base address, and their packing order.
///
/// It is cheap to clone. A run of equal elements is a plain value; everything else shares one table.
#[derive(Clone, Debug)]
pub struct Layout {
    facts: Facts,
    /// The table; `None` if the layout is the run of elements that the facts describe.
    tree: Option<Arc<Tree>>,
}

impl Layout {
    /// Creates the layout of one element.
    pub fn element(kind: Kind) -> Self {
        let upper = i64::from(kind.size_bytes() as u8);
        let bounds = Bounds { lower: 0, upper };
        let facts = Facts {
            size: kind.size_bytes(),
            elements: 1,
            bounds,
            true_bounds: bounds,
            alignment: kind.alignment_bytes() as u8,
            uniform: Some(kind),
            fingerprint: Fingerprint::of(kind),
            ..Facts::EMPTY
        };
        Self { facts, tree: None }
    }

    /// Creates the layout of `count` elements of one kind, one behind the other. This is the fast path.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits.
    pub fn elements(kind: Kind, count: u64) -> Result<Self, LayoutError> {
        Ok(Self { facts: Facts::run(kind, count)?, tree: None })
    }

    /// Creates the layout of `count` items, each one extent behind the one before.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits.
    pub fn contiguous(count: u64, item: &Self) -> Result<Self, LayoutError> {
        item.repeated(count, item.extent_bytes()?)
    }

    /// Creates the layout of `count` blocks of `block` items, each block `stride_bytes` behind the one before.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits.
    pub fn vector(
        count: u64,
        block: u64,
        stride_bytes: i64,
        item: &Self,
    ) -> Result<Self, LayoutError> {
        Self::contiguous(block, item)?.repeated(count, stride_bytes)
    }

    /// Gives the layout other bounds: the next item starts at `bounds.upper`. If a layout with given bounds is part of
    /// another, those bounds alone determine where the other begins and ends.
    pub fn resized(&self, bounds: Bounds) -> Self {
        let mut resized = self.clone();
        resized.facts.bounds = bounds;
        resized.facts.is_bounded = true;
        resized
    }

    /// The number of parts in its table; a layout that contains it has them as well.
    pub fn table_parts(&self) -> usize {
        self.tree.as_ref().map_or(0, |tree| tree.nodes.len() + tree.entries.len())
    }

    /// The number of packed bytes of one item.
    pub fn size_bytes(&self) -> u64 {
        self.facts.size
    }

    /// The number of elements of one item.
    pub fn element_count(&self) -> u64 {
        self.facts.elements
    }

    /// The kind of every element, if all are equal.
    pub fn uniform_kind(&self) -> Option<Kind> {
        self.facts.uniform
    }

    /// The bounds of one item, which determine the place of the next.
    pub fn bounds(&self) -> Bounds {
        self.facts.bounds
    }

    /// The places of the first and the last byte of one item.
    pub fn true_bounds(&self) -> Bounds {
        self.facts.true_bounds
    }

    /// The distance from one item to the next: the upper minus the lower bound. It may be negative.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] if the bounds are more than 63 bits apart.
    pub fn extent_bytes(&self) -> Result<i64, LayoutError> {
        self.facts.bounds.extent().ok_or(too_large("the extent"))
    }

    /// Whether any number of items is one run of bytes that starts at the base address.
    pub fn is_contiguous(&self) -> bool {
        self.facts.dense
            && self.facts.true_bounds.lower == 0
            && self.facts.bounds.extent() == i64::try_from(self.facts.size).ok()
    }

    /// The number of packed bytes of `count` items.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits.
    pub fn packed_bytes(&self, count: u64) -> Result<u64, LayoutError> {
        crate::tree::multiply(self.facts.size, count, "the size")
    }

    /// The bounds of the bytes of `count` items, from the first to the last.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits.
    pub fn span(&self, count: u64) -> Result<Bounds, LayoutError> {
        self.facts.span(count, self.extent_bytes()?)
    }

    /// Creates a layout from facts and, unless it is a run of elements, a table.
    pub(crate) fn from_parts(facts: Facts, tree: Option<Arc<Tree>>) -> Self {
        Self { facts, tree }
    }

    /// The table, if this is more than a run of elements.
    pub(crate) fn tree(&self) -> Option<&Arc<Tree>> {
        self.tree.as_ref()
    }

    /// The facts about one item.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Repeats this item `count` times, each `stride` bytes behind the one before.
    pub(crate) fn repeated(&self, count: u64, stride: i64) -> Result<Self, LayoutError> {
        let facts = self.facts.repeated(count, stride)?;
        if facts.size == 0 || count == 1 {
            let tree = if facts.size == 0 { None } else { self.tree.clone() };
            return Ok(Self { facts, tree });
        }
        // A dense run of equal elements that starts at its base stays a plain value.
        if self.tree.is_none() && facts.dense {
            return Ok(Self { facts, tree: None });
        }
        let mut tree = Tree::new();
        let child = self.copy_into(&mut tree)?;
        let repeat = match tree.form(child) {
            // A repetition at equal distances throughout is one repetition.
            Form::Repeat(inner) if is_one_repetition(&inner, count, stride) => {
                tree.nodes.pop();
                let stride = if inner.count == 1 { stride } else { inner.stride };
                Repeat { count: inner.count * count, stride, ..inner }
            }
            _ => Repeat { offset: 0, count, stride, child },
        };
        tree.push(Form::Repeat(repeat), facts)?;
        Ok(Self { facts, tree: Some(tree.finish()) })
    }

    /// Copies this layout's parts behind those of a table and returns the index of its root.
    pub(crate) fn copy_into(&self, tree: &mut Tree) -> Result<u32, LayoutError> {
        match &self.tree {
            Some(parts) => tree.append(parts),
            None => tree.push(Form::Run, self.facts),
        }
    }
}

/// Whether a repetition, repeated at this distance, is one longer repetition.
fn is_one_repetition(inner: &Repeat, count: u64, stride: i64) -> bool {
    let length = i64::try_from(inner.count).ok().and_then(|it| it.checked_mul(inner.stride));
    (inner.count == 1 || length == Some(stride)) && inner.count.checked_mul(count).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, LayoutBlock, Piece};

    fn integer() -> Layout {
        Layout::element(Kind::new(Family::Signed, 4).unwrap())
    }

    #[test]
    fn a_run_of_elements_is_contiguous() {
        let run = Layout::elements(Kind::BYTE, 1 << 40).unwrap();
        assert!(run.is_contiguous());
        assert_eq!(run.size_bytes(), 1 << 40);
        assert_eq!(run.extent_bytes(), Ok(1 << 40));
        assert_eq!(run.single_piece(2), Some(Piece { offset: 0, length: 2 << 40 }));
    }

    #[test]
    fn a_vector_has_gaps() {
        let vector = Layout::vector(3, 2, 16, &integer()).unwrap();
        assert_eq!(vector.size_bytes(), 24);
        assert_eq!(vector.bounds(), Bounds { lower: 0, upper: 40 });
        assert!(!vector.is_contiguous());
        assert!(Layout::vector(3, 4, 16, &integer()).unwrap().is_contiguous());
    }

    #[test]
    fn a_negative_stride_begins_before_the_base() {
        let vector = Layout::vector(3, 1, -8, &integer()).unwrap();
        assert_eq!(vector.bounds(), Bounds { lower: -16, upper: 4 });
        assert_eq!(vector.span(1), Ok(Bounds { lower: -16, upper: 4 }));
    }

    #[test]
    fn neighbouring_blocks_become_one() {
        let blocks = [LayoutBlock { offset: 8, count: 1 }, LayoutBlock { offset: 12, count: 2 }];
        let indexed = Layout::indexed(&blocks, &integer()).unwrap();
        assert_eq!(indexed.single_piece(1), Some(Piece { offset: 8, length: 12 }));
        assert!(!indexed.is_contiguous());
    }

    #[test]
    fn a_layout_that_is_too_large_is_named() {
        let huge = Layout::elements(Kind::BYTE, 1 << 62).unwrap();
        let error = Layout::contiguous(2, &huge).unwrap_err();
        assert_eq!(error, LayoutError::TooLarge { what: "the size" });
        assert!(error.to_string().contains("63 bits"), "{error}");
        assert!(Layout::vector(3, 1, i64::MAX, &integer()).is_err());
        assert!(
            Layout::indexed(&[LayoutBlock { offset: i64::MAX, count: 1 }], &integer()).is_err()
        );
        assert!(huge.cursor(2).is_err());
    }

    #[test]
    fn a_resized_item_keeps_its_bytes() {
        let resized = integer().resized(Bounds { lower: -4, upper: 12 });
        assert_eq!(resized.extent_bytes(), Ok(16));
        let two = Layout::contiguous(2, &resized).unwrap();
        assert_eq!(two.size_bytes(), 8);
        assert_eq!(two.true_bounds(), Bounds { lower: 0, upper: 20 });
        assert_eq!(two.bounds(), Bounds { lower: -4, upper: 28 });
    }
}
