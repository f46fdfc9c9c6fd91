//! `cargo xtask mutants`: each checker of the simulated protocols catches a broken protocol, and so do the units of lanes.
//!
//! A mutant is one changed line of a shipped machine. It is made in a copy of the repository in `target/mutants`, and the
//! test that is named beside it must fail there. A mutant that no test notices *survives*, which is a fault of the tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Problem;

mod list;
mod order;
mod routes;
mod stored;
mod traces;
mod voters;

use list::{MUTANTS, Mutant};
use order::ORDER_MUTANTS;
use routes::ROUTE_MUTANTS;
use stored::STORED_MUTANTS;
use traces::TRACE_MUTANTS;
use voters::VOTER_MUTANTS;

/// Stands between a crate and the name of a unit test there. Trunks number what they carry, for example, so no simulated word
/// comes out of order.
const UNITS: &str = " units: ";

/// The repetitions of a test that has not failed: its seeds are others each time.
const REPETITIONS: usize = 3;

/// Tries the mutants of the files with this in their names; true if each is caught.
pub(crate) fn run(root: &Path, of: &str) -> Result<bool, Problem> {
    let mutants: Vec<&Mutant> = all().filter(|mutant| mutant.file.contains(of)).collect();
    let copy = Copy::make(root)?;
    let units = |test: &'static str| test.find(UNITS).map_or("", |at| &test[..at + UNITS.len()]);
    for tests in mutants.iter().map(|mutant| units(mutant.test)).collect::<BTreeSet<_>>() {
        if !copy.passes(tests)? {
            say!("test mutants/none ... FAILED");
            say!("the tests fail without a mutant: repair them first");
            return Ok(false);
        }
    }
    let mut survivors = 0;
    for mutant in &mutants {
        let caught = copy.with(mutant, |copy| {
            for _ in 0..REPETITIONS {
                if !copy.passes(mutant.test)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        survivors += usize::from(!caught);
        say!("test mutants/{} ... {}", mutant.breaks, if caught { "ok" } else { "FAILED" });
        if !caught {
            say!("SURVIVED: {} ({}, test {})", mutant.line.trim(), mutant.file, mutant.test);
        }
    }
    say!("{} passed, {survivors} failed", mutants.len() - survivors);
    Ok(survivors == 0)
}

fn all() -> impl Iterator<Item = &'static Mutant> {
    let lists =
        [MUTANTS, ROUTE_MUTANTS, STORED_MUTANTS, ORDER_MUTANTS, TRACE_MUTANTS, VOTER_MUTANTS];
    lists.into_iter().flatten()
}

/// A copy of the repository with a build of its own.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn make(root: &Path) -> Result<Self, Problem> {
        let folder = root.join("target/mutants/source");
        let mut list = Command::new("git");
        list.current_dir(root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let start = |error| Problem::Start { program: "git".into(), error };
        let output = list.output().map_err(start)?;
        for name in String::from_utf8_lossy(&output.stdout).split('\0') {
            let (from, to) = (root.join(name), folder.join(name));
            if name.is_empty() || !from.is_file() {
                continue;
            }
            let content = fs::read(&from).map_err(|error| Problem::Read { path: from, error })?;
            // An unchanged file keeps its time, so that it is not built again.
            if fs::read(&to).ok().as_ref() == Some(&content) {
                continue;
            }
            let parent = to.parent().unwrap_or(&folder);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&to, content))
                .map_err(|error| Problem::Write { path: to.clone(), error })?;
        }
        Ok(Self { folder })
    }

    /// Runs something with the mutant in place.
    fn with(
        &self,
        mutant: &Mutant,
        act: impl Fn(&Self) -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        let path = self.folder.join(mutant.file);
        let text = fs::read_to_string(&path)
            .map_err(|error| Problem::Read { path: path.clone(), error })?;
        let at = text.find(mutant.line).filter(|_| text.matches(mutant.line).count() == 1);
        if at.is_none() {
            let line = mutant.line.trim().to_owned();
            return Err(Problem::Mutant { path: mutant.file.into(), line });
        }
        let write = |text: &str| {
            fs::write(&path, text).map_err(|error| Problem::Write { path: path.clone(), error })
        };
        write(&text.replacen(mutant.line, mutant.changed, 1))?;
        let caught = act(self);
        write(&text)?;
        caught
    }

    /// Whether the tests with this in their names pass. A mutant that does not compile is no mutant.
    fn passes(&self, test: &str) -> Result<bool, Problem> {
        let (package, target, test) = match test.split_once(UNITS) {
            Some((package, test)) => (package, "--lib", test),
            None => ("simulator", "--test=protocols", test),
        };
        let cargo = |arguments: &[&str]| {
            let mut command = Command::new("cargo");
            command.current_dir(&self.folder).args(["test", "--quiet"]);
            command.arg(format!("--package=landeck-{package}")).arg(target).args(arguments);
            command.env("CARGO_TARGET_DIR", self.folder.with_file_name("build"));
            command
                .env_remove("LANDECK_SOAK")
                .env_remove("LANDECK_SEED")
                .env("RUST_BACKTRACE", "0");
            command
        };
        crate::complete(cargo(&["--no-run"]))?;
        let start = |error| Problem::Start { program: "cargo".into(), error };
        let output = cargo(&["--", test]).output().map_err(start)?;
        Ok(output.status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_changes_one_place_of_a_file() {
        for mutant in all() {
            let text = fs::read_to_string(crate::root().join(mutant.file)).expect("a file");
            assert_eq!(text.matches(mutant.line).count(), 1, "{}: {}", mutant.file, mutant.line);
            assert_ne!(mutant.line, mutant.changed);
        }
    }
}
