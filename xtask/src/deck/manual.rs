//! Manual pages: one for each function, and `deck(7)` for all of them.

use std::fmt::Write;

use super::description::{Chapter, Description, Function};

/// A manual page.
pub(crate) struct Page {
    /// The name of its file: `deck_init.3`.
    pub(crate) name: String,
    /// The number of its section.
    pub(crate) section: u8,
    /// In the language of troff.
    pub(crate) text: String,
}

/// All of them.
pub(super) fn pages(description: &Description) -> Vec<Page> {
    let chapters = description.chapters.iter();
    let functions = chapters.flat_map(|chapter| {
        chapter.functions.iter().map(|function| of_function(description, chapter, function))
    });
    functions.chain([overview(description)]).collect()
}

fn of_function(description: &Description, chapter: &Chapter, function: &Function) -> Page {
    let mut text = head(&function.name, 3);
    let brief = function.brief.trim_end_matches('.');
    let _ = writeln!(text, ".SH NAME\n{} \\- {}", function.name, plain(&lower(brief)));
    let _ = writeln!(text, ".SH SYNOPSIS\n.nf\n.B #include <deck.h>\n.PP");
    let _ = writeln!(text, ".BI \"{};\"\n.fi", function.declaration());
    let _ = writeln!(text, ".PP\nLink with \\fI\\-ldeck\\fR, or compile with \\fBdeckcc\\fR.");
    let _ = writeln!(text, ".SH DESCRIPTION\n{}", plain(&function.brief));
    if !function.text.is_empty() {
        let _ = writeln!(text, ".PP\n{}", plain(&function.text));
    }
    let _ = writeln!(text, ".PP\n{}", plain(&chapter.text));
    if function.returns.is_none() {
        text += ".SH RETURN VALUE\nDECK_OK (0), or the number of an error; deck_error_text(3) says more. \
                 DECK_CHECK(\\fIcall\\fR) ends the program where the call fails; see deck_check(3).\n";
    }
    let errors = description.errors_of(function);
    if !errors.is_empty() {
        text += ".SH ERRORS\n";
        for error in errors {
            let _ = writeln!(text, ".TP\n.B {}\n{}", error.name, plain(&error.text));
        }
    }
    let others = chapter.functions.iter().filter(|other| other.name != function.name);
    let others: Vec<_> = others.map(|other| format!(".BR {} (3)", other.name)).collect();
    let _ = writeln!(text, ".SH SEE ALSO\n.BR deck (7),\n{}", others.join(",\n"));
    Page { name: format!("{}.3", function.name), section: 3, text }
}

fn overview(description: &Description) -> Page {
    let mut text = head("deck", 7);
    text += ".SH NAME\ndeck \\- threads, semaphores, messages, mailboxes, segments and groups of a job\n";
    text += ".SH SYNOPSIS\n.nf\n.B deckcc program.c \\-o program\n.B landeck run \\-n 4 ./program\n.fi\n";
    text += ".SH DESCRIPTION\n";
    for chapter in &description.chapters {
        let _ = writeln!(text, ".SS {}\n{}", chapter.title, plain(&chapter.text));
        for function in &chapter.functions {
            let _ = writeln!(text, ".TP\n.BR {} (3)\n{}", function.name, plain(&function.brief));
        }
    }
    text += ".SH ERRORS\nA function returns DECK_OK (0) or the number of an error, unless its page says otherwise. \
             DECK_CHECK(\\fIcall\\fR) ends the program where the call fails; see deck_check(3).\n";
    for error in &description.errors {
        let (name, number) = (&error.name, error.number);
        let _ = writeln!(text, ".TP\n.BR {name} \" ({number})\"\n{}", plain(&error.text));
    }
    text += ".SH SEE ALSO\n.BR landeck (1),\n.BR landeck-run (1)\n";
    Page { name: "deck.7".to_owned(), section: 7, text }
}

fn head(name: &str, section: u8) -> String {
    let (title, version) = (name.to_uppercase(), env!("CARGO_PKG_VERSION"));
    format!(".TH {title} {section} \"\" \"Landeck {version}\" \"DECK\"\n")
}

/// Words as troff shows them: what it would take for a request or a character of its own is masked.
fn plain(words: &str) -> String {
    let words = words.trim().replace('\\', "\\e").replace('`', "").replace('-', "\\-");
    match words.starts_with(['.', '\'']) {
        true => format!("\\&{words}"),
        false => words,
    }
}

fn lower(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().to_string() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{lower, plain};

    #[test]
    fn words_are_no_requests() {
        assert_eq!(plain(".TH -1 `x` \\n"), "\\&.TH \\-1 x \\en");
        assert_eq!(lower("Waits for it"), "waits for it");
    }

    #[test]
    fn a_page_needs_no_other_to_be_understood() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let pages = crate::deck::manual_pages(&root).unwrap();
        for page in &pages {
            assert!(!page.text.contains("he same, "), "{}", page.name);
            assert!(!page.text.contains("\\- the same"), "{}", page.name);
        }
    }
}
