//! What can be wrong with a call, and its class of error.

use std::ffi::c_int;

use landeck::arithmetic::ReductionError;
use landeck_c_boundary::{HandleError, PointerError};

use crate::abi::{ErrorClass, Handle};
use crate::job::{JobFailure, StartError};

/// What is wrong with a call: the argument, its value, what now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Mistake {
    #[error("MPI is not initialised; call MPI_Init first")]
    TooEarly,
    #[error("MPI is finalised; no other function may be called after MPI_Finalize")]
    TooLate,
    #[error("MPI was initialised before; a program calls MPI_Init or MPI_Init_thread once")]
    Again,
    #[error("required is {value}, which is no thread level; use one of the MPI_THREAD_ constants")]
    ThreadLevel { value: c_int },
    #[error("comm is {value:#x}, which is no communicator of this process")]
    Communicator { value: Handle },
    #[error("{argument} is {value}, but the communicator has the ranks 0 to {}", size - 1)]
    Rank { argument: &'static str, value: c_int, size: u32 },
    #[error("tag is {value}, but a tag is 0 or more{}",
        if *may_be_any { ", or MPI_ANY_TAG" } else { "" })]
    Tag { value: c_int, may_be_any: bool },
    #[error("count is {value}; it must be 0 or more")]
    Count { value: c_int },
    #[error("datatype is {value:#x}, which is no datatype that this library has")]
    Datatype { value: Handle },
    #[error("{0}")]
    Buffer(PointerError),
    #[error("sendbuf and recvbuf are both {address:#x}; pass MPI_IN_PLACE as sendbuf instead")]
    SameBuffer { address: usize },
    #[error("{0}")]
    Argument(#[from] PointerError),
    #[error("user_fn is a null pointer; pass the function that combines")]
    NoFunction,
    #[error("request: {0}")]
    Request(HandleError),
    #[error("op: {0}")]
    Operation(HandleError),
    #[error("op is {value:#x}, a predefined operation, which cannot be freed")]
    PredefinedOperation { value: Handle },
    #[error("op does not fit datatype: {0}")]
    Senseless(#[from] ReductionError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Job(#[from] JobFailure),
}

impl Mistake {
    /// The class that the standard gives it.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::TooEarly | Self::TooLate | Self::Again | Self::Start(_) => ErrorClass::Other,
            Self::Communicator { .. } => ErrorClass::Communicator,
            Self::Rank { .. } => ErrorClass::Rank,
            Self::Tag { .. } => ErrorClass::Tag,
            Self::Count { .. } => ErrorClass::Count,
            Self::Datatype { .. } => ErrorClass::Type,
            Self::Buffer(_) | Self::SameBuffer { .. } => ErrorClass::Buffer,
            Self::ThreadLevel { .. } | Self::Argument(_) | Self::NoFunction => ErrorClass::Argument,
            Self::Request(_) => ErrorClass::Request,
            Self::Operation(_) | Self::PredefinedOperation { .. } | Self::Senseless(_) => {
                ErrorClass::Operation
            }
            Self::Job(failure) => failure.class(),
        }
    }
}
