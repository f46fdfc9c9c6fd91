//! The job of a machine: its part here, and on the arbiter the whole.

pub(crate) mod gathering;
pub(crate) mod jobs;
pub(crate) mod whole_job;
