//! The real channels: shared memory and TCP.
