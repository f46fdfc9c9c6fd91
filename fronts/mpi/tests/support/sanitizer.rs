//! The C programs built for a sanitizer, as the library under test is then: `cargo xtask test addresses
//! races` does that, and says so by these variables.
//!
//! Program and library share one runtime of the sanitizer. It is the one that comes with the compiler of
//! the library; what a C compiler puts into its code is the same.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A sanitizer, and what is built for it.
pub(super) struct Sanitizer {
    /// As compilers name it: `address`, `thread`.
    pub(super) name: String,
    /// The library under test.
    pub(super) library: PathBuf,
    /// The runtime that programs and the library call.
    runtime: PathBuf,
}

/// The sanitizer that the tests run with, if one is asked for.
pub(super) fn wanted() -> Option<&'static Sanitizer> {
    static WANTED: OnceLock<Option<Sanitizer>> = OnceLock::new();
    WANTED
        .get_or_init(|| {
            let variable = |name| std::env::var(name).ok();
            Some(Sanitizer {
                name: variable("LANDECK_SANITIZER")?,
                library: variable("LANDECK_SANITIZED_LIBRARY")?.into(),
                runtime: variable("LANDECK_SANITIZER_RUNTIME")?.into(),
            })
        })
        .as_ref()
}

impl Sanitizer {
    /// Adds the compiler flags for instrumented code. A mistake that is found ends the program.
    pub(super) fn compile(&self, compiler: &mut Command, source: &Path, object: &Path) {
        let also = if self.name == "address" { ",undefined" } else { "" };
        compiler.arg(format!("-fsanitize={}{also}", self.name)).arg("-fno-sanitize-recover=all");
        // The runtime that comes with the compiler of the library has nothing for classes of C++.
        compiler.arg("-fno-sanitize=vptr");
        compiler.args(["-g", "-fno-omit-frame-pointer", "-c"]).arg(source).arg("-o").arg(object);
    }

    /// Adds the linker flags for an instrumented program.
    pub(super) fn link(&self, compiler: &mut Command, object: &Path, target: &Path) {
        compiler.arg(object).arg("-o").arg(target).arg("-Wl,--whole-archive").arg(&self.runtime);
        // The library finds the runtime in the program.
        compiler.args(["-Wl,--no-whole-archive", "-Wl,--export-dynamic", "-ldl", "-lrt", "-lm"]);
    }
}
