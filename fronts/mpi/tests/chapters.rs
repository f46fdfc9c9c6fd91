//! One C program for each chapter of the functions: every file in `tests/c/chapters/` is compiled and
//! run, with our library and, where it is there, with MPICH's, so that the programs are tested too.
//!
//! A program whose first lines say `Only here: REASON` is not run with MPICH's.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Launcher, Library, mpich_or_skip, one_host, program, run};
use landeck_testing::Watchdog;
use landeck_testing::program::assert_wrote;

/// How long all programs may take together, with compiling.
const LIMIT: Duration = Duration::from_secs(1_000);

/// The programs: name and text.
fn chapters() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/chapters");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("as above").path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().expect("it is a file").to_string_lossy().into_owned();
        (name, fs::read_to_string(path).expect("it is a text"))
    };
    paths.iter().filter(|path| path.extension().is_some_and(|end| end == "c")).map(read).collect()
}

/// Runs all programs with so many processes; over several hosts, those that are not about one host. Each number is a
/// test of its own: under a sanitizer one of them takes minutes.
fn every_chapter_works_with(processes: u32) {
    let _watchdog = Watchdog::start(LIMIT);
    for (name, _) in chapters() {
        let path = format!("chapters/{name}");
        if one_host(&path).is_some() {
            continue;
        }
        let program = program(&path);
        let output = run(Launcher::Landeck, Library::Ours, processes, &program, &[]);
        assert_wrote(&output, &format!("{name}: {processes} processes agree"));
    }
}

#[test]
fn every_chapter_works_alone() {
    every_chapter_works_with(1);
}

#[test]
fn every_chapter_works_with_two_processes() {
    every_chapter_works_with(2);
}

#[test]
fn every_chapter_works_with_three_processes() {
    every_chapter_works_with(3);
}

#[test]
fn every_chapter_works_with_five_processes() {
    every_chapter_works_with(5);
}

#[test]
fn every_chapter_works_with_another_library_of_the_abi() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("every_chapter_works_with_another_library_of_the_abi") {
        return;
    }
    for (name, text) in chapters() {
        if text.lines().take(5).any(|line| line.contains("Only here:")) {
            continue;
        }
        let program = program(&format!("chapters/{name}"));
        let once = || run(Launcher::Mpiexec, Library::Mpich, 2, &program, &[]);
        let output = once();
        // Now and then its transport takes a bandwidth for zero, and reaches nobody.
        let said = String::from_utf8_lossy(&output.stdout);
        let is_unlucky = said.contains("failed to unpack address, invalid bandwidth");
        let output = if is_unlucky { once() } else { output };
        assert_wrote(&output, &format!("{name}: 2 processes agree"));
    }
}
