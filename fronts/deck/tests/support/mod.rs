//! Builds the C programs against the library under test and runs them under the launcher.

#[path = "../../../mpi/tests/support/sanitizer.rs"]
mod sanitizer;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use landeck_testing::Trail;

/// How long one run of a program may take.
pub(crate) const RUN_LIMIT: Duration = Duration::from_secs(60);
/// How long everything that a test starts may go on after its end.
const GONE_LIMIT: Duration = Duration::from_secs(2);

/// Runs programs under `landeck run` with these arguments, to the end of all.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let trail = Trail::new();
    // Where every access is looked at, it takes many times as long.
    let slowness = if sanitizer::wanted().is_some() { 5 } else { 1 };
    let output = trail.run(&mut launcher(arguments), slowness * RUN_LIMIT);
    trail.assert_gone(GONE_LIMIT);
    output
}

/// `landeck run` with these arguments, whose programs find the library under test.
pub(crate) fn launcher(arguments: &[&str]) -> Command {
    let mut command = Command::new(&tools().launcher);
    command.arg("run").args(arguments).env("LD_LIBRARY_PATH", &tools().libraries);
    command
}

/// A program by itself.
pub(crate) fn alone(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", &tools().libraries);
    command
}

/// Checks that a run went well and wrote a line.
pub(crate) fn assert_wrote(output: &Output, line: &str) {
    let written = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && written.lines().any(|written| written == line),
        "wanted {line:?} and a good end, got {:?}\nstandard output: {written}\nstandard error: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
}

/// Compiles one of the C programs of the tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    compiled(&own.join(format!("tests/c/{name}.c")), &["-ldeck"])
}

/// Compiles a C program with the header and the library under test, and what else it is linked with.
pub(crate) fn compiled(source: &Path, libraries: &[&str]) -> PathBuf {
    // Another test may be running it already: it is compiled once.
    static COMPILED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = tools().programs.join(source.file_stem().expect("a file has a name"));
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.insert(target.clone()) {
        let mut making = Command::new(compiler("CC", "cc"));
        making.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread"]);
        making.arg("-I").arg(own.join("include")).arg("-I").arg(own.join("tests/c"));
        making.arg("-I").arg(own.join("../mpi/include"));
        let mut linking = making;
        if let Some(sanitizer) = sanitizer::wanted() {
            let object = target.with_extension("o");
            sanitizer.compile(&mut linking, source, &object);
            succeed(&mut linking);
            linking = Command::new(compiler("CC", "cc"));
            sanitizer.link(linking.arg("-pthread"), &object, &target);
        } else {
            linking.arg(source).arg("-o").arg(&target);
        }
        linking.arg("-L").arg(&tools().libraries).args(libraries).arg("-lm");
        succeed(&mut linking);
    }
    target
}

/// The compiler that a variable names, or the usual one.
pub(crate) fn compiler(variable: &str, usual: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| usual.into())
}

/// The library under test.
pub(crate) fn library() -> PathBuf {
    tools().libraries.join("libdeck.so.1")
}

/// What every test needs, built once.
struct Tools {
    launcher: PathBuf,
    /// Holds the libraries under the names by which the linker and the loader look for them.
    libraries: PathBuf,
    programs: PathBuf,
}

fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let built = built_folder();
        let sanitizer = sanitizer::wanted();
        // What is built for a sanitizer lies apart.
        let own = built
            .join(sanitizer.map_or_else(|| "deck".to_owned(), |it| format!("deck-{}", it.name)));
        let (libraries, programs) = (own.join("lib"), own.join("bin"));
        let from = sanitizer.and_then(|it| it.library.parent()).unwrap_or(&built).to_owned();
        fs::create_dir_all(&libraries).expect("the target folder can be written");
        fs::create_dir_all(&programs).expect("the target folder can be written");
        for name in ["libdeck.so", "libdeck.so.1", "libmpi_abi.so", "libmpi_abi.so.1"] {
            let library = from.join(name.trim_end_matches(".1"));
            let link = libraries.join(name);
            // A target folder that was copied has links into the other one.
            if fs::read_link(&link).ok().as_ref() != Some(&library) {
                let _ = fs::remove_file(&link);
                // Another test program may have been faster.
                let _ = symlink(&library, link);
            }
        }
        Tools { launcher: built.join("landeck"), libraries, programs }
    })
}

/// Builds libraries and launcher and says where they are: beside this test's own folder.
fn built_folder() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package=landeck-deck", "--package=landeck-mpi"]);
    cargo.arg("--package=landeck-launcher");
    let own = std::env::current_exe().expect("this test has a file");
    let built = own.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    if built.ends_with("release") {
        cargo.arg("--release");
    }
    succeed(&mut cargo);
    built.to_owned()
}

pub(crate) fn succeed(command: &mut Command) -> Output {
    let output =
        command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
