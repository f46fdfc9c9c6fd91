//! `cargo xtask install`: the built product under a prefix, in the places where systems look.
//!
//! | part | place |
//! |---|---|
//! | the command | `bin/landeck` |
//! | the MPI library | `lib/libmpi_abi.so.1`, `lib/libmpi_abi.so` |
//! | its header | `include/mpi.h` |
//! | compilers for MPI programs | `bin/mpicc_abi`, `bin/mpicxx_abi` |
//! | the names that every MPI has | `lib/landeck/bin/`: `mpicc`, `mpicxx`, `mpic++`, `mpiexec`, `mpirun`; below a prefix of its own in `bin/` as well |
//! | the DECK library, its header, compilers for DECK programs | `lib/libdeck.so.1`, `include/deck.h`, `bin/deckcc`, `bin/deckcxx` |
//! | for `pkg-config` | `lib/pkgconfig/`: `landeck.pc`, `mpi_abi.pc`, `deck.pc` |
//! | manual pages | `share/man/man1/`, of DECK `share/man/man3/` and `man7/`; those of the names that every MPI has in `lib/landeck/share/man/man1/` |
//! | completions | `share/bash-completion/completions/`, `share/zsh/site-functions/`, `share/fish/vendor_completions.d/` |
//! | texts | `share/doc/landeck/` |

mod deck;
mod wrappers;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Problem, complete};

/// Where to install.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder that the product will be used from.
    #[arg(long, default_value = "/usr/local", value_parser = absolute)]
    prefix: PathBuf,
    /// A folder that stands before the prefix while a package is made.
    #[arg(long)]
    destdir: Option<PathBuf>,
}

/// What is installed names its own folder, from wherever it is used.
fn absolute(prefix: &str) -> std::io::Result<PathBuf> {
    std::path::absolute(prefix)
}

/// The MPI standard's binary interface names the library so.
const LIBRARY: &str = "libmpi_abi.so";
const LIBRARY_NAME_IN_PROGRAMS: &str = "libmpi_abi.so.1";

/// The script of all compilers. It looks at the names by which it was installed and called.
const COMPILER: &str = "fronts/c_boundary/scripts/compiler";

const TEXTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Builds the product and puts every part in its place.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool, Problem> {
    let built = build(root)?;
    let destination = Destination::new(options);
    destination.file(&built.join("landeck"), "bin/landeck", 0o755)?;
    destination.file(&built.join(LIBRARY), &format!("lib/{LIBRARY_NAME_IN_PROGRAMS}"), 0o755)?;
    destination.link(LIBRARY_NAME_IN_PROGRAMS, &format!("lib/{LIBRARY}"))?;
    destination.file(&root.join("fronts/mpi/include/mpi.h"), "include/mpi.h", 0o644)?;
    for name in ["landeck", "mpi_abi"] {
        destination.text(&package_config(&MPI), &format!("lib/pkgconfig/{name}.pc"))?;
    }
    wrappers::install(root, &destination, &options.prefix)?;
    deck::install(root, &built, &destination)?;
    install_generated(&built, &destination)?;
    for text in TEXTS {
        destination.file(&root.join(text), &format!("share/doc/landeck/{text}"), 0o644)?;
    }
    println!("Landeck is installed in {}.", destination.folder.display());
    Ok(true)
}

/// Builds in release form and returns the folder of what was built.
fn build(root: &Path) -> Result<PathBuf, Problem> {
    let mut command = Command::new("cargo");
    command.current_dir(root);
    command.args([
        "build",
        "--release",
        "--package",
        "landeck-launcher",
        "--package",
        "landeck-mpi",
        "--package",
        "landeck-deck",
    ]);
    complete(command)?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release"))
}

/// Manual pages and completions come from the command itself, so they cannot differ from it.
fn install_generated(built: &Path, destination: &Destination) -> Result<(), Problem> {
    for kind in ["man", "completions"] {
        let folder = built.join("generated").join(kind);
        fs::create_dir_all(&folder)
            .map_err(|error| Problem::Write { path: folder.clone(), error })?;
        let mut command = Command::new(built.join("landeck"));
        command.args(["generate", kind]).arg(&folder);
        complete(command)?;
        for path in files_in(&folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(place) = place_of_generated(&name) {
                destination.file(&path, &place, 0o644)?;
            }
        }
    }
    Ok(())
}

/// Where a generated file belongs, told by its name.
fn place_of_generated(name: &str) -> Option<String> {
    if name == "mpiexec.1" {
        // That of another MPI may be in the folder of all.
        Some(format!("lib/landeck/share/man/man1/{name}"))
    } else if name.ends_with(".1") {
        Some(format!("share/man/man1/{name}"))
    } else if let Some(command) = name.strip_suffix(".bash") {
        Some(format!("share/bash-completion/completions/{command}"))
    } else if name.ends_with(".fish") {
        Some(format!("share/fish/vendor_completions.d/{name}"))
    } else if name.starts_with('_') {
        Some(format!("share/zsh/site-functions/{name}"))
    } else {
        None
    }
}

/// What `pkg-config` is to know of a library.
struct Package {
    name: &'static str,
    description: &'static str,
    library: &'static str,
}

const MPI: Package = Package {
    name: "Landeck",
    description: "Programs as groups of processes: the MPI standard's binary interface",
    library: "mpi_abi",
};

/// What `pkg-config` reads. Like the compilers, it finds the installation by its own place, so that may be moved.
/// Programs find the library where it is installed, as those of the compilers do.
fn package_config(package: &Package) -> String {
    // What the linker is told is one word: of two, pkgconf 1.8 prints a blank of the path without its backslash.
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: {}\n\
         Description: {}\n\
         Version: {}\n\
         Libs: -L${{libdir}} -Wl,--enable-new-dtags,-rpath,${{libdir}} -l{}\n\
         Cflags: -I${{includedir}}\n",
        package.name,
        package.description,
        env!("CARGO_PKG_VERSION"),
        package.library,
    )
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let unreadable = |error| Problem::Read { path: folder.to_owned(), error };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    entries.map(|entry| Ok(entry.map_err(unreadable)?.path())).collect()
}

/// The folder that is filled.
struct Destination {
    folder: PathBuf,
}

impl Destination {
    fn new(options: &Options) -> Self {
        let prefix = options.prefix.strip_prefix("/").unwrap_or(&options.prefix);
        let folder = match &options.destdir {
            Some(destdir) => destdir.join(prefix),
            None => options.prefix.clone(),
        };
        Self { folder }
    }

    /// Replaces a file by renaming, so that programs which use the old one keep it.
    fn file(&self, from: &Path, to: &str, mode: u32) -> Result<(), Problem> {
        let to = self.folder_for(to)?;
        let fresh = to.with_extension("new");
        fs::copy(from, &fresh).map_err(|error| Problem::Read { path: from.to_owned(), error })?;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(mode))
            .and_then(|()| fs::rename(&fresh, &to))
            .map_err(|error| Problem::Write { path: to, error })
    }

    fn text(&self, text: &str, to: &str) -> Result<(), Problem> {
        let to = self.folder_for(to)?;
        fs::write(&to, text).map_err(|error| Problem::Write { path: to, error })
    }

    fn link(&self, target: &str, to: &str) -> Result<(), Problem> {
        let to = self.folder_for(to)?;
        if to.is_symlink() {
            fs::remove_file(&to).map_err(|error| Problem::Write { path: to.clone(), error })?;
        }
        symlink(target, &to).map_err(|error| Problem::Write { path: to, error })
    }

    /// A link, unless something else has its name: then false.
    fn link_unless_taken(&self, target: &str, to: &str) -> Result<bool, Problem> {
        let place = self.folder.join(to);
        let is_ours = fs::read_link(&place).is_ok_and(|found| found == Path::new(target));
        let is_free = fs::symlink_metadata(&place).is_err();
        if is_free {
            self.link(target, to)?;
        }
        Ok(is_free || is_ours)
    }

    /// The full path of a part, its folder made.
    fn folder_for(&self, part: &str) -> Result<PathBuf, Problem> {
        let path = self.folder.join(part);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)
            .map_err(|error| Problem::Write { path: folder.to_owned(), error })?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(prefix: &str, destdir: Option<&str>) -> Options {
        Options { prefix: prefix.into(), destdir: destdir.map(PathBuf::from) }
    }

    #[test]
    fn the_destination_stands_before_the_prefix() {
        assert_eq!(
            Destination::new(&options("/usr", Some("/tmp/package"))).folder,
            Path::new("/tmp/package/usr")
        );
        assert_eq!(Destination::new(&options("/usr", None)).folder, Path::new("/usr"));
    }

    #[test]
    fn generated_files_find_their_place() {
        let place = |name| place_of_generated(name).unwrap_or_default();
        assert_eq!(place("landeck-run.1"), "share/man/man1/landeck-run.1");
        assert_eq!(place("mpiexec.1"), "lib/landeck/share/man/man1/mpiexec.1");
        assert_eq!(place("landeck.bash"), "share/bash-completion/completions/landeck");
        assert_eq!(place("_landeck"), "share/zsh/site-functions/_landeck");
        assert_eq!(place("landeck.fish"), "share/fish/vendor_completions.d/landeck.fish");
        assert_eq!(place("notes.txt"), "");
    }

    #[test]
    fn a_prefix_is_that_of_any_folder() {
        let here = std::env::current_dir().expect("there is one");
        assert_eq!(absolute("own/folder").expect("it has a name"), here.join("own/folder"));
        assert_eq!(absolute("/usr").expect("it has a name"), Path::new("/usr"));
    }

    #[test]
    fn a_package_file_names_no_folder_that_can_be_moved_away() {
        let text = package_config(&MPI);
        assert!(text.starts_with("prefix=${pcfiledir}/../..\n"), "{text}");
        assert!(
            text.contains("Libs: -L${libdir} -Wl,--enable-new-dtags,-rpath,${libdir} -lmpi_abi\n")
        );
    }

    #[test]
    fn what_another_program_has_put_there_stays() {
        let folder = std::env::temp_dir().join(format!("landeck-install-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).expect("it can be made");
        let destination = Destination { folder: folder.clone() };
        symlink("opal_wrapper", folder.join("bin/mpicc")).expect("it can be made");
        let link = |name: &str| destination.link_unless_taken("mpicc_abi", name);
        assert!(!link("bin/mpicc").expect("it can be asked"));
        assert!(link("bin/mpicxx").expect("it can be made"));
        assert!(link("bin/mpicxx").expect("it is there"), "again");
        let found = |name| fs::read_link(folder.join(name)).expect("it is a link");
        assert_eq!(found("bin/mpicc"), Path::new("opal_wrapper"));
        assert_eq!(found("bin/mpicxx"), Path::new("mpicc_abi"));
        fs::remove_dir_all(folder).expect("it can be removed");
    }
}
