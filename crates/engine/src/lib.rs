//! The endpoint of a process with its collective operations, shared by the handles and threads of the process.
//!
//! # The life of an operation
//!
//! 1. A front describes its call: `operation` has the kind, the root, the data in pieces or blocks, the operator and
//!    the options.
//! 2. `entry` has the two entries. [`Shared::collective`] waits for the operation, [`Shared::start`] does not. Both
//!    find the `group`, which knows its members, its table of ways, its plans and its board.
//! 3. `route` decides once which way the call takes, from the description, the group's table and the circumstances.
//! 4. One of three modules walks the route:
//!    - `inline`: short data, whose steps at the board need no plan. The caller polls them.
//!    - `board::call`: the plan's steps at the board, in chunks. The caller polls them, or they go on in the `table`.
//!    - `running`: every operation in the table. Its steps are `at_board` or `by_messages`, and `mixed` are steps at the
//!      board between messages. `running::state` holds what all have: messages on their way, missing memory, deferred
//!      faults and the outcome.
//! 5. `board` deposits, takes and combines; `binding` and `board::buffers` say where blocks lie in memory.
//! 6. A caller that polls waits in `threads::board_wait`. Every other caller waits in `threads::shared` for its operation
//!    in the table, in turn with the other threads, while [`Engine`] makes progress for all operations.
//! 7. When members call different operations, `mismatch` says so. When a member dies, `running`, `threads::board_wait`
//!    and `engine` ask whether the operation can still complete: `judging` has the one loop. The [`Fault`] reaches the
//!    caller in a [`WaitError`].
//!
//! # The modules
//!
//! | folder | content |
//! |---|---|
//! | `call` | a call as plans take it: its data, its options, whether they fit, the words that members compare |
//! | `board` | the steps at the board, and the walk of a plan with such steps alone |
//! | `group` | a group: its table, plans and boards, and differences between its members |
//! | `running` | the operations in the table |
//! | `engine` | the endpoint with all groups and operations |
//! | `threads` | what the threads of a process share, their waits, and the thread that advances operations |
//!
//! | module | content |
//! |---|---|
//! | `oversize` | blocks too long for the board, which go as messages beside it |
//! | `combine` | combining data wherever they lie |
//! | `identity`, [`context`], [`peers`] | the contexts and members of groups |
//! | `lack`, `fault` | why a member brings nothing; why an operation failed |
//! | `streams` | contexts whose messages are taken as they come |
//! | `signals` | operations that the program itself ends |

mod binding;
mod board;
mod call;
mod combine;
pub mod context;
mod engine;
mod entry;
mod fault;
mod group;
mod identity;
mod inline;
mod judging;
mod lack;
mod mismatch;
mod operation;
mod oversize;
pub mod peers;
mod route;
mod running;
mod signals;
mod streams;
mod table;
mod threads;
mod wait_error;

pub use binding::Blocks;
pub use call::Call;
pub use call::data::{CallBlocks, CallData, MessageData};
pub use call::options::{CallOptions, Combination};
pub use call::value_type::ValueType;
pub use engine::{Engine, Founding, OperationId, Reservation, first_world};
pub use fault::Fault;
pub use identity::GroupRef;
pub use inline::HEAD_BYTES;
pub use operation::{CallDescription, Caller, Parts};
pub use streams::MessageSink;
pub use threads::progress::ProgressThread;
pub use threads::shared::{Progress, Shared, deadline_ns, why};
pub use wait_error::WaitError;
