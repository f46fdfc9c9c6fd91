//! The API over pointers, as fronts in other languages use it: several processes under the built
//! launcher.
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod forks;
mod messages;
mod requests;
#[path = "../support/mod.rs"]
mod support;
