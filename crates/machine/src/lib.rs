//! A virtual machine at the three levels of the paper: what is plugged in where, which interfaces hosts have, and which
//! networks and sites they belong to.
//!
//! [`description`] reads the file in which a user says that. [`routes`] finds the ways between hosts, and [`quantity`]
//! reads numbers with units. Pure.

#![forbid(unsafe_code)]

pub mod description;
pub mod quantity;
pub mod routes;
