//! Times as a text table.

use landeck_host::report::thousands;

use super::study::{Along, Study};

/// Formats a study: series from left to right, places from top to bottom, times in microseconds, and their means.
pub(crate) fn text(study: &Study) -> String {
    let rows = rows(study);
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = format!("{}\n", study.title);
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
        text.push_str(&format!("  {}\n", cells.join("  ")));
    }
    text
}

/// The table as rows of cells, the first with the names.
pub(crate) fn rows(study: &Study) -> Vec<Vec<String>> {
    let first = match study.along {
        Along::Sizes(_) => "bytes",
        Along::Processes(_) => "processes",
    };
    let names = study.series.iter().map(|series| series.name.clone());
    let mut rows = vec![std::iter::once(first.to_owned()).chain(names).collect::<Vec<_>>()];
    for (number, &place) in study.places.iter().enumerate() {
        let times = study.times_us.iter().map(|times| cell(times[number]));
        rows.push(std::iter::once(thousands(place)).chain(times).collect());
    }
    if study.places.len() > 1 {
        let means = (0..study.series.len()).map(|series| cell(study.mean_us(series)));
        rows.push(std::iter::once("mean".to_owned()).chain(means).collect());
    }
    rows
}

fn cell(time_us: Option<f64>) -> String {
    time_us.map_or_else(|| "-".into(), short)
}

/// Formats three significant digits, with thousands separators.
pub(crate) fn short(value: f64) -> String {
    if value >= 100.0 || value == 0.0 {
        return thousands(value.round() as u64);
    }
    let decimals = (2 - value.log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 1_234_567.0, 99.96, 1.234, 0.0456].map(short),
            ["0", "1,234,567", "100.0", "1.23", "0.0456"]
        );
        assert_eq!([0, 999, 40_000].map(thousands), ["0", "999", "40,000"]);
    }
}
