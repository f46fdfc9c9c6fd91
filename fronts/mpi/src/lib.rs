//! The MPI 5.0 standard ABI over the Landeck API: a C library under the name that programs of the
//! ABI look for, `libmpi_abi.so.1`.
//!
//! | module | what |
//! |---|---|
//! | `abi` | values and types of the ABI |
//! | `entry` | how every function is entered and left |
//! | `mistake` | what can be wrong with a call |
//! | `arguments` | arguments that many functions have |
//! | `job` | from MPI_Init to MPI_Finalize |
//! | `communicator` | ranks, and messages between them |
//! | `request` | operations that go on |
//! | `datatype`, `operation` | what is sent and how it is combined |
//! | `environment`, `point_to_point`, `reduce` | the functions themselves |

// The functions have the names of the standard.
#![allow(non_snake_case)]

mod abi;
mod arguments;
mod communicator;
mod datatype;
mod entry;
mod environment;
mod job;
mod mistake;
mod operation;
mod point_to_point;
mod reduce;
mod request;
