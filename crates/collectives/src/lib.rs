//! Collective operations as plans.
//!
//! An [`architecture`] says who talks to whom; an [operation](Operation) says which
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
//! | [`preset`] | ways to do every operation, by name |
//! | [`mod@derive`] | operations from trees and rounds |
//! | [`program`] | what all members do, in one sequence; a plan is its projection on one of them |
//! | [`partial`] | partial results of reductions, and in which order they combine |
//! | [`plan`] | the steps of one member |
//! | [`plan_class`] | the plans of large groups, some at a time; members whose plans are alike |
//! | [`check`] | proving plans, without trusting what they were made from |
//! | [`draw`] | plans as text and as pictures |
//! | [`execute`] | walking a plan |
//! | [`signature`] | what a member calls, as it travels with its messages |
//! | [`cost_parameters`] | what a host can do, in numbers |
//! | [`calibration`] | more of that, for the simulator |
//! | [`record`] | both as text, as they are kept |
//! | [`settings`] | figures and what the user asks for, alike in all processes of a job |
//! | [`cost`] | what a way of doing an operation costs |
//! | [`choose`] | which way an operation takes in a group |
//! | [`board_schedule`] | in how many chunks much data goes over the board of a host |

#![forbid(unsafe_code)]

pub mod architecture;
mod blocks;
pub mod board_schedule;
pub mod calibration;
pub mod check;
pub mod choose;
pub mod cost;
pub mod cost_parameters;
pub mod derive;
pub mod draw;
pub mod execute;
pub mod group;
pub mod nearness;
pub mod operation;
pub mod partial;
pub mod plan;
pub mod plan_class;
mod plan_symmetry;
pub mod preset;
pub mod program;
pub mod record;
pub mod rounds;
pub mod settings;
pub mod signature;
pub mod tree;

pub use architecture::Architecture;
pub use board_schedule::BoardSchedule;
pub use calibration::Calibration;
pub use choose::{Choice, Facts, Request, Table};
pub use cost_parameters::CostParameters;
pub use derive::{BoardStyle, Task, Way, plan_of, plans};
pub use draw::{Drawing, Timeline};
pub use execute::{Execution, Precedence, Walk};
pub use group::{Group, GroupError};
pub use nearness::{Nearness, NearnessError, Place};
pub use operation::Operation;
pub use partial::Order;
pub use plan::{Action, Cells, Plan, Step, Store};
pub use plan_class::{PlanClass, each_kin};
pub use preset::{Preset, PresetError};
pub use program::Program;
pub use rounds::Rounds;
pub use settings::{Overrides, OverridesError, Settings};
pub use signature::Signature;
pub use tree::Tree;
