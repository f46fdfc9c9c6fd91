//! `cargo xtask install`: the built product under a prefix, in the places where systems look.
//!
//! | part | place |
//! |---|---|
//! | the command | `bin/landeck` |
//! | the daemon of a job's hosts | `bin/landeckd` |
//! | the MPI library | `lib/libmpi_abi.so.1`, `lib/libmpi_abi.so` |
//! | its header | `include/mpi.h` |
//! | compilers for MPI programs | `bin/mpicc_abi`, `bin/mpicxx_abi` |
//! | the names that every MPI has | `lib/landeck/bin/`: `mpicc`, `mpicxx`, `mpic++`, `mpiexec`, `mpirun`; below a prefix of its own in `bin/` as well |
//! | the DECK library, its header, compilers for DECK programs | `lib/libdeck.so.1`, `include/deck.h`, `bin/deckcc`, `bin/deckcxx` |
//! | for `pkg-config` | `lib/pkgconfig/`: `landeck.pc`, `mpi_abi.pc`, `deck.pc` |
//! | manual pages | `share/man/man1/`, of DECK `share/man/man3/` and `man7/`; those of the names that every MPI has in `lib/landeck/share/man/man1/` |
//! | completions | `share/bash-completion/completions/`, `share/zsh/site-functions/`, `share/fish/vendor_completions.d/` |
//! | texts | `share/doc/landeck/` |
//! | the list of all these, for `cargo xtask uninstall` | `lib/landeck/installed` |

mod deck;
mod destination;
mod wrappers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use landeck_testing::program::forget_package;

use crate::{Problem, complete};
pub(crate) use destination::InstallPlace;
use destination::{Destination, remove};

/// The options of an installation.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: InstallPlace,
    #[command(flatten)]
    build: Build,
    /// Install what `cargo xtask build` has built, without a compiler.
    #[arg(long)]
    as_built: bool,
}

/// How to build.
#[derive(clap::Args)]
pub(crate) struct Build {
    /// The profile of cargo: `dev` builds faster, and what it builds runs slower.
    #[arg(long, default_value = "release")]
    profile: String,
    /// Take what cargo has compiled already, as scripts/run.sh does: this program and the product in one go.
    #[arg(long)]
    compiled: bool,
}

/// The MPI standard's binary interface names the library so.
const LIBRARY: &str = "libmpi_abi.so";
const LIBRARY_NAME_IN_PROGRAMS: &str = "libmpi_abi.so.1";

/// The script of all compilers. It looks at the names by which it was installed and called.
const COMPILER: &str = "fronts/c_boundary/scripts/compiler";

/// The packages that are built for an installation.
const PACKAGES: [&str; 4] = ["landeck-launcher", "landeckd", "landeck-mpi", "landeck-deck"];

/// The profile of tests. In it, everything is built with the features that the whole workspace gives to libraries of
/// others: what tests have built is not built again.
const TESTED: &str = "dev";

/// The programs. Each writes its own manual pages and completions. The command looks for the daemon beside itself.
const PROGRAMS: [&str; 2] = ["landeck", "landeckd"];

const TEXTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Removes every part that an installation has put there.
pub(crate) fn uninstall(place: &InstallPlace) -> Result<bool, Problem> {
    let folder = place.folder();
    let parts = remove(&folder)?;
    say!("Landeck is removed from {}: {parts} files and links.", folder.display());
    Ok(true)
}

/// Builds the product, with all that it says of itself. So an installation as built only copies: `sudo make install`
/// leaves nothing of the superuser's in the folder of the sources.
pub(crate) fn build(root: &Path, build: &Build) -> Result<bool, Problem> {
    if !build.compiled {
        complete(build.command(root))?;
    }
    generate(&build.folder(root))?;
    Ok(true)
}

/// Builds the product and puts every part in its place.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool, Problem> {
    if !options.as_built {
        build(root, &options.build)?;
    }
    let built = options.build.folder(root);
    let destination = Destination::new(&options.place)?;
    for program in PROGRAMS {
        destination.file(&built.join(program), &format!("bin/{program}"), 0o755)?;
    }
    destination.file(&built.join(LIBRARY), &format!("lib/{LIBRARY_NAME_IN_PROGRAMS}"), 0o755)?;
    destination.link(LIBRARY_NAME_IN_PROGRAMS, &format!("lib/{LIBRARY}"))?;
    destination.file(&root.join("fronts/mpi/include/mpi.h"), "include/mpi.h", 0o644)?;
    for name in ["landeck", "mpi_abi"] {
        destination.text(&package_config(&MPI), &format!("lib/pkgconfig/{name}.pc"))?;
    }
    wrappers::install(root, &destination, &options.place.prefix)?;
    deck::install(root, &built, &destination)?;
    install_generated(&built, &destination)?;
    for text in TEXTS {
        destination.file(&root.join(text), &format!("share/doc/landeck/{text}"), 0o644)?;
    }
    for page in files_in(&root.join("docs"))?
        .iter()
        .filter(|page| page.extension().is_some_and(|it| it == "md"))
    {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        destination.file(page, &format!("share/doc/landeck/docs/{name}"), 0o644)?;
    }
    let folder = destination.finish()?;
    say!("Landeck is installed in {}.", folder.display());
    Ok(true)
}

impl Build {
    /// The command that compiles the product.
    fn command(&self, root: &Path) -> Command {
        let mut command = Command::new("cargo");
        forget_package(&mut command);
        command.current_dir(root).args(["build", "--profile", &self.profile]);
        if self.profile == TESTED {
            command.args(["--workspace", "--lib"]);
            command.args(PROGRAMS.iter().flat_map(|program| ["--bin", program]));
        } else {
            command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
        }
        command
    }

    /// The folder of what was built.
    fn folder(&self, root: &Path) -> PathBuf {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        target.join(if self.profile == TESTED { "debug" } else { &self.profile })
    }
}

/// The documents that each program writes about itself.
const GENERATED: [&str; 2] = ["man", "completions"];

/// Has each built program write its manual pages and completions, so they cannot differ from it.
fn generate(built: &Path) -> Result<(), Problem> {
    for kind in GENERATED {
        let folder = built.join("generated").join(kind);
        let written = |error| Problem::Write { path: folder.clone(), error };
        // Pages of commands that are no more would be installed.
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(written)?;
        }
        fs::create_dir_all(&folder).map_err(written)?;
        for program in PROGRAMS {
            let mut command = Command::new(built.join(program));
            command.args(["generate", kind]).arg(&folder);
            complete(command)?;
        }
    }
    Ok(())
}

/// Puts the manual pages and completions in their places.
fn install_generated(built: &Path, destination: &Destination) -> Result<(), Problem> {
    for kind in GENERATED {
        for path in files_in(&built.join("generated").join(kind))? {
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

/// The description of a library for `pkg-config`.
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

/// Returns a file for `pkg-config`. Like the compilers, it finds the installation by its own place, so that may be
/// moved.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_find_their_place() {
        let place = |name| place_of_generated(name).unwrap_or_default();
        assert_eq!(place("landeck-run.1"), "share/man/man1/landeck-run.1");
        assert_eq!(place("mpiexec.1"), "lib/landeck/share/man/man1/mpiexec.1");
        assert_eq!(place("landeck.bash"), "share/bash-completion/completions/landeck");
        assert_eq!(place("_landeck"), "share/zsh/site-functions/_landeck");
        assert_eq!(place("landeckd-join.1"), "share/man/man1/landeckd-join.1");
        assert_eq!(place("landeckd.bash"), "share/bash-completion/completions/landeckd");
        assert_eq!(place("landeck.fish"), "share/fish/vendor_completions.d/landeck.fish");
        assert_eq!(place("notes.txt"), "");
    }

    #[test]
    fn a_package_file_names_no_folder_that_can_be_moved_away() {
        let text = package_config(&MPI);
        assert!(text.starts_with("prefix=${pcfiledir}/../..\n"), "{text}");
        assert!(
            text.contains("Libs: -L${libdir} -Wl,--enable-new-dtags,-rpath,${libdir} -lmpi_abi\n")
        );
    }
}
