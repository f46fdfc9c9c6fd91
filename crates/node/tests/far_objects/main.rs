//! Mailboxes, names and regions over two hosts, which are namespaces of this computer: two ranks on each.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod job;
mod mailboxes;
mod regions;
#[path = "../support/mod.rs"]
mod support;
