//! Messages of one word, with which the processes agree on what comes next.

use landeck::{Result, Tag, World};

/// The tags of bench/points.c.
pub(crate) mod tags {
    use landeck::Tag;

    pub(crate) const DATA: Tag = Tag(1);
    /// Control messages lie above every tag of a measured message.
    pub(crate) const CONTROL: Tag = Tag(30_000);
    pub(crate) const REPORT: Tag = Tag(30_001);
    pub(crate) const MARKER: Tag = Tag(30_002);
    pub(crate) const LIST: Tag = Tag(30_003);
}

pub(crate) fn send_word(world: &World, word: u64, to: usize, tag: Tag) -> Result<()> {
    world.send(&[word], to, tag)
}

pub(crate) fn receive_word(world: &World, from: usize, tag: Tag) -> Result<u64> {
    Ok(world.receive(from, tag)?.0)
}

/// A measured value, on its way to the rank that prints it.
pub(crate) fn send_value(world: &World, value: f64, to: usize) -> Result<()> {
    world.send(&[value], to, tags::REPORT)
}

pub(crate) fn receive_value(world: &World, from: usize) -> Result<f64> {
    Ok(world.receive(from, tags::REPORT)?.0)
}
