//! The bodies of the functions, one chapter in each module. Which function has a body here says
//! the description in `abi/functions/`.

pub(crate) mod abi;
pub(crate) mod attribute;
pub(crate) mod buffer;
pub(crate) mod collective;
pub(crate) mod collective_persistent;
pub(crate) mod collective_started;
pub(crate) mod communicator;
pub(crate) mod communicator_creation;
pub(crate) mod conversion;
pub(crate) mod datatype;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod generalized_request;
pub(crate) mod group;
pub(crate) mod info;
pub(crate) mod intercommunicator;
pub(crate) mod neighborhood;
pub(crate) mod operation;
pub(crate) mod pack;
pub(crate) mod persistent;
pub(crate) mod point_to_point;
pub(crate) mod probe;
mod quick;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod topology;
