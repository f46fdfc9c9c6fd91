//! Buffers for sends that never wait.
