//! `mpi.h`: types, constants, functions under both names, and what older programs need.

use std::fmt::Write;

use super::description::{Constant, Description, Function};

const HEAD: &str = "\
/* MPI 5.0 in C: the standard ABI.
 *
 * Handles, constants and types have the values of the ABI, so a program built with this header runs
 * on every library of the standard ABI, and the other way round. Made by `cargo xtask mpi`.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef LANDECK_MPI_H
#define LANDECK_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

";

const FOOT: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// The widest line of the header.
const WIDTH: usize = 100;

/// The text of the header.
pub(super) fn text(description: &Description) -> String {
    let mut text = HEAD.to_owned();
    text += &description.types;
    text += &enums(&description.constants);
    text += &description.callbacks;
    text += &constants(&description.constants);
    for prefix in ["", "P"] {
        for chapter in description.chapters() {
            let _ = write!(text, "\n/* {} */\n", title(prefix, chapter));
            for function in description.chapter(chapter) {
                text += &declaration(prefix, function);
            }
        }
    }
    text.push('\n');
    text += &description.compatibility;
    text += FOOT;
    text
}

fn title(prefix: &str, chapter: &str) -> String {
    let under_its_other_name = if prefix.is_empty() { "" } else { ", for tools" };
    format!("Functions: {}{under_its_other_name}", chapter.replace('_', " "))
}

/// Constants whose type is an enumeration.
fn enums(constants: &[Constant]) -> String {
    let of_enums = constants.iter().filter(|constant| constant.kind.starts_with("enum:"));
    let mut types: Vec<_> = of_enums.clone().filter_map(Constant::type_in_c).collect();
    types.dedup();
    let mut text = "\n/* Enumerations */\n".to_owned();
    for name in types {
        let members = of_enums.clone().filter(|constant| constant.type_in_c() == Some(name));
        let members: Vec<_> =
            members.map(|constant| format!("    {} = {}", constant.name, constant.value)).collect();
        let _ = write!(text, "typedef enum {name} {{\n{}\n}} {name};\n", members.join(",\n"));
    }
    text.push('\n');
    text
}

/// All other constants.
fn constants(constants: &[Constant]) -> String {
    let mut text = String::new();
    let mut kind_before = "";
    for constant in constants.iter().filter(|constant| !constant.kind.starts_with("enum:")) {
        let kind = constant.kind.as_str();
        if kind != kind_before {
            let words = constant.type_in_c().unwrap_or(kind).replace('_', " ");
            let _ =
                write!(text, "\n/* {} */\n", words.trim_end_matches('*').replace("MPI ", "MPI_"));
            kind_before = kind;
        }
        let _ = writeln!(text, "#define {} {}", constant.name, value(constant));
    }
    text
}

fn value(constant: &Constant) -> String {
    let value = &constant.value;
    match constant.type_in_c() {
        Some(name) => format!("(({name}){value})"),
        None if value.starts_with('-') => format!("({value})"),
        None => value.clone(),
    }
}

/// The declaration of a function, in as many lines as it needs.
fn declaration(prefix: &str, function: &Function) -> String {
    let star = if function.returns.ends_with('*') { "" } else { " " };
    let start = format!("{}{star}{prefix}{}(", function.returns, function.name);
    let parameters: Vec<_> =
        function.parameters.iter().map(|parameter| parameter.text.as_str()).collect();
    let list = if parameters.is_empty() { vec!["void"] } else { parameters };
    let mut text = start.clone();
    let mut column = start.len();
    for (index, parameter) in list.iter().enumerate() {
        let end = if index + 1 == list.len() { ");" } else { "," };
        if index > 0 && column + 1 + parameter.len() + end.len() > WIDTH {
            let _ = write!(text, "\n{}", " ".repeat(start.len()));
            column = start.len();
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        text += parameter;
        text += end;
        column += parameter.len() + end.len();
    }
    text.push('\n');
    text
}
