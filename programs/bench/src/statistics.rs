//! Numbers in words, and the medians and spreads of values that were measured in rounds.

pub(crate) use landeck_measure::{Middle, mean, median};

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
    fn numbers_for_people() {
        assert_eq!(short(0.0551), "0.055");
        assert_eq!(short(98.26), "98.3");
        assert_eq!(short(2.0), "2");
        assert_eq!(short(1234567.8), "1,234,568");
        assert_eq!(short(-1234.0), "-1,234");
    }
}
