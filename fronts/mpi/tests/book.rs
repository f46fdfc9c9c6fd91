//! The program in C on the first page.

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
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("`rank 1 of 4: 0 from the left`"), "the page shows a line of its output");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first.c");
    fs::write(&source, block(&page, "c")).unwrap();
    let program = compiled_by(Compiler::Ours, &source);
    let output = run(Launcher::Landeck, Library::Ours, 4, &program, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let expected = [3, 0, 1, 2].into_iter().enumerate();
    let expected: Vec<String> =
        expected.map(|(rank, left)| format!("rank {rank} of 4: {left} from the left")).collect();
    assert_eq!(lines, expected);
}

/// Returns the text between the first fences of a language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) =
        page.split_once(&format!("```{language}\n")).expect("the page has no such program");
    rest.split_once("```").expect("the program has no end").0
}
