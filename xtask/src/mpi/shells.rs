//! The shells of the functions: what is exported under both names, widens counts, and calls the
//! body.
//!
//! A function and its twin for large counts have one body. Where a parameter is an `int` in the one
//! and wide in the other, the body gets the wide one: a number as `i64`, an array as `Counts`, the
//! place of a result as `CountPlace`. Twins that differ in more have two bodies, and so have those
//! of which the description says that the wide one works alone.

use std::fmt::Write;

use super::Made;
use super::description::{Body, Description, Function, Parameter};

/// One file for each chapter.
pub(super) fn files(description: &Description) -> Vec<Made> {
    let file = |chapter: &&str| Made {
        path: format!("fronts/mpi/src/shells/{chapter}.rs"),
        text: text(description, chapter),
    };
    description.chapters().iter().map(file).collect()
}

fn text(description: &Description, chapter: &str) -> String {
    let mut text = format!(
        "//! The shells of the chapter `{chapter}`. Made by `cargo xtask mpi`.\n\nuse super::*;\n"
    );
    if description.chapter(chapter).any(Function::works) {
        let _ = writeln!(text, "use crate::functions::{chapter} as bodies;");
    }
    for function in description.chapter(chapter) {
        text.push('\n');
        text += &shell(description, function);
    }
    text
}

fn shell(description: &Description, function: &Function) -> String {
    let name = &function.name;
    let list: Vec<_> = function
        .named_parameters()
        .map(|parameter| format!("{}: {}", rust_name(parameter), rust_type(parameter)))
        .collect();
    let head = format!("fn {name} / P{name}({})", list.join(", "));
    let origin = origin(function);
    let form = match function.body {
        Body::Works => "works",
        Body::CallsBack => "calls_back",
        Body::Unsupported => return format!("unsupported! {{ {head} on {origin} }}\n"),
    };
    let call = call(description, function);
    if function.gives_a_value {
        let returns = rust_value(&function.returns);
        return format!("value! {{\n    {head} -> {returns} =>\n    {call}\n}}\n");
    }
    let call =
        if checks_for_job(function, &origin) { format!("{{ inside()?; {call} }}") } else { call };
    format!("{form}! {{\n    {head} on {origin} =>\n    {call}\n}}\n")
}

/// Whether the shell looks if MPI is in use. The bodies of functions of a communicator or a session see
/// that from its handle.
fn checks_for_job(function: &Function, origin: &str) -> bool {
    let has_handle = ["Origin::Communicator(", "Origin::Session("];
    !function.is_for_any_time && !has_handle.into_iter().any(|start| origin.starts_with(start))
}

/// The call of the body.
fn call(description: &Description, function: &Function) -> String {
    let (body, pair) = body_of(description, function);
    let arguments: Vec<_> = match pair {
        Some((short, wide)) => {
            let pairs = short.named_parameters().zip(wide.named_parameters());
            let is_wide = function.name == wide.name;
            pairs.map(|(short, wide)| widened(short, wide, is_wide)).collect()
        }
        None => function.named_parameters().map(rust_name).collect(),
    };
    format!("bodies::{body}({})", arguments.join(", "))
}

/// The name of the body; and the function and its twin, where they share it.
fn body_of<'a>(
    description: &'a Description,
    function: &'a Function,
) -> (String, Option<(&'a Function, &'a Function)>) {
    let own = body_name(&function.name);
    let (short, wide) = match function.name.strip_suffix("_c") {
        Some(short) => (description.function(short), Some(function)),
        None => (Some(function), description.function(&format!("{}_c", function.name))),
    };
    let (Some(short), Some(wide)) = (short, wide) else { return (own, None) };
    if wide.is_alone || !have_one_body(short, wide) {
        return (own, None);
    }
    (body_name(&short.name), Some((short, wide)))
}

/// `MPI_Comm_dup` has the body `comm_dup`.
fn body_name(name: &str) -> String {
    name.trim_start_matches("MPI_").to_lowercase()
}

fn have_one_body(short: &Function, wide: &Function) -> bool {
    let pairs = || short.parameters.iter().zip(&wide.parameters);
    short.parameters.len() == wide.parameters.len()
        && pairs().all(|(short, wide)| {
            let are_alike = rust_type(short) == rust_type(wide) && short.base == wide.base;
            are_alike
                || (is_short(short) || is_wide(short)) && is_wide(wide) && short.depth == wide.depth
        })
}

fn is_short(parameter: &Parameter) -> bool {
    parameter.base == "int" && parameter.depth <= 1
}

fn is_wide(parameter: &Parameter) -> bool {
    matches!(parameter.base.as_str(), "MPI_Count" | "MPI_Aint" | "MPI_Offset")
        && parameter.depth <= 1
}

/// An argument as the common body takes it.
fn widened(short: &Parameter, wide: &Parameter, from_wide: bool) -> String {
    let name = rust_name(if from_wide { wide } else { short });
    if !(is_short(short) && is_wide(wide)) {
        return name;
    }
    let form = if from_wide { "wide" } else { "short" };
    match (wide.depth, wide.is_const) {
        (0, _) if from_wide => name,
        (0, _) => format!("i64::from({name})"),
        (_, true) => format!("Counts::{form}({name})"),
        (_, false) => format!("CountPlace::{form}({name})"),
    }
}

/// The object whose error handler is told of mistakes.
fn origin(function: &Function) -> String {
    if function.chapter == "tool" {
        return "Origin::Tool".to_owned();
    }
    let find = |base: &str, depth: usize| {
        let mut parameters = function.named_parameters();
        parameters
            .find(|parameter| parameter.base == base && parameter.depth == depth)
            .map(rust_name)
    };
    if let Some(name) = find("MPI_Comm", 0) {
        return format!("Origin::Communicator({name})");
    }
    if let Some(name) = find("MPI_Session", 0) {
        return format!("Origin::Session({name})");
    }
    if find("MPI_File", 0).is_some() || find("MPI_File", 1).is_some() {
        return "Origin::File".to_owned();
    }
    // Functions that free read the handle at their only address; where others take an address, it is
    // the place of a result, and may hold anything.
    let ends_with = |end| function.name.ends_with(end);
    let frees = ["_free", "_disconnect", "_finalize"].into_iter().any(ends_with);
    let (comm, session) = (find("MPI_Comm", 1), find("MPI_Session", 1));
    // A function that makes an object with a handler is given that for its own mistakes too.
    let handler = find("MPI_Errhandler", 0);
    match (frees, comm, session, handler) {
        (true, Some(name), ..) => format!("Origin::CommunicatorAt({name})"),
        (true, _, Some(name), _) => format!("Origin::SessionAt({name})"),
        (_, Some(_), _, Some(name)) => format!("Origin::Handler(Kind::Communicator, {name})"),
        (_, _, Some(_), Some(name)) => format!("Origin::Handler(Kind::Session, {name})"),
        _ => "Origin::Nothing".to_owned(),
    }
}

fn rust_value(returns: &str) -> &str {
    match returns {
        "int" => "c_int",
        "double" => "f64",
        "MPI_Aint" => "i64",
        _ => "Handle",
    }
}

/// Names that Rust uses itself get a line behind them.
fn rust_name(parameter: &Parameter) -> String {
    match parameter.name.as_str() {
        "type" | "enum" | "fn" | "in" | "ref" | "move" => format!("{}_", parameter.name),
        name => name.to_owned(),
    }
}

fn rust_type(parameter: &Parameter) -> String {
    if parameter.base.ends_with("_function") || parameter.base.ends_with("_function_c") {
        return "Callback".to_owned();
    }
    let base = if parameter.is_triples { "[c_int; 3]" } else { rust_base(&parameter.base) };
    let mut text = base.to_owned();
    for level in 0..parameter.depth {
        let pointer = if level == 0 && parameter.is_const { "*const" } else { "*mut" };
        text = format!("{pointer} {text}");
    }
    text
}

fn rust_base(base: &str) -> &str {
    match base {
        "void" => "c_void",
        "char" => "c_char",
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "c_int",
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64",
        "MPI_Status" => "Status",
        _ => "Handle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_handles_that_are_read_say_whose_handler_is_told() {
        let origin = |name: &str, parameters: &str| {
            let row = [name, "int", parameters, "2.0", "", "works"].map(str::to_owned);
            origin(&Function::of("a", &row).unwrap())
        };
        assert_eq!(origin("MPI_Comm_free", "MPI_Comm *comm"), "Origin::CommunicatorAt(comm)");
        assert_eq!(origin("MPI_Session_finalize", "MPI_Session *s"), "Origin::SessionAt(s)");
        assert_eq!(origin("MPI_Comm_get_parent", "MPI_Comm *parent"), "Origin::Nothing");
        assert_eq!(origin("MPI_Comm_dup", "MPI_Comm c; MPI_Comm *n"), "Origin::Communicator(c)");
        assert_eq!(
            origin("MPI_Session_init", "MPI_Info i; MPI_Errhandler e; MPI_Session *s"),
            "Origin::Handler(Kind::Session, e)"
        );
        assert_eq!(
            origin("MPI_Comm_create_from_group", "MPI_Group g; MPI_Errhandler e; MPI_Comm *c"),
            "Origin::Handler(Kind::Communicator, e)"
        );
        assert_eq!(
            origin(
                "MPI_Comm_create_errhandler",
                "MPI_Comm_errhandler_function *f; MPI_Errhandler *e"
            ),
            "Origin::Nothing"
        );
    }
}
