//! The functions as C sees them, made of the description in `abi/` by `cargo xtask mpi`: each calls
//! its body in `crate::functions`.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::{Callback, Handle, Status};
use crate::counts::{CountPlace, Counts};
use crate::entry::{
    calls_back, entered, entered_for_value, entered_walking, shell, unsupported, value, works,
};
use crate::job::check_joined as inside;
use crate::mistake::Mistake;
use crate::objects::kind::Kind;
use crate::origin::{Origin, raise};

#[rustfmt::skip]
mod abi;
#[rustfmt::skip]
mod attribute;
#[rustfmt::skip]
mod buffer;
#[rustfmt::skip]
mod collective;
#[rustfmt::skip]
mod collective_persistent;
#[rustfmt::skip]
mod collective_started;
#[rustfmt::skip]
mod communicator;
#[rustfmt::skip]
mod communicator_creation;
#[rustfmt::skip]
mod conversion;
#[rustfmt::skip]
mod datatype;
#[rustfmt::skip]
mod dynamic;
#[rustfmt::skip]
mod environment;
#[rustfmt::skip]
mod error;
#[rustfmt::skip]
mod file;
#[rustfmt::skip]
mod generalized_request;
#[rustfmt::skip]
mod group;
#[rustfmt::skip]
mod info;
#[rustfmt::skip]
mod intercommunicator;
#[rustfmt::skip]
mod neighborhood;
#[rustfmt::skip]
mod one_sided;
#[rustfmt::skip]
mod operation;
#[rustfmt::skip]
mod pack;
#[rustfmt::skip]
mod partitioned;
#[rustfmt::skip]
mod persistent;
#[rustfmt::skip]
mod point_to_point;
#[rustfmt::skip]
mod probe;
#[rustfmt::skip]
mod request;
#[rustfmt::skip]
mod session;
#[rustfmt::skip]
mod status;
#[rustfmt::skip]
mod tool;
#[rustfmt::skip]
mod topology;
