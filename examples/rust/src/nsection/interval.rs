//! An interval, cut into parts.

use std::fmt;
use std::ops::Range;

/// From one number up to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub from: f64,
    /// The upper end.
    pub to: f64,
}

impl Interval {
    /// How far it is from one end to the other.
    pub fn width(&self) -> f64 {
        self.to - self.from
    }

    /// The point between the ends: the best guess for a root, wrong by half the width at most.
    pub fn middle(&self) -> f64 {
        f64::midpoint(self.from, self.to)
    }

    /// Whether there are numbers between the ends. A computer has only so many.
    pub fn can_be_cut(&self) -> bool {
        self.from.next_up() < self.to
    }

    /// One of `parts` equal parts. A part ends exactly where the next one begins, whoever computes
    /// it, so that no root can be lost between two of them.
    pub fn part(&self, index: usize, parts: usize) -> Self {
        Self { from: self.point(index, parts), to: self.point(index + 1, parts) }
    }

    fn point(&self, index: usize, parts: usize) -> f64 {
        if index == parts {
            return self.to;
        }
        self.from + self.width() * (index as f64 / parts as f64)
    }

    /// The first of these parts in which a function changes its sign.
    pub fn first_change(
        &self,
        candidates: Range<usize>,
        parts: usize,
        mut is_negative: impl FnMut(f64) -> bool,
    ) -> Option<usize> {
        if candidates.is_empty() {
            return None;
        }
        let mut left = is_negative(self.point(candidates.start, parts));
        for index in candidates {
            let right = is_negative(self.point(index + 1, parts));
            if left != right {
                return Some(index);
            }
            left = right;
        }
        None
    }
}

/// Which of the parts are one process's: as many for each as for any other, or one more.
pub fn parts_of(rank: usize, processes: usize, parts: usize) -> Range<usize> {
    parts * rank / processes..parts * (rank + 1) / processes
}

impl fmt::Display for Interval {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}, {}]", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: Interval = Interval { from: 0.1, to: 0.7 };

    #[test]
    fn parts_meet_without_gaps() {
        for parts in 1..50 {
            assert_eq!(ODD.part(0, parts).from, ODD.from);
            assert_eq!(ODD.part(parts - 1, parts).to, ODD.to);
            for index in 1..parts {
                assert_eq!(ODD.part(index, parts).from, ODD.part(index - 1, parts).to);
            }
        }
    }

    #[test]
    fn neighbouring_numbers_cannot_be_cut() {
        assert!(ODD.can_be_cut());
        let mut narrow = Interval { from: 1.0f64.next_down(), to: 1.0f64.next_up() };
        assert!(narrow.can_be_cut());
        narrow = narrow.part(0, 2);
        assert_eq!(narrow.to, 1.0);
        assert!(!narrow.can_be_cut());
    }

    #[test]
    fn every_part_belongs_to_one_process() {
        for (processes, parts) in [(1, 2), (3, 3), (4, 10), (5, 7), (5, 3)] {
            let owned = (0..processes).flat_map(|rank| parts_of(rank, processes, parts));
            assert!(owned.eq(0..parts));
        }
    }

    #[test]
    fn the_change_is_found_in_its_part() {
        let whole = Interval { from: 0.0, to: 10.0 };
        let is_negative = |x: f64| x < 4.5;
        assert_eq!(whole.first_change(0..10, 10, is_negative), Some(4));
        assert_eq!(whole.first_change(4..5, 10, is_negative), Some(4));
        assert_eq!(whole.first_change(5..10, 10, is_negative), None);
        assert_eq!(whole.first_change(3..3, 10, is_negative), None);
        assert_eq!(whole.part(4, 10), Interval { from: 4.0, to: 5.0 });
    }
}
