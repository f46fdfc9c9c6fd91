//! A launcher that is not ours, by whichever protocol it lets the processes of its job find each other.

use std::io;
use std::os::fd::OwnedFd;

use crate::pmi::{self, Place, PmiError};
use crate::pmix::{self, PmixError};

/// A conversation with such a launcher.
#[derive(Debug)]
pub enum Foreign {
    /// It speaks PMI-1.
    Pmi(pmi::Client),
    /// It speaks PMIx.
    Pmix(Box<pmix::Client>),
}

/// Why such a launcher cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// It speaks PMI-1.
    #[error(transparent)]
    Pmi(#[from] PmiError),
    /// It speaks PMIx.
    #[error(transparent)]
    Pmix(#[from] PmixError),
}

impl Foreign {
    /// Which process of the job this is.
    pub fn place(&self) -> Place {
        match self {
            Self::Pmi(client) => client.place(),
            Self::Pmix(client) => client.place(),
        }
    }

    /// What closes when the launcher goes, if this process can see that.
    pub(crate) fn connection(&self) -> io::Result<Option<OwnedFd>> {
        match self {
            Self::Pmi(client) => client.connection().map(Some),
            Self::Pmix(client) => client.connection(),
        }
    }

    /// Makes a value known to the others, behind the next fence.
    pub(crate) fn put(&mut self, key: &str, value: &str) -> Result<(), ForeignError> {
        match self {
            Self::Pmi(client) => Ok(client.put(key, value)?),
            Self::Pmix(client) => Ok(client.put(key, value)?),
        }
    }

    /// Returns when all processes of the job have come this far.
    pub(crate) fn fence(&mut self) -> Result<(), ForeignError> {
        match self {
            Self::Pmi(client) => Ok(client.fence()?),
            Self::Pmix(client) => Ok(client.fence()?),
        }
    }

    /// The value that the process of a rank has put.
    pub(crate) fn get(&mut self, rank: u32, key: &str) -> Result<String, ForeignError> {
        match self {
            Self::Pmi(client) => Ok(client.get(key)?),
            Self::Pmix(client) => Ok(client.get(rank, key)?),
        }
    }

    /// Tells the launcher to end the job.
    pub(crate) fn abort(&mut self, exit_code: i32, message: &str) -> Result<(), ForeignError> {
        match self {
            Self::Pmi(client) => Ok(client.abort(exit_code, message)?),
            Self::Pmix(client) => Ok(client.abort(exit_code, message)?),
        }
    }

    /// Gives the launcher time to end a job that it knows to be over.
    pub(crate) fn wait_for_end(&mut self) {
        if let Self::Pmi(client) = self {
            client.wait_for_end();
        }
    }

    /// Takes leave.
    pub(crate) fn finalize(self) -> Result<(), ForeignError> {
        match self {
            Self::Pmi(client) => Ok(client.finalize()?),
            Self::Pmix(client) => Ok(client.finalize()?),
        }
    }
}
