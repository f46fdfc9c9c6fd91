//! The routes between hosts.
