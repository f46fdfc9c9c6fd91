//! The input of the rules: the packages as cargo sees them, the Rust files, the documents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::source::Source;
use crate::Problem;

/// The repository.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) packages: Vec<Package>,
    pub(super) sources: Vec<Source>,
    pub(super) documents: Vec<Document>,
    /// Every file and folder, relative to the root.
    pub(super) paths: Vec<String>,
}

/// A package of the workspace.
pub(super) struct Package {
    pub(super) name: String,
    /// Its folder relative to the root: "crates/wire", "xtask".
    pub(super) room: String,
    pub(super) manifest: String,
    pub(super) dependencies: Vec<Dependency>,
}

/// A dependency of a package.
pub(super) struct Dependency {
    pub(super) name: String,
    /// Whether only its tests need it.
    pub(super) for_tests: bool,
}

/// A text that people read.
pub(super) struct Document {
    pub(super) path: String,
    pub(super) text: String,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self, Problem> {
        let mut tree = Self::default();
        for manifest in &Metadata::of(root)?.packages {
            tree.packages.push(Package::read(root, manifest)?);
        }
        tree.walk(root, root)?;
        tree.sources.sort_by(|a, b| a.path.cmp(&b.path));
        tree.note_tests();
        Ok(tree)
    }

    /// Files of modules that only a test build has are tests, and so is all below them.
    fn note_tests(&mut self) {
        let modules: Vec<String> = self.sources.iter().flat_map(Source::test_modules).collect();
        let is_of = |path: &str, module: &str| {
            path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        for source in &mut self.sources {
            if modules.iter().any(|module| is_of(&source.path, module)) {
                source.be_test();
            }
        }
    }

    fn walk(&mut self, root: &Path, folder: &Path) -> Result<(), Problem> {
        let unreadable = |error| Problem::Read { path: folder.to_owned(), error };
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let relative = relative_text(root, &path);
            if is_made(&relative) {
                continue;
            }
            self.paths.push(relative.clone());
            if path.is_dir() {
                self.walk(root, &path)?;
            } else if relative.ends_with(".rs") {
                self.sources.push(Source::new(&relative, &read(&path)?));
            } else if relative.ends_with(".md") {
                self.documents.push(Document { path: relative, text: read(&path)? });
            }
        }
        Ok(())
    }
}

impl Package {
    fn read(root: &Path, manifest: &Manifest) -> Result<Self, Problem> {
        let folder = manifest.manifest_path.parent().unwrap_or(root);
        let dependencies = manifest
            .dependencies
            .iter()
            .map(|dependency| Dependency {
                name: dependency.name.clone(),
                for_tests: dependency.kind.as_deref() == Some("dev"),
            })
            .collect();
        Ok(Self {
            name: manifest.name.clone(),
            room: relative_text(root, folder),
            manifest: read(&manifest.manifest_path)?,
            dependencies,
        })
    }
}

/// The output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Manifest>,
}

#[derive(Deserialize)]
struct Manifest {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Needed>,
}

#[derive(Deserialize)]
struct Needed {
    name: String,
    /// None for what the product needs.
    kind: Option<String>,
}

impl Metadata {
    fn of(root: &Path) -> Result<Self, Problem> {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).args(["metadata", "--no-deps", "--format-version", "1"]);
        let unstartable = |error| Problem::Start { program: "cargo".to_owned(), error };
        let output = cargo.output().map_err(unstartable)?;
        serde_json::from_slice(&output.stdout).map_err(|_| {
            Problem::Metadata(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        })
    }
}

/// Whether a path holds what builds and runs make, or what is not the project's own text.
fn is_made(relative: &str) -> bool {
    let name = relative.rsplit('/').next().unwrap_or(relative);
    matches!(name, "target" | ".git" | "__pycache__")
        || matches!(relative, "bench-peers" | "out" | "shared" | "fuzz/corpus" | "fuzz/artifacts")
        // How a peer is used, in a workspace of its own.
        || relative == "bench/loans/src"
}

fn relative_text(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|error| Problem::Read { path: path.to_owned(), error })
}
