//! What programs hold. Each kind of object has a table of its own, so a handle of another kind is
//! noticed.

pub(crate) mod group;
pub(crate) mod mailbox;
pub(crate) mod message;
pub(crate) mod thread;

use landeck::{Semaphore, SharedSegment};

use crate::handle::Objects;
use crate::recent::Recent;

thread_local! {
    static RECENT_MESSAGES: Recent<message::Message> = const { Recent::new() };
    static RECENT_MAILBOXES: Recent<mailbox::Mailbox> = const { Recent::new() };
    static RECENT_GROUPS: Recent<group::Group> = const { Recent::new() };
}

pub(crate) static THREADS: Objects<thread::Thread> = Objects::new(0x21);
pub(crate) static SEMAPHORES: Objects<Semaphore> = Objects::new(0x22);
pub(crate) static MESSAGES: Objects<message::Message> = Objects::kept(0x23, &RECENT_MESSAGES);
pub(crate) static MAILBOXES: Objects<mailbox::Mailbox> = Objects::kept(0x24, &RECENT_MAILBOXES);
pub(crate) static SEGMENTS: Objects<SharedSegment> = Objects::new(0x25);
pub(crate) static GROUPS: Objects<group::Group> = Objects::kept(0x26, &RECENT_GROUPS);
