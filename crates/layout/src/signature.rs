//! The sequence of element kinds of a message, on which sender and receiver must agree.

use std::fmt;

use crate::path::Path;
use crate::{Kind, Layout};

/// The sequence of element kinds of some items, whatever the places of the elements are.
///
/// Two signatures are equal if their sequences are. The sequence is not stored: a comparison walks both layouts, and a
/// run of equal elements is one step, however long it is.
#[derive(Clone, Debug)]
pub struct TypeSignature {
    layout: Layout,
    count: u64,
}

/// Successive elements of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The kind of the elements.
    pub kind: Kind,
    /// The number of elements.
    pub count: u64,
}

/// The longest runs of a signature, in order.
#[derive(Clone, Debug)]
pub struct Runs {
    layout: Layout,
    count: u64,
    path: Path,
    is_started: bool,
    /// A run that may still grow.
    pending: Option<Run>,
    /// Whether kinds that differ only in the portable format are distinguished.
    is_exact: bool,
}

/// The number of runs that are shown of a signature.
const SHOWN_RUNS: usize = 8;

impl Layout {
    /// The sequence of element kinds of `count` items.
    pub fn signature(&self, count: u64) -> TypeSignature {
        TypeSignature::new(self.clone(), count)
    }
}

impl TypeSignature {
    pub(crate) fn new(layout: Layout, count: u64) -> Self {
        Self { layout, count }
    }

    /// The runs of the sequence. Kinds that differ only in the portable format count as equal.
    pub fn runs(&self) -> Runs {
        self.runs_that(false)
    }

    /// The runs of the sequence for a conversion to the portable format.
    pub(crate) fn exact_runs(&self) -> Runs {
        self.runs_that(true)
    }

    fn runs_that(&self, is_exact: bool) -> Runs {
        Runs {
            is_exact,
            layout: self.layout.clone(),
            count: self.count,
            path: Path::new(|facts| facts.uniform.is_some()),
            is_started: false,
            pending: None,
        }
    }

    /// A number that is equal for equal signatures, and almost always differs for others.
    pub fn fingerprint(&self) -> u64 {
        let facts = self.layout.facts();
        let fingerprint = facts.fingerprint.repeated(facts.elements, self.count);
        fingerprint.number(facts.elements.wrapping_mul(self.count))
    }

    /// The number of elements, if 64 bits hold it.
    pub fn element_count(&self) -> Option<u64> {
        self.layout.element_count().checked_mul(self.count)
    }
}

impl PartialEq for TypeSignature {
    fn eq(&self, other: &Self) -> bool {
        let same_kinds =
            |left: Run, right: Run| left.count == right.count && left.kind.is_like(right.kind);
        self.element_count() == other.element_count()
            && self.fingerprint() == other.fingerprint()
            && self.runs().zip(other.runs()).all(|(left, right)| same_kinds(left, right))
    }
}

impl Eq for TypeSignature {}

impl fmt::Display for TypeSignature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs = self.runs();
        for (index, run) in runs.by_ref().take(SHOWN_RUNS).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{} x {}", run.count, run.kind)?;
        }
        if runs.next().is_some() { formatter.write_str(", ...") } else { Ok(()) }
    }
}

impl Runs {
    /// The next run as the layout has it, which may be shorter than the longest.
    fn next_part(&mut self) -> Option<Run> {
        let facts = if !self.is_started {
            self.is_started = true;
            if self.count == 0 || self.layout.size_bytes() == 0 {
                return None;
            }
            if let Some(kind) = self.layout.uniform_kind() {
                // There is one kind only: nothing is walked, unless the number would not fit.
                if let Some(count) = self.layout.element_count().checked_mul(self.count) {
                    return Some(Run { kind, count });
                }
            }
            self.path.go_to(&self.layout, self.count, 0).facts
        } else {
            self.path.next(&self.layout)?.facts
        };
        facts.uniform.map(|kind| Run { kind, count: facts.elements })
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        while let Some(part) = self.next_part() {
            match &mut self.pending {
                Some(run)
                    if run.kind == part.kind || !self.is_exact && run.kind.is_like(part.kind) =>
                {
                    run.count = run.count.saturating_add(part.count);
                }
                pending => {
                    if let Some(run) = pending.replace(part) {
                        return Some(run);
                    }
                }
            }
        }
        self.pending.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Member};

    fn record() -> Layout {
        let integer = Layout::element(Kind::new(Family::Signed, 4).unwrap());
        let float = Layout::element(Kind::new(Family::Float, 8).unwrap());
        Layout::structure(&[
            Member { offset: 0, count: 1, layout: integer },
            Member { offset: 8, count: 2, layout: float },
        ])
        .unwrap()
    }

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        assert_eq!(record().signature(1).to_string(), "1 x signed32, 2 x float64");
        let shown = record().signature(5).to_string();
        assert!(shown.ends_with(", ..."), "{shown}");
    }

    #[test]
    fn places_do_not_matter() {
        let float = Layout::element(Kind::new(Family::Float, 8).unwrap());
        let dense = float.signature(6);
        assert_eq!(dense, Layout::vector(3, 2, 100, &float).unwrap().signature(1));
        assert_ne!(dense, float.signature(7));
        assert_ne!(record().signature(2), float.signature(6));
    }
}
