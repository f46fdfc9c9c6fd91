//! `deck.h`: types, errors and functions.

use std::fmt::Write;

use super::description::Description;

const HEAD: &str = "\
/* DECK: threads, semaphores, messages, mailboxes, shared segments, groups and collective operations of
 * the processes of a job.
 *
 * Every function returns DECK_OK or the number of an error, unless it says otherwise: deck_strerror says
 * what a number means, deck_error_text what was wrong with the last call. Manual pages: deck(7).
 * Made by `cargo xtask deck`.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef LANDECK_DECK_H
#define LANDECK_DECK_H

";

const FOOT: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// The widest line of a comment.
const WIDTH: usize = 104;

/// The text of the header.
pub(super) fn text(description: &Description) -> String {
    let mut text = format!("{HEAD}{}\n/* Errors. */\nenum deck_error {{\n", description.head);
    text += "    DECK_OK = 0";
    for error in &description.errors {
        let _ = write!(text, ",\n    {} = {}", error.name, error.number);
    }
    text += "\n};\n";
    for chapter in &description.chapters {
        let _ = write!(text, "\n\n{}", comment(&format!("{}. {}", chapter.title, chapter.text)));
        for function in &chapter.functions {
            let _ = write!(text, "\n{}", comment(&function.brief));
            let _ = writeln!(text, "{};", function.declaration());
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
