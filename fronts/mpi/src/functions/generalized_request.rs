//! Requests of the program's own operations.
