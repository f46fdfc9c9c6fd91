//! `deck.h` compiles in C and C++ without a warning, and says what the description and the library
//! say.

#[allow(dead_code)] // the other tests use the rest
mod support;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use landeck_testing::Watchdog;
use landeck_testing::program::{compiler, succeed};
use support::library;

/// How long one test may take, with building.
const LIMIT: Duration = Duration::from_secs(400);

/// How a reviewer of C compiles. The functions are compared with null, which is what is wanted here.
const STRICT: [&str; 6] =
    ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wwrite-strings", "-Wno-address"];

/// Languages: the variable that names the compiler, its usual name, the standard, the end of a source's name.
const LANGUAGES: [(&str, &str, &str, &str); 5] = [
    ("CC", "cc", "c89", "c"),
    ("CC", "cc", "c11", "c"),
    ("CC", "cc", "c17", "c"),
    ("CXX", "c++", "c++98", "cpp"),
    ("CXX", "c++", "c++17", "cpp"),
];

/// The signatures of the paper's Figure 4, where nothing is `const`.
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
    text += "    {\n        deck_group_options_t options = DECK_GROUP_OPTIONS_INIT;\n        \
             if (options.size != sizeof options || options.bytes) return 4;\n    }\n";
    for statement in LITERALS {
        let _ = writeln!(text, "    if (0) DECK_CHECK({statement});");
    }
    text + "    if (sizeof(deck_msg_t) != 8) return 3;\n    puts(\"as described\");\n    return 0;\n}\n"
}

/// Calls with texts as programs write them. They are compiled, not made.
const LITERALS: [&str; 8] = [
    "deck_group_create((deck_group_t *)0, \"weather\", 3)",
    "deck_group_open((deck_group_t *)0, \"weather\")",
    "deck_group_join((deck_group_t *)0, (deck_mbox_t *)0, \"weather\")",
    "deck_mbox_create((deck_mbox_t *)0, \"inbox\")",
    "deck_sem_fetch((deck_sem_t *)0, \"lock\")",
    "deck_segment_create((deck_segment_t *)0, \"field\", 8)",
    "deck_msg_pack_string((deck_msg_t *)0, \"text\")",
    "deck_collective_use((deck_group_t *)0, \"flat\")",
];

/// Compiles a program strictly, in one of the languages.
fn compiling(language: (&str, &str, &str, &str), source: &Path, target: &Path) -> Command {
    let (variable, usual, standard, _) = language;
    let mut making = Command::new(compiler(variable, usual));
    making.arg(format!("-std={standard}")).args(STRICT).arg("-I").arg(own().join("include"));
    making.arg(source).arg(library()).arg("-o").arg(target);
    making
}

/// Returns the standard output of a program that finds the library under test.
fn written(program: &Path) -> String {
    let libraries = library().with_file_name("");
    let output = succeed(Command::new(program).env("LD_LIBRARY_PATH", libraries));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_header_is_the_description_in_every_language() {
    let _watchdog = Watchdog::start(LIMIT);
    let folder = library().with_file_name("header");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    for language in LANGUAGES {
        let source = folder.join(format!("header.{}", language.3));
        fs::write(&source, program()).expect("the target folder can be written");
        let target = folder.join("header");
        succeed(&mut compiling(language, &source, &target));
        assert_eq!(written(&target), "as described\n");
    }
}

#[test]
fn the_first_program_compiles_in_every_language() {
    let _watchdog = Watchdog::start(LIMIT);
    let folder = library().with_file_name("first");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let first = own().join("../../examples/c/deck/first.c");
    for language in LANGUAGES {
        let source = folder.join(format!("first.{}", language.3));
        fs::copy(&first, &source).expect("the target folder can be written");
        let target = folder.join("first");
        succeed(&mut compiling(language, &source, &target));
        assert_eq!(written(&target), "the sum of 1 nodes is 0\n");
    }
}

#[test]
fn a_result_that_is_ignored_is_warned_of() {
    let _watchdog = Watchdog::start(LIMIT);
    let folder = library().with_file_name("ignored");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    for language in LANGUAGES {
        let source = folder.join(format!("ignored.{}", language.3));
        let main = "#include <deck.h>\nint main(void) { deck_done(); return 0; }\n";
        fs::write(&source, main).expect("the target folder can be written");
        let mut making = compiling(language, &source, &folder.join("ignored"));
        let refused = making.output().expect("there is a compiler");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains("unused-result"), "{said}");
        succeed(making.arg("-DDECK_NODISCARD="));
    }
}

#[test]
fn the_header_has_the_version_of_the_library() {
    let _watchdog = Watchdog::start(LIMIT);
    let folder = library().with_file_name("version");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let (source, target) = (folder.join("version.c"), folder.join("version"));
    let main = "#include <deck.h>\n#include <stdio.h>\nint main(void) {\n    int major, minor, patch;\n    \
                DECK_CHECK(deck_version(&major, &minor, &patch));\n    printf(\"%d.%d.%d %d.%d.%d\", major, \
                minor, patch, DECK_VERSION_MAJOR, DECK_VERSION_MINOR, DECK_VERSION_PATCH);\n    return 0;\n}\n";
    fs::write(&source, main).expect("the target folder can be written");
    succeed(&mut compiling(LANGUAGES[0], &source, &target));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(written(&target), format!("{version} {version}"));
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
fn the_papers_programs_find_the_papers_signatures() {
    let functions = functions();
    for (name, parameters) in OF_THE_PAPER {
        let function = functions.iter().find(|function| function.name == name);
        let function = function.unwrap_or_else(|| panic!("there is no {name}"));
        let without_const = function.parameters.replace("const ", "");
        assert_eq!((function.returns.as_str(), without_const.as_str()), ("int", parameters));
    }
}
