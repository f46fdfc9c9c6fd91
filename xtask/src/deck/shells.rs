//! The functions as C sees them.

use super::description::{Chapter, Description, Function};

const HEAD: &str = "\
//! The functions as C sees them. Made by `cargo xtask deck`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::entry::{shell, shell_of_all, value};
use crate::functions::group::Options;
use crate::functions::mailbox::Event;
use crate::functions::*;
use crate::handle::Handle;
use crate::objects::thread::Body;
";

/// The text of the module.
pub(super) fn text(description: &Description) -> String {
    let mut text = HEAD.to_owned();
    for chapter in &description.chapters {
        for function in &chapter.functions {
            text += &shell(chapter, function);
        }
    }
    text
}

fn shell(chapter: &Chapter, function: &Function) -> String {
    let parameters: Vec<_> = function.parameters.iter().map(|text| parameter(text)).collect();
    let list: Vec<_> = parameters.iter().map(|(name, kind)| format!("{name}: {kind}")).collect();
    let names: Vec<_> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let (list, names) = (list.join(", "), names.join(", "));
    let (name, body) = (&function.name, masked(function.body(chapter)));
    let module = chapter.name;
    let (shell, returns) = match function.returns.as_deref().map(str::trim) {
        None if function.in_children => ("shell_of_all", ""),
        None => ("shell", ""),
        Some("void") => ("value", " -> ()"),
        Some(_) => ("value", " -> *const c_char"),
    };
    format!("\n{shell}! {{\n    fn {name}({list}){returns} => {module}::{body}({names})\n}}\n")
}

/// The name of a body: words that Rust has for itself, or that mean something else there, have a line
/// behind them.
fn masked(body: &str) -> String {
    if ["self", "use", "count"].contains(&body) { format!("{body}_") } else { body.to_owned() }
}

/// The name of a parameter and its type in Rust.
fn parameter(text: &str) -> (String, String) {
    let (text, is_array) = match text.strip_suffix("[]") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let start = text.rfind([' ', '*']).map_or(0, |at| at + 1);
    let (kind, name) = text.split_at(start);
    let is_const = kind.starts_with("const ");
    let stars = kind.matches('*').count() + usize::from(is_array);
    let base = kind.replace('*', "");
    let base = match base.trim().trim_start_matches("const ").trim() {
        "int" => "c_int",
        "unsigned" => "c_uint",
        "char" => "c_char",
        "void" => "c_void",
        "size_t" => "usize",
        "double" => "f64",
        "uint64_t" => "u64",
        "deck_thread_body_t" => "Body",
        "deck_group_options_t" => "Options",
        "deck_event_t" => "Event",
        // All objects are numbers that lead to them.
        _ => "Handle",
    };
    let star = if is_const { "*const " } else { "*mut " };
    let name = if name == "type" { "kind" } else { name };
    (name.to_owned(), format!("{}{base}", star.repeat(stars)))
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn parameters_have_their_types() {
        let kind = |text| parameter(text).1;
        assert_eq!(kind("deck_group_t *g"), "*mut Handle");
        assert_eq!(kind("const char *name"), "*const c_char");
        assert_eq!(kind("void **start"), "*mut *mut c_void");
        assert_eq!(kind("deck_msg_t parts[]"), "*mut Handle");
        assert_eq!(parameter("size_t stack_bytes"), ("stack_bytes".into(), "usize".into()));
    }
}
