//! The tables of a job on several hosts: its processes there, links, and relays.

#[cfg(not(loom))]
pub mod far;
#[cfg(not(loom))]
pub(crate) mod links;
#[cfg(not(loom))]
pub mod relay_words;
