//! The middle of values that were measured, their ends and their mean.

/// The median of some values, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    /// The value in the middle, or halfway between the two in the middle.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Middle {
    /// Returns the spread of some values; of none there is none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, min, max })
    }

    /// Returns the spread of a single value.
    pub const fn one(value: f64) -> Self {
        Self { median: value, min: value, max: value }
    }
}

/// Returns the median of some values; of none there is none.
pub fn median(values: &[f64]) -> Option<f64> {
    Middle::of(values.iter().copied()).map(|spread| spread.median)
}

/// Returns the arithmetic mean of some values; of none there is none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the least of some times; of none it is endless.
pub fn least(times: impl IntoIterator<Item = f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_odd_and_even_numbers_of_values() {
        assert_eq!(Middle::of([3.0, 1.0, 2.0]), Some(Middle { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(Middle::of([]), None);
        assert_eq!(mean(&[1.0, 3.0]), Some(2.0));
        assert_eq!(least([7.9, 3.2, 5.0]), 3.2);
    }
}
