//! The tables of a job on several hosts: its processes there, links, relays, and the store.

#[cfg(not(loom))]
pub mod far;
#[cfg(not(loom))]
pub(crate) mod links;
#[cfg(not(loom))]
pub mod relay_words;
#[cfg(not(loom))]
pub mod stored;
