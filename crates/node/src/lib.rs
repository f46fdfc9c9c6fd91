//! The Landeck API for Rust programs.
