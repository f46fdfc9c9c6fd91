//! Packing and unpacking.
