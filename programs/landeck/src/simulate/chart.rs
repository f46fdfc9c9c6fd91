//! A chart of lines as SVG, in the look of STYLE.md: each line is named where it ends.

use crate::picture::{HEIGHT, Picture, WIDTH};

use super::study::{Along, Series, Study};
use super::table::short;
use landeck_host::report::thousands;

const LEFT: f64 = 110.0;
const RIGHT: f64 = 260.0;
const TOP: f64 = 150.0;
const BOTTOM: f64 = 90.0;
/// The least distance between the names of two lines.
const GAP: f64 = 26.0;
/// The distance from the end of a line to its name.
const LEAD: f64 = 24.0;

/// The colours of architectures.
const COLOURS: [(&str, &str); 12] = [
    ("flat", "#787878"),
    ("pipeline", "#C85A00"),
    ("daisy", "#0054A6"),
    ("hierarchy", "#961E3C"),
    ("hypercube", "#008250"),
    ("binary-tree", "#C85A96"),
    ("knomial", "#4696DC"),
    ("butterfly", "#6E3CB4"),
    ("ring", "#8C6400"),
    ("circulant", "#00969B"),
    ("board", "#1E1E1E"),
    ("measured", "#DC281E"),
];

/// The colour of the architecture of this name.
pub(crate) fn colour(name: &str) -> &'static str {
    let name = name.split([':', '+', ',']).next().unwrap_or_default();
    COLOURS.iter().find(|(other, _)| *other == name).map_or("#505050", |(_, colour)| colour)
}

/// The colour of a series: lighter if there are others of its architecture before it.
fn shade(study: &Study, number: usize) -> String {
    const LIGHTEST: f64 = 0.5;
    let base = colour(&study.series[number].name);
    let is_alike = |series: &&Series| colour(&series.name) == base;
    let alike = study.series.iter().filter(is_alike).count();
    let before = study.series[..number].iter().filter(is_alike).count();
    let share = LIGHTEST * before as f64 / alike.max(2) as f64;
    let part = |at: usize| {
        let value = u8::from_str_radix(base.get(at..at + 2).unwrap_or("50"), 16).unwrap_or(80);
        f64::from(value) + share * (255.0 - f64::from(value))
    };
    format!("#{:02X}{:02X}{:02X}", part(1) as u8, part(3) as u8, part(5) as u8)
}

/// Draws a study.
pub(crate) fn svg(study: &Study, note: &str) -> String {
    let mut picture = Picture::new(&study.title, note);
    let times = study.times_us.iter().flatten().flatten().copied();
    let horizontal =
        Scale::around(study.places.iter().map(|&place| place as f64), LEFT, WIDTH - RIGHT, 1.1);
    let vertical = Scale::around(times, HEIGHT - BOTTOM, TOP, 1.25);
    axes(&mut picture, study, &horizontal, &vertical);
    let mut ends = Vec::new();
    for ((number, series), times) in (0..).zip(&study.series).zip(&study.times_us) {
        let colour = shade(study, number);
        let corners: Vec<(f64, f64)> = study
            .places
            .iter()
            .zip(times)
            .filter_map(|(&place, time)| Some((horizontal.at(place as f64), vertical.at((*time)?))))
            .collect();
        picture.line(&corners, &colour);
        ends.extend(corners.last().map(|&end| (end, (end, series.name.as_str(), colour))));
    }
    for ((x, y), (end, name, colour)) in apart(ends) {
        picture.lead(end, (x + LEAD, y), &colour);
        picture.words(name, (x + LEAD + 4.0, y), "start", 20, &colour);
    }
    picture.finish()
}

/// Draws the axes with their names, and lines of equal times.
fn axes(picture: &mut Picture, study: &Study, horizontal: &Scale, vertical: &Scale) {
    for value in vertical.ticks() {
        let y = vertical.at(value);
        picture.rectangle((LEFT, y), WIDTH - RIGHT - LEFT, 1.0, "#DEDEDE");
        picture.words(&tick(value), (LEFT - 12.0, y), "end", 20, "#1E1E1E");
    }
    let mut free_from = f64::MIN;
    for &place in &study.places {
        let (x, label) = (horizontal.at(place as f64), thousands(place));
        let half = label.len() as f64 * 5.5;
        if x - half > free_from {
            picture.words(&label, (x, HEIGHT - BOTTOM + 24.0), "middle", 20, "#1E1E1E");
            free_from = x + half + 10.0;
        }
    }
    picture.words("microseconds, lower is better", (24.0, TOP - 22.0), "start", 20, "#1E1E1E");
    let name = match study.along {
        Along::Sizes(_) => "bytes",
        Along::Processes(_) => "processes",
    };
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    picture.words(name, (middle, HEIGHT - 28.0), "middle", 20, "#1E1E1E");
}

/// Formats a number on an axis.
fn tick(value: f64) -> String {
    let label = short(value);
    if !label.contains('.') {
        return label;
    }
    label.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Moves overlapping names apart, as little as possible, and keeps their order.
fn apart<T>(mut ends: Vec<((f64, f64), T)>) -> Vec<((f64, f64), T)> {
    ends.sort_by(|(one, _), (other, _)| one.1.total_cmp(&other.1));
    let (top, bottom) = (TOP - 30.0, HEIGHT - BOTTOM + 30.0);
    let room = GAP.min((bottom - top) / ends.len().max(1) as f64);
    // Names that touch each other form a row around their middle: where it begins, and how many it has.
    let mut rows: Vec<(f64, f64)> = Vec::new();
    for ((_, y), _) in &ends {
        let mut row = (*y, 1.0);
        loop {
            row.0 = row.0.min(bottom - (row.1 - 1.0) * room).max(top);
            match rows.pop() {
                Some((begin, count)) if begin + count * room > row.0 => {
                    let all = count + row.1;
                    row = ((begin * count + (row.0 - count * room) * row.1) / all, all);
                }
                above => {
                    rows.extend(above);
                    break;
                }
            }
        }
        rows.push(row);
    }
    let places = rows.iter().flat_map(|&(begin, count)| {
        (0..count as usize).map(move |number| begin + number as f64 * room)
    });
    for (end, place) in ends.iter_mut().zip(places) {
        end.0.1 = place;
    }
    ends
}

/// A logarithmic scale from values to places.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale that holds all values, with some room beyond them. A smaller value stands at its end.
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64, room: f64) -> Self {
        let (mut low, mut high) = (f64::MAX, 0.0f64);
        for value in values.filter(|&value| value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 1.0);
        }
        Self { low: low / room, high: high * room, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    /// Round values: 1, 2, 5 of each power of ten, or powers of ten if there are many.
    fn ticks(&self) -> Vec<f64> {
        let steps: &[f64] = match (self.high / self.low).log10() {
            ..0.8 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            ..3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let values =
            powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        values.filter(|value| (self.low..=self.high).contains(value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_cover_each_other() {
        let moved = apart(vec![((9.0, 660.0), "b"), ((9.0, 200.0), "a"), ((9.0, 665.0), "c")]);
        assert!(moved.windows(2).all(|pair| pair[1].0.1 - pair[0].0.1 >= GAP - 0.1));
        assert_eq!(moved.iter().map(|(_, name)| *name).collect::<String>(), "abc");
        assert_eq!(
            (moved[0].0.1, moved[1].0.1 + moved[2].0.1),
            (200.0, 660.0 + 665.0),
            "around their middle"
        );
        let low = apart((0..6).map(|number| ((9.0, 690.0 + f64::from(number)), number)).collect());
        assert_eq!((low[0].0.1, low[5].0.1), (700.0 - 5.0 * GAP, 700.0), "within the picture");
    }

    #[test]
    fn a_scale_reaches_from_end_to_end() {
        let scale = Scale::around([10.0, 1000.0].into_iter(), 0.0, 100.0, 1.0);
        assert_eq!((scale.at(10.0), scale.at(1000.0)), (0.0, 100.0));
        assert!((scale.at(100.0) - 50.0).abs() < 1e-9);
        assert_eq!(scale.ticks().len(), 7);
    }
}
