//! A job on several hosts, as far as its processes are concerned.
//!
//! | module | content |
//! |---|---|
//! | [`spec`] | everything that the hosts of a job must know |
//! | [`server`] | the process that forks guardians for a daemon |
//! | [`part`] | the part of a job on one host |
//! | [`start`] | starting daemons on other hosts |
//! | [`messages`] | what launcher and arbiter say to each other |
//! | `run` | the launcher of such a job |

pub mod messages;
pub mod part;
mod run;
pub mod server;
pub mod spec;
pub mod start;
