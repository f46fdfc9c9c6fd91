//! The modules of a crate: what each says of others, and where an item that it names is defined.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::super::source::{Source, end_of_item, is_word};
use super::mentions::{Brings, Mention, mentions};

/// The place of a module in its crate: its name behind those of the modules around it.
pub(super) type ModulePath = Vec<String>;

/// How often an import may lead to another one before the search for its item ends.
const IMPORTS_IN_A_ROW_MAX: usize = 8;

/// The keywords in front of the name of an item.
const DEFINING: &[&str] =
    &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "macro_rules!"];

/// The modules of one crate.
#[derive(Default)]
pub(super) struct Modules<'a> {
    modules: BTreeMap<ModulePath, Module<'a>>,
}

/// One module: a file, or a part of one.
struct Module<'a> {
    source: &'a Source,
    mentions: Vec<Mention>,
}

/// A module names an item that another one has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: ModulePath,
    pub(super) to: ModulePath,
    pub(super) path: String,
    pub(super) line: usize,
}

impl<'a> Modules<'a> {
    /// The modules of the crate whose first file lies in the folder `root`, of these its files.
    pub(super) fn new(root: &str, sources: &[&'a Source]) -> Self {
        let mut of_tests = BTreeSet::new();
        let mut modules = Self::default();
        for &source in sources {
            let path = path_of_file(root, &source.path);
            for (name, at) in declared_files(source) {
                if source.is_test(at) {
                    of_tests.insert(join(&path, name));
                }
            }
            modules.add(source, &path);
        }
        modules
            .modules
            .retain(|path, _| (0..=path.len()).all(|length| !of_tests.contains(&path[..length])));
        modules
    }

    /// Adds a file: the module itself, and those whose bodies stand in it.
    fn add(&mut self, source: &'a Source, path: &[String]) {
        let bodies = bodies(source);
        let around = |at: usize| {
            let inner = bodies.iter().filter(|(_, body)| body.contains(&at));
            inner.fold(path.to_vec(), |path, (name, _)| join(&path, name))
        };
        let inner = bodies.iter().map(|(_, body)| around(body.start));
        for path in std::iter::once(path.to_vec()).chain(inner) {
            self.modules.insert(path, Module { source, mentions: Vec::new() });
        }
        for mention in mentions(source) {
            let module = self.modules.get_mut(&around(mention.at));
            module.expect("it has been added above").mentions.push(mention);
        }
    }

    /// Returns the imports between the modules.
    pub(super) fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (from, module) in &self.modules {
            for mention in &module.mentions {
                let Some(to) = self.home(from, &mention.path, IMPORTS_IN_A_ROW_MAX) else {
                    continue;
                };
                let line = module.source.line_of(mention.at);
                edges.push(Edge { from: from.clone(), to, path: mention.path.join("::"), line });
            }
        }
        edges
    }

    /// The file that a module stands in.
    pub(super) fn file(&self, path: &[String]) -> &str {
        self.modules.get(path).map_or("", |module| &module.source.path)
    }

    /// The module that defines what a path leads to if `from` says it; none for other crates.
    fn home(&self, from: &[String], path: &[String], imports_left: usize) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let (mut module, rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (from.to_vec(), rest),
            "super" => (from.split_last()?.1.to_vec(), rest),
            name if self.modules.contains_key(&join(from, name)) => (from.to_vec(), path),
            _ => return self.home_of_import(from, path, imports_left),
        };
        for (place, name) in rest.iter().enumerate() {
            if name == "super" {
                module.pop();
                continue;
            }
            let inner = join(&module, name);
            if !self.modules.contains_key(&inner) {
                let imported = self.home_of_import(&module, &rest[place..], imports_left);
                return Some(imported.unwrap_or(module));
            }
            module = inner;
        }
        Some(module)
    }

    /// The module that defines what a path leads to whose first name `module` has imported.
    fn home_of_import(
        &self,
        module: &[String],
        path: &[String],
        imports_left: usize,
    ) -> Option<ModulePath> {
        let imports_left = imports_left.checked_sub(1)?;
        let (name, rest) = path.split_first()?;
        let mentions = &self.modules.get(module)?.mentions;
        let by_name = |mention: &&Mention| mention.brings == Brings::Name(name.clone());
        if let Some(import) = mentions.iter().find(by_name) {
            let whole = [&import.path, rest].concat();
            // `use a::b` finds `a` by its own name, not by an import of that name again.
            return (import.path != [name.as_str()])
                .then(|| self.home(module, &whole, imports_left))?;
        }
        let stars = mentions.iter().filter(|mention| mention.brings == Brings::All);
        let mut homes = stars.filter_map(|star| self.home(module, &star.path, imports_left));
        homes.find(|home| self.defines(home, name))
    }

    fn defines(&self, module: &[String], name: &str) -> bool {
        let Some(module) = self.modules.get(module) else { return false };
        let source = module.source;
        source.places_of(name).any(|at| {
            let before = source.code[..at].trim_end();
            DEFINING.iter().any(|keyword| before.ends_with(keyword))
        })
    }
}

/// The path of the module whose file this is.
fn path_of_file(root: &str, file: &str) -> ModulePath {
    let inner = file.strip_prefix(root).unwrap_or(file).trim_start_matches('/');
    let mut path: ModulePath =
        inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let is_whole = path.len() == 1 && matches!(path[0].as_str(), "lib" | "main");
    if is_whole || path.last().is_some_and(|name| name == "mod") {
        path.pop();
    }
    path
}

fn join(path: &[String], name: &str) -> ModulePath {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// The modules that a file declares as files of their own, and where.
fn declared_files(source: &Source) -> impl Iterator<Item = (&str, usize)> {
    source.places_of("mod").filter_map(|at| {
        let (name, rest) = name_of_module(source, at)?;
        rest.starts_with(';').then_some((name, at))
    })
}

/// The modules whose bodies stand in a file itself, but for tests: the outer before the inner.
fn bodies(source: &Source) -> Vec<(&str, Range<usize>)> {
    let places = source.places_of("mod").filter(|at| !source.is_test(*at));
    let bodies = places.filter_map(|at| {
        let (name, rest) = name_of_module(source, at)?;
        let end = end_of_item(&source.code, at)?;
        rest.starts_with('{').then(|| (name, source.code.len() - rest.len()..end))
    });
    bodies.collect()
}

/// The name behind a `mod`, and the code behind the name.
fn name_of_module(source: &Source, at: usize) -> Option<(&str, &str)> {
    let rest = source.code[at + "mod".len()..].trim_start();
    let (name, rest) = rest.split_at(rest.find(|c| !is_word(c))?);
    Some((name, rest.trim_start()))
}
