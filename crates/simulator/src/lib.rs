//! The simulator: the product's plans, executor and matching on simulated networks, hosts and time.
//!
//! A run depends only on its input, not on time or machine. Its parts are files of their own, since more than
//! collective operations will run on them.
//!
//! | module | what |
//! |---|---|
//! | [`time`] | time in picoseconds, and planned events |
//! | [`platform`] | hosts and networks as text files |
//! | `network` | cards and switches that carry one message at a time |
//! | `near` | messages within a host |
//! | `footprint`, `caches` | the memory that members touch, and the rates of copies |
//! | `processors` | processes that take turns on a processor |
//! | `board` | the shared memory of a host |
//! | [`fault`] | faults |
//! | `setting`, `hosts` | the input of a run, and the placement of members |
//! | [`simulation`] | a run |
//! | `report` | the result of a run |
//! | `volume` | the size of a run, before it begins |
//! | `stages` | the calls of all members, one after the other |
//! | `compact_plans` | the plans of all members, in little memory |
//! | `world` | members, and the messages between them |
//! | [`history`] | each activity and its cause: the critical path |
//!
//! ```
//! use landeck_collectives::architecture::Knomial;
//! use landeck_collectives::{Group, Operation, Task, Way};
//! use landeck_simulator::{Faults, Setting, Work, platform, run};
//!
//! let group = Group::whole(120).expect("members");
//! let task = Task::new(Operation::Broadcast);
//! let way = Way::by(Knomial::BINOMIAL);
//! let work = Work { task: &task, way: &way, group: &group, bytes: 40 };
//! let platform = platform::library::find("myrinet2000")?;
//! let faults = Faults::default();
//! let report = run(&work, &Setting::new(&platform, &faults), &mut |_| {}).expect("room for 120 on 96 hosts");
//! assert_eq!(report.messages, 119);
//! # Ok::<(), landeck_simulator::PlatformError>(())
//! ```

#![forbid(unsafe_code)]

mod board;
mod caches;
mod compact_plans;
mod error;
pub mod fault;
mod footprint;
pub mod history;
mod hosts;
mod load;
mod near;
mod network;
pub mod platform;
mod processors;
mod report;
mod setting;
pub mod simulation;
mod stages;
pub mod time;
mod volume;
mod world;

pub use error::SimulationError;
pub use fault::{Death, DeathError, Faults};
pub use history::{History, Record, What};
pub use platform::{Platform, PlatformError};
pub use report::{Outcome, SimulationProgress, SimulationReport};
pub use setting::{Calls, Placement, Setting, Work};
pub use simulation::run;
pub use time::{Events, Time};
