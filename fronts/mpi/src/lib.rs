//! The MPI 5.0 standard ABI over the Landeck API: a C library under the name that programs of the
//! ABI look for, `libmpi_abi.so.1`. `README.md` says how a function is written, and where.
//!
//! | module | what |
//! |---|---|
//! | `abi` | types and constants of the ABI |
//! | `shells` | the functions as C sees them, made of the description in `abi/` |
//! | `entry` | how every function is entered and left |
//! | `walk` | calls that call the program back |
//! | `origin` | whose error handler is told of a mistake |
//! | `mistake` | what is wrong with a call |
//! | `arguments`, `counts` | arguments that many functions have |
//! | `job` | the job of this process, from MPI_Init to MPI_Finalize |
//! | `hardware` | the hardware that this process is bound to |
//! | `memory` | memory that the program asks for |
//! | `objects` | what programs hold by handle |
//! | `functions` | the bodies of the functions, by chapter |

// The functions have the names of the standard.
#![allow(non_snake_case)]

mod abi;
mod arguments;
mod counts;
mod entry;
mod functions;
mod hardware;
mod job;
mod memory;
mod mistake;
mod objects;
mod origin;
mod shells;
mod walk;
