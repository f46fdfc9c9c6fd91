//! One Rust file as the rules see it: its text, its code without comments and texts, and which
//! part of it is test code.

use std::ops::Range;

/// A Rust file.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    /// The text with comments and the contents of literals blanked; the same length, the same lines.
    pub(super) code: String,
    line_starts: Vec<usize>,
    tests: Vec<Range<usize>>,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let code = blank(text);
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let whole = std::iter::once(0..text.len());
        let tests = if is_test_file(path) { whole.collect() } else { test_items(&code) };
        Self { path: path.to_owned(), text: text.to_owned(), code, line_starts, tests }
    }

    /// The lines of the text, without their ends.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines()
    }

    /// The line of a place, counted from 1.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    /// Whether a place is test code.
    pub(super) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Whether a command of the house writes the file.
    pub(super) fn is_made(&self) -> bool {
        self.lines().take(3).any(|line| line.contains("Made by `cargo xtask"))
    }

    /// Names the files of the modules that only a test build has, without `.rs`: those of a folder next to this file, or of
    /// the file's own folder.
    pub(super) fn test_modules(&self) -> Vec<String> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let below = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            _ => self.path.trim_end_matches(".rs").to_owned(),
        };
        let named = self.tests.iter().filter_map(|range| {
            let declaration = self.code.get(range.clone())?.rsplit_once(']')?.1.trim();
            declaration.strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name)
        });
        named.map(|name| format!("{below}/{name}")).collect()
    }

    /// Takes the whole file for a part of the tests.
    pub(super) fn be_test(&mut self) {
        self.tests = std::iter::once(0..self.text.len()).collect();
    }

    /// The places where the code says `phrase` as whole words.
    pub(super) fn places_of<'a>(&'a self, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.code.match_indices(phrase).map(|(at, _)| at).filter(move |at| {
            let before = self.code[..*at].chars().next_back();
            let after = self.code[at + phrase.len()..].chars().next();
            let open_end = phrase.ends_with(|last: char| !is_word(last));
            !before.is_some_and(is_word) && (open_end || !after.is_some_and(is_word))
        })
    }
}

/// The place after the brace that closes the first one opened from `from` on, or after a `;` that
/// comes before any.
pub(super) fn end_of_item(code: &str, from: usize) -> Option<usize> {
    let (mut braces, mut others) = (0usize, 0usize);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => others += 1,
            b')' | b']' => others = others.saturating_sub(1),
            b'{' => braces += 1,
            b'}' if braces <= 1 => return Some(at + 1),
            b'}' => braces -= 1,
            b';' if braces == 0 && others == 0 => return Some(at + 1),
            _ => {}
        }
    }
    None
}

pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// A file that only tests are built from: a folder of tests, or the crate that helps them.
fn is_test_file(path: &str) -> bool {
    path.starts_with("crates/testing/")
        || path.split('/').any(|part| matches!(part, "tests" | "benches" | "tests.rs"))
}

/// The items that only a test build has: those under `#[test]` and `#[cfg(test)]` and its like.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    for (start, _) in code.match_indices("#[") {
        let Some(length) = code[start..].find(']') else { continue };
        let attribute = &code[start + 2..start + length];
        if is_test_attribute(attribute) {
            let end = end_of_item(code, start + length + 1).unwrap_or(code.len());
            items.push(start..end);
        }
    }
    items
}

fn is_test_attribute(attribute: &str) -> bool {
    let words: Vec<_> = attribute.split(|c: char| !is_word(c)).filter(|w| !w.is_empty()).collect();
    match words.first() {
        Some(&"test") => words.len() == 1,
        Some(&"cfg") => {
            words.iter().any(|word| matches!(*word, "test" | "loom" | "fuzzing"))
                && !words.contains(&"not")
        }
        _ => false,
    }
}

/// Blanks comments and what stands inside literals; keeps every line end.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of_blank(bytes, at);
        match end {
            Some(end) => {
                for byte in &mut code[at..end] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8(code).expect("every byte of a blanked character is a space")
}

/// If a comment or literal starts here, the place after it.
fn end_of_blank(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let length = if rest.starts_with(b"//") {
        rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
    } else if rest.starts_with(b"/*") {
        block_comment(rest)
    } else if rest[0] == b'"' {
        quoted(rest, b'"')
    } else if rest[0] == b'\'' {
        character(rest)?
    } else if rest[0] == b'r' && !follows_word(bytes, at) {
        raw_text(rest)?
    } else {
        return None;
    };
    Some(at + length)
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character literal; a lifetime is none.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(quoted(rest, b'\''));
    }
    // One character of at most four bytes, then the closing quote.
    (2..=5)
        .find(|at| rest.get(*at) == Some(&b'\''))
        .filter(|at| std::str::from_utf8(&rest[1..*at]).is_ok_and(|text| text.chars().count() == 1))
        .map(|at| at + 1)
}

fn raw_text(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = 2 + hashes;
    let end = rest[body..].windows(close.len()).position(|window| window == close);
    Some(end.map_or(rest.len(), |end| body + end + close.len()))
}

/// Whether an `r` is the end of a longer word; `br"..."` and `cr"..."` are raw texts too.
fn follows_word(bytes: &[u8], at: usize) -> bool {
    let word: Vec<u8> =
        bytes[..at].iter().rev().take_while(|byte| is_word(char::from(**byte))).copied().collect();
    !matches!(word.as_slice(), b"" | b"b" | b"c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_blanked_and_nothing_else() {
        let text = "let a = \"unsafe // x\"; // unsafe\n/* un /* safe */ */ let b = 'u'; f::<'u>(r#\"unsafe\"#)";
        let source = Source::new("a.rs", text);
        assert_eq!(source.code.len(), text.len());
        assert_eq!(source.places_of("unsafe").count(), 0);
        assert!(source.code.contains("let b = "));
        assert!(source.code.contains("f::<'u>("));
    }

    #[test]
    fn words_are_found_whole() {
        let source = Source::new("a.rs", "brand rand my_rand rand::random std::thread::spawn");
        assert_eq!(source.places_of("rand").count(), 2);
        assert_eq!(source.places_of("thread::").count(), 1);
    }

    #[test]
    fn test_items_are_known() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { x() }\n}\nfn c() {}\n\
                    #[cfg(not(test))]\nfn d() {}\n#[cfg(all(test, loom))] use e;\nfn f() {}";
        let source = Source::new("a.rs", text);
        let is_test = |phrase: &str| source.is_test(text.find(phrase).unwrap());
        assert!(!is_test("fn a"));
        assert!(is_test("x()"));
        assert!(!is_test("fn c"));
        assert!(!is_test("fn d"));
        assert!(is_test("use e"));
        assert!(!is_test("fn f"));
        assert!(Source::new("crates/a/tests/b.rs", "fn a() {}").is_test(3));
    }

    #[test]
    fn lines_are_counted_from_one() {
        let source = Source::new("a.rs", "a\nb\nc");
        assert_eq!(source.line_of(0), 1);
        assert_eq!(source.line_of(2), 2);
        assert_eq!(source.line_of(4), 3);
    }
}
