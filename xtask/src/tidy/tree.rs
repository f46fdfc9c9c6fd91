//! What the rules look at: the packages as cargo sees them, the Rust files, the documents.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{MetadataCommand, Package as Manifest};

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

/// What a package says it needs.
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
        let metadata =
            MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec()?;
        let mut tree = Self::default();
        for manifest in &metadata.packages {
            tree.packages.push(Package::read(root, manifest)?);
        }
        tree.walk(root, root)?;
        tree.sources.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
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
        let path: PathBuf = manifest.manifest_path.clone().into();
        let folder = path.parent().unwrap_or(root);
        let dependencies = manifest
            .dependencies
            .iter()
            .map(|dependency| Dependency {
                name: dependency.name.clone(),
                for_tests: dependency.kind == cargo_metadata::DependencyKind::Development,
            })
            .collect();
        Ok(Self {
            name: manifest.name.to_string(),
            room: relative_text(root, folder),
            manifest: read(&path)?,
            dependencies,
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
