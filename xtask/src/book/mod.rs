//! `cargo xtask book`: the documents as a book of linked pages, by mdBook.
//!
//! The chapters are the documents, where they are; `docs/SUMMARY.md` says in which order. mdBook
//! wants all of them in one folder, and copies what else is there: so the chapters, and the files of
//! the repository that they lead to, are copied to `target/book/source` first, under the paths that they have here,
//! and no link changes. Then every link of every page is followed.

mod pages;
mod summary;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::links::{resolve, targets};
use crate::{Problem, complete};
use summary::Summary;

/// The version that is installed where there is none.
const VERSION: &str = "0.5.4";
/// The chapter that the command writes itself.
const LAUNCHER: &str = "docs/launcher.md";

/// Builds the book in `target/book/html`; true if all its links lead somewhere.
pub(crate) fn run(root: &Path) -> Result<bool, Problem> {
    let folder = root.join("target/book");
    write_launcher_chapter(root)?;
    let builder = mdbook(root)?;
    let missing = stage(root, &folder)?;
    let mut build = Command::new(builder);
    build.arg("build").arg(&folder).env("RUST_LOG", "warn");
    complete(build)?;
    let pages = folder.join("html");
    let broken = pages::broken_links(&pages)?;
    for fault in missing.iter().chain(&broken) {
        say!("book: {fault}");
    }
    say!("book: {}", pages.join("index.html").display());
    Ok(missing.is_empty() && broken.is_empty())
}

/// The launcher's reference comes from the command itself, so it cannot differ from it.
fn write_launcher_chapter(root: &Path) -> Result<(), Problem> {
    let mut command = Command::new("cargo");
    command.current_dir(root);
    command.args(["run", "--quiet", "--package", "landeck-launcher", "--"]);
    command.args(["generate", "reference"]).arg(root.join("docs"));
    complete(command)?;
    say!("book: {LAUNCHER} is what the command says");
    Ok(())
}

/// mdBook: the one on the PATH, else one that cargo builds in `target/tools`.
fn mdbook(root: &Path) -> Result<PathBuf, Problem> {
    let runs = |program: &Path| Command::new(program).arg("--version").output().is_ok();
    let own = root.join("target/tools/bin/mdbook");
    for program in [PathBuf::from("mdbook"), own.clone()] {
        if runs(&program) {
            return Ok(program);
        }
    }
    say!("book: installs mdbook {VERSION} with cargo in target/tools, which takes minutes");
    let mut install = Command::new("cargo");
    install.args(["install", "--locked", "--quiet", "mdbook", "--version", VERSION]);
    install.args(["--no-default-features", "--features", "search", "--root"]);
    install.arg(root.join("target/tools"));
    complete(install)?;
    Ok(own)
}

/// Copies the chapters and what they lead to. Returns what they lead to and is not there.
fn stage(root: &Path, folder: &Path) -> Result<Vec<String>, Problem> {
    if folder.exists() {
        let failed = |error| Problem::Write { path: folder.to_owned(), error };
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    let summary = Summary::read(root)?;
    write(&folder.join("source/SUMMARY.md"), summary.of_root().as_bytes())?;
    copy(&root.join("docs/book.toml"), &folder.join("book.toml"))?;
    let chapters: BTreeSet<String> = summary.chapters().collect();
    let (mut wanted, mut missing) = (chapters.clone(), Vec::new());
    for chapter in &chapters {
        for target in links_of(root, chapter)? {
            let path = root.join(&target);
            if path.is_file() && !target.ends_with(".md") {
                wanted.insert(target);
            } else if !chapters.contains(&target) {
                missing
                    .push(format!("{chapter} leads to {target}, which is no chapter and no file"));
            }
        }
    }
    for path in &wanted {
        copy(&root.join(path), &folder.join("source").join(path))?;
    }
    Ok(missing)
}

/// Returns the targets of a document's links, as paths from the root.
fn links_of(root: &Path, document: &str) -> Result<BTreeSet<String>, Problem> {
    let text = read(&root.join(document))?;
    let found = text.lines().flat_map(targets).map(|target| resolve(document, target));
    Ok(found.collect())
}

fn copy(from: &Path, to: &Path) -> Result<(), Problem> {
    let bytes = fs::read(from).map_err(|error| Problem::Read { path: from.to_owned(), error })?;
    write(to, &bytes)
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|error| Problem::Read { path: path.to_owned(), error })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| Problem::Write { path: path.to_owned(), error })
}
