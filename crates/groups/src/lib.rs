//! Views and membership as pure machines.
