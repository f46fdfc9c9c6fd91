//! Finding the file of a program, as a shell would.

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There is no such file.
    #[error("program \"{}\" not found: there is no such file{}", .0.display(), from(.1))]
    NoFile(PathBuf, Option<PathBuf>),
    /// No directory of the search path has it.
    #[error("program \"{}\" not found in PATH; give its path if it is elsewhere", .0.display())]
    NotInPath(OsString),
    /// No directory of the search path has it, but the working directory does.
    #[error(
        "program \"{name}\" not found in PATH; the one in the working directory is called ./{name}",
        name = .0.display()
    )]
    OnlyHere(OsString),
    /// A directory on the way to it may not be entered.
    #[error(
        "program \"{path}\" cannot be reached: {error}. A directory on the way to it may be closed to \
         this user", path = .path.display()
    )]
    Unreachable {
        /// The path.
        path: PathBuf,
        /// What the kernel says.
        error: String,
    },
    /// It is a directory.
    #[error("\"{}\" is a directory, not a program", .0.display())]
    Directory(PathBuf),
    /// The file may be executed, but not by this user, or not where it is.
    #[error(
        "program \"{path}\" may not be executed by user {user}: it belongs to user {owner} and has the \
         permissions {mode:o}. Ask for a copy, or look whether its file system is mounted noexec",
        path = .path.display()
    )]
    NotForThisUser {
        /// The path.
        path: PathBuf,
        /// Who asks.
        user: u32,
        /// Whose it is.
        owner: u32,
        /// Its permissions.
        mode: u32,
    },
    /// The file may not be executed.
    #[error("program \"{path}\" may not be executed; if it should be: chmod +x {path}", path = .0.display())]
    NotExecutable(PathBuf),
}

impl ProgramError {
    /// The exit code that shells give for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            ProgramError::NoFile(..) | ProgramError::NotInPath(_) | ProgramError::OnlyHere(_) => {
                127
            }
            ProgramError::Directory(_)
            | ProgramError::Unreachable { .. }
            | ProgramError::NotForThisUser { .. }
            | ProgramError::NotExecutable(_) => 126,
        }
    }
}

/// Finds a program: a name with a slash is a path from `directory`, another is searched for in
/// `search`, a list of directories as PATH is.
///
/// # Errors
/// When there is none that can be executed.
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
        return check(&here(Path::new(name)))
            .map_err(|error| with_directory(error, name, directory));
    }
    let mut refused = None;
    for place in std::env::split_paths(search) {
        let path = here(&place.join(name));
        match check(&path) {
            Ok(path) => return Ok(path),
            Err(error @ (ProgramError::NotExecutable(_) | ProgramError::NotForThisUser { .. })) => {
                refused = refused.or(Some(error));
            }
            Err(_) => {}
        }
    }
    Err(match refused {
        Some(error) => error,
        None if check(&here(Path::new(name))).is_ok() => ProgramError::OnlyHere(name.to_owned()),
        None => ProgramError::NotInPath(name.to_owned()),
    })
}

fn check(path: &Path) -> Result<PathBuf, ProgramError> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            ProgramError::NoFile(path.to_owned(), None)
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

/// Why this user may not execute a file: only its owner can change its permissions, and only where
/// nobody may execute it that is what helps.
fn not_executable(path: &Path, metadata: &Metadata, user: u32) -> ProgramError {
    let (path, mode, owner) = (path.to_owned(), metadata.mode() & 0o7777, metadata.uid());
    match mode & 0o111 == 0 && (owner == user || user == 0) {
        true => ProgramError::NotExecutable(path),
        false => ProgramError::NotForThisUser { path, user, owner, mode },
    }
}

/// The name as the user gave it, and where it was looked for.
fn with_directory(error: ProgramError, name: &OsStr, directory: Option<&Path>) -> ProgramError {
    match error {
        ProgramError::NoFile(..) => {
            let relative = Path::new(name).is_relative();
            let from = directory.filter(|_| relative).map(Path::to_owned);
            ProgramError::NoFile(name.into(), from)
        }
        other => other,
    }
}

fn from(directory: &Option<PathBuf>) -> String {
    directory.as_ref().map(|path| format!(" in {}", path.display())).unwrap_or_default()
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
        assert!(absent.contains(&format!("no such file in {}", root.display())), "{absent}");
        assert!(bare.unwrap_err().to_string().contains("called ./good"));
        assert_eq!(searched, Err(ProgramError::NotExecutable(root.join("plain"))));
    }
}
