//! The MPI 5.0 standard ABI over the Landeck API.
