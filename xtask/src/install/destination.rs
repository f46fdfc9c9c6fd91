//! The folder that an installation fills, and the list of its parts by which it is removed again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use crate::Problem;

/// Where an installation is.
#[derive(clap::Args)]
pub(crate) struct InstallPlace {
    /// The folder that the product will be used from.
    #[arg(long, default_value = "/usr/local", value_parser = absolute)]
    pub(super) prefix: PathBuf,
    /// A folder that stands before the prefix while a package is made.
    #[arg(long)]
    destdir: Option<PathBuf>,
}

impl InstallPlace {
    /// The folder that is filled.
    pub(super) fn folder(&self) -> PathBuf {
        match &self.destdir {
            Some(destdir) => destdir.join(self.prefix.strip_prefix("/").unwrap_or(&self.prefix)),
            None => self.prefix.clone(),
        }
    }
}

/// A prefix means the same from every working folder.
fn absolute(prefix: &str) -> io::Result<PathBuf> {
    std::path::absolute(prefix)
}

/// The list of the parts, below the prefix.
const LIST: &str = "lib/landeck/installed";

/// The folder that is filled.
pub(super) struct Destination {
    folder: PathBuf,
    parts: RefCell<Parts>,
    /// The parts of an installation that this one replaces.
    before: Parts,
}

/// The parts of an installation: paths below its folder.
#[derive(Debug, Default, PartialEq)]
struct Parts {
    /// Files and links.
    files: BTreeSet<PathBuf>,
    /// Folders that were not there before.
    folders: BTreeSet<PathBuf>,
}

impl Destination {
    /// An installation at this place, in which nothing is installed yet.
    ///
    /// # Errors
    /// When the list of an earlier installation cannot be read.
    pub(super) fn new(place: &InstallPlace) -> Result<Self, Problem> {
        let folder = place.folder();
        let before = Parts::read(&folder)?.unwrap_or_default();
        let parts = Parts { files: BTreeSet::new(), folders: before.folders.clone() };
        Ok(Self { folder, parts: RefCell::new(parts), before })
    }

    /// Writes the list of what was installed, removes the parts that only the installation before had,
    /// and returns the folder.
    pub(super) fn finish(self) -> Result<PathBuf, Problem> {
        let list = self.folder_for(LIST)?;
        let parts = self.parts.into_inner();
        write(&list, fs::write(&list, parts.to_text()))?;
        for old in self.before.files.difference(&parts.files) {
            remove_file(&self.folder.join(old))?;
        }
        Ok(self.folder)
    }

    /// Replaces a file by renaming, so that programs which use the old one keep it.
    pub(super) fn file(&self, from: &Path, to: &str, mode: u32) -> Result<(), Problem> {
        let to = self.folder_for(to)?;
        let fresh = to.with_extension("new");
        fs::copy(from, &fresh).map_err(|error| Problem::Read { path: from.to_owned(), error })?;
        let replaced = fs::set_permissions(&fresh, fs::Permissions::from_mode(mode))
            .and_then(|()| fs::rename(&fresh, &to));
        write(&to, replaced)
    }

    /// Writes a text into a file.
    pub(super) fn text(&self, text: &str, to: &str) -> Result<(), Problem> {
        let to = self.folder_for(to)?;
        write(&to, fs::write(&to, text))
    }

    /// Makes a link, in the place of an older one.
    pub(super) fn link(&self, target: &str, to: &str) -> Result<(), Problem> {
        let to = self.folder_for(to)?;
        if to.is_symlink() {
            remove_file(&to)?;
        }
        write(&to, symlink(target, &to))
    }

    /// Makes a link, unless something else has its name: then false.
    pub(super) fn link_unless_taken(&self, target: &str, to: &str) -> Result<bool, Problem> {
        let place = self.folder.join(to);
        let is_ours = fs::read_link(&place).is_ok_and(|found| found == Path::new(target));
        let is_free = fs::symlink_metadata(&place).is_err();
        if is_free || is_ours {
            self.link(target, to)?;
        }
        Ok(is_free || is_ours)
    }

    /// The full path of a part, its folder made, and the part on the list.
    fn folder_for(&self, part: &str) -> Result<PathBuf, Problem> {
        let mut parts = self.parts.borrow_mut();
        let below = |folder: &&Path| !folder.as_os_str().is_empty();
        for folder in Path::new(part).ancestors().skip(1).filter(below) {
            if !self.folder.join(folder).exists() {
                parts.folders.insert(folder.to_owned());
            }
        }
        parts.files.insert(part.into());
        let path = self.folder.join(part);
        let folder = path.parent().unwrap_or(&self.folder);
        write(folder, fs::create_dir_all(folder))?;
        Ok(path)
    }
}

/// Removes an installation: the parts on its list, and the folders that it made and nothing else uses.
/// Returns how many files and links there were.
///
/// # Errors
/// When the folder has no list, or something cannot be removed.
pub(super) fn remove(folder: &Path) -> Result<usize, Problem> {
    let Some(parts) = Parts::read(folder)? else {
        return Err(Problem::NotInstalled { path: folder.join(LIST) });
    };
    for file in &parts.files {
        remove_file(&folder.join(file))?;
    }
    // A folder stands after those above it.
    for made in parts.folders.iter().rev() {
        let made = folder.join(made);
        match fs::remove_dir(&made) {
            Err(error)
                if !matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) =>
            {
                return Err(Problem::Write { path: made, error });
            }
            _ => {}
        }
    }
    Ok(parts.files.len())
}

impl Parts {
    /// The list of the installation in this folder, if there is one.
    fn read(folder: &Path) -> Result<Option<Self>, Problem> {
        let path = folder.join(LIST);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Self::of_text(&text))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Problem::Read { path, error }),
        }
    }

    /// A line for each part; folders end with a slash. Lines that lead out of the folder are left out.
    fn of_text(text: &str) -> Self {
        let mut parts = Self::default();
        let stays_below = |line: &&str| {
            Path::new(line).components().all(|component| matches!(component, Component::Normal(_)))
        };
        for line in text.lines().filter(stays_below) {
            let set = if line.ends_with('/') { &mut parts.folders } else { &mut parts.files };
            set.insert(line.trim_end_matches('/').into());
        }
        parts
    }

    fn to_text(&self) -> String {
        let files = self.files.iter().map(|file| format!("{}\n", file.display()));
        files.chain(self.folders.iter().map(|folder| format!("{}/\n", folder.display()))).collect()
    }
}

/// Removes a file or link, if it is there.
fn remove_file(path: &Path) -> Result<(), Problem> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Problem::Write { path: path.to_owned(), error })
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, result: io::Result<()>) -> Result<(), Problem> {
    result.map_err(|error| Problem::Write { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(prefix: &str, destdir: Option<&str>) -> InstallPlace {
        InstallPlace { prefix: prefix.into(), destdir: destdir.map(PathBuf::from) }
    }

    /// An empty folder of this test.
    fn empty(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("landeck-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("it can be made");
        folder
    }

    fn destination(folder: &Path) -> Destination {
        Destination::new(&place(folder.to_str().expect("a path of ours"), None))
            .expect("no list is broken")
    }

    #[test]
    fn the_destination_stands_before_the_prefix() {
        let staged = place("/usr", Some("/tmp/package"));
        assert_eq!(staged.folder(), Path::new("/tmp/package/usr"));
        assert_eq!(place("/usr", None).folder(), Path::new("/usr"));
    }

    #[test]
    fn a_prefix_is_that_of_any_folder() {
        let here = std::env::current_dir().expect("there is one");
        assert_eq!(absolute("own/folder").expect("it has a name"), here.join("own/folder"));
        assert_eq!(absolute("/usr").expect("it has a name"), Path::new("/usr"));
    }

    #[test]
    fn a_link_that_another_program_has_put_there_stays() {
        let folder = empty("taken");
        fs::create_dir_all(folder.join("bin")).expect("it can be made");
        symlink("opal_wrapper", folder.join("bin/mpicc")).expect("it can be made");
        let destination = destination(&folder);
        let link = |name: &str| destination.link_unless_taken("mpicc_abi", name);
        assert!(!link("bin/mpicc").expect("it can be asked"));
        assert!(link("bin/mpicxx").expect("it can be made"));
        assert!(link("bin/mpicxx").expect("it is there"), "again");
        let found = |name| fs::read_link(folder.join(name)).expect("it is a link");
        assert_eq!(found("bin/mpicc"), Path::new("opal_wrapper"));
        assert_eq!(found("bin/mpicxx"), Path::new("mpicc_abi"));
        destination.finish().expect("the list can be written");
        remove(&folder).expect("it is installed");
        assert_eq!(found("bin/mpicc"), Path::new("opal_wrapper"), "it is not ours to remove");
        fs::remove_dir_all(folder).expect("it can be removed");
    }

    #[test]
    fn installed_files_are_removed_and_no_others() {
        let folder = empty("removed");
        fs::create_dir_all(folder.join("bin")).expect("it can be made");
        for names in [["old", "new"], ["new", "newer"]] {
            let destination = destination(&folder);
            for name in names {
                destination.text(name, &format!("share/doc/{name}")).expect("it can be written");
            }
            destination.link("../share/doc/new", "bin/new").expect("it can be made");
            destination.finish().expect("the list can be written");
        }
        assert!(!folder.join("share/doc/old").exists(), "the second installation has it no more");
        fs::write(folder.join("share/own"), "").expect("it can be written");
        assert_eq!(remove(&folder).expect("it is installed"), 4);
        assert!(folder.join("share/own").exists() && folder.join("bin").exists());
        assert!(!folder.join("bin/new").is_symlink(), "links are removed as well");
        assert!(!folder.join("share/doc").exists() && !folder.join("lib").exists());
        assert!(matches!(remove(&folder), Err(Problem::NotInstalled { .. })));
        fs::remove_dir_all(folder).expect("it can be removed");
    }

    #[test]
    fn no_line_of_a_list_leads_out_of_the_folder() {
        let parts = Parts::of_text("bin/a\n../etc/b\n/etc/c\nlib/\n./d\n");
        assert_eq!(parts.to_text(), "bin/a\nlib/\n");
    }
}
