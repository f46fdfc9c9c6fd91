//! The paths that a file says: those of its `use` items, and those that start with `crate`, `self`
//! or `super` in its code.

use std::ops::Range;

use super::super::source::{Source, is_word};

/// One path, as it stands in the code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) at: usize,
    pub(super) path: Vec<String>,
    pub(super) brings: Brings,
}

/// The item that a path brings into the module that writes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Brings {
    Nothing,
    Name(String),
    /// Everything that the module has: `*`.
    All,
}

/// The paths of a file but those of its tests.
pub(super) fn mentions(source: &Source) -> Vec<Mention> {
    let items: Vec<_> = source.places_of("use").filter_map(|at| use_item(source, at)).collect();
    let mut mentions = Vec::new();
    for item in &items {
        let mut tokens = Tokens { code: &source.code[..item.end], at: item.start };
        use_tree(&mut tokens, &[], &mut mentions);
    }
    let is_in_item = |at: &usize| items.iter().any(|item| item.contains(at));
    for first in ["crate", "self", "super"] {
        let places = source.places_of(first).filter(|at| !is_in_item(at));
        mentions.extend(places.filter_map(|at| path_in_code(source, at)));
    }
    mentions.retain(|mention| !source.is_test(mention.at));
    mentions
}

/// Returns the text between `use` and its semicolon; `use<'a>` is no item.
fn use_item(source: &Source, at: usize) -> Option<Range<usize>> {
    let start = at + "use".len();
    let end = start + source.code[start..].find(';')?;
    (!source.code[start..].trim_start().starts_with('<')).then_some(start..end)
}

/// Reads one tree of a `use` item: a path, and behind it a name, a star or a list of trees.
fn use_tree(tokens: &mut Tokens<'_>, prefix: &[String], found: &mut Vec<Mention>) {
    let mut path = prefix.to_vec();
    let mut brings = None;
    let mut place = None;
    while let Some((at, token)) = tokens.next() {
        match token {
            "," | "}" => {
                tokens.at = at;
                break;
            }
            "::" => {}
            "{" => return use_list(tokens, &path, found),
            "*" => brings = Some(Brings::All),
            "as" => brings = tokens.next().map(|(_, name)| Brings::Name(name.to_owned())),
            "self" if !path.is_empty() => place = Some(at),
            word => {
                path.push(word.to_owned());
                place = Some(at);
            }
        }
    }
    if let (Some(at), Some(last)) = (place, path.last()) {
        let brings = brings.unwrap_or_else(|| Brings::Name(last.clone()));
        found.push(Mention { at, path, brings });
    }
}

/// Reads the trees of a list up to the brace that closes it.
fn use_list(tokens: &mut Tokens<'_>, prefix: &[String], found: &mut Vec<Mention>) {
    loop {
        use_tree(tokens, prefix, found);
        match tokens.next() {
            Some((_, ",")) => {}
            _ => return,
        }
    }
}

/// The path that starts here, unless this is a piece of a longer one or of a visibility.
fn path_in_code(source: &Source, at: usize) -> Option<Mention> {
    let before = source.code[..at].trim_end();
    if before.ends_with("::") || before.ends_with("(in") {
        return None;
    }
    let mut path = Vec::new();
    let mut tokens = Tokens { code: &source.code, at };
    loop {
        match tokens.next() {
            Some((_, word)) if word.starts_with(is_word) => path.push(word.to_owned()),
            _ => break,
        }
        match tokens.next() {
            Some((_, "::")) => {}
            _ => break,
        }
    }
    (path.len() > 1).then_some(Mention { at, path, brings: Brings::Nothing })
}

/// The words and signs of code, each with its place.
struct Tokens<'a> {
    code: &'a str,
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.code[self.at..];
        let start = self.at + rest.find(|c: char| !c.is_whitespace())?;
        let rest = &self.code[start..];
        let length = match rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()) {
            0 if rest.starts_with("::") => 2,
            0 => rest.chars().next().map_or(0, char::len_utf8),
            word => word,
        };
        self.at = start + length;
        Some((start, &rest[..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let mentions = mentions(&Source::new("a.rs", text));
        mentions.iter().map(|mention| mention.path.join("::")).collect()
    }

    #[test]
    fn a_tree_is_as_many_paths_as_it_has_leaves() {
        assert_eq!(
            said("use crate::{a::{self, B}, c, d::*};"),
            ["crate::a", "crate::a::B", "crate::c", "crate::d"]
        );
        assert_eq!(said("use super::super::a::{\n    B,\n};"), ["super::super::a::B"]);
    }

    #[test]
    fn a_path_brings_a_name_or_everything() {
        let mentions = mentions(&Source::new("a.rs", "use a::B as C; use a::*; use a::{self};"));
        let brings: Vec<_> = mentions.into_iter().map(|mention| mention.brings).collect();
        assert_eq!(brings, [Brings::Name("C".into()), Brings::All, Brings::Name("a".into())]);
    }

    #[test]
    fn paths_in_the_code_are_found_but_no_visibilities() {
        assert_eq!(said("fn f(a: &crate::a::B<u8>) { super::c() }"), ["crate::a::B", "super::c"]);
        assert_eq!(said("pub(crate) fn f(self) -> Self { pub(in crate::a) x }"), [""; 0]);
    }

    #[test]
    fn tests_say_nothing() {
        assert_eq!(said("#[cfg(test)]\nmod tests { use crate::a; }\n#[cfg(test)] use b;"), [""; 0]);
    }
}
