//! Collective operations as plans.
//!
//! An [architecture](architecture) says who talks to whom; an [operation](Operation) says which
//! data go where. Together they give a [`Plan`]: a value, a small graph of steps for one member.
//! Plans are made by pure functions, [proven](check), drawn, costed, simulated, and walked by one
//! [executor](execute) for blocking, non-blocking and persistent calls alike.
//!
//! | module | what |
//! |---|---|
//! | [`operation`] | what can be done together |
//! | [`group`] | how many members, and which of them are near each other |
//! | [`tree`], [`rounds`] | the two forms in which an architecture says who talks to whom |
//! | [`architecture`] | a file each |
//! | [`derive`] | operations from trees and rounds |
//! | [`program`] | what all members do, in one sequence; a plan is its projection on one of them |
//! | [`partial`] | partial results of reductions, and in which order they combine |
//! | [`plan`] | the steps of one member |
//! | [`execute`] | walking a plan |

#![forbid(unsafe_code)]

pub mod architecture;
pub mod derive;
pub mod execute;
pub mod group;
pub mod operation;
pub mod partial;
pub mod plan;
pub mod program;
pub mod rounds;
pub mod tree;

pub use architecture::Architecture;
pub use derive::{BoardStyle, Order, Task, Way, plan_of, plans};
pub use execute::{Execution, Walk};
pub use group::{Group, GroupError};
pub use operation::Operation;
pub use plan::{Action, Cells, Plan, Step, Store};
pub use program::Program;
pub use rounds::Rounds;
pub use tree::Tree;
