//! Faults around a program: kills at any moment, limits, receivers that do not receive, and
//! processes that write to memory of others.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod agent;
mod agreement;
mod clock;
mod group_crashes;
mod hardening;
mod kills;
mod limits;
mod named_groups;
mod objects;
mod one_copy;
mod pressure;
mod restarts;
mod scribble;
#[path = "../support/mod.rs"]
mod support;
mod traffic;
