//! Results as pictures, all in one look: white background, large letters, every line named where it
//! ends, logarithmic axes where the values differ by factors.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Once;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::candidate::{ALL, Candidate};
use crate::figure::{Axis, Figure};
use crate::results::Results;
use crate::sample::{Point, size_label};
use crate::statistics::{Spread, short};

type Area<'a> = DrawingArea<BitMapBackend<'a>, plotters::coord::Shift>;

/// What is drawn of a figure: some of its points.
pub(crate) struct Picture {
    /// Of the file, without its extension.
    pub(crate) name: String,
    title: String,
    axis: Axis,
    points: Vec<Point>,
}

/// The pictures that fit the figure. Where lines run along an axis, whatever does not is the same
/// all over a picture, so that there may be several.
pub(crate) fn pictures(results: &Results) -> Vec<Picture> {
    let axis = Figure::by_name(results.figure).map_or(Axis::Strips, |figure| figure.axis);
    let mut groups: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for point in results.points() {
        groups.entry(constant_label(axis, &point)).or_default().push(point);
    }
    let alone = groups.len() <= 1;
    let picture = |(label, points): (String, Vec<Point>)| Picture {
        name: if alone {
            results.figure.to_owned()
        } else {
            format!("{}-{}", results.figure, label.replace(", ", "-").replace(' ', "-"))
        },
        title: if alone { results.title.to_owned() } else { format!("{}: {label}", results.title) },
        axis,
        points,
    };
    groups.into_iter().map(picture).collect()
}

/// What of a point does not run along the axis, in words.
fn constant_label(axis: Axis, point: &Point) -> String {
    match axis {
        Axis::Bytes => Point { bytes: 0, ..point.clone() }.label(),
        Axis::Processes => point.label_without_processes(),
        Axis::Strips => String::new(),
    }
}

impl Picture {
    pub(crate) fn draw(&self, results: &Results, path: &Path) -> Result<(), Box<dyn Error>> {
        load_font()?;
        match self.axis {
            Axis::Bytes | Axis::Processes => draw_lines(self, results, path),
            Axis::Strips => draw_strips(self, results, path),
        }
    }

    fn lines(&self, results: &Results) -> Vec<Line> {
        let line = |candidate| {
            let spread =
                |point: &Point| Some((point.clone(), results.row(candidate, point)?.spread));
            Line { candidate, values: self.points.iter().filter_map(spread).collect() }
        };
        ALL.into_iter().map(line).filter(|line| !line.values.is_empty()).collect()
    }
}

/// A candidate's values along the axis.
struct Line {
    candidate: Candidate,
    values: Vec<(Point, Spread)>,
}

const WIDTH: i32 = 1200;
const HEIGHT: i32 = 760;
const LEFT: i32 = 110;
const RIGHT: i32 = 260;
const TOP: i32 = 120;
const BOTTOM: i32 = 90;
const LETTER: i32 = 22;
const INK: RGBColor = RGBColor(30, 30, 30);
const FAINT: RGBColor = RGBColor(222, 222, 222);

fn draw_lines(picture: &Picture, results: &Results, path: &Path) -> Result<(), Box<dyn Error>> {
    let (axis, lines) = (picture.axis, &picture.lines(results));
    let area = white_page(path, HEIGHT)?;
    let place =
        |point: &Point| if axis == Axis::Bytes { point.bytes as f64 } else { f64::from(point.n) };
    let all = || lines.iter().flat_map(|line| &line.values);
    let horizontal =
        Scale::logarithmic(all().map(|(point, _)| place(point)), LEFT, WIDTH - RIGHT, 1.15);
    let vertical = Scale::logarithmic(
        all().flat_map(|(_, spread)| [spread.min, spread.max]),
        HEIGHT - BOTTOM,
        TOP,
        1.3,
    );

    let unit = Unit::of(results.unit(), vertical.high);
    heading(&area, &picture.title, results)?;
    for value in vertical.ticks() {
        let y = vertical.at(value);
        area.draw(&PathElement::new(vec![(LEFT, y), (WIDTH - RIGHT, y)], FAINT))?;
        text(&area, &short(value * unit.factor), (LEFT - 12, y), HPos::Right, INK)?;
    }
    let mut places: Vec<f64> = all().map(|(point, _)| place(point)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    for value in places {
        let label = if axis == Axis::Bytes { size_label(value as u64) } else { short(value) };
        text(&area, &label, (horizontal.at(value), HEIGHT - BOTTOM + 24), HPos::Center, INK)?;
    }
    text(&area, &unit.axis_name(), (24, TOP - 24), HPos::Left, INK)?;
    let name = if axis == Axis::Bytes { "size of the message" } else { "processes" };
    text(&area, name, (i32::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 28), HPos::Center, INK)?;

    let mut ends = Vec::new();
    for line in lines {
        let style = colour(line.candidate);
        let corners: Vec<(i32, i32)> = line
            .values
            .iter()
            .map(|(point, spread)| (horizontal.at(place(point)), vertical.at(spread.median)))
            .collect();
        for ((point, spread), corner) in line.values.iter().zip(&corners) {
            let x = horizontal.at(place(point));
            let ends = vec![(x, vertical.at(spread.min)), (x, vertical.at(spread.max))];
            area.draw(&PathElement::new(ends, style.stroke_width(1)))?;
            area.draw(&Circle::new(*corner, 5, style.filled()))?;
        }
        let width = if line.candidate == Candidate::Landeck { 4 } else { 2 };
        ends.extend(corners.last().map(|end| (*end, line.candidate)));
        area.draw(&PathElement::new(corners, style.stroke_width(width)))?;
    }
    for (end, candidate) in apart(ends) {
        text(&area, candidate.title(), (end.0 + 14, end.1), HPos::Left, colour(candidate))?;
    }
    area.present()?;
    Ok(())
}

/// One strip for each point and candidate: the median as a dot, the spread as a line, both named.
fn draw_strips(picture: &Picture, results: &Results, path: &Path) -> Result<(), Box<dyn Error>> {
    const STEP: i32 = 30;
    const NAMES: i32 = 330;
    let points = &picture.points;
    let rows: usize = points.iter().map(|point| results.rows(point).len() + 2).sum();
    let height = TOP + rows as i32 * STEP + 60;
    let area = white_page(path, height)?;
    heading(&area, &picture.title, results)?;
    let spreads = points
        .iter()
        .flat_map(|point| results.rows(point))
        .flat_map(|row| [row.spread.min, row.spread.max]);
    let scale = Scale::logarithmic(spreads, NAMES, WIDTH - 150, 1.3);
    let unit = Unit::of(results.unit(), scale.high);
    for value in scale.ticks() {
        let x = scale.at(value);
        area.draw(&PathElement::new(vec![(x, TOP), (x, height - 70)], FAINT))?;
        text(&area, &short(value * unit.factor), (x, height - 52), HPos::Center, INK)?;
    }
    text(
        &area,
        &unit.axis_name(),
        (i32::midpoint(NAMES, WIDTH - 150), height - 20),
        HPos::Center,
        INK,
    )?;
    let mut y = TOP;
    for point in points {
        y += STEP / 2;
        text(&area, &point.label(), (24, y), HPos::Left, INK)?;
        y += STEP;
        for row in results.rows(point) {
            let style = colour(row.candidate);
            text(&area, row.candidate.title(), (NAMES - 24, y), HPos::Right, style)?;
            let ends = vec![(scale.at(row.spread.min), y), (scale.at(row.spread.max), y)];
            area.draw(&PathElement::new(ends, style.stroke_width(2)))?;
            area.draw(&Circle::new((scale.at(row.spread.median), y), 6, style.filled()))?;
            text(
                &area,
                &short(row.spread.median * unit.factor),
                (scale.at(row.spread.max) + 14, y),
                HPos::Left,
                style,
            )?;
            y += STEP;
        }
        y += STEP / 2;
    }
    area.present()?;
    Ok(())
}

fn white_page(path: &Path, height: i32) -> Result<Area<'_>, Box<dyn Error>> {
    let area = BitMapBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    Ok(area)
}

fn heading(area: &Area<'_>, title: &str, results: &Results) -> Result<(), Box<dyn Error>> {
    let style = TextStyle::from(("sans-serif", LETTER * 5 / 4).into_font()).color(&INK);
    area.draw(&Text::new(title.to_owned(), (24, 20), style))?;
    let machine = &results.machine;
    let below = format!(
        "{}, {}, {} processors, Linux {}. Medians of the launches, spread of all batches.",
        machine.date, machine.processor, machine.processors, machine.kernel
    );
    text(area, &below, (24, 68), HPos::Left, RGBColor(100, 100, 100))
}

/// In what the values of a picture are named.
struct Unit<'a> {
    name: &'a str,
    /// From the unit of the values to this one.
    factor: f64,
}

impl Unit<'_> {
    /// Nanoseconds have too many digits where values are long.
    fn of(unit: &str, largest: f64) -> Unit<'_> {
        const LONG_NS: f64 = 100_000.0;
        let (name, factor) = match unit {
            "ns" if largest > LONG_NS => ("microseconds", 1e-3),
            "ns" => ("nanoseconds", 1.0),
            "ms" => ("milliseconds", 1.0),
            "%" => ("percent", 1.0),
            other => (other, 1.0),
        };
        Unit { name, factor }
    }

    fn axis_name(&self) -> String {
        format!("{}, lower is better", self.name)
    }
}

fn text(
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

/// Moves labels that would cover each other apart, keeping their order: those of lines that end at
/// the same place of the axis.
fn apart(ends: Vec<((i32, i32), Candidate)>) -> Vec<((i32, i32), Candidate)> {
    let mut columns: BTreeMap<i32, Vec<(i32, Candidate)>> = BTreeMap::new();
    for ((x, y), candidate) in ends {
        columns.entry(x).or_default().push((y, candidate));
    }
    columns
        .into_iter()
        .flat_map(|(x, labels)| {
            apart_in_column(labels).into_iter().map(move |(y, candidate)| ((x, y), candidate))
        })
        .collect()
}

fn apart_in_column(mut labels: Vec<(i32, Candidate)>) -> Vec<(i32, Candidate)> {
    const GAP: i32 = 28;
    labels.sort_by_key(|(y, _)| *y);
    for place in 1..labels.len() {
        labels[place].0 = labels[place].0.max(labels[place - 1].0 + GAP);
    }
    let mut below = HEIGHT - BOTTOM;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(below);
        below = label.0 - GAP;
    }
    labels
}

/// The same colour for the same candidate in every picture.
fn colour(candidate: Candidate) -> RGBColor {
    match candidate {
        Candidate::Landeck => RGBColor(0, 84, 166),
        Candidate::LandeckMpi => RGBColor(70, 150, 220),
        Candidate::OpenMpi => RGBColor(200, 90, 0),
        Candidate::IntelMpi => RGBColor(0, 130, 80),
        Candidate::Mpich => RGBColor(150, 30, 60),
        Candidate::MpichThrottled => RGBColor(200, 90, 150),
        Candidate::Bare | Candidate::Counter => RGBColor(120, 120, 120),
    }
}

/// A logarithmic scale from values to pixels.
struct Scale {
    low: f64,
    high: f64,
    from: i32,
    to: i32,
}

impl Scale {
    /// Holds all positive values, and some room beyond them.
    fn logarithmic(values: impl Iterator<Item = f64>, from: i32, to: i32, room: f64) -> Scale {
        let spread = Spread::of(values.filter(|value| *value > 0.0));
        let (low, high) =
            spread.map_or((1.0, 10.0), |spread| (spread.min / room, spread.max * room));
        Scale { low, high, from, to }
    }

    /// Values below the scale stand at its beginning.
    fn at(&self, value: f64) -> i32 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.from + (share * f64::from(self.to - self.from)).round() as i32
    }

    /// Round values inside the scale: 1, 2, 5 of each power of ten, or powers of ten if there are many.
    fn ticks(&self) -> Vec<f64> {
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
    use crate::results::{Launch, LaunchValue};

    #[test]
    fn a_scale_reaches_from_end_to_end() {
        let scale = Scale::logarithmic([10.0, 1000.0].into_iter(), 0, 100, 1.0);
        assert_eq!((scale.at(10.0), scale.at(100.0), scale.at(1000.0)), (0, 50, 100));
        assert_eq!(scale.ticks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
    }

    #[test]
    fn long_times_are_named_in_microseconds() {
        assert_eq!(Unit::of("ns", 9_000.0).axis_name(), "nanoseconds, lower is better");
        assert_eq!(Unit::of("ns", 1e6).axis_name(), "microseconds, lower is better");
        assert_eq!(Unit::of("ms", 1e6).factor, 1.0);
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let labels = apart(vec![
            ((900, 660), Candidate::Mpich),
            ((900, 100), Candidate::Landeck),
            ((900, 665), Candidate::OpenMpi),
        ]);
        assert!(labels.windows(2).all(|pair| pair[1].0.1 - pair[0].0.1 >= 28));
        assert!(labels.iter().all(|((_, y), _)| *y <= HEIGHT - BOTTOM));
    }

    #[test]
    fn a_line_that_ends_early_is_named_there() {
        let labels = apart(vec![((900, 100), Candidate::Landeck), ((200, 110), Candidate::Mpich)]);
        assert_eq!(labels, [((200, 110), Candidate::Mpich), ((900, 100), Candidate::Landeck)]);
    }

    #[test]
    fn a_picture_holds_what_differs_along_its_axis_only() {
        let results = Results {
            figure: "allreduce",
            title: "Allreduce",
            machine: crate::machine::Machine::here(),
            probes: Vec::new(),
            launches: vec![launch_of(2, &[8, 65_536]), launch_of(4, &[8, 65_536])],
            left_out: Vec::new(),
        };
        let pictures = pictures(&results);
        let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["allreduce-64-KiB", "allreduce-8-B"]);
        assert_eq!(pictures[1].title, "Allreduce: 8 B");
        assert_eq!(pictures[1].lines(&results)[0].values.len(), 2);
    }

    fn launch_of(n: u32, sizes: &[u64]) -> Launch {
        let value = |&bytes: &u64| LaunchValue {
            point: Point { figure: "allreduce".into(), form: String::new(), n, bytes, pending: 0 },
            unit: "ns".into(),
            value: 1.0,
            batches: 1,
            batches_min: 1.0,
            batches_max: 1.0,
        };
        Launch {
            candidate: Candidate::Landeck.name(),
            round: 0,
            n,
            line_ns: None,
            others_share: 0.0,
            values: sizes.iter().map(value).collect(),
            trouble: None,
        }
    }
}
