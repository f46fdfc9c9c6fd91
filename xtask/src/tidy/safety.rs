//! Every unsafe block and implementation stands under `// SAFETY: ` and the fact that makes it
//! sound. A sentence pasted again and again proves nothing and is a fault of its own.

use std::collections::BTreeMap;

use super::Fault;
use super::source::Source;
use super::tree::Tree;

/// How often the same sentence may stand in the repository.
const SAME_FACT_MAX: usize = 6;

/// A fact takes at least so many words to say.
const FACT_WORDS_MIN: usize = 2;

/// Where programs in C call in, and the face by which the fronts pass their memory on.
const BOUNDARIES: &[&str] = &["fronts/", "crates/node/src/raw"];

/// Facts that may stand as often as they are needed. The caller's promise is all that can be known of a pointer there,
/// and every function passes it on; no other sentence would be truer.
const PROMISES: &[&str] = &["the program ", "as the caller says", "the caller's promise"];

/// How a fact points to its neighbour's, and how many lines above that one may stand.
const SAME_AS_ABOVE: &str = "as above";
const ABOVE_LINES_MAX: usize = 15;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut uses: BTreeMap<String, Vec<(&Source, usize)>> = BTreeMap::new();
    for source in &tree.sources {
        for at in unsafe_code(source) {
            let line = source.line_of(at);
            match fact_above(source, line) {
                None => faults.push(Fault::new(
                    &source.path,
                    line,
                    "unsafe code without // SAFETY: above it",
                )),
                Some(fact) if fact.split_whitespace().count() < FACT_WORDS_MIN => {
                    let message = format!("\"{fact}\" is no fact: say what makes this sound");
                    faults.push(Fault::new(&source.path, line, message));
                }
                Some(fact) if fact.starts_with(SAME_AS_ABOVE) => {
                    if !has_neighbour(source, line) {
                        let message = format!(
                            "\"{SAME_AS_ABOVE}\" with no other fact in the {ABOVE_LINES_MAX} lines above"
                        );
                        faults.push(Fault::new(&source.path, line, message));
                    }
                }
                Some(fact) if is_a_promise(source, &fact) => {}
                Some(fact) => uses.entry(fact).or_default().push((source, line)),
            }
        }
    }
    for (fact, places) in uses.iter().filter(|(_, places)| places.len() > SAME_FACT_MAX) {
        let (source, line) = places[SAME_FACT_MAX];
        let message = format!(
            "\"{fact}\" stands {} times: say what is true here, or put the code in one function",
            places.len()
        );
        faults.push(Fault::new(&source.path, line, message));
    }
    faults
}

/// The places of `unsafe {` and `unsafe impl`.
fn unsafe_code(source: &Source) -> Vec<usize> {
    let needs_a_fact = |at: &usize| {
        let rest = source.code[at + "unsafe".len()..].trim_start();
        rest.starts_with('{') || rest.starts_with("impl")
    };
    source.places_of("unsafe").filter(needs_a_fact).collect()
}

/// The fact in the comment above a line; attributes and the start of the same statement may stand
/// between.
fn fact_above(source: &Source, line: usize) -> Option<String> {
    let lines: Vec<&str> = source.lines().collect();
    let code: Vec<&str> = source.code.lines().collect();
    let mut comment: Vec<&str> = Vec::new();
    for index in (0..line - 1).rev() {
        let text = lines[index].trim();
        if let Some(words) = text.strip_prefix("//") {
            comment.push(words.trim());
            if words.trim_start().starts_with("SAFETY:") {
                comment.reverse();
                return Some(comment.join(" ").trim_start_matches("SAFETY:").trim().to_owned());
            }
        } else if !comment.is_empty() || ends_statement(code[index]) {
            break;
        }
    }
    None
}

/// Whether a fact is the promise of a caller at a boundary.
fn is_a_promise(source: &Source, fact: &str) -> bool {
    BOUNDARIES.iter().any(|boundary| source.path.starts_with(boundary))
        && PROMISES.iter().any(|promise| fact.contains(promise))
}

/// Whether a fact of its own stands not far above one that points to it.
fn has_neighbour(source: &Source, line: usize) -> bool {
    let above = source.lines().take(line - 1).collect::<Vec<_>>();
    let near = above.iter().rev().take(ABOVE_LINES_MAX);
    near.filter(|text| text.contains("SAFETY:")).any(|text| !text.contains(SAME_AS_ABOVE))
}

/// Whether a line of code cannot be the first part of the statement below it.
fn ends_statement(code: &str) -> bool {
    let code = code.trim();
    code.is_empty() || (code.ends_with([';', '}']) && !code.starts_with("#["))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(texts: &[&str]) -> Vec<Fault> {
        let sources =
            texts.iter().map(|text| Source::new("crates/memory/src/a.rs", text)).collect();
        check(&Tree { sources, ..Tree::default() })
    }

    #[test]
    fn an_unsafe_block_without_a_fact_is_a_fault() {
        assert_eq!(faults(&["fn f() {\n    unsafe { g() }\n}"]).len(), 1);
        assert_eq!(faults(&["unsafe impl Send for A {}"]).len(), 1);
        assert_eq!(faults(&["// SAFETY: fine\nunsafe { g() }"]).len(), 1);
    }

    #[test]
    fn a_fact_above_the_statement_counts() {
        let long =
            "// SAFETY: the descriptor is open\n// and ours alone.\nlet a =\n    unsafe { g() };";
        assert_eq!(faults(&[long]), []);
        let attribute =
            "// SAFETY: no field is shared between threads.\n#[cfg(x)]\nunsafe impl Send for A {}";
        assert_eq!(faults(&[attribute]), []);
        assert_eq!(faults(&["/// # Safety\n/// The caller checks.\nunsafe fn f() {}"]), []);
    }

    #[test]
    fn a_fact_may_point_to_its_neighbour_but_not_to_nothing() {
        let pair = "// SAFETY: all fields are atomic.\nunsafe impl Send for A {}\n\
                    // SAFETY: as above.\nunsafe impl Sync for A {}\n";
        assert_eq!(faults(&[&pair.repeat(2)]), []);
        assert_eq!(faults(&["// SAFETY: as above.\nunsafe { g() }"]).len(), 1);
    }

    #[test]
    fn a_fact_of_another_statement_does_not_count() {
        let text = "// SAFETY: the descriptor is open here.\nf();\nunsafe { g() }";
        assert_eq!(faults(&[text]).len(), 1);
    }

    #[test]
    fn a_sentence_pasted_many_times_is_one_fault() {
        let block = "// SAFETY: the pointer is valid here.\nunsafe { g() }\n";
        assert_eq!(faults(&[&block.repeat(SAME_FACT_MAX)]), []);
        assert_eq!(faults(&[&block.repeat(SAME_FACT_MAX + 1)]).len(), 1);
    }

    #[test]
    fn a_promise_of_the_program_may_be_repeated_only_at_the_boundary() {
        let block = "// SAFETY: the program says that it is writable.\nunsafe { g() }\n";
        let text = block.repeat(SAME_FACT_MAX + 1);
        let inside = Source::new("fronts/mpi/src/a.rs", &text);
        assert_eq!(check(&Tree { sources: vec![inside], ..Tree::default() }), []);
        assert_eq!(faults(&[&text]).len(), 1);
    }
}
