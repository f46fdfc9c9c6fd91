//! Collective operations between neighbours.
