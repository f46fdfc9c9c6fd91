//! Groups of processes.
