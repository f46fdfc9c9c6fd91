//! The objects that programs hold. Each kind has a table of its own, so a handle of another kind is
//! noticed; that of threads (0x21) stands beside them.

pub(crate) mod group;
pub(crate) mod mailbox;
pub(crate) mod message;
mod table;
pub(crate) mod thread;

use landeck::{Semaphore, SharedSegment, ToldView};

use crate::recent::{found_anew, kept_by_threads};
use table::Objects;

kept_by_threads!(mailbox::Mailbox, group::Group);
// Somebody may wait to see these go.
found_anew!(Semaphore, SharedSegment, ToldView);

pub(crate) static SEMAPHORES: Objects<Semaphore> = Objects::new(0x22);
pub(crate) static MESSAGES: message::Messages = message::Messages::new(0x23);
pub(crate) static MAILBOXES: Objects<mailbox::Mailbox> = Objects::new(0x24);
pub(crate) static SEGMENTS: Objects<SharedSegment> = Objects::new(0x25);
pub(crate) static GROUPS: Objects<group::Group> = Objects::new(0x26);
pub(crate) static VIEWS: Objects<ToldView> = Objects::new(0x27);
