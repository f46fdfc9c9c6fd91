//! The studies as pictures, one for each of the papers' figures and, where it says more, one of both
//! papers' sides together.

use plotters::style::RGBColor;

use crate::candidate::Candidate;
use crate::chart::{Chart, ChartAxis, Line, machine_words};
use crate::papers::grid::{FIXED_BYTES, Study, USUAL};
use crate::papers::paper2005::{TABLE_1, at, best_over_processes, best_over_sizes, is_of};
use crate::papers::tables::{collective_title, decimal_label, operations};
use crate::papers::values::{ValuePlace, Values};
use crate::plot::colour;
use crate::sample::size_label;
use crate::statistics::short;

const ORANGE: RGBColor = RGBColor(200, 90, 0);
const GREEN: RGBColor = RGBColor(0, 130, 80);
const RED: RGBColor = RGBColor(150, 30, 60);
const PINK: RGBColor = RGBColor(200, 90, 150);

/// The pictures of a study, with the names of their files.
pub(crate) fn pictures(values: &Values) -> Vec<(String, Chart)> {
    let all = match values.study {
        Study::Sizes => vec![
            ("sizes-pipeline".to_owned(), sizes_of(values, "pipeline")),
            ("sizes-daisy".to_owned(), sizes_of(values, "daisy")),
            ("sizes".to_owned(), sizes_compared(values)),
        ],
        Study::Processes => vec![
            ("processes-pipeline".to_owned(), groups_of(values, "pipeline")),
            ("processes-daisy".to_owned(), groups_of(values, "daisy")),
            ("processes".to_owned(), processes_compared(values)),
        ],
        Study::Service => vec![
            ("service-deck2000".to_owned(), service_alone(values)),
            ("service".to_owned(), service_compared(values)),
        ],
        Study::Collective => operations(values)
            .into_iter()
            .map(|(operation, bytes)| {
                let size = if bytes == 0 { String::new() } else { format!("-{bytes}") };
                (format!("{operation}{size}"), collective(values, &operation, bytes))
            })
            .collect(),
        Study::Roots | Study::Deliveries => Vec::new(),
    };
    all.into_iter().filter(|(_, chart)| !chart.lines.is_empty()).collect()
}

fn sizes_of(values: &Values, architecture: &str) -> Chart {
    let title = format!("2005: {architecture}, broadcast to 24 processes in 2 to 8 groups");
    let ways: Vec<&str> = ways_of(values, architecture);
    let lines = (0..).zip(&ways).map(|(number, way)| Line {
        name: groups_words(way),
        ..along_sizes(values, way, shade(architecture, number, ways.len()))
    });
    chart(values, title, message_axis(), lines)
}

fn sizes_compared(values: &Values) -> Chart {
    let best = TABLE_1.iter().filter_map(|row| best_over_sizes(values, row.architecture));
    let ways = best.map(|(way, _)| way).chain([USUAL.to_owned()]);
    let lines = ways.map(|way| along_sizes(values, &way, colour_of(&way)));
    let title = "2005: broadcast to 24 processes, each architecture in its best groups".to_owned();
    chart(values, title, message_axis(), lines)
}

/// As the paper draws it: along the groups, a line for each number of processes.
fn groups_of(values: &Values, architecture: &str) -> Chart {
    let processes = values.processes();
    let ways = ways_of(values, architecture);
    let lines = (0..).zip(&processes).map(|(number, &n)| {
        let style = (shade(architecture, number, processes.len()), false);
        Line::along(format!("{n} processes"), style, &ways, |way| {
            let groups = way.split_once('@')?.1.parse().ok()?;
            Some((groups, values.at(&at(way, n))?))
        })
    });
    let axis = ChartAxis { name: "groups", is_logarithmic: false, label: short };
    chart(values, format!("2005: {architecture}, broadcast of {FIXED_BYTES} B"), axis, lines)
}

fn processes_compared(values: &Values) -> Chart {
    let rows = TABLE_1.iter().filter(|row| row.architecture != "hypercube");
    let best = rows.filter_map(|row| best_over_processes(values, row.architecture));
    let best = best.map(|(way, _)| (colour_of(&way), way));
    let cubes = ways_of(values, "hypercube");
    let shaded = |(number, way): (usize, &&str)| {
        (shade("hypercube", cubes.len() - 1 - number, cubes.len()), (*way).to_owned())
    };
    let cubes = (0..).zip(&cubes).map(shaded);
    let usual = (colour_of(USUAL), USUAL.to_owned());
    let line = |(colour, way): (RGBColor, String)| along_processes(values, colour, &way, at);
    let ways = best.chain(cubes).chain([usual]);
    let title = format!("2005: broadcast of {FIXED_BYTES} B, the processes share the processors");
    chart(values, title, processes_axis(), ways.map(line))
}

fn service_alone(values: &Values) -> Chart {
    let members = values.processes();
    let lines = (0..).zip(&members).map(|(number, &n)| Line {
        name: format!("{n} members"),
        ..service_line(values, "deck2000", n, shade("deck2000", number, members.len()))
    });
    chart(values, "2000: broadcast and sync by one server".to_owned(), bytes_axis(), lines)
}

fn service_compared(values: &Values) -> Chart {
    let members = values.processes();
    let ends = [members.first(), members.last()].into_iter().flatten();
    let lines = ends.flat_map(|&n| {
        values.ways().into_iter().map(move |way| Line {
            name: format!("{}, {n} members", way_words(way)),
            ..service_line(values, way, n, colour_of(way))
        })
    });
    let title = "2000: broadcast and sync by one server, and as Landeck does it".to_owned();
    chart(values, title, bytes_axis(), lines)
}

fn service_line(values: &Values, way: &str, n: u32, colour: RGBColor) -> Line {
    Line::along(String::new(), (colour, way == USUAL), values.sizes(), |bytes| {
        let place = ValuePlace::here("broadcast-sync", way, n, bytes);
        Some((bytes as f64, values.at(&place)?))
    })
}

fn collective(values: &Values, operation: &str, bytes: u64) -> Chart {
    let place = |way: &str, n| ValuePlace::here(operation, way, n, bytes);
    let ways = values.ways().into_iter();
    let lines = ways.map(|way| along_processes(values, colour_of(way), way, place));
    chart(values, format!("2003: {}", collective_title(operation, bytes)), members_axis(), lines)
}

fn along_sizes(values: &Values, way: &str, colour: RGBColor) -> Line {
    let n = values.processes().first().copied().unwrap_or(0);
    Line::along(way_words(way), (colour, way == USUAL), values.sizes(), |bytes| {
        Some((bytes as f64, values.at(&ValuePlace { bytes, ..at(way, n) })?))
    })
}

fn along_processes(
    values: &Values,
    colour: RGBColor,
    way: &str,
    place: impl Fn(&str, u32) -> ValuePlace,
) -> Line {
    Line::along(way_words(way), (colour, way == USUAL), values.processes(), |n| {
        Some((f64::from(n), values.at(&place(way, n))?))
    })
}

/// A picture of the lines that have values.
pub(super) fn chart(
    values: &Values,
    title: String,
    axis: ChartAxis,
    lines: impl Iterator<Item = Line>,
) -> Chart {
    let lines = lines.filter(|line| !line.values.is_empty()).collect();
    Chart { title, note: note(values), unit: "us".to_owned(), axis, lines }
}

/// The machine and the rounds, for below a title.
pub(super) fn note(values: &Values) -> String {
    let rounds = values.rounds;
    let machine = machine_words(&values.machine);
    match rounds {
        1 => format!("{machine} One round, and its spread."),
        _ => format!("{machine} Medians of {rounds} rounds, and their spread."),
    }
}

pub(super) fn message_axis() -> ChartAxis {
    let label = |bytes: f64| decimal_label(bytes as u64);
    ChartAxis { name: "size of the message", is_logarithmic: true, label }
}

pub(super) fn bytes_axis() -> ChartAxis {
    let label = |bytes: f64| size_label(bytes as u64);
    ChartAxis { name: "size of the message", is_logarithmic: true, label }
}

fn processes_axis() -> ChartAxis {
    ChartAxis { name: "processes", is_logarithmic: true, label: short }
}

pub(super) fn members_axis() -> ChartAxis {
    ChartAxis { name: "members", is_logarithmic: false, label: short }
}

fn ways_of<'a>(values: &'a Values, architecture: &str) -> Vec<&'a str> {
    values.ways().into_iter().filter(|way| is_of(way, architecture)).collect()
}

fn groups_words(way: &str) -> String {
    way.split_once('@').map_or(way.to_owned(), |(_, groups)| format!("{groups} groups"))
}

pub(super) fn way_words(way: &str) -> String {
    match way.split_once('@') {
        Some(("hierarchy", groups)) => format!("binary tree of {groups}"),
        Some(("hypercube", groups)) => {
            let dimension = groups.parse::<u32>().map_or(0, u32::ilog2);
            format!("hypercube, {dimension} dim.")
        }
        Some((preset, groups)) => format!("{preset}, {groups} groups"),
        None if way == USUAL => Candidate::Landeck.title().to_owned(),
        None => way.to_owned(),
    }
}

fn colour_of(way: &str) -> RGBColor {
    match way.split_once('@').map_or(way, |(preset, _)| preset) {
        "pipeline" | "deck2000" | "deck2003" => ORANGE,
        "daisy" => RED,
        "hierarchy" | "mpi2003" => GREEN,
        "hypercube" => PINK,
        _ => colour(Candidate::Landeck),
    }
}

/// From light to the full colour, one for each of so many lines.
fn shade(preset: &str, number: usize, count: usize) -> RGBColor {
    const LIGHTEST: f64 = 0.5;
    let RGBColor(red, green, blue) = colour_of(preset);
    let last = count.saturating_sub(1).max(1) as f64;
    let light = LIGHTEST * (1.0 - number as f64 / last);
    let mixed = |part: u8| (f64::from(part) + (255.0 - f64::from(part)) * light).round() as u8;
    RGBColor(mixed(red), mixed(green), mixed(blue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::values::tests::values;

    #[test]
    fn an_architecture_is_compared_in_its_best_groups() {
        let all = values(
            Study::Sizes,
            &[
                ("daisy@2", 24, 4, 30.0, 0.0),
                ("daisy@8", 24, 4, 20.0, 0.0),
                ("hypercube@8", 24, 4, 25.0, 0.0),
                ("landeck", 24, 4, 10.0, 0.0),
            ],
        );
        let pictures = pictures(&all);
        let names: Vec<&str> = pictures.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sizes-daisy", "sizes"]);
        let lines: Vec<&str> = pictures[1].1.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(lines, ["daisy, 8 groups", "hypercube, 3 dim.", "Landeck"]);
        assert_eq!(pictures[0].1.lines.len(), 2);
    }

    #[test]
    fn the_last_shade_is_the_colour_itself() {
        assert_eq!(shade("daisy", 6, 7), RED);
        assert_ne!(shade("daisy", 0, 7), RED);
    }
}
