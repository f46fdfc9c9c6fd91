//! Directories that only their user may enter.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// The mode that lets only the user access the directory.
const PRIVATE: u32 = 0o700;

/// The reason why a directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirectoryError {
    /// The kernel refuses to create it or to show it.
    #[error(transparent)]
    System(#[from] io::Error),
    /// Others may enter it, another user owns it, or it is no directory.
    #[error("it is not a directory for this user alone: remove it")]
    NotPrivate,
}

/// Creates a directory for the user as which this process acts, unless there is one.
///
/// # Errors
/// [`PrivateDirectoryError`].
pub fn create(directory: &Path) -> Result<(), PrivateDirectoryError> {
    match DirBuilder::new().mode(PRIVATE).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    // A symbolic link is not followed: in /tmp any user can put one there first.
    let found = fs::symlink_metadata(directory)?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != own || found.mode() & 0o077 != 0 {
        return Err(PrivateDirectoryError::NotPrivate);
    }
    if found.mode() & PRIVATE != PRIVATE {
        // It was created under a umask that removes rights from the user itself.
        fs::set_permissions(directory, fs::Permissions::from_mode(PRIVATE))?;
    }
    Ok(())
}
