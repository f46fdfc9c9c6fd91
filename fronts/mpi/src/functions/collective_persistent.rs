//! Collective operations that are started any number of times.
