//! The errors as the library knows them.

use std::fmt::Write;

use super::description::Description;

const HEAD: &str = "\
//! The errors that functions return. Made by `cargo xtask deck`.

use std::ffi::{CStr, c_int};

/// No error.
pub(crate) const OK: c_int = 0;
";

/// The text of the module.
pub(super) fn text(description: &Description) -> String {
    let mut text = HEAD.to_owned();
    for error in &description.errors {
        let name = error.name.trim_start_matches("DECK_E");
        let _ = writeln!(text, "/// {}.", capital(&error.text));
        let _ = writeln!(text, "pub(crate) const {name}: c_int = {};", error.number);
    }
    text += "\n/// Every error: its number, its name, what it says.\n";
    text += "pub(crate) const ALL: &[(c_int, &CStr, &CStr)] = &[\n";
    text += "    (0, c\"DECK_OK\", c\"no error\"),\n";
    for error in &description.errors {
        let (number, name, words) = (error.number, &error.name, &error.text);
        let _ = writeln!(text, "    ({number}, c\"{name}\", c\"{words}\"),");
    }
    text + "];\n"
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().to_string() + letters.as_str())
}
