//! The endpoint of a process with all that goes on in it, shared by the handles and threads of the process.
//!
//! | module | what |
//! |---|---|
//! | `shared` | what all handles of a process share: its endpoint, and whose turn it is to wait |
//! | `engine` | the endpoint with messages and collective operations; how groups are made, agree, are revoked and forgotten |
//! | `group` | what a process knows of a group for its collective operations: members, plans, memory |
//! | `identity` | the context of a group, its members, and which of them this process is |
//! | `call` | what any front asks for; `plain_call` where memory lies in one piece |
//! | `inline` | one operation with short data at the board |
//! | `board_call` | one operation over the board of a host |
//! | `running` | one operation that goes on in the engine's table: over messages, or a board call that does not block |
//! | `board` | what the board's steps of a plan do, with the `call_buffers` of the caller |
//! | `oversize` | blocks too long for the board, which go as messages beside it |
//! | `binding` | where the blocks of a plan's stores lie in memory |
//! | `board_wait` | blocking calls, which poll the board themselves |
//! | `check`, `entry_check`, `value_type` | what members compare in checking mode |
//! | `scan_scope` | how many members a waiting member looks at |
//! | `combine` | combining data wherever they lie |
//! | `table` | the operations that go on |
//! | `mismatch` | members that called different operations |
//! | `fault`, `wait_error` | why an operation or a wait for one did not end well |
//! | `signals` | operations that the program itself ends |
//! | `context` | the contexts of groups, and those beside each |
//! | `progress` | the thread that advances what goes on while nobody calls |

mod binding;
mod board;
mod board_call;
mod board_wait;
mod call;
mod call_buffers;
mod call_fit;
mod check;
mod combine;
pub mod context;
mod engine;
mod entry;
mod entry_check;
mod fault;
mod group;
mod identity;
mod inline;
mod mismatch;
mod operation;
mod oversize;
mod progress;
mod route;
mod running;
mod scan_scope;
mod shared;
mod signals;
mod table;
mod value_type;
mod wait_error;

pub use binding::Blocks;
pub use call::Call;
pub use engine::{Engine, Founding, OperationId, Reservation};
pub use fault::Fault;
pub use identity::GroupRef;
pub use inline::HEAD_BYTES;
pub use operation::{
    CallBlocks, CallData, CallDescription, CallOptions, Caller, Combination, MessageData, Parts,
};
pub use progress::ProgressThread;
pub use shared::{Progress, Shared, deadline_ns, why};
pub use value_type::ValueType;
pub use wait_error::WaitError;
