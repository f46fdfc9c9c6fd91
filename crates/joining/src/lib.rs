//! How a process becomes part of a job: by its launcher's segment, by the agent of a job, by another launcher; and what it
//! asks the agent afterwards.

pub mod abort_word;
pub mod address;
pub mod agent;
pub mod agent_thread;
pub mod attach;
pub mod claim;
mod death_notice;
pub mod foreign;
pub mod index;
pub mod inherited;
pub mod job_names;
pub mod liveness;
pub mod machines;
pub mod objects;
pub mod observe;
pub mod peer;
pub mod pmi;
pub mod pmix;
pub mod socket;
