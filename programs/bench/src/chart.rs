//! Lines along an axis, and what every picture here is drawn with: white background, large letters,
//! every line named where it ends, logarithmic axes where values differ by factors.

use std::error::Error;
use std::path::Path;
use std::sync::Once;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::machine::Machine;
use crate::statistics::{Middle, short};

/// Where something is drawn.
pub(crate) type Area<'a> = DrawingArea<BitMapBackend<'a>, plotters::coord::Shift>;

/// A picture of lines.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// Below the title.
    pub(crate) note: String,
    pub(crate) unit: String,
    pub(crate) axis: ChartAxis,
    pub(crate) lines: Vec<Line>,
}

/// The horizontal axis of a picture.
pub(crate) struct ChartAxis {
    pub(crate) name: &'static str,
    pub(crate) is_logarithmic: bool,
    /// How a place on it is written.
    pub(crate) label: fn(f64) -> String,
}

/// Values along the axis.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: RGBColor,
    /// Ours.
    pub(crate) is_thick: bool,
    pub(crate) values: Vec<(f64, Middle)>,
}

pub(crate) const WIDTH: i32 = 1200;
pub(crate) const HEIGHT: i32 = 760;
const LEFT: i32 = 110;
const RIGHT: i32 = 260;
pub(crate) const TOP: i32 = 120;
const BOTTOM: i32 = 90;
const LETTER: i32 = 22;
/// Between the names of two lines.
const GAP: i32 = 28;
pub(crate) const INK: RGBColor = RGBColor(30, 30, 30);
pub(crate) const FAINT: RGBColor = RGBColor(222, 222, 222);

impl Chart {
    pub(crate) fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let area = white_page(path, HEIGHT)?;
        let all = || self.lines.iter().flat_map(|line| &line.values);
        let places = || all().map(|(place, _)| *place);
        let (from, to) = (LEFT, WIDTH - RIGHT);
        let horizontal = if self.axis.is_logarithmic {
            Scale::logarithmic(places(), from, to, 1.15)
        } else {
            Scale::linear(places(), from, to)
        };
        let spreads = all().flat_map(|(_, spread)| [spread.min, spread.max]);
        let vertical = Scale::logarithmic(spreads, HEIGHT - BOTTOM, TOP, 1.3);

        heading(&area, &self.title, &self.note)?;
        self.draw_axes(&area, &horizontal, &vertical)?;
        let mut ends = Vec::new();
        for line in &self.lines {
            let corners = line.draw(&area, &horizontal, &vertical)?;
            ends.extend(corners.last().map(|end| (*end, line)));
        }
        for (end, line) in apart(below_the_longer(ends)) {
            text(&area, &line.name, (end.0 + 14, end.1), HPos::Left, line.colour)?;
        }
        area.present()?;
        Ok(())
    }

    fn draw_axes(
        &self,
        area: &Area<'_>,
        horizontal: &Scale,
        vertical: &Scale,
    ) -> Result<(), Box<dyn Error>> {
        let unit = Unit::of(&self.unit, vertical.high);
        for value in vertical.ticks() {
            let y = vertical.at(value);
            area.draw(&PathElement::new(vec![(LEFT, y), (WIDTH - RIGHT, y)], FAINT))?;
            text(area, &tick_label(value * unit.factor), (LEFT - 12, y), HPos::Right, INK)?;
        }
        for value in self.places_with_room(horizontal) {
            let at = (horizontal.at(value), HEIGHT - BOTTOM + 24);
            text(area, &(self.axis.label)(value), at, HPos::Center, INK)?;
        }
        text(area, &unit.axis_name(), (24, TOP - 24), HPos::Left, INK)?;
        let middle = i32::midpoint(LEFT, WIDTH - RIGHT);
        text(area, self.axis.name, (middle, HEIGHT - 28), HPos::Center, INK)
    }

    /// The places that are written below the axis: all, or every second, or every third, as their
    /// words have room.
    fn places_with_room(&self, horizontal: &Scale) -> Vec<f64> {
        const LETTER_WIDTH: i32 = 11;
        let all = self.lines.iter().flat_map(|line| &line.values);
        let mut places: Vec<f64> = all.map(|(place, _)| *place).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let half = |place| (self.axis.label)(place).chars().count() as i32 * LETTER_WIDTH / 2;
        let fits = |step: &usize| {
            let some: Vec<f64> = places.iter().copied().step_by(*step).collect();
            some.windows(2).all(|pair| {
                let room = horizontal.at(pair[1]) - horizontal.at(pair[0]);
                room > half(pair[0]) + half(pair[1]) + LETTER_WIDTH
            })
        };
        let step = (1..=places.len().max(1)).find(fits).unwrap_or(1);
        places.into_iter().step_by(step).collect()
    }
}

impl Line {
    /// The places that have values.
    pub(crate) fn along<P>(
        name: impl Into<String>,
        (colour, is_thick): (RGBColor, bool),
        places: impl IntoIterator<Item = P>,
        value: impl Fn(P) -> Option<(f64, Middle)>,
    ) -> Self {
        let values = places.into_iter().filter_map(value).collect();
        Self { name: name.into(), colour, is_thick, values }
    }

    /// Returns its corners.
    fn draw(
        &self,
        area: &Area<'_>,
        horizontal: &Scale,
        vertical: &Scale,
    ) -> Result<Vec<(i32, i32)>, Box<dyn Error>> {
        let at =
            |(place, spread): &(f64, Middle)| (horizontal.at(*place), vertical.at(spread.median));
        let corners: Vec<(i32, i32)> = self.values.iter().map(at).collect();
        for ((_, spread), corner) in self.values.iter().zip(&corners) {
            let ends =
                vec![(corner.0, vertical.at(spread.min)), (corner.0, vertical.at(spread.max))];
            area.draw(&PathElement::new(ends, self.colour.stroke_width(1)))?;
            area.draw(&Circle::new(*corner, 5, self.colour.filled()))?;
        }
        let width = if self.is_thick { 4 } else { 2 };
        area.draw(&PathElement::new(corners.clone(), self.colour.stroke_width(width)))?;
        Ok(corners)
    }
}

/// An empty page.
pub(crate) fn white_page(path: &Path, height: i32) -> Result<Area<'_>, Box<dyn Error>> {
    load_font()?;
    let area = BitMapBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    Ok(area)
}

/// Draws the title of a picture, and below it the machine and date.
pub(crate) fn heading(area: &Area<'_>, title: &str, note: &str) -> Result<(), Box<dyn Error>> {
    let style = TextStyle::from(("sans-serif", LETTER * 5 / 4).into_font()).color(&INK);
    area.draw(&Text::new(title.to_owned(), (24, 20), style))?;
    text(area, note, (24, 68), HPos::Left, RGBColor(100, 100, 100))
}

/// The machine in words, for a heading.
pub(crate) fn machine_words(machine: &Machine) -> String {
    format!(
        "{}, {}, {} processors, Linux {}.",
        machine.date, machine.processor, machine.processors, machine.kernel
    )
}

/// Words beside or around a place.
pub(crate) fn text(
    area: &Area<'_>,
    words: &str,
    at: (i32, i32),
    side: HPos,
    colour: RGBColor,
) -> Result<(), Box<dyn Error>> {
    let style = TextStyle::from(("sans-serif", LETTER).into_font())
        .color(&colour)
        .pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(words.to_owned(), at, style))?;
    Ok(())
}

/// In what the values of a picture are named.
pub(crate) struct Unit<'a> {
    name: &'a str,
    /// From the unit of the values to this one.
    pub(crate) factor: f64,
}

impl Unit<'_> {
    /// Nanoseconds have too many digits where values are long.
    pub(crate) fn of(unit: &str, largest: f64) -> Unit<'_> {
        const LONG_NS: f64 = 100_000.0;
        let (name, factor) = match unit {
            "ns" if largest > LONG_NS => ("microseconds", 1e-3),
            "ns" => ("nanoseconds", 1.0),
            "us" => ("microseconds", 1.0),
            "ms" => ("milliseconds", 1.0),
            "%" => ("percent", 1.0),
            other => (other, 1.0),
        };
        Unit { name, factor }
    }

    pub(crate) fn axis_name(&self) -> String {
        let better = if self.name == "Mb/s" { "higher" } else { "lower" };
        format!("{}, {better} is better", self.name)
    }
}

/// A number on an axis.
fn tick_label(value: f64) -> String {
    let label = short(value);
    if !label.contains('.') {
        return label;
    }
    label.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Labels of lines that end before others stand lower: the others go on beside their ends, and mostly
/// rise.
fn below_the_longer<T>(mut ends: Vec<((i32, i32), T)>) -> Vec<((i32, i32), T)> {
    let last = ends.iter().map(|((x, _), _)| *x).max();
    let earlier = ends.iter_mut().filter(|((x, _), _)| Some(*x) < last);
    earlier.for_each(|((_, y), _)| *y += GAP);
    ends
}

/// Moves labels that would cover each other apart, keeping their order: those of lines that end
/// near each other along the axis.
fn apart<T>(mut ends: Vec<((i32, i32), T)>) -> Vec<((i32, i32), T)> {
    /// As long as a label.
    const NEAR: i32 = 210;
    ends.sort_by_key(|((x, _), _)| *x);
    let mut columns: Vec<Vec<(i32, (i32, T))>> = Vec::new();
    let mut before = None;
    for ((x, y), named) in ends {
        match columns.last_mut() {
            Some(column) if before.is_some_and(|before| x - before < NEAR) => {
                column.push((y, (x, named)));
            }
            _ => columns.push(vec![(y, (x, named))]),
        }
        before = Some(x);
    }
    let labels = columns.into_iter().flat_map(apart_in_column);
    labels.map(|(y, (x, named))| ((x, y), named)).collect()
}

/// As near to their lines as they can stand: labels that push each other share the way.
fn apart_in_column<T>(mut labels: Vec<(i32, T)>) -> Vec<(i32, T)> {
    labels.sort_by_key(|(y, _)| *y);
    // Runs of labels GAP apart: where the first would stand, over all of them, and how many.
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for (place, (y, _)) in (0..).zip(&labels) {
        let mut run = (y - place * GAP, 1);
        while let Some(above) = runs.pop_if(|above| above.0 * run.1 > run.0 * above.1) {
            run = (above.0 + run.0, above.1 + run.1);
        }
        runs.push(run);
    }
    let firsts = runs.iter().flat_map(|&(sum, count)| (0..count).map(move |_| sum / count));
    for ((place, label), first) in (0..).zip(&mut labels).zip(firsts) {
        label.0 = first + place * GAP;
    }
    let mut below = HEIGHT - BOTTOM;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(below);
        below = label.0 - GAP;
    }
    labels
}

/// From values to pixels.
pub(crate) struct Scale {
    low: f64,
    pub(crate) high: f64,
    from: i32,
    to: i32,
    is_logarithmic: bool,
}

impl Scale {
    /// Holds all positive values, and some room beyond them.
    pub(crate) fn logarithmic(
        values: impl Iterator<Item = f64>,
        from: i32,
        to: i32,
        room: f64,
    ) -> Scale {
        let spread = Middle::of(values.filter(|value| *value > 0.0));
        let (low, high) =
            spread.map_or((1.0, 10.0), |spread| (spread.min / room, spread.max * room));
        Scale { low, high, from, to, is_logarithmic: true }
    }

    /// Holds all values, and some room beyond them.
    fn linear(values: impl Iterator<Item = f64>, from: i32, to: i32) -> Scale {
        const ROOM: f64 = 0.04;
        let spread = Middle::of(values).unwrap_or(Middle { median: 0.0, min: 0.0, max: 1.0 });
        let room = ROOM * (spread.max - spread.min).max(1.0);
        Scale { low: spread.min - room, high: spread.max + room, from, to, is_logarithmic: false }
    }

    /// Values below the scale stand at its beginning.
    pub(crate) fn at(&self, value: f64) -> i32 {
        let value = value.max(self.low);
        let share = if self.is_logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (share * f64::from(self.to - self.from)).round() as i32
    }

    /// Round values inside a logarithmic scale: 1, 2, 5 of each power of ten, or powers of ten if
    /// there are many.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        powers
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .filter(|value| (self.low..=self.high).contains(value))
            .collect()
    }
}

/// The font travels with the program: a machine without any draws the same pictures.
fn load_font() -> Result<(), Box<dyn Error>> {
    static ONCE: Once = Once::new();
    let mut loaded = true;
    ONCE.call_once(|| {
        let font = epaint_default_fonts::UBUNTU_LIGHT;
        loaded = plotters::style::register_font("sans-serif", FontStyle::Normal, font).is_ok();
    });
    if loaded { Ok(()) } else { Err("the font cannot be read".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_reaches_from_end_to_end() {
        let scale = Scale::logarithmic([10.0, 1000.0].into_iter(), 0, 100, 1.0);
        assert_eq!((scale.at(10.0), scale.at(100.0), scale.at(1000.0)), (0, 50, 100));
        assert_eq!(scale.ticks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
    }

    #[test]
    fn a_linear_scale_has_its_middle_in_the_middle() {
        let scale = Scale::linear([2.0, 8.0].into_iter(), 0, 108);
        assert_eq!((scale.at(2.0), scale.at(5.0), scale.at(8.0)), (4, 54, 104));
    }

    #[test]
    fn long_times_are_named_in_microseconds() {
        assert_eq!(Unit::of("ns", 9_000.0).axis_name(), "nanoseconds, lower is better");
        assert_eq!(Unit::of("ns", 1e6).axis_name(), "microseconds, lower is better");
        assert_eq!(Unit::of("ms", 1e6).factor, 1.0);
        assert_eq!(Unit::of("Mb/s", 1e6).axis_name(), "Mb/s, higher is better");
    }

    #[test]
    fn a_line_that_ends_early_is_named_below_its_end() {
        let labels = below_the_longer(vec![((500, 300), 'a'), ((900, 100), 'b')]);
        assert_eq!(labels, [((500, 300 + GAP), 'a'), ((900, 100), 'b')]);
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let labels = apart(vec![((900, 660), 'c'), ((900, 100), 'a'), ((900, 665), 'b')]);
        assert!(labels.windows(2).all(|pair| pair[1].0.1 - pair[0].0.1 >= GAP));
        assert!(labels.iter().all(|((_, y), _)| *y <= HEIGHT - BOTTOM));
    }

    #[test]
    fn labels_of_lines_that_end_near_each_other_do_not_cover_each_other() {
        let labels = apart(vec![((900, 300), 'a'), ((800, 310), 'b')]);
        assert_eq!(labels, [((900, 291), 'a'), ((800, 319), 'b')]);
    }

    #[test]
    fn numbers_on_an_axis_end_without_zeros() {
        assert_eq!([0.5, 20.0, 1_000.0].map(tick_label), ["0.5", "20", "1,000"]);
    }

    #[test]
    fn a_line_that_ends_early_is_named_there() {
        let labels = apart(vec![((900, 100), 'a'), ((200, 110), 'b')]);
        assert_eq!(labels, [((200, 110), 'b'), ((900, 100), 'a')]);
    }
}
