//! Hosts: the words about them, and which of them are silent.

pub(crate) mod members;
pub(crate) mod watch;
