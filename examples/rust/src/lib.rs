//! Example programs for the Rust API.
