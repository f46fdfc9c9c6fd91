//! Looking at a job from outside: who is there, what everybody waits for, and why it does not go on.
//!
//! Nothing has to be switched on, and no process of the job takes part: each has written down what
//! it waits for before it began to wait for long, where the reader finds it also when the process
//! is wedged, stopped or dead. A picture is not taken at one instant; what matters is compared with
//! a second one, a moment later, before anything is said of it.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use landeck_diagnosis::{Picture, Report};
//! use landeck_host::observe;
//! for host in observe::jobs() {
//!     let job = observe::observe(host)?;
//!     let first = Picture::glance(&job);
//!     // ... some milliseconds later ...
//!     let report = Report::of(&job, &first, &Picture::take(&job));
//!     println!("{host}: {}", report.verdict());
//! }
//! # Ok(()) }
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`picture`] | what is seen of a job at a moment |
//! | [`names`] | what the processes are called |
//! | [`conduct`] | who needs whom, by two pictures |
//! | [`verdict`] | why it does not go on; pure |
//! | [`report`] | the same in words |

#![forbid(unsafe_code)]

pub mod conduct;
pub mod names;
pub mod picture;
pub mod report;
pub mod verdict;

pub use names::{Names, Role};
pub use picture::{Member, Picture};
pub use report::Report;
pub use verdict::Verdict;
