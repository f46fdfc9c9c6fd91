//! The voters that count, and what a majority of them has reached.
//!
//! A change of voters is two entries of the log. Between them the voters before and after it count both: nothing is decided
//! without a majority of each (*joint consensus*). So the number of voters is never even, and a voter is replaced in one change.

use std::collections::BTreeSet;

use landeck_wire::HostIncarnation;
use serde::{Deserialize, Serialize};

/// The most voters that a machine may have.
const VOTERS_MAX: usize = 5;

/// The voters of a machine. An incarnation votes, not a host: after a host has booted anew, its next one learns first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voters {
    current: BTreeSet<HostIncarnation>,
    /// The voters after the change that has begun. Empty if there is none.
    next: BTreeSet<HostIncarnation>,
}

/// The error for a number of voters that a machine cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VotersError {
    /// An even number, or none.
    #[error("{0} voters: {0} survive no more than {less}. Name 1, 3 or 5 voters.", less = .0.saturating_sub(1))]
    Even(usize),
    /// More than five.
    #[error("{0} voters: a machine has 5 at most. Name 1, 3 or 5 voters.")]
    TooMany(usize),
}

impl Voters {
    /// The voters of a machine.
    ///
    /// # Errors
    /// [`VotersError`] if they are not 1, 3 or 5.
    pub fn new(voters: impl IntoIterator<Item = HostIncarnation>) -> Result<Self, VotersError> {
        let current: BTreeSet<_> = voters.into_iter().collect();
        match current.len() {
            count if count.is_multiple_of(2) => Err(VotersError::Even(count)),
            count if count > VOTERS_MAX => Err(VotersError::TooMany(count)),
            _ => Ok(Self { current, next: BTreeSet::new() }),
        }
    }

    /// These voters and the next ones, while one takes the place of the other.
    #[must_use]
    pub(super) fn changing_to(&self, next: &Self) -> Self {
        Self { current: self.current.clone(), next: next.current.clone() }
    }

    /// The voters after the change that has begun. `None` without one.
    #[must_use]
    pub(super) fn settled(&self) -> Option<Self> {
        self.is_changing().then(|| Self { current: self.next.clone(), next: BTreeSet::new() })
    }

    /// Whether a change has begun and not ended.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        !self.next.is_empty()
    }

    /// Whether another host can have sent this: 1, 3 or 5 voters, before and after a change.
    pub(super) fn is_sound(&self) -> bool {
        let is_odd = |voters: &BTreeSet<_>| voters.len() % 2 == 1 && voters.len() <= VOTERS_MAX;
        is_odd(&self.current) && (self.next.is_empty() || is_odd(&self.next))
    }

    /// Whether an incarnation votes, before or after the change.
    #[must_use]
    pub fn contains(&self, incarnation: HostIncarnation) -> bool {
        self.current.contains(&incarnation) || self.next.contains(&incarnation)
    }

    /// Whether no incarnation but this one votes.
    pub(super) fn is_alone(&self, incarnation: HostIncarnation) -> bool {
        self.contains(incarnation) && self.iter().count() == 1
    }

    /// All voters in the order of their incarnations.
    pub fn iter(&self) -> impl Iterator<Item = HostIncarnation> {
        self.current.union(&self.next).copied()
    }

    /// The greatest value that a majority has reached: of the voters, and during a change of the next ones too. `None` if
    /// there are no voters.
    pub fn majority<T: Ord>(&self, of: impl Fn(HostIncarnation) -> T) -> Option<T> {
        let reached = |voters: &BTreeSet<HostIncarnation>| {
            let mut values: Vec<T> = voters.iter().map(|voter| of(*voter)).collect();
            values.sort();
            // Of five, the third from above: three have this or more.
            (!values.is_empty()).then(|| values.swap_remove((voters.len() - 1) / 2))
        };
        let current = reached(&self.current);
        match reached(&self.next) {
            Some(next) => current.map(|current| current.min(next)),
            None => current,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voters(numbers: &[u64]) -> Voters {
        Voters::new(numbers.iter().map(|it| HostIncarnation(*it))).expect("an odd number")
    }

    #[test]
    fn even_number_refused() {
        let refused = |count: u64| Voters::new((0..count).map(HostIncarnation)).unwrap_err();
        assert_eq!(
            refused(4).to_string(),
            "4 voters: 4 survive no more than 3. Name 1, 3 or 5 voters."
        );
        assert_eq!([refused(0), refused(2)], [VotersError::Even(0), VotersError::Even(2)]);
        assert_eq!(refused(7), VotersError::TooMany(7));
        assert!(
            [1, 3, 5].into_iter().all(|count| Voters::new((0..count).map(HostIncarnation)).is_ok())
        );
    }

    #[test]
    fn a_majority_has_reached_the_middle_value() {
        assert_eq!(voters(&[4]).majority(|it| it.0), Some(4));
        assert_eq!(voters(&[1, 5, 9]).majority(|it| it.0), Some(5));
        assert_eq!(voters(&[1, 2, 3, 4, 5]).majority(|it| it.0), Some(3));
        assert_eq!(Voters::default().majority(|it| it.0), None);
    }

    #[test]
    fn a_change_needs_a_majority_before_and_after_it() {
        let change = voters(&[1, 2, 3]).changing_to(&voters(&[1, 2, 4]));
        let agrees = |with: &[u64]| change.majority(|it| with.contains(&it.0)) == Some(true);
        assert!(agrees(&[1, 2]) && agrees(&[1, 3, 4]));
        assert!(!agrees(&[2, 3]) && !agrees(&[1, 4]), "the two would know nothing of each other");
        assert_eq!(change.settled(), Some(voters(&[1, 2, 4])));
        assert_eq!(voters(&[1]).settled(), None);
    }
}
