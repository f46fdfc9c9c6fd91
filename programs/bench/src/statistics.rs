//! Medians, spreads and ratios of values that were measured in rounds.

use serde::Serialize;

/// The middle of some values, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of no values there is no spread.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Spread { median, min, max })
    }
}

/// The median; of no values there is none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values.iter().copied()).map(|spread| spread.median)
}

/// The arithmetic mean; of no values there is none.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A number with three significant digits, or a whole one, without an exponent.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || (size == size.trunc() && size < 100.0) => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    group_thousands(&format!("{value:.digits$}"))
}

fn group_thousands(number: &str) -> String {
    let (whole, rest) =
        number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, figures) = whole.strip_prefix('-').map_or(("", whole), |figures| ("-", figures));
    let mut grouped = String::from(sign);
    for (place, figure) in figures.chars().enumerate() {
        if place > 0 && (figures.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(figure);
    }
    if let Some(rest) = rest {
        grouped.push('.');
        grouped.push_str(rest);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_odd_and_even_numbers_of_values() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(Spread::of([]), None);
        assert_eq!(mean(&[1.0, 3.0]), Some(2.0));
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(short(0.0551), "0.055");
        assert_eq!(short(98.26), "98.3");
        assert_eq!(short(2.0), "2");
        assert_eq!(short(1234567.8), "1,234,568");
        assert_eq!(short(-1234.0), "-1,234");
    }
}
