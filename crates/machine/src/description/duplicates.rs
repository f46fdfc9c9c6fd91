//! Errors of texts that are no TOML, above all of names that are described twice.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue, Error};

use super::Errors;
use super::draft::LineStarts;
use super::words::shown;

/// The beginning of the message about a word that stands twice.
const DUPLICATE: &str = "duplicate key";

/// The end of messages about lines that are no TOML.
const SYNTAX: &str = ". A line is [switch.NAME], [network.NAME] or [host.NAME], or a word and its value, such as \
                      `site = \"a\"`";

/// A word with its table: `host`, `n2`, `eth0`.
type WordPath = Vec<String>;

/// The words at which lines begin, each with its table.
#[derive(Default)]
struct WordPaths {
    /// The word of each line.
    at: BTreeMap<usize, WordPath>,
    /// The first line of each word.
    first: BTreeMap<WordPath, usize>,
}

/// Tells the errors of a text that is no TOML.
pub(super) fn tell(text: &str, lines: &LineStarts, faults: &[Error], errors: &mut Errors) {
    let is_duplicate = |fault: &Error| fault.message().starts_with(DUPLICATE);
    let paths =
        if faults.iter().any(is_duplicate) { WordPaths::of(text) } else { WordPaths::default() };
    for fault in faults {
        let line = lines.line(fault.span().map_or(text.len(), |span| span.start));
        let word = || fault.span().and_then(|span| text.get(span)).unwrap_or_default();
        let what = match is_duplicate(fault) {
            true => paths.twice(line, word()),
            false => fault.message().trim().replace('\n', " ") + SYNTAX,
        };
        errors.add(line, what);
    }
}

impl WordPaths {
    fn of(text: &str) -> Self {
        let mut paths = Self::default();
        let mut table = WordPath::new();
        for (number, line) in (1..).zip(text.lines()) {
            let path = if line.trim_start().starts_with('[') {
                let Some(path) = path_of(line) else { continue };
                table.clone_from(&path);
                path
            } else {
                let word = line.split('=').next().unwrap_or_default();
                let Some(path) = path_of(&format!("{word}=0")) else { continue };
                [table.clone(), path].concat()
            };
            paths.first.entry(path.clone()).or_insert(number);
            paths.at.insert(number, path);
        }
        paths
    }

    /// The error that the word of this line stands twice.
    fn twice(&self, line: usize, word: &str) -> String {
        let path = self.at.get(&line);
        let first = path.and_then(|path| self.first.get(path)).filter(|first| **first < line);
        match (path, first) {
            (Some(path), Some(first)) => {
                format!("{}, first in line {first}: keep one", stands_twice(path))
            }
            _ => format!("`{}` stands twice in its table: keep one", shown(word)),
        }
    }
}

/// The words of a line that begins a table or has a number as its value.
fn path_of(line: &str) -> Option<WordPath> {
    let whole = DeTable::parse(line).ok()?;
    let mut path = WordPath::new();
    let mut table = whole.get_ref();
    while let Some((word, value)) = table.iter().next() {
        path.push(word.get_ref().clone().into_owned());
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    (!path.is_empty()).then_some(path)
}

/// The beginning of the error that a word stands twice.
fn stands_twice(path: &[String]) -> String {
    let words: Vec<String> = path.iter().map(|word| shown(word)).collect();
    match words.as_slice() {
        [kind, name] => format!("{kind} {name} is described twice"),
        [kind, host, interface] if kind == "host" => {
            format!("interface {interface} of host {host} is described twice")
        }
        [kind, name, word] => format!("`{word}` of {kind} {name} stands twice"),
        _ => format!("`{}` stands twice", words.join(".")),
    }
}
