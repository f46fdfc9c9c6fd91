//! A foreign launcher, by any protocol through which the processes of its job find each other.

use std::io;
use std::os::fd::OwnedFd;

use crate::pmi::{self, JobPlace, PmiError};
use crate::pmix::{self, PmixError};

/// A conversation with a foreign launcher.
#[derive(Debug)]
pub enum Foreign {
    /// The launcher speaks PMI-1.
    Pmi(pmi::Client),
    /// The launcher speaks PMIx.
    Pmix(Box<pmix::Client>),
}

/// The error of a conversation with a foreign launcher.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// The launcher speaks PMI-1.
    #[error(transparent)]
    Pmi(#[from] PmiError),
    /// The launcher speaks PMIx.
    #[error(transparent)]
    Pmix(#[from] PmixError),
}

impl Foreign {
    /// The rank of this process and the size of the job.
    pub fn place(&self) -> JobPlace {
        match self {
            Self::Pmi(client) => client.place(),
            Self::Pmix(client) => client.place(),
        }
    }

    /// A descriptor that closes when the launcher ends, if this process can see that.
    pub(crate) fn connection(&self) -> io::Result<Option<OwnedFd>> {
        match self {
            Self::Pmi(client) => client.connection().map(Some),
            Self::Pmix(client) => client.connection(),
        }
    }

    /// Publishes a value, which the others can read after the next fence.
    pub(crate) fn put(&mut self, key: &str, value: &str) -> Result<(), ForeignError> {
        match self {
            Self::Pmi(client) => Ok(client.put(key, value)?),
            Self::Pmix(client) => Ok(client.put(key, value)?),
        }
    }

    /// Returns when all processes of the job have reached this fence.
    pub(crate) fn fence(&mut self) -> Result<(), ForeignError> {
        match self {
            Self::Pmi(client) => Ok(client.fence()?),
            Self::Pmix(client) => Ok(client.fence()?),
        }
    }

    /// Reads the value that the process of a rank has put.
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

    /// Gives the launcher time to end a job that it knows to have ended or failed.
    pub(crate) fn wait_for_end(&mut self) {
        if let Self::Pmi(client) = self {
            client.wait_for_end();
        }
    }

    /// Says goodbye to the launcher.
    pub(crate) fn finalize(self) -> Result<(), ForeignError> {
        match self {
            Self::Pmi(client) => Ok(client.finalize()?),
            Self::Pmix(client) => Ok(client.finalize()?),
        }
    }
}
