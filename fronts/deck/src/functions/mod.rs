//! The bodies of the functions, by chapter. A body has the name of its function without the chapter's,
//! and the parameters of the description; it checks everything before it changes anything.

pub(crate) mod collective;
pub(crate) mod environment;
pub(crate) mod group;
pub(crate) mod mailbox;
pub(crate) mod message;
pub(crate) mod segment;
pub(crate) mod semaphore;
pub(crate) mod thread;
pub(crate) mod view;
