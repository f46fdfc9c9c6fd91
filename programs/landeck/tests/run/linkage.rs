//! Programs that are linked with the MPI library of another implementation.

use super::*;
use std::path::{Path, PathBuf};

#[test]
fn a_program_of_another_mpi_is_told_of() {
    let folder = std::env::temp_dir().join(format!("landeck-foreign-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let program = program_of_another_mpi(&folder);
    let several = run(&["-n", "2", program.to_str().unwrap()]);
    let alone = run(&["-n", "1", program.to_str().unwrap()]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(several.code, Some(0), "{}", several.err);
    let start = format!(
        "landeck: {} is linked with libmpi.so.40, the library of Open MPI: each of its processes will \
         be rank 0 of 1.",
        program.display()
    );
    assert!(several.err.starts_with(&start), "{}", several.err);
    assert!(
        several.err.ends_with("landeck: none of the 2 processes joined the job.\n"),
        "{}",
        several.err
    );
    // What is alone is rank 0 of 1.
    assert_eq!((alone.code, alone.err.as_str()), (Some(0), ""));
}

#[test]
fn plain_programs_are_not_told_of() {
    let ended = run(&["-n", "2", "hostname"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

/// A program that is linked with a library of that name.
fn program_of_another_mpi(folder: &Path) -> PathBuf {
    let (library, program) = (folder.join("libmpi.so.40"), folder.join("program"));
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("library.c", "int MPI_Init(void) { return 0; }\n");
    write("program.c", "int MPI_Init(void);\nint main(void) { return MPI_Init(); }\n");
    let compile = |arguments: &[&str]| {
        let done = Command::new("cc").current_dir(folder).args(arguments).status().unwrap();
        assert!(done.success());
    };
    let (library, path) = (library.to_str().unwrap(), format!("-Wl,-rpath,{}", folder.display()));
    compile(&["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", "library.c", "-o", library]);
    compile(&["program.c", library, &path, "-Wl,--no-as-needed", "-o", program.to_str().unwrap()]);
    program
}
