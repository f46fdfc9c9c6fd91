//! Examines a job from outside: its processes, what each of them waits for, and why the job is stuck.
//!
//! Nothing has to be switched on, and no process of the job takes part: each has recorded its wait before it began to
//! wait for long. The reader finds this record even if the process is wedged, stopped or dead. A picture is not taken
//! at one instant; so everything that matters is compared with a second picture, a moment later, before anything is
//! reported.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use landeck_diagnosis::Onlooker;
//! use landeck_joining::observe;
//! for job in observe::jobs() {
//!     let mut onlooker = Onlooker::new(job);
//!     let (_, report) = onlooker.report();
//!     println!("{}: {}", onlooker.facts().id, report.verdict());
//! }
//! # Ok(()) }
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`host_picture`] | the visible state of a job on one host, as it travels |
//! | [`picture`] | the visible state of a job on all its hosts |
//! | [`far`] | the pictures of other hosts, which daemons send |
//! | [`onlooker`] | pictures and reports of one job |
//! | [`names`] | the names of the processes |
//! | [`conduct`] | which process needs which, from two pictures |
//! | [`verdict`] | the reason why a job is stuck; pure |
//! | [`report`] | the verdict in words |

#![forbid(unsafe_code)]

pub mod conduct;
pub mod far;
mod forms;
pub mod host_picture;
pub mod names;
pub mod onlooker;
pub mod picture;
pub mod report;
#[cfg(test)]
mod samples;
pub mod verdict;

pub use host_picture::{HostPicture, Stored};
pub use names::{Names, Role};
pub use onlooker::{JobFacts, Onlooker};
pub use picture::{Member, Picture};
pub use report::Report;
pub use verdict::Verdict;
