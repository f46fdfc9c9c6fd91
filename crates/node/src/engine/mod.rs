//! The engine: the endpoint of a process with all that goes on in it, shared by its handles and threads.
//!
//! | module | what |
//! |---|---|
//! | [`shared`] | what all handles of a process share: its endpoint, and whose turn it is to wait |
//! | [`collective`] | collective operations, on their way |
//! | [`meeting`] | waiting at the board: blocking calls, which poll it themselves |
//! | [`signals`] | operations that the program itself ends |
//! | [`context`] | the contexts of groups, and those beside each |
//! | [`progress`] | the thread that advances what goes on while nobody calls |

mod board_wait;
mod collective;
pub(crate) mod context;
mod progress;
mod shared;
mod signals;

pub use collective::OperationId;
pub(crate) use collective::binding::Blocks;
pub use collective::call::Combination;
pub(crate) use collective::call::{Call, Manner};
pub(crate) use collective::calls::{Caller, Parts};
pub(crate) use collective::inline::{HEAD_BYTES, InlineCollective};
pub(crate) use collective::operations::{Begun, Founding, Reservation};
pub(crate) use collective::value_type::ValueType;
pub(crate) use collective::{Fault, WaitError};
pub(crate) use progress::ProgressThread;
pub use shared::Progress;
pub(crate) use shared::{Kernel, Shared, deadline_ns, why};
