//! `deck.h`: types, errors and functions.

use std::fmt::Write;

use super::description::Description;

const HEAD: &str = "\
/* DECK: threads, semaphores, messages, mailboxes, shared segments, groups and collective operations of
 * the processes of a job.
 *
 * Every function returns DECK_OK or the number of an error, unless it says otherwise: deck_strerror says
 * what a number means, deck_error_text what was wrong with the last call, DECK_CHECK(call) ends the program
 * where a call fails. Manual pages: deck(7).
 * Made by `cargo xtask deck`.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef LANDECK_DECK_H
#define LANDECK_DECK_H

/* The version of this header; deck_version gives that of the library. */
";

const FOOT: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

const VERSION: [(&str, &str); 3] = [
    ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
    ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
    ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
];

/// The widest line of a comment.
const WIDTH: usize = 104;

/// The text of the header.
pub(super) fn text(description: &Description) -> String {
    let mut text = HEAD.to_owned();
    for (part, number) in VERSION {
        let _ = writeln!(text, "#define DECK_VERSION_{part} {number}");
    }
    let _ =
        write!(text, "\n{}\n/* Errors. */\nenum deck_error {{\n    DECK_OK = 0", description.head);
    for error in &description.errors {
        let _ = write!(text, ",\n    {} = {}", error.name, error.number);
    }
    text += "\n};\n";
    for chapter in &description.chapters {
        let _ = write!(text, "\n\n{}", comment(&format!("{}. {}", chapter.title, chapter.text)));
        for function in &chapter.functions {
            let _ = write!(text, "\n{}", comment(&function.brief));
            let is_ignored = function.returns.is_some() || function.may_be_ignored;
            let mark = if is_ignored { "" } else { " DECK_NODISCARD" };
            let _ = writeln!(text, "{}{mark};", function.declaration());
        }
    }
    text + FOOT
}

/// A comment in as many lines as it needs.
fn comment(words: &str) -> String {
    let mut text = "/*".to_owned();
    let mut column = text.len();
    for word in words.split_whitespace() {
        if column + 1 + word.len() + 3 > WIDTH {
            text += "\n *";
            column = 2;
        }
        text.push(' ');
        text += word;
        column += 1 + word.len();
    }
    text + " */\n"
}

#[cfg(test)]
mod tests {
    use super::comment;

    #[test]
    fn comments_are_no_wider_than_a_line() {
        let text = comment(&"word ".repeat(60));
        assert!(text.lines().all(|line| line.len() <= super::WIDTH), "{text}");
        assert!(text.starts_with("/* word") && text.ends_with("word */\n"));
    }
}
