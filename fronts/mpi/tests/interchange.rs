//! One binary, two libraries of the ABI: what our compiler script has compiled runs with MPICH's
//! library, and the other way round, by the search path of libraries alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Compiler, Launcher, Library, compiled_by, mpich_or_skip, run};
use landeck_testing::Watchdog;
use landeck_testing::program::assert_wrote;

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(400);

/// The programs that check themselves.
const PROGRAMS: [&str; 6] = ["whose", "hello", "ring", "pingpong", "isend_waitall", "allreduce"];

#[test]
fn programs_made_by_our_compiler_run_with_both_libraries() {
    let _watchdog = Watchdog::start(LIMIT);
    for name in PROGRAMS {
        let program = compiled_by(Compiler::Ours, &source(name));
        assert_runs_with_ours(&program, name);
        if mpich_or_skip("programs_made_by_our_compiler_run_with_both_libraries (MPICH)") {
            assert_runs_with_mpich(&program, name);
        }
    }
}

#[test]
fn programs_made_by_mpichs_compiler_run_with_both_libraries() {
    let _watchdog = Watchdog::start(LIMIT);
    if !mpich_or_skip("programs_made_by_mpichs_compiler_run_with_both_libraries") {
        return;
    }
    for name in PROGRAMS {
        let program = compiled_by(Compiler::Mpich, &source(name));
        assert_runs_with_ours(&program, name);
        assert_runs_with_mpich(&program, name);
    }
}

#[test]
fn the_heat_equation_is_the_same_with_both_libraries() {
    let _watchdog = Watchdog::start(LIMIT);
    let heat = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c/heat.c");
    let program = compiled_by(Compiler::Ours, &heat);
    let plate = |launcher, library, processes: u32| {
        let name = format!("landeck-heat-{}-{library:?}-{processes}", std::process::id());
        // Rank 0 may be on another host, whose /tmp is its own.
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let arguments = ["97", "150", &file.to_string_lossy()];
        let output = run(launcher, library, processes, &program, &arguments);
        assert!(output.status.success(), "{output:?}");
        let plate = std::fs::read(&file).expect("the program has written it");
        std::fs::remove_file(&file).expect("it is there");
        // The first line says how many blocks there were.
        let line = plate.iter().position(|byte| *byte == b'\n').expect("there is a first line");
        assert_eq!(plate.len() - line - 1, 97 * 97 * 8);
        plate[line + 1..].to_vec()
    };
    let alone = plate(Launcher::None, Library::Ours, 1);
    for processes in [2, 3, 4] {
        assert_eq!(plate(Launcher::Landeck, Library::Ours, processes), alone, "{processes}");
    }
    if mpich_or_skip("the_heat_equation_is_the_same_with_both_libraries (MPICH)") {
        assert_eq!(plate(Launcher::Mpiexec, Library::Mpich, 2), alone);
        assert_eq!(plate(Launcher::Mpiexec, Library::Ours, 4), alone);
    }
}

#[test]
fn architectures_are_built_from_communicators_with_both_libraries() {
    let _watchdog = Watchdog::start(LIMIT);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c/architectures.c");
    let program = compiled_by(Compiler::Ours, &source);
    for (processes, clusters) in [(1, 1), (4, 4), (7, 3), (12, 5)] {
        let clusters = clusters.to_string();
        let output = run(Launcher::Landeck, Library::Ours, processes, &program, &[&clusters]);
        let line = format!("architectures: {processes} processes in {clusters} clusters agree");
        assert_wrote(&output, &line);
    }
    if mpich_or_skip("architectures_are_built_from_communicators_with_both_libraries (MPICH)") {
        let output = run(Launcher::Mpiexec, Library::Mpich, 5, &program, &["3"]);
        assert_wrote(&output, "architectures: 5 processes in 3 clusters agree");
    }
}

#[test]
fn a_root_is_found_with_both_libraries() {
    let _watchdog = Watchdog::start(LIMIT);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c/roots.c");
    let program = compiled_by(Compiler::Ours, &source);
    // Six processes are no whole cube. In each round a relay sends one message to everybody but the master.
    let output = run(Launcher::Landeck, Library::Ours, 6, &program, &["1e-12", "relay"]);
    assert_wrote(&output, "root 2.9629804519 after 16 rounds");
    assert_wrote(&output, "80 messages were relayed to 5 others");
    let output = run(Launcher::Landeck, Library::Ours, 6, &program, &[]);
    assert_wrote(&output, "root 2.9629804519 after 16 rounds");
    if mpich_or_skip("a_root_is_found_with_both_libraries (MPICH)") {
        let output = run(Launcher::Mpiexec, Library::Mpich, 3, &program, &["1e-12", "relay"]);
        assert_wrote(&output, "52 messages were relayed to 2 others");
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(format!("{name}.c"))
}

fn assert_runs_with_ours(program: &Path, name: &str) {
    for launcher in [Launcher::Landeck, Launcher::None] {
        let processes = if matches!(launcher, Launcher::None) { 1 } else { 3 };
        let output = run(launcher, Library::Ours, processes, program, &[]);
        assert_wrote(&output, &format!("{name}: {processes} processes agree"));
        if name == "whose" {
            assert_wrote(&output, "library: Lande");
        }
    }
}

fn assert_runs_with_mpich(program: &Path, name: &str) {
    let output = run(Launcher::Mpiexec, Library::Mpich, 2, program, &[]);
    assert_wrote(&output, &format!("{name}: 2 processes agree"));
    if name == "whose" {
        assert_wrote(&output, "library: MPICH");
    }
}
