//! Virtual topologies.
