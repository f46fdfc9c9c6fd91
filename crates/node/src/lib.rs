//! The Landeck API for Rust programs.
//!
//! ```no_run
//! use landeck::{Any, Job};
//!
//! fn main() -> landeck::Result<()> {
//!     let job = Job::join()?; // under `landeck run`, under mpiexec, or alone
//!     let world = job.world();
//!     let (rank, size) = (world.rank(), world.size());
//!     world.send(&[rank as u64], (rank + 1) % size, 7)?;
//!     let (value, status) = world.receive::<u64>(Any, 7)?;
//!     println!("rank {rank}: {value} from rank {}", status.rank());
//!     job.leave()
//! }
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`job`] | joining and leaving |
//! | [`hosts`] | the hosts of a job, and processes that are started there |
//! | [`load`] | the load of the hosts of a machine |
//! | [`world`] | groups with fixed ranks: send, receive, probe |
//! | [`collectives`] | collective operations: all members call them |
//! | [`nonblocking`] | non-blocking collective operations |
//! | [`persistent`] | collective operations that are prepared once and started any number of times |
//! | [`groups`] | worlds derived from a world; recovery after failures |
//! | [`duplication`] | non-blocking duplication of a world |
//! | [`bridge`] | communication between two groups (intercommunicators) |
//! | [`architecture`] | the algorithms of collective operations, and your own |
//! | [`layout`] | how data lie in memory |
//! | [`combine`], [`element`] | the operators of reductions |
//! | [`modes`] | send modes, urgent messages, matched probes, persistent sends and receives |
//! | [`scope`] | non-blocking sends and receives |
//! | [`progress`] | a thread that advances them between calls |
//! | [`loan`] | zero-copy messages |
//! | [`message`], [`typed`] | messages of values with their types |
//! | [`message_world`] | collective operations on messages |
//! | [`mailbox`], [`outbox`] | mailboxes with names: any process posts, one thread retrieves |
//! | [`group_service`] | named groups of mailboxes that come and go: broadcast, synchronisation |
//! | [`traces`] | what a member of a named group saw, for `landeck group check` |
//! | [`semaphore`] | units that processes and threads take in turn |
//! | [`shared_segment`] | shared memory with a name |
//! | [`region`] | one-sided communication: put, get, atomics, notifications |
//! | [`thread`] | threads with a name and a limit |
//! | [`port`] | connections by name between two jobs of one user |
//! | [`store`] | where the data of long messages wait for their receivers |
//! | [`settings`] | the settings of a job: variables, options, effects |
//! | [`tuning`] | the measured figures of this host |
//! | [`raw`] | operations over pointers, for fronts in other languages |
//! | [`unstable`] | the layers below, for fronts, tests and tools; they change without notice |
//! | [`error`] | the errors, with their cause and a remedy |

pub mod collectives;
pub mod duplication;
pub mod error;
pub mod group_service;
pub mod groups;
mod helper;
mod host_memory;
pub mod hosts;
pub mod job;
mod lease;
pub mod load;
pub mod loan;
pub mod mailbox;
pub mod message;
pub mod modes;
mod peers;
pub mod port;
pub mod progress;
pub mod raw;
pub mod region;
pub mod scope;
pub mod semaphore;
pub mod settings;
pub mod shared_segment;
pub mod store;
pub mod thread;
pub mod unstable;
pub mod world;

pub use bridge::Bridge;
pub use collectives::Part;
pub use collectives::{architecture, combine, element, message_world, nonblocking, persistent};
pub use combine::{
    And, BitAnd, BitOr, BitXor, Combination, Combine, Maximum, Minimum, Or, Product, Sum, User, Xor,
};
pub use duplication::{BridgeDuplication, Duplication};
pub use element::Element;
pub use error::{
    Error, ErrorKind, GroupError, MailboxError, Result, SemaphoreError, StartOnError, StartRefusal,
    ThreadError,
};
pub use group_service::{Group, GroupMember, GroupOptions, GroupView, Member, ServedBy, WhenFull};
pub use groups::{Agreement, bridge};
pub use hosts::{Executable, HostOfJob, StartedProcess};
pub use job::{Job, Options, Restarted, WayBack};
pub use landeck_channel::Peer;
pub use landeck_channel::incast::Incast;
pub use landeck_channel::tokens::{Priority, TokenWish};
pub use landeck_joining::objects::{NameError, ObjectError, ObjectKind};
pub use landeck_layout as layout;
pub use landeck_memory::{Counters, NoMemory, Plain, ThreadMode};
pub use landeck_objects::region::AccessError;
pub use landeck_traces as traces;
pub use landeck_wire::Tag;
pub use landeck_wire::way::OneCopy;
pub use load::{HostLoad, HostPressure, LOAD_GROUP, LoadReport, LoadReportError};
pub use loan::{Loan, Loaned};
pub use mailbox::{
    Gone, Mailbox, MailboxEvent, MailboxEvents, ToldMessage, ToldView, ViewMember, outbox,
};
pub use message::mailbox_address::MailboxAddress;
pub use message::{Message, MessageError, Upcoming, typed};
pub use message_world::MessageWorld;
pub use modes::{Held, Repeated, SendMode};
pub use outbox::Outbox;
pub use persistent::Persistent;
pub use port::{Port, Remote};
pub use progress::Progress;
pub use region::{Region, RegionAddress, RemoteRegion};
pub use scope::{Request, Scope};
pub use semaphore::{Permit, Semaphore};
pub use settings::tuning;
pub use shared_segment::SharedSegment;
pub use store::Store;
pub use thread::{Thread, Threads};
pub use typed::Typed;
pub use world::{Any, Source, Status, TagFilter, World};
