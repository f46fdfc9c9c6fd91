//! Tools of every test of the workspace, but of no program: a time limit ([`Watchdog`]), a check of what a test leaves
//! behind ([`Trail`]), random numbers that can be replayed ([`seed`], [`Random`]), steps of tests that build and run
//! programs ([`program`]), the place where their jobs run ([`jobs`]), jobs in which one process is killed while the
//! others stay ([`deaths`]), and clusters of network namespaces ([`hosts`]).
//!
//! ```no_run
//! use landeck_testing::{Trail, Watchdog};
//! use std::{process::Command, time::Duration};
//!
//! let _watchdog = Watchdog::start(Duration::from_secs(20));
//! let trail = Trail::new();
//! let output = trail.run(Command::new("landeck").args(["run", "-n", "2", "true"]), Duration::from_secs(5));
//! assert!(output.status.success());
//! trail.assert_gone(Duration::from_secs(1));
//! ```
//!
//! A test that needs only a limit starts with the first line alone.
#![forbid(unsafe_code)]

pub mod deaths;
pub mod hosts;
pub mod jobs;
pub mod program;
mod random;
mod trail;
mod watchdog;

pub use random::{Random, seed};
pub use trail::{Trail, leftovers};
pub use watchdog::Watchdog;
