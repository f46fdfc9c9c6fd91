//! The messages of jobs between daemons.

use serde::{Deserialize, Serialize};

/// A message of a job between two daemons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum JobMessage {
    /// A text, for tests.
    Text(String),
}
