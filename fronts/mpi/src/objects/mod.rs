//! The objects that programs hold by handle, one kind in each module. The functions of MPI are in
//! `crate::functions`; what several of them need of an object is here.

pub(crate) mod attributes;
pub(crate) mod buffer;
pub(crate) mod communicator;
pub(crate) mod completion;
pub(crate) mod contents;
pub(crate) mod datatype;
pub(crate) mod error_code;
pub(crate) mod error_handler;
pub(crate) mod exchange;
pub(crate) mod freed;
pub(crate) mod generalized;
pub(crate) mod group;
pub(crate) mod info;
pub(crate) mod keyval;
pub(crate) mod kind;
pub(crate) mod message;
pub(crate) mod neighbours;
pub(crate) mod operation;
pub(crate) mod predefined;
pub(crate) mod process_set;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod topology;
