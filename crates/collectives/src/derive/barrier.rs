//! Barrier: no member leaves before all have entered, since the word of each reaches all.

use super::Paths;
use crate::program::Program;

/// In rounds, where the architecture has them: each round passes on all that is known by then.
/// Else up the tree of member 0, and back.
pub(super) fn plan(program: &mut Program, paths: &Paths<'_>) {
    if let Some(rounds) = paths.to.rounds(paths.group) {
        rounds.iter().for_each(|round| program.words(round));
        return;
    }
    let there = paths.to.tree(paths.group, 0);
    for member in there.bottom_up() {
        if let Some(parent) = there.parent(member) {
            program.words(&[(member, parent)]);
        }
    }
    let back = paths.back.tree(paths.group, 0);
    for member in back.top_down() {
        for &child in back.children(member) {
            program.words(&[(member, child)]);
        }
    }
}
