//! Where the data of long messages to other hosts wait for their receivers.
//!
//! A message is a header and its data. The header goes to the receiver, in its order. The data of a message of more than 64 KiB
//! go to the receiver when it takes them (the default), or they wait on a host: then the sender goes on, and may even end. A
//! job has a wish (`--store`), a world ([`World::set_store`](crate::World::set_store)), a mailbox
//! ([`Mailbox::set_store`](crate::Mailbox::set_store)), and a single post ([`Outbox::storing`](crate::Outbox::storing)).
//!
//! ```no_run
//! use landeck::{Job, Store};
//!
//! fn main() -> landeck::Result<()> {
//!     let job = Job::join()?;
//!     let world = job.world();
//!     world.set_store(Store::Sender)?;
//!     if world.rank() == 0 {
//!         world.send(&vec![7u8; 1 << 20], 1, 5)?; // returns, however late rank 1 is
//!     } else if world.rank() == 1 {
//!         world.receive_into(&mut vec![0u8; 1 << 20], 0, 5)?;
//!     }
//!     job.leave()
//! }
//! ```
//!
//! On one host the data wait in the sender's part of the shared memory, up to a quarter of it, whichever place is named.

use landeck_memory::Segment;
use landeck_wire::HostNumber;
use landeck_wire::stored::StoreSetting;

pub use landeck_wire::stored::StoreWish as Store;

use crate::error::{ErrorKind, Result};

/// The wish with this name.
///
/// # Errors
/// [`ErrorKind::NoStore`].
pub(crate) fn named(segment: &Segment, name: &str) -> Result<Store> {
    let found = resolved(segment, StoreSetting::from_text(name));
    let found = found.filter(|store| can_store(segment, *store));
    Ok(found.ok_or_else(|| ErrorKind::NoStore { host: name.to_owned() })?)
}

/// The wish of a setting; `None` if no host has its name.
pub(crate) fn resolved(segment: &Segment, setting: StoreSetting) -> Option<Store> {
    let wish = match setting {
        StoreSetting::Wish(wish) => return Some(wish),
        StoreSetting::Named(_) => setting,
    };
    let numbers = 0..u16::try_from(segment.plan().hosts).unwrap_or(u16::MAX);
    let mut named = numbers.filter(|number| wish.names(&segment.host_name(*number).to_string()));
    named.next().map(|number| Store::Host(HostNumber(number)))
}

/// Checks that a wish means no host, or one with a process of the job.
pub(crate) fn checked(segment: &Segment, store: Store) -> Result<Store> {
    match store {
        Store::Host(host) if !can_store(segment, store) => {
            Err(ErrorKind::NoStore { host: segment.host_in_words(host.0) }.into())
        }
        store => Ok(store),
    }
}

fn can_store(segment: &Segment, store: Store) -> bool {
    let Store::Host(host) = store else { return true };
    let is_there = |far: u32| {
        let record = segment.far_record(far);
        record.is_there() && record.host_number == host.0
    };
    segment.own_host_number().is_none_or(|own| own == host.0)
        || (0..segment.plan().far).any(is_there)
}
