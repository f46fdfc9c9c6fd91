//! The program in C on the page of the first program.

#[allow(dead_code)] // the other tests use the rest
mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use landeck_testing::Watchdog;
use support::{Compiler, Launcher, Library, compiled_by, run};

#[test]
fn the_first_program_in_c_prints_what_the_page_says() {
    let _watchdog = Watchdog::start(Duration::from_secs(400));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-program.md");
    let page = fs::read_to_string(page).unwrap();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first.c");
    fs::write(&source, block(&page, "c")).unwrap();
    let program = compiled_by(Compiler::Ours, &source);
    let output = run(Launcher::Landeck, Library::Ours, 4, &program, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let mut expected: Vec<&str> =
        block(&page, "text").lines().filter(|line| line.starts_with("rank ")).collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

/// What stands between the first fences of a language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) =
        page.split_once(&format!("```{language}\n")).expect("the page has no such program");
    rest.split_once("```").expect("the program has no end").0
}
