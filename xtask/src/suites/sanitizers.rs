//! The tests of the fronts for MPI and DECK with their libraries and their C programs built for a sanitizer:
//! one finds wrong uses of memory and what C leaves undefined, the other races between threads.
//!
//! The libraries are built by a nightly compiler, for races together with the standard library. The tests
//! themselves and the launcher are built as always: the sanitizer of races does not bear what a launcher
//! does between the making of a process and its program.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::runner::Runner;
use super::tally::Tally;
use crate::Problem;

/// One of them.
struct Sanitizer {
    /// As compilers name it.
    name: &'static str,
    /// As its runtime is named.
    runtime: &'static str,
    /// Whether the standard library must be built for it too.
    needs_sources: bool,
}

const ADDRESS: Sanitizer = Sanitizer { name: "address", runtime: "asan", needs_sources: false };
const THREAD: Sanitizer = Sanitizer { name: "thread", runtime: "tsan", needs_sources: true };

/// The options of a runtime. An allocation that fails returns null, as without a sanitizer: the tests rely on that.
const OPTIONS: &str = "allocator_may_return_null=1";

/// The packages of the libraries.
const PACKAGES: [&str; 2] = ["--package=landeck-mpi", "--package=landeck-deck"];

/// Modules of the fronts' tests whose library is ours; `programs` is one of both fronts. A test that runs with
/// the library of others is left out.
const MODULES: [&str; 2] = ["chapters::", "programs::"];

/// How their test programs are run.
const TESTS: [&str; 5] =
    ["--test=all", "--no-fail-fast", "--", "--skip=another_library", "--test-threads=1"];

/// Wrong uses of memory, leaks, and what C leaves undefined.
pub(super) fn addresses(runner: &Runner) -> Result<Tally, Problem> {
    run(runner, &ADDRESS)
}

/// Races between threads of a process.
pub(super) fn races(runner: &Runner) -> Result<Tally, Problem> {
    run(runner, &THREAD)
}

fn run(runner: &Runner, sanitizer: &Sanitizer) -> Result<Tally, Problem> {
    let compiler = match Nightly::find(sanitizer) {
        Ok(compiler) => compiler,
        Err(why) => return Ok(Tally::skipped_one(&format!("{}: {why}", sanitizer.name))),
    };
    let folder = runner.root().join("target").join(sanitizer.name);
    let mut build = runner.cargo(&["+nightly", "build"]);
    build.args(PACKAGES).arg("--target").arg(&compiler.host).env("CARGO_TARGET_DIR", &folder);
    build.env("RUSTFLAGS", format!("-Zsanitizer={}", sanitizer.name));
    if sanitizer.needs_sources {
        build.arg("-Zbuild-std=std,panic_unwind");
    }
    let mut tally =
        runner.one(&format!("libraries for the {} sanitizer", sanitizer.name), build)?;
    if tally.failed > 0 {
        return Ok(tally);
    }
    let mut tests = runner.cargo(&["test"]);
    tests.args(PACKAGES).args(TESTS);
    match runner.named() {
        [] => tests.args(MODULES),
        named => tests.args(named),
    };
    tests.env("LANDECK_SANITIZER", sanitizer.name);
    tests.env("LANDECK_SANITIZER_RUNTIME", &compiler.runtime);
    let library = folder.join(&compiler.host).join("debug/libmpi_abi.so");
    tests.env("LANDECK_SANITIZED_LIBRARY", library);
    tests.env("ASAN_OPTIONS", OPTIONS).env("TSAN_OPTIONS", OPTIONS);
    tally.add(&runner.counted(tests)?);
    Ok(tally)
}

/// A compiler that has what it takes.
struct Nightly {
    /// The target that it builds for where it runs.
    host: String,
    /// The runtime of the sanitizer.
    runtime: PathBuf,
}

impl Nightly {
    /// Looks for it; else says what is missing.
    fn find(sanitizer: &Sanitizer) -> Result<Self, String> {
        let missing = |what: &str| {
            format!("there is no {what} (rustup toolchain install nightly --component rust-src)")
        };
        let version = said(&["-vV"]).ok_or_else(|| missing("nightly compiler"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or_else(|| missing("nightly compiler"))?.to_owned();
        let folder = said(&["--print=sysroot"]).ok_or_else(|| missing("nightly compiler"))?;
        let folder = Path::new(folder.trim()).join("lib/rustlib");
        if sanitizer.needs_sources && !folder.join("src/rust/library/std").is_dir() {
            return Err(missing("source of the standard library for it"));
        }
        let runtime = format!("librustc-nightly_rt.{}.a", sanitizer.runtime);
        let runtime = folder.join(&host).join("lib").join(runtime);
        if !runtime.is_file() {
            return Err(format!("{} is not there", runtime.display()));
        }
        Ok(Self { host, runtime })
    }
}

/// Returns the output of the nightly compiler.
fn said(arguments: &[&str]) -> Option<String> {
    let output = Command::new("rustc").arg("+nightly").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
