//! `cargo xtask test`: every test suite in turn, with its time, its processor time and one sum at the end.

mod clients;
mod hosts;
mod runner;
mod sanitizers;
mod side_by_side;
mod tally;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Problem, processor_time};
use runner::Runner;
use tally::Tally;

/// The selection of suites.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run the long form: thousands of kills, minutes of fuzzing, the other architecture.
    #[arg(long)]
    soak: bool,
    /// Run only the suites of these names.
    suites: Vec<String>,
    /// Of the suite "divisions" run only this part, such as 3/48: hours can be spread over days.
    #[arg(long, value_name = "K/M")]
    part: Option<String>,
    /// Of the suites "addresses" and "races" run only the tests with this in their names, such as chapter:
    /// all of them take half an hour.
    #[arg(long, value_name = "TEXT")]
    named: Vec<String>,
    /// The arguments of a client's script.
    #[arg(skip)]
    client_arguments: Vec<String>,
}

impl Options {
    /// The suite of this name alone: a program of others, whose script is told these arguments.
    pub(crate) fn only(name: &str, client_arguments: Vec<String>) -> Self {
        let (suites, named) = (vec![name.to_owned()], Vec::new());
        Self { soak: false, suites, part: None, named, client_arguments }
    }
}

/// One suite: its name, what it shows, and how it runs.
struct Suite {
    name: &'static str,
    shows: &'static str,
    /// Whether it runs only in the long form, or when it is named: it takes minutes, and packages of
    /// others.
    is_long: bool,
    run: fn(&Runner) -> Result<Tally, Problem>,
}

const SUITES: &[Suite] = &[
    Suite { name: "format", shows: "the sources are formatted", is_long: false, run: format },
    Suite { name: "tidy", shows: "the rules of the house hold", is_long: false, run: tidy },
    Suite { name: "build", shows: "everything compiles", is_long: false, run: build },
    Suite { name: "lints", shows: "clippy finds nothing", is_long: false, run: lints },
    Suite { name: "tests", shows: "units, protocols, faults", is_long: false, run: tests },
    Suite {
        name: "hosts",
        shows: "tests of jobs again, over two hosts made of namespaces",
        is_long: false,
        run: hosts::tests,
    },
    Suite {
        name: "documents",
        shows: "examples in the documents work",
        is_long: false,
        run: documents,
    },
    Suite {
        name: "models",
        shows: "every interleaving of the queues",
        is_long: false,
        run: models,
    },
    Suite {
        name: "programs",
        shows: "the installed product, from outside",
        is_long: false,
        run: programs,
    },
    Suite { name: "fuzz", shows: "random bytes from a peer do no harm", is_long: false, run: fuzz },
    Suite { name: "aarch64", shows: "the other architecture", is_long: false, run: aarch64 },
    Suite {
        name: "divisions",
        shows: "plans of 11 and 12 members, however they are divided into clusters",
        is_long: true,
        run: divisions,
    },
    Suite {
        name: "mutants",
        shows: "each checker of the protocols catches a broken one",
        is_long: true,
        run: mutants,
    },
    Suite {
        name: "addresses",
        shows: "the fronts use memory as they may",
        is_long: true,
        run: sanitizers::addresses,
    },
    Suite {
        name: "races",
        shows: "no threads race in the fronts",
        is_long: true,
        run: sanitizers::races,
    },
    Suite {
        name: "mpi4py",
        shows: "its own tests, on our MPI",
        is_long: true,
        run: clients::mpi4py,
    },
    Suite {
        name: "mpi4py-hosts",
        shows: "its own tests again, over two hosts",
        is_long: true,
        run: hosts::mpi4py,
    },
    Suite {
        name: "rsmpi",
        shows: "its own tests and examples, on our MPI",
        is_long: true,
        run: clients::rsmpi,
    },
    Suite {
        name: "distribution",
        shows: "programs of Debian's source packages, on our MPI",
        is_long: true,
        run: clients::distribution,
    },
    Suite {
        name: "hypre-hosts",
        shows: "the tests of hypre again, over two hosts",
        is_long: true,
        run: hosts::hypre,
    },
    Suite {
        name: "petsc",
        shows: "its own parallel tests, on our MPI",
        is_long: true,
        run: clients::petsc,
    },
    Suite {
        name: "petsc-hosts",
        shows: "its own parallel tests again, over two hosts",
        is_long: true,
        run: hosts::petsc,
    },
];

/// In how many parts the suite "divisions" runs: each takes some minutes.
const PARTS: u32 = 48;

/// The target that the suite of the other architecture builds for.
const AARCH64: &str = "aarch64-unknown-linux-gnu";

/// The C compiler for that target, which the cryptographic library is built with, and which links tests.
const AARCH64_CC: &str = "aarch64-linux-gnu-gcc";

/// The packages that an installation is built from.
const PRODUCT: [&str; 4] = [
    "--package=landeck-launcher",
    "--package=landeckd",
    "--package=landeck-mpi",
    "--package=landeck-deck",
];

/// The packages whose tests run under an emulated processor.
const EMULATED: &[&str] = &[
    "wire",
    "layout",
    "arithmetic",
    "memory",
    "board",
    "objects",
    "channel",
    "kernel",
    "groups",
    "trust",
];

/// The packages whose algorithms a model checker tries.
const MODELLED: &[&str] = &["memory", "board", "objects"];

/// Runs the suites and prints the sum; true if nothing failed.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool, Problem> {
    let runner = Runner::new(root, options.soak)
        .for_client(&options.client_arguments)
        .for_part(options.part.as_deref())
        .for_named(&options.named);
    let wanted = |suite: &&Suite| match options.suites.as_slice() {
        [] => options.soak || !suite.is_long,
        names => names.iter().any(|name| name == suite.name),
    };
    let mut results: Vec<Outcome> = Vec::new();
    for suite in SUITES.iter().filter(wanted) {
        say!("\n==== {}: {}", suite.name, suite.shows);
        let (start, before) = (Instant::now(), processor_time::of_children());
        let tally = (suite.run)(&runner)?;
        let computed = processor_time::of_children().saturating_sub(before);
        results.push(Outcome { suite, tally, took: start.elapsed(), computed });
    }
    print_sum(&results);
    Ok(results.iter().all(|outcome| outcome.tally.failed == 0))
}

/// The outcome of a suite.
struct Outcome {
    suite: &'static Suite,
    tally: Tally,
    took: Duration,
    /// The processor time of everything that it started.
    computed: Duration,
}

/// The table of suites with their times, what was skipped, and the closing line. The share is of the processor time:
/// the other time depends on what else the machine does.
fn print_sum(results: &[Outcome]) {
    let sum_of = |time: fn(&Outcome) -> Duration| -> f64 {
        results.iter().map(|outcome| time(outcome).as_secs_f64()).sum()
    };
    let (took, computed) = (sum_of(|outcome| outcome.took), sum_of(|outcome| outcome.computed));
    say!(
        "\n==== {:<12} {:>8} {:>8} {:>8} {:>8} {:>10} {:>6}",
        "suite",
        "passed",
        "failed",
        "skipped",
        "seconds",
        "processor",
        "share"
    );
    let mut sum = Tally::default();
    for outcome in results {
        sum.add(&outcome.tally);
        let share = 100.0 * outcome.computed.as_secs_f64() / computed.max(0.001);
        let (took, computed) = (outcome.took.as_secs_f64(), outcome.computed.as_secs_f64());
        print_row(outcome.suite.name, &outcome.tally, took, computed, share);
    }
    print_row("all", &sum, took, computed, 100.0);
    for skipped in sum.skipped_by_reason() {
        say!("skipped: {skipped}");
    }
    for stayed in &sum.on_one_host {
        say!("on one host alone: {stayed}");
    }
    for late in &sum.late {
        say!("failed: {late}");
    }
    say!("{sum} in {}, with {computed:.0} s of processor time", minutes(took));
}

/// One row of that table, with times in seconds and the share in percent.
fn print_row(name: &str, tally: &Tally, took: f64, computed: f64, share: f64) {
    let (passed, failed, skipped) = (tally.passed, tally.failed, tally.skipped.len());
    say!(
        "     {name:<12} {passed:>8} {failed:>8} {skipped:>8} {took:>8.1} {computed:>10.1} {share:>5.0}%"
    );
}

/// A time in seconds or minutes, for people.
fn minutes(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        _ => format!("{:.1} min", seconds / 60.0),
    }
}

fn format(runner: &Runner) -> Result<Tally, Problem> {
    runner.one("cargo fmt", runner.cargo(&["fmt", "--all", "--check"]))
}

fn tidy(runner: &Runner) -> Result<Tally, Problem> {
    runner.counted(runner.cargo(&["run", "--quiet", "--package", "xtask", "--", "tidy"]))
}

fn build(runner: &Runner) -> Result<Tally, Problem> {
    runner.one(
        "cargo build",
        runner.cargo(&["test", "--locked", "--workspace", "--tests", "--no-run"]),
    )
}

fn lints(runner: &Runner) -> Result<Tally, Problem> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    runner.one("cargo clippy", runner.cargo(&arguments))
}

fn tests(runner: &Runner) -> Result<Tally, Problem> {
    side_by_side::run(runner, &["--tests"], &[], &[])
}

fn documents(runner: &Runner) -> Result<Tally, Problem> {
    let mut pages = runner.cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"]);
    pages.env("RUSTDOCFLAGS", "--deny warnings");
    let mut tally = runner.one("cargo doc", pages)?;
    tally.add(&runner.counted(runner.cargo(&[
        "test",
        "--workspace",
        "--doc",
        "--no-fail-fast",
    ]))?);
    Ok(tally)
}

/// The part that was asked for, or one after the other; each is a run of its own.
fn divisions(runner: &Runner) -> Result<Tally, Problem> {
    let parts = match runner.part() {
        Some(part) => vec![part.to_owned()],
        None => (1..=PARTS).map(|part| format!("{part}/{PARTS}")).collect(),
    };
    let mut tally = Tally::default();
    for part in parts {
        say!("---- part {part}");
        let arguments = ["test", "--package", "landeck-collectives", "--test", "proofs", "twelve"];
        let mut command = runner.cargo(&arguments);
        command.env("LANDECK_SOAK", "1").env("LANDECK_PART", &part);
        tally.add(&runner.counted(command)?);
    }
    Ok(tally)
}

/// Each mutant counts as a test.
fn mutants(runner: &Runner) -> Result<Tally, Problem> {
    runner.counted(runner.cargo(&["run", "--quiet", "--package", "xtask", "--", "mutants"]))
}

/// The model checker needs its own build: every atomic is replaced.
fn models(runner: &Runner) -> Result<Tally, Problem> {
    let mut command = runner.cargo(&["test", "--lib", "--no-fail-fast"]);
    command.args(MODELLED.iter().map(|package| format!("--package=landeck-{package}")));
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", runner.root().join("target/loom"));
    command.env("LOOM_MAX_PREEMPTIONS", if runner.is_soak() { "3" } else { "2" });
    runner.counted(command)
}

/// Every script in `tests/`: it passes with 0, and says with 77 and its last line why it cannot run.
fn programs(runner: &Runner) -> Result<Tally, Problem> {
    let mut tally = Tally::default();
    for script in runner.scripts("tests")? {
        tally.add(&runner.script(&script)?);
    }
    Ok(tally)
}

/// The short form fuzzes code that is hardly optimised: its time goes into the build, so few runs suffice.
fn fuzz(runner: &Runner) -> Result<Tally, Problem> {
    let mut command = runner.command(&runner.root().join("fuzz/run.sh"));
    if runner.is_soak() {
        command.arg("180");
    } else {
        command.arg("2").env("FUZZ_RUNS", "100000").env("FUZZ_PROFILE", "short");
    }
    runner.counted(command)
}

/// Checks the product for the other architecture; the long form checks all programs, and runs tests under qemu.
fn aarch64(runner: &Runner) -> Result<Tally, Problem> {
    if !runner.has_standard_library(AARCH64) {
        let why = format!(
            "aarch64: this compiler has no standard library for {AARCH64} (rustup target add {AARCH64})"
        );
        return Ok(Tally::skipped_one(&why));
    }
    if !runner.has_program(AARCH64_CC) {
        let packages = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross";
        let why = format!("aarch64: there is no {AARCH64_CC} (apt-get install {packages})");
        return Ok(Tally::skipped_one(&why));
    }
    // What only builds for debugging have is not there, as users build it. All else is as in the other suites, which
    // have built the macros and build scripts of this machine already.
    let mut check = runner.cargo(&["check", "--lib", "--bins", "--target", AARCH64]);
    check.env("CARGO_PROFILE_DEV_DEBUG_ASSERTIONS", "false");
    check.env("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG_ASSERTIONS", "true");
    check.env("CC_aarch64_unknown_linux_gnu", AARCH64_CC);
    if runner.is_soak() {
        check.arg("--workspace");
    } else {
        check.args(PRODUCT).arg("--package=landeck-trust");
    }
    let mut tally = runner.one("aarch64 cargo check", check)?;
    if runner.is_soak() {
        tally.add(&runner.counted(aarch64_tests(runner))?);
    }
    Ok(tally)
}

/// The tests of the packages that need no job around them, under qemu.
fn aarch64_tests(runner: &Runner) -> Command {
    let mut command = runner.cargo(&["test", "--lib", "--tests", "--no-fail-fast"]);
    command.args(["--target", AARCH64]);
    for package in EMULATED {
        command.arg(format!("--package=landeck-{package}"));
    }
    let prefix = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU";
    command.env("CC_aarch64_unknown_linux_gnu", AARCH64_CC);
    command.env(format!("{prefix}_LINKER"), AARCH64_CC);
    command.env(format!("{prefix}_RUNNER"), "qemu-aarch64 -L /usr/aarch64-linux-gnu");
    command
}
