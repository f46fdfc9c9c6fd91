//! The studies on several hosts as pictures.

use plotters::style::RGBColor;

use super::tables::{jobs, name_of, place};
use crate::candidate::{self, Candidate};
use crate::chart::{Chart, ChartAxis, Line};
use crate::papers::grid::{Study, USUAL};
use crate::papers::measure::MPI;
use crate::papers::pictures::{bytes_axis, chart, message_axis};
use crate::papers::tables::{collective_title, operations};
use crate::papers::values::Values;
use crate::plot::colour;
use crate::statistics::short;

const PURPLE: RGBColor = RGBColor(110, 60, 160);
const TEAL: RGBColor = RGBColor(0, 140, 150);
const BROWN: RGBColor = RGBColor(140, 90, 40);
const OLIVE: RGBColor = RGBColor(120, 130, 0);

/// The pictures of a study, with the names of their files.
pub(super) fn pictures(values: &Values) -> Vec<(String, Chart)> {
    let all = match values.study {
        Study::Sizes | Study::Processes => {
            vec![
                ("hosts-sizes".to_owned(), sizes(values)),
                ("hosts-built".to_owned(), built(values)),
            ]
        }
        Study::Service => vec![("hosts-service".to_owned(), service(values))],
        Study::Collective => operations(values)
            .into_iter()
            .map(|(operation, bytes)| {
                let size = if bytes == 0 { String::new() } else { format!("-{bytes}") };
                let title = format!(
                    "2003: {}, one process on each host",
                    collective_title(&operation, bytes)
                );
                (format!("hosts-{operation}{size}"), along_hosts(values, &operation, bytes, title))
            })
            .collect(),
        Study::Roots => {
            let title = "1997: a round of root finding, one process on each host".to_owned();
            vec![("hosts-roots".to_owned(), along_hosts(values, "roots", 0, title))]
        }
        // It has strips.
        Study::Deliveries => Vec::new(),
    };
    all.into_iter().filter(|(_, chart)| !chart.lines.is_empty()).collect()
}

/// The greatest number of hosts, with the least number of processes on them.
fn greatest(values: &Values) -> (u32, u32) {
    let hosts = jobs(values).iter().map(|job| job.0).max().unwrap_or(0);
    let n = jobs(values).iter().filter(|job| job.0 == hosts).map(|job| job.1).min();
    (hosts, n.unwrap_or(0))
}

/// Our architectures, our own choice, and the broadcasts of the libraries.
fn sizes(values: &Values) -> Chart {
    let job = greatest(values);
    let is_ours = |(way, who): &(&str, &str)| *who == "landeck" || *way == MPI;
    let lines = lines_along_sizes(values, "broadcast", job, is_ours);
    let title = format!("2005: broadcast to {} processes on {} hosts", job.1, job.0);
    chart(values, title, message_axis(), lines)
}

/// The program that builds a daisy from communicators, and the libraries' own broadcasts.
fn built(values: &Values) -> Chart {
    let job = greatest(values);
    let daisy = format!("daisy@{}", job.0);
    let is_shown = |(way, who): &(&str, &str)| *who != "landeck" && (*way == daisy || *way == MPI);
    let lines = lines_along_sizes(values, "broadcast", job, is_shown);
    let title =
        format!("2005: a daisy built from communicators, {} processes on {} hosts", job.1, job.0);
    chart(values, title, message_axis(), lines)
}

fn service(values: &Values) -> Chart {
    let job = greatest(values);
    let lines = lines_along_sizes(values, "broadcast-sync", job, |_| true);
    let title = format!("2000: broadcast and sync of {} members on as many hosts", job.1);
    chart(values, title, bytes_axis(), lines)
}

fn lines_along_sizes<'a>(
    values: &'a Values,
    operation: &'a str,
    job: (u32, u32),
    is_shown: impl Fn(&(&str, &str)) -> bool + 'a,
) -> impl Iterator<Item = Line> + 'a {
    let shown = values.series().into_iter().filter(move |series| is_shown(series));
    shown.map(move |series| {
        Line::along(name_of(series.0, series.1), style_of(series), values.sizes(), |bytes| {
            Some((bytes as f64, values.at(&place(operation, series, job, bytes))?))
        })
    })
}

fn along_hosts(values: &Values, operation: &str, bytes: u64, title: String) -> Chart {
    let lines = values.series().into_iter().map(|series| {
        Line::along(name_of(series.0, series.1), style_of(series), jobs(values), |job| {
            Some((f64::from(job.0), values.at(&place(operation, series, job, bytes))?))
        })
    });
    let axis = ChartAxis { name: "hosts", is_logarithmic: false, label: short };
    chart(values, title, axis, lines)
}

fn style_of((way, who): (&str, &str)) -> (RGBColor, bool) {
    (colour_of(way, who), way == USUAL)
}

/// Libraries have the colours of all pictures, the papers' ways others.
fn colour_of(way: &str, who: &str) -> RGBColor {
    let named = candidate::ALL.into_iter().find(|candidate| candidate.name() == who);
    let library = named.unwrap_or(Candidate::Landeck);
    match (way.split('@').next().unwrap_or(way), who) {
        (USUAL | MPI, _) => colour(library),
        ("deck2003" | "paper" | "pipeline", "landeck") => BROWN,
        ("mpi2003" | "served" | "daisy", "landeck") => PURPLE,
        ("group" | "hierarchy" | "deck", "landeck") => TEAL,
        ("hypercube" | "relay", "landeck") => OLIVE,
        _ => {
            let RGBColor(red, green, blue) = colour(library);
            let lighter = |part: u8| part + (255 - part) / 2;
            RGBColor(lighter(red), lighter(green), lighter(blue))
        }
    }
}
