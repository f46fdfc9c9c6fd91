//! The conformance suite: over the channels that need no network, and over channels that are wrong.

mod broken_channels;
mod conformance;
