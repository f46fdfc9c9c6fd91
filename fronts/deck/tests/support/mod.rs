//! Builds the C programs against the library under test and runs them under the launcher.

#[path = "../../../mpi/tests/support/sanitizer.rs"]
mod sanitizer;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use landeck_testing::jobs::{self, OneHost};
use landeck_testing::program::{build, compiler, offer_library, shared_headers, succeed};
use landeck_testing::{Trail, Watchdog};

/// How long one run of a program may take.
pub(crate) const RUN_LIMIT: Duration = Duration::from_secs(150);
/// How long everything that a test starts may go on after its end.
const GONE_LIMIT: Duration = Duration::from_secs(60);

/// Limits the time of a test. What cargo has to build for it is built before.
pub(crate) fn watched(limit: Duration) -> Watchdog {
    tools();
    Watchdog::start(limit)
}

/// Runs programs under `landeck run` with these arguments, to the end of all.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let trail = Trail::new();
    // Where every access is looked at, it takes many times as long.
    let slowness = if sanitizer::wanted().is_some() { 5 } else { 1 };
    let output = trail.run(&mut launcher(arguments), slowness * RUN_LIMIT);
    trail.assert_gone(GONE_LIMIT);
    output
}

/// The programs whose jobs stay on one host when those of the others run over several.
const ONE_HOST: OneHost = OneHost::new(include_str!("../one-host.txt"));

/// `landeck run` with these arguments, whose programs find the library under test, on the hosts where the jobs of tests
/// run.
pub(crate) fn launcher(arguments: &[&str]) -> Command {
    let programs = arguments.iter().filter_map(|word| Path::new(word).strip_prefix("/").ok());
    let mut names = programs.filter_map(|path| path.file_name()?.to_str());
    let mut command = match names.find_map(|name| ONE_HOST.reason(name)) {
        Some(_) => jobs::run_here(&tools().launcher),
        None => jobs::run(&tools().launcher, processes(arguments)),
    };
    command.args(arguments).env("LD_LIBRARY_PATH", &tools().libraries);
    command
}

/// The sum of all numbers behind `-n`.
fn processes(arguments: &[&str]) -> usize {
    let pairs = arguments.windows(2).filter(|pair| pair[0] == "-n");
    pairs.map(|pair| pair[1].parse::<usize>().expect("a number of processes")).sum()
}

/// A program by itself.
pub(crate) fn alone(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", &tools().libraries);
    command
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
        making.arg("-I").arg(own.join("../mpi/include")).arg("-I").arg(shared_headers());
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

/// The launcher.
pub(crate) fn launcher_path() -> &'static Path {
    &tools().launcher
}

/// The folder with the libraries under test.
pub(crate) fn libraries() -> &'static Path {
    &tools().libraries
}

/// The library under test.
pub(crate) fn library() -> PathBuf {
    tools().libraries.join("libdeck.so.1")
}

/// The tools of every test, built once.
struct Tools {
    launcher: PathBuf,
    /// Holds the libraries under the names by which the linker and the loader look for them.
    libraries: PathBuf,
    programs: PathBuf,
}

fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let built = build(env!("CARGO"));
        let sanitizer = sanitizer::wanted();
        // What is built for a sanitizer lies apart.
        let own = built
            .join(sanitizer.map_or_else(|| "deck".to_owned(), |it| format!("deck-{}", it.name)));
        let (libraries, programs) = (own.join("lib"), own.join("bin"));
        let from = sanitizer.and_then(|it| it.library.parent()).unwrap_or(&built);
        fs::create_dir_all(&programs).expect("the target folder can be written");
        for name in ["libdeck", "libmpi_abi"] {
            offer_library(&libraries, name, &from.join(name).with_extension("so"));
        }
        Tools { launcher: built.join("landeck"), libraries, programs }
    })
}
