//! The Rust API as programs use it: several processes under the built launcher.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod bridges;
mod elastic_groups;
mod ending_groups;
mod faults;
mod founding;
mod group_room;
mod groups;
mod mailboxes;
mod messages;
mod modes;
mod named_groups;
mod ports;
mod regions;
mod semaphores;
mod served_groups;
mod starting;
#[path = "../support/mod.rs"]
mod support;
mod threads;
mod views;
