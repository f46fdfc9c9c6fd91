//! Element types and reduction operations.
