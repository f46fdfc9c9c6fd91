//! Communicators of two groups.
