//! The pages of the book as they were made: whether every link in them leads to a page or a file that is there,
//! and to a place on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::read;
use crate::Problem;
use crate::links::resolve;

/// Links that lead nowhere, as sentences.
pub(super) fn broken_links(folder: &Path) -> Result<Vec<String>, Problem> {
    let mut files = BTreeSet::new();
    list(folder, folder, &mut files)?;
    let mut pages = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".html")) {
        pages.insert(path.clone(), read(&folder.join(path))?);
    }
    Ok(broken(&pages, &files))
}

fn broken(pages: &BTreeMap<String, String>, files: &BTreeSet<String>) -> Vec<String> {
    // They repeat the pages, or stand for one that is not there.
    let repeats = |path: &str| matches!(path, "print.html" | "404.html" | "toc.html");
    let places: BTreeMap<&str, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path.as_str(), values(text, " id=").collect())).collect();
    let mut faults = Vec::new();
    for (path, text) in pages.iter().filter(|(path, _)| !repeats(path)) {
        for link in values(text, " href=").chain(values(text, " src=")) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            if file.contains(':') {
                continue;
            }
            let target = if file.is_empty() { path.clone() } else { resolve(path, file) };
            let has_place = |places: &BTreeSet<&str>| place.is_empty() || places.contains(place);
            let is_there = match places.get(target.as_str()) {
                Some(places) => has_place(places),
                None => files.contains(&target),
            };
            if !is_there {
                faults.push(format!("{path} leads to {link}, which is not there"));
            }
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

/// Returns the quoted values behind a word.
fn values<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(word).skip(1).filter_map(|rest| rest.strip_prefix('"')?.split('"').next())
}

fn list(root: &Path, folder: &Path, files: &mut BTreeSet<String>) -> Result<(), Problem> {
    let unreadable = |error| Problem::Read { path: folder.to_owned(), error };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            files.insert(relative.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_files_and_places_must_be_there() {
        let page = r##"<h2 id="here"></h2><a href="#here">1</a><a href="../b.html#x">2</a>
            <img src="p.svg"><a href="https://a.b/c">3</a><a href="c.html">4</a><a href="#there">5</a>"##;
        let pages = BTreeMap::from([
            ("d/a.html".to_owned(), page.to_owned()),
            ("b.html".to_owned(), r#"<p id="x">"#.to_owned()),
        ]);
        let files = BTreeSet::from(["d/a.html", "b.html", "d/p.svg"].map(str::to_owned));
        let faults = broken(&pages, &files);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("#there") && faults[1].contains("c.html"), "{faults:?}");
    }
}
