//! Builds the C programs and runs them under our launcher, under MPICH's, and with MPICH's library.

pub(crate) mod pmi_server;
mod sanitizer;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use landeck_testing::Trail;
use landeck_testing::jobs::{self, OneHost};
use landeck_testing::program::{build, compiler, offer_library, shared_headers, succeed};

/// How long one run of a program may take.
pub(crate) const RUN_LIMIT: Duration = Duration::from_secs(150);
/// How long everything that a test starts may go on after its end.
const GONE_LIMIT: Duration = Duration::from_secs(60);

/// The launcher of the programs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Launcher {
    /// `landeck run`, on the hosts where the jobs of tests run.
    Landeck,
    /// `landeck run` on this host alone.
    LandeckHere,
    /// MPICH's `mpiexec`, which speaks PMI-1.
    Mpiexec,
    /// No launcher: a job of one.
    None,
}

/// The MPI library that the programs find.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Library {
    /// The one under test.
    Ours,
    /// MPICH's, of the same ABI.
    Mpich,
}

/// The compiler script of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compiler {
    /// Ours, as it is installed.
    Ours,
    /// MPICH's.
    Mpich,
}

/// Runs a program, prepared by [`program`], with these arguments.
pub(crate) fn run(
    launcher: Launcher,
    library: Library,
    processes: u32,
    program: &Path,
    arguments: &[&str],
) -> Output {
    let once = || run_command(command(launcher, library, processes, program).args(arguments));
    match library {
        Library::Ours => once(),
        Library::Mpich => (1..ATTEMPTS).map(|_| once()).find(has_begun).unwrap_or_else(once),
    }
}

/// MPICH 5.0.2 now and then fails within its own MPI_Init, before the program has done anything.
const ATTEMPTS: u32 = 3;

fn has_begun(output: &Output) -> bool {
    !String::from_utf8_lossy(&output.stderr).contains("Fatal error in internal_Init")
}

/// Runs a program under our launcher where no file, and so no job's memory either, is larger than this.
pub(crate) fn run_with_files_of(bytes: u64, processes: u32, program: &Path) -> Output {
    let usual = command(Launcher::LandeckHere, Library::Ours, processes, program);
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={bytes}")).arg(usual.get_program()).args(usual.get_args());
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run_command(&mut command)
}

/// Runs a program under our launcher, with collective operations that go this way; the usual one if it is
/// empty.
pub(crate) fn run_by(way: &str, processes: u32, program: &Path) -> Output {
    let mut command = command(Launcher::Landeck, Library::Ours, processes, program);
    run_command(command.env("LANDECK_COLLECTIVES", way))
}

/// Runs a command to its end, and checks that nothing is left of it.
pub(crate) fn run_command(command: &mut Command) -> Output {
    let trail = Trail::new();
    // Where every access is looked at, it takes many times as long.
    let slowness = if sanitizer::wanted().is_some() { 5 } else { 1 };
    let output = trail.run(command, slowness * RUN_LIMIT);
    trail.assert_gone(GONE_LIMIT);
    output
}

/// The command that [`run`] runs, without arguments.
pub(crate) fn command(
    launcher: Launcher,
    library: Library,
    processes: u32,
    program: &Path,
) -> Command {
    let mut command = match launcher {
        Launcher::None => Command::new(program),
        Launcher::Landeck if one_host(&name_of(program)).is_none() => {
            launched(jobs::run(&tools().launcher, processes as usize), processes, program)
        }
        Launcher::Landeck | Launcher::LandeckHere => {
            launched(jobs::run_here(&tools().launcher), processes, program)
        }
        Launcher::Mpiexec => {
            let mpiexec = mpich().expect("asked for beforehand").join("bin/mpiexec");
            launched(Command::new(mpiexec), processes, program)
        }
    };
    let libraries = match library {
        Library::Ours => tools().libraries.clone(),
        Library::Mpich => mpich().expect("asked for beforehand").join("lib"),
    };
    command.env("LD_LIBRARY_PATH", libraries);
    // As shipped, MPICH spins without yielding; with this it ends in time on few processors.
    command.env("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1");
    // Its network layer refuses an interface whose speed the kernel does not tell. One host needs none.
    command.env("UCX_TLS", "self,sm");
    command
}

/// Compiles one of the C programs, with our header, against our library.
pub(crate) fn program(name: &str) -> PathBuf {
    compile(&compiler("CC", "cc"), &["-std=c11"], &format!("{name}.c"))
}

/// Makes a library of one of the C programs, for tools that take the place of functions of MPI.
pub(crate) fn interposer(name: &str) -> PathBuf {
    compile(&compiler("CC", "cc"), &["-std=c11", "-shared", "-fPIC"], &format!("{name}.c"))
}

/// Builds a C++ program, if there is a compiler. Otherwise it says that the test is skipped.
pub(crate) fn program_in_cpp_or_skip(name: &str, test: &str) -> Option<PathBuf> {
    let compiler = compiler("CXX", "c++");
    if Command::new(&compiler).arg("--version").output().is_err() {
        skip(test, "there is no C++ compiler");
        return None;
    }
    Some(compile(&compiler, &["-std=c++17"], &format!("{name}.cpp")))
}

/// Compiles a C program with an installed compiler script, as users do.
pub(crate) fn compiled_by(compiler: Compiler, source: &Path) -> PathBuf {
    let (script, folder) = match compiler {
        Compiler::Ours => (installed_compiler().to_owned(), "by-ours"),
        Compiler::Mpich => {
            (mpich().expect("asked for beforehand").join("bin/mpicc_abi"), "by-mpich")
        }
    };
    let folder = tools().programs.join(folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let target = folder.join(source.file_stem().expect("a file has a name"));
    let mut command = Command::new(script);
    command.args(["-std=gnu11", "-O2", "-ffp-contract=off", "-pthread"]).arg(source);
    succeed(command.arg("-o").arg(&target).arg("-lm"));
    target
}

/// Our compiler script in a folder as installation makes it, but with the library under test.
fn installed_compiler() -> &'static Path {
    static SCRIPT: OnceLock<PathBuf> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let prefix = tools().programs.with_file_name("installed");
        for folder in ["bin", "include", "lib"] {
            fs::create_dir_all(prefix.join(folder)).expect("the target folder can be written");
        }
        let script = prefix.join("bin/mpicc_abi");
        for (from, to) in [
            (own.join("../c_boundary/scripts/compiler"), script.clone()),
            (own.join("include/mpi.h"), prefix.join("include/mpi.h")),
            (library(), prefix.join("lib/libmpi_abi.so")),
        ] {
            // A copy that takes the name when it is whole: another test may be reading the old one.
            let copy = to.with_extension(std::process::id().to_string());
            fs::copy(from, &copy).expect("it can be copied");
            fs::rename(copy, to).expect("it can be renamed");
        }
        script
    })
}

fn compile(compiler: &OsStr, options: &[&str], source: &str) -> PathBuf {
    // Another test may be running it already: it is compiled once.
    static COMPILED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = tools().programs.join(Path::new(source).with_extension(""));
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if !compiled.insert(target.clone()) {
        return target;
    }
    let source = folder.join("tests/c").join(source);
    let mut making = Command::new(compiler);
    making.args(options).args(["-Wall", "-Wextra", "-Werror", "-O2", "-pthread"]);
    making.arg("-I").arg(folder.join("include")).arg("-I").arg(folder.join("tests/c"));
    making.arg("-I").arg(shared_headers());
    if let Some(sanitizer) = sanitizer::wanted() {
        let object = target.with_extension("o");
        sanitizer.compile(&mut making, &source, &object);
        succeed(&mut making);
        making = Command::new(compiler);
        sanitizer.link(making.arg("-pthread"), &object, &target);
    } else {
        making.arg(&source).arg("-o").arg(&target);
    }
    making.arg("-L").arg(&tools().libraries).arg("-lmpi_abi");
    succeed(&mut making);
    target
}

/// The launcher under test.
pub(crate) fn launcher() -> &'static Path {
    &tools().launcher
}

/// The folder of the library under test.
pub(crate) fn libraries() -> &'static Path {
    &tools().libraries
}

/// The library under test.
pub(crate) fn library() -> PathBuf {
    tools().libraries.join("libmpi_abi.so.1")
}

/// Whether MPICH is installed. If not, this says that the test is skipped.
pub(crate) fn mpich_or_skip(test: &str) -> bool {
    peer_or_skip("mpich", "mpiexec", test).is_some()
}

/// A launcher of another MPI, if that is installed. Else this says that the test is skipped.
pub(crate) fn peer_or_skip(peer: &str, launcher: &str, test: &str) -> Option<PathBuf> {
    let found = peer_folder(peer).join("bin").join(launcher);
    if found.exists() {
        return Some(found);
    }
    skip(test, &format!("{found:?} is not there; bench/peers.sh {peer} installs it"));
    None
}

/// Says that a test is skipped. Not with `println`, whose output nobody sees when a test passes.
pub(crate) fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stdout(), "SKIPPED {test}: {why}");
}

/// The tools of every test, built once.
struct Tools {
    launcher: PathBuf,
    /// Holds the library under the names by which the linker and the loader look for it.
    libraries: PathBuf,
    programs: PathBuf,
}

fn tools() -> &'static Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let built = build(env!("CARGO"));
        let sanitizer = sanitizer::wanted();
        let own = match sanitizer {
            Some(sanitizer) => built.join(format!("mpi-{}", sanitizer.name)),
            None => built.join("mpi"),
        };
        let library =
            sanitizer.map_or_else(|| built.join("libmpi_abi.so"), |it| it.library.clone());
        let (libraries, programs) = (own.join("lib"), own.join("bin"));
        fs::create_dir_all(programs.join("chapters")).expect("the target folder can be written");
        offer_library(&libraries, "libmpi_abi", &library);
        Tools { launcher: built.join("landeck"), libraries, programs }
    })
}

/// The folder of MPICH, if it is installed.
fn mpich() -> Option<PathBuf> {
    Some(peer_folder("mpich")).filter(|folder| folder.join("bin/mpiexec").exists())
}

/// Where the script that installs the peers of the benchmark puts this one.
fn peer_folder(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-peers").join(format!("venv-{peer}"))
}

fn launched(mut launcher: Command, processes: u32, program: &Path) -> Command {
    launcher.arg("-n").arg(processes.to_string()).arg(program);
    launcher
}

/// Why the jobs of a program stay on one host; `None` if they go where all go.
pub(crate) fn one_host(program: &str) -> Option<&'static str> {
    const ONE_HOST: OneHost = OneHost::new(include_str!("../one-host.txt"));
    ONE_HOST.reason(program)
}

/// The name of a program in the list of those that stay on one host: its path in `tests/c`.
fn name_of(program: &Path) -> String {
    let own = program.strip_prefix(&tools().programs).unwrap_or(program);
    own.to_string_lossy().into_owned()
}
