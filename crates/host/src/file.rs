//! Files and directories that a user names. They may be anything, even endless.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::report::size;

/// Reads a whole file of no more than `bytes_max` bytes.
///
/// # Errors
/// The kernel's error, or that the file is longer.
pub fn read_within(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let text = format!("it has more than {}, the most that is read", size(bytes_max as u64));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Reads a whole text of no more than `bytes_max` bytes.
///
/// # Errors
/// The errors of [`read_within`], or that the file is no text.
pub fn read_text_within(path: &Path, bytes_max: usize) -> io::Result<String> {
    let bytes = read_within(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Creates a directory and those above it, unless they exist.
///
/// # Errors
/// The kernel's error, or that something else has the name.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "this is no directory, and something else has the name",
        )),
        _ => fs::create_dir_all(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = read_within(Path::new("/dev/zero"), 4096).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 4.0 KiB, the most that is read");
    }

    #[test]
    fn a_path_that_is_no_directory_is_called_that() {
        let error = make_directory(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.starts_with("this is no directory"), "{error}");
        assert!(make_directory(Path::new("/dev")).is_ok());
    }

    #[test]
    fn a_file_of_the_greatest_length_is_read() {
        let path = std::env::temp_dir().join(format!("landeck-file-{}", std::process::id()));
        std::fs::write(&path, "1234").unwrap();
        let (fits, is_longer) = (read_text_within(&path, 4), read_within(&path, 3));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(fits.unwrap(), "1234");
        assert!(is_longer.is_err());
    }
}
