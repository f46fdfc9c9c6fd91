//! Connections that are dialled, and callers that are not known yet.

pub(crate) mod dial;
pub(crate) mod listener;
pub(crate) mod places;
pub(crate) mod refusals;
