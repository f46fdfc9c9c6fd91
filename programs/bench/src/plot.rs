//! The results of figures as pictures.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use plotters::style::RGBColor;

use crate::candidate::{ALL, Candidate};
use crate::chart::{Chart, ChartAxis, Line, machine_words};
use crate::figure::{Axis, Figure, Limit, Limits};
use crate::results::{Results, Row};
use crate::sample::{Point, size_label};
use crate::statistics::{Middle, short};
use crate::strips::{Strip, StripGroup, Strips};

/// Of lines that nobody was measured for.
const FAINT_LINE: RGBColor = RGBColor(120, 120, 120);

/// A picture of some points of a figure.
pub(crate) struct Picture {
    /// Of the file, without its extension.
    pub(crate) name: String,
    title: String,
    axis: Axis,
    unit: String,
    points: Vec<Point>,
}

/// The pictures that fit the figure. Where lines run along an axis, whatever does not is the same
/// all over a picture, so that there may be several. A picture has one unit.
pub(crate) fn pictures(results: &Results) -> Vec<Picture> {
    let axis = Figure::by_name(results.figure).map_or(Axis::Strips, |figure| figure.axis);
    let mut groups: BTreeMap<(String, String), Vec<Point>> = BTreeMap::new();
    let has_one_unit = !results.units().contains(',');
    for point in results.points() {
        let unit = results.unit_at(&point);
        let label = match (constant_label(axis, &point), unit.as_str()) {
            (label, _) if has_one_unit => label,
            (_, "%") => "share".to_owned(),
            (_, unit) => unit.to_owned(),
        };
        groups.entry((label, unit)).or_default().push(point);
    }
    let alone = groups.len() <= 1;
    let picture = |((label, unit), points): ((String, String), Vec<Point>)| Picture {
        name: if alone {
            results.figure.to_owned()
        } else {
            format!("{}-{}", results.figure, label.replace(", ", "-").replace(' ', "-"))
        },
        title: if alone { results.title.to_owned() } else { format!("{}: {label}", results.title) },
        axis,
        unit,
        points,
    };
    groups.into_iter().map(picture).collect()
}

/// The properties of a point that the axis does not show, in words.
fn constant_label(axis: Axis, point: &Point) -> String {
    match axis {
        Axis::Bytes => Point { bytes: 0, ..point.clone() }.label(),
        Axis::Processes => point.label_without_processes(),
        Axis::Strips => String::new(),
    }
}

impl Picture {
    pub(crate) fn draw(&self, results: &Results, path: &Path) -> Result<(), Box<dyn Error>> {
        match self.axis {
            Axis::Bytes | Axis::Processes => self.chart(results).draw(path),
            Axis::Strips => self.strips(results).draw(path),
        }
    }

    /// One strip for each point and candidate.
    fn strips(&self, results: &Results) -> Strips {
        let strip = |row: Row| Strip {
            name: row.candidate.title().to_owned(),
            colour: colour(row.candidate),
            spread: row.spread,
        };
        let group = |point: &Point| StripGroup {
            name: point.label(),
            strips: results.rows(point).into_iter().map(strip).collect(),
        };
        Strips {
            title: self.title.clone(),
            note: note(results),
            unit: self.unit.clone(),
            groups: self.points.iter().map(group).collect(),
        }
    }

    fn chart(&self, results: &Results) -> Chart {
        let (name, label): (_, fn(f64) -> String) = if self.axis == Axis::Bytes {
            ("size of the message", |bytes| size_label(bytes as u64))
        } else {
            ("processes", short)
        };
        Chart {
            title: self.title.clone(),
            note: note(results),
            unit: self.unit.clone(),
            axis: ChartAxis { name, is_logarithmic: true, label },
            lines: self.lines(results),
        }
    }

    fn lines(&self, results: &Results) -> Vec<Line> {
        let along = self.axis;
        let place = |point: &Point| {
            if along == Axis::Bytes { point.bytes as f64 } else { f64::from(point.n) }
        };
        let line = |candidate: Candidate| {
            let is_thick = matches!(candidate, Candidate::Landeck | Candidate::LandeckPlain);
            let style = (colour(candidate), is_thick);
            Line::along(candidate.title(), style, &self.points, |point| {
                Some((place(point), results.row(candidate, point)?.spread))
            })
        };
        let lines = ALL.into_iter().map(line).filter(|line| !line.values.is_empty());
        lines.chain(self.growth(results)).collect()
    }

    /// Where a figure's goal is to grow no faster than the processes, how that would be: from
    /// Landeck's own value where the goal begins.
    fn growth(&self, results: &Results) -> Option<Line> {
        let figure = Figure::by_name(results.figure)?;
        let since = |point: &Point| match figure.limits(point, results.machine.processors as u32) {
            Limits { goal: Some(Limit::AsProcessesSince(since)), .. } => Some(since),
            _ => None,
        };
        let (last, since) =
            self.points.iter().filter_map(|point| Some((point, since(point)?))).next_back()?;
        let first = Point { n: since, ..last.clone() };
        let begin = results.row(results.own(), &first)?.spread.median;
        Some(Line::along("as the processes", (FAINT_LINE, false), [since, last.n], |n| {
            Some((f64::from(n), Middle::one(begin * f64::from(n) / f64::from(since))))
        }))
    }
}

fn note(results: &Results) -> String {
    let machine = machine_words(&results.machine);
    format!("{machine} Medians of the launches, spread of all batches.")
}

/// Returns the colour of a candidate, which is one in all pictures.
pub(crate) fn colour(candidate: Candidate) -> RGBColor {
    match candidate {
        Candidate::Landeck | Candidate::LandeckPlain => RGBColor(0, 84, 166),
        Candidate::LandeckMpi => RGBColor(70, 150, 220),
        Candidate::LandeckMachine => RGBColor(120, 80, 180),
        Candidate::OpenMpi => RGBColor(200, 90, 0),
        Candidate::IntelMpi => RGBColor(0, 130, 80),
        Candidate::Mpich => RGBColor(150, 30, 60),
        Candidate::MpichThrottled => RGBColor(200, 90, 150),
        Candidate::Queues | Candidate::Iceoryx2 => RGBColor(0, 130, 80),
        Candidate::OtherLandeck | Candidate::OtherLandeckMpi => RGBColor(120, 120, 120),
        Candidate::Bare | Candidate::Counter | Candidate::Sockets => RGBColor(120, 120, 120),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Launch, LaunchValue};

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

    #[test]
    fn growth_is_drawn_beside_that_of_the_processes() {
        let launch = |n: u32| {
            let mut launch = launch_of(n, &[8]);
            launch.values[0].point.figure = "growth".into();
            launch
        };
        let results = Results {
            figure: "growth",
            title: "Growth",
            machine: crate::machine::Machine::here(),
            probes: Vec::new(),
            launches: [64, 128, 1_000].map(launch).into(),
            left_out: Vec::new(),
        };
        let lines = pictures(&results)[0].lines(&results);
        let guide = lines.last().unwrap();
        let ends: Vec<(f64, f64)> =
            guide.values.iter().map(|(n, spread)| (*n, spread.median)).collect();
        assert_eq!(ends, [(64.0, 1.0), (1_000.0, 15.625)]);
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
