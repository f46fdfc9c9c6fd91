//! Collective operations as plans.
//!
//! An [`architecture`] defines which members exchange messages; an [operation](Operation) defines which data go where.
//! Together they give a [`Plan`]: a small graph of steps for one member.
//! Plans are made by pure functions, [proven](check), drawn, costed, simulated, and executed by one [executor](execute)
//! for blocking, non-blocking and persistent calls.
//!
//! | module | contents |
//! |---|---|
//! | [`operation`] | the collective operations |
//! | [`group`] | the members of a group and their clusters |
//! | [`nearness`] | clusters derived from where members run |
//! | [`tree`], [`rounds`] | the two communication patterns of an architecture |
//! | [`architecture`] | the architectures, one file each |
//! | [`preset`] | ways to do every operation, by name |
//! | [`mod@derive`] | operations derived from trees and rounds |
//! | [`program`] | the actions of all members in one sequence; a plan is its projection on one member |
//! | [`partial`] | partial results of reductions, and the order in which they combine |
//! | [`plan`] | the steps of one member |
//! | [`plan_class`] | the plans of large groups, some at a time; members whose plans are equal up to rotation |
//! | [`check`] | proofs of plans, independent of their derivation |
//! | [`draw`] | plans as text and as pictures |
//! | [`execute`] | the execution of a plan |
//! | [`signature`] | the signature of a call, as it travels with messages |
//! | [`cost_parameters`] | the cost parameters of a host |
//! | [`links`] | the cost of messages between hosts, by pair of hosts |
//! | [`calibration`] | further measured times of a host, for the simulator |
//! | [`record`] | cost parameters and calibration as text |
//! | [`settings`] | cost parameters and the user's overrides, equal in all processes of a job |
//! | [`cost`] | the cost of a way of doing an operation |
//! | [`choose`] | the choice of a way for an operation in a group |
//! | [`board_schedule`] | the chunks in which large data go over the board of a host |

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
pub mod links;
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
mod seating;
pub mod settings;
pub mod signature;
pub mod tree;

pub use architecture::Architecture;
pub use board_schedule::BoardSchedule;
pub use calibration::Calibration;
pub use choose::{Choice, Facts, Table, WayRequest, form_of};
pub use cost_parameters::{CostParameters, Unit};
pub use derive::{
    BoardStyle, Task, Way, is_derived_over_hosts, plan_of, plan_of_started, plans,
    plans_of_started, segments as segments_of,
};
pub use draw::{Drawing, Timeline};
pub use execute::{Execution, Precedence, Walk};
pub use group::{Group, GroupError};
pub use links::{Link, Links};
pub use nearness::{MemberPlace, Nearness, NearnessError};
pub use operation::Operation;
pub use partial::Order;
pub use plan::{Action, Cells, Plan, Readers, Step, Store};
pub use plan_class::{PlanClass, each_kin};
pub use preset::{Preset, PresetError};
pub use program::Program;
pub use rounds::Rounds;
pub use settings::{Overrides, OverridesError, Settings, Sharing};
pub use signature::{Making, Signature};
pub use tree::Tree;
