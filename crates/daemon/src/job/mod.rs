//! The jobs of a machine: their parts here, and the whole of those whose launchers are here.

pub(crate) mod jobs;
pub(crate) mod own_part;
mod part_ends;
pub(crate) mod whole_job;
