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
//!    - `board_call`: the plan's steps at the board, in chunks. The caller polls them, or they go on in the `table`.
//!    - `running`: every operation in the table. Its steps are a `started_board_call` or `message_steps`, and
//!      `board_steps` are steps at the board between messages. `operation_state` holds what all have: messages on
//!      their way, missing memory, deferred faults and the outcome.
//! 5. `board` deposits, takes and combines; `binding` and `call_buffers` say where blocks lie in memory.
//! 6. A caller that polls waits in `board_wait`. Every other caller waits in `shared` for its operation in the table,
//!    in turn with the other threads, while [`Engine`] makes progress for all operations.
//! 7. When members call different operations, `mismatch` says so. When a member dies, `running`, `board_wait` and
//!    `board` ask whether the operation can still complete (`judge`, `verdict`). The [`Fault`] reaches the caller in a
//!    [`WaitError`].
//!
//! # The other modules
//!
//! | module | content |
//! |---|---|
//! | `call_data`, `call_options` | the memory on both sides of a call; how it is to be done |
//! | `call`, `call_fit`, `call_facts` | a call as plans take it; whether its data fit; the facts that decide its route |
//! | `check`, `entry_check`, `value_type` | the words that members compare in checking mode |
//! | `oversize` | blocks too long for the board, which go as messages beside it |
//! | `scan_scope` | whose words a waiting member checks before it sleeps |
//! | `combine` | combining data wherever they lie |
//! | `identity`, [`context`] | the contexts and members of groups |
//! | `signals` | operations that the program itself ends |
//! | `progress` | the thread that advances operations while nobody calls |

mod binding;
mod board;
mod board_call;
mod board_steps;
mod board_wait;
mod call;
mod call_buffers;
mod call_data;
mod call_facts;
mod call_fit;
mod call_options;
mod check;
mod combine;
pub mod context;
mod departure;
mod engine;
mod entry;
mod entry_check;
mod fault;
mod group;
mod identity;
mod inline;
mod judging;
mod lack;
mod message_steps;
mod mismatch;
mod operation;
mod operation_state;
mod oversize;
pub mod peers;
mod places;
mod progress;
mod route;
mod running;
mod scan_scope;
mod shared;
mod signals;
mod started_board_call;
mod streams;
mod table;
mod value_type;
mod wait_error;

pub use binding::Blocks;
pub use call::Call;
pub use call_data::{CallBlocks, CallData, MessageData};
pub use call_options::{CallOptions, Combination};
pub use engine::{Engine, Founding, OperationId, Reservation, first_world};
pub use fault::Fault;
pub use identity::GroupRef;
pub use inline::HEAD_BYTES;
pub use operation::{CallDescription, Caller, Parts};
pub use progress::ProgressThread;
pub use shared::{Progress, Shared, deadline_ns, why};
pub use streams::MessageSink;
pub use value_type::ValueType;
pub use wait_error::WaitError;
