//! Traces of named groups: the events that one member saw, in its order, and the checks of what groups promise.
//!
//! A *trace* is written by an application's process, a line for each event: views, messages that it sent and delivered,
//! synchronisations. All traces of a group together show whether the group kept its promises. `landeck group check`
//! reads them from files, and simulations make them in memory.
//!
//! This crate is pure: files are read by its callers.
//!
//! | module | content |
//! |---|---|
//! | [`event`] | members, messages, views, and the events of a trace |
//! | [`text`] | the lines of a trace, each with the checksum of all lines so far |
//! | [`writer`] | writing a trace while a program runs |
//! | [`mod@check`] | the properties, the checks of them, and the report |

#![forbid(unsafe_code)]

pub mod check;
pub mod event;
pub mod text;
pub mod writer;

pub use check::{Property, TraceReport, Violation, check};
pub use event::{
    DepartureCause, GroupTrace, MemberName, MessageName, TraceEnd, TraceEvent, TraceHead,
    TraceLevel, TracedView,
};
pub use text::{TraceError, TraceFault, is_trace, seal};
pub use writer::{TraceWriter, sum_of};
