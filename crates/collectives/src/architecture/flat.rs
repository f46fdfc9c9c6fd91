//! One serves all.
//!
//! ```text
//!      root
//!   ┌──┬─┴┬──┐
//!   1  2  3  4
//! ```
//!
//! `size - 1` messages in `size - 1` steps: the root alone works. Best for few
//! members, and where messages are so short or so local that a relay costs more than it saves.
//! Data from each to each go straight.

use super::Architecture;
use crate::group::Group;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// One serves all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flat;

impl Architecture for Flat {
    fn name(&self) -> String {
        "flat".into()
    }

    fn tree(&self, group: &Group, root: u32) -> Tree {
        let size = group.size();
        Tree::new(size, 0, (1..size).map(|member| (0, member))).turned(root)
    }

    fn exchange(&self, group: &Group) -> Option<Rounds> {
        Some(Rounds::everybody(group.size()))
    }

    fn exchange_of(&self, group: &Group, member: u32) -> Option<Rounds> {
        Some(Rounds::everybody_and(member, group.size()))
    }
}
