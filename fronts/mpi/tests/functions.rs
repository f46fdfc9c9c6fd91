//! The description of the functions, compared with the library.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{Launcher, Library, library, program, run};
use landeck_testing::Watchdog;
use landeck_testing::program::assert_wrote;

/// How long a test may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The names of the functions that the description gives one of these bodies.
fn described(bodies: &[&str]) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("abi/functions");
    let tables = fs::read_dir(folder).expect("the folder is there");
    let rows = tables.flat_map(|table| {
        let text = fs::read_to_string(table.expect("as above").path()).expect("it is a text");
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    });
    let cell = |row: &str, place: usize| row.split(',').nth(place).unwrap_or_default().to_owned();
    rows.filter(|row| bodies.contains(&cell(row, 5).as_str())).map(|row| cell(&row, 0)).collect()
}

#[test]
fn all_functions_are_exported_under_both_names() {
    let _watchdog = Watchdog::start(LIMIT);
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output().unwrap();
    let symbols = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<_> =
        symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let names = described(&["works", "works alone", "calls back", "unsupported"]);
    assert_eq!(names.len(), 664);
    for name in &names {
        assert!(exported.contains(name.as_str()), "{name}");
        assert!(exported.contains(format!("P{name}").as_str()), "P{name}");
    }
    let others: Vec<_> = exported
        .iter()
        .filter(|name| name.starts_with("MPI") || name.starts_with("PMPI"))
        .filter(|name| !names.contains(name.trim_start_matches('P')))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn the_library_has_no_launcher_in_it() {
    let _watchdog = Watchdog::start(LIMIT);
    let output = Command::new("nm").arg("--defined-only").arg(library()).output().unwrap();
    let symbols = String::from_utf8(output.stdout).unwrap();
    let has = |package: &str| symbols.contains(package);
    assert!(has("landeck_joining"), "a process joins its job");
    let not_wanted = ["landeck_launch", "landeck_daemon", "landeck_hostfile", "landeck_diagnosis"];
    assert_eq!(not_wanted.map(has), [false; 4], "{not_wanted:?}");
}

#[test]
fn an_unsupported_function_says_so_to_the_error_handler() {
    let _watchdog = Watchdog::start(LIMIT);
    let names = described(&["unsupported"]);
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let output = run(Launcher::None, Library::Ours, 1, &program("unsupported"), &names);
    assert_wrote(&output, "unsupported: 1 processes agree");
}

/// The functions that `outside.c` does not call with zeroes: they end the process, take functions or dots, or
/// have no result that says anything.
const NOT_CALLED: [&str; 9] = [
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Abort",
    "MPI_Wtime",
    "MPI_Wtick",
    "MPI_Aint_add",
    "MPI_Aint_diff",
    "MPI_Pcontrol",
];

#[test]
fn outside_of_mpi_every_function_is_refused() {
    let _watchdog = Watchdog::start(LIMIT);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("abi/any-time.txt");
    let any_time = fs::read_to_string(path).expect("the list is there");
    let is_for_any_time = |name: &String| any_time.lines().any(|line| line == name);
    let is_called = |name: &String| {
        let has_no_code = name.ends_with("_toint") || name.ends_with("_fromint");
        !has_no_code && !name.starts_with("MPI_T_") && !NOT_CALLED.contains(&name.as_str())
    };
    let names = described(&["works", "works alone", "calls back", "unsupported"]);
    assert!(any_time.lines().skip(2).all(|name| names.contains(name)), "all are functions");
    let mark = |name| if is_for_any_time(&name) { format!("+{name}") } else { name };
    let words: Vec<String> = names.into_iter().filter(is_called).map(mark).collect();
    let program = program("outside").to_string_lossy().into_owned();
    let mut arguments = vec!["LANDECK_MPI_INITIAL_ERRHANDLER=mpi_errors_return", &*program];
    arguments.extend(words.iter().map(String::as_str));
    let output = run(Launcher::Landeck, Library::Ours, 2, "env".as_ref(), &arguments);
    assert_wrote(&output, "outside: 2 processes agree");
}
