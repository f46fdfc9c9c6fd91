//! Several daemons in one process.
