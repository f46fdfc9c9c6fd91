//! The words about each slot: the membership, the page of its process, and the memory that it still needs.

#[cfg(not(loom))]
pub mod abort;
#[cfg(not(loom))]
pub mod group_numbers;
#[cfg(not(loom))]
pub mod membership;
#[cfg(not(loom))]
pub mod page;
#[cfg(not(loom))]
pub mod process_names;
#[cfg(not(loom))]
pub mod slot_reference;
#[cfg(not(loom))]
pub(crate) mod waited_for;
