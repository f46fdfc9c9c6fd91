//! `deck.h` compiles in C and C++ without a warning, and says what the description and the library
//! say.

#[allow(dead_code)] // the other tests use the rest
mod support;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use landeck_testing::Watchdog;
use landeck_testing::program::{compiler, succeed};
use support::library;

/// How long one test may take, with building.
const LIMIT: Duration = Duration::from_secs(400);

/// The signatures of the paper's Figure 4.
const OF_THE_PAPER: [(&str, &str); 6] = [
    ("deck_group_create", "deck_group_t *g, char *g_name, int min"),
    ("deck_group_destroy", "deck_group_t *g"),
    ("deck_group_join", "deck_group_t *g, deck_mbox_t *mb, char *name"),
    ("deck_group_leave", "deck_group_t *g"),
    ("deck_group_bcast", "deck_group_t *g, deck_msg_t *msg"),
    ("deck_group_sync", "deck_group_t *g"),
];

/// One function of the description: its name and the text of its parameters.
struct Function {
    name: String,
    returns: String,
    parameters: String,
}

fn own() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All functions of the description.
fn functions() -> Vec<Function> {
    let mut functions = Vec::new();
    for path in fs::read_dir(own().join("api")).expect("the folder is there") {
        let path = path.expect("as above").path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("the table is there");
        let table: toml::Table = text.parse().expect("it is a table");
        let rows = table.get("function").and_then(toml::Value::as_array);
        for row in rows.into_iter().flatten() {
            let list = row["parameters"].as_array().expect("a list");
            let list: Vec<_> = list.iter().filter_map(toml::Value::as_str).collect();
            functions.push(Function {
                name: row["name"].as_str().expect("a name").to_owned(),
                returns: row.get("returns").and_then(toml::Value::as_str).unwrap_or("int").into(),
                parameters: if list.is_empty() { "void".into() } else { list.join(", ") },
            });
        }
    }
    functions
}

/// A program in which every function has the type of the description, and every error its number.
fn program() -> String {
    let mut text = "#include <deck.h>\n#include <stdio.h>\nint main(void) {\n".to_owned();
    for Function { name, returns, parameters } in functions() {
        let _ = writeln!(
            text,
            "    {{ {returns} (*function)({parameters}) = {name}; if (!function) return 1; }}"
        );
    }
    let errors = fs::read_to_string(own().join("api/errors.toml")).expect("it is there");
    let errors: toml::Table = errors.parse().expect("it is a table");
    for error in errors["error"].as_array().expect("a list") {
        let number = error["number"].as_integer().expect("a number");
        let name = error["name"].as_str().expect("a name");
        let _ = writeln!(text, "    if ({name} != {number}) return 2;");
    }
    text + "    if (sizeof(deck_msg_t) != 8) return 3;\n    puts(\"as described\");\n    return 0;\n}\n"
}

#[test]
fn the_header_is_the_description_in_every_language() {
    let _watchdog = Watchdog::start(LIMIT);
    let folder = library().with_file_name("header");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    for (variable, usual, standard, end) in [
        ("CC", "cc", "c89", "c"),
        ("CC", "cc", "c11", "c"),
        ("CC", "cc", "c17", "c"),
        ("CXX", "c++", "c++98", "cpp"),
        ("CXX", "c++", "c++17", "cpp"),
    ] {
        let source = folder.join(format!("header.{end}"));
        fs::write(&source, program()).expect("the target folder can be written");
        let target: PathBuf = folder.join("header");
        let mut making = Command::new(compiler(variable, usual));
        making.arg(format!("-std={standard}")).args(["-Wall", "-Wextra", "-Werror", "-pedantic"]);
        making.arg("-Wno-address").arg("-I").arg(own().join("include"));
        succeed(making.arg(&source).arg(library()).arg("-o").arg(&target));
        let libraries = library().with_file_name("");
        let output = succeed(Command::new(&target).env("LD_LIBRARY_PATH", libraries));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "as described\n");
    }
}

#[test]
fn the_library_exports_what_is_described_and_nothing_else() {
    let _watchdog = Watchdog::start(LIMIT);
    let output = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let text = String::from_utf8_lossy(&output.stdout);
    let exported: BTreeSet<_> =
        text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let functions = functions();
    let described: BTreeSet<_> = functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(exported, described);
    assert!(described.iter().all(|name| name.starts_with("deck_")));
    let output = succeed(Command::new("readelf").arg("-d").arg(library()));
    assert!(String::from_utf8_lossy(&output.stdout).contains("[libdeck.so.1]"));
}

#[test]
fn the_papers_functions_have_the_papers_signatures() {
    let functions = functions();
    for (name, parameters) in OF_THE_PAPER {
        let function = functions.iter().find(|function| function.name == name);
        let function = function.unwrap_or_else(|| panic!("there is no {name}"));
        assert_eq!((function.returns.as_str(), function.parameters.as_str()), ("int", parameters));
    }
}
