//! The description of DECK's functions and errors, as read from `fronts/deck/api/`.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::Problem;

/// The chapters in their order: one file each.
const CHAPTERS: [&str; 9] = [
    "environment",
    "thread",
    "semaphore",
    "message",
    "mailbox",
    "segment",
    "group",
    "view",
    "collective",
];

/// The errors that functions of objects, names and groups share.
const FAMILIES: [(&str, &[&str]); 3] = [
    ("@object", &["DECK_EHANDLE", "DECK_EKIND", "DECK_EDESTROYED", "DECK_ENOTINIT", "DECK_EDONE"]),
    ("@name", &["DECK_ENAMEEMPTY", "DECK_ENAMELONG", "DECK_ENAMEUTF8", "DECK_ENAMECONTROL"]),
    (
        "@collective",
        &[
            "DECK_EHANDLE",
            "DECK_EKIND",
            "DECK_EDESTROYED",
            "DECK_ENOTINIT",
            "DECK_EDONE",
            "DECK_EBUSY",
            "DECK_EVALUE",
            "DECK_ENOTMEMBER",
            "DECK_EDEAD",
            "DECK_EMISMATCH",
            "DECK_ENOMEMORY",
            "DECK_EENDED",
        ],
    ),
];

/// Everything that the library has.
pub(super) struct Description {
    pub(super) chapters: Vec<Chapter>,
    pub(super) errors: Vec<Named>,
    /// Types and constants, as the header has them.
    pub(super) head: String,
}

/// Functions that belong together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chapter {
    /// The name of its file, and of the module with the bodies.
    #[serde(skip)]
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) text: String,
    #[serde(rename = "function")]
    pub(super) functions: Vec<Function>,
}

/// One function.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Function {
    pub(super) name: String,
    /// Its result, if that is not an error.
    pub(super) returns: Option<String>,
    /// As the header has them.
    pub(super) parameters: Vec<String>,
    /// A sentence.
    pub(super) brief: String,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) errors: Vec<String>,
    /// Whether it does something in a child made by fork as well.
    #[serde(default)]
    pub(super) in_children: bool,
    /// Whether a program may ignore its result without a warning.
    #[serde(default)]
    pub(super) may_be_ignored: bool,
}

/// An error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) number: i32,
    pub(super) name: String,
    pub(super) text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Errors {
    error: Vec<Named>,
}

impl Description {
    /// Reads the files of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, Problem> {
        let chapter = |name: &'static str| {
            let chapter: Chapter = table(&folder.join(format!("{name}.toml")))?;
            Ok(Chapter { name, ..chapter })
        };
        let chapters = CHAPTERS.into_iter().map(chapter).collect::<Result<_, Problem>>()?;
        let errors: Errors = table(&folder.join("errors.toml"))?;
        let head = read(&folder.join("head.h"))?;
        Ok(Self { chapters, errors: errors.error, head })
    }

    /// All functions.
    pub(super) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.chapters.iter().flat_map(|chapter| &chapter.functions)
    }

    /// The errors that a function may say, each once.
    pub(super) fn errors_of(&self, function: &Function) -> Vec<&Named> {
        let is_named = |error: &&Named| {
            function.errors.iter().any(|name| match FAMILIES.iter().find(|(it, _)| it == name) {
                Some((_, names)) => names.contains(&error.name.as_str()),
                None => *name == error.name,
            })
        };
        let has_pointers = function.parameters.iter().any(|text| text.contains(['*', '[']));
        let is_null = |error: &&Named| has_pointers && error.name == "DECK_ENULL";
        let gives_errors = function.returns.is_none();
        let all = self.errors.iter().filter(|error| is_named(error) || is_null(error));
        all.filter(|_| gives_errors).collect()
    }
}

impl Function {
    /// The name without the library's.
    pub(super) fn body<'a>(&'a self, chapter: &Chapter) -> &'a str {
        let name = self.name.trim_start_matches("deck_");
        let prefix = match chapter.name {
            "environment" => "",
            "semaphore" => "sem_",
            "message" => "msg_",
            "mailbox" => "mbox_",
            "thread" => "thread_",
            "segment" => "segment_",
            "group" => "group_",
            "view" => "view_",
            _ => "collective_",
        };
        name.strip_prefix(prefix).unwrap_or(name)
    }

    /// Its declaration, without the semicolon.
    pub(super) fn declaration(&self) -> String {
        let returns = self.returns.as_deref().unwrap_or("int ");
        let list = match self.parameters.as_slice() {
            [] => "void".to_owned(),
            parameters => parameters.join(", "),
        };
        format!("{returns}{}({list})", self.name)
    }
}

fn table<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, Problem> {
    let wrong = |error| Problem::Table { path: path.to_owned(), error: Box::new(error) };
    toml::from_str(&read(path)?).map_err(wrong)
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|error| Problem::Read { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, errors: &[&str]) -> Function {
        Function {
            name: name.to_owned(),
            returns: None,
            parameters: vec!["deck_sem_t *s".to_owned(), "int units".to_owned()],
            brief: String::new(),
            text: String::new(),
            errors: errors.iter().map(|&name| name.to_owned()).collect(),
            in_children: false,
            may_be_ignored: false,
        }
    }

    #[test]
    fn families_of_errors_are_taken_apart() {
        let named = |name: &str| Named { number: 1, name: name.to_owned(), text: String::new() };
        let errors = ["DECK_ENULL", "DECK_EKIND", "DECK_EDEAD"].map(named).into();
        let description = Description { chapters: Vec::new(), errors, head: String::new() };
        let names = |errors: &[&str]| {
            let found = description.errors_of(&function("deck_sem_x", errors));
            found.iter().map(|error| error.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&["@object"]), ["DECK_ENULL", "DECK_EKIND"]);
        assert_eq!(names(&["DECK_EDEAD"]), ["DECK_ENULL", "DECK_EDEAD"]);
    }

    #[test]
    fn a_function_is_declared_and_its_body_named() {
        let function = function("deck_sem_create", &[]);
        assert_eq!(function.declaration(), "int deck_sem_create(deck_sem_t *s, int units)");
        let text = String::new();
        let chapter =
            Chapter { name: "semaphore", title: text.clone(), text, functions: Vec::new() };
        assert_eq!(function.body(&chapter), "create");
    }
}
