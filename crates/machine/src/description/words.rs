//! The words of the tables, suggestions for misspelt ones, and texts of errors.

/// A word of a table, and an example of its value.
pub(super) type Word = (&'static str, &'static str);

/// The words of a switch.
pub(super) const SWITCH: &[Word] = &[
    ("ports", "24"),
    ("rate", "\"1 Gb/s\""),
    ("uplink", "\"core\""),
    ("uplink-rate", "\"10 Gb/s\""),
];

/// The words of a network.
pub(super) const NETWORK: &[Word] =
    &[("addresses", "\"10.77.1.0/24\""), ("site", "\"a\""), ("gateway", "[\"n2\", \"n3\"]")];

/// The words of an interface.
pub(super) const INTERFACE: &[Word] = &[
    ("network", "\"a\""),
    ("switch", "\"edge\""),
    ("port", "3"),
    ("rate", "\"1 Gb/s\""),
    ("address", "\"10.77.1.2\""),
];

/// The most letters of a text that an error repeats.
const SHOWN_MAX: usize = 60;

/// The most names among which a suggestion is looked for.
const COMPARED_MAX: usize = 200;

/// The most letters by which a word may differ from the one that was meant.
const NEAR: usize = 2;

/// The word that differs least from this one, if it differs little.
pub(super) fn near<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = if word.len() < 4 { 1 } else { NEAR };
    let near = words.take(COMPARED_MAX).map(|other| (distance(word, other), other)).min()?;
    (near.0 <= most && near.0 < near.1.len()).then_some(near.1)
}

/// The number of letters to insert, delete or change; more than `NEAR` if the lengths differ by so much.
fn distance(from: &str, to: &str) -> usize {
    if from.len().abs_diff(to.len()) > 4 * NEAR {
        return NEAR + 1;
    }
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (number, letter) in from.chars().enumerate() {
        let mut before = row[0];
        row[0] = number + 1;
        for (at, other) in to.iter().enumerate() {
            let changed = before + usize::from(letter != *other);
            before = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(before + 1);
        }
    }
    row[to.len()]
}

/// The error that a word is none of a table.
pub(super) fn unknown_word(word: &str, table: &str, words: &[Word]) -> String {
    let names = || words.iter().map(|(name, _)| *name);
    match near(word, names()) {
        Some(near) => format!("`{}` is no word of {table}; `{near}` is", shown(word)),
        None => {
            let all: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            format!("`{}` is no word of {table}; its words are {}", shown(word), all.join(", "))
        }
    }
}

/// The error that a name stands for nothing.
pub(super) fn unknown_name<'a>(
    kind: &str,
    name: &str,
    names: impl Iterator<Item = &'a str>,
) -> String {
    let cure = match near(name, names) {
        Some(near) => format!("{kind} {near} is"),
        None => format!("write a table [{kind}.{}]", key(name)),
    };
    format!("{kind} {} is described nowhere; {cure}", shown(name))
}

/// A text as an error repeats it: without control characters, and not too long.
pub(super) fn shown(text: &str) -> String {
    let mut letters = text.chars();
    let mut shown: String = letters.by_ref().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if letters.next().is_some() {
        shown += "...";
    }
    shown
}

/// A name as a key of the file.
fn key(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if name.chars().all(is_bare) { name.to_owned() } else { format!("\"{}\"", shown(name)) }
}

/// A list of texts for people: `a, b and c`.
pub(super) fn list(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
