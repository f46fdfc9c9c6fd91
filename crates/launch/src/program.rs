//! Finds the file of a program, as a shell would.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

/// The largest distance between a name and a suggestion.
const NEAR: usize = 2;
/// The number of files of a directory that are compared with a name.
const FILES_MAX: usize = 4096;

/// The reason why a program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There is no such file.
    #[error(
        "program \"{name}\" not found: there is no such file in {folder}{suggestion}",
        name = .name.display(), folder = .folder.display(), suggestion = suggestion(.near.as_deref())
    )]
    NoFile {
        /// The name as the user gave it.
        name: PathBuf,
        /// The folder that was searched.
        folder: PathBuf,
        /// A program there with nearly this name, as the user would write it.
        near: Option<PathBuf>,
    },
    /// There is no such folder.
    #[error(
        "program \"{name}\" not found: there is no folder {folder}",
        name = .name.display(), folder = .folder.display()
    )]
    NoFolder {
        /// The name as the user gave it.
        name: PathBuf,
        /// The folder that it names.
        folder: PathBuf,
    },
    /// No directory of the search path has it.
    #[error(
        "program \"{name}\" not found in PATH; give its path if it is elsewhere{suggestion}",
        name = .name.display(), suggestion = suggestion(.near.as_deref())
    )]
    NotInPath {
        /// The name as the user gave it.
        name: OsString,
        /// A program in the working directory with nearly this name.
        near: Option<PathBuf>,
    },
    /// No directory of the search path has it, but the working directory does.
    #[error(
        "program \"{name}\" not found in PATH; the one in the working directory is called ./{name}",
        name = .0.display()
    )]
    OnlyHere(OsString),
    /// A directory on the way to the file cannot be entered.
    #[error(
        "program \"{path}\" cannot be reached: {error}. A directory on the way to it may be closed to \
         this user", path = .path.display()
    )]
    Unreachable {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        error: String,
    },
    /// The name belongs to a directory.
    #[error("\"{}\" is a directory, not a program", .0.display())]
    Directory(PathBuf),
    /// The file may be executed, but not by this user, or not at its place.
    #[error(
        "program \"{path}\" may not be executed by user {user}: it belongs to user {owner} and has the \
         permissions {mode:o}. Ask for a copy, or look whether its file system is mounted noexec",
        path = .path.display()
    )]
    NotForThisUser {
        /// The path.
        path: PathBuf,
        /// The user that this process acts as.
        user: u32,
        /// The owner of the file.
        owner: u32,
        /// Its permissions.
        mode: u32,
    },
    /// The file may not be executed.
    #[error("program \"{path}\" may not be executed; if it should be: chmod +x {path}", path = .0.display())]
    NotExecutable(PathBuf),
    /// The file is the source of a program.
    #[error("\"{path}\" is {language} source; {way}", path = .path.display())]
    Source {
        /// The path.
        path: PathBuf,
        /// The language, by the file's extension.
        language: &'static str,
        /// The way to compile it.
        way: String,
    },
}

impl ProgramError {
    /// The exit code that shells use for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            ProgramError::NoFile { .. }
            | ProgramError::NoFolder { .. }
            | ProgramError::NotInPath { .. }
            | ProgramError::OnlyHere(_) => 127,
            ProgramError::Directory(_)
            | ProgramError::Unreachable { .. }
            | ProgramError::NotForThisUser { .. }
            | ProgramError::NotExecutable(_)
            | ProgramError::Source { .. } => 126,
        }
    }
}

/// Finds a program. A name with a slash is a path from `directory`; any other is searched for in `search`, a list of
/// directories like PATH.
///
/// # Errors
/// If there is none that can be executed.
pub fn find(
    name: &OsStr,
    directory: Option<&Path>,
    search: &OsStr,
) -> Result<PathBuf, ProgramError> {
    let here = |path: &Path| match directory {
        Some(directory) => directory.join(path),
        None => path.to_owned(),
    };
    if name.as_bytes().contains(&b'/') {
        let path = here(Path::new(name));
        return check(&path).map_err(|error| with_place(error, Path::new(name), &path));
    }
    let mut refused = None;
    for place in std::env::split_paths(search) {
        let path = here(&place.join(name));
        match check(&path) {
            Ok(path) => return Ok(path),
            Err(
                error @ (ProgramError::NotExecutable(_)
                | ProgramError::NotForThisUser { .. }
                | ProgramError::Source { .. }),
            ) => refused = refused.or(Some(error)),
            Err(_) => {}
        }
    }
    Err(match refused {
        Some(error) => error,
        None if check(&here(Path::new(name))).is_ok() => ProgramError::OnlyHere(name.to_owned()),
        None => {
            let near = near(&here(Path::new(".")), name).map(|near| Path::new(".").join(near));
            ProgramError::NotInPath { name: name.to_owned(), near }
        }
    })
}

fn check(path: &Path) -> Result<PathBuf, ProgramError> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            let (name, folder) = (path.to_owned(), PathBuf::new());
            ProgramError::NoFile { name, folder, near: None }
        }
        _ => ProgramError::Unreachable { path: path.to_owned(), error: error.to_string() },
    })?;
    if metadata.is_dir() {
        return Err(ProgramError::Directory(path.to_owned()));
    }
    match access(path, Access::EXEC_OK) {
        Ok(()) => Ok(path.to_owned()),
        Err(_) => Err(not_executable(path, &metadata, geteuid().as_raw())),
    }
}

/// The reason why this user may not execute a file. The advice to change its permissions is given only if nobody may
/// execute it and the user may change them.
fn not_executable(path: &Path, metadata: &Metadata, user: u32) -> ProgramError {
    if let Some((language, way)) = source(path) {
        return ProgramError::Source { path: path.to_owned(), language, way };
    }
    let (path, mode, owner) = (path.to_owned(), metadata.mode() & 0o7777, metadata.uid());
    match mode & 0o111 == 0 && (owner == user || user == 0) {
        true => ProgramError::NotExecutable(path),
        false => ProgramError::NotForThisUser { path, user, owner, mode },
    }
}

/// The language of a source file, and the way to compile it.
fn source(path: &Path) -> Option<(&'static str, String)> {
    let (language, compiler) = match path.extension()?.to_str()? {
        "c" => ("C", "mpicc_abi"),
        "cc" | "cpp" | "cxx" | "C" => ("C++", "mpicxx_abi"),
        "f" | "for" | "F" | "f90" | "F90" | "f03" | "f08" => ("Fortran", "gfortran"),
        "rs" => ("Rust", ""),
        _ => return None,
    };
    let (file, program) = (path.file_name()?.display(), path.file_stem()?.display());
    Some(match language {
        "Rust" => (
            language,
            "build its package with cargo, and give the program that this makes".to_owned(),
        ),
        _ => (language, format!("compile it: {compiler} {file} -o {program}")),
    })
}

/// Adds the name as the user gave it, the folder that was searched, and the program that may have been meant.
fn with_place(error: ProgramError, name: &Path, path: &Path) -> ProgramError {
    let ProgramError::NoFile { .. } = error else { return error };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let folder = std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder));
    let folder = folder.unwrap_or_else(|_| path.to_owned());
    if !folder.is_dir() {
        return ProgramError::NoFolder { name: name.to_owned(), folder };
    }
    let near = path.file_name().and_then(|file| near(&folder, file));
    let near = near.map(|near| match name.parent() {
        Some(parent) => parent.join(near),
        None => near.into(),
    });
    ProgramError::NoFile { name: name.to_owned(), folder, near }
}

/// The program of a folder whose name differs least from this one, if it differs little.
fn near(folder: &Path, name: &OsStr) -> Option<OsString> {
    let files = std::fs::read_dir(folder).ok()?.take(FILES_MAX).flatten();
    let files = files.map(|file| (distance(name.as_bytes(), file.file_name().as_bytes()), file));
    let mut few: Vec<_> = files.filter(|(distance, _)| *distance <= NEAR).collect();
    few.sort_by_key(|(distance, file)| (*distance, file.file_name()));
    few.into_iter()
        .map(|(_, file)| file)
        .find(|file| check(&file.path()).is_ok())
        .map(|file| file.file_name())
}

/// Whether two names are so near that one may stand for the other by mistake.
pub fn is_near(one: &str, other: &str) -> bool {
    distance(one.as_bytes(), other.as_bytes()) <= NEAR
}

/// The number of letters to insert, delete, change, or swap with their neighbours.
fn distance(from: &[u8], to: &[u8]) -> usize {
    if from.len().abs_diff(to.len()) > NEAR {
        return NEAR + 1;
    }
    let width = to.len() + 1;
    let mut table: Vec<usize> =
        (0..width * (from.len() + 1)).map(|at| at % width + at / width).collect();
    for (row, letter) in (1..).zip(from) {
        for (column, other) in (1..).zip(to) {
            let at = row * width + column;
            let changed = table[at - width - 1] + usize::from(letter != other);
            table[at] = changed.min(table[at - width] + 1).min(table[at - 1] + 1);
            let is_turned =
                row > 1 && column > 1 && letter == &to[column - 2] && other == &from[row - 2];
            if is_turned {
                table[at] = table[at].min(table[at - 2 * width - 2] + 1);
            }
        }
    }
    table[width * (from.len() + 1) - 1]
}

fn suggestion(near: Option<&Path>) -> String {
    near.map(|path| format!("; did you mean \"{}\"?", path.display())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn found(name: &str, directory: Option<&Path>, search: &str) -> Result<PathBuf, ProgramError> {
        find(OsStr::new(name), directory, OsStr::new(search))
    }

    #[test]
    fn the_search_path_is_searched_in_order() {
        assert_eq!(found("sh", None, "/nowhere:/bin:/usr/bin"), Ok("/bin/sh".into()));
        let error = found("no-such-program", None, "/bin").unwrap_err();
        assert_eq!(error.exit_code(), 127);
        assert!(error.to_string().contains("not found in PATH"), "{error}");
    }

    #[test]
    fn chmod_is_advised_to_owners_alone() {
        let path = std::env::temp_dir().join(format!("landeck-owned-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let metadata = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            fs::metadata(&path).unwrap()
        };
        let (plain, private) = (metadata(0o644), metadata(0o700));
        fs::remove_file(&path).unwrap();
        let owner = plain.uid();
        let text = |metadata, user| not_executable(&path, metadata, user).to_string();
        assert!(text(&plain, owner).contains("chmod +x"));
        let words = format!("by user 65533: it belongs to user {owner} and has the permissions ");
        assert!(text(&plain, 65_533).contains(&format!("{words}644")));
        assert!(text(&private, 65_533).contains(&format!("{words}700")));
        assert_eq!(not_executable(&path, &private, 65_533).exit_code(), 126);
    }

    #[test]
    fn a_path_that_cannot_be_walked_is_not_called_absent() {
        let endless = format!("./{}", "x".repeat(300));
        let error = found(&endless, None, "").unwrap_err();
        assert!(matches!(error, ProgramError::Unreachable { .. }), "{error}");
        assert_eq!(error.exit_code(), 126);
    }

    #[test]
    fn a_name_that_is_nearly_right_is_suggested() {
        let root = std::env::temp_dir().join(format!("landeck-near-{}", std::process::id()));
        fs::create_dir_all(root.join("hear")).unwrap();
        for (name, mode) in [("heat", 0o755), ("heat.c", 0o644), ("heta.txt", 0o644)] {
            fs::write(root.join(name), "").unwrap();
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let said = ["./heta", "./haet", "./hea", "heta", "./cold", "./sub/heat", "./heat.c"]
            .map(|name| found(name, Some(&root), "/bin").unwrap_err().to_string());
        fs::remove_dir_all(&root).unwrap();
        let place = root.display();
        for (text, end) in said.iter().zip([
            format!("there is no such file in {place}; did you mean \"./heat\"?"),
            format!("there is no such file in {place}; did you mean \"./heat\"?"),
            format!("there is no such file in {place}; did you mean \"./heat\"?"),
            "give its path if it is elsewhere; did you mean \"./heat\"?".to_owned(),
            format!("there is no such file in {place}"),
            format!("there is no folder {place}/sub"),
            "heat.c\" is C source; compile it: mpicc_abi heat.c -o heat".to_owned(),
        ]) {
            assert!(text.ends_with(&end), "{text}");
        }
    }

    #[test]
    fn names_have_a_distance() {
        let of = |from: &str, to: &str| distance(from.as_bytes(), to.as_bytes());
        assert_eq!(
            [of("", ""), of("heat", "heta"), of("heat", "hat"), of("a", "bc")],
            [0, 1, 1, 2]
        );
        assert!(!is_near("heat", "heating") && is_near("--tsacks", "--stacks"));
    }

    #[test]
    fn paths_start_at_the_working_directory() {
        let root = std::env::temp_dir().join(format!("landeck-program-{}", std::process::id()));
        fs::create_dir_all(root.join("folder")).unwrap();
        fs::write(root.join("good"), "").unwrap();
        fs::set_permissions(root.join("good"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(root.join("plain"), "").unwrap();
        let here = Some(root.as_path());
        let found = [
            found("./good", here, ""),
            found("./plain", here, ""),
            found("./folder", here, ""),
            found("./absent", here, ""),
            found("good", here, "/bin"),
            found("plain", None, root.to_str().unwrap()),
        ];
        fs::remove_dir_all(&root).unwrap();
        let [good, plain, folder, absent, bare, searched] = found;
        assert_eq!(good, Ok(root.join("./good")));
        assert_eq!(plain.unwrap_err().exit_code(), 126);
        assert_eq!(folder, Err(ProgramError::Directory(root.join("./folder"))));
        let absent = absent.unwrap_err().to_string();
        let words =
            format!("program \"./absent\" not found: there is no such file in {}", root.display());
        assert_eq!(absent, words);
        assert!(bare.unwrap_err().to_string().contains("called ./good"));
        assert_eq!(searched, Err(ProgramError::NotExecutable(root.join("plain"))));
    }
}
