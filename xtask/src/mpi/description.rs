//! The description of MPI's functions and constants, as read from `fronts/mpi/abi/`.

use std::fs;
use std::path::Path;

use crate::Problem;

/// Everything that the ABI has.
pub(super) struct Description {
    /// In the order of the chapters, and of the names within them.
    pub(super) functions: Vec<Function>,
    pub(super) constants: Vec<Constant>,
    /// The types of the header.
    pub(super) types: String,
    /// The types that need some of the constants.
    pub(super) callbacks: String,
    /// The part of the header that is not of the ABI.
    pub(super) compatibility: String,
}

/// One function.
pub(super) struct Function {
    pub(super) chapter: String,
    /// With its prefix, `MPI_`.
    pub(super) name: String,
    pub(super) returns: String,
    /// It returns a result, and no code of error.
    pub(super) gives_a_value: bool,
    pub(super) parameters: Vec<Parameter>,
    /// The version of the standard that brought it.
    pub(super) since: String,
    /// The version that advised against it, or nothing.
    pub(super) deprecated: String,
    pub(super) body: Body,
    /// It shares its body with no twin, even if it could.
    pub(super) is_alone: bool,
    /// It may be called where MPI is not in use.
    pub(super) is_for_any_time: bool,
}

/// The implementation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A body that does everything.
    Works,
    /// A body that gives steps, between which functions of the program are called.
    CallsBack,
    /// Nothing: the function says that it is not supported.
    Unsupported,
}

/// One parameter of a function.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    /// As the header has it: `const int counts[]`.
    pub(super) text: String,
    pub(super) name: String,
    /// The type without `const` and stars: `int`.
    pub(super) base: String,
    pub(super) is_const: bool,
    /// How many times it is an address, arrays included.
    pub(super) depth: usize,
    /// It is an array of arrays of three.
    pub(super) is_triples: bool,
}

/// One constant.
pub(super) struct Constant {
    pub(super) name: String,
    /// Its kind: `error_class`, `handle:MPI_Comm`.
    pub(super) kind: String,
    /// A number as C writes it.
    pub(super) value: String,
}

impl Description {
    /// Reads the files of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, Problem> {
        let mut functions = Vec::new();
        for path in tables(&folder.join("functions"))? {
            let chapter = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for (line, row) in rows(&path)? {
                let wrong = || Problem::Description { path: path.clone(), line };
                functions.push(Function::of(&chapter, &row).ok_or_else(wrong)?);
            }
        }
        let any_time = read(&folder.join("any-time.txt"))?;
        for function in &mut functions {
            function.is_for_any_time = any_time.lines().any(|name| name == function.name);
        }
        let path = folder.join("constants.csv");
        let mut constants = Vec::new();
        for (line, row) in rows(&path)? {
            let wrong = || Problem::Description { path: path.clone(), line };
            constants.push(Constant::of(&row).ok_or_else(wrong)?);
        }
        Ok(Self {
            functions,
            constants,
            types: read(&folder.join("header/types.h"))?,
            callbacks: read(&folder.join("header/callbacks.h"))?,
            compatibility: read(&folder.join("header/compatibility.h"))?,
        })
    }

    /// The names of the chapters, each once.
    pub(super) fn chapters(&self) -> Vec<&str> {
        let mut chapters: Vec<_> =
            self.functions.iter().map(|function| function.chapter.as_str()).collect();
        chapters.dedup();
        chapters
    }

    /// The functions of a chapter.
    pub(super) fn chapter<'a>(
        &'a self,
        chapter: &'a str,
    ) -> impl Iterator<Item = &'a Function> + 'a {
        self.functions.iter().filter(move |function| function.chapter == chapter)
    }

    /// A function by its name.
    pub(super) fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

impl Function {
    pub(super) fn of(chapter: &str, row: &[String]) -> Option<Self> {
        let [name, returns, parameters, since, deprecated, body] = row else { return None };
        let parameters = parameters.split(';').map(str::trim).filter(|text| !text.is_empty());
        let body = match body.as_str() {
            "works" | "works alone" => Body::Works,
            "calls back" => Body::CallsBack,
            "unsupported" => Body::Unsupported,
            _ => return None,
        };
        let is_alone = row[5] == "works alone";
        Some(Self {
            chapter: chapter.to_owned(),
            name: name.clone(),
            returns: returns.trim_end_matches(" value").to_owned(),
            gives_a_value: returns != "int",
            parameters: parameters.map(Parameter::of).collect::<Option<_>>()?,
            since: since.clone(),
            deprecated: deprecated.clone(),
            body,
            is_alone,
            is_for_any_time: false,
        })
    }

    /// Whether it has a body.
    pub(super) fn works(&self) -> bool {
        self.body != Body::Unsupported
    }

    /// The parameters that are no dots.
    pub(super) fn named_parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.text != "...")
    }
}

impl Parameter {
    fn of(text: &str) -> Option<Self> {
        if text == "..." {
            let (name, base) = (String::new(), String::new());
            let text = text.to_owned();
            return Some(Self { text, name, base, is_const: false, depth: 0, is_triples: false });
        }
        let name_and_arrays = text.rsplit([' ', '*']).next()?;
        let (name, arrays) =
            name_and_arrays.split_at(name_and_arrays.find('[').unwrap_or(name_and_arrays.len()));
        let before = text.strip_suffix(name_and_arrays)?;
        let base = before.replace('*', "");
        let base = base.trim().trim_start_matches("const ").trim();
        if name.is_empty() || base.is_empty() {
            return None;
        }
        Some(Self {
            text: text.to_owned(),
            name: name.to_owned(),
            base: base.to_owned(),
            is_const: text.starts_with("const "),
            depth: before.matches('*').count() + usize::from(!arrays.is_empty()),
            is_triples: arrays == "[][3]",
        })
    }
}

impl Constant {
    fn of(row: &[String]) -> Option<Self> {
        let [name, kind, value, _] = row else { return None };
        Some(Self { name: name.clone(), kind: kind.clone(), value: value.clone() })
    }

    /// The value as a number.
    pub(super) fn number(&self) -> i64 {
        match self.value.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).unwrap_or_default(),
            None => self.value.parse().unwrap_or_default(),
        }
    }

    /// Returns the type in C, which stands behind the colon of its kind.
    pub(super) fn type_in_c(&self) -> Option<&str> {
        self.kind.split_once(':').map(|(_, name)| name)
    }
}

/// The tables of a folder in the order of their names.
fn tables(folder: &Path) -> Result<Vec<std::path::PathBuf>, Problem> {
    let unreadable = |error| Problem::Read { path: folder.to_owned(), error };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// The lines of a table below its heading, with their numbers, cut at the commas.
fn rows(path: &Path) -> Result<Vec<(usize, Vec<String>)>, Problem> {
    let cut = |line: &str| line.split(',').map(str::to_owned).collect();
    let text = read(path)?;
    Ok(text.lines().enumerate().skip(1).map(|(index, line)| (index + 1, cut(line))).collect())
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|error| Problem::Read { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_taken_apart() {
        let parameter = |text| Parameter::of(text).unwrap();
        let counts = parameter("const int counts[]");
        assert_eq!((counts.name.as_str(), counts.base.as_str()), ("counts", "int"));
        assert_eq!((counts.is_const, counts.depth), (true, 1));
        let argv = parameter("char ***argv");
        assert_eq!((argv.name.as_str(), argv.base.as_str(), argv.depth), ("argv", "char", 3));
        assert!(parameter("int ranges[][3]").is_triples);
        assert_eq!(parameter("char **array_of_argv[]").depth, 3);
        assert!(Parameter::of("int").is_none());
    }

    #[test]
    fn a_body_works_or_is_unsupported() {
        let row = |body: &str| {
            ["MPI_Send", "int", "const void *buf; int count", "1.1", "", body].map(str::to_owned)
        };
        let body = |word: &str| Function::of("a", &row(word)).map(|function| function.body);
        assert_eq!(body("works"), Some(Body::Works));
        assert_eq!(body("works alone"), Some(Body::Works));
        assert_eq!(body("calls back"), Some(Body::CallsBack));
        assert_eq!(body("unsupported"), Some(Body::Unsupported));
        assert_eq!(body(""), None);
    }
}
