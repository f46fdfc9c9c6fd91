//! A picture of the fastest architecture by size of data and number of processes.

use std::collections::BTreeMap;

use crate::picture::Picture;

use super::chart::colour;
use super::study::Study;
use landeck_host::report::thousands;

/// The fastest architecture of each field.
pub(crate) struct Map {
    /// Numbers of processes, from bottom to top.
    pub(crate) processes: Vec<u64>,
    /// Sizes, from left to right.
    pub(crate) sizes: Vec<u64>,
    /// The fastest architecture by processes and size, and its lead.
    fields: Vec<Vec<Option<Winner>>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Winner {
    name: String,
    /// The time of the next one as a multiple; none without another one.
    ahead: Option<f64>,
}

impl Map {
    /// Makes a map of studies along the sizes, each with its number of processes.
    pub(crate) fn of(studies: &[(u64, &Study)]) -> Self {
        let sizes = studies.first().map_or_else(Vec::new, |(_, study)| study.places.clone());
        let row = |study: &Study| (0..sizes.len()).map(|place| winner(study, place)).collect();
        Self {
            processes: studies.iter().map(|(processes, _)| *processes).collect(),
            fields: studies.iter().map(|(_, study)| row(study)).collect(),
            sizes,
        }
    }

    /// Draws the map. Each field has the number of its architecture, since words have no room.
    pub(crate) fn svg(&self, title: &str, note: &str) -> String {
        let mut picture = Picture::new(title, note);
        let (left, top, right, bottom) = (130.0, 150.0, 300.0, 90.0);
        let width = (1200.0 - left - right) / self.sizes.len().max(1) as f64;
        let height = (760.0 - top - bottom) / self.processes.len().max(1) as f64;
        let numbers = self.numbers();
        for (row, fields) in self.fields.iter().enumerate() {
            let y = 760.0 - bottom - (row + 1) as f64 * height;
            for (column, winner) in fields.iter().enumerate() {
                let Some(Winner { name, ahead }) = winner else { continue };
                let at = (left + column as f64 * width, y);
                picture.rectangle(at, width - 1.5, height - 1.5, colour(name));
                let number = numbers.get(name).copied().unwrap_or(0);
                let close = ahead.is_some_and(|ahead| ahead < 1.1);
                let mark = if close { format!("{number}=") } else { number.to_string() };
                let middle = (at.0 + width / 2.0, at.1 + height / 2.0);
                picture.words(&mark, middle, "middle", 16, "#FFFFFF");
            }
            let label = thousands(self.processes[row]);
            picture.words(&label, (left - 12.0, y + height / 2.0), "end", 18, "#1E1E1E");
        }
        self.label_sizes(&mut picture, (left, 760.0 - bottom), width);
        legend(&mut picture, &numbers, 1200.0 - right + 24.0, top);
        picture.words("processes", (24.0, top - 20.0), "start", 20, "#1E1E1E");
        let middle = f64::midpoint(left, 1200.0 - right);
        picture.words("bytes", (middle, 732.0), "middle", 20, "#1E1E1E");
        picture.finish()
    }

    fn label_sizes(&self, picture: &mut Picture, (left, bottom): (f64, f64), width: f64) {
        let mut free_from = f64::MIN;
        for (column, &size) in self.sizes.iter().enumerate() {
            let (x, label) = (left + (column as f64 + 0.5) * width, thousands(size));
            let half = label.len() as f64 * 6.0;
            if x - half > free_from {
                picture.words(&label, (x, bottom + 20.0), "middle", 18, "#1E1E1E");
                free_from = x + half + 8.0;
            }
        }
    }

    /// The map as rows of cells, the first with the sizes.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let sizes = self.sizes.iter().map(|&size| thousands(size));
        let mut rows =
            vec![std::iter::once("processes".to_owned()).chain(sizes).collect::<Vec<_>>()];
        for (&processes, fields) in self.processes.iter().zip(&self.fields) {
            let names = fields.iter().map(|winner| match winner {
                Some(winner) => winner.name.clone(),
                None => "-".into(),
            });
            rows.push(std::iter::once(thousands(processes)).chain(names).collect());
        }
        rows
    }

    /// The number of each architecture, in the order of names.
    fn numbers(&self) -> BTreeMap<String, usize> {
        let winners = self.fields.iter().flatten().flatten();
        let mut names: Vec<String> = winners.map(|winner| winner.name.clone()).collect();
        names.sort();
        names.dedup();
        names.into_iter().zip(1..).collect()
    }
}

fn legend(picture: &mut Picture, numbers: &BTreeMap<String, usize>, x: f64, top: f64) {
    for (row, (name, number)) in numbers.iter().enumerate() {
        let y = top + 12.0 + 34.0 * row as f64;
        picture.rectangle((x, y - 12.0), 24.0, 24.0, colour(name));
        picture.words(&number.to_string(), (x + 12.0, y), "middle", 16, "#FFFFFF");
        picture.words(name, (x + 34.0, y), "start", 20, "#1E1E1E");
    }
    let y = top + 24.0 + 34.0 * numbers.len() as f64;
    picture.words("= the next is within 10%", (x, y), "start", 18, "#646464");
}

fn winner(study: &Study, place: usize) -> Option<Winner> {
    let times = study.series.iter().zip(&study.times_us);
    let mut times: Vec<(f64, &str)> =
        times.filter_map(|(series, times)| Some((times[place]?, series.name.as_str()))).collect();
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    let &(least, name) = times.first()?;
    let ahead = times.get(1).map(|next| next.0 / least);
    Some(Winner { name: name.to_owned(), ahead })
}
