//! Messages that are started any number of times.
