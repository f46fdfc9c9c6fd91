//! `cargo xtask tidy`: the rules of the house as a check.
//!
//! A rule is a function from the tree to its faults; [`RULES`] is the table of all of them. What a
//! rule must let pass stands in [`exemptions`], each with its reason.

mod comments;
pub(crate) mod count;
mod cycles;
mod exemptions;
mod heads;
mod homonyms;
mod imports;
mod libraries;
mod links;
mod lints;
mod purity;
mod safety;
mod sizes;
mod source;
mod tree;
mod unsafe_rooms;
mod waiting;

use std::fmt;
use std::path::Path;

use crate::{Problem, deck, mpi};
use tree::Tree;

/// One rule: its name, and the function that finds what breaks it.
type Rule = (&'static str, fn(&Tree) -> Vec<Fault>);

const RULES: &[Rule] = &[
    ("imports", imports::check),
    ("cycles", cycles::check),
    ("purity", purity::check),
    ("unsafe rooms", unsafe_rooms::check),
    ("safety", safety::check),
    ("heads", heads::check),
    ("comments", comments::check),
    ("homonyms", homonyms::check),
    ("waiting", waiting::check),
    ("sizes", sizes::check),
    ("lints", lints::check),
    ("libraries", libraries::check),
    ("links", links::check),
];

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    path: String,
    /// Counted from 1; 0 when the whole file is meant.
    line: usize,
    message: String,
}

impl Fault {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}: {}", self.path, self.message),
            line => write!(formatter, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Checks every rule and prints a line for each; true if nothing is broken.
pub(crate) fn run(root: &Path) -> Result<bool, Problem> {
    let tree = Tree::read(root)?;
    let mut results = faults_by_rule(&tree);
    results.push(("made files", made_files(root)?));
    let mut failed = 0;
    let rules = results.len();
    for (name, faults) in results {
        println!("tidy {name} ... {}", if faults.is_empty() { "ok" } else { "FAILED" });
        for fault in &faults {
            println!("  {fault}");
        }
        failed += usize::from(!faults.is_empty());
    }
    println!("tidy: {} files, {} passed, {failed} failed", tree.sources.len(), rules - failed);
    Ok(failed == 0)
}

/// Files that are made of others, and are not what those say now.
fn made_files(root: &Path) -> Result<Vec<Fault>, Problem> {
    let fault = |path: String, front: &str| {
        Fault::new(&path, 0, format!("is out of date: run `cargo xtask {front}`"))
    };
    let of_mpi = mpi::stale(root)?.into_iter().map(|path| fault(path, "mpi"));
    let of_deck = deck::stale(root)?.into_iter().map(|path| fault(path, "deck"));
    Ok(of_mpi.chain(of_deck).collect())
}

/// The faults of every rule, and last those of the table of exemptions itself.
fn faults_by_rule(tree: &Tree) -> Vec<(&'static str, Vec<Fault>)> {
    let mut ledger = exemptions::Ledger::new(exemptions::EXEMPTIONS);
    let mut results: Vec<_> =
        RULES.iter().map(|(name, check)| (*name, ledger.strike(name, check(tree)))).collect();
    results.push(("exemptions", ledger.unused()));
    results
}
