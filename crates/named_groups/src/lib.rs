//! A named group below its faces: the log, the state that a process folds from it, and the operations of members.
//!
//! Each operation of a group (join, leave, broadcast, synchronise, destroy) reaches the log in one of two ways.
//! Without a server the caller appends the entry itself. With one it sends a request to the server, which appends the
//! entry. `Replica::server_client` says which way a group takes.
//!
//! | module | content |
//! |---|---|
//! | `options` | how a group is made, and the encoding of that as two words |
//! | `replica` | a process's replica of a group: the log and the folded state; opening, reading, appending |
//! | `folding` | applying accepted entries to the folded state |
//! | `deaths` | recording in the log that members, waiting senders and servers are gone |
//! | `room` | memory and credit for messages |
//! | `membership` | joining, and a view of the members |
//! | `message` | a message on its way into a group |
//! | `sending` | broadcasting: waiting for room, eviction |
//! | `origin` | a process as the log names it; the words that name the sender of a message, and the client of a request |
//! | `parties` | the processes of a group, as this process reaches them |
//! | `subscription` | the messages that a mailbox retrieves from a group, and the `views` that it is told of |
//! | `sync` | synchronisation: `arrival` on the roll or in the log, `sync_wait` for the other members |
//! | `roll_members` | the members of a view as bits of the roll |
//! | `participants` | the members that take part in collective operations |
//! | `destroying` | destroying a group for all members |
//! | `requests` | a client's requests to a group's server, with the `answer`s |
//! | `server_client` | the mailbox where a client's replies arrive |
//! | `server_handle` | the thread of a process that serves groups, and how it gets its orders |
//! | `server` | the loop of that thread |
//! | `orphans` | groups whose servers are gone, as the helper of a machine finds them |
//! | `follower` | a client on another host, as the server feeds it |
//! | `feed` | the words by which a server tells copies of the log |
//! | `log_copy` | a process's copy of a log on another host, and its messages to the server |
//! | `copying` | folding what the server has told |
//! | `far` | finding and following servers on other hosts |
//! | `time_limit` | how long a call may wait |
//! | `error`, `group_error` | why a call fails |

mod answer;
mod error;
mod feed;
mod follower;
mod group_error;
mod log_copy;
mod membership;
mod message;
mod options;
mod origin;
mod orphans;
mod participants;
mod replica;
mod requests;
mod roll_members;
mod room;
mod sending;
mod server;
mod server_client;
mod server_handle;
mod subscription;
mod sync;
mod thread_members;
mod time_limit;

pub use error::{Result, ServiceError};
pub use group_error::GroupError;
pub use landeck_protocols::service::Gone;
pub use membership::{MembersView, ViewedMember};
pub use message::{Outgoing, Sender, SharedValues};
pub use options::{GroupOptions, ServedBy, WhenFull};
pub use orphans::serve_orphans;
pub use participants::{Participant, Participants};
pub use replica::Replica;
pub use server_client::Forwarded;
pub use server_handle::{AsGuest, ServerHandle};
pub use subscription::views::{MemberIdentity, NewView, NextTold, ViewsWatch};
pub use subscription::{NextMessage, Subscription, SubscriptionWatch};
pub use sync::PendingSync;
pub use time_limit::TimeLimit;
