//! The programs that a test builds and runs: compilers, directories of built files, and checks of a run's output.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The compiler that the environment variable `variable` names, or the `usual` one.
#[must_use]
pub fn compiler(variable: &str, usual: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| usual.into())
}

/// The directory of headers that C programs share, whichever front they test.
#[must_use]
pub fn shared_headers() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/c"))
}

/// Runs a command to its end and returns its output.
///
/// # Panics
///
/// If the command cannot be started or does not end well; the message contains its standard error.
pub fn succeed(command: &mut Command) -> Output {
    let output =
        command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Checks that a run ended well and wrote `line` as a whole line to its standard output.
///
/// # Panics
///
/// If it did not; the message contains everything that the run wrote.
pub fn assert_wrote(output: &Output, line: &str) {
    let written = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && written.lines().any(|written| written == line),
        "wanted {line:?} and a good end, got {:?}\nstandard output: {written}\nstandard error: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
}

/// Builds what jobs are made of in the profile of the running test, by `cargo` (`env!("CARGO")`), and returns its
/// directory, `target/PROFILE`: the command, its daemon, the libraries.
///
/// # Panics
///
/// If they cannot be built, or if the running test does not lie in `target/PROFILE/deps`.
pub fn build(cargo: &str) -> PathBuf {
    let mut command = Command::new(cargo);
    forget_package(&mut command);
    // The whole workspace is selected: with some of its packages alone, libraries of others would have fewer features,
    // and most of the workspace would be compiled again, and replaced beneath the jobs of other tests.
    command.args(["build", "--quiet", "--workspace", "--lib"]);
    command.args(["--bin", "landeck", "--bin", "landeckd"]);
    let test = std::env::current_exe().expect("this test has a file");
    let built = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    if built.ends_with("release") {
        command.arg("--release");
    }
    succeed(&mut command);
    built.to_owned()
}

/// Removes from the environment of a command what cargo says there about the package whose program it runs. A build script
/// may look at it: then its library, and all that use it, would be built again by each package's tests.
pub fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let of_package = ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"];
        if of_package.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
}

/// Makes `folder` a directory in which linker and loader find a built library: as `NAME.so` and as `NAME.so.1`, for a
/// `name` like `libdeck`. Test programs may do this at the same time.
///
/// # Panics
///
/// If the directory cannot be written.
pub fn offer_library(folder: &Path, name: &str, library: &Path) {
    fs::create_dir_all(folder).expect("the target folder can be written");
    for name in [format!("{name}.so"), format!("{name}.so.1")] {
        let link = folder.join(name);
        // A target directory that was copied has links into the other one.
        if fs::read_link(&link).is_ok_and(|old| old == library) {
            continue;
        }
        let own = link.with_extension(std::process::id().to_string());
        let _ = fs::remove_file(&own);
        symlink(library, &own).expect("a link can be made");
        // The rename replaces the name in one step: another test program may have been faster.
        fs::rename(&own, &link).expect("a link can be renamed");
    }
}

#[cfg(test)]
mod tests {
    use super::{assert_wrote, forget_package, offer_library, succeed};
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn a_whole_line_counts() {
        assert_wrote(&succeed(Command::new("echo").arg("one\ntwo")), "two");
    }

    #[test]
    #[should_panic(expected = "wanted \"tw\"")]
    fn a_part_of_a_line_does_not() {
        assert_wrote(&succeed(Command::new("echo").arg("one\ntwo")), "tw");
    }

    #[test]
    #[should_panic(expected = "failed:\nwhy")]
    fn a_bad_end_says_why() {
        succeed(Command::new("sh").args(["-c", "echo why >&2; exit 3"]));
    }

    #[test]
    fn a_command_is_not_told_which_package_runs() {
        let mut command = Command::new("env");
        forget_package(&mut command);
        let said = succeed(&mut command);
        let said = String::from_utf8_lossy(&said.stdout);
        assert!(!said.contains("CARGO_PKG_NAME=") && said.contains("PATH="), "{said}");
    }

    #[test]
    fn a_link_to_another_library_is_replaced() {
        let folder = std::env::temp_dir().join(format!("landeck-offer-{}", std::process::id()));
        offer_library(&folder, "libx", Path::new("/old"));
        offer_library(&folder, "libx", Path::new("/new"));
        let found = ["libx.so", "libx.so.1"].map(|name| fs::read_link(folder.join(name)).ok());
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(found, [Some("/new".into()), Some("/new".into())]);
    }
}
