//! DECK in C over the Landeck API: `libdeck.so.1`. `../README.md` says how a function is written,
//! and where.
//!
//! | module | what |
//! |---|---|
//! | `shells` | the functions as C sees them, made of the description in `api/` |
//! | `errors` | the errors, made of the same |
//! | `entry` | how every function is entered and left |
//! | `mistake` | what is wrong with a call |
//! | `words` | what errors of the Rust API say in the vocabulary of `deck.h` |
//! | `arguments` | arguments that many functions have |
//! | `sized` | structs of options that begin with their size |
//! | `handle` | the numbers by which programs hold objects |
//! | `recent` | what a thread used last, found without counting references |
//! | `job` | the job of this process, from deck_init to deck_done |
//! | `objects` | what programs hold |
//! | `functions` | the bodies of the functions, by chapter |

mod arguments;
mod entry;
mod errors;
mod functions;
mod handle;
mod job;
mod mistake;
mod objects;
mod recent;
mod shells;
mod sized;
mod words;
