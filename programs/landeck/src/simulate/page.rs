//! All studies of a call as one HTML page.

use std::fmt::Write as _;

use super::study::Study;
use super::table;
use crate::picture::escaped;

/// A section of the page: a heading, a picture, and a table.
pub(crate) struct Section {
    pub(crate) title: String,
    /// A sentence below the heading.
    pub(crate) note: String,
    pub(crate) svg: String,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Section {
    /// The section of a study.
    pub(crate) fn of(study: &Study, svg: String) -> Self {
        let note = "Times in microseconds, from the first call to the last return.".to_owned();
        Self { title: study.title.clone(), note, svg, rows: table::rows(study) }
    }
}

const LOOK: &str = "body{font-family:Ubuntu,sans-serif;font-weight:300;color:#1E1E1E;max-width:1200px;\
margin:2em auto;padding:0 1em}h1,h2{font-weight:400}table{border-collapse:collapse;margin:1em 0}\
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #DEDEDE;font-weight:300}\
th{font-weight:400}svg{width:100%;height:auto}.wide{overflow-x:auto}code{background:#F3F3F3;padding:.1em .3em}";

/// Writes the page.
pub(crate) fn html(title: &str, note: &str, command: &str, sections: &[Section]) -> String {
    let (title, note, command) = (escaped(title), escaped(note), escaped(command));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>{LOOK}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{note}</p>\n\
         <p>Made by <code>{command}</code></p>\n"
    );
    for section in sections {
        let (title, note) = (escaped(&section.title), escaped(&section.note));
        let _ = writeln!(page, "<h2>{title}</h2>\n<p>{note}</p>\n{}", section.svg);
        page.push_str(&table_of(&section.rows));
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn table_of(rows: &[Vec<String>]) -> String {
    let mut table = String::from("<div class=\"wide\">\n<table>\n");
    for (number, row) in rows.iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        let cells: String =
            row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        let _ = writeln!(table, "<tr>{cells}</tr>");
    }
    table.push_str("</table>\n</div>\n");
    table
}
