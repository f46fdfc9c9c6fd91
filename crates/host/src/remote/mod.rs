//! A job on several hosts, as far as its processes are concerned.
//!
//! | module | content |
//! |---|---|
//! | [`spec`] | everything that the hosts of a job must know |
//! | [`part`] | the part of a job on one host |
//! | [`start`] | starting daemons on other hosts |
//! | [`messages`] | what launcher and arbiter say to each other |

pub mod messages;
pub mod part;
pub mod spec;
pub mod start;
