//! The DECK front from outside: C programs with the library under test, and its header.

mod deaths;
mod examples;
mod header;
mod hosts;
mod programs;
mod support;
