//! The trait of every network, its conformance suite, and the channels that need no network.
