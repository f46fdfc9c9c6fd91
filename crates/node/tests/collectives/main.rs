//! Collective operations as programs use them: several processes under the built launcher.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod checking;
mod clusters;
mod faults;
mod going;
mod kills;
mod memory;
mod messages;
mod mismatch;
mod one_copy;
mod reference;
mod roots;
mod rounds;
#[path = "../support/mod.rs"]
mod support;
