//! Observers of a job: the pictures, stacks and logs of its other hosts.

pub(crate) mod log;
pub(crate) mod pictures;
pub(crate) mod stack_searches;
