//! Jobs on two hosts, which are namespaces of this computer: two ranks on each, under `landeck run --host`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod across;
mod bounds;
mod collectives;
mod computing;
mod deaths;
mod faults;
mod groups;
mod incast;
mod job;
mod killed_drivers;
mod killed_hosts;
mod leaving;
mod lengths;
mod long;
mod mailboxes;
mod messages;
mod named_groups;
mod regions;
mod relayed;
mod slow;
mod starting;
#[path = "../support/mod.rs"]
mod support;
mod urgent;
mod varying;
mod waiting;
