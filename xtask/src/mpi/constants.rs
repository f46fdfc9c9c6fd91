//! The constants of the ABI in Rust, without their prefix.

use std::fmt::Write;

use super::description::{Constant, Description};

const HEAD: &str = "\
//! The constants of the ABI, without their prefix. Made by `cargo xtask mpi`.

// All of them are here, whether this library needs them or not.
#![allow(dead_code)]

use std::ffi::c_int;

use super::Handle;

";

/// The text of the module.
pub(super) fn text(description: &Description) -> String {
    let mut text = HEAD.to_owned();
    for constant in &description.constants {
        let (name, value) = (short(&constant.name), &constant.value);
        let _ = writeln!(text, "pub(crate) const {name}: {} = {value};", type_of(constant));
    }
    let is_class = |constant: &&Constant| {
        constant.kind == "error_class" && constant.name != "MPI_ERR_LASTCODE"
    };
    text += &names(
        ("ERROR_CLASSES", "error classes"),
        "c_int",
        description.constants.iter().filter(is_class),
    );
    let is_datatype = |constant: &&Constant| constant.kind == "handle:MPI_Datatype";
    text += &names(
        ("DATATYPES", "datatypes"),
        "Handle",
        description.constants.iter().filter(is_datatype),
    );
    text
}

/// A table from values to names; of two names for one value it has the first.
fn names<'a>(
    (table, whose): (&str, &str),
    key: &str,
    constants: impl Iterator<Item = &'a Constant>,
) -> String {
    let mut rows: Vec<&Constant> = Vec::new();
    for constant in constants {
        if rows.iter().all(|row| row.number() != constant.number()) {
            rows.push(constant);
        }
    }
    let mut text = format!(
        "\n/// The names of the {whose}.\npub(crate) static {table}: [({key}, &str); {}] = [\n",
        rows.len()
    );
    for row in rows {
        let _ = writeln!(text, "    ({}, \"{}\"),", short(&row.name), row.name);
    }
    text + "];\n"
}

/// The name without its prefix, which Rust can read: `MPI_2INT` is `TWO_INT`. The extension keeps
/// what tells it apart.
fn short(name: &str) -> String {
    let short = name.strip_prefix("MPI_").unwrap_or(name);
    short.strip_prefix('2').map_or_else(|| short.to_owned(), |rest| format!("TWO_{rest}"))
}

fn type_of(constant: &Constant) -> &'static str {
    match constant.kind.split(':').next().unwrap_or_default() {
        "handle" => "Handle",
        "pointer_const" | "callback" => "usize",
        "offset_const" => "i64",
        _ => "c_int",
    }
}
