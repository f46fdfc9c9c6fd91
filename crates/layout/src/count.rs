//! Converts between numbers of elements and numbers of packed bytes.

use crate::Layout;
use crate::tree::{Facts, Form, Tree};

impl Layout {
    /// The number of elements in the first `bytes` packed bytes of any number of items. `None` if the last of these
    /// bytes is inside an element, or if there are no elements.
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        if bytes == 0 {
            return Some(0);
        }
        let whole = bytes.checked_div(self.size_bytes())?;
        let rest = bytes % self.size_bytes();
        let below = match self.tree() {
            Some(tree) => elements_below(tree, tree.root(), rest)?,
            None => elements_of_run(self.facts(), rest)?,
        };
        whole.checked_mul(self.element_count())?.checked_add(below)
    }

    /// The number of packed bytes of the first `elements` elements of any number of items. `None` if there are no
    /// elements, or if the number does not fit.
    pub fn bytes_of_elements(&self, elements: u64) -> Option<u64> {
        if elements == 0 {
            return Some(0);
        }
        let whole = elements.checked_div(self.element_count())?;
        let rest = elements % self.element_count();
        let below = match self.tree() {
            Some(tree) => bytes_below(tree, tree.root(), rest),
            None => bytes_of_run(self.facts(), rest),
        };
        whole.checked_mul(self.size_bytes())?.checked_add(below)
    }
}

/// The number of elements in the first bytes of a part that has more bytes than these.
fn elements_below(tree: &Tree, mut node: u32, mut bytes: u64) -> Option<u64> {
    let mut elements = 0;
    loop {
        let facts = tree.facts(node);
        if facts.uniform.is_some() {
            return Some(elements + elements_of_run(facts, bytes)?);
        }
        match tree.form(node) {
            Form::Run => return Some(elements + elements_of_run(facts, bytes)?),
            Form::Repeat(repeat) => {
                let child = tree.facts(repeat.child);
                elements += bytes / child.size * child.elements;
                (node, bytes) = (repeat.child, bytes % child.size);
            }
            Form::List { first, last } => {
                let entries = tree.list(first, last);
                let index = entries.partition_point(|entry| entry.packed_start <= bytes) - 1;
                let before = entries[..index].iter();
                elements += before.map(|entry| tree.facts(entry.child).elements).sum::<u64>();
                (node, bytes) = (entries[index].child, bytes - entries[index].packed_start);
            }
        }
    }
}

/// The number of bytes of the first elements of a part that has more elements than these.
fn bytes_below(tree: &Tree, mut node: u32, mut elements: u64) -> u64 {
    let mut bytes = 0;
    loop {
        let facts = tree.facts(node);
        if facts.uniform.is_some() {
            return bytes + bytes_of_run(facts, elements);
        }
        match tree.form(node) {
            Form::Run => return bytes + bytes_of_run(facts, elements),
            Form::Repeat(repeat) => {
                let child = tree.facts(repeat.child);
                bytes += elements / child.elements * child.size;
                (node, elements) = (repeat.child, elements % child.elements);
            }
            Form::List { first, last } => {
                for entry in tree.list(first, last) {
                    let child = tree.facts(entry.child);
                    node = entry.child;
                    if elements < child.elements {
                        break;
                    }
                    elements -= child.elements;
                    bytes += child.size;
                }
            }
        }
    }
}

fn elements_of_run(run: &Facts, bytes: u64) -> Option<u64> {
    let Some(kind) = run.uniform else { return (bytes == 0).then_some(0) };
    bytes.is_multiple_of(kind.size_bytes()).then(|| bytes / kind.size_bytes())
}

fn bytes_of_run(run: &Facts, elements: u64) -> u64 {
    run.uniform.map_or(0, |kind| elements * kind.size_bytes())
}

#[cfg(test)]
mod tests {
    use crate::{Family, Kind, Layout, Member};

    #[test]
    fn parts_of_a_record_are_counted() {
        let element = |family, bytes| Layout::element(Kind::new(family, bytes).unwrap());
        let record = Layout::structure(&[
            Member { offset: 0, count: 3, layout: element(Family::Signed, 4) },
            Member { offset: 16, count: 1, layout: element(Family::Float, 8) },
        ])
        .unwrap();
        let counts = [(0, 0), (4, 1), (12, 3), (20, 4), (24, 5), (32, 7), (40, 8), (52, 11)];
        for (bytes, elements) in counts {
            assert_eq!(record.elements_in(bytes), Some(elements), "{bytes}");
            assert_eq!(record.bytes_of_elements(elements), Some(bytes), "{elements}");
        }
        assert_eq!(record.elements_in(6), None);
        assert_eq!(record.elements_in(16), None);
        let nothing = Layout::structure(&[]).unwrap();
        assert_eq!((nothing.elements_in(0), nothing.elements_in(4)), (Some(0), None));
        assert_eq!(nothing.bytes_of_elements(1), None);
        assert_eq!(Layout::element(Kind::BYTE).bytes_of_elements(7), Some(7));
        assert_eq!(record.bytes_of_elements(u64::MAX), None);
    }
}
