//! The header, compared with the description of the ABI by a program that is made here: every
//! constant with its type and value, every layout, the type of every function. In the oldest and the
//! newer standards of C and C++, without a warning.

#[allow(dead_code)] // the other tests use the rest
mod support;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use landeck_testing::program::{assert_wrote, compiler};
use landeck_testing::{Trail, Watchdog};
use support::{library, peer_or_skip, skip};

/// How long one test may take.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a compiler, or the program it made, may take.
const STEP_LIMIT: Duration = Duration::from_secs(150);

/// The languages: the variable that names the compiler, the usual one, the standard, the end of the
/// file's name.
const LANGUAGES: [(&str, &str, &str, &str); 5] = [
    ("CC", "cc", "c89", "c"),
    ("CC", "cc", "c11", "c"),
    ("CC", "cc", "c17", "c"),
    ("CXX", "c++", "c++98", "cpp"),
    ("CXX", "c++", "c++17", "cpp"),
];

/// The sizes and offsets of types that a program of this ABI relies on.
const LAYOUTS: &str = "
    CHECK(sizeof(MPI_Aint) == sizeof(void *) && (MPI_Aint)-1 < 0);
    CHECK(sizeof(MPI_Count) == 8 && (MPI_Count)-1 < 0);
    CHECK(sizeof(MPI_Offset) == 8 && (MPI_Offset)-1 < 0);
    CHECK(sizeof(MPI_Status) == 32 && sizeof(MPI_Status[3]) == 96);
    CHECK(offsetof(struct aligned, status) == 4);
    CHECK(offsetof(MPI_Status, MPI_SOURCE) == 0);
    CHECK(offsetof(MPI_Status, MPI_TAG) == 4);
    CHECK(offsetof(MPI_Status, MPI_ERROR) == 8);
    CHECK(MPI_F_STATUS_SIZE * sizeof(int) == sizeof(MPI_Status));
    CHECK(MPI_F_SOURCE * sizeof(int) == offsetof(MPI_Status, MPI_SOURCE));
    CHECK(MPI_F_TAG * sizeof(int) == offsetof(MPI_Status, MPI_TAG));
    CHECK(MPI_F_ERROR * sizeof(int) == offsetof(MPI_Status, MPI_ERROR));
    CHECK(sizeof(MPI_T_cb_safety) == sizeof(int));
    CHECK(sizeof(MPI_T_source_order) == sizeof(int));
";

const HANDLES: [&str; 17] = [
    "MPI_Comm",
    "MPI_Datatype",
    "MPI_Errhandler",
    "MPI_File",
    "MPI_Group",
    "MPI_Info",
    "MPI_Message",
    "MPI_Op",
    "MPI_Request",
    "MPI_Session",
    "MPI_Win",
    "MPI_T_cvar_handle",
    "MPI_T_enum",
    "MPI_T_event_instance",
    "MPI_T_event_registration",
    "MPI_T_pvar_handle",
    "MPI_T_pvar_session",
];

#[test]
fn constants_layouts_and_functions_are_those_of_the_table() {
    let _watchdog = Watchdog::start(LIMIT);
    let text = text(&[constants(), LAYOUTS.to_owned(), handles(), functions()].concat());
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    for (variable, usual, standard, end) in LANGUAGES {
        let compiler = compiler(variable, usual);
        if Command::new(&compiler).arg("--version").output().is_err() {
            skip("constants_layouts_and_functions_are_those_of_the_table", "no C++ compiler");
            continue;
        }
        for options in [&[][..], &["-DLANDECK_STRICT_ABI"]] {
            let mut command = Command::new(&compiler);
            command
                .arg(format!("-std={standard}"))
                .arg("-pedantic")
                .args(options)
                .arg("-I")
                .arg(&include);
            let output = compiled_and_run(command, &text, standard, end, &library());
            assert_wrote(&output, "header: as in the table");
        }
    }
}

#[test]
fn the_header_of_another_library_has_the_same_constants() {
    let _watchdog = Watchdog::start(LIMIT);
    let test = "the_header_of_another_library_has_the_same_constants";
    let Some(launcher) = peer_or_skip("mpich", "mpiexec", test) else { return };
    let folder = launcher.parent().and_then(Path::parent).expect("it lies in FOLDER/bin");
    let text = text(&[constants(), LAYOUTS.to_owned(), handles()].concat());
    let mut command = Command::new(compiler("CC", "cc"));
    command.args(["-std=c11", "-DMPI_ABI", "-I"]).arg(folder.join("include"));
    let library = folder.join("lib/libmpi_abi.so.1");
    let output = compiled_and_run(command, &text, "other", "c", &library);
    assert_wrote(&output, "header: as in the table");
}

/// The rows of a table of the description.
fn rows(table: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(table).expect("the table is there");
    text.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect()).collect()
}

fn description() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("abi")
}

/// A statement for each constant: it has this type, and this value.
fn constants() -> String {
    let rows = rows(&description().join("constants.csv"));
    assert_eq!(rows.len(), 365);
    let mut text = String::new();
    for row in rows {
        let (name, kind, value) = (&row[0], &row[1], &row[2]);
        let end = match kind.split_once(':') {
            Some(("callback", declared)) => format!("{declared}value = {name}"),
            Some((_, declared)) => format!("{declared} value = {name}"),
            None if kind == "offset_const" => format!("MPI_Offset value = {name}"),
            // It must be one at compile time as well.
            None => format!("enum {{ fixed = {name} }}; int value = fixed"),
        };
        let end = end.replace('*', " *");
        let _ = writeln!(text, "    {{ {end}; SAME({name}, value, {value}); }}");
    }
    text
}

/// Handles are as wide as an address.
fn handles() -> String {
    HANDLES.map(|handle| format!("    CHECK(sizeof({handle}) == sizeof(void *));\n")).concat()
}

/// A statement for each function, under both names: its address is that of a function of this type.
fn functions() -> String {
    let mut text = String::new();
    let mut count = 0;
    for table in fs::read_dir(description().join("functions")).expect("the folder is there") {
        for row in rows(&table.expect("as above").path()) {
            // "int value" is what functions return whose result is no error class.
            let (name, returns) = (&row[0], row[1].trim_end_matches(" value"));
            let parameters = row[2].replace(';', ",");
            let parameters = if parameters.is_empty() { "void" } else { &parameters };
            for twin in [name.clone(), format!("P{name}")] {
                let _ = writeln!(
                    text,
                    "    {{ {returns} (*function)({parameters}) = {twin}; CHECK(function != NULL); }}"
                );
            }
            count += 1;
        }
    }
    assert_eq!(count, 664);
    text
}

/// A program around statements.
fn text(statements: &str) -> String {
    format!(
        "#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int wrong;

static void same(const char *name, intptr_t value, intptr_t wanted) {{
    if (value == wanted) return;
    printf(\"%s is %ld, not %ld\\n\", name, (long)value, (long)wanted);
    wrong++;
}}

#define SAME(name, value, wanted) same(#name, (intptr_t)value, (intptr_t)(wanted))
#define CHECK(fact) same(#fact, (fact) != 0, 1)

struct aligned {{ char first; MPI_Status status; }};

int main(void) {{
{statements}
    if (wrong == 0) puts(\"header: as in the table\");
    return wrong != 0;
}}
"
    )
}

/// Compiles a text without a warning, and runs it.
fn compiled_and_run(
    mut compiler: Command,
    text: &str,
    name: &str,
    end: &str,
    library: &Path,
) -> Output {
    let folder = library_folder(name);
    let source = folder.join(format!("header.{end}"));
    fs::write(&source, text).expect("the target folder can be written");
    let program = folder.join("header");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-Wno-address"]);
    compiler.arg(&source).arg("-o").arg(&program).arg(library);
    let trail = Trail::new();
    let output = trail.run(&mut compiler, STEP_LIMIT);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{compiler:?}:\n{complaints}");
    let libraries = library.parent().expect("it lies in a folder");
    trail.run(Command::new(program).env("LD_LIBRARY_PATH", libraries), STEP_LIMIT)
}

/// A folder for what is made here, beside the library under test.
fn library_folder(name: &str) -> PathBuf {
    let libraries = library();
    let folder = libraries.parent().expect("it lies in a folder").join(format!("header-{name}"));
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}
