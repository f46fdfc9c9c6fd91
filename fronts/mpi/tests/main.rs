//! The MPI front from outside: C programs with the library under test, its header, and other launchers.

mod book;
mod chapters;
mod deaths;
mod functions;
mod header;
mod interchange;
mod joining;
mod launchers;
mod leaving;
mod programs;
mod seeing;
mod support;
mod tools;
